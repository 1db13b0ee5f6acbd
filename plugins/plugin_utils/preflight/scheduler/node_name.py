# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodeName filter: a pod that names its node runs on that node only. Pure."""

from __future__ import annotations

from ..index import Index
from ..walk.steps import NodeToStatus, PodToStart


class NodeName:
    def __init__(self, index: Index) -> None:
        self._index = index

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        if pod.node:
            message = f"the pod is bound to node {pod.node}"
            remedy = "recreate its pods without spec.nodeName"
            statuses.block(statuses.nodes & ~self._index.bit.get(pod.node, 0), "CSI-W20", message, remedy)
