# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a rolling update may begin, its order, and its next step, from observed facts alone. Pure.

Under OnDelete a pod gets a new template only after its deletion. Which pods are old is read from their revision, so a run that was killed
is continued by observing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...base.decode import read_number
from ...base.grouped import group_values
from ...kube.labels import SERVING_LABEL
from ...kube.pod import PodFacts
from .evaluate import Evaluation, NodeEvaluation
from .scheduling import explain_exclusion
from .snapshot import RolloutPicture

# Key of the time since which no pod could be replaced, beside those of nodes.
NO_NODE = ""
# Volumes in use that a refusal names for a Node.
_SHOWN = 3
_SIZE = re.compile(r"[1-9][0-9]*%?")


@dataclass(frozen=True, slots=True)
class RollOptions:
    """Options of a rolling update.

    nodes: Nodes of this run, the canary first; empty: every Node that the DaemonSet selects, by name. batches: sizes. max_unavailable:
    how many Nodes may be without a Ready plugin at a time. node_timeout: seconds for one Node. restores: the former template is applied
    again.
    """

    nodes: tuple[str, ...] = ()
    batches: tuple[str, ...] = ("1", "25%")
    max_unavailable: int | str = 1
    node_timeout: float = 600.0
    restores: bool = False


@dataclass(frozen=True, slots=True)
class RollState:
    """The state of a rolling update.

    expected: Nodes that the DaemonSet selects. order: those of this run that are not down. old: their pods of another template, by Node.
    pending: Nodes that get their new pod. done: Nodes whose new pod works. down: Nodes of this run that are not Ready, and lack a new pod
    that works. unavailable: Ready Nodes without a Ready plugin, also of other runs. outdated_elsewhere: Nodes of other runs with a pod of another template.
    proven: whether the template works on any Node.
    """

    expected: tuple[str, ...]
    order: tuple[str, ...]
    old: Mapping[str, PodFacts]
    pending: frozenset[str]
    done: frozenset[str]
    down: tuple[str, ...]
    unavailable: frozenset[str]
    outdated_elsewhere: tuple[str, ...]
    proven: bool


@dataclass(frozen=True, slots=True)
class RollStep:
    """What to do next. nodes, message: the Nodes concerned, and why.

    `replace` deletes these pods, `wait` does nothing. After `finish` every Node of this run that is not down has the template. `restore`
    applies the former template, because the canary does not work, and `stop` changes nothing more.
    """

    kind: Literal["wait", "replace", "finish", "restore", "stop"]
    pods: tuple[PodFacts, ...] = ()
    nodes: tuple[str, ...] = ()
    message: str = ""


def find_state(
    picture: RolloutPicture, evaluation: Evaluation, options: RollOptions, deleted: frozenset[str] = frozenset()
) -> RollState:
    """Sort the Nodes. deleted: uids of pods that were deleted and may still be read as they were."""
    daemon_set = picture.daemon_set
    if daemon_set is None:
        return RollState((), (), {}, frozenset(), frozenset(), (), frozenset(), (), proven=False)
    working = {node.node for node in evaluation.nodes if node.verdict in ("green", "unproven")}
    nodes = {node.name: node for node in picture.nodes if explain_exclusion(daemon_set, node) is None}
    chosen_nodes = [name for name in options.nodes if name in nodes] if options.nodes else sorted(nodes)
    pods = {pod.node: pod for pod in picture.pods if not pod.deleting and pod.uid not in deleted}
    old = {name: pods[name] for name in sorted(nodes) if name in pods and not daemon_set.is_current(pods[name])}
    done = {name for name in nodes if name in working and name not in old}
    down = tuple(name for name in chosen_nodes if not nodes[name].ready and name not in done)
    order = tuple(name for name in chosen_nodes if name not in down)
    return RollState(
        expected=tuple(sorted(nodes)),
        order=order,
        old={name: pod for name, pod in old.items() if name in order},
        pending=frozenset(name for name in order if name not in old and name not in done),
        done=frozenset(name for name in order if name in done),
        down=down,
        unavailable=frozenset(name for name in nodes if nodes[name].ready and not (name in pods and pods[name].ready)),
        outdated_elsewhere=tuple(name for name in old if name not in chosen_nodes),
        proven=any(name in pods for name in done),
    )


