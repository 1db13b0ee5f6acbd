# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods on nodes and the room that they leave, as pods go and come. Pure.

As NodeInfo of https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...base.cached import cached_method
from ..facts.scheduling import PodShape, read_amount
from ..index import Index, unite
from ..walk.steps import NodeToStatus

# A shape and the node of a pod that has it.
ResidentPod = tuple[PodShape, str]


_NO_LIMIT = 1 << 60


class NodeInfos:
    """The nodes of one snapshot with their pods."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._free = {
            node.name: {resource: read_amount(resource, text) for resource, text in node.allocatable.items()}
            for node in index.node_list
        }
        # By resource and amount, the nodes that have it left.
        self._rooms: dict[str, dict[int, int]] = defaultdict(dict)
        # Each shape with the numbers of its pods by node, by the identity of the shape: to compare shapes takes long.
        self._residents: dict[int, tuple[PodShape, dict[str, int]]] = {}
        # The shapes that limit others, which are few.
        self._limiting: dict[int, tuple[PodShape, dict[str, int]]] = {}
        self._priorities: set[int | None] = set()
        self._away: Sequence[ResidentPod] = ()
        # Nodes that are cordoned for a drain.
        self.drained = 0
        # Most shapes on Linux are the same one.
        shapes = {id(shape): shape for shape in index.snapshot.shapes}
        identities = [*map(id, index.snapshot.shapes)]
        for node, numbers in index.snapshot.pods_on.items():
            for identity, count in Counter(map(identities.__getitem__, numbers if node else ())).items():
                self.add((shapes[identity], node), count)

    def add(self, pod: ResidentPod, count: int = 1) -> None:
        """Put so many equal pods on their node."""
        shape, node = pod
        entry = self._residents.get(id(shape))
        if entry is None:
            entry = self._residents[id(shape)] = (shape, {})
            self._priorities.add(shape.priority)
            if shape.anti_affinity or shape.ports:
                self._limiting[id(shape)] = entry
        entry[1][node] = entry[1].get(node, 0) + count
        self._change(pod, -count)

    def remove(self, pod: ResidentPod) -> None:
        shape, node = pod
        counts = self._residents[id(shape)][1]
        counts[node] -= 1
        if not counts[node]:
            del counts[node]
        self._change(pod, 1)

    def send_away(self, pods: Sequence[ResidentPod]) -> None:
        """Take these pods off their nodes, and put those back that were away before."""
        # One pod of a workload is asked about after the other, and all of them have the same pods away.
        if pods is not self._away:
            for pod in self._away:
                self.add(pod)
            for pod in pods:
                self.remove(pod)
            self._away = pods

    def set_room(self, resource: str, by_node: Mapping[str, int]) -> None:
        """Set how much of a resource nodes have left; the others have no limit."""
        self._rooms.pop(resource, None)
        for name, free in self._free.items():
            free[resource] = by_node.get(name, _NO_LIMIT)

    def has_lower_priority(self, shape: PodShape) -> bool:
        """Whether there are pods that one of this shape may preempt."""
        return any(_is_lower(priority, shape.priority) for priority in self._priorities)

    def find_room(self, resource: str, amount: int) -> int:
        rooms = self._rooms[resource]
        if amount not in rooms:
            bits = self._index.bit
            rooms[amount] = sum(bits[name] for name, free in self._free.items() if free.get(resource, 0) >= amount)
        return rooms[amount]

    @cached_method
    def find_large_nodes(self, resource: str, amount: int) -> int:
        """The nodes that have so much of a resource when they are empty."""
        nodes = self._index.node_list
        large = (node for node in nodes if read_amount(resource, node.allocatable.get(resource, "0")) >= amount)
        return self._index.find_nodes(node.name for node in large)

    @cached_method
    def find_largest_amount(self, resource: str) -> int:
        """How much of a resource the largest Windows node has when it is empty."""
        texts = (node.allocatable.get(resource, "0") for node in self._index.list_nodes(self._index.windows))
        return max((read_amount(resource, text) for text in texts), default=0)

    def list_pods(self, limiting: bool = False) -> Iterator[tuple[PodShape, Mapping[str, int]]]:
        """The shapes that pods have, with how many are on which nodes. limiting: of pods with ports or anti-affinity only."""
        return (entry for entry in (self._limiting if limiting else self._residents).values() if entry[1])

    def block(self, statuses: NodeToStatus, shape: PodShape, nodes: int, message: str, remedy: str) -> None:
        """Block nodes for a pod; of those with a pod that it may preempt it is unknown."""
        if nodes & statuses.nodes:
            preempted = 0
            if self.has_lower_priority(shape):
                lower = (
                    names for other_shape, names in self.list_pods() if _is_lower(other_shape.priority, shape.priority)
                )
                preempted = unite(map(self._index.find_nodes, lower))
            statuses.block(nodes & ~preempted, "CSI-W20", message, remedy)
            statuses.doubt(nodes & preempted, "CSI-W21", f"{message}, and it may preempt pods there", remedy)

    def _change(self, pod: ResidentPod, count: int) -> None:
        """Give a node back what so many pods take."""
        shape, node = pod
        free = self._free.get(node)
        if free is None:
            return
        for resource, requested in shape.requests:
            before = free.get(resource, 0)
            after = free[resource] = before + count * requested
            minimum, maximum = (before, after) if count > 0 else (after, before)
            rooms = self._rooms[resource]
            for amount in rooms:
                if minimum < amount <= maximum:
                    rooms[amount] ^= self._index.bit[node]


def _is_lower(priority: int | None, than: int | None) -> bool:
    return priority is None or than is None or priority < than
