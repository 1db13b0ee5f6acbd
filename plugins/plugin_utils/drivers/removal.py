# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a driver's Windows node plugin go away, and what goes with it? Pure: no I/O.

Without its node plugin no volume of the driver can be mounted or unmounted on a node: pods that use one stay in
Terminating and nodes cannot be drained. So every sign of use counts: pods, attachments, and what the kubelet reports as
in use (``status.volumesInUse`` of a Node, which it keeps until a volume is unmounted).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import is_finished, list_claims


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """One sign that a node uses a volume of the driver. what: as text, "pod shop/db-0 (claim data-db-0)"."""

    node: str
    what: str


def make_selector(driver: Driver) -> str:
    """Label selector of everything that was applied for a driver."""
    return f"{MANAGED_BY}={MANAGER},{PART_OF}={driver.name}"


def find_uses(
    driver: Driver,
    nodes: Sequence[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]],
    volumes: Iterable[Mapping[str, Any]],
    attachments: Iterable[Mapping[str, Any]],
) -> tuple[VolumeUse, ...]:
    """Every sign of use on the given Windows Nodes, sorted. All arguments are objects as the API returns them.

    A finished pod counts only while it is being deleted: its kubelet has unmounted by then at the latest.
    """
    names = {node["metadata"]["name"] for node in nodes}
    ours = {volume["metadata"]["name"] for volume in volumes if _is_volume_of(driver, volume.get("spec") or {})}
    bound = {
        (claim["metadata"]["namespace"], claim["metadata"]["name"])
        for claim in claims
        if (claim.get("spec") or {}).get("volumeName") in ours
    }
    uses: set[VolumeUse] = set()
    for pod in pods:
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        if spec.get("nodeName") not in names or is_finished(pod):
            continue
        used = [f"claim {claim}" for claim in list_claims(pod) if (metadata["namespace"], claim) in bound]
        used += [
            f"inline volume {volume['name']}" for volume in spec.get("volumes") or [] if _is_volume_of(driver, volume)
        ]
        uses.update(
            VolumeUse(spec["nodeName"], f"pod {metadata['namespace']}/{metadata['name']} ({what})") for what in used
        )
    for attachment in attachments:
        spec = attachment["spec"]
        if spec.get("attacher") == driver.name and spec.get("nodeName") in names:
            volume = (spec.get("source") or {}).get("persistentVolumeName") or "an inline volume"
            uses.add(VolumeUse(spec["nodeName"], f"volume {volume} is attached"))
    prefixes = tuple(f"{prefix}/" for prefix in (driver.in_tree,) if prefix)
    csi = f"kubernetes.io/csi/{driver.name}^"
    for node in nodes:
        for name in (node.get("status") or {}).get("volumesInUse") or []:
            if name.startswith((csi, *prefixes)):
                uses.add(VolumeUse(node["metadata"]["name"], f"the kubelet has {name.removeprefix(csi)} in use"))
    return tuple(sorted(uses, key=lambda use: (use.node, use.what)))


def explain_refusal(driver: Driver, uses: Sequence[VolumeUse]) -> str:
    """Why the driver must stay, and what to do; empty when nothing uses it."""
    if not uses:
        return ""
    listed = "\n".join(f"  {use.node}: {use.what}" for use in uses)
    return (
        f"{driver.title} ({driver.name}) is in use on Windows nodes. Without its node plugin these volumes cannot be "
        f"unmounted or mounted:\n{listed}\nMove or scale down these workloads, wait until the volumes are detached, "
        "and run again."
    )


def _is_volume_of(driver: Driver, source: Mapping[str, Any]) -> bool:
    """Whether the spec of a PersistentVolume, or a volume of a pod, is the driver's."""
    if (source.get("csi") or {}).get("driver") == driver.name:
        return True
    # A kubelet with CSI migration mounts volumes of the in-tree plugin through the CSI driver.
    plugin = in_tree.find_by_name(driver.in_tree)
    return plugin is not None and plugin.field in source
