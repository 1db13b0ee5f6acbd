# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a rolling upgrade of the Windows nodes finishes: node by node is drained and comes back. Pure.

Pods leave as kubectl drain evicts them, within PodDisruptionBudgets, and go to the other nodes by the filters of the scheduler. Which
of several nodes the scheduler takes is not predicted. So the roll is simulated in several ways, and what they do not agree on depends
on placement.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..base.cached import share
from ..base.grouped import group_values
from ..kube import kinds
from .admission import counts_pods
from .facts.scheduling import PodShape, matches_labels
from .facts.workloads import ObservedPod
from .index import GOING, Index, find_position, unite
from .render.text_format import format_number
from .scheduler.framework import Scheduler
from .usage import Workload
from .verdict import Answer, NodeRoll, Roll, WorkloadVerdict
from .walk.steps import PodToStart

# A roll is simulated in so many ways, if all of them together take no more placements; few would be no proof, then it is one.
_MOST_WAYS, _LEAST_WAYS, _MOST_PLACEMENTS = 16, 6, 10_000
_LISTS = ("nodes", "pods", "poddisruptionbudgets")
_ATTACHED = "attached volumes of "
_CONTROLLERS = frozenset(kind.kind for kind in kinds.TEMPLATES)


@dataclass(slots=True, eq=False)
class _MovingPod:
    """A pod that a drain evicts. nodes: where it may go, as far as no other pod decides; doubts: where that is not known.

    budgets: numbers of those that select it. job: "namespace/name" of its Job, empty for others. answer: whether it starts
    again at all, with because.
    """

    name: str
    shape: PodShape
    home: str
    nodes: int
    doubts: int = 0
    budgets: tuple[int, ...] = ()
    job: str = ""
    answer: Answer = "yes"
    because: str = ""


@dataclass(slots=True)
class _Outcome:
    """What became of a node in one way to roll. is_open: other placements might have ended otherwise."""

    answer: Answer = "yes"
    because: str = ""
    targets: int = 0
    waiting: list[str] = field(default_factory=list)
    is_open: bool = False

    def stop(self, answer: Answer, because: str) -> None:
        """Note what stops the node; what is sure goes before what is not known."""
        if self.answer == "yes" or (self.answer, answer) == ("unknown", "no"):
            self.answer, self.because = answer, because


