# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the real API server, controllers and scheduler made of pods, workloads and drained nodes, and whether the walk predicts it.

`python -m integration.oracle record` writes the file: the objects of random clusters at one moment, and what became of them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.admission import Admission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.external_provisioner import (
    ExternalProvisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.persistent_volume_controller import (
    PersistentVolumeController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.scheduling import PodShape
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedTemplate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.kubelet import KubeletAdmission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.framework import Scheduler
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.usage import Workload, find_usage
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report, Roll
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.pods import (
    list_pods_to_start as list_next_pods,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import PodToStart, StepAnswer

from situations.world import Object, World, observed_pod, to_start

FILE = Path(__file__).with_name("recorded_answers.json.xz")


@dataclass(frozen=True)
class PlacedPod:
    """A pod, and the node of its cluster that it was put on, empty for none."""

    seed: str
    pod: Object
    nodes: tuple[str, ...]
    node: str


@dataclass(frozen=True)
class AdmittedPod:
    """A pod spec of a namespace, and why admission rejected it, empty if it did not."""

    seed: str
    namespace: str
    spec: Object
    rejection: str


@dataclass(frozen=True)
class StartedWorkload:
    """A workload, "Deployment shop/web", and what its pods lacked, empty if all of them ran on Windows nodes."""

    seed: str
    workload: str
    missing: str


@dataclass(frozen=True)
class RolledCluster:
    """Windows nodes that were drained one after the other, and the node at which that stopped, empty if it finished."""

    seed: str
    nodes: tuple[str, ...]
    stop: str


@dataclass(frozen=True)
class ReplacedPods:
    """The pods that a workload made anew, and the keys of the claims in its namespace that had been there before."""

    seed: str
    workload: str
    pods: tuple[Object, ...]
    kept: tuple[str, ...]


# What says that the order of events decides.
_PLACEMENT = ("depends on", "found room for", "may take the last one", "in any zone before the pod is scheduled")


@dataclass(frozen=True)
class Outcome:
    """A prediction held against what happened. kind: "pod", "admission", "workload", "replacement", "roll". error: why it is wrong, empty if it is not.

    is_assumed: it counts assumptions that not every workload has.
    """

    kind: str
    seed: str
    answer: str
    because: str
    error: str
    is_assumed: bool = False

    @property
    def is_placement(self) -> bool:
        """Whether the order of events decides."""
        return self.answer == "unknown" and any(words in self.because for words in _PLACEMENT)


@dataclass(frozen=True)
class Recording:
    """The objects of an API server at one moment, and what became of them then."""

    taken_at: str
    kubernetes: str
    objects: tuple[Object, ...]
    pods: tuple[PlacedPod, ...] = ()
    admissions: tuple[AdmittedPod, ...] = ()
    workloads: tuple[StartedWorkload, ...] = ()
    rolls: tuple[RolledCluster, ...] = ()
    replacements: tuple[ReplacedPods, ...] = ()
    snapshot: Snapshot = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        world = World(datetime.fromisoformat(self.taken_at), self.kubernetes, list(self.objects))
        object.__setattr__(self, "snapshot", world.snapshot())

    def as_dict(self) -> Object:
        """For the file."""
        return {
            "taken_at": self.taken_at,
            "kubernetes": self.kubernetes,
            "objects": self.objects,
            **{name: [asdict(answer) for answer in getattr(self, name)] for name in _ANSWERS},
        }

    @classmethod
    def from_dict(cls, data: Object) -> Recording:
        """What as_dict wrote."""
        answers = {name: tuple(kind(**entry) for entry in data.get(name, ())) for name, kind in _ANSWERS.items()}
        return cls(data["taken_at"], data["kubernetes"], tuple(data["objects"]), **answers)

    def list_outcomes(self) -> Iterator[Outcome]:
        """What the walk predicts of each of them."""
        index = Index(self.snapshot)
        if self.pods:
            predictor = PodPredictor(index)
            for placed in self.pods:
                nodes = sum(index.bit[name] for name in placed.nodes)
                pod = predictor.predict(placed.pod, nodes)
                answer = "yes" if pod.good else "no" if pod.bad & nodes == nodes else "unknown"
                error = pod.explain_error(index.bit.get(placed.node, 0))
                yield Outcome("pod", placed.seed, answer, pod.because, error)
        for admitted in self.admissions:
            admission = predict_admission(index, admitted)
            answer = admission.word
            error = admission.explain_error(admitted.rejection)
            yield Outcome("admission", admitted.seed, answer, admission.because, error)
        if self.workloads:
            yield from self._list_outcomes_of_workloads()
        if self.replacements:
            verdicts = {verdict.workload: verdict for verdict in evaluate(self.snapshot).workloads}
            workloads = {workload.key: workload for workload in find_usage(index).workloads}
            for replaced in self.replacements:
                verdict = verdicts[replaced.workload]
                error = ""
                if verdict.starts_again == "yes":
                    error = explain_replacement_error(list_next_pods(index, workloads[replaced.workload]), replaced)
                yield Outcome("replacement", replaced.seed, verdict.starts_again, verdict.because, error)
        for rolled in self.rolls:
            roll = predict_roll(self.snapshot, rolled.nodes).roll
            assert roll is not None
            yield Outcome("roll", rolled.seed, roll.answer, roll.because, explain_roll_error(roll, rolled.stop))

    def _list_outcomes_of_workloads(self) -> Iterator[Outcome]:
        report = evaluate(without_lacks(self.snapshot))
        verdicts = {verdict.workload: verdict for verdict in report.workloads}
        # Each workload has the other assumptions.
        own = (assumption for assumption in report.assumptions if assumption.kind not in ("admission", "room"))
        assumed = {workload for assumption in own for workload in assumption.workloads}
        for started in self.workloads:
            verdict = verdicts[started.workload]
            error = explain_workload_error(verdict.starts_again, verdict.because, started.missing)
            is_assumed = started.workload in assumed
            yield Outcome("workload", started.seed, verdict.starts_again, verdict.because, error, is_assumed)


_ANSWERS: dict[str, Any] = {
    "pods": PlacedPod, "admissions": AdmittedPod, "workloads": StartedWorkload, "rolls": RolledCluster,
    "replacements": ReplacedPods,
}  # fmt: skip


def load_recordings() -> tuple[Recording, ...]:
    """What the file has."""
    return tuple(Recording.from_dict(entry) for entry in json.loads(lzma.decompress(FILE.read_bytes())))


def store_recordings(recordings: Iterable[Recording]) -> None:
    """Write the file."""
    text = json.dumps([recording.as_dict() for recording in recordings], sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


# Predictions, each held against what happened


@dataclass(frozen=True)
class PodPrediction:
    """Nodes that a pod can be scheduled on, those that it cannot, and why."""

    good: int
    bad: int
    because: str

    def explain_error(self, placed: int) -> str:
        """Why it is wrong for a pod on this node, 0 for none; empty if it is right or claims nothing."""
        if placed & self.bad:
            return f"too wary\n{self.because}"
        return f"too hopeful\n{self.because}" if self.good and not placed else ""


class PodPredictor:
    """The steps up to the scheduler, for pods of one snapshot."""

    def __init__(self, index: Index) -> None:
        self._index = index
        claims = Claims(index)
        self._steps = (
            PersistentVolumeController(index, claims), ExternalProvisioner(index, claims), Scheduler(index, claims),
        )  # fmt: skip

    def predict(self, pod: Object, nodes: int) -> PodPrediction:
        """Where a pod can be scheduled, of nodes."""
        index, start = self._index, to_pod_to_start(pod)
        good, bad, lines = nodes, 0, []
        for step in self._steps:
            # The scheduler knows nothing of kubelets, whose reasons would stand before its own.
            with mock.patch.object(KubeletAdmission, "filter_pod"):
                answers: list[StepAnswer] = step(start, nodes)
            for about in {answer.volume for answer in answers}:
                covered = [answer.nodes for answer in answers if answer.volume == about]
                assert sum(covered) == nodes, f"{step} does not cover each node once"
            for answer in answers:
                if answer.answer == "no":
                    bad |= answer.nodes
                if answer.answer != "yes":
                    good &= ~answer.nodes
                    names = ", ".join(index.list_names(answer.nodes))
                    lines.append(f"{answer.step} {answer.answer} on {names}: {answer.because}")
        return PodPrediction(good, bad, "\n".join([f"ok on {', '.join(index.list_names(good)) or 'none'}", *lines]))


def to_pod_to_start(pod: Object) -> PodToStart:
    """A pod as the walk asks about it."""
    return to_start(observed_pod(pod), PodShape.from_object(pod, pod["metadata"]["namespace"]))


@dataclass(frozen=True)
class AdmissionPrediction:
    """Whether a pod is admitted: "yes", "no" or "unknown"."""

    word: str
    because: str

    def explain_error(self, rejection: str) -> str:
        """Why it is wrong; empty if it is right or claims nothing."""
        if self.word == "yes" and rejection:
            return f"too hopeful\nserver: {rejection}"
        return f"too wary\nwe: {self.because}" if self.word == "no" and not rejection else ""


def predict_admission(index: Index, admitted: AdmittedPod) -> AdmissionPrediction:
    """What admission does with the pods of a Deployment."""
    assert index.all, "an answer is about nodes"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": admitted.spec}
    metadata = {"namespace": admitted.namespace, "name": "x"}
    item = {"metadata": metadata, "spec": {"replicas": 1, "template": template}}
    observed = ObservedTemplate.from_object("Deployment", item)
    [pod] = list_next_pods(index, Workload("Deployment", admitted.namespace, "x", template=observed))
    answers = Admission(index)(pod, index.all)
    words = {answer.answer for answer in answers if answer.nodes == index.all}
    word = "no" if "no" in words else "unknown" if "unknown" in words else "yes"
    return AdmissionPrediction(word, "; ".join(answer.because for answer in answers) or "ok")


def without_lacks(snapshot: Snapshot) -> Snapshot:
    """Without the sign that controllers have created no pod yet, as they stand still."""
    templates = tuple(replace(template, lacks="", lacks_since="") for template in snapshot.templates)
    return replace(snapshot, templates=templates)


def explain_workload_error(answer: str, because: str, missing: str) -> str:
    """Why the prediction of a workload is wrong; empty if it is right or claims nothing."""
    if answer == "yes" and missing:
        return f"too hopeful: {missing}"
    return f"too wary: {because}" if answer == "no" and not missing else ""


def explain_replacement_error(expected: Iterable[PodToStart], replaced: ReplacedPods) -> str:
    """Why predicted pods are not those that came: made from another template, or with other claims."""
    expected = tuple(expected)
    requests = [pod.shape.requests for pod in expected]
    claims = {claim for pod in expected for claim in pod.claims}
    if not replaced.pods:
        return "too hopeful: no pod came"
    for pod in replaced.pods:
        metadata = pod["metadata"]
        shape = PodShape.from_object(pod, metadata["namespace"])
        if shape.requests not in requests:
            return f"too hopeful: {metadata['name']} comes from another template, predicted {requests}, is {shape.requests}"
        for volume in observed_pod(pod).volumes.ephemeral:
            if f"{metadata['namespace']}/{metadata['name']}-{volume.name}" in replaced.kept:
                return f"too wary: {metadata['name']} keeps a claim that was to come with it"
        for source in pod["spec"].get("volumes") or ():
            name = (source.get("persistentVolumeClaim") or {}).get("claimName", "")
            key = f"{metadata['namespace']}/{name}"
            if name and (key in claims) != (key in replaced.kept):
                return f"too hopeful: claim {key} was {'not ' if key not in claims else ''}to be kept, and is {'kept' if key in replaced.kept else 'new'}"
    return ""


def predict_roll(snapshot: Snapshot, names: Iterable[str]) -> Report:
    """A report about some of the nodes alone."""
    own = frozenset(names)
    return evaluate(replace(snapshot, nodes=tuple(node for node in snapshot.nodes if node.name in own)))


def explain_roll_error(roll: Roll, stop: str) -> str:
    """Why a prediction is wrong; empty if it is right or claims nothing."""
    if roll.answer == "yes":
        return f"too hopeful: stops at {stop}" if stop else ""
    if roll.answer == "no" and stop != roll.stops_at and not (roll.or_before and stop and stop < roll.stops_at):
        word = "too hopeful" if stop and stop < roll.stops_at else "too wary"
        return f"{word}: predicted {roll.because}, stops at {stop or 'no node'}"
    return ""
