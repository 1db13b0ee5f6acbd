# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Walk a pod down its path on every node at once: a pod starts where each step of all its volumes is ok. Pure.

Sets of nodes are numbers, so that equal nodes are evaluated once; equal pods are one pod with a count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import verdict
from ..findings import create_finding
from ..index import Index, unite
from ..render.text_format import format_list
from ..usage import Workload
from ..verdict import ReportFinding
from .steps import STEPS, PodToStart, Rule, StepAnswer, WalkStep

Rules = Mapping[WalkStep, Sequence[Rule]]

# What the scheduler knows of: it avoids nodes that these steps refuse, and no others.
_SEEN_BY_SCHEDULER: tuple[WalkStep, ...] = ("bind", "provision", "schedule")


@dataclass(frozen=True, slots=True)
class PodWalk:
    """A pod on the nodes it was asked about. ok, blocked, unknown: they share out all of these; placed: where it may be put.

    answers: of every step, about those nodes that all steps before let through.
    """

    pod: PodToStart
    answers: tuple[StepAnswer, ...]
    ok: int
    blocked: int
    unknown: int
    placed: int

    def is_decisive(self, answer: StepAnswer) -> bool:
        """Whether an answer takes one of the last nodes: those that the scheduler may choose, or those before it."""
        if self.placed:
            of_pod = answer.step == "schedule" and not answer.volume
            unsure = answer.answer == "unknown" and not of_pod and not self.ok
            return answer.step not in _SEEN_BY_SCHEDULER or unsure
        return answer.step == max((stop.step for stop in self.list_stops()), key=STEPS.index)

    def list_stops(self) -> Iterator[StepAnswer]:
        """The answers that are not yes."""
        return (answer for answer in self.answers if answer.answer != "yes")


def walk(index: Index, pod: PodToStart, nodes: int, rules: Rules) -> PodWalk:
    """Ask every step about the nodes that are left of nodes."""
    remaining, unknown = nodes, 0
    placed = nodes
    answers: list[StepAnswer] = []
    volumes = pod.volumes or ("",)
    for step in STEPS:
        if not remaining:
            break
        step_answers = [answer for rule in rules.get(step, ()) for answer in rule(pod, remaining)]
        if step in rules:
            step_answers += _answer_rest(index, pod, volumes, step, step_answers, remaining)
        for answer in step_answers:
            if answer.answer == "no":
                remaining &= ~answer.nodes
            elif answer.answer == "unknown":
                unknown |= answer.nodes
        answers += step_answers
        if step in _SEEN_BY_SCHEDULER:
            placed = remaining
    return PodWalk(pod, tuple(answers), remaining & ~unknown, nodes & ~remaining, remaining & unknown, placed)


def _answer_rest(
    index: Index,
    pod: PodToStart,
    volumes: Iterable[str],
    step: WalkStep,
    step_answers: Iterable[StepAnswer],
    nodes: int,
) -> Iterator[StepAnswer]:
    """Stands for what no rule of a step mentions: it is unknown."""
    covered: dict[str, int] = defaultdict(int)
    for answer in step_answers:
        covered[answer.volume] |= answer.nodes
    whole = covered[""]
    for volume in volumes:
        uncovered = nodes & ~whole & ~covered[volume]
        if uncovered:
            message = (
                f"no rule decides whether {volume or 'the pod'} passes step {step} on {index.list_names(uncovered)[0]}"
            )
            evidence = (f"{pod.workload}: {volume or 'no volume'}",)
            remedy = "report this as a bug of the collection, or suppress this finding"
            finding = create_finding("CSI-W09", pod.workload, message, evidence, remedy)
            yield StepAnswer.from_findings(step, "unknown", uncovered, (finding,), volume)


def decide_start(walked: PodWalk, everywhere: bool = False) -> verdict.Answer:
    """Whether a pod starts, wherever the scheduler puts it. everywhere: there is one for each of the nodes.

    The scheduler does not know of a node that will not mount a volume, so that one such node among others is in doubt.
    """
    if not walked.ok and not walked.unknown:
        return "no"
    if everywhere and walked.blocked:
        return "no"
    if walked.placed & walked.blocked or not walked.ok or walked.unknown & walked.placed & _find_unsure_nodes(walked):
        return "unknown"
    return "unknown" if everywhere and walked.unknown else "yes"


def _find_unsure_nodes(walked: PodWalk) -> int:
    """Nodes of which a step that the scheduler does not see is unknown."""
    unknown = (
        answer for answer in walked.answers if answer.answer == "unknown" and answer.step not in _SEEN_BY_SCHEDULER
    )
    return unite(answer.nodes for answer in unknown)


