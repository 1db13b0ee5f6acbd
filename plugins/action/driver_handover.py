# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name and shows what it waits for."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import driver_handover
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    """The work is the module's."""

    module = driver_handover

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the module returns; the first call prints what is to be handed over."""
        result = super()._work(task_vars)
        if self._task.args.get("step", "plan") == "plan":
            self._say(*(f"  {line}" for line in (result.get("handover") or {}).get("summary") or ()))
        return result
