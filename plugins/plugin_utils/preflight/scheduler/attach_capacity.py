# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for the volumes of all pods of a workload, where each pod by itself finds room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..findings import create_finding
from ..index import Index, unite
from ..usage import Workload
from ..verdict import ReportFinding
from ..walk.steps import Places
from .node_volume_limits import NodeVolumeLimits, Unique


def check_workload(index: Index, limits: NodeVolumeLimits, workload: Workload, places: Places) -> ReportFinding | None:
    """That nodes take each of a workload's pods, and not the volumes of all of them; its pods of today go before."""
    if sum(pod.count for pod, _nodes in places) < 2 or workload.kind == "DaemonSet":
        return None
    nodes = unite(nodes for dummy, nodes in places)
    needs = [(pod.count, *limits.collect_needs(pod)) for pod, _nodes in places]
    named: set[Unique] = set()
    needed: Counter[str] = Counter()
    for _count, pod_volumes, new_volumes in needs:
        named |= pod_volumes
        needed.update(new_volumes)
    needed.update(volume[0] for volume in named)
    leaving = named.union(*map(limits.list_volumes, workload.pods))
    for driver, number in sorted(needed.items()):
        room, share = 0, _find_least_share(driver, needs)
        for node in index.list_nodes(nodes):
            has_limit = node.name in limits.limits.get(driver, {})
            free = limits.count_room(driver, node.name, leaving) if has_limit else number
            room += free - free % share
            if room >= number:
                break
        if room < number:
            message = f"its pods need {number} volumes of {driver}, and the nodes that accept them can attach {room}"
            evidence = tuple(f"Node {node.name}" for node in index.list_nodes(nodes))[:3]
            return create_finding("CSI-N33", workload.key, message, evidence, "add nodes, or let fewer pods run")
    return None


def _find_least_share(driver: str, needs: Sequence[tuple[int, set[Unique], Counter[str]]]) -> int:
    """How many volumes each pod has at least that no other pod has: a node takes all of these or none."""
    users = Counter(volume for _count, pod_volumes, _new_volumes in needs for volume in pod_volumes)
    shares = []
    for count, pod_volumes, new_volumes in needs:
        own_volumes = sum(volume[0] == driver and users[volume] == 1 for volume in pod_volumes) if count == 1 else 0
        shares.append(own_volumes + new_volumes[driver] // count)
    return max(1, min(shares))
