# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof's face: runs the module of the same name, shows what it does meanwhile, and its report at the end."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import storage_proof
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.proof import failed_part, report


class ActionModule(ControllerAction):
    """The work is the module's. It ends and cleans up once its progress file is deleted."""

    module = storage_proof

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super()._work(task_vars)
        if self._task.check_mode:
            self._say(*(f"  {line}" for line in result.get("plan") or ()))
        if result.get("proofs"):
            result["report"] = report(result)
            self._say("", result["report"])
        if result.get("failed"):
            # The callback prints all that a failed task returns, and the report is on the screen already.
            result.update(failed_part(result))
            result.pop("report", None)
        return result
