# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet: whether it admits a pod that was put on its node, starts its images, and gives it each of its volumes. Pure."""

from __future__ import annotations

from collections import defaultdict

from ..drivers.release import match_image
from .findings import change_template, create_finding
from .index import Index
from .verdict import NAMED_NODES, ReportFinding
from .walk.steps import NodeToStatus, PodToStart, StepAnswer
from .windows_volumes import WindowsVolumes

# A kubelet under these refuses all but critical pods, whatever they tolerate (https://github.com/kubernetes/kubernetes,
# pkg/kubelet/eviction/eviction_manager.go, Admit, and types/pod_update.go, IsCriticalPod); its node has them as taints.
_PRESSURES = ("node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure")
_CRITICAL = 2_000_000_000


class KubeletAdmission:
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


class KubeletImages:
    """The images that kubelets of one snapshot start, as far as their tags name a build.

    Source: https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility
    """

    def __init__(self, index: Index) -> None:
        self._builds: dict[str, int] = defaultdict(int)
        for node in index.list_nodes(index.windows):
            self._builds[node.build] |= index.bit[node.name]

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where a container may not start; nothing about other nodes. A RuntimeClass may isolate it by Hyper-V."""
        statuses = NodeToStatus("stage", nodes, pod.workload, f"{pod.workload}: image")
        for build, image in () if pod.placement.runtime_class else pod.admit.builds:
            for node_build, built_nodes in self._builds.items():
                if node_build and match_image(node_build, (build,)) == "no":
                    message = f"image {image} is for Windows build {build}, and the node has build {node_build}"
                    statuses.doubt(
                        built_nodes, "CSI-W09", message, "select nodes by label node.kubernetes.io/windows-build"
                    )
        return statuses.list_stops()


class VolumeManager:
    """The last two steps for one snapshot: what the verdicts of volumes say of a pod, as answers about sets of nodes."""

    def __init__(self, volumes: WindowsVolumes) -> None:
        self._volumes = volumes

    def stage(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """What kubelet and driver make of each volume on each node."""
        return [
            StepAnswer("stage", answer.answer, nodes_here, name, answer.because, _explain(pod, name, answer))
            for name, volume in self._volumes.list_volumes(pod)
            for answer in (volume.answers if volume is not None else ())
            if (nodes_here := answer.nodes & nodes)
        ]

    def publish(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Whether the pod gets each volume there: none with a file system that a container takes as a raw device."""
        answers: list[StepAnswer] = []
        for name, volume in self._volumes.list_volumes(pod):
            if name not in pod.devices or (volume is not None and volume.is_block):
                answers.append(StepAnswer("publish", "yes", nodes, name))
                continue
            message = "a container lists it in volumeDevices, but its volumeMode is Filesystem"
            object_name, evidence = (
                volume.title if volume is not None else pod.workload,
                f"{pod.workload}: volumeDevices",
            )
            finding = create_finding("CSI-V15", object_name, message, (evidence,), "mount it with volumeMounts instead")
            answers.append(StepAnswer.from_findings("publish", "no", nodes, (finding,), name))
        return answers


def _explain(pod: PodToStart, name: str, answer: StepAnswer) -> tuple[ReportFinding, ...]:
    """The findings of an answer, or a finding made of its reason if it has none; nothing of a yes."""
    if answer.answer == "yes" or answer.findings:
        return answer.findings if answer.answer != "yes" else ()
    remedy = "use a kind of volume that this collection supports, or suppress this finding"
    evidence = (f"used by {pod.workload}",)
    return (create_finding("CSI-W09", pod.workload, f"{name}: {answer.because}", evidence, remedy),)
