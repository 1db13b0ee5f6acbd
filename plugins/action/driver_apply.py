# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies a driver's objects and rolls its DaemonSet, with progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..doc_fragments import hosts
from ..modules.driver_apply import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.host_results import list_csi_proxies, list_read_nodes, read_plans
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.apply import DeployRequest, deploy, plan
from ..plugin_utils.drivers.rollout.apply import RollResult
from ..plugin_utils.drivers.rollout.decide import RollOptions, RollStep, find_wrong_sizes
from ..plugin_utils.drivers.rollout.snapshot import ObservedHost
from ..plugin_utils.kube.apply import Outcome
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.connect import find_driver
from ..plugin_utils.kube.definitions import build_result, parse_definitions


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **declared.make_argument_spec(declared.APPLY),
        **read_argument_spec(hosts.ModuleDocFragment.DOCUMENTATION),
        **read_argument_spec(DOCUMENTATION),
    }
    remainder = "Nodes whose plugin pod was not replaced keep their former plugin. Run again to continue"

    def read_run(self) -> dict[str, Any]:
        """The plan of the driver, and the hosts of the play, whose Nodes alone are changed."""
        hosts, driver = list_csi_proxies(self.task_vars), str(self._task.args["driver"])
        (definition,) = [plan.definition for plan in read_plans(self.task_vars) if plan.driver == driver]
        return {"definition": definition, "hosts": hosts, "nodes": list_read_nodes(hosts)}

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the objects and the Nodes; failed with a reason if a Node does not work with the new plugin."""
        self.result.update(objects=[], roll=None, driver=options["driver"])
        if self.inputs.get("windows") and not options["nodes"]:
            # Without names the driver would roll on all Nodes.
            return
        if sizes := find_wrong_sizes(options["batches"]):
            raise TaskError(
                f"batches: {', '.join(sizes)}, expected numbers above 0 or percentages, such as 1 and 25%",
                "configuration",
            )
        driver = find_driver(options["driver"])
        request = DeployRequest(
            driver,
            parse_definitions(options["definition"]),
            RollOptions(
                nodes=tuple(options["nodes"]),
                batches=tuple(options["batches"]),
                max_unavailable=options["max_unavailable"] or driver.max_unavailable,
                node_timeout=float(options["node_timeout"]),
            ),
            tuple(ObservedHost.from_option(host) for host in options["hosts"]),
        )
        name = f"{request.namespace}/{request.name}"
        client = self.connect(options)
        if self.check_mode:
            planned = plan(client, request)
            self._note(planned.outcome)
            if (state := planned.state) is not None and planned.rolls:
                self.result["changed"] = True
                replaced = tuple(state.old)
                self.result["roll"] = {**RollResult(RollStep("wait"), state, replaced).as_dict(), "step": "plan"}
            return
        try:
            self._deploy(client, request, name)
        except TaskError:
            # The callback prints all that a failed task returns.
            self.result.pop("diff", None)
            self.result["objects"] = [item for item in self.result["objects"] if item["action"] != "none"]
            raise

    def _deploy(self, client: Client, request: DeployRequest, name: str) -> None:
        driver = request.driver
        done = deploy(client, request, self.show, self._note)
        self.result["applied"] = {driver.key: done.template} if done.template else {}
        if done.roll is None:
            return
        self.result["roll"] = done.roll.as_dict()
        self.result["changed"] = bool(self.result["changed"] or done.roll.replaced)
        for text in list_warnings(done.roll):
            self.warn(text)
        if failed := explain_failed_roll(done.roll, name, driver.title):
            raise failed

    def _note(self, outcome: Outcome) -> None:
        """Return what was applied, also if the task fails later."""
        self.result.update(build_result(outcome))
        for text in outcome.warnings:
            self.warn(text)


def explain_failed_roll(roll: RollResult, daemon_set: str, driver: str) -> TaskError | None:
    """Why the update failed, None if it did not."""
    state, step = roll.state, roll.step
    if roll.failed is not None:
        node = roll.failed.node
        consequence = (
            f"The former template of DaemonSet {daemon_set} was not restored there: {step.message}. No other node was changed. "
            f"Repair {node}, then run again."
            if step.kind == "stop"
            else f"Rolled back: DaemonSet {daemon_set} has its former template, {node} works with it, and no other node "
            "was changed. Correct the new plugin, then run again."
        )
        why = f"{driver}: the changed plugin does not work on the canary {node}: {roll.failed.message}."
        return TaskError(f"{why} {consequence}", "canary_failed")
    if step.kind != "stop":
        return None
    where = f" at {', '.join(step.nodes)}" if step.nodes else ""
    done = ", ".join(name for name in state.order if name in state.done) or "none"
    old = (*state.old, *state.outdated_elsewhere)
    unchanged = ", ".join(name for name in old if name not in roll.replaced) or "none"
    again = ", ".join(name for name in old if name in roll.replaced)
    replaced = f"replaced before the template changed: {again}; " if again else ""
    return TaskError(
        f"{driver}: the change of DaemonSet {daemon_set} stopped{where}: {step.message}. With the new plugin: {done}; {replaced}"
        f"untouched: {unchanged}. No further pod is replaced. To continue, fix the cause and run again; to go back, run again with the "
        "former release, and with the former mode if the driver can change to it.",
        "roll_stopped",
    )


def list_warnings(roll: RollResult) -> Iterator[str]:
    """What a later run has to do."""
    state = roll.state
    if state.down:
        yield (
            f"{', '.join(state.down)}: not Ready, so the plugin pod was not replaced. Run again when the Node is Ready, "
            "or delete the Node if it does not come back."
        )
    if roll.step.kind == "finish" and roll.failed is None and state.outdated_elsewhere:
        yield (
            f"{', '.join(state.outdated_elsewhere)} still have the former plugin, because their hosts are not in this run. Run with these hosts. "
            "For Nodes without a host in any inventory, run with kubewin_cluster_only=true and an inventory without Windows hosts."
        )
