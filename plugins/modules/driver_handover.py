#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_handover
short_description: Hand a driver's Windows nodes over from one node plugin to another, node by node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Hands the Nodes over, one after the other, between this collection's node plugin and another one. The playbook
    C(kubewin.csi.handover) runs this module.
  - On each node the old plugin leaves before the new one starts, because the two share sockets. The next node follows after the new
    plugin is Ready and registered.
  - Never writes objects of an operator or add-on. Replaces a DaemonSet that another user installed only if O(replace) names it.
  - Holds the Lease C(kubewin-handover-DRIVER) in the namespace of this collection's node plugin. Another run fails while the Lease is
    renewed, and takes it over once it expires. A run that lost its Lease makes no further changes.
  - A run that is interrupted restores the former plugin of the node in progress. If it is killed, the next run finishes the
    hand-over.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.driver.named
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; O(step=run) then reports whether it would change something.
    support: full
  diff_mode:
    description: Will not return details about what has changed.
    support: none
options:
  direction:
    description:
      - V(to_platform) replaces this collection's node plugin by another one, such as a platform's.
      - V(to_kubewin) replaces another node plugin by this collection's.
    type: str
    required: true
    choices: [to_platform, to_kubewin]
  replace:
    description:
      - The other DaemonSet, as namespace/name. Required with O(direction=to_kubewin), and with O(direction=to_platform) if several
        DaemonSets provide the driver.
    type: str
    default: ''
  step:
    description:
      - V(plan) plans and changes nothing.
      - V(run) hands all Nodes over, then removes objects that are no longer needed, or restores the update strategy of the DaemonSet.
    type: str
    default: plan
    choices: [plan, run]
  quiesce:
    description: Whether to cordon each Node and to wait for volume operations in flight before its plugin changes.
    type: bool
    default: true
  quiesce_timeout:
    description: Timeout in seconds for these volume operations.
    type: int
    default: 300
  definition:
    description: Objects of this collection's node plugin, as the role renders them. Used with O(direction=to_kubewin).
    type: raw
  timeout:
    description: Timeout in seconds for the registration of the new plugin on the node. After it, the old plugin is restored.
    type: int
    default: 600
  stable_for:
    description: Seconds that a restarted plugin pod must be Ready.
    type: int
    default: 10
  restart_pod:
    description:
      - With O(direction=to_platform), delete the platform's pod on the node if it ran beside this collection's pod, after that pod is
        gone. The leaving plugin removes the shared sockets, and a pod without a liveness probe does not detect that.
    type: bool
    default: false
  progress_file:
    description: Internal. Progress messages are appended to this file; the module ends when the file is removed.
    type: path
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.driver_remove
"""

EXAMPLES = r"""
- name: Plan a hand-over to the platform
  kubewin.csi.driver_handover:
    driver: azure_file
    direction: to_platform
  register: planned
"""

RETURN = r"""
handover:
  description: The hand-over.
  returned: success
  type: dict
  contains:
    nodes:
      description: Nodes that remain to be handed over, in order.
      type: list
      elements: str
    done:
      description: The Nodes that have been.
      type: list
      elements: str
    other:
      description: The other DaemonSet as namespace/name, empty if it does not exist.
      type: str
    summary:
      description: Lines for display.
      type: list
      elements: str
kept:
  description: Objects of this collection that remain after V(to_platform), because volumes and claims refer to them.
  returned: step run
  type: list
  elements: str
reason:
  description:
    - Why the task failed. V(handover_refused), V(locked), V(taken_over), V(busy), V(gate), V(timeout), V(interrupted) or a word of
      M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: handover_refused
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.declared import DRIVER
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import applied_for, wait_until_gone
from ansible_collections.kubewin.csi.plugins.module_utils.handover.apply import Stage, handover_lease
from ansible_collections.kubewin.csi.plugins.module_utils.handover.decide import (
    Handover,
    Waiting,
    decide,
    kept_off,
    on_delete,
)
from ansible_collections.kubewin.csi.plugins.module_utils.handover.needs import ROLES, needs
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import documents
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import selector_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import bind_client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter, watch_over
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.observe import Target, View
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.verdict import Evaluation
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.window import run

ARGUMENT_SPEC = {**DRIVER, **documented(DOCUMENTATION)}

