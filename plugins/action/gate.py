# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: waits until a driver works on its Windows nodes, with progress."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from ..doc_fragments import hosts
from ..modules.gate import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.gate_report import build_gate_result, build_unread_gate, describe_progress
from ..plugin_utils.actions.host_results import list_csi_proxies, list_read_nodes, read_plans
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.stored import serialize
from ..plugin_utils.base.waiting import render_progress
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.rollout.evaluate import Evaluation, GateRules
from ..plugin_utils.drivers.rollout.gate import wait_for_gate
from ..plugin_utils.drivers.rollout.observe import RolloutView, find_target
from ..plugin_utils.drivers.rollout.snapshot import DaemonSetFacts, RolloutHost
from ..plugin_utils.kube.connect import find_driver
from ..plugin_utils.kube.errors import ClusterError, UnreachableError


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **declared.make_argument_spec(declared.ROLLOUT),
        **read_argument_spec(hosts.ModuleDocFragment.DOCUMENTATION),
        **read_argument_spec(DOCUMENTATION),
    }
    remainder = "Nothing was changed"

    def read_run(self) -> dict[str, Any]:
        """The hosts of the play, without Nodes that the plan leaves out; what the playbook applied; Nodes that verify proved."""
        driver, hosts = str(self._task.args["driver"]), list_csi_proxies(self.task_vars)
        unselected = {
            node for plan in read_plans(self.task_vars) if plan["driver"] == driver for node in plan["unselected_nodes"]
        }
        applied: dict[str, str] = {}
        for result in (self.task_vars.get("kubewin_applied") or {}).get("results") or ():
            applied |= result.get("applied") or {}
        return {
            "hosts": hosts,
            "nodes": [node for node in list_read_nodes(hosts) if node not in unselected],
            "applied": applied,
            "proven": (self.inputs.get("proven") or {}).get(driver, []),
            # Without hosts, none can be read.
            "accept_unproven": not self.inputs["windows"],
        }

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the last evaluation; failed with a reason unless the gate passed."""
        self._once = bool(self.check_mode or options["once"])
        timeout, accepts = int(options["timeout"]), bool(options["accept_unproven"])
        self._started = time.monotonic()
        self._evaluation: dict[str, Any] | None = None
        unreachable = ""
        while True:
            remaining_seconds = max(1.0, timeout - self._elapsed())
            try:
                self._watch(options, remaining_seconds)
                unreachable = ""
                break
            except UnreachableError as error:
                # Not a failure of the gate: an API server may restart while nodes come up.
                unreachable = str(error)
                self.show(unreachable if self._once else f"{render_progress(self._elapsed(), timeout)}: {unreachable}")
            except ClusterError as error:
                self.result["gate"] = build_unread_gate(str(error))
                if error.reason in options["accept"]:
                    return
                raise
            if self._once or self._elapsed() >= timeout:
                break
        result = build_gate_result(self._evaluation, accepts, timeout, unreachable, check_mode=self._once)
        if "table" in result:
            self.display(f"\n{result.pop('table')}\n")
        self.result.update(result)

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _watch(self, options: Mapping[str, Any], seconds: float) -> None:
        """Watch until the gate is settled, but not longer than these seconds; once in check mode."""
        driver = find_driver(options["driver"])
        retry_for = None if self._once else min(float(options["api_timeout"]), seconds)
        client = self.connect(options, retry_for)
        target = find_target(client, driver, options["namespace"] or "")
        view = RolloutView(client, target, [RolloutHost.from_option(host) for host in options["hosts"]])
        rules = GateRules(
            only=frozenset(options["nodes"]),
            allow_zero_nodes=options["allow_zero_nodes"],
            proven=frozenset(options["proven"]),
            template=str(options["applied"].get(driver.key) or ""),
        )

        def report(evaluation: Evaluation) -> None:
            fingerprints = {node["node"]: node["fingerprint"] for node in (self._evaluation or {"nodes": ()})["nodes"]}
            self._evaluation = describe(evaluation, view.picture().daemon_set)
            timeout, accepts = 0 if self._once else int(options["timeout"]), bool(options["accept_unproven"])
            self.display(
                *describe_progress(self._evaluation, fingerprints, int(self._elapsed()), timeout, accepts=accepts)
            )

        wait_for_gate(view, rules, 0.0 if self._once else seconds, report)


def describe(evaluation: Evaluation, daemon_set: DaemonSetFacts | None) -> dict[str, Any]:
    """The evaluation as a result."""
    counts = None
    if daemon_set is not None:
        facts = asdict(daemon_set)
        counts = {key: facts[key] for key in ("namespace", "name", "desired", "current", "ready")}
    return {
        "verdict": evaluation.verdict,
        "daemonset": counts,
        "nodes": [node.as_dict() for node in evaluation.nodes],
        "skipped_nodes": [{"node": name, "reason": reason} for name, reason in evaluation.skipped_nodes],
        "problems": [serialize(problem) for problem in evaluation.problems],
    }
