# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last two steps: a kubelet stages each volume of a pod, and publishes it to the pod. Pure.

What a kubelet and a driver make of a volume is in its verdicts; here they are answers about sets of nodes.
"""

from __future__ import annotations

from ..findings import create_finding
from ..verdict import ReportFinding
from ..walk.steps import PodToStart, StepAnswer
from ..windows_volumes import WindowsVolumes


class VolumeManager:
    """The two steps for one snapshot, about volumes that were evaluated."""

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
