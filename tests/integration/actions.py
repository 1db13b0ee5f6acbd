# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster actions in this process, for stories with many calls."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any


def run_action(name: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the action with these options, as a task without variables has it."""
    plugin: Any = importlib.import_module(f"ansible_collections.kubewin.csi.plugins.action.{name}")
    task = SimpleNamespace(
        action=f"kubewin.csi.{name}", args=options, become=False, async_val=0, environment=[], check_mode=check
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/"))
    result: dict[str, Any] = plugin.ActionModule(task, connection, None, None, None, None).run(task_vars={})
    return result
