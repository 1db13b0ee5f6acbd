# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a driver's Windows node plugin, or csi-proxy, go away, and what goes with it? Pure: no I/O.

Without its node plugin no volume of the driver can be mounted or unmounted on a node: pods that use one stay in
Terminating and nodes cannot be drained. So every sign of use counts: pods, attachments, and what the kubelet reports as
in use (``status.volumesInUse`` of a Node, which it keeps until a volume is unmounted). csi-proxy is needed by what mounts its pipes, of
any owner, and by volumes that were mounted through it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..catalog import in_tree
from ..catalog.base import Driver
from ..catalog.csi_proxy import PIPE_PREFIX
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.labels import MANAGED_BY, MANAGER, PART_OF
from ..kube.pod import is_finished, is_owned_by, list_claims, list_pipes
from .plan_inputs import name_record

_SHOWN = 20


class VolumeUse(NamedTuple):
    """One sign that a node uses a volume of the driver. evidence: as text, "pod shop/db-0 (claim data-db-0)"."""

    node: str
    evidence: str


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
    volume_names = {volume["metadata"]["name"] for volume in volumes if _is_volume_of(driver, volume.get("spec") or {})}
    bound = {
        (claim["metadata"]["namespace"], claim["metadata"]["name"])
        for claim in claims
        if (claim.get("spec") or {}).get("volumeName") in volume_names
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
            VolumeUse(spec["nodeName"], f"pod {metadata['namespace']}/{metadata['name']} ({sign})") for sign in used
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
    return tuple(sorted(uses))


def explain_refusal(driver: Driver, uses: Sequence[VolumeUse]) -> str:
    """Why the driver must stay, and what to do; empty when nothing uses it."""
    if not uses:
        return ""
    listed = "\n".join(f"  {use.node}: {use.evidence}" for use in uses)
    return (
        f"{driver.title} ({driver.name}) is in use on Windows nodes. Without its node plugin these volumes cannot be "
        f"unmounted or mounted:\n{listed}\nMove or scale down these workloads, wait until the volumes are detached, "
        "and run again."
    )


def explain_fixed_mode(driver: Driver, former: str, mode: str) -> str:
    """Why a node plugin that runs in one mode cannot change to another one, empty where it can."""
    if not former or mode == former or mode not in driver.fixed_modes:
        return ""
    return f"it runs in mode {former} and cannot change to {mode}, which does not see the mounts and reference counts of {former}"


def make_handover_command(driver: Driver, direction: str, replaced: str = "") -> str:
    """The command that hands a driver over. direction: an option of the module handover. replaced: "namespace/name" of a DaemonSet."""
    named = f" -e kubewin_replace={shlex.quote(replaced)}" if replaced else ""
    return f"ansible-playbook -i inventory.yml kubewin.csi.handover -e kubewin_drivers={driver.key} -e kubewin_handover={direction}{named}"


def explain_begun_handover(driver: Driver, replaced: str) -> str:
    """Why the driver must stay whose hand-over from another node plugin is not finished, and what to do; empty without one."""
    if not replaced:
        return ""
    return (
        f"{driver.title}: a hand-over from DaemonSet {replaced} to this collection's node plugin is not finished, and only its record tells "
        f"which pods of that DaemonSet still run. What it replaced is kept in ConfigMap {name_record(driver)}. "
        f"Finish it first: {make_handover_command(driver, 'to_kubewin', replaced)}"
    )


def _is_volume_of(driver: Driver, source: Mapping[str, Any]) -> bool:
    """Whether the spec of a PersistentVolume, or a volume of a pod, is the driver's."""
    if (source.get("csi") or {}).get("driver") == driver.name:
        return True
    # A kubelet with CSI migration mounts volumes of the in-tree plugin through the CSI driver.
    plugin = in_tree.find_by_name(driver.in_tree)
    return plugin is not None and plugin.field in source


def list_csi_proxy_pipes(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Pipes of csi-proxy that a pod mounts, bare names."""
    return tuple(pipe for pipe in list_pipes(pod_spec) if pipe.startswith(PIPE_PREFIX))


def list_pipe_users(
    daemon_sets: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]], removed_drivers: Collection[str]
) -> tuple[str, ...]:
    """DaemonSets and pods that mount a pipe of csi-proxy, as text.

    removed_drivers: CSI names of drivers whose node plugin of ours is about to be removed; it and its pods do not count.
    """
    users, leaving = [], set()
    for item in daemon_sets:
        metadata = item["metadata"]
        labels = metadata.get("labels") or {}
        name = f"{metadata['namespace']}/{metadata['name']}"
        if labels.get(MANAGED_BY) == MANAGER and labels.get(PART_OF) in removed_drivers:
            leaving.add(metadata.get("uid"))
        elif (observed := ObservedDaemonSet.from_object(item)).pipes:
            users.append(f"DaemonSet {name} mounts {', '.join(observed.pipes)}")
        elif observed.uses_pipes_unmounted:
            users.append(f"DaemonSet {name} of OpenShift's storage operator uses csi-proxy")
    for pod in pods:
        metadata, pipes = pod["metadata"], list_csi_proxy_pipes(pod["spec"])
        if pipes and not is_finished(pod) and not any(is_owned_by(uid, pod) for uid in leaving):
            node = pod["spec"].get("nodeName") or "no node yet"
            users.append(f"pod {metadata['namespace']}/{metadata['name']} on {node} mounts {', '.join(pipes)}")
    return tuple(users)


def is_served_without_pipes(driver: Driver, daemon_sets: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the driver's volumes on Windows are served without csi-proxy: by a provider that mounts none of its pipes."""
    if driver.rule("csi_proxy") is None:
        return True
    observed = map(ObservedDaemonSet.from_object, daemon_sets)
    providers = [daemon_set for daemon_set in observed if daemon_set.is_node_plugin_of(driver.name)]
    # A DaemonSet without a Ready pod serves no volume, whatever it claims; what mounts pipes may serve them any moment.
    return any(daemon_set.ready for daemon_set in providers) and not any(
        daemon_set.pipes or daemon_set.uses_pipes_unmounted for daemon_set in providers
    )


def explain_csi_proxy_refusal(users: Sequence[str], volumes: Sequence[tuple[Driver, Sequence[VolumeUse]]]) -> str:
    """Why csi-proxy must stay, and what to do; empty when nothing needs it."""
    lines = [*users]
    lines += [
        f"{use.node}: {driver.title} ({driver.name}): {use.evidence}, mounted through csi-proxy"
        for driver, uses in volumes
        for use in uses
    ]
    if not lines:
        return ""
    omission = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    listed = "\n".join(f"  {line}" for line in lines[:_SHOWN])
    return (
        "csi-proxy is still in use, and was not changed on any host. Expected no mounts of its pipes and no volumes "
        f"mounted through them:\n{listed}{omission}\nSwitch these node plugins to mode host_process, remove them "
        "(kubewin_drivers names those of this collection), or move their workloads; then run again."
    )
