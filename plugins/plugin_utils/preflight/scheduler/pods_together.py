# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods of a workload placed candidate after the other, with the room and the static volumes that each of them takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..facts.scheduling import PodShape
from ..facts.storage import ObservedVolume
from ..index import Index, find_position, unite
from ..walk.claims import Claims, Request, find_reaching_nodes
from ..walk.steps import Places, PodToStart
from .node_info import NodeInfos, ResidentPod

# So many nodes are tried for the first pod, where it decides for the others.
_FIRST_NODES = 64


@dataclass(slots=True)
class _TakenVolumes:
    """What the pods that are placed have taken. names: of volumes. pins: by claim, the nodes that reach its volume."""

    names: set[str] = field(default_factory=set)
    pins: dict[str, int] = field(default_factory=dict)


class PodsTogether:
    """The nodes and free volumes of candidate snapshot. filter_nodes: those that the pods there leave for a pod."""

    def __init__(
        self, index: Index, claims: Claims, infos: NodeInfos, filter_nodes: Callable[[PodShape, int], int]
    ) -> None:
        self._index, self._claims, self._infos = index, claims, infos
        self._filter_nodes = filter_nodes

    def count_placed(self, places: Places) -> tuple[int, int]:
        """How many pods find nodes, at least and at most, by the node of the first; the workload's pods of today are gone."""
        counts = [self._place_pods(places, first) for first in self._list_first_positions(places)]
        return min(counts), max(counts)

    def depends_on_first(self, pod: PodToStart) -> bool:
        """Whether the node of a workload's first pod decides where the others may go."""
        return bool(pod.shape.affinity) or any(not request.is_new for request in self._list_static_requests(pod))

    def _list_first_positions(self, places: Places) -> Sequence[int]:
        if not any(self.depends_on_first(pod) for pod, _nodes in places):
            return (0,)
        nodes = unite(nodes for _pod, nodes in places)
        positions = [position for position in range(nodes.bit_length()) if nodes >> position & 1]
        return positions[:: 1 + len(positions) // _FIRST_NODES] or (0,)

    def _list_static_requests(self, pod: PodToStart) -> list[Request]:
        """The claims that take a volume which exists once their pod is placed, the smallest first as the scheduler does."""
        claims = self._claims
        static = (
            request
            for request in claims.list_requests(pod)
            if request.open and claims.is_bound_late(request) and not claims.is_provisioned(request)
        )
        return sorted(static, key=lambda request: request.claim.size)

    def _place_pods(self, places: Places, first: int) -> int:
        placed: list[ResidentPod] = []
        taken = _TakenVolumes()
        position = first - 1
        # Those with the least choice first.
        for pod, nodes in sorted(places, key=lambda place: place[1].bit_count()):
            self._infos.send_away(pod.leaving)
            requests = self._list_static_requests(pod)
            for _number in range(pod.count):
                free_nodes = self._filter_nodes(pod.shape, self._filter_by_volumes(requests, nodes, taken))
                while free_nodes:
                    position = find_position(free_nodes, position + 1)
                    if self._take_volumes(requests, 1 << position, taken):
                        placed.append((pod.shape, self._index.node_list[position].name))
                        self._infos.add(placed[-1])
                        break
                    free_nodes &= ~(1 << position)
                if not free_nodes:
                    break
        for resident in placed:
            self._infos.remove(resident)
        return len(placed)

    def _list_free(self, request: Request, taken: _TakenVolumes) -> Iterator[ObservedVolume]:
        return (volume for volume in self._claims.find_candidates(request) if volume.name not in taken.names)

    def _filter_by_volumes(self, requests: Sequence[Request], nodes: int, taken: _TakenVolumes) -> int:
        for request in requests:
            if request.claim.key in taken.pins and not request.is_new:
                nodes &= taken.pins[request.claim.key]
            else:
                nodes &= unite(find_reaching_nodes(self._index, volume) for volume in self._list_free(request, taken))
        return nodes

    def _take_volumes(self, requests: Sequence[Request], node: int, taken: _TakenVolumes) -> bool:
        """Give each claim a volume that a node reaches; False, and nothing is taken, if one gets none."""
        names: set[str] = set()
        pins: dict[str, int] = {}
        for request in requests:
            if not request.is_new and request.claim.key in taken.pins:
                continue
            reached = (
                (candidate, find_reaching_nodes(self._index, candidate))
                for candidate in self._list_free(request, taken)
            )
            volume, nodes = next((pair for pair in reached if pair[0].name not in names and pair[1] & node), (None, 0))
            if volume is None:
                return False
            names.add(volume.name)
            if not request.is_new:
                pins[request.claim.key] = nodes
        taken.names |= names
        taken.pins |= pins
        return True
