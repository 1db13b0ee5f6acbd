# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name on the controller, renders its plan and prints it."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubewin.csi.plugins.modules import driver_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.manifests import render
from ansible_collections.kubewin.csi.plugins.plugin_utils.planned import entry, lines


class ActionModule(ControllerAction):
    """The plan is the module's."""

    module = driver_info

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the plan and its objects."""
        result = super()._work(task_vars)
        plan = result.get("driver_plan")
        if plan is not None:
            result["definition"] = render(plan["template"], plan["settings"]) if plan["deployable"] else ""
            others = [one for one in self._task.args.get("planned") or () if one["driver"] != plan["driver"]]
            result["planned"] = [*others, entry(plan, result["definition"])]
            if boolean(self._task.args.get("show", False), strict=False):
                self._say(*lines(plan, every=bool(self._task.check_mode) or self._display.verbosity > 0))
        return result
