# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodeResourcesFit filter: CPU, memory, extended resources and the number of pods. Pure."""

from __future__ import annotations

from ..facts.resources import format_amount
from ..facts.scheduling import PodShape
from ..index import Index
from ..walk.steps import NodeToStatus, PodToStart
from .node_info import NodeInfos


class NodeResourcesFit:
    def __init__(self, index: Index, infos: NodeInfos) -> None:
        self._index, self._infos = index, infos

    def find_rejecting_nodes(self, shape: PodShape) -> int:
        nodes = self._index.all
        for resource, amount in shape.requests:
            nodes &= self._infos.find_room(resource, amount)
        return nodes ^ self._index.all

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        for resource, amount in pod.shape.requests:
            # A node without so much in all has no room left either.
            full = statuses.nodes & ~self._infos.find_room(resource, amount)
            if not full:
                continue
            # Preemption cannot help there.
            self._filter_by_size(statuses, resource, amount)
            message = f"the node has less than {_format(resource, amount)} of {resource} left"
            self._infos.block(statuses, pod.shape, full, message, "add nodes, or scale down other workloads")

    def filter_by_size(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block nodes without room even when they are empty."""
        for resource, amount in pod.shape.requests:
            self._filter_by_size(statuses, resource, amount)

    def _filter_by_size(self, statuses: NodeToStatus, resource: str, amount: int) -> None:
        small = self._index.all & ~self._infos.find_large_nodes(resource, amount)
        if not small & statuses.nodes:
            return
        largest = _format(resource, self._infos.find_largest_amount(resource))
        message = f"the node has less than {_format(resource, amount)} of {resource} in all; the largest Windows node has {largest}"
        statuses.block(small, "CSI-W20", message, "add nodes that have more, or request less")


def _format(resource: str, amount: int) -> str:
    return format_amount(resource, amount if resource == "cpu" else amount * 1000)
