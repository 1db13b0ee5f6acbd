# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roll a DaemonSet under OnDelete: apply its template, replace the canary's pod, then the others in batches; restore it if the canary fails.

One run at a time holds the Lease of the DaemonSet, reads everything again, and replaces the pods of its own Nodes. Kubernetes' own
RollingUpdate cannot do this: a Ready plugin pod on Windows is not a registered driver, and the controller picks the order.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ansible_collections.kubewin.csi.plugins.module_utils.decode import DecodeError, read_object
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.fencing import Reference
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MANAGED_BY, MANAGER, MODE, selector_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import About, Lease, bind_client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.decide import (
    NO_NODE,
    RollOptions,
    RollState,
    RollStep,
    decide,
    find_state,
)
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import (
    Picture,
    hash_of,
    kept_template,
    own_revisions,
    template_hash,
)
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.observe import View
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.verdict import Evaluation
from ansible_collections.kubewin.csi.plugins.module_utils.waiting import so_far, spell

# On a DaemonSet: the template that failed on a canary, with that Node. Runs without that Node do not try it again.
FAILED = "kubewin.io/failed-template"
# Annotations of a DaemonSet that describe its template, which has them too.
_OF_TEMPLATE = (MODE, "kubewin.io/driver-version")
# Seconds between two evaluations without a change, two progress lines without a change, and two tries to take the Lease.
_LOOK_AGAIN, _REPORT, _NEXT_TRY = 1.0, 30.0, 2.0

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FailedTemplate:
    """A template that failed on a canary. template: as of facts.template_hash. message: what failed there."""

    template: str
    node: str
    message: str

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


@contextmanager
def held_lease(client: Client, namespace: str, name: str, notify: Notify, patience: float) -> Iterator[Client]:
    """The Lease of a DaemonSet, as a client that writes only while it is held.

    Another run that holds it is waited for, at most `patience` seconds: ClusterError locked.
    """
    about = About(
        namespace, f"kubewin-roll-{name}", {MANAGED_BY: MANAGER}, f"the update of DaemonSet {namespace}/{name}"
    )
    reported: set[str] = set()

    def report(text: str) -> None:
        if not reported:
            notify(text)
        reported.add(text)

    late = (Reference(kinds.DAEMON_SET, name, namespace),)
    lease = Lease(client, about, holder_of(os.getpid()), report, late=lambda: late)
    ends = time.monotonic() + patience
    while True:
        try:
            lease.take()
            break
        except ClusterError as error:
            if error.reason != "locked" or time.monotonic() > ends:
                raise
            time.sleep(_NEXT_TRY)
    try:
        yield bind_client(client, lease.confirm)
    finally:
        lease.end()


class Watched(Protocol):
    """What is needed of a View."""

    def load(self) -> None:
        """Read everything once."""

    def watch(self, seconds: float) -> None:
        """Keep watching for that long, in the background."""

    def wait(self, seconds: float) -> None:
        """Take in changes, at the latest after that time."""

    def explain(self) -> None:
        """Read what explains trouble."""

    def picture(self) -> Picture:
        """The current state."""


class Executor(Protocol):
    """What may be done to pods."""

    def find_kept(self) -> Mapping[str, str]:
        """Nodes whose plugin must not be replaced now, with the reason; read again."""

    def delete(self, pods: Sequence[PodFacts]) -> Sequence[PodFacts]:
        """Delete these pods, unless they changed since they were read; returns the deleted ones."""


def follow(
    view: Watched, executor: Executor, options: RollOptions, rules: Rules, notify: Notify,
    clock: Callable[[], float] = time.monotonic,
) -> RollResult:  # fmt: skip
    """Replace pods until the update is finished, or must stop or be restored."""
    view.load()
    view.watch(float("inf"))
    since: dict[str, float] = {}
    deleted: set[str] = set()
    replaced: list[str] = []
    progress = _Progress(notify, options, clock)
    while True:
        picture, now = view.picture(), clock()
        evaluation = evaluate(picture, rules)
        state = find_state(picture, evaluation, options, frozenset(deleted))
        processed = picture.daemon_set is not None and picture.daemon_set.observed
        since = {name: since.get(name, now) for name in (processed and state.pending) or (NO_NODE,)}
        waited = {name: now - began for name, began in since.items()}
        step = decide(picture, evaluation, options, waited, frozenset(deleted))
        if step.kind in ("restore", "stop"):
            # With everything that explains it.
            view.explain()
            picture = view.picture()
            evaluation = evaluate(picture, rules)
            step = decide(picture, evaluation, options, waited, frozenset(deleted))
        progress.report(state, evaluation, waited)
        if step.kind == "replace":
            kept = executor.find_kept()
            refused = [f"{name}: {kept[name]}" for name in step.nodes if name in kept]
            if refused:
                step = RollStep("stop", nodes=step.nodes, message="; ".join(refused))
            else:
                gone = executor.delete(step.pods)
                deleted.update(pod.uid for pod in gone)
                replaced += [pod.node for pod in gone]
                if gone:
                    continue
        if step.kind not in ("wait", "replace"):
            return RollResult(step, state, evaluation, tuple(replaced))
        view.wait(_LOOK_AGAIN)


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
        if not changed and not gone and now - self._said < _REPORT:
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
                    f"  waiting for {node['node']}, {so_far(waited.get(node['node'], 0), limit)} ({node['why']})"
                )


