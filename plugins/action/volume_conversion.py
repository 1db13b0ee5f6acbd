# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name, shows what it does, and prints how each claim stands at the end."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import volume_conversion
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.converting import failed_part, lines


class ActionModule(ControllerAction):
    """The work is the module's. It stops between two requests when its progress file disappears."""

    module = volume_conversion

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the module returns; of a failure only how each claim stands."""
        result = super()._work(task_vars)
        results = result.get("results") or []
        if results:
            self._say("", *lines(results, check=bool(self._task.check_mode)))
        if result.get("failed") and results:
            result["results"] = failed_part(results)
        return result
