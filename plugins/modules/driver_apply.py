#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_apply
short_description: Apply a CSI driver's Windows node plugin and update it node by node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Applies a driver's objects with server-side apply, and changes only what differs.
  - If the pod template of a running DaemonSet of this collection changes, applies the new template under C(OnDelete), so that no pod is
    replaced yet. Replaces the pod of the first node, the canary. When the driver works there again, as M(kubewin.csi.node_rollout) checks it,
    replaces the pods of the other nodes in batches. Never leaves more nodes without a Ready plugin than C(maxUnavailable) of O(definition).
    At the end restores the update strategy of the definition.
  - Does not replace pods that have the desired template.
  - If the canary fails, applies the former template, which the cluster keeps as a ControllerRevision, restores the canary and fails. If a later
    node fails, stops, and the remaining nodes keep their former pods, until you fix the node or change the options and run again.
  - Records the state of the change in the annotation C(kubewin.io/rolling) of the DaemonSet. The next run finishes an interrupted one. Runs over
    different nodes can work at the same time; each replaces its own pods, together they respect C(maxUnavailable), and the last one restores
    the strategy. A run with another template takes over.
  - Requires the ClusterRole C(kubewin-csi-roll) in the driver's namespace to delete plugin pods. Deletes each pod by its uid.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.driver.apply
  - kubewin.csi.hosts
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report what would change, after the server's own dry run.
    support: full
  diff_mode:
    description: Returns what changed, or in check mode would change, without the server's bookkeeping.
    support: full
options:
  definition:
    description: Objects as YAML text with one or more documents, or as a list of dictionaries.
    type: raw
    required: true
  window:
    description: Internal. Seconds to watch in one call.
    type: int
    default: 30
  progress:
    description: Internal. Result of the previous call.
    type: dict
    default: {}
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.cluster_apply
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: Apply a node plugin, and update its pods node by node if it changed
  kubewin.csi.driver_apply:
    driver: vsphere
    definition: "{{ lookup('ansible.builtin.file', 'vsphere.yaml') }}"
    batches: ['1', '10%']
    node_timeout: 900
"""

RETURN = r"""
applied:
  description: Hash of the DaemonSet's pod template by driver, for O(kubewin.csi.node_rollout#module:applied).
  returned: success, unless in check mode
  type: dict
  sample: {vsphere: 9c1185a5c5e9fc54}
objects:
  description: Every object with its action, in check mode the planned one.
  returned: success
  type: list
  elements: dict
roll:
  description: Result by node, null if no running pod had to be replaced.
  returned: always, after the objects were read
  type: dict
  contains:
    step:
      description:
        - V(finish) if every pod has the desired template, V(rest) if only nodes of other runs lack it, V(stop) if a node failed, V(back) if
          the former template was restored, V(plan) in check mode.
      type: str
    states:
      description: Each node with C(node), C(state) (V(old), V(moving) or V(done)) and C(why).
      type: list
      elements: dict
    left:
      description: Nodes of other runs whose pod has another template.
      type: list
      elements: str
    replaced:
      description: Nodes whose pod was replaced, in order; in check mode the planned ones.
      type: list
      elements: str
reason:
  description:
    - Stable key of the failure. V(roll_refused), V(canary_failed), V(roll_stopped) or a word of
      M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: canary_failed
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import in_use
from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.module_utils.kube.apply import Applier, Outcome
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.compare import Change, change
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import applied, daemon_set, documents
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError, UnreachableError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MODE
from ansible_collections.kubewin.csi.plugins.module_utils.rollout import hold, options, rolling
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import Goal, decide, standing
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.apply import Roller
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import HostFacts, template_hash
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.observe import Target, View
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.order import wrong
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.refuse import refusals
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.rolling import states

ARGUMENT_SPEC = {**declared.spec(declared.APPLY), **documented(options.DOCUMENTATION), **documented(DOCUMENTATION)}

RULES = Rules()

_ACCESS = (
    "this account may not delete pods in {namespace}, which replacing plugin pods node by node needs. Bind the "
    "ClusterRole kubewin-csi-roll of roles/csi_driver/files/kubewin-rbac.yaml to it in that namespace"
)