# What volumes, claims and any node plugin of the driver stand on: it stays when ours goes.
STAYS = (kinds.STORAGE_CLASS, kinds.CSI_DRIVER, kinds.CONFIG_MAP)

# Seconds that a restored plugin may take before the error is reported anyway.
_BACK = 120.0

# A pod that has not run yet.
_NEVER = ("", 0)


class Steps:
    """The steps of one hand-over."""

    def __init__(
        self, client: Client, driver: Driver, params: Mapping[str, Any], notify: Callable[[str], None]
    ) -> None:
        self._unbound = client
        self._client = client
        self._driver = driver
        self._params = params
        self._notify = notify
        self._definition = documents(params["definition"]) if params["definition"] else []
        self._plugin = next((item for item in self._definition if item["kind"] == "DaemonSet"), None)
        self._stage = Stage(client, driver, self._plugin, notify)

    def require_permissions(self, made: Handover) -> None:
        """Refuse a hand-over that would stop half way. made: the plan. ClusterError as of `require`."""
        if not made.nodes:
            return
        other = f"{made.other.namespace}/{made.other.name}" if made.other is not None else ""
        restarts = bool(self._params["restart_pod"])
        direction, namespace = self._params["direction"], made.namespace or self._driver.namespace
        desired = needs(self._driver, direction, namespace, other, restarts=restarts)
        require(self._unbound, desired, "a hand-over", ROLES)

    def run(self, made: Handover) -> tuple[bool, list[str]]:
        """Hand all Nodes over under the Lease; returns as `finish` does. made: the plan, made before the Lease is held."""
        namespace = made.namespace or self._driver.namespace
        if self._unbound.get(kinds.NAMESPACE, namespace) is None:
            # Nothing of this collection can be there.
            return self.finish(made)
        lease = handover_lease(self._unbound, namespace, self._driver, self._notify)
        try:
            lease.take()
        except ClusterError as error:
            raise ClusterError(f"{error}. {self._state(made)}", error.reason, error.status) from error
        try:
            self._client = bind_client(self._unbound, lease.confirm)
            self._stage = Stage(self._client, self._driver, self._plugin, self._notify)
            # Planned again: another run may have changed it before this one held the Lease.
            result = self._hand_over_all()
            # A run that lost it did not do all of this itself.
            lease.confirm()
            return result
        finally:
            lease.end(unanswered=self._client.has_unanswered_writes)

    def _hand_over_all(self) -> tuple[bool, list[str]]:
        made = self.decided()
        changed = self.begin(made)
        for node in made.nodes:
            changed = self._change(node) or changed
        for node in self._stage.cordoned_nodes():
            changed = self._stage.uncordon(node) or changed
        finished, kept = self.finish(self.decided())
        return changed or finished, kept

    def _change(self, node: str) -> bool:
        """Hand one Node over, cordoned. A failure leaves it cordoned if its former plugin cannot be restored."""
        try:
            if self._params["quiesce"]:
                self._stage.quiesce(node, float(self._params["quiesce_timeout"]), self._notify)
            changed = self.node(self.decided(), node)
        except ClusterError as error:
            stays = ""
            if self._params["direction"] == "to_platform" or error.reason == "busy":
                with contextlib.suppress(ClusterError):
                    self._stage.uncordon(node)
            elif self._params["quiesce"]:
                stays = " It stays cordoned until a run succeeds."
            raise ClusterError(f"Node {node}: {error}{stays}", error.reason, error.status) from error
        self._stage.uncordon(node)
        return changed

    def _state(self, made: Handover) -> str:
        """The state of the Nodes, for the message of a run that may not change them."""
        parts = {
            "handed over": made.done,
            "still to hand over": made.nodes,
            "cordoned by a hand-over": self._stage.cordoned_nodes(),
        }
        return "; ".join(f"{part}: {', '.join(names) or 'none'}" for part, names in parts.items())

    def decided(self) -> Handover:
        """What is to be done now."""
        made = decide(self._params["direction"], self._stage.observe(), self._params["replace"])
        if made.refusal:
            raise ClusterError(f"{self._driver.title} is not handed over: {made.refusal}", "handover_refused")
        return made

    def begin(self, made: Handover) -> bool:
        """Prepare; whether anything was changed. No node loses its plugin by it."""
        if not made.nodes:
            return False
        if self._params["direction"] == "to_platform":
            before = self._stage.ours()
            return self._stage.keep_off(kept_off(before), Waiting.from_object(before))
        namespace, dummy, name = self._params["replace"].partition("/")
        self._stage.orphan(namespace, name, time.monotonic() + self._params["timeout"])
        self._stage.mark()
        ready = [on_delete(item) if item["kind"] == "DaemonSet" else item for item in self._definition]
        return Applier(self._client).apply(ready).changed or made.other is not None

    def node(self, made: Handover, node: str) -> bool:
        """Hand one Node over; whether there was anything to do."""
        if node not in made.nodes:
            if node in made.done:
                return False
            raise ClusterError(
                f"Node {node} is not to be handed over, expected one of {', '.join(made.nodes) or 'none'}", "invalid"
            )
        return self._leave(made, node) if self._params["direction"] == "to_platform" else self._come(node)

    def _leave(self, made: Handover, node: str) -> bool:
        if made.other is None:
            raise ClusterError("no DaemonSet to hand over to", "handover_refused")
        theirs = self._stage.daemon_set(made.other.namespace, made.other.name)
        ours = self._stage.ours()
        before = tuple(name for name in kept_off(ours) if name != node)
        # Looked at before it is sent away, which may be done at once.
        mine = self._stage.pods(ours, node)
        waiting = Waiting.from_object(ours)
        if waiting is None or waiting.node != node:
            runs = {self._run(pod) for pod in self._stage.pods(theirs, node)} - {_NEVER} if mine else set()
            waiting = Waiting(node, frozenset(runs))
        deadline = time.monotonic() + self._params["timeout"]
        proven = False
        try:
            self._stage.keep_off((*before, node), waiting)
            for pod in mine:
                self._stage.wait_for_end(pod, f"this collection's pod {pod['metadata']['name']}", deadline)
            if waiting.stale:
                self._renewed(theirs, node, waiting.stale, deadline)
            self._gate(theirs, node, deadline)
            self._stage.keep_off((*before, node), None)
            proven = True
        finally:
            # Whatever ended this, also an interruption: the node gets back the plugin that it had.
            if not proven:
                self._bring_back(before, node)
        return True

    def _renewed(
        self, theirs: Mapping[str, Any], node: str, stale: frozenset[tuple[str, int]], deadline: float
    ) -> None:
        """Wait until the other plugin has started anew: ours took its sockets along."""

        def anew() -> bool:
            runs = {self._run(pod) for pod in self._stage.pods(theirs, node)} - {_NEVER}
            return bool(runs) and not runs & stale

        if self._params["restart_pod"]:
            for pod in self._stage.pods(theirs, node):
                if self._run(pod) in stale:
                    self._stage.delete(kinds.POD, pod)
        metadata = theirs["metadata"]
        self._stage.until(
            f"the other plugin restarts on {node}",
            anew,
            deadline,
            f"the pod of DaemonSet {metadata['namespace']}/{metadata['name']} on {node} ran beside this collection's "
            "pod and has not restarted since that ended, so it lost its sockets. Delete that pod, or set "
            "kubewin_handover_restart_pods=true",
        )

    @staticmethod
    def _run(pod: Mapping[str, Any]) -> tuple[str, int]:
        """The identity of a pod's run; empty for a pod that has not run yet."""
        facts = PodFacts.from_object(pod)
        return (facts.uid, sum(one.restarts for one in facts.containers)) if facts.started_at else _NEVER

    def _bring_back(self, before: tuple[str, ...], node: str) -> None:
        self._stage.keep_off(before, None)
        ends = time.monotonic() + _BACK

        def back() -> bool:
            pods = self._stage.pods(self._stage.ours(), node)
            return any(self._run(pod) != _NEVER for pod in pods)

        what = f"this collection's plugin runs on {node}"
        self._stage.until(
            what, back, ends, f"this collection's plugin does not start on {node}. Run enable_csi with the tag gate"
        )

    def _come(self, node: str) -> bool:
        deadline = time.monotonic() + self._params["timeout"]
        for pod in [pod for pod in self._stage.replaced() if pod["spec"]["nodeName"] == node]:
            self._stage.delete(kinds.POD, pod)
            self._stage.wait_for_end(pod, f"pod {pod['metadata']['name']}", deadline)
        self._gate(self._stage.ours(), node, deadline)
        return True

    def _gate(self, daemon_set: Mapping[str, Any], node: str, deadline: float) -> None:
        """Wait until the node's new plugin is Ready, stable and registered."""
        evaluation = self._evaluated(daemon_set, node, deadline)
        if evaluation.verdict not in ("green", "unproven"):
            lacks = [lack for one in evaluation.nodes for lack in one.lacks] + list(evaluation.trouble)
            lacking = "; ".join(f"{lack.message} -> {lack.remedy}" for lack in lacks)
            metadata = daemon_set["metadata"]
            raise ClusterError(
                f"DaemonSet {metadata['namespace']}/{metadata['name']} did not take over on {node}: {lacking}. No "
                "further node was changed",
                "gate",
            )

    def _evaluated(self, daemon_set: Mapping[str, Any], node: str, deadline: float) -> Evaluation:
        metadata = daemon_set["metadata"]
        target = Target(self._driver, metadata["namespace"], metadata["name"], selector_of(daemon_set))
        rules = Rules(only=frozenset([node]), stable_for=float(self._params["stable_for"]))
        what = f"the plugin of DaemonSet {metadata['namespace']}/{metadata['name']} works on {node}"
        began = time.monotonic()
        while True:
            self._stage.awaits(what, began, deadline)
            left = deadline - time.monotonic()
            evaluation = run(View(self._client, target, ()), rules, {}, max(0.0, min(10.0, left)))
            # Red may be the old plugin that is about to be deleted; it counts only if it lasts.
            if evaluation.verdict in ("green", "unproven") or left <= 0:
                return evaluation
            what = "; ".join(lack.message for one in evaluation.nodes for lack in one.lacks) or what

    def finish(self, made: Handover) -> tuple[bool, list[str]]:
        """Take away what is no longer needed; whether anything was changed, and what stays."""
        if made.nodes:
            raise ClusterError(f"not finished: {', '.join(made.nodes)} must still be handed over", "handover_refused")
        deadline = time.monotonic() + self._params["timeout"]
        if self._params["direction"] == "to_kubewin":
            changed = Applier(self._client).apply(self._definition).changed
            self._stage.finish_record()
            return changed, []
        found = applied_for(self._client, self._driver)
        changed = False
        for kind, item in found:
            if kind in STAYS:
                continue
            metadata = item["metadata"]
            self._stage.delete(kind, item)
            changed = True
            if kind == kinds.DAEMON_SET and not wait_until_gone(self._client, item, deadline, self._notify):
                raise ClusterError(f"DaemonSet {metadata['namespace']}/{metadata['name']} is not deleted", "timeout")
        return changed, [f"{kind.kind} {item['metadata']['name']}" for kind, item in found if kind in STAYS]


