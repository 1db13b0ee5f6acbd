# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fencing: a run that lost its lease cannot write any more, however late its request arrives.

A check before a request is not enough: a process can be stopped after the check, and a proxy can hold the request. Therefore a write
of a run that holds a lease keeps this order, which lease.bind_client() enforces for every write and every retry:

1. read the object, which gives its resourceVersion;
2. renew the Lease by a conditional write, which fails if another run took it over;
3. send the write with the resourceVersion of step 1.

A run that takes over changes the Lease first and then the resourceVersion of every object that the former holder may still write
(`fence`), before it reads anything that it plans from. If that happens after step 2, step 3 is a conflict. If the Lease was taken
before step 2, step 2 fails. After a conflict the order begins again at step 1: reading the new resourceVersion does not help a run
that lost its lease, because step 2 fails. The fenced versions stay, so later runs need not fence again.

An object that does not exist yet has no version. Creations therefore use names that the next run uses too (then they are conflicts),
or carry the name of their run, by which the next run recognizes and removes them. Helper pods also end by activeDeadlineSeconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .client import Client
from .kinds import Kind
from .modify import modify

# On a fenced object: the holder that fenced it, and the resourceVersion of the Lease when it took over.
FENCED_BY = "kubewin.io/fenced-by"


@dataclass(frozen=True, slots=True)
class Reference:
    """An object by its name; it need not exist."""

    kind: Kind
    name: str
    namespace: str | None = None


def fence(client: Client, references: Iterable[Reference], generation: str | None) -> None:
    """Change the resourceVersion of each object that exists. client: bound to the lease.

    generation: a text that no takeover used before; None removes that of a former one, after which the fence holds all the same.
    """
    for reference in references:
        body = {"metadata": {"annotations": {FENCED_BY: generation}}}
        modify(client, reference.kind, reference.name, reference.namespace, lambda _live, body=body: body)  # type: ignore[misc]  # mypy: python/mypy#15459
