# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name and names the hosts that are no Node."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import node_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    """The work is the module's; hosts that are no Node are named here, unless they failed the task."""

    module = node_info

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the module returns."""
        result = super()._work(task_vars)
        self._say(*(f"  {error}" for error in (result.get("errors") or {}).values()))
        return result
