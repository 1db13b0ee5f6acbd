# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop of a rolling update, its end, and the template that failed. Observes and changes through interfaces; no I/O here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import DecodeError, read_object
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import render_progress, spell
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    NO_NODE,
    RollOptions,
    RollState,
    RollStep,
    decide,
    find_state,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import (
    Evaluation,
    GateRules,
    evaluate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import (
    read_revision_hash,
    read_template,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate import (
    REPORT_INTERVAL,
    WatchedRollout,
    watch_rollout,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts

# On a DaemonSet: the template that failed on a canary, with that Node. Runs without that Node do not try it again.
FAILED = "kubewin.io/failed-template"

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FailedTemplate:
    """A template that failed on a canary. template: as of facts.template_hash. message: what failed there."""

    template: str
    node: str
    message: str

    def text(self) -> str:
        """As the annotation."""
        return json.dumps({"template": self.template, "node": self.node, "message": self.message})

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any]) -> FailedTemplate | None:
        """Read the annotation of a DaemonSet; None without one, or with one that is not of this collection."""
        text = (daemon_set["metadata"].get("annotations") or {}).get(FAILED)
        try:
            found = read_object(text) if text else {}
            return cls(str(found["template"]), str(found["node"]), str(found["message"]))
        except (DecodeError, KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class RollResult:
    """The end of a rolling update. replaced: Nodes whose pod was deleted, in order. failed: what the canary failed with, None if it works."""

    step: RollStep
    state: RollState
    evaluation: Evaluation
    replaced: tuple[str, ...] = ()
    failed: FailedTemplate | None = None

    def as_dict(self) -> dict[str, Any]:
        """For a task's result."""
        return {
            "step": self.step.kind,
            "states": describe_nodes(self.state, self.evaluation),
            "left": list(self.state.left),
            "down": list(self.state.down),
            "replaced": list(self.replaced),
        }


def describe_nodes(state: RollState, evaluation: Evaluation) -> list[dict[str, str]]:
    """Each Node of the run, in order: old, moving, down or done, and what a moving one lacks."""
    why = {node.node: "; ".join(lack.message for lack in node.lacks) for node in evaluation.nodes}
    rows = [(name, state.of_node(name)) for name in (*state.order, *state.down)]
    return [{"node": name, "state": word, "why": why.get(name, "") if word == "moving" else ""} for name, word in rows]


class Executor(Protocol):
    """What may be done to pods."""

    def find_kept(self) -> Mapping[str, str]:
        """Nodes whose plugin must not be replaced now, with the reason; read again."""

    def delete(self, pods: Sequence[PodFacts]) -> Sequence[PodFacts]:
        """Delete these pods, unless they changed since they were read; returns the deleted ones."""


def roll_pods(
    view: WatchedRollout, executor: Executor, options: RollOptions, rules: GateRules, notify: Notify,
    clock: Callable[[], float] = time.monotonic,
) -> RollResult:  # fmt: skip
    """Replace pods until the update is finished, or must stop or be restored."""
    since: dict[str, float] = {}
    deleted: set[str] = set()
    replaced: list[str] = []
    progress = _Progress(notify, options, clock)
    for picture in watch_rollout(view):
        evaluation, now = evaluate(picture, rules), clock()
        state = find_state(picture, evaluation, options, frozenset(deleted))
        processed = picture.daemon_set is not None and picture.daemon_set.observed
        since = {name: since.get(name, now) for name in (processed and state.pending) or (NO_NODE,)}
        waited = {name: now - began for name, began in since.items()}
        step = decide(picture, evaluation, options, waited, frozenset(deleted))
        if step.kind in ("restore", "stop"):
            # With everything that explains it.
            view.explain()
            explained = view.picture()
            evaluation = evaluate(explained, rules)
            step = decide(explained, evaluation, options, waited, frozenset(deleted))
        progress.report(state, evaluation, waited)
        if step.kind == "replace":
            kept = executor.find_kept()
            refused = [f"{name}: {kept[name]}" for name in step.nodes if name in kept]
            if refused:
                step = RollStep("stop", nodes=step.nodes, message="; ".join(refused))
            else:
                deleted_pods = executor.delete(step.pods)
                deleted.update(pod.uid for pod in deleted_pods)
                replaced += [pod.node for pod in deleted_pods]
        if step.kind not in ("wait", "replace"):
            return RollResult(step, state, evaluation, tuple(replaced))
    raise AssertionError("a rollout is watched until it ends")


class _Progress:
    """Reports Nodes whose state changed, and now and then what is waited for."""

    def __init__(self, notify: Notify, options: RollOptions, clock: Callable[[], float]) -> None:
        self._notify, self._options, self._clock = notify, options, clock
        self._began = self._said = clock()
        self._known: dict[str, str] = {}

    def report(self, state: RollState, evaluation: Evaluation, waited: Mapping[str, float]) -> None:
        now, nodes = self._clock(), describe_nodes(state, evaluation)
        changed = [node for node in nodes if self._known.get(node["node"], "old") != node["state"]]
        gone = sorted(set(self._known).difference(node["node"] for node in nodes))
        if not changed and not gone and now - self._said < REPORT_INTERVAL:
            return
        self._said, self._known = now, {node["node"]: node["state"] for node in nodes}
        done = sum(node["state"] == "done" for node in nodes)
        self._notify(f"{spell(now - self._began)}: {done} of {len(nodes)} nodes have the new plugin")
        words = {"moving": "pod replaced", "done": "works", "old": "as before", "down": "not Ready, skipped"}
        for node in changed:
            self._notify(f"  {node['node']}: {words[node['state']]}" + (f" ({node['why']})" if node["why"] else ""))
        for name in gone:
            self._notify(
                f"  {name}: the DaemonSet no longer places a pod there, for example because its Node was deleted"
            )
        if not changed and not gone:
            limit = self._options.node_timeout
            for node in (node for node in nodes if node["state"] == "moving"):
                self._notify(
                    f"  waiting for {node['node']}, {render_progress(waited.get(node['node'], 0), limit)} ({node['why']})"
                )


def choose_former(revisions: Sequence[Mapping[str, Any]], pods: Sequence[PodFacts]) -> dict[str, Any] | None:
    """The template to restore. revisions: the DaemonSet's own, the newest, which failed, first."""
    others = {read_revision_hash(revision): revision for revision in revisions[1:]}
    ready = [pod.revision for pod in pods if pod.ready and not pod.deleting]
    for hashes in (ready, [pod.revision for pod in pods], list(others)):
        for key, revision in others.items():
            if key in hashes:
                return read_template(revision)
    return None
