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
ENDS = ("end_failed.yml", "failed.yml")
# Tasks that cannot fail.
HARMLESS = (
    "Print what cannot be read without hosts",
    "Print the summary",
    # Of the batches of an upgrade; its last play reports what failed.
    "Cordon and drain the nodes",
    "Start no batch unless its nodes are drained",
    "Change the nodes",
    "Check the drivers, verify a volume, uncordon the nodes and wait for their workloads",
    "Start no other batch after a failed node",
)


def tasks_of(play: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The tasks of a play, those of a file that is all of it included."""
    tasks: list[dict[str, Any]] = play["tasks"]
    if len(tasks) == 1 and "ansible.builtin.import_tasks" in tasks[0]:
        tasks = yaml.safe_load((folder / tasks[0]["ansible.builtin.import_tasks"]).read_text(encoding="utf-8"))
    return tasks


def plays() -> list[Any]:
    files = sorted([*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/plays/*.yml")])
    return [
        pytest.param(play, file.parent, id=f"{file.stem}: {play['name']}")
        for file in files
        for play in yaml.safe_load(file.read_text(encoding="utf-8"))
        if "tasks" in play
    ]


@pytest.mark.parametrize(("play", "folder"), plays())
def test_a_play_that_fails_sums_up(play: dict[str, Any], folder: Path) -> None:
    for task in tasks_of(play, folder):
        if task["name"] in HARMLESS:
            continue
        rescue = task.get("rescue") or []
        imports = [Path(one.get("ansible.builtin.import_tasks", "")).name for one in rescue]
        assert imports, f"{task['name']}: a failure ends without a summary"
        assert imports[-1] in ENDS