def report(made: Handover) -> dict[str, Any]:
    """The hand-over as a result."""
    other = f"{made.other.namespace}/{made.other.name}" if made.other is not None else ""
    summary = [*made.lines]
    summary.append("still to hand over: " + (", ".join(made.nodes) or "none"))
    if made.done:
        summary.append("handed over: " + ", ".join(made.done))
    return {"nodes": list(made.nodes), "done": list(made.done), "other": other, "summary": summary}


def main() -> None:
    """Observe, decide, apply one step."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    changed = False
    kept: list[str] = []
    left = "Run again to continue"
    if params["step"] == "run" and params["direction"] == "to_platform":
        left += ". The Node in progress has its former plugin, unless the new one already worked there"
    watch_over(params["progress_file"], left)
    with failing(ansible):
        driver = driver_named(params["driver"])
        steps = Steps(connect(ansible.params), driver, params, reporter(params["progress_file"]))
        made = steps.decided()
        if params["step"] == "run":
            steps.require_permissions(made)
        if params["step"] == "run" and ansible.check_mode:
            changed = bool(made.nodes)
        elif params["step"] == "run":
            changed, kept = steps.run(made)
            made = replace(steps.decided(), done=tuple(sorted({*made.nodes, *made.done})))
    ansible.exit_json(changed=changed, handover=report(made), kept=kept)


if __name__ == "__main__":
    main()
