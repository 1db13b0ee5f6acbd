# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next step of a change node by node, from observed facts alone. Pure.

Nothing is remembered but how long a node has been without its plugin: a run that was killed is continued by looking.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import Picture
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.order import allowed_away, batches
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.scheduling import why_not
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.verdict import Evaluation, NodeVerdict

# For the whole, where a node's name stands otherwise.
NO_NODE = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """How to go.

    nodes: those of this run, in order; empty takes every node that the DaemonSet goes to, by name. batches: sizes.
    max_unavailable: how many nodes may be without a Ready plugin at a time. node_timeout: seconds a node may take.
    goes_back: the former template is being restored. kept: nodes whose pod must not be replaced now, with the reason.
    """

    nodes: tuple[str, ...] = ()
    batches: tuple[str, ...] = ("1", "25%")
    max_unavailable: int | str = 1
    node_timeout: float = 600.0
    goes_back: bool = False
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the nodes stand.

    order: nodes of this run that the DaemonSet goes to. old: nodes whose pod is of another template, with that pod. moving:
    nodes that are getting their new one. done: nodes that work with it. away: nodes without a Ready plugin, of this run or not.
    left: nodes of no concern to this run with a pod of another template. expected: how many nodes the DaemonSet goes to. proven:
    whether the template works on any node, of this run or not.
    """

    expected: tuple[str, ...]
    order: tuple[str, ...]
    old: Mapping[str, PodFacts]
    moving: frozenset[str]
    done: frozenset[str]
    away: frozenset[str]
    left: tuple[str, ...]
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now. nodes, message: of whom, and why.

    Wait does nothing and replace deletes these pods. Finish: every pod is of this template. Rest: those of this run are. Back: the
    former template must be restored, since the canary does not work. Stop: everything is left as it is.
    """

    kind: Literal["wait", "replace", "finish", "rest", "back", "stop"]
    pods: tuple[PodFacts, ...] = ()
    nodes: tuple[str, ...] = ()
    message: str = ""


def standing(picture: Picture, evaluation: Evaluation, goal: Goal, deleted: frozenset[str] = frozenset()) -> Standing:
    """Sort the nodes. deleted: uids of pods that were deleted and may still be read as they were."""
    daemon_set = picture.daemon_set
    if daemon_set is None:
        return Standing((), (), {}, frozenset(), frozenset(), frozenset(), ())
    works = {one.node for one in evaluation.nodes if one.verdict in ("green", "unproven")}
    expected = sorted(node.name for node in picture.nodes if why_not(daemon_set, node) is None)
    order = tuple(name for name in goal.nodes if name in expected) if goal.nodes else tuple(expected)
    pods = {pod.node: pod for pod in picture.pods if not pod.deleting and pod.uid not in deleted}
    old = {name: pods[name] for name in expected if name in pods and not daemon_set.made(pods[name])}
    moving = {name for name in order if name not in old and name not in works}
    return Standing(
        expected=tuple(expected),
        order=order,
        old={name: pod for name, pod in old.items() if name in order},
        moving=frozenset(moving),
        done=frozenset(name for name in order if name not in old and name not in moving),
        away=frozenset(name for name in expected if name not in pods or not pods[name].ready),
        left=tuple(name for name in old if name not in order),
        proven=any(name in works and name in pods and name not in old for name in expected),
    )


def permitted(
    pods: Sequence[PodFacts], now: Sequence[PodFacts], taken: Mapping[str, str], expected: Collection[str], allowed: int
) -> tuple[PodFacts, ...]:
    """Those of the pods that may be deleted beside what other runs delete.

    now: all pods of the DaemonSet. taken: uids by node of pods that were announced for deletion. expected: the nodes that the
    DaemonSet goes to; a Node that was deleted is not away. allowed: how many of them may be without a Ready plugin.
    """
    ready = {pod.node: pod.uid for pod in now if pod.ready and not pod.deleting}
    observed = {pod.node for pod in now if pod.node in expected}
    away = {name for name in observed if name not in ready} | set(still_away(ready, taken, expected))
    free = allowed - len(away)
    serving = [pod for pod in pods if pod.node not in away][: max(0, free)]
    return tuple(pod for pod in pods if pod in serving or pod.node in away)


