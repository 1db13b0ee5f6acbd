# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands the Nodes of a driver over from one node plugin to another, one after the other, under a Lease."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base.waiting import WaitCondition, Waits
from ...catalog.base import Driver
from ...kube import kinds
from ...kube.apply import Applier
from ...kube.client import Client
from ...kube.errors import ClusterError
from ...kube.labels import build_selector
from ...kube.permissions import require_roles
from ...kube.pod import PodFacts
from ..observed_uses import list_applied_objects, wait_until_gone
from ..rollout.evaluate import Evaluation, GateRules
from ..rollout.gate import wait_for_gate
from ..rollout.observe import RolloutTarget, RolloutView
from .apply import HandoverExecutor, make_handover_lease
from .decide import Handover, HandoverSide, WaitingNode, list_excluded_nodes, plan_handover

# What volumes, claims and any node plugin of the driver stand on: it stays when ours goes.
KEPT_KINDS = (kinds.STORAGE_CLASS, kinds.CSI_DRIVER, kinds.CONFIG_MAP)

# Seconds that a restored plugin may take before the error is reported anyway.
_RESTORE_SECONDS = 120.0

# A pod that has not run yet.
_NOT_STARTED = ("", 0)


class HandoverRun:
    """One hand-over. definitions: the objects of this collection's node plugin, none to_platform. options: of the module handover."""

    def __init__(
        self,
        client: Client,
        driver: Driver,
        definitions: Sequence[dict[str, Any]],
        options: Mapping[str, Any],
        notify: Callable[[str], None],
    ) -> None:
        self._client = client
        self._driver = driver
        self._options = options
        self._notify = notify
        self._definitions = definitions
        plugin = next((item for item in definitions if item["kind"] == "DaemonSet"), None)
        self._executor = HandoverExecutor(client, driver, plugin, notify)

    def require_permissions(self, plan: Handover) -> None:
        """Refuse a hand-over that would stop half way. ClusterError as of `require_roles`."""
        if not plan.nodes:
            return
        namespaces = [plan.namespace or self._driver.namespace]
        if plan.other is not None and self._options["restart_pod"]:
            namespaces.append(plan.other.namespace)
        handover = [("kubewin-csi-handover", namespace) for namespace in dict.fromkeys(namespaces)]
        require_roles(self._client, [("kubewin-csi", None), *handover], "a hand-over")

    def run(self, plan: Handover) -> tuple[bool, list[str]]:
        """Hand all Nodes over under the Lease; returns as `finish` does. plan: made before the Lease is held."""
        namespace = plan.namespace or self._driver.namespace
        if self._client.get(kinds.NAMESPACE, namespace) is None:
            # Nothing of this collection can be there.
            return self.finish(plan)
        lease = make_handover_lease(self._client, namespace, self._driver, self._notify)
        with lease.hold(self._client) as bound:
            # Planned again: another run may have changed it before this one held the Lease.
            result = HandoverRun(bound, self._driver, self._definitions, self._options, self._notify).hand_over_all()
            # A run that lost it did not do all of this itself.
            lease.confirm()
        return result

    def hand_over_all(self) -> tuple[bool, list[str]]:
        """Hand all Nodes over; returns as `finish` does. The client is bound to the Lease."""
        plan = self.read_plan()
        changed = bool(plan.nodes)
        if changed and self._options["direction"] == "to_kubewin":
            self.adopt_pods()
        for node in plan.nodes:
            self._hand_over(node)
        for node in self._executor.list_cordoned_nodes():
            changed = self._executor.uncordon(node) or changed
        finished, kept = self.finish(self.read_plan())
        return changed or finished, kept

    def _hand_over(self, node: str) -> None:
        """Hand one Node over, cordoned. A failure leaves it cordoned if its former plugin cannot be restored."""
        try:
            self._executor.quiesce(node)
            self.hand_over_node(node)
        except ClusterError as error:
            stays = ""
            if self._options["direction"] == "to_platform" or error.reason == "busy":
                with contextlib.suppress(ClusterError):
                    self._executor.uncordon(node)
            else:
                stays = " It stays cordoned until a run succeeds. To return to the replaced plugin, see the guide of handover."
            raise ClusterError(f"Node {node}: {error}{stays}", error.reason, error.status) from error
        self._executor.uncordon(node)

    def read_plan(self) -> Handover:
        plan = plan_handover(self._options["direction"], self._executor.observe(), self._options["replace"])
        if plan.refusal:
            raise ClusterError(f"{self._driver.title} is not handed over: {plan.refusal}", "handover_refused")
        return plan

    def adopt_pods(self) -> None:
        """Install our DaemonSet in place of the other one, whose pods it adopts: no node loses its plugin."""
        namespace, dummy, name = self._options["replace"].partition("/")
        self._executor.orphan_pods(namespace, name, time.monotonic() + self._options["timeout"])
        self._executor.label_replaced_pods()
        Applier(self._client).apply(self._definitions)

    def hand_over_node(self, node: str) -> None:
        """Hand one Node over, unless it is done."""
        plan = self.read_plan()
        if node not in plan.nodes:
            return
        if self._options["direction"] == "to_kubewin":
            self._hand_to_kubewin(node)
        elif plan.other is not None:
            self._hand_to_platform(plan.other, node)

    def _hand_to_platform(self, other: HandoverSide, node: str) -> None:
        theirs = self._executor.read_daemon_set(other.namespace, other.name)
        own_plugin = self._executor.read_own_daemon_set()
        before = tuple(name for name in list_excluded_nodes(own_plugin) if name != node)
        # Looked at before it is sent away, which may be done at once.
        own_pods = self._executor.list_pods(own_plugin, node)
        waiting = WaitingNode.from_object(own_plugin)
        if waiting is None or waiting.node != node:
            runs = (
                {self._identify_run(pod) for pod in self._executor.list_pods(theirs, node)} - {_NOT_STARTED}
                if own_pods
                else set()
            )
            waiting = WaitingNode(node, frozenset(runs))
        deadline = time.monotonic() + self._options["timeout"]
        proven = False
        try:
            self._executor.exclude_nodes((*before, node), waiting)
            for pod in own_pods:
                self._executor.wait_for_end(pod, f"this collection's pod {pod['metadata']['name']}", deadline)
            if waiting.stale:
                self._wait_for_restart(theirs, node, waiting.stale, deadline)
            self._require_working(theirs, node, deadline)
            self._executor.exclude_nodes((*before, node), None)
            proven = True
        finally:
            # Whatever ended this, also an interruption: the node gets back the plugin that it had.
            if not proven:
                self._restore_own_plugin(before, node)

    def _wait_for_restart(
        self, theirs: Mapping[str, Any], node: str, stale: frozenset[tuple[str, int]], deadline: float
    ) -> None:
        """Wait until the other plugin has started anew: ours took its sockets along."""

        def has_restarted() -> bool:
            runs = {self._identify_run(pod) for pod in self._executor.list_pods(theirs, node)} - {_NOT_STARTED}
            return bool(runs) and not runs & stale

        if self._options["restart_pod"]:
            for pod in self._executor.list_pods(theirs, node):
                if self._identify_run(pod) in stale:
                    self._executor.delete(kinds.POD, pod)
        metadata = theirs["metadata"]
        self._executor.wait_until(
            f"the other plugin restarts on {node}",
            has_restarted,
            deadline,
            f"the pod of DaemonSet {metadata['namespace']}/{metadata['name']} on {node} ran beside this collection's "
            "pod and has not restarted since that ended, so it lost its sockets. Delete that pod, or set "
            "kubewin_handover_restart_pods=true",
        )

    @staticmethod
    def _identify_run(pod: Mapping[str, Any]) -> tuple[str, int]:
        """The identity of a pod's run; empty for a pod that has not run yet."""
        facts = PodFacts.from_object(pod)
        return (
            (facts.uid, sum(container.restarts for container in facts.containers)) if facts.started_at else _NOT_STARTED
        )

    def _restore_own_plugin(self, before: tuple[str, ...], node: str) -> None:
        self._executor.exclude_nodes(before, None)
        deadline = time.monotonic() + _RESTORE_SECONDS

        def is_running() -> bool:
            pods = self._executor.list_pods(self._executor.read_own_daemon_set(), node)
            return any(self._identify_run(pod) != _NOT_STARTED for pod in pods)

        condition = f"this collection's plugin runs on {node}"
        self._executor.wait_until(
            condition,
            is_running,
            deadline,
            f"this collection's plugin does not start on {node}. Run enable_csi with the tag gate",
        )

    def _hand_to_kubewin(self, node: str) -> None:
        deadline = time.monotonic() + self._options["timeout"]
        for pod in [pod for pod in self._executor.list_replaced_pods() if pod["spec"]["nodeName"] == node]:
            self._executor.delete(kinds.POD, pod)
            self._executor.wait_for_end(pod, f"pod {pod['metadata']['name']}", deadline)
        self._require_working(self._executor.read_own_daemon_set(), node, deadline)

    def _require_working(self, daemon_set: Mapping[str, Any], node: str, deadline: float) -> None:
        """Wait until the node's new plugin is Ready, stable and registered."""
        evaluation = self._evaluate(daemon_set, node, deadline)
        if evaluation.verdict not in ("green", "unproven"):
            problems = [problem for entry in evaluation.nodes for problem in entry.problems] + list(evaluation.problems)
            lacking = "; ".join(f"{problem.message} -> {problem.remedy}" for problem in problems)
            metadata = daemon_set["metadata"]
            raise ClusterError(
                f"DaemonSet {metadata['namespace']}/{metadata['name']} did not take over on {node}: {lacking}. No "
                "further node was changed.",
                "gate",
            )

    def _evaluate(self, daemon_set: Mapping[str, Any], node: str, deadline: float) -> Evaluation:
        metadata = daemon_set["metadata"]
        target = RolloutTarget(self._driver, metadata["namespace"], metadata["name"], build_selector(daemon_set))
        rules = GateRules(only=frozenset([node]))
        working = f"the plugin of DaemonSet {metadata['namespace']}/{metadata['name']} works on {node}"
        began, waits = time.monotonic(), Waits(self._notify)

        def report(evaluation: Evaluation) -> None:
            problems = "; ".join(problem.message for verdict in evaluation.nodes for problem in verdict.problems)
            text = f"waiting until {problems or working}"
            waits.report(WaitCondition(text, time.monotonic() - began, deadline - began))

        # Red may be the old plugin that is about to be deleted; it counts only if it lasts.
        return wait_for_gate(
            RolloutView(self._client, target, ()), rules, max(0.0, deadline - began), report,
            is_over=lambda evaluation: evaluation.verdict in ("green", "unproven"),
        )  # fmt: skip

    def finish(self, plan: Handover) -> tuple[bool, list[str]]:
        """Take away what is no longer needed; whether anything was changed, and what stays."""
        if plan.nodes:
            raise ClusterError(f"not finished: {', '.join(plan.nodes)} must still be handed over", "handover_refused")
        deadline = time.monotonic() + self._options["timeout"]
        if self._options["direction"] == "to_kubewin":
            changed = Applier(self._client).apply(self._definitions).changed
            self._executor.finish_record()
            return changed, []
        objects = list_applied_objects(self._client, self._driver)
        changed = False
        for kind, item in objects:
            if kind in KEPT_KINDS:
                continue
            metadata = item["metadata"]
            self._executor.delete(kind, item)
            changed = True
            if kind == kinds.DAEMON_SET and not wait_until_gone(self._client, item, deadline, self._notify):
                raise ClusterError(f"DaemonSet {metadata['namespace']}/{metadata['name']} is not deleted", "timeout")
        return changed, [f"{kind.kind} {item['metadata']['name']}" for kind, item in objects if kind in KEPT_KINDS]


def describe_handover(plan: Handover) -> dict[str, Any]:
    other_plugin = plan.other.path if plan.other is not None else ""
    summary = [*plan.lines]
    summary.append("still to hand over: " + (", ".join(plan.nodes) or "none"))
    if plan.done:
        summary.append("handed over: " + ", ".join(plan.done))
    return {"nodes": list(plan.nodes), "done": list(plan.done), "other": other_plugin, "summary": summary}
