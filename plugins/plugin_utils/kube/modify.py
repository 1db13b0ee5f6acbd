# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A patch of an object as it was read. Its controller or kubelet may write between the two, so they are repeated together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .client import FIELD_MANAGER, Client
from .errors import ApiCall, ClusterError
from .kinds import Kind

Object = dict[str, Any]

# Writes of others between reading and writing, before it is given up.
_TRIES = 20


def modify(
    client: Client, kind: Kind, name: str, namespace: str | None, patch: Callable[[Object], Object], *,
    manager: str = FIELD_MANAGER, dry_run: bool = False, required: bool = False,
) -> bool:  # fmt: skip
    """Merge-patch an object with what `patch` returns for it as it is now, empty for no change; whether there was one.

    required: ClusterError not_found if the object does not exist, which otherwise needs no change. ClusterError conflict when others
    write it all the time.
    """
    title = ApiCall("patch", kind, namespace, name).title
    for _try in range(_TRIES):
        live = client.get(kind, name, namespace)
        if live is None and required:
            raise ClusterError(f"{title} does not exist, expected to change it. Run again.", "not_found", 404)
        if live is None or not (body := patch(live)):
            return False
        # Bound to what was read: what another client writes from here on makes this patch a conflict.
        metadata = {"resourceVersion": live["metadata"]["resourceVersion"], **body.get("metadata", {})}
        try:
            client.patch(kind, name, namespace, {**body, "metadata": metadata}, manager, dry_run=dry_run)
        except ClusterError as error:
            if error.status != 409:
                raise
            continue
        return True
    raise ClusterError(f"{title} changes faster than it can be written. Find out what else writes it.", "conflict", 409)
