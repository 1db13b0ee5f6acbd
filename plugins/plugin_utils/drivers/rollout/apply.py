# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roll a DaemonSet under OnDelete: replace the canary's pod, then the others in batches; restore the template if the canary fails.

One run at a time holds the Lease of the DaemonSet and replaces the pods of its own Nodes. Kubernetes' own RollingUpdate cannot do this: a
Ready plugin pod on Windows is not a registered driver, and the controller picks the order.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base.decode import DecodeError, read_object
from ...base.waiting import WaitCondition, Waits, spell
from ...kube import kinds
from ...kube.apply import Applier
from ...kube.client import Client
from ...kube.errors import ClusterError
from ...kube.fencing import Reference
from ...kube.holder import identify_process
from ...kube.labels import MANAGED_BY, MANAGER, MODE, build_selector
from ...kube.lease import Lease, LeaseSubject
from ...kube.modify import modify
from ...kube.pod import PodFacts
from .decide import NO_NODE, RollOptions, RollState, RollStep, decide, find_state
from .evaluate import Evaluation, GateRules, evaluate
from .gate import watch_rollout
from .observe import RolloutView
from .snapshot import hash_template, list_own_revisions, read_revision_hash, read_template

# On a DaemonSet: the template that failed on a canary, with that Node. Runs without that Node do not try it again.
FAILED = "kubewin.io/failed-template"
# Annotations of a DaemonSet that describe its template, which has them too.
_OF_TEMPLATE = (MODE, "kubewin.io/driver-version")

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FailedTemplate:
    """A template that failed on a canary. template: as of facts.hash_template. message: what failed there."""

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
            annotation = read_object(text) if text else {}
            return cls(str(annotation["template"]), str(annotation["node"]), str(annotation["message"]))
        except (DecodeError, KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class RollResult:
    """The end of a rolling update. replaced: Nodes whose pod was deleted, in order. failed: what the canary failed with, None if it works."""

    step: RollStep
    state: RollState
    replaced: tuple[str, ...] = ()
    failed: FailedTemplate | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "step": self.step.kind,
            "left": list(self.state.outdated_elsewhere),
            "down": list(self.state.down),
            "replaced": list(self.replaced),
        }


def roll_pods(
    view: RolloutView, options: RollOptions, rules: GateRules, delete: Callable[[PodFacts], bool], notify: Notify,
    clock: Callable[[], float] = time.monotonic,
) -> RollResult:  # fmt: skip
    """Replace pods until the update is finished, or must stop or be restored. delete: deletes a pod; False if it changed since it was read."""
    since: dict[str, float] = {}
    deleted: set[str] = set()
    replaced: list[str] = []
    waits, began, done = Waits(notify, clock), clock(), -1
    for picture in watch_rollout(view):
        evaluation, evaluated_at = evaluate(picture, rules), clock()
        state = find_state(picture, evaluation, options, frozenset(deleted))
        processed = picture.daemon_set is not None and picture.daemon_set.processed
        since = {name: since.get(name, evaluated_at) for name in (processed and state.pending) or (NO_NODE,)}
        waited = {name: evaluated_at - began for name, began in since.items()}
        step = decide(picture, evaluation, state, options, waited)
        if step.kind in ("restore", "stop"):
            # With everything that explains it.
            view.explain()
            explained = view.picture()
            evaluation = evaluate(explained, rules)
            state = find_state(explained, evaluation, options, frozenset(deleted))
            step = decide(explained, evaluation, state, options, waited)
        if done != len(state.done):
            done, count = len(state.done), len(state.order) + len(state.down)
            notify(f"{spell(evaluated_at - began)}: {done} of {count} nodes have the new plugin")
        waits.report(*_list_waits(evaluation, state, options, waited))
        if step.kind == "replace":
            deleted_pods = [pod for pod in step.pods if delete(pod)]
            deleted.update(pod.uid for pod in deleted_pods)
            replaced += [pod.node for pod in deleted_pods]
        if step.kind not in ("wait", "replace"):
            return RollResult(step, state, tuple(replaced))
    raise AssertionError("a rollout is watched until it ends")


