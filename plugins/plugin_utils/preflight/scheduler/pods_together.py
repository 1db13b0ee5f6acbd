# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods of a workload placed one after the other, with the room that each of them takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..facts.scheduling import PodShape
from ..index import Index, find_position, unite
from ..walk.steps import Places
from .node_info import NodeInfos, ResidentPod

# So many nodes are tried for the first pod, where it decides for the others.
_FIRST_NODES = 64


class PodsTogether:
    """The nodes of one snapshot. filter_nodes: those that the pods there leave for a pod."""

    def __init__(self, index: Index, infos: NodeInfos, filter_nodes: Callable[[PodShape, int], int]) -> None:
        self._index, self._infos, self._filter_nodes = index, infos, filter_nodes

    def count_placed(self, places: Places) -> tuple[int, int]:
        """How many pods find nodes, at least and at most, by the node of the first; the workload's pods of today are gone."""
        counts = [self._place_pods(places, first) for first in self._list_first_positions(places)]
        if len({nodes for _pod, nodes in places}) > 1:
            # The scheduler may give a pod with more choice the node that another one needs.
            counts.append(self._place_pods(places, 0, min((nodes for _pod, nodes in places), key=int.bit_count)))
        return min(counts), max(counts)

    def _list_first_positions(self, places: Places) -> Sequence[int]:
        if not any(pod.shape.affinity for pod, _nodes in places):
            return (0,)
        nodes = unite(nodes for _pod, nodes in places)
        positions = [position for position in range(nodes.bit_length()) if nodes >> position & 1]
        return positions[:: 1 + len(positions) // _FIRST_NODES] or (0,)

    def _place_pods(self, places: Places, first: int, wanted: int = 0) -> int:
        """Those with the least choice first; the other way round if nodes are wanted, which the first ones take."""
        placed: list[ResidentPod] = []
        position = first - 1
        for pod, nodes in sorted(places, key=lambda place: place[1].bit_count(), reverse=bool(wanted)):
            self._infos.send_away(pod.leaving)
            for _number in range(pod.count):
                free_nodes = self._filter_nodes(pod.shape, nodes)
                if not free_nodes:
                    break
                position = find_position(free_nodes & wanted or free_nodes, position + 1)
                placed.append((pod.shape, self._index.node_list[position].name))
                self._infos.add(placed[-1])
        for resident in placed:
            self._infos.remove(resident)
        return len(placed)