def still_away(ready: Mapping[str, str], taken: Mapping[str, str], expected: Collection[str]) -> dict[str, str]:
    """What was announced for deletion on an expected node and has no Ready successor. ready: uids by node of the Ready pods."""
    return {node: uid for node, uid in taken.items() if node in expected and ready.get(node, uid) == uid}


def decide(
    picture: Picture,
    evaluation: Evaluation,
    goal: Goal,
    waited: Mapping[str, float],
    deleted: frozenset[str] = frozenset(),
) -> Step:
    """The next step. waited: seconds by node that is moving, and NO_NODE: since nothing could be done."""
    if picture.daemon_set is None:
        return Step("stop", message="the DaemonSet does not exist")
    if not picture.daemon_set.observed:
        if waited.get(NO_NODE, 0.0) > goal.node_timeout:
            return Step("stop", message="the DaemonSet controller does not process it; check that it runs")
        return Step("wait")
    now = standing(picture, evaluation, goal, deleted)
    verdicts = {one.node: one for one in evaluation.nodes}
    doubt = _doubt(now, verdicts, goal, waited)
    if doubt is not None:
        return doubt
    if not now.old and not now.moving:
        return Step("rest", nodes=now.left) if now.left else Step("finish")
    batch = next((one for one in batches(now.order, goal.batches) if not now.done.issuperset(one)), ())
    # A node that is getting its plugin and is not of this batch was begun by another run: it comes first.
    if not now.moving.issubset(batch):
        return Step("wait")
    return _replace(now, verdicts, goal, waited, batch)


def _replace(
    now: Standing, verdicts: Mapping[str, NodeVerdict], goal: Goal, waited: Mapping[str, float], batch: Sequence[str]
) -> Step:
    """The pods of a batch that may go now: those that do not work anyway, and as many others as may be away."""
    left = [name for name in batch if name in now.old]
    for name in left:
        found = hopeless(verdicts.get(name)) or goal.kept.get(name, "")
        if found:
            message = f"{found}; its plugin is not changed"
            return Step("stop", nodes=(name,), message=message)
    allowed = allowed_away(goal.max_unavailable, len(now.expected))
    free = allowed - len(now.away | now.moving)
    chosen = [name for name in left if name in now.away]
    chosen += [name for name in left if name not in now.away][: max(0, free)]
    if chosen:
        return Step("replace", pods=tuple(now.old[name] for name in chosen), nodes=tuple(chosen))
    if not now.moving and waited.get(NO_NODE, 0.0) > goal.node_timeout:
        names = ", ".join(sorted(now.away))
        message = f"{names} without a Ready plugin, expected at most {goal.max_unavailable} (max_unavailable)"
        return Step("stop", nodes=tuple(sorted(now.away)), message=message)
    return Step("wait")


def _doubt(now: Standing, verdicts: Mapping[str, NodeVerdict], goal: Goal, waited: Mapping[str, float]) -> Step | None:
    """Stop, or go back, for a node that does not come to work with the new template."""
    for name in sorted(now.moving):
        verdict = verdicts.get(name)
        lacks = [lack.message for lack in verdict.lacks] if verdict is not None else []
        red = verdict is not None and verdict.verdict == "red"
        late = waited.get(name, 0.0) > goal.node_timeout
        if not red and not late:
            continue
        why = "; ".join(lacks) or "it does not work"
        if late and not red:
            why += f" (after {goal.node_timeout:.0f} s)"
        kind: Literal["back", "stop"] = "stop" if now.proven or goal.goes_back else "back"
        return Step(kind, nodes=(name,), message=why)
    return None


def hopeless(verdict: NodeVerdict | None) -> str:
    """What makes replacing a pod hopeless: its Node is not Ready, or something is red that a new pod does not repair."""
    if verdict is None:
        return ""
    return "; ".join(lack.message for lack in verdict.lacks if lack.id == "CSI-G05" or lack.verdict == "red")