class WorkloadWalk:
    """The walks of a workload's next pods over every node that they may have. findings: what explains those that are not ready on Windows nodes.

    linux: Linux nodes that the scheduler may choose for one of them, now or later.
    """

    def __init__(
        self,
        index: Index,
        workload: Workload,
        pods: Sequence[PodToStart],
        rules: Rules,
        find_daemon_nodes: Callable[[PodToStart], int],
        filter_lasting: Rule,
    ) -> None:
        self._index, self._rules = index, rules
        self._everywhere = everywhere = workload.kind == "DaemonSet"
        nodes = index.windows
        if everywhere:
            # Where it has pods on no node, the whole walk says why.
            nodes = nodes & unite(find_daemon_nodes(pod) for pod in pods) or nodes
        self._nodes = nodes
        self._all = tuple(walk(index, pod, nodes, rules) for pod in pods)
        lasting: Rules = {"bind": rules["bind"], "provision": rules["provision"], "schedule": (filter_lasting,)}
        self.linux = unite(
            walk(index, pod, index.linux & index.find_fitting(pod.placement), lasting).placed for pod in pods
        )
        evaluated = [(decide_start(walked, everywhere), walked) for walked in self._all]
        self._stopped = sorted((pair for pair in evaluated if pair[0] != "yes"), key=lambda pair: pair[0] != "no")
        stops = [
            stop for _answer, walked in self._stopped for stop in walked.list_stops() if self._is_decisive(walked, stop)
        ]
        self.findings = tuple(dict.fromkeys(finding for stop in stops for finding in stop.findings))

    def _is_decisive(self, walked: PodWalk, stop: StepAnswer) -> bool:
        """Whether an answer is why a pod does not start. Of a DaemonSet each node that is refused lacks its pod."""
        return walked.is_decisive(stop) or (self._everywhere and bool(walked.ok or stop.answer == "no"))

    @property
    def stopping(self) -> tuple[ReportFinding, ...]:
        """The findings of every step that stops one of its pods somewhere."""
        return tuple(
            finding for dummy, walked in self._stopped for stop in walked.list_stops() for finding in stop.findings
        )

    @property
    def worst(self) -> tuple[verdict.Answer, str] | None:
        """Of the pod that fares worst, whether it starts and why not; None when all start."""
        if not self._stopped:
            return None
        answer, walked = self._stopped[0]
        stops = [stop for stop in walked.list_stops() if self._is_decisive(walked, stop)] or list(walked.list_stops())
        first = next((stop for stop in stops if answer == "unknown" or stop.answer == "no"), stops[0])
        is_everywhere = first.nodes == self._index.windows and first.nodes & (first.nodes - 1)
        nodes = "every Windows node" if is_everywhere else format_list(self._index.list_names(first.nodes), 3)
        state = "blocked" if first.answer == "no" else "unknown"
        places = f"; on {format_list(self._index.list_names(walked.ok), 3)} it works" if walked.ok else ""
        name = walked.pod.name
        pod = "the next pod" if walked.pod.workload.endswith(f"/{name}") else f"pod {name}"
        named = f"claim {first.volume}" if "/" in first.volume.partition(" ")[0] else first.volume or pod
        return answer, f"{named} is {state} at step {first.step} on {nodes}: {first.because}{places}"

    @property
    def placed(self) -> bool:
        """Whether the scheduler finds a node for each of its pods."""
        return all(walked.placed for walked in self._all)

    @property
    def places(self) -> tuple[tuple[PodToStart, int], ...]:
        """Its pods, each with the nodes where the scheduler may put it."""
        return tuple((walked.pod, walked.placed) for walked in self._all)

    def decide_replacements(self) -> dict[str, verdict.Answer]:
        """By name, whether each of its pods starts in place of one of today, whose part of the quotas is free then."""
        answers: dict[str, verdict.Answer] = {walked.pod.name: "yes" for walked in self._all}
        for answer, walked in self._stopped:
            pod = walked.pod
            answers[pod.name] = answer
            if pod.additional:
                replacement = walk(self._index, replace(pod, additional=0), self._nodes, self._rules)
                answers[pod.name] = decide_start(replacement, self._everywhere)
        return answers

    def describe_places(self) -> str:
        """Where its pods start."""
        return (
            f"every volume works on {format_list(self._index.list_names(self._all[0].ok), 3)}"
            if self._all
            else "it has no pod"
        )
