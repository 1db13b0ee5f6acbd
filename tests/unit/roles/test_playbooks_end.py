# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every play ends in one closing summary, also where it fails: its tasks are in a block whose rescue sums up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# Of the batches of an upgrade, whose last play reports what failed.
BATCHES = "Upgrade the nodes batch by batch with your tasks"
HARMLESS = ("ansible.builtin.set_fact", "ansible.builtin.import_tasks")


def plays() -> list[Any]:
    files = sorted([*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/plays/*.yml")])
    return [
        pytest.param(play, id=f"{file.stem}: {play['name']}")
        for file in files
        for play in yaml.safe_load(file.read_text(encoding="utf-8"))
        if "tasks" in play and play["name"] != BATCHES
    ]


def is_end(task: dict[str, Any]) -> bool:
    """Whether a task prints the summary."""
    return (
        "end.yml" in f"{task.get('ansible.builtin.import_tasks')} {task.get('ansible.builtin.include_tasks')}"
        or "kubewin.csi.summary" in task
    )


@pytest.mark.parametrize("play", plays())
def test_a_play_that_fails_sums_up(play: dict[str, Any]) -> None:
    """A task either cannot fail, or a rescue prints the summary; both end in a task that fails."""
    for task in play["tasks"]:
        rescue = task.get("rescue") or []
        survives = task.get("failed_when") is False or is_end(task) or any(name in task for name in HARMLESS)
        # The summary before it says why, as in tasks/end.yml.
        survives = survives or task.get("when") == "kubewin_ended.summary.failure != ''"
        survives = survives or bool((task.get("kubewin.csi.node_info") or {}).get("accept") == ["all"])
        assert survives or any(map(is_end, rescue)), f"{task['name']}: a failure ends without a summary"


def test_no_setting_of_the_user_runs_a_play_host_by_host() -> None:
    """Ansible's strategies free and host_pinned know neither run_once nor any_errors_fatal."""
    files = [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/plays/*.yml")]
    found = [play for file in files for play in yaml.safe_load(file.read_text(encoding="utf-8")) if "tasks" in play]
    assert [play["name"] for play in found if play["hosts"] != "localhost" and play.get("strategy") != "linear"] == []


def test_the_end_of_a_failed_run_fails() -> None:
    summary, fail = yaml.safe_load((ROOT / "playbooks" / "tasks" / "end.yml").read_text(encoding="utf-8"))
    assert summary["tags"] == fail["tags"] == ["always"]
    assert fail["when"] == "kubewin_ended.summary.failure != ''"
