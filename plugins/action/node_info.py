# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name and names the hosts that are no Node."""

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display
from ansible_collections.kubewin.csi.plugins.modules import node_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

display = Display()


class ActionModule(ControllerAction):
    """The work is the module's; hosts that are no Node are named here, unless they failed the task."""

    module = node_info

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returns."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        for error in (result.get("errors") or {}).values():
            display.display(f"  {error}")
        return result
