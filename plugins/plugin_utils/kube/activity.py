# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a volume operation in flight on a Node? Pure: no I/O.

csi-proxy serves one call after another with no memory of its own, so it may be stopped whenever no pod's volumes are
being mounted, unmounted or resized. Running pods keep their mounts while it is away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts

# A claim in one of these conditions still has work to do on the node that holds the volume
# (https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims).
_RESIZING = frozenset({"Resizing", "FileSystemResizePending"})


def explain_volume_operations(pods: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why the Node's volumes are not at rest, empty when they are. pods: all of this Node; claims: those they use."""
    reasons = []
    for pod in map(PodFacts.from_object, pods):
        if not pod.volumes or pod.finished:
            continue
        if pod.deleting:
            reasons.append(f"{pod.title} is terminating and its volumes are being unmounted")
        elif pod.phase == "Pending":
            reasons.append(f"{pod.title} is starting and its volumes are being mounted")
    for claim in claims:
        metadata = claim["metadata"]
        conditions = (claim.get("status") or {}).get("conditions") or []
        if any(entry.get("type") in _RESIZING and entry.get("status") == "True" for entry in conditions):
            reasons.append(f"claim {metadata['namespace']}/{metadata['name']} is being resized")
    return reasons
