# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the owner's own tasks may do to an upgrade: fail with a secret, and end the play. No cluster is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from integration.playbooks import ROOT, Run, play

SECRET = "hunter2"


def told(folder: Path, *plays: dict[str, Any]) -> Run:
    here = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    path = folder / "play.yml"
    path.write_text(json.dumps([{**here, **one} for one in plays]), encoding="utf-8")
    return play(str(path), "localhost,")


def test_a_secret_of_a_task_that_failed_does_not_come_into_the_journal(tmp_path: Path) -> None:
    fails = {"name": "Log in", "ansible.builtin.fail": {"msg": f"{SECRET} is wrong"}, "no_log": "{{ hidden }}"}
    hook = tmp_path / "hook.yml"
    hook.write_text(json.dumps([fails]), encoding="utf-8")
    node = {
        "ansible.builtin.include_tasks": str(ROOT / "roles" / "node_upgrade" / "tasks" / "node.yml"),
        "vars": {"node_upgrade_node": "{{ item }}", "node_upgrade_does": str(hook), "hidden": "{{ item == 'win-1' }}"},
        "loop": ["win-1", "win-2"],
    }
    show = {"name": "Show", "ansible.builtin.debug": {"var": "node_upgrade_results"}}
    run = told(tmp_path, {"vars": {"node_upgrade_results": {}}, "tasks": [node, show]})
    assert run.results("Show")["localhost"]["node_upgrade_results"] == {
        "win-1": "task Log in failed, and says no more because of no_log",
        "win-2": f"{SECRET} is wrong",
    }, run.screen


def test_tasks_that_end_the_play_are_no_success(tmp_path: Path) -> None:
    *_others, last = yaml.safe_load((ROOT / "playbooks" / "upgrade.yml").read_text(encoding="utf-8"))
    state = {"outcome": "handed", "next": {"kind": "hook", "nodes": ["win-1"]}}
    begun = {"ansible.builtin.set_fact": {"node_upgrade_state": state, "kubewin_upgrade_tasks": "one.yml"}}
    run = told(tmp_path, {"tasks": [begun, {"ansible.builtin.meta": "end_play"}]}, last)
    (failure,) = run.failures
    assert "The run ended in the tasks of one.yml for win-1, not by an error" in failure["result"]["msg"]
    assert run.code == 2
