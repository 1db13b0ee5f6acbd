# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PodTopologySpread filter: constraints that spread pods evenly over zones or nodes. Pure."""

from __future__ import annotations

from collections import Counter

from ..facts.scheduling import ADDED_LABELS, PodShape, SpreadConstraint, matches_labels
from ..index import Index, unite
from ..walk.steps import NodeToStatus, PodToStart
from .node_info import NodeInfos
from .taint_toleration import TaintToleration


class PodTopologySpread:
    def __init__(self, index: Index, infos: NodeInfos, taints: TaintToleration) -> None:
        self._index, self._infos, self._taints = index, infos, taints

    def find_rejecting_nodes(self, shape: PodShape) -> int:
        """The nodes where a pod would break one of its constraints."""
        return self._find_unlabelled(shape) | self._find_skewed(shape) if shape.spread else 0

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block nodes that lack a label or whose domain has too many pods."""
        if not pod.shape.spread:
            return
        remedy = "label the nodes, or set whenUnsatisfiable to ScheduleAnyway"
        message = "the node lacks a label of its topologySpreadConstraints"
        statuses.block(self._find_unlabelled(pod.shape), "CSI-W20", message, remedy)
        if self.is_open(pod.shape):
            message = "its topologySpreadConstraints compare a label that its controller sets"
            remedy = "select pods by labels of the template, or create the report again when a pod of its template runs"
            statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)
            return
        message = "the node's domain has too many of its pods for its topologySpreadConstraints"
        remedy = "add nodes to the other domains, or raise maxSkew"
        self._infos.block(statuses, pod.shape, self._find_skewed(pod.shape), message, remedy)

    def is_open(self, shape: PodShape) -> bool:
        """Whether a constraint compares a label that a pod will have and its template has not."""
        keys = {key for constraint in shape.spread for key in constraint.pods.match_keys}
        added = keys.intersection(ADDED_LABELS) - {key for key, _value in shape.labels}
        return bool(added) or not all(constraint.pods.is_known for constraint in shape.spread)

    def _find_unlabelled(self, shape: PodShape) -> int:
        labelled = (self._index.find_nodes_with_label(constraint.topology_key) for constraint in shape.spread)
        return unite(self._index.all & ~nodes for nodes in labelled)

    def _find_skewed(self, shape: PodShape) -> int:
        labelled = self._index.all & ~self._find_unlabelled(shape)
        return unite(self._find_full_domains(shape, constraint, labelled) for constraint in shape.spread)

    def _find_full_domains(self, shape: PodShape, constraint: SpreadConstraint, eligible_nodes: int) -> int:
        index, labels = self._index, dict(shape.labels)
        if constraint.honors_affinity:
            eligible_nodes &= index.find_selected(shape.placement)
        if constraint.honors_taints:
            eligible_nodes &= self._taints.find_tolerated_nodes(shape.placement) & ~self._infos.drained
        selector = constraint.pods.select(labels)
        pods: Counter[str] = Counter()
        for other_shape, nodes in self._infos.list_pods():
            if (
                other_shape.namespace == shape.namespace
                and not other_shape.gone_by
                and matches_labels(selector, dict(other_shape.labels))
            ):
                pods.update({node: count for node, count in nodes.items() if index.bit.get(node, 0) & eligible_nodes})
        domains = {
            value: nodes for value, nodes in index.group_by_label(constraint.topology_key) if nodes & eligible_nodes
        }
        in_domain: Counter[str] = Counter()
        for node, count in pods.items():
            in_domain[index.nodes[node].labels[constraint.topology_key]] += count
        minimum = (
            min((in_domain[value] for value in domains), default=0) if len(domains) >= constraint.min_domains else 0
        )
        maximum = constraint.max_skew + minimum - matches_labels(selector, labels)
        if maximum < 0:
            return index.all
        return unite(domain for value, domain in domains.items() if in_domain[value] > maximum)
