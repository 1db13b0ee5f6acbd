# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress of the module of the same name, and its results as a table; the module does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubewin.csi.plugins.modules import readiness_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

# What goes to a job's statistics: short enough for any job.
_STATISTIC = ("verdict", "counts", "taken_at", "blockers", "unread")


class ActionModule(ControllerAction):
    """Runs the module where the task runs."""

    module = readiness_info

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super()._work(task_vars)
        if "verdict" not in result:
            return result
        if result.get("failed"):
            # The callback shows all that a failed task returns, and the blockers are printed already: in the report, or in
            # the message.
            result["blockers"] = [{"id": one["id"], "object": one["object"]} for one in result["blockers"]]
        # A run reports its intermediate result at its end.
        if self._task.args.get("run"):
            return result
        self._say(*shown(result, brief=boolean(self._task.args.get("before", False), strict=False)))
        if result.get("failed"):
            del result["table"], result["unread"]
        else:
            # AWX shows them as artifacts, and hands them to a workflow's next jobs.
            summary = {key: result[key] for key in _STATISTIC}
            result["ansible_stats"] = {"data": {"kubewin_preflight": summary}, "per_host": False, "aggregate": False}
        return result


def shown(result: Mapping[str, Any], *, brief: bool) -> list[str]:
    """The text lines: the verdict alone if another report follows, else the table and the files with the report."""
    if brief and not result.get("failed"):
        return ["", result["table"][0]]
    return ["", *result["table"], *(f"written to {path}" for path in result["paths"].values())]
