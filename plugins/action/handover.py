# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands the Nodes of a driver over from one node plugin to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..modules.handover import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.manifests import describe_plan, plan_objects, read_request
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.catalog.base import Driver
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.handover.run import HandoverRun, describe_handover
from ..plugin_utils.drivers.installed import choose_driver, find_node_plugins
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.connect import find_driver
from ..plugin_utils.kube.definitions import parse_definitions


class ActionModule(ClusterAction):
    """Hands all Nodes over in one go; a run that follows continues where this one ended."""

    argument_spec: ClassVar[ArgumentSpec] = read_argument_spec(DOCUMENTATION)
    remainder = (
        "Run again to continue. A Node that was being handed over to the platform has its former plugin, unless the new one "
        "already worked there"
    )

    def work(self, options: Mapping[str, Any]) -> None:
        """Show the plan and perform it; return the Nodes that were handed over."""
        client, name = self.connect(options), options["driver"]
        if not name:
            option = "kubewin_drivers" if self.inputs else "driver"
            name = choose_driver(find_node_plugins(client), option, "node plugin for Windows")
        driver, definitions = find_driver(name), list[dict[str, Any]]()
        if options["direction"] == "to_kubewin":
            definitions = self._plan(client, driver, options["replace"])
        run = HandoverRun(client, driver, definitions, options, self.show)
        plan = run.read_plan()
        self.result.update(handover=describe_handover(plan), kept=[])
        self.show(*self.result["handover"]["summary"])
        run.require_permissions(plan)
        # What a failure leaves too: the first change may have been made by then.
        self.result["changed"] = bool(plan.nodes)
        if self.check_mode:
            self.result["lines"] = [f"would hand over {', '.join(plan.nodes) or 'no node'}"]
            return
        self.result["changed"], self.result["kept"] = run.run(plan)
        done = replace(run.read_plan(), done=tuple(sorted({*plan.nodes, *plan.done})))
        self.result["handover"] = describe_handover(done)
        self.result["lines"] = [f"handed over: {', '.join(done.done) or 'no node'}"]
        if self.result["kept"]:
            self.result["lines"].append(f"kept, since volumes and claims refer to it: {', '.join(self.result['kept'])}")
        if options["direction"] == "to_kubewin":
            self.result["lines"].append(
                "to be deployed and proven by the next run of enable_csi, which also reads the hosts"
            )
            self.result["next"] = [f"enable_csi -e kubewin_drivers={driver.key}"]

    def _plan(self, client: Client, driver: Driver, replace: str) -> list[dict[str, Any]]:
        """The objects of the driver that takes over. TaskError if it cannot be deployed."""
        spec = {**declared.make_argument_spec(declared.INFO), "replace": self.argument_spec["replace"]}
        options = self.read_options(declared.INFO, spec, {"driver": driver.key, "replace": replace})
        request = read_request(options)
        planned, definition = plan_objects(client, driver, request)
        if not planned.deployable:
            raise TaskError(planned.refusal, "refused")
        self.display(*describe_plan(planned, verbose=self.check_mode or self._display.verbosity > 0))
        return parse_definitions(definition)
