# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a driver and renders its objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..modules.driver_info import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.manifests import describe_plan, plan_objects, read_request
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.drivers import declared
from ..plugin_utils.drivers.installed import choose_driver, find_controllers
from ..plugin_utils.kube.connect import find_driver


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **declared.make_argument_spec(declared.INFO),
        **read_argument_spec(DOCUMENTATION),
    }

    def work(self, options: Mapping[str, Any]) -> None:
        if not options["driver"]:
            option = "kubewin_drivers" if self.inputs else "driver"
            chosen = choose_driver(find_controllers(self.connect(options)), option, "controller")
            # The variables that set a driver's options bear its name.
            options = self.read_options(declared.INFO, self.argument_spec, {**self._task.args, "driver": chosen})
        driver = find_driver(options["driver"])
        request = read_request(options)
        planned, definition = plan_objects(self.connect(options), driver, request)
        if options["require"] and not planned.deployable:
            raise TaskError(planned.refusal, "refused")
        self.result.update(driver_plan=planned.as_dict(), definition=definition)
        self.display(*describe_plan(planned, verbose=self.check_mode or self._display.verbosity > 0))
