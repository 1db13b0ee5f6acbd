# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run of a playbook began with its input check, which --start-at-task skips also where it has the tag always."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import context

INPUTS = "kubewin_inputs"  # the registered values of the inputs
_PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"


def refuse_unchecked_inputs(task: Any, task_vars: Mapping[str, Any]) -> str:
    """Why a task of a playbook of this collection does not work; empty where the inputs were checked, and in other playbooks."""
    start = context.CLIARGS.get("start_at_task")
    if not start or INPUTS in task_vars or _PLAYBOOKS not in Path(task.get_play().get_path()).resolve().parents:
        return ""
    return (
        f"--start-at-task {start}: the task that checks the inputs was skipped, expected a run from its first task. Run again "
        "without --start-at-task; what is done already is not done again. To run a part of the playbook, use --tags."
    )