def _list_waits(
    evaluation: Evaluation, state: RollState, options: RollOptions, waited: Mapping[str, float]
) -> Iterator[WaitCondition]:
    """What is waited for: Nodes whose pod was replaced, with what each lacks; and Nodes that are skipped."""
    for node in evaluation.nodes:
        if node.node in state.pending:
            why = "; ".join(problem.message for problem in node.problems)
            yield WaitCondition(f"  {node.node}: {why}", waited.get(node.node, 0.0), options.node_timeout)
    for name in state.down:
        yield WaitCondition(f"  {name}: not Ready, skipped", 0.0, 0.0)


def choose_former(revisions: Sequence[Mapping[str, Any]], pods: Sequence[PodFacts]) -> dict[str, Any] | None:
    """The template to restore. revisions: the DaemonSet's own, the newest, which failed, first."""
    former_revisions = {read_revision_hash(revision): revision for revision in revisions[1:]}
    ready = [pod.revision for pod in pods if pod.ready and not pod.deleting]
    for hashes in (ready, [pod.revision for pod in pods], list(former_revisions)):
        for key, revision in former_revisions.items():
            if key in hashes:
                return read_template(revision)
    return None


def make_roll_lease(client: Client, namespace: str, name: str, notify: Notify) -> Lease:
    """The Lease of a DaemonSet, which a run holds while it changes the DaemonSet and replaces its pods."""
    subject = LeaseSubject(
        namespace, f"kubewin-roll-{name}", {MANAGED_BY: MANAGER}, f"the update of DaemonSet {namespace}/{name}"
    )

    def list_written() -> Iterator[Reference]:
        """Name what a rolling update writes: the DaemonSet and its pods."""
        yield Reference(kinds.DAEMON_SET, name, namespace)
        daemon_set = client.get(kinds.DAEMON_SET, name, namespace)
        pods = client.list(kinds.POD, namespace, label_selector=build_selector(daemon_set)).items if daemon_set else ()
        for pod in pods:
            yield Reference(kinds.POD, pod["metadata"]["name"], namespace)

    return Lease(client, subject, identify_process(os.getpid()), notify, list_written=list_written)


class Roller:
    """Rolls one DaemonSet, and restores its former template if the canary fails.

    client: of the Lease's holder. observe: makes a view. definition: the DaemonSet as applied.
    """

    def __init__(
        self, client: Client, observe: Callable[[], RolloutView], definition: Mapping[str, Any], options: RollOptions,
        notify: Notify,
    ) -> None:  # fmt: skip
        self._client, self._observe, self._definition = client, observe, definition
        self._options, self._notify = options, notify
        self._name = str(definition["metadata"]["name"])
        self._namespace = str(definition["metadata"]["namespace"])

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
        result = self._roll(self._options, applied)
        if result.step.kind == "restore":
            return self._restore(result, hash_template(applied))
        if result.replaced and result.step.kind == "finish":
            self._annotate(None)
        return result

    def _roll(self, options: RollOptions, applied: Mapping[str, Any]) -> RollResult:
        rules = GateRules(template=hash_template(applied))
        return roll_pods(self._observe(), options, rules, self._delete, self._notify)

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
        restored = self._roll(replace(self._options, nodes=(node,), restores=True), outcome.changes[0].after)
        return replace(restored, failed=failed, replaced=(*result.replaced, *restored.replaced))

    def _annotate(self, failed: FailedTemplate | None) -> None:
        """Record the template that failed, or that none did."""

        def patch(live: dict[str, Any]) -> dict[str, Any]:
            if failed is None and FAILED not in (live["metadata"].get("annotations") or {}):
                return {}
            return {"metadata": {"annotations": {FAILED: failed and failed.text()}}}

        modify(self._client, kinds.DAEMON_SET, self._name, self._namespace, patch)

    def _find_former(self) -> dict[str, Any] | None:
        """The DaemonSet with the newest template, beside the one that failed, that Ready pods have, or any pod, or none."""
        live = self._client.get(kinds.DAEMON_SET, self._name, self._namespace)
        if live is None:
            return None
        selector = build_selector(live)
        pods = self._client.list(kinds.POD, self._namespace, label_selector=selector).items
        revisions = list_own_revisions(
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
