# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for the volumes of all pods together, where each pod by itself finds room. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...base.grouped import group_values
from ..facts.workloads import ObservedPod
from ..findings import create_finding
from ..index import Index, unite
from ..render.text_format import format_list
from ..usage import Workload
from ..verdict import ReportFinding
from ..walk.steps import Places
from .node_volume_limits import NodeVolumeLimits, Unique

# A workload, its pods, and its pods of today.
StartingWorkload = tuple[str, Places, Sequence[ObservedPod]]

_REMEDY = "add nodes, or let fewer pods run"


class AttachCapacity:
    def __init__(self, index: Index, limits: NodeVolumeLimits) -> None:
        self._index, self._limits = index, limits

    def check_workload(self, workload: Workload, places: Places) -> ReportFinding | None:
        """That nodes take each of a workload's pods, and not the volumes of all of them; its pods of today go before."""
        if sum(pod.count for pod, _nodes in places) < 2 or workload.kind == "DaemonSet":
            return None
        nodes = unite(nodes for dummy, nodes in places)
        needs = [(pod.count, *self._limits.collect_needs(pod)) for pod, _nodes in places]
        named: set[Unique] = set()
        needed: Counter[str] = Counter()
        for _count, pod_volumes, new_volumes in needs:
            named |= pod_volumes
            needed.update(new_volumes)
        needed.update(volume[0] for volume in named)
        leaving = named.union(*map(self._limits.list_volumes, workload.pods))
        for driver, number in sorted(needed.items()):
            room = self._count_room(driver, nodes, leaving, number, _find_least_share(driver, needs))
            if room < number:
                message = (
                    f"its pods need {number} volumes of {driver}, and the nodes that accept them can attach {room}"
                )
                evidence = tuple(f"Node {node.name}" for node in self._index.list_nodes(nodes))[:3]
                return create_finding("CSI-N33", workload.key, message, evidence, _REMEDY)
        return None

    def _count_room(self, driver: str, nodes: int, leaving: set[Unique], needed: int, share: int) -> int:
        """How many volumes nodes take together in whole shares, up to those needed; a node without a limit takes all."""
        limits, room = self._limits.limits.get(driver, {}), 0
        for node in self._index.list_nodes(nodes):
            free = self._limits.count_room(driver, node.name, leaving) if node.name in limits else needed
            room += free - free % share
            if room >= needed:
                break
        return room

    def find_contended_workloads(
        self, workloads: Sequence[StartingWorkload]
    ) -> Iterator[tuple[tuple[str, ...], ReportFinding]]:
        """Workloads that together need more volumes of a driver than the nodes take where they may go.

        All other workloads stay as they are. A volume that several pods have counts once, and what one node takes of one
        pod is not checked: what this finds cannot start, whatever the scheduler does.
        """
        if not self._limits.limits:
            return
        by_driver, volumes = self._collect_needs(workloads)
        leaving = volumes.union(
            *(self._limits.list_volumes(pod) for dummy, places, current_pods in workloads for pod in current_pods)
        )
        for driver, by_nodes in sorted(by_driver.items()):
            unlimited = self._index.all & ~self._index.find_nodes(self._limits.limits.get(driver, {}))
            groups = sorted((nodes for nodes in by_nodes if not nodes & unlimited), key=lambda nodes: nodes.bit_count())
            groups_by_node = group_values(
                (node.name, number) for number, nodes in enumerate(groups) for node in self._index.list_nodes(nodes)
            )
            rooms: Counter[tuple[int, ...]] = Counter()
            for name, numbers in groups_by_node.items():
                rooms[tuple(numbers)] += self._limits.count_room(driver, name, leaving)
            for overfull, room in find_overfull_groups([by_nodes[nodes].total() for nodes in groups], rooms):
                contended = [groups[number] for number in overfull]
                needed = sum((by_nodes[nodes] for nodes in contended), Counter())
                keys = tuple(sorted(needed))
                message = f"{format_list(keys, 3)} need {needed.total()} volumes of {driver} together"
                message += f", and the nodes that accept them can attach {room}"
                evidence = tuple(f"Node {node.name}" for node in self._index.list_nodes(unite(contended)))[:3]
                yield keys, create_finding("CSI-N33", f"Windows nodes, driver {driver}", message, evidence, _REMEDY)

    def _collect_needs(
        self, workloads: Sequence[StartingWorkload]
    ) -> tuple[Mapping[str, Mapping[int, Counter[str]]], set[Unique]]:
        """By driver and nodes, how many volumes each workload needs there; and the volumes that exist."""
        needs: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        nodes_of: dict[Unique, int] = defaultdict(int)
        users: dict[Unique, str] = {}
        for key, places, dummy in workloads:
            for pod, nodes in places:
                pod_volumes, new_volumes = self._limits.collect_needs(pod)
                for volume in pod_volumes:
                    nodes_of[volume] |= nodes
                    users.setdefault(volume, key)
                for driver, count in new_volumes.items():
                    needs[driver][nodes][key] += count
        for volume, nodes in nodes_of.items():
            needs[volume[0]][nodes][users[volume]] += 1
        return needs, set(nodes_of)


def _find_least_share(driver: str, needs: Sequence[tuple[int, set[Unique], Counter[str]]]) -> int:
    """How many volumes each pod has at least that no other pod has: a node takes all of these or none."""
    users = Counter(volume for _count, pod_volumes, _new_volumes in needs for volume in pod_volumes)
    shares = []
    for count, pod_volumes, new_volumes in needs:
        own_volumes = sum(volume[0] == driver and users[volume] == 1 for volume in pod_volumes) if count == 1 else 0
        shares.append(own_volumes + new_volumes[driver] // count)
    return max(1, min(shares))


def find_overfull_groups(
    needed: Sequence[int], rooms: Mapping[tuple[int, ...], int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Groups that may not find room together in the places that take any of them, with the room of these.

    rooms: by the groups that a kind of place takes. One group after another takes room, first where fewest groups may go. If
    that leaves a unit over, its group and those that took room from it depend on the order in which they start.
    """
    rooms_left = dict(rooms)
    taken: Counter[tuple[int, tuple[int, ...]]] = Counter()
    reported: set[int] = set()
    for group, needed_units in enumerate(needed):
        count = needed_units
        for place in sorted((place for place in rooms if group in place), key=len):
            taken[group, place] = min(rooms_left[place], count)
            rooms_left[place] -= taken[group, place]
            count -= taken[group, place]
        if not count or group in reported:
            continue
        contended, size = {group}, 0
        while size < len(contended):
            size = len(contended)
            places = [place for place in rooms if not contended.isdisjoint(place)]
            contended |= {other_group for place in places for other_group in place if taken[other_group, place]}
        reported |= contended
        yield tuple(sorted(contended)), sum(rooms[place] for place in places)