class Job:
    """One task: the options, read once."""

    def __init__(self, params: dict[str, Any], driver: Driver, client: Client) -> None:
        self.client = client
        self.driver = driver
        self.force = params["force_conflicts"]
        self.definitions = documents(params["definition"])
        self.plugin = daemon_set(self.definitions)
        self.roller = Roller(client, self.plugin, force=self.force)
        self.waited = {str(name): float(spent) for name, spent in (params["progress"].get("waited") or {}).items()}
        self.seconds = float(params["window"])
        self.hosts = [HostFacts.from_option(host) for host in params["hosts"]]
        self.goal = Goal(
            nodes=tuple(params["nodes"]),
            batches=tuple(params["batches"]),
            max_unavailable=hold.max_unavailable(self.plugin),
            node_timeout=float(params["node_timeout"]),
        )

    def view(self) -> View:
        """The observer for its DaemonSet."""
        metadata = self.plugin["metadata"]
        return View(self.client, Target(self.driver, metadata["namespace"], metadata["name"]), self.hosts)

    def begin(self, *, check: bool) -> dict[str, Any]:
        """Apply what differs. Pods of a running DaemonSet that changes are kept in place, for what follows."""
        planned = Applier(self.client, force=self.force).plan(self.definitions)
        planned_set = next(one for one in planned.changes if one.kind == "DaemonSet")
        live = None if planned_set.action == "create" else self.roller.live()
        if live is None or not hold.must_hold(live, planned_set.after):
            return self.write(self.definitions, planned, check=check)
        view = self.view()
        view.load()
        picture = view.picture(hold.to_be(live, planned_set.after))
        evaluation = evaluate(picture, RULES)
        stands = standing(picture, evaluation, self.goal)
        step = decide(picture, evaluation, self.goal, {})
        report = {"step": "plan", "states": states(stands, evaluation), "left": list(stands.left), "replaced": []}
        state = hold.rolling(live)
        if step.kind == "finish":
            # Every pod is of this template already: the controller has nothing to move.
            return {**self.write(self.definitions, planned, check=check), "roll": {**report, "step": "finish"}}
        if step.kind == "rest" and state is not None and hold.same_template(live, planned_set.after):
            # Nothing for this run, and others to come: the change stays theirs.
            written = self.write(self.others(), None, check=check, plugin=lambda: change(self.plugin, live, live))
            return {**written, "warnings": list(planned.warnings), "roll": {**report, "step": "rest"}}
        self.goal = replace(self.goal, kept=self.kept(live))
        refused = refusals(picture, evaluation, self.goal, self.uses)
        if not self.client.allowed(Need("delete", "", "pods", self.roller.namespace)):
            refused += (_ACCESS.format(namespace=self.roller.namespace),)
        if refused:
            raise ClusterError("\n".join(refused), "roll_refused")
        if check:
            written = self.write(self.swapped(self.roller.held(live)), None, check=True)
            report["replaced"] = [name for name in stands.order if name in stands.old]
            return {**written, "changed": True, "roll": report}
        written = self.write(self.others(), None, check=False, plugin=self.roller.begin)
        return {**written, "warnings": list(planned.warnings), "roll": report, "progress": {"waited": {}}}

    def swapped(self, plugin: dict[str, Any]) -> list[dict[str, Any]]:
        """The definitions with another form of the DaemonSet."""
        return [plugin if item is self.plugin else item for item in self.definitions]

    def others(self) -> list[dict[str, Any]]:
        """The definitions without the DaemonSet."""
        return [item for item in self.definitions if item is not self.plugin]

    def kept(self, live: dict[str, Any]) -> dict[str, str]:
        """Nodes whose plugin must not change its mode now: those with volumes of a driver that cannot take them along."""
        mode = str((self.plugin["metadata"].get("annotations") or {}).get(MODE, ""))
        if mode not in self.driver.drain_to or hold.former_mode(live) in ("", mode):
            return {}
        found: dict[str, str] = {}
        for node, what in self.uses():
            found.setdefault(
                node, f"volumes of {self.driver.name} are in use, which mode {mode} cannot take over: {what}"
            )
        return found

    def uses(self) -> list[tuple[str, str]]:
        """Nodes with volumes of the driver in use, and what shows it."""
        return [(use.node, use.what) for use in in_use(self.client, self.driver)]

    def write(
        self,
        definitions: list[dict[str, Any]],
        planned: Outcome | None,
        *,
        check: bool,
        plugin: Callable[[], Change] | None = None,
    ) -> dict[str, Any]:
        """Apply what differs, or only report it. planned: the differences that are known already. plugin: applies the DaemonSet by itself."""
        applier = Applier(self.client, force=self.force)
        outcome = planned or applier.plan(definitions)
        if outcome.changed and not check:
            outcome = applier.apply(definitions)
        if plugin is not None:
            outcome = replace(outcome, changes=(*outcome.changes, plugin()))
        plugin_set = next((one.after for one in outcome.changes if one.kind == "DaemonSet"), None)
        hashes = {} if check or plugin_set is None else {self.driver.key: template_hash(plugin_set)}
        return {**applied(outcome), "applied": hashes, "warnings": list(outcome.warnings), "roll": None}

    def go_on(self) -> dict[str, Any]:
        """One window of replacing pods."""
        roller = self.roller
        live = roller.live()
        state = hold.rolling(live)
        back = state is not None and state.goes_back
        goal = replace(self.goal, goes_back=back, kept={} if live is None or back else self.kept(live))
        report = rolling.run(self.view(), roller, goal, RULES, self.waited, self.seconds)
        result = report.as_dict()
        changed = bool(report.replaced)
        if report.step.kind == "back":
            trouble = roller.back(report.step.nodes[0], report.step.message)
            changed = True
            result.update({"step": "stop", "message": f"{report.step.message}; {trouble}"} if trouble else {})
        elif report.step.kind == "finish":
            changed = roller.finish() or changed
        if state is not None and state.goes_back:
            result["failed_canary"] = {"node": state.failed, "because": state.because}
        return {"changed": changed, "roll": result, "progress": {"waited": result["waited"]}}


def main() -> None:
    """Begin, or continue for one window."""
    ansible = module(ARGUMENT_SPEC)
    if wrong(ansible.params["batches"]):
        found = ", ".join(wrong(ansible.params["batches"]))
        text = f"value of batches must be numbers above 0 or percentages, such as 1 and 25%, got: {found}"
        ansible.fail_json(msg=text, reason="configuration")
    going = bool(ansible.params["progress"])
    try:
        driver = driver_named(ansible.params["driver"])
        client = connect(ansible.params, retry_for=float(ansible.params["window"]) if going else None)
        job = Job(ansible.params, driver, client)
        result = job.go_on() if going else job.begin(check=ansible.check_mode)
    except UnreachableError as error:
        if not going:
            ansible.fail_json(msg=str(error), reason=error.reason)
        # An API server may restart while nodes come up. The action decides when it was too long.
        ansible.exit_json(changed=False, unreachable_api=str(error), progress=ansible.params["progress"])
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason)
    for warning in result.pop("warnings", ()):
        ansible.warn(warning)
    ansible.exit_json(**result)


if __name__ == "__main__":
    main()
