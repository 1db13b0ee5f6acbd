# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The third step: on which nodes does the scheduler put a pod. Pure.

Each filter is a file of this folder, named as the plugin of https://github.com/kubernetes/kubernetes,
pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..facts.scheduling import PodShape
from ..index import Index, find_position, unite
from ..kubelet import KubeletAdmission
from ..walk.claims import Claims
from ..walk.steps import NodeToStatus, Places, PodToStart, StepAnswer
from .inter_pod_affinity import InterPodAffinity
from .node_affinity import NodeAffinity
from .node_info import NodeInfos, ResidentPod
from .node_name import NodeName
from .node_ports import NodePorts
from .node_resources_fit import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .node_volume_limits import NodeVolumeLimits
from .pod_topology_spread import PodTopologySpread
from .taint_toleration import TaintToleration
from .volume_binding import VolumeBinding
from .volume_restrictions import VolumeRestrictions
from .volume_zone import VolumeZone

# So many nodes are tried for the first pod, where it decides for the others.
_FIRST_NODES = 64


class Filter(Protocol):
    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Note the nodes that do not take the pod."""


class Scheduler:
    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self.claims = index, claims
        self.volume_limits = NodeVolumeLimits(index, claims)
        self._restrictions = VolumeRestrictions(index)
        self._binding, self._zone = VolumeBinding(index, claims), VolumeZone(index)
        node_name, affinity, taints = NodeName(index), NodeAffinity(index), TaintToleration(index)
        self.infos = infos = NodeInfos(index)
        self._spread = PodTopologySpread(index, infos, taints)
        self._between_pods = InterPodAffinity(index, infos)
        fit = NodeResourcesFit(index, infos)
        room = (fit, NodePorts(index, infos))
        self._by_pods = (*room, self._spread, self._between_pods)
        kubelet = KubeletAdmission(index)
        self._of_daemon_pods: tuple[Filter, ...] = (taints, affinity, kubelet, node_name)
        # No scheduler is asked about a pod that names its node: its kubelet is (pkg/kubelet/lifecycle/predicate.go).
        self._of_bound_pods = (*room, *self._of_daemon_pods, self.volume_limits)
        self._fixed: tuple[Filter, ...] = (affinity, taints, NodeUnschedulable(index), kubelet)
        self._filters = (*self._fixed, self._restrictions, self.volume_limits, *self._by_pods)
        self._of_node_plugins = (fit.filter_by_size, kubelet.filter_by_spec)
        self._lasting = (node_name.filter_pod, fit.filter_by_size, self._between_pods.filter_pod)

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where the scheduler puts a pod, of nodes: by the pod itself, and by each of its volumes."""
        statuses = _create_statuses(pod, nodes)
        if not pod.node:
            self._check_profile(pod, statuses)
        self.infos.send_away(pod.leaving)
        for plugin in self._of_bound_pods if pod.node else self._filters:
            plugin.filter_pod(pod, statuses)
        return [*statuses.list_answers(), *self._filter_by_claims(pod, nodes)]

    def filter_lasting(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where the scheduler may put a pod, of nodes with its labels and taints, once they have room and work."""
        statuses = _create_statuses(pod, nodes)
        for filter_pod in self._lasting:
            filter_pod(pod, statuses)
        return [*statuses.list_answers(), *self._filter_by_claims(pod, nodes)]

    def _filter_by_claims(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        answers = []
        for request in self.claims.list_requests(pod):
            statuses = _create_statuses(pod, nodes, request.volume_key)
            self._restrictions.filter_claim(request, pod, statuses)
            self._binding.filter_claim(request, statuses)
            self._zone.filter_claim(request, pod, statuses)
            answers += statuses.list_answers()
        return answers

    def find_fixed_nodes(self, pod: PodToStart) -> tuple[int, int]:
        """Where a pod may go, as far as no other pod decides, and of these the nodes of which that is not known."""
        statuses = _create_statuses(pod, self._index.all)
        self._check_profile(pod, statuses)
        for plugin in self._fixed:
            plugin.filter_pod(pod, statuses)
        for request in self.claims.list_requests(pod):
            self._binding.filter_claim(request, statuses)
            self._zone.filter_claim(request, pod, statuses)
        nodes = self._index.all & ~statuses.find_nodes("no")
        return nodes, nodes & statuses.find_nodes("unknown")

    def filter_by_pods(self, shape: PodShape, nodes: int) -> int:
        """Those of nodes that the pods there leave for a pod."""
        for plugin in self._by_pods:
            if nodes:
                nodes &= ~plugin.find_rejecting_nodes(shape)
        return nodes

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
            self.infos.send_away(pod.leaving)
            for _number in range(pod.count):
                free_nodes = self.filter_by_pods(pod.shape, nodes)
                if not free_nodes:
                    break
                position = find_position(free_nodes & wanted or free_nodes, position + 1)
                placed.append((pod.shape, self._index.node_list[position].name))
                self.infos.add(placed[-1])
        for resident in placed:
            self.infos.remove(resident)
        return len(placed)

    def find_daemon_nodes(self, pod: PodToStart) -> int:
        """Where the DaemonSet controller creates pods, whatever else the scheduler says of these nodes, without those that do not work.

        Source: https://github.com/kubernetes/kubernetes, pkg/controller/daemon/daemon_controller.go, predicates.
        """
        statuses = _create_statuses(pod, self._index.all)
        for plugin in self._of_daemon_pods:
            plugin.filter_pod(pod, statuses)
        return self._index.all & ~statuses.find_nodes("no")

    def filter_node_plugin(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """What keeps the next pod of a node plugin from nodes where its DaemonSet has one now."""
        statuses = _create_statuses(pod, nodes)
        self._check_profile(pod, statuses)
        for filter_pod in self._of_node_plugins:
            filter_pod(pod, statuses)
        return statuses.list_stops()

    def depends_on_other_pods(self, shape: PodShape) -> bool:
        """Whether room on the nodes is not all that decides: rules of a pod about others, or pods that it may preempt."""
        return bool(shape.spread or shape.affinity or shape.anti_affinity) or self.infos.has_lower_priority(shape)

    def is_open(self, shape: PodShape) -> bool:
        """Whether a rule of a pod about other pods is not known."""
        return (bool(shape.spread) and self._spread.is_open(shape)) or self._between_pods.is_open(shape)

    def _check_profile(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Whether these are the filters that decide, and whether the pod is in the queue."""
        if pod.placement.scheduler:
            message = f"spec.schedulerName is {pod.placement.scheduler}, whose rules are unknown"
            statuses.doubt(statuses.nodes, "CSI-W21", message, "check the events of its pods")
        if pod.placement.gated:
            message = "the pod has schedulingGates, and waits until a controller removes them"
            statuses.doubt(statuses.nodes, "CSI-W21", message, "find the controller that removes the gates")


def _create_statuses(pod: PodToStart, nodes: int, volume: str = "") -> NodeToStatus:
    return NodeToStatus("schedule", nodes, pod.workload, f"Pod {pod.namespace}/{pod.name}", volume)
