# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodePorts filter: ports of the node that containers take. Pure."""

from __future__ import annotations

from ..facts.scheduling import PodShape
from ..index import Index, unite
from ..walk.steps import NodeToStatus, PodToStart
from .node_info import NodeInfos

_EVERY_ADDRESS = "0.0.0.0"


class NodePorts:
    def __init__(self, index: Index, infos: NodeInfos) -> None:
        self._index, self._infos = index, infos

    def find_rejecting_nodes(self, shape: PodShape) -> int:
        """The nodes on which another pod has one of a pod's ports."""
        if not shape.ports:
            return 0
        occupied = self._infos.list_pods(limiting=True)
        return unite(
            self._index.find_nodes(nodes) for other_shape, nodes in occupied if _find_conflict(shape, other_shape)
        )

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        numbers = ", ".join(str(number) for _protocol, _address, number in pod.shape.ports)
        message = f"another pod has one of its host ports ({numbers})"
        remedy = "use a Service instead of host ports, or other ports"
        self._infos.block(statuses, pod.shape, self.find_rejecting_nodes(pod.shape), message, remedy)


def _find_conflict(shape: PodShape, other_shape: PodShape) -> bool:
    return any(
        (protocol, number) == (other_protocol, other_number)
        and (address == other_address or _EVERY_ADDRESS in (address, other_address))
        for protocol, address, number in shape.ports
        for other_protocol, other_address, other_number in other_shape.ports
    )
