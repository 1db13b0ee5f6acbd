# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's admission of a pod that was put on its node. Pure."""

from __future__ import annotations

from ..findings import change_template
from ..index import Index
from ..verdict import NAMED_NODES
from ..walk.steps import NodeToStatus, PodToStart

# A kubelet under these refuses all but critical pods, whatever they tolerate (https://github.com/kubernetes/kubernetes,
# pkg/kubelet/eviction/eviction_manager.go, Admit, and types/pod_update.go, IsCriticalPod); its node has them as taints.
_PRESSURES = ("node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure")
_CRITICAL = 2_000_000_000


class KubeletAdmission:
    """The kubelets of one snapshot."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._deleting = index.find_nodes(node.name for node in index.node_list if node.deleting)
        self._not_ready = index.find_nodes(node.name for node in index.node_list if not node.ready)
        self._pressed = index.find_nodes(
            node.name for node in index.node_list if any(taint.key in _PRESSURES for taint in node.taints)
        )

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Note nodes whose kubelet does not run the pod: by its spec, or by the state of the node."""
        self.filter_by_spec(pod, statuses)
        message = "the node is being deleted, and its pods go with it"
        statuses.doubt(self._deleting, "CSI-W21", message, "wait until the node is gone, then run preflight again")
        is_critical = pod.shape.priority is not None and pod.shape.priority >= _CRITICAL
        for message, nodes in (
            ("the node is not Ready", self._not_ready),
            ("the node lacks disk space or process IDs", 0 if is_critical else self._pressed),
        ):
            if names := self._index.list_names(nodes & statuses.nodes)[:NAMED_NODES]:
                statuses.block(nodes, "CSI-W20", message, f"kubectl describe node {' '.join(names)}")

    def filter_by_spec(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Note nodes whose kubelet rejects the pod by its operating system, its volumes or a field."""
        if len(set(pod.claims)) < len(pod.claims):
            repeated_claims = sorted({claim for claim in pod.claims if pod.claims.count(claim) > 1})
            message = (
                f"two of its volumes name claim {repeated_claims[0]}, and kubelets wait for both as if they were one"
            )
            statuses.doubt(
                statuses.nodes, "CSI-W21", message, "name the claim in one volume, and mount that volume twice"
            )
        os = pod.placement.os
        if os and (foreign_nodes := self._index.linux if os == "windows" else self._index.windows):
            message = f"spec.os.name is {os}, and a kubelet of the other operating system rejects its pod"
            statuses.block(
                foreign_nodes, "CSI-W20", message, change_template(pod.workload, f"nodeSelector kubernetes.io/os={os}")
            )
        os_label = dict(pod.shape.labels).get("kubernetes.io/os", "windows")
        refused = pod.admit.refused or (f"label kubernetes.io/os={os_label}" if os_label != "windows" else "")
        if refused:
            message = f"kubelets on Windows reject pods with {refused}"
            statuses.block(self._index.windows, "CSI-W20", message, "remove it from the pod template")
