# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a driver and renders its objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar

from ansible_collections.kubewin.csi.plugins.modules.driver_info import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import (
    ClusterAction,
    TaskError,
    read_variable,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.manifests import render
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.planned import entry, lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.csi_proxy import RECOMMENDED
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.controllers import choose_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.installed import find_controllers
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import UNREAD, DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.observe import read_snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.removal_observe import read_uses
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import find_driver


class ActionModule(ClusterAction):
    """Observes the cluster and plans the driver."""

    argument_spec: ClassVar[ArgumentSpec] = {
        **declared.make_argument_spec(declared.INFO),
        **read_argument_spec(DOCUMENTATION),
    }

    def read_run(self) -> dict[str, Any]:
        """The plan is shown."""
        return {"show": True}

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the plan and its objects."""
        if not options["driver"]:
            # The variables that set a driver's options bear its name.
            option = "kubewin_drivers" if self.inputs else "driver"
            chosen = choose_driver(find_controllers(self.connect(options)), option, "controller")
            self.result.update(self.call(ActionModule, **{**self._task.args, "driver": chosen}))
            return
        driver = find_driver(options["driver"])
        release = options["csi_proxy_version"] or read_variable(self._templar, self.task_vars, "csi_proxy_version")
        request = read_request({**options, "csi_proxy_version": release or RECOMMENDED})
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
        definition = render(driver_plan["template"], driver_plan["settings"]) if planned.deployable else ""
        self.result.update(driver_plan=driver_plan, definition=definition, planned=[entry(driver_plan, definition)])
        if options["show"]:
            self.display(*lines(driver_plan, every=self.check_mode or self._display.verbosity > 0))


def read_request(options: Mapping[str, Any]) -> DriverRequest:
    """The request. Empty text counts as not given."""
    given = {
        name: options[name] for name in (*declared.list_module_options(declared.INFO), "csi_proxy_version", "replace")
    }
    given |= {
        name: {key: value for key, value in (given[name] or {}).items() if value}
        for name in ("images", "image_digests", "resources")
    }
    names = {field.name for field in fields(DriverRequest)}
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if name in names and value not in (None, "")
    }
    return DriverRequest(
        **named,
        options={name: value for name, value in given.items() if name in UNREAD},
    )
