# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of the one upgrade of a cluster. A whole run holds it: many modules, and tasks between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..kube import kinds
from ..kube.client import Client
from ..kube.fencing import Reference
from ..kube.labels import MANAGED_BY, MANAGER, PART_OF
from ..kube.lease import Lease, LeaseSubject

NAME = "kubewin-upgrade"
PART = "upgrade"


def upgrade_lease(
    client: Client, namespace: str, holder: str, notify: Callable[[str], None] = lambda _line: None
) -> Lease:
    """Return the Lease. holder: of the run."""
    labels = {MANAGED_BY: MANAGER, PART_OF: PART}

    def list_late_writes() -> Iterator[Reference]:
        """Name what a run may still write: journals and Nodes.

        An eviction names the pod's uid, and the journal names the nodes that it drains, so the next run drains those first.
        """
        for item in client.list(kinds.CONFIG_MAP, namespace, label_selector=f"{PART_OF}={PART}").items:
            yield Reference(kinds.CONFIG_MAP, item["metadata"]["name"], namespace)
        for item in client.list_windows_nodes():
            yield Reference(kinds.NODE, item["metadata"]["name"])

    return Lease(
        client,
        LeaseSubject(namespace, NAME, labels, "an upgrade of this cluster"),
        holder,
        notify,
        list_written=list_late_writes,
    )
