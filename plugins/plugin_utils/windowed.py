# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of actions that call their module window by window, with progress."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

# A window ends earlier if something changed; this is the longest time without progress.
WINDOW = 30


class WindowedAction(ControllerAction):
    """An action around a module that observes for one window and reports progress."""

    def _window(self, task_vars: dict[str, Any] | None, seconds: int = WINDOW, **known: Any) -> dict[str, Any]:
        """One call of the module with the task's options. known: what earlier ones found out."""
        return self._run_module({**self._task.args, "window": seconds, **known}, task_vars)