def decide(
    picture: RolloutPicture, evaluation: Evaluation, state: RollState, options: RollOptions, waited: Mapping[str, float]
) -> RollStep:
    """The next step. state: of find_state. waited: seconds by Node that is pending, and NO_NODE: since no pod could be replaced."""
    if picture.daemon_set is None:
        return RollStep("stop", message="the DaemonSet does not exist")
    overwritten = next((problem.message for problem in evaluation.problems if problem.id == "CSI-G06"), "")
    if overwritten:
        return RollStep("stop", message=overwritten)
    if not picture.daemon_set.processed or not picture.daemon_set.revision:
        if waited.get(NO_NODE, 0.0) > options.node_timeout:
            return RollStep("stop", message="the DaemonSet controller does not process it; check that it runs")
        return RollStep("wait")
    verdicts = {node.node: node for node in evaluation.nodes}
    failed = _find_failure(state, verdicts, options, waited)
    if failed is not None:
        return failed
    if not state.old and not state.pending:
        return RollStep("finish", nodes=state.outdated_elsewhere)
    batch = next(
        (
            candidate
            for candidate in split_batches(state.order, options.batches)
            if not state.done.issuperset(candidate)
        ),
        (),
    )
    # A Node of a later batch whose pod a killed run replaced comes first.
    if not state.pending.issubset(batch):
        return RollStep("wait")
    return _replace(state, verdicts, options, waited, batch)


def _replace(
    state: RollState,
    verdicts: Mapping[str, NodeEvaluation],
    options: RollOptions,
    waited: Mapping[str, float],
    batch: Sequence[str],
) -> RollStep:
    """The pods of a batch that may be deleted now: those that do not work anyway, and as many others as may be unavailable."""
    names = [name for name in batch if name in state.old]
    for name in names:
        if problem := find_problem(verdicts.get(name)):
            return RollStep("stop", nodes=(name,), message=f"{problem}; its plugin is not changed")
    free = count_allowed_unavailable(options.max_unavailable, len(state.expected)) - len(
        state.unavailable | state.pending
    )
    chosen = [name for name in names if name in state.unavailable]
    chosen += [name for name in names if name not in state.unavailable][: max(0, free)]
    if chosen:
        return RollStep("replace", pods=tuple(state.old[name] for name in chosen), nodes=tuple(chosen))
    if not state.pending and waited.get(NO_NODE, 0.0) > options.node_timeout:
        unavailable = tuple(sorted(state.unavailable))
        message = (
            f"{', '.join(unavailable)} without a Ready plugin, expected at most {options.max_unavailable} "
            "(max_unavailable)"
        )
        return RollStep("stop", nodes=unavailable, message=message)
    return RollStep("wait")


def _find_failure(
    state: RollState, verdicts: Mapping[str, NodeEvaluation], options: RollOptions, waited: Mapping[str, float]
) -> RollStep | None:
    """Stop, or restore the former template, for a Node that does not work with the new one."""
    for name in sorted(state.pending):
        verdict = verdicts.get(name)
        red = verdict is not None and verdict.verdict == "red"
        late = waited.get(name, 0.0) > options.node_timeout
        if not red and not late:
            continue
        problems = [problem.message for problem in verdict.problems] if verdict is not None else []
        why = "; ".join(problems) or "it does not work"
        if late and not red:
            why += f" (after {options.node_timeout:.0f} s)"
        kind: Literal["restore", "stop"] = "stop" if state.proven or options.restores else "restore"
        return RollStep(kind, nodes=(name,), message=why)
    return None


