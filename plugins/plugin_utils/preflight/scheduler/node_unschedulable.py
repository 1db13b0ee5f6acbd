# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodeUnschedulable filter: cordoned nodes. Pure."""

from __future__ import annotations

from ...kube.node import Taint
from ..index import Index, is_accepted
from ..verdict import NAMED_NODES
from ..walk.steps import NodeToStatus, PodToStart
from .taint_toleration import collect_tolerations

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class NodeUnschedulable:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._cordoned = index.find_nodes(node.name for node in index.node_list if node.cordoned)

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block cordoned nodes, unless the pod tolerates that."""
        if not is_accepted(_UNSCHEDULABLE, collect_tolerations(self._index, pod.placement, pod.kind)):
            names = self._index.list_names(self._cordoned & statuses.nodes)[:NAMED_NODES]
            statuses.block(self._cordoned, "CSI-W20", "the node is cordoned", f"kubectl uncordon {' '.join(names)}")