class Roller:
    """Rolls one DaemonSet, and restores its former template if the canary fails.

    client: of the Lease's holder. observe: makes a View. definition: the DaemonSet as applied. kept: see Executor.find_kept.
    """

    def __init__(
        self, client: Client, observe: Callable[[], View], definition: Mapping[str, Any], options: RollOptions,
        kept: Callable[[], Mapping[str, str]], notify: Notify,
    ) -> None:  # fmt: skip
        self._client, self._observe, self._definition = client, observe, definition
        self._options, self._notify = options, notify
        self._kept: Callable[[], Mapping[str, str]] = kept
        self._name = str(definition["metadata"]["name"])
        self._namespace = str(definition["metadata"]["namespace"])

    def find_kept(self) -> Mapping[str, str]:
        """See Executor."""
        return self._kept()

    def delete(self, pods: Sequence[PodFacts]) -> Sequence[PodFacts]:
        """See Executor."""
        return [pod for pod in pods if self._delete(pod)]

    def _delete(self, pod: PodFacts) -> bool:
        try:
            self._client.delete(
                kinds.POD, pod.name, self._namespace, pod.uid, dry_run=False, policy="Background", version=pod.version
            )
        except ClusterError as error:
            if error.status != 409:
                raise
            return False
        return True

    def run(self, applied: Mapping[str, Any]) -> RollResult:
        """Replace the pods of this run's Nodes. applied: the DaemonSet as the API server returned it."""
        result = follow(self._observe(), self, self._options, Rules(template=template_hash(applied)), self._notify)
        if result.step.kind == "restore":
            return self._restore(result, template_hash(applied))
        if result.replaced and result.step.kind == "finish":
            self._annotate(None)
        return result

    def _restore(self, result: RollResult, template: str) -> RollResult:
        """Apply the former template again, and replace the canary's pod with it."""
        (node,) = result.step.nodes
        failed = FailedTemplate(template, node, result.step.message)
        self._notify(f"  {node}: {failed.message}; restoring the former plugin")
        # First, so that no run without this Node tries the template, also if this run is killed here.
        self._annotate(failed)
        former = self._find_former()
        if former is None:
            message = "the former template is no longer kept in the cluster, so it cannot be restored"
            return replace(result, step=RollStep("stop", nodes=(node,), message=message), failed=failed)
        outcome = Applier(self._client, force=True).apply([former])
        self._kept = dict
        restored = follow(
            self._observe(),
            self,
            replace(self._options, nodes=(node,), restores=True),
            Rules(template=template_hash(outcome.changes[0].after)),
            self._notify,
        )
        return replace(restored, failed=failed, replaced=(*result.replaced, *restored.replaced))

    def _annotate(self, failed: FailedTemplate | None) -> None:
        """Record the template that failed, or that none did."""

        def patch(live: dict[str, Any]) -> dict[str, Any]:
            if failed is None and FAILED not in (live["metadata"].get("annotations") or {}):
                return {}
            return {"metadata": {"annotations": {FAILED: failed and _as_text(failed)}}}

        modify(self._client, kinds.DAEMON_SET, self._name, self._namespace, patch)

    def _find_former(self) -> dict[str, Any] | None:
        """The DaemonSet with the newest template, beside the one that failed, that Ready pods have, or any pod, or none."""
        live = self._client.get(kinds.DAEMON_SET, self._name, self._namespace)
        if live is None:
            return None
        selector = selector_of(live)
        pods = self._client.list(kinds.POD, self._namespace, label_selector=selector).items
        revisions = own_revisions(
            live, self._client.list(kinds.CONTROLLER_REVISION, self._namespace, label_selector=selector).items
        )
        former = choose_former(revisions, [PodFacts.from_object(pod) for pod in pods])
        if former is None:
            return None
        restored = copy.deepcopy(dict(self._definition))
        annotations = restored["metadata"].setdefault("annotations", {})
        described = (former["metadata"].get("annotations") or {}).items()
        annotations.update({key: value for key, value in described if key in _OF_TEMPLATE})
        restored["spec"]["template"] = former
        return restored


def choose_former(revisions: Sequence[Mapping[str, Any]], pods: Sequence[PodFacts]) -> dict[str, Any] | None:
    """The template to restore. revisions: the DaemonSet's own, the newest, which failed, first."""
    others = {hash_of(revision): revision for revision in revisions[1:]}
    ready = [pod.revision for pod in pods if pod.ready and not pod.deleting]
    for hashes in (ready, [pod.revision for pod in pods], list(others)):
        for key, revision in others.items():
            if key in hashes:
                return kept_template(revision)
    return None


def _as_text(failed: FailedTemplate) -> str:
    return json.dumps({"template": failed.template, "node": failed.node, "message": failed.message})
