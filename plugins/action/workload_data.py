# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The baselines' face: runs the module of the same name and shows what it does meanwhile."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.progress import run_module


class ActionModule(ActionBase):
    """The work is the module's. It ends, and takes its pod away, when the file that it tells its progress to goes."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(run_module(self, "kubewin.csi.workload_data", task_vars))
        return result