def simulate_roll(
    index: Index,
    scheduler: Scheduler,
    workloads: Sequence[Workload],
    next_pods: Mapping[str, Sequence[PodToStart]],
    verdicts: Mapping[str, WorkloadVerdict],
    replacements: Mapping[str, Mapping[str, Answer]],
) -> Roll | None:
    """Roll all Windows nodes in the order of their names; None where there are none.

    next_pods: by workload. replacements: by workload and pod, of workloads of which not all pods fare alike.
    """
    if unread := [name for name in _LISTS if name in index.unread]:
        return Roll("unknown", f"{', '.join(unread)} could not be read", ())
    if not index.windows:
        return None
    simulation = _Simulation(index, scheduler, workloads, next_pods, verdicts, replacements)
    most = min(_MOST_WAYS, _MOST_PLACEMENTS // max(1, len(simulation.pods)))
    ways = [simulation.roll(way) for way in range(most if most >= _LEAST_WAYS else 1)]
    nodes = tuple(simulation.compare(name, [way[name] for way in ways]) for name in ways[0])
    first = next((node for node in nodes if node.answer != "yes"), None)
    stop = next((node for node in nodes if node.answer == "no"), None)
    waiting = simulation.find_waiting_pod() if first is not nodes[0] else ""
    if stop is not None:
        is_early = stop is not first or bool(waiting)
        place = f"{stop.node} or before" if is_early else stop.node
        return Roll("no", f"node {place}: {stop.because}", nodes, stop.node, is_early)
    if waiting:
        return Roll("unknown", f"{waiting} waits for a node now, and may take the room of pods that move", nodes)
    if first is None and index.unread:
        return Roll("unknown", f"{', '.join(sorted(index.unread))} could not be read", nodes)
    if first is None:
        return Roll("yes", f"{format_number(len(nodes), 'Windows node')} can be drained one after the other", nodes)
    return Roll("unknown", f"node {first.node}: {first.because}", nodes)


class _Simulation:
    """The pods that move, on the nodes of one snapshot."""

    def __init__(
        self,
        index: Index,
        scheduler: Scheduler,
        workloads: Sequence[Workload],
        next_pods: Mapping[str, Sequence[PodToStart]],
        verdicts: Mapping[str, WorkloadVerdict],
        replacements: Mapping[str, Mapping[str, Answer]],
    ) -> None:
        self._index, self._scheduler, self._infos, self._next_pods = index, scheduler, scheduler.infos, next_pods
        self._infos.send_away(())
        self._replacements = replacements
        self._names = index.list_names(index.windows)
        self._budgets = index.snapshot.budgets
        # By node, how many pods of each shape belong to a workload that is evaluated.
        self._evaluated: Counter[tuple[str, int]] = Counter()
        # By the identity of a shape, the numbers of the budgets that select its pods.
        self._budgets_of: dict[int, tuple[int, ...]] = {}
        self.pods = [*self._list_pods_of_workloads(workloads, verdicts), *self._list_other_pods()]
        self._at_home = group_values((pod.home, pod) for pod in self.pods)
        self._obstacles = {name: self._find_obstacle(name) for name in self._names}
        self._on: dict[str, list[_MovingPod]] = {}
        self._healthy: list[int] = []
        # Of pods of Jobs, by "namespace/name" of the Job and by pod.
        self._evictions: Counter[str | _MovingPod] = Counter()
        self._way, self._random, self._next_place = 0, random.Random(0), 0

    # Before the roll

    def _list_pods_of_workloads(
        self, workloads: Sequence[Workload], verdicts: Mapping[str, WorkloadVerdict]
    ) -> Iterator[_MovingPod]:
        index, limits = self._index, self._scheduler.volume_limits
        shapes = index.snapshot.shapes
        moving = {
            workload.key: [
                pod
                for pod in workload.pods
                if pod.shape >= 0 and not shapes[pod.shape].stays and index.bit.get(pod.node, 0) & index.windows
            ]
            for workload in workloads
        }
        leaving = {volume for pods in moving.values() for pod in pods for volume in limits.list_volumes(pod)}
        for driver, by_node in limits.limits.items():
            rooms = {node: limits.count_room(driver, node, leaving) for node in by_node}
            self._infos.set_room(_ATTACHED + driver, rooms)
        for workload in workloads:
            if moving[workload.key]:
                yield from self._list_pods_of_workload(workload, moving[workload.key], verdicts.get(workload.key))

    def _list_pods_of_workload(
        self, workload: Workload, pods: Sequence[ObservedPod], verdict: WorkloadVerdict | None
    ) -> Iterator[_MovingPod]:
        limits, shapes = self._scheduler.volume_limits, self._index.snapshot.shapes
        starting = {pod.name: pod for pod in self._next_pods[workload.key]}
        # Equal shapes once: there are many pods.
        next_shapes: dict[tuple[int, tuple[tuple[str, int], ...]], PodShape] = {}
        of_workload: Answer = verdict.starts_again if verdict else "yes"
        answers = self._replacements.get(workload.key, {})
        for pod in pods:
            next_pod = starting.get(pod.name) or [*starting.values()][-1]
            answer = answers.get(next_pod.name, of_workload)
            because = f"see {workload.key}" if answer != "yes" else ""
            if answer == "yes" and self._scheduler.claims.uses_up_volumes(next_pod):
                answer, because = "unknown", "each start takes another volume that exists already"
            named, created = limits.collect_needs(next_pod)
            volumes = Counter({driver: count // next_pod.count for driver, count in created.items()})
            volumes.update(driver for driver, _volume in named)
            attached = tuple(
                (_ATTACHED + driver, count) for driver, count in volumes.items() if driver in limits.limits
            )
            key = (id(next_pod.shape), attached)
            if key not in next_shapes:
                next_shapes[key] = replace(next_pod.shape, requests=next_pod.shape.requests + attached)
            shape = next_shapes[key]
            self._infos.remove((shapes[pod.shape], pod.node))
            self._infos.add((shape, pod.node))
            self._evaluated[pod.node, pod.shape] += 1
            nodes, doubts = self._scheduler.find_fixed_nodes(replace(next_pod, node="") if next_pod.node else next_pod)
            yield self._create_pod(f"pod {pod.key}", shapes[pod.shape], shape, pod.node, nodes, doubts, answer, because)

    def _list_other_pods(self) -> Iterator[_MovingPod]:
        index = self._index
        fixed: dict[int, tuple[int, int]] = {}
        for node in self._names:
            remaining = Counter(index.snapshot.pods_on.get(node, ()))
            for shape_number, count in remaining.items():
                shape = index.snapshot.shapes[shape_number]
                if shape.stays or shape.gone_by:
                    continue
                name = _describe_pod(shape)
                if shape_number not in fixed:
                    pod = PodToStart(name, shape.namespace, name, shape.placement, shape=shape)
                    fixed[shape_number] = self._scheduler.find_fixed_nodes(pod)
                answer, because = self._find_refusal(shape)
                for _number in range(count - self._evaluated.get((node, shape_number), 0)):
                    yield self._create_pod(name, shape, shape, node, *fixed[shape_number], answer, because)

    def _find_refusal(self, shape: PodShape) -> tuple[Answer, str]:
        """Why a pod without volumes is not created again, or may not be."""
        if not shape.owner:
            return "no", "no controller recreates it"
        if (kind := shape.owner.partition("/")[0]) not in _CONTROLLERS:
            return "unknown", f"{kind} is a kind that is not read"
        for quota in self._index.quotas.get(shape.namespace, ()):
            hard = dict(quota.hard)
            if any(counts_pods(name) and amount > hard.get(name, amount) for name, amount in quota.used or ()):
                return "unknown", f"ResourceQuota {quota.namespace}/{quota.name} allows less than is used"
        return "yes", ""

    def _find_obstacle(self, name: str) -> str:
        """What a drain of a node waits for, or where the playbook upgrade waits before each other node; empty for nothing."""
        index = self._index
        node, numbers = index.nodes[name], index.snapshot.pods_on.get(name, ())
        if not node.ready or (node.cordoned and len(self._names) > 1):
            state = "cordoned" if node.ready else f"not Ready ({node.not_ready_because})"
            return f"it is {state}, and no other node is upgraded meanwhile"
        shapes = [index.snapshot.shapes[number] for number in dict.fromkeys(numbers)]
        stuck = [shape for shape in shapes if not shape.stays and index.count_minutes(shape.gone_by, GOING) is not None]
        return f"{_describe_pod(stuck[0])} should have ended by {stuck[0].gone_by}" if stuck else ""

    def find_waiting_pod(self) -> str:
        """A pod that waits for one of the nodes, empty if there is none."""
        for shape_number in set(self._index.snapshot.pods_on.get("", ())):
            shape = self._index.snapshot.shapes[shape_number]
            pod = PodToStart("", shape.namespace, "", shape.placement, shape=shape)
            if self._scheduler.find_fixed_nodes(pod)[0] & self._index.windows:
                return _describe_pod(shape)
        return ""

    def _create_pod(
        self,
        name: str,
        current_shape: PodShape,
        shape: PodShape,
        home: str,
        nodes: int,
        doubts: int,
        answer: Answer,
        because: str,
    ) -> _MovingPod:
        """current_shape: its shape of today, shape: that of the pod that replaces it."""
        budgets = self._budgets_of.get(id(current_shape))
        if budgets is None:
            labels = dict(current_shape.labels)
            budgets = self._budgets_of[id(current_shape)] = tuple(
                position
                for position, budget in enumerate(self._budgets)
                if budget.namespace == current_shape.namespace and matches_labels(budget.selector, labels)
            )
        if answer == "yes" and nodes & self._index.linux:
            answer, because = "unknown", "nothing keeps its next pod from a Linux node"
        if answer == "yes" and self._scheduler.is_open(shape):
            answer, because = "unknown", "its rules about other pods are not known"
        if answer == "yes" and (webhook := self._index.find_missing_webhook(shape.namespace)) is not None:
            answer, because = "unknown", webhook.explain()[0]
        job = _name_job(current_shape)
        if answer == "yes" and job and job not in self._index.snapshot.jobs:
            answer, because = "unknown", f"Job {job} was not read"
        nodes &= ~doubts
        nodes, doubts = share(nodes), share(doubts)
        return _MovingPod(name, shape, home, nodes, doubts, budgets, job, answer, because)

    # The roll

    def roll(self, way: int) -> dict[str, _Outcome]:
        """The outcome by node. way: 0 places pods on nodes in turns, 1 on the first by name, each other one at random."""
        self._healthy = [budget.healthy for budget in self._budgets]
        self._evictions.clear()
        self._way, self._random, self._next_place = way, random.Random(way), 0
        for node, pods in self._on.items():
            for pod in pods:
                if pod.home != node:
                    self._infos.remove((pod.shape, node))
                    self._infos.add((pod.shape, pod.home))
        self._on = {node: list(pods) for node, pods in self._at_home.items()}
        return {name: self._roll_node(name) for name in self._names}

    def _roll_node(self, name: str) -> _Outcome:
        outcome = _Outcome()
        if self._obstacles[name]:
            outcome.stop("unknown", self._obstacles[name])
        pods_here = self._on.pop(name, [])
        if self._way:
            self._random.shuffle(pods_here)
        leaving = pods_here
        self._infos.drained = self._index.bit[name]
        waiting: list[_MovingPod] = []
        while pods_here:
            evicted: list[_MovingPod] = []
            refused: list[_MovingPod] = []
            for pod in pods_here:
                (evicted if self._evict(pod, name) else refused).append(pod)
            pods_here = refused
            if not evicted:
                break
            waiting = self._place([*waiting, *evicted], outcome)
        if pods_here:
            refusals = (self._explain_refusal(pod, waiting) for pod in pods_here)
            # What is sure in any placement goes first.
            answer, because, is_open = min(refusals, key=lambda refusal: (refusal[0] != "no", refusal[2]))
            outcome.stop(answer, because)
            outcome.is_open |= is_open
        for pod in leaving:
            if pod.answer != "yes":
                starts = "does not start again" if pod.answer == "no" else "may not start again"
                outcome.stop(pod.answer, f"{pod.name} {starts}: {pod.because}")
            elif because := self._explain_failed_job(pod):
                # It may end before.
                outcome.stop("unknown", f"{pod.name} may not start again: {because}")
        self._on.setdefault(name, []).extend(pods_here)
        self._infos.drained = 0
        outcome.waiting = [pod.name for pod in waiting]
        for pod in self._place(waiting, outcome):
            reason = f"{pod.name} finds no node, even when this one is back"
            preempts = self._infos.has_lower_priority(pod.shape)
            outcome.stop("unknown" if pod.doubts or preempts else "no", reason)
            self._put(pod, name)
        return outcome

    def _evict(self, pod: _MovingPod, node: str) -> bool:
        """Take a pod off its node, if its budget allows that. The API refuses a pod with more than one budget."""
        is_short = any(self._healthy[position] <= self._budgets[position].desired for position in pod.budgets)
        if len(pod.budgets) > 1 or is_short:
            return False
        for budget in pod.budgets:
            self._healthy[budget] -= 1
        if pod.job:
            self._evictions.update((pod.job, pod))
        self._infos.remove((pod.shape, node))
        return True

    def _explain_failed_job(self, pod: _MovingPod) -> str:
        """Why the evictions so far may have failed the Job of a pod, empty if they have not."""
        job = self._index.snapshot.jobs.get(pod.job)
        if job is None or (self._evictions[pod.job] <= job.retries and self._evictions[pod] <= job.retries_per_index):
            return ""
        return job.because

    def _place(self, pods: Sequence[_MovingPod], outcome: _Outcome) -> list[_MovingPod]:
        """Put pods on nodes that take them; returns those for which there is none."""
        waiting: list[_MovingPod] = []
        for pod in pods:
            possible = pod.nodes & ~self._infos.drained
            nodes = self._scheduler.filter_by_pods(pod.shape, possible)
            # So many other pods can take no more nodes than they are; with one node, all that fit do so in any order.
            is_scarce = nodes.bit_count() < len(pods) and possible.bit_count() > 1
            outcome.is_open |= is_scarce or (bool(possible) and not nodes)
            if nodes:
                target = self._choose(nodes)
                outcome.targets |= self._index.bit[target]
                self._put(pod, target)
            else:
                waiting.append(pod)
        return waiting

    def _put(self, pod: _MovingPod, node: str) -> None:
        self._infos.add((pod.shape, node))
        self._on.setdefault(node, []).append(pod)
        for budget in pod.budgets:
            self._healthy[budget] += 1

    def _choose(self, nodes: int) -> str:
        """One of these nodes."""
        places = {0: self._next_place, 1: 0}
        place = places[self._way] if self._way in places else self._random.randrange(len(self._index.node_list))
        position = find_position(nodes, place)
        self._next_place = position + 1
        return self._index.node_list[position].name

    def _explain_refusal(self, pod: _MovingPod, waiting: Sequence[_MovingPod]) -> tuple[Answer, str, bool]:
        """Why a pod is not evicted, and whether other placements might have changed that."""
        # A budget that expects no pod is not counted yet, or its selector is only partly known.
        counted = [position for position in pod.budgets if self._budgets[position].expected]
        exhausted = [position for position in counted if self._healthy[position] <= self._budgets[position].desired]
        if len(counted) > 1 or (len(pod.budgets) > 1 and not exhausted):
            answer: Answer = "no" if len(counted) > 1 else "unknown"
            budgets = (self._budgets[position] for position in (counted if answer == "no" else pod.budgets))
            names = " and ".join(f"{budget.namespace}/{budget.name}" for budget in budgets)
            select = "both select" if answer == "no" else "may both select"
            return answer, f"{pod.name} is not evicted: PodDisruptionBudgets {names} {select} it", False
        position = (exhausted or pod.budgets)[0]
        budget = self._budgets[position]
        answer = "no" if budget.healthy >= budget.expected > 0 else "unknown"
        why = f"needs {budget.desired} healthy pods and has {self._healthy[position]}"
        if answer == "no" and not any(position in waiting_pod.budgets for waiting_pod in waiting):
            why += f". Allow an eviction: kubectl -n {budget.namespace} edit poddisruptionbudget {budget.name}"
        name = f"{budget.namespace}/{budget.name}"
        return answer, f"{pod.name} is not evicted: PodDisruptionBudget {name} {why}", bool(waiting)

    # After it

    def compare(self, name: str, outcomes: Sequence[_Outcome]) -> NodeRoll:
        """What all ways to roll come to for a node."""
        pods = self._at_home.get(name, [])
        worst = max(outcomes, key=lambda outcome: ("yes", "unknown", "no").index(outcome.answer))
        answer, because = worst.answer, worst.because
        differ = len({outcome.answer for outcome in outcomes}) > 1
        if differ or (len(outcomes) == 1 and worst.is_open):
            answer, because = "unknown", f"it depends on placement: {because or 'few nodes take its pods'}"
        budgets = {self._budgets[budget] for pod in pods for budget in pod.budgets}
        targets = unite(outcome.targets for outcome in outcomes) & ~self._index.bit[name]
        return NodeRoll(
            node=name,
            answer=answer,
            because=because,
            pods=len(pods),
            budgets=tuple(sorted(f"{budget.namespace}/{budget.name}" for budget in budgets)),
            targets=tuple(self._index.list_names(targets)),
            waiting=tuple(dict.fromkeys(pod for outcome in outcomes for pod in outcome.waiting)),
        )


def _name_job(shape: PodShape) -> str:
    """ "namespace/name" of the Job of a pod; empty for others, and for one that is being deleted, which counts as failed already."""
    kind, _slash, name = shape.owner.partition("/")
    return sys.intern(f"{shape.namespace}/{name}") if kind == "Job" and not shape.gone_by else ""


def _describe_pod(shape: PodShape) -> str:
    kind, _slash, owner = shape.owner.partition("/")
    text = f"a pod of {kind} {shape.namespace}/{owner}" if owner else f"a pod in {shape.namespace}"
    return sys.intern(text)
