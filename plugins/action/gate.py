# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: waits until a driver works on its Windows nodes, with progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..doc_fragments import hosts
from ..modules.gate import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.host_results import list_csi_proxies, list_read_nodes, read_plans
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.rollout.evaluate import GateRules
from ..plugin_utils.drivers.rollout.gate import Gate, GateOptions
from ..plugin_utils.drivers.rollout.gate_report import build_unread_gate
from ..plugin_utils.drivers.rollout.snapshot import ObservedHost
from ..plugin_utils.kube.connect import find_driver
from ..plugin_utils.kube.errors import ClusterError


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
            node for plan in read_plans(self.task_vars) if plan.driver == driver for node in plan.unselected_nodes
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
        driver = find_driver(options["driver"])
        request = GateOptions(
            driver=driver,
            namespace=options["namespace"] or "",
            hosts=tuple(ObservedHost.from_option(host) for host in options["hosts"]),
            rules=GateRules(
                only=frozenset(options["nodes"]),
                allow_zero_nodes=options["allow_zero_nodes"],
                proven=frozenset(options["proven"]),
                template=str(options["applied"].get(driver.key) or ""),
            ),
            timeout=options["timeout"],
            once=bool(self.check_mode or options["once"]),
            accept_unproven=options["accept_unproven"],
        )
        try:
            result = Gate(lambda seconds: self.connect(options, seconds), request, self).run()
        except ClusterError as error:
            self.result["gate"] = build_unread_gate(str(error))
            if error.reason not in options["accept"]:
                raise
            return
        self.result.update(result.as_dict())
