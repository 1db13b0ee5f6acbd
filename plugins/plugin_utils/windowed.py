# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What actions share that call their module window by window, to say what happens meanwhile."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.plugins.action import ActionBase

# A window ends earlier when something has changed; this is how long nothing may be said.
WINDOW = 30


class WindowedAction(ActionBase):
    """An action around a module that looks for a while and tells how far things are. module: its full name."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    module: ClassVar[str]

    def _window(self, task_vars: dict[str, Any] | None, seconds: int = WINDOW, **known: Any) -> dict[str, Any]:
        """One call of the module with the task's options. known: what earlier ones found out."""
        seen: dict[str, Any] = self._execute_module(
            module_name=self.module,
            module_args={**self._task.args, "window": seconds, **known},
            task_vars=task_vars,
        )
        seen.pop("invocation", None)
        return seen
