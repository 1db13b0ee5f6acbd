# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The InterPodAffinity filter: required affinity and anti-affinity between pods. Pure."""

from __future__ import annotations

from ..facts.scheduling import ADDED_LABELS, PodAffinityTerm, PodShape, matches_labels
from ..index import Index, unite
from ..walk.steps import NodeToStatus, PodToStart
from .node_info import NodeInfos


class InterPodAffinity:
    def __init__(self, index: Index, infos: NodeInfos) -> None:
        self._index, self._infos = index, infos

    def find_rejecting_nodes(self, shape: PodShape) -> int:
        """The nodes that the terms of a pod or of the pods there exclude, or may exclude."""
        return self._find_repelled(shape) | self._find_unattracted(shape) | self._find_repelling(shape)

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block nodes that a term excludes; a term about labels of namespaces is unknown."""
        if self.is_open(pod.shape):
            message = "an affinity between pods selects namespaces, or a label that its controller sets"
            remedy = "in the term, name the namespaces instead of selecting them, and use labels of the pod template"
            statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)
            return
        remedy = "add nodes, or change the affinity between the pods"
        # Preemption brings no pod to a node.
        message = "its required podAffinity excludes the node"
        statuses.block(self._find_unattracted(pod.shape), "CSI-W20", message, remedy)
        for message, nodes in (
            ("its required podAntiAffinity excludes the node", self._find_repelled(pod.shape)),
            ("the podAntiAffinity of a pod there excludes the node", self._find_repelling(pod.shape)),
        ):
            self._infos.block(statuses, pod.shape, nodes, message, remedy)

    def is_open(self, shape: PodShape) -> bool:
        """Whether it is not known which pods a term selects, of this pod or of one that may reject it."""
        terms = (*shape.affinity, *shape.anti_affinity)
        keys = {key for term in terms for key in (*term.pods.match_keys, *term.pods.mismatch_keys)}
        if not all(term.is_known and term.pods.is_known for term in terms) or keys.intersection(ADDED_LABELS) - {
            key for key, _value in shape.labels
        }:
            return True
        return any(
            not (term.is_known and term.pods.is_known) and _matches_pod(term, other_shape, shape)
            for other_shape, _nodes in self._infos.list_pods(limiting=True)
            for term in other_shape.anti_affinity
        )

    def _find_repelled(self, shape: PodShape) -> int:
        """Nodes in the domain of a pod that the pod's anti-affinity names."""
        if not shape.anti_affinity:
            return 0
        return unite(
            self._find_domains(term.topology_key, self._index.find_nodes(names))
            for term in shape.anti_affinity
            for other_shape, names in self._infos.list_pods()
            if _matches_pod(term, shape, other_shape)
        )

    def _find_repelling(self, shape: PodShape) -> int:
        """Nodes in the domain of a pod whose anti-affinity names the pod."""
        return unite(
            self._find_domains(term.topology_key, self._index.find_nodes(names))
            for other_shape, names in self._infos.list_pods(limiting=True)
            for term in other_shape.anti_affinity
            if _matches_pod(term, other_shape, shape)
        )

    def _find_unattracted(self, shape: PodShape) -> int:
        """Nodes outside the domains of the pods that the affinity names; the first pod of a group may go anywhere."""
        if not shape.affinity:
            return 0
        nodes = unite(
            self._index.find_nodes(names)
            for other_shape, names in self._infos.list_pods()
            if all(_matches_pod(term, shape, other_shape) for term in shape.affinity)
        )
        accepted = self._index.all
        for term in shape.affinity:
            accepted &= self._find_domains(term.topology_key, nodes)
        has_domain = any(self._index.find_nodes_with_label(term.topology_key) & nodes for term in shape.affinity)
        if not has_domain and all(_matches_pod(term, shape, shape) for term in shape.affinity):
            accepted = self._index.all
            for term in shape.affinity:
                accepted &= self._index.find_nodes_with_label(term.topology_key)
        return self._index.all & ~accepted

    def _find_domains(self, key: str, nodes: int) -> int:
        """All nodes that have the same value of a label as one of these."""
        return unite(value_nodes for _value, value_nodes in self._index.group_by_label(key) if value_nodes & nodes)


def _matches_pod(term: PodAffinityTerm, holder: PodShape, pod: PodShape) -> bool:
    """Whether a term of one pod selects another."""
    return term.includes(pod.namespace) and matches_labels(term.pods.select(dict(holder.labels)), dict(pod.labels))
