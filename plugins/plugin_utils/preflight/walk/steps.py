# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod on its way to running on each node, step by step, and what a step answers. Pure.

The steps are Kubernetes' own, in its order: the claim is bound or a volume is provisioned for it, the scheduler picks a
node, the volume is attached to that node, staged there, and published to the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..facts.admission import NO_POD, PodToAdmit
from ..facts.placement import Placement
from ..facts.scheduling import NO_SHAPE, PodShape
from ..facts.sources import Inline, ObservedClaim
from ..findings import create_finding
from ..index import unite
from ..verdict import Answer, ReportFinding

WalkStep = Literal["bind", "provision", "schedule", "attach", "stage", "publish"]
STEPS: tuple[WalkStep, ...] = ("bind", "provision", "schedule", "attach", "stage", "publish")


@dataclass(frozen=True, slots=True)
class PodToStart:
    """A pod that is to start, or several equal ones.

    workload: "StatefulSet shop/db". name: "db-0", or that of all. node: where it is bound already, empty for one that is yet
    to be scheduled. count: how many equal ones. claims: "namespace/name". shared: those of them that other pods of the
    workload have too. new_claims: claims that are made with it. devices: those of its volumes that it takes as raw
    devices. surges: a rollout starts it before the pod that it replaces ends. leaving: the shapes and nodes of the pods that
    it replaces. admit: what admission decides by. additional: how many pods its workload asks for beyond those of today.
    """

    workload: str
    namespace: str
    name: str
    placement: Placement
    node: str = ""
    count: int = 1
    claims: tuple[str, ...] = ()
    new_claims: tuple[ObservedClaim, ...] = ()
    inline: tuple[Inline, ...] = ()
    shared: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    surges: bool = False
    shape: PodShape = NO_SHAPE
    leaving: tuple[tuple[PodShape, str], ...] = ()
    admit: PodToAdmit = NO_POD
    additional: int = 0

    @property
    def kind(self) -> str:
        return self.workload.partition(" ")[0]

    @property
    def volumes(self) -> tuple[str, ...]:
        """What answers call its volumes: "namespace/name" of a claim, "new claim namespace/name", "inline name"."""
        return (
            *self.claims,
            *(f"new claim {self.namespace}/{template.name}" for template in self.new_claims),
            *(f"inline {inline_volume.name}" for inline_volume in self.inline),
        )


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """What one step says of a pod on some nodes.

    answer: whether it passes the step. nodes: a set of nodes of the index. volume: one of PodToStart.volumes, empty for an
    answer about the pod as a whole. because: why not. findings: what explains an answer that is not yes; never empty there.
    They reach the report only when the workload is not ready.
    """

    step: WalkStep
    answer: Answer
    nodes: int
    volume: str = ""
    because: str = ""
    findings: tuple[ReportFinding, ...] = ()

    @classmethod
    def from_findings(
        cls, step: WalkStep, answer: Answer, nodes: int, findings: tuple[ReportFinding, ...], volume: str = ""
    ) -> StepAnswer:
        """No or unknown, because of the first of these findings."""
        return cls(step, answer, nodes, volume, findings[0].message, findings)


# Pods with the nodes where each may be put.
Places = Sequence[tuple[PodToStart, int]]

# A step, asked about a pod and the nodes that every step before let through. Its answers for one volume, or for the pod as
# a whole, cover all of these nodes; what they leave out the walk calls unknown.
Rule = Callable[[PodToStart, int], Sequence[StepAnswer]]


class NodeToStatus:
    """What a step says of one volume, or of the pod as a whole, on some nodes. object_name, evidence: of its findings.

    It is named as what the scheduler's filters say of nodes (https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/interface.go).
    What blocks a node wins over what is unknown there, and among equals the first reason stands. The rest passes.
    """

    def __init__(self, step: WalkStep, nodes: int, object_name: str, evidence: str, volume: str = "") -> None:
        self._step: WalkStep = step
        self.nodes = nodes
        self._object_name, self._evidence, self._volume = object_name, evidence, volume
        self._noted: dict[Answer, list[tuple[int, Callable[[], tuple[ReportFinding, ...]]]]] = {"no": [], "unknown": []}

    def block(self, nodes: int, id_: str, message: str, remedy: str, *, object_name: str = "") -> None:
        """The pod cannot pass this step on these nodes. object_name: another object of the finding."""
        self._note_finding("no", nodes, id_, message, remedy, object_name)

    def doubt(self, nodes: int, id_: str, message: str, remedy: str, *, object_name: str = "") -> None:
        """Whether it can is not known on these nodes."""
        self._note_finding("unknown", nodes, id_, message, remedy, object_name)

    def note(self, answer: Answer, nodes: int, findings: tuple[ReportFinding, ...]) -> None:
        """Either of these, with findings of others."""
        if nodes & self.nodes:
            self._noted[answer].append((nodes, lambda: findings))

    def _note_finding(self, answer: Answer, nodes: int, id_: str, message: str, remedy: str, object_name: str) -> None:
        if nodes & self.nodes:
            # Without a reference to this object: no collector runs that would find a cycle.
            make = partial(create_finding, id_, object_name or self._object_name, message, (self._evidence,), remedy)
            self._noted[answer].append((nodes, lambda: (make(),)))

    def find_nodes(self, answer: Answer) -> int:
        """The nodes of which this was noted."""
        return unite(nodes for nodes, _findings in self._noted[answer]) & self.nodes

    def list_answers(self) -> list[StepAnswer]:
        """What was noted, and that all other nodes pass."""
        answers = self.list_stops()
        remaining = self.nodes & ~unite(answer.nodes for answer in answers)
        return [*answers, StepAnswer(self._step, "yes", remaining, self._volume)] if remaining else answers

    def list_stops(self) -> list[StepAnswer]:
        """What was noted; nothing about the nodes that pass."""
        remaining, answers = self.nodes, []
        for answer, noted in self._noted.items():
            for nodes, make in noted:
                if covered := nodes & remaining:
                    answers.append(StepAnswer.from_findings(self._step, answer, covered, make(), self._volume))
                    remaining &= ~covered
        return answers


def answer_without_claims(step: WalkStep, pod: PodToStart, nodes: int) -> list[StepAnswer]:
    """What a step about claims says of a pod's own volumes, and of a pod without any."""
    names = [f"inline {inline.name}" for inline in pod.inline]
    if not names and not pod.volumes:
        names = [""]
    return [StepAnswer(step, "yes", nodes, volume) for volume in names]