def find_problem(verdict: NodeEvaluation | None) -> str:
    """What a new pod does not repair, empty if there is nothing."""
    return (
        ""
        if verdict is None
        else "; ".join(problem.message for problem in verdict.problems if problem.verdict == "red")
    )


def split_batches(nodes: Sequence[str], sizes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Nodes in batches of the given sizes, numbers or percentages of them all; the last size repeats.

    Whatever the sizes are, the first node is a batch of its own: the canary.
    """
    batches: list[tuple[str, ...]] = []
    start, number = 0, 0
    while start < len(nodes):
        size = count_share(sizes[min(number, len(sizes) - 1)], len(nodes)) if sizes else len(nodes)
        batches.append(tuple(nodes[start : start + size]))
        start, number = start + size, number + 1
    if batches and len(batches[0]) > 1:
        batches[0:1] = [batches[0][:1], batches[0][1:]]
    return tuple(batches)


def find_wrong_sizes(sizes: Sequence[str]) -> tuple[str, ...]:
    """The sizes that are neither a number above 0 nor a percentage."""
    return tuple(size for size in sizes if not _SIZE.fullmatch(size))


def count_share(size: str, of: int) -> int:
    """A number, or a percentage of a number rounded down as Ansible's serial does; at least one."""
    return max(1, int(size[:-1]) * of // 100 if size.endswith("%") else int(size))


def count_allowed_unavailable(max_unavailable: int | str, of: int) -> int:
    """How many nodes may be without a Ready plugin: a percentage rounded up, as the DaemonSet controller does."""
    text = str(max_unavailable).strip()
    number = read_number(text.removesuffix("%")) or 0
    return max(1, -(-number * of // 100) if text.endswith("%") else number)


def list_refusals(
    picture: RolloutPicture,
    evaluation: Evaluation,
    state: RollState,
    uses: Callable[[], Iterable[tuple[str, str]]],
) -> tuple[str, ...]:
    """What keeps the update from beginning, node by node. picture: with the DaemonSet as it would be.

    uses: Nodes with volumes of the driver in use, each with what shows it; read only when it matters.
    """
    verdicts = {node.node: node for node in evaluation.nodes}
    refusals = []
    for name in state.old:
        if problem := find_problem(verdicts.get(name)):
            refusals.append(
                f"{name}: {problem}, expected a node where a new plugin can start. Repair it first, or exclude it "
                "with --limit"
            )
    if state.down and not state.order:
        refusals.append(f"{', '.join(state.down)}: not Ready, expected a Ready node for the canary. Repair one first")
    losing = _find_unselected(picture)
    in_use = group_values(uses()) if any(SERVING_LABEL not in why for _name, why in losing) else {}
    for name, why in losing:
        if SERVING_LABEL in why:
            refusals.append(
                f"{name}: its plugin would be removed immediately, because csi-proxy does not serve there ({why}). "
                "Run enable_csi with that host in the inventory and without --limit; it first installs "
                "csi-proxy and checks its pipes"
            )
        elif name in in_use:
            signs = ", ".join(in_use[name][:_SHOWN])
            refusals.append(
                f"{name}: its plugin would be removed immediately ({why}) although volumes are in use there: "
                f"{signs}. Move these workloads first, or extend the DaemonSet to it"
            )
    return tuple(refusals)


def _find_unselected(picture: RolloutPicture) -> list[tuple[str, str]]:
    """Nodes that have a pod and that the DaemonSet no longer selects: its controller removes the pod under every strategy."""
    if picture.daemon_set is None:
        return []
    nodes = {node.name: node for node in picture.nodes}
    names = sorted({pod.node for pod in picture.pods if not pod.deleting and pod.node in nodes})
    reasons = [(name, explain_exclusion(picture.daemon_set, nodes[name])) for name in names]
    return [(name, why) for name, why in reasons if why is not None]
