# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodeAffinity filter: node selector and required node affinity, with the selector of the RuntimeClass. Pure."""

from __future__ import annotations

from ..facts.placement import ANYWHERE, describe_terms
from ..index import Index
from ..walk.steps import NodeToStatus, PodToStart


class NodeAffinity:
    def __init__(self, index: Index) -> None:
        self._index = index

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        index, placement = self._index, pod.placement
        added = index.runtime_classes.get(placement.runtime_class, ANYWHERE)
        for by, selector in (("nodeSelector", placement.selector), ("RuntimeClass", added.selector)):
            for key, value in selector:
                message = f"{by} {key}={value} does not match the node's labels"
                outside = index.all & ~index.find_labelled(key, value)
                statuses.block(
                    outside, "CSI-W20", message, "label the nodes, or recreate the pods with another selector"
                )
        if placement.terms is not None:
            outside = index.all & ~index.find_matching(placement.terms)
            message = f"its required node affinity ({describe_terms(placement.terms)}) does not match the node"
            statuses.block(outside, "CSI-W20", message, "label the nodes, or recreate the pods with another affinity")
