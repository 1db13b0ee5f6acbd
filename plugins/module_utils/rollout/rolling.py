# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One window of a change node by node: observe, take the next step, watch its result.

Observations come from a View, changes go through the executor, time is a clock; nothing here does I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import (
    NO_NODE,
    Goal,
    Standing,
    Step,
    decide,
    standing,
)
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.order import allowed_away
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.verdict import Evaluation
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.window import COALESCE, Watched

_LOOK_AGAIN = 1.0


class Executor(Protocol):
    """What may be done."""

    def replace(self, pods: Sequence[PodFacts], expected: Sequence[str], allowed: int) -> Sequence[PodFacts]:
        """Delete these pods, so that the DaemonSet makes new ones there; those that may go beside what other runs do.

        expected: the nodes that the DaemonSet goes to. allowed: how many of them may be without a Ready plugin.
        """

    def taken_over(self) -> str:
        """The other run that makes this change now; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a window ended. waited: seconds by node that is moving. replaced: nodes whose pods were deleted in it."""

    step: Step
    standing: Standing
    evaluation: Evaluation
    waited: Mapping[str, float]
    replaced: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For a module's result."""
        return {
            "step": self.step.kind,
            "message": self.step.message,
            "nodes": list(self.step.nodes),
            "order": list(self.standing.order),
            "states": states(self.standing, self.evaluation),
            "left": list(self.standing.left),
            "waited": dict(self.waited),
            "replaced": list(self.replaced),
        }


def states(now: Standing, evaluation: Evaluation) -> list[dict[str, str]]:
    """Each node of the run, in order: old, moving or done, and what a moving one lacks."""
    why = {one.node: "; ".join(lack.message for lack in one.lacks) for one in evaluation.nodes}
    return [
        {
            "node": name,
            "state": "old" if name in now.old else "moving" if name in now.moving else "done",
            "why": why.get(name, "") if name in now.moving else "",
        }
        for name in now.order
    ]


def run(
    view: Watched, executor: Executor, goal: Goal, rules: Rules, waited: Mapping[str, float], seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Report:  # fmt: skip
    """Go on until a step ends the change, a node has come to its end, or the time is over."""
    view.load()
    view.watch(seconds)
    started = clock()
    since = {name: started - spent for name, spent in waited.items()}
    deleted: set[str] = set()
    replaced: list[str] = []
    first: Standing | None = None
    before: tuple[frozenset[str], tuple[str, ...]] | None = None
    ends = started + seconds
    changed_at: float | None = None

    def ended(step: Step) -> Report:
        return Report(step, stands, evaluation, spent, tuple(replaced))

    while True:
        now = clock()
        picture = view.picture()
        evaluation = evaluate(picture, rules)
        gone = frozenset(deleted)
        stands = standing(picture, evaluation, goal, gone)
        first = first or stands
        # The timeout does not run while another run makes progress.
        others = (stands.away, stands.left)
        if before not in (None, others):
            since.pop(NO_NODE, None)
        before = others
        still = stands.moving or (frozenset() if stands.done.issuperset(stands.order) else frozenset({NO_NODE}))
        since = {name: since.get(name, now) for name in still}
        spent = {name: now - then for name, then in since.items()}
        step = decide(picture, evaluation, goal, spent, gone)
        if step.kind == "replace" and (other := executor.taken_over()):
            return ended(Step("stop", message=other))
        if step.kind in ("back", "stop"):
            # Said with everything that explains it.
            view.explain()
            picture = view.picture()
            evaluation = evaluate(picture, rules)
            step = decide(picture, evaluation, goal, spent, gone)
        if step.kind not in ("wait", "replace"):
            return ended(step)
        gone_now: Sequence[PodFacts] = ()
        if step.kind == "replace":
            gone_now = executor.replace(
                step.pods, stands.expected, allowed_away(goal.max_unavailable, len(stands.expected))
            )
            deleted.update(pod.uid for pod in gone_now)
            replaced += [pod.node for pod in gone_now]
            if not gone_now and spent.get(NO_NODE, 0.0) > goal.node_timeout:
                message = (
                    f"other runs keep {goal.max_unavailable} nodes without a Ready plugin, the limit (max_unavailable)"
                )
                return ended(Step("stop", nodes=step.nodes, message=message))
        if changed_at is None and (stands.done != first.done or gone_now):
            changed_at = now
        until = ends if changed_at is None else min(ends, changed_at + COALESCE)
        if now >= until:
            return ended(Step("wait"))
        view.wait(min(_LOOK_AGAIN, until - now))
