# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who still needs csi-proxy: whatever mounts its pipes, of any owner, and volumes that were mounted through it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.removal import VolumeUse
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import (
    is_finished,
    is_host_process,
    is_owned_by,
    list_host_paths,
)

_PIPE = re.compile(r"^[\\/]+\.[\\/]+pipe[\\/]+(csi-proxy-[a-z0-9-]+)", re.IGNORECASE)
_SHOWN = 20


def list_pipes(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Pipes of csi-proxy that a pod mounts, bare names."""
    return tuple(match[1] for path in list_host_paths(pod_spec) if (match := _PIPE.match(path)))


def uses_pipes_unmounted(daemon_set: Mapping[str, Any]) -> bool:
    """Whether a DaemonSet uses csi-proxy without mounting a pipe: a HostProcess plugin of OpenShift's storage operator.

    Source: enhancements/windows-containers/windows-CSI-driver-support.md (pull request 2072 of
    https://github.com/openshift/enhancements).
    """
    observed = ObservedDaemonSet.from_object(daemon_set)
    return observed.of_openshift and observed.plugin and is_host_process(daemon_set["spec"]["template"]["spec"])


def list_pipe_users(
    daemon_sets: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]], going: Collection[str]
) -> tuple[str, ...]:
    """DaemonSets and pods that mount a pipe of csi-proxy, as text.

    going: CSI names of drivers whose node plugin of ours is about to be removed; it and its pods do not count.
    """
    users, leaving = [], set()
    for item in daemon_sets:
        metadata = item["metadata"]
        labels = metadata.get("labels") or {}
        name = f"{metadata['namespace']}/{metadata['name']}"
        if labels.get(MANAGED_BY) == MANAGER and labels.get(PART_OF) in going:
            leaving.add(metadata.get("uid"))
        elif pipes := list_pipes(item["spec"]["template"]["spec"]):
            users.append(f"DaemonSet {name} mounts {', '.join(pipes)}")
        elif uses_pipes_unmounted(item):
            users.append(f"DaemonSet {name} of OpenShift's storage operator uses csi-proxy")
    for pod in pods:
        metadata, pipes = pod["metadata"], list_pipes(pod["spec"])
        if pipes and not is_finished(pod) and not any(is_owned_by(uid, pod) for uid in leaving):
            node = pod["spec"].get("nodeName") or "no node yet"
            users.append(f"pod {metadata['namespace']}/{metadata['name']} on {node} mounts {', '.join(pipes)}")
    return tuple(users)


def is_served_without_pipes(driver: Driver, daemon_sets: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the driver's volumes on Windows are served without csi-proxy: by a provider that mounts none of its pipes."""
    if driver.rule("csi_proxy") is None:
        return True
    observed = [(daemon_set, ObservedDaemonSet.from_object(daemon_set)) for daemon_set in daemon_sets]
    providers = [one for one, found in observed if found.is_node_plugin_of(driver.name)]
    # A DaemonSet without a Ready pod serves no volume, whatever it claims; what mounts pipes may serve them any moment.
    return any(found.ready for one, found in observed if one in providers) and not any(
        list_pipes(one["spec"]["template"]["spec"]) or uses_pipes_unmounted(one) for one in providers
    )


def explain_refusal(users: Sequence[str], volumes: Sequence[tuple[Driver, Sequence[VolumeUse]]]) -> str:
    """Why csi-proxy must stay, and what to do; empty when nothing needs it."""
    lines = [*users]
    lines += [
        f"{use.node}: {driver.title} ({driver.name}): {use.what}, mounted through csi-proxy"
        for driver, uses in volumes
        for use in uses
    ]
    if not lines:
        return ""
    more = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    listed = "\n".join(f"  {line}" for line in lines[:_SHOWN])
    return (
        "csi-proxy is still in use, and was not changed on any host. Expected no mounts of its pipes and no volumes "
        f"mounted through them:\n{listed}{more}\nSwitch these node plugins to mode host_process, remove them "
        "(kubewin_drivers names those of this collection), or move their workloads; then run again."
    )
