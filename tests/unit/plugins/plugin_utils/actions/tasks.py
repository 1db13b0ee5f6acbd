# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster actions in this process, as a task without variables runs them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction


def run_task(action: type[ClusterAction], *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a task with these options."""
    name = action.__module__.rpartition(".")[2]
    task = SimpleNamespace(
        action=f"kubewin.csi.{name}", args=options, become=False, async_val=0, environment=[], check_mode=check
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/"))
    make: Any = action
    result: dict[str, Any] = make(task, connection, None, None, None, None).run(task_vars={})
    return result
