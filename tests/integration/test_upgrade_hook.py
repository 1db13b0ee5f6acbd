# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the owner's own tasks may do to an upgrade: fail with a secret, hang, or not be tasks. No cluster is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action.upgrade import describe_result
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import read_uptime
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease_keeper import record_renewal
from integration.playbooks import ROOT, Run, play
from lab.handle import longer

SECRET = "hunter2"
TASKS = ROOT / "playbooks" / "tasks"


def reported(folder: Path, *plays: dict[str, Any], hosts: Sequence[str] = ("localhost",)) -> Run:
    here = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    path = folder / "play.yml"
    path.write_text(json.dumps([{**here, **one} for one in plays]), encoding="utf-8")
    return play(str(path), ",".join((*hosts, "")))


def find_failures(
    folder: Path, tasks: list[dict[str, Any]], *nodes: str, renewed: float = 0, timeout: int = 7200, **given: Any
) -> dict[str, str]:
    """Why one of these tasks failed, by node. renewed: when the lease was last renewed, in seconds from now."""
    lease = str(folder / "lease")
    record_renewal(lease, read_uptime() + renewed)
    hook = folder / "hook.yml"
    hook.write_text(json.dumps(tasks), encoding="utf-8")
    inputs = {"upgrade_tasks": str(hook)}
    begun = {"deadline": f"{{{{ now().timestamp() + {timeout} }}}}", "held": f"{lease}.held"}
    node = {
        "ansible.builtin.include_tasks": str(TASKS / "upgrade_tasks.yml"),
        "vars": {"kubewin_upgrade_node": "{{ inventory_hostname }}", "kubewin_inputs": inputs},
    }
    held = {"ansible.builtin.set_fact": {"kubewin_upgrade_begun": begun}}
    names = ("kubewin_upgrade_result", "ansible_failed_result")
    stored = {name: f"{{{{ {name} | default({{}}) }}}}" for name in names}
    show = {"name": "Show", "ansible.builtin.debug": {"msg": stored}}
    python = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    run = reported(folder, {"hosts": "all", "vars": {**python, **given}, "tasks": [held, node, show]}, hosts=nodes)
    assert run.code == 0, run.screen
    return {name: describe_result(result["msg"]) for name, result in run.results("Show").items()}


def test_a_secret_of_a_failed_task_is_not_in_the_journal(tmp_path: Path) -> None:
    fails = {"name": "Log in", "ansible.builtin.fail": {"msg": f"{SECRET} is wrong"}, "no_log": "{{ hidden }}"}
    assert find_failures(tmp_path, [fails], "win-1", "win-2", hidden="{{ kubewin_upgrade_node == 'win-1' }}") == {
        "win-1": "task Log in: it failed; no_log hides why",
        "win-2": f"task Log in: {SECRET} is wrong",
    }


def test_no_task_begins_once_another_run_may_hold_the_lease(tmp_path: Path) -> None:
    """Neither those of a rescue, nor those that a task file includes."""
    touched = tmp_path / "touched"
    touch = {"name": "Touch", "ansible.builtin.file": {"path": str(touched), "state": "touch"}}
    inner = tmp_path / "inner.yml"
    inner.write_text(json.dumps([touch]), encoding="utf-8")
    include = {"name": "Include", "ansible.builtin.include_tasks": str(inner)}
    loop = {"name": "Loop", "loop": [1, 2], **touch}
    found = find_failures(tmp_path, [{"block": [include, loop], "rescue": [touch]}], "win-1", renewed=-46)
    assert "another run may have taken over" in found["win-1"]
    assert not touched.exists()
    assert find_failures(tmp_path, [touch], "win-1") == {"win-1": ""}
    assert touched.exists()


def test_a_hanging_task_is_terminated_at_its_nodes_timeout_and_reported_as_failed(tmp_path: Path) -> None:
    """Those before it have had a part of that time."""
    hangs = {"name": "Wait for ever", "ansible.builtin.command": {"argv": ["sleep", "3600"]}}
    for seconds in longer(6):
        works = {"name": "Work", "ansible.builtin.command": {"argv": ["sleep", str(seconds / 2)]}}
        found = find_failures(tmp_path, [works, hangs], "win-1", timeout=int(seconds))
        # Otherwise the time was over before the second task began.
        if "task Wait for ever: " in found["win-1"]:
            break
    # Each release of Ansible words it in its own way.
    left = re.search(r"(?i)timed out after (\d+) second|in the expected time frame \((\d+)\)", found["win-1"])
    assert left, found
    assert 0 < int(left[1] or left[2]) <= seconds / 2


def loaded(folder: Path, text: str) -> Run:
    """What a plan makes of a file with that in it."""
    hook = folder / "hook.yml"
    hook.write_text(text, encoding="utf-8")
    match_hosts = yaml.safe_load((TASKS.parent / "upgrade.yml").read_text(encoding="utf-8"))[1]
    *_others, load = match_hosts["tasks"][0]["block"]
    given = {"kubewin_inputs": {"upgrade_tasks": str(hook)}, "host_of": {"localhost": "localhost"}}
    return reported(folder, {"vars": given, "tasks": [load, {"name": "Then", "ansible.builtin.debug": {}}]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- name: Change\n  ansible.builtin.command: [reboot\n", "hook.yml"),
        ("- no.such.module: {}\n", "no.such.module"),
    ],
    ids=["no YAML", "no such module"],
)
def test_what_is_no_file_of_tasks_ends_the_plan(tmp_path: Path, text: str, expected: str) -> None:
    run = loaded(tmp_path, text)
    assert run.code != 0
    assert expected in run.screen
    assert not run.results("Then")


def test_tasks_are_loaded_with_the_plan_and_none_of_them_is_done(tmp_path: Path) -> None:
    inner, touched = tmp_path / "inner.yml", tmp_path / "touched"
    inner.write_text(json.dumps([{"ansible.builtin.file": {"path": str(touched), "state": "touch"}}]), encoding="utf-8")
    unknown = {"ansible.builtin.command": "{{ no_such_variable }}", "loop": "{{ no_such_list }}", "register": "found"}
    tasks = [
        {"ansible.builtin.include_tasks": str(inner)},
        {"ansible.builtin.import_tasks": str(inner)},
        {"block": [unknown], "rescue": [{"ansible.builtin.include_tasks": str(inner)}]},
        {"ansible.builtin.ping": {}, "delegate_to": "{{ host_of[kubewin_upgrade_node] }}", "when": "no_such_variable"},
        {"ansible.builtin.meta": "end_play"},
    ]
    run = loaded(tmp_path, json.dumps(tasks))
    assert run.code == 0, run.screen
    assert run.results("Then")
    assert not touched.exists()
