# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a driver and renders its objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar

from ..modules.driver_info import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, TaskError, read_variable
from ..plugin_utils.actions.host_results import list_warnings
from ..plugin_utils.actions.manifests import render
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.catalog.csi_proxy import RECOMMENDED, parse_version
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.installed import choose_driver, find_controllers
from ..plugin_utils.drivers.model import TEMPLATE_OPTIONS, DriverRequest
from ..plugin_utils.drivers.observe import read_snapshot
from ..plugin_utils.drivers.plan import plan_driver
from ..plugin_utils.drivers.removal_observe import read_uses
from ..plugin_utils.kube.connect import find_driver


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **declared.make_argument_spec(declared.INFO),
        **read_argument_spec(DOCUMENTATION),
    }

    def work(self, options: Mapping[str, Any]) -> None:
        if not options["driver"]:
            # The variables that set a driver's options bear its name.
            option = "kubewin_drivers" if self.inputs else "driver"
            chosen = choose_driver(find_controllers(self.connect(options)), option, "controller")
            self.result.update(self.call(ActionModule, **{**self._task.args, "driver": chosen}))
            return
        driver = find_driver(options["driver"])
        release = str(read_variable(self._templar, self.task_vars, "csi_proxy_version") or RECOMMENDED)
        if parse_version(release) is None:
            raise TaskError(
                f"csi_proxy_version is {release}, expected a release such as {RECOMMENDED}.", "configuration"
            )
        request = read_request(options, release)
        client = self.connect(options)
        observed = read_snapshot(client, driver, request)
        planned = plan_driver(driver, request, observed)
        if planned.change is not None and planned.change.drain:
            # Volumes are read only if they matter: that takes every pod of the cluster.
            used = tuple((use.node, use.what) for use in read_uses(client, driver))
            planned = plan_driver(driver, request, replace(observed, in_use=used))
        if options["require"] and not planned.deployable:
            raise TaskError(planned.refusal, "refused")
        driver_plan = planned.as_dict()
        definition = render(planned.rule, planned.settings) if planned.rule and planned.deployable else ""
        self.result.update(driver_plan=driver_plan, definition=definition)
        self.display(*describe_plan(driver_plan, verbose=self.check_mode or self._display.verbosity > 0))


def read_request(options: Mapping[str, Any], csi_proxy_version: str = RECOMMENDED) -> DriverRequest:
    """The request. Empty text counts as not given."""
    values = {name: options[name] for name in (*declared.list_module_options(declared.INFO), "replace")}
    values |= {
        name: {key: value for key, value in (values[name] or {}).items() if value}
        for name in ("images", "image_digests", "resources")
    }
    names = {field.name for field in fields(DriverRequest)}
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in names and value not in (None, "")
    }
    return DriverRequest(
        **named,
        csi_proxy_version=csi_proxy_version,
        options={name: value for name, value in values.items() if name in TEMPLATE_OPTIONS},
    )


def describe_plan(plan: Mapping[str, Any], *, verbose: bool) -> list[str]:
    """A driver's plan as text. verbose: all of it, otherwise a line for the driver and one for each warning."""
    if verbose:
        return [f"  {line}" for line in plan["summary"]]
    count = len(plan["nodes"])
    headline = f"  {plan['title']} {plan['version']}, mode {plan['mode']}, namespace {plan['namespace']}, "
    headline += f"{count} Windows {'node' if count == 1 else 'nodes'}"
    return [
        headline,
        *(
            f"  {finding['severity']} {finding['id']} {finding['object']}: {finding['message']}"
            for finding in list_warnings(plan)
        ),
    ]
