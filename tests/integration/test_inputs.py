# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that cannot work are refused before anybody is contacted: neither the host of these runs nor a cluster exists.

What each may be is tried in the unit tests; here, that every playbook asks before anything else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ci import venvs
from integration.playbooks import PATIENCE, ROOT, Run, command, lines, play, read

MAIN = venvs.MAIN.removeprefix("core-")
UNREACHABLE = "192.0.2.1,"
HOSTS = {"kubewin_hosts": "all"}
WRONG = {"kubewin_drivers": "floppy", "kubewin_batches": "abc", "kubewin_skip_unreachable": "{{ 'may' ~ 'be' }}"}
ALONE: dict[str, Any] = {"kubewin_cluster_only": True}
EVERY = [
    "build_csi_proxy",
    "diagnose",
    "enable_csi",
    "gather",
    "handover",
    "preflight",
    "convert_volumes",
    "remove",
    "upgrade",
    "verify",
]


def on_lines(rows: Sequence[Any], every_line: int) -> list[Any]:
    """Rows with the line of ansible-core: each on the main one, and the first `every_line` of them, which need most of it, on all."""
    cores = [(row, core) for core in lines() for row in (rows if core == MAIN else rows[:every_line])]
    return [(*row, core) if isinstance(row, tuple) else (row, core) for row, core in cores]


def refused(
    playbook: str, inventory: str | Path, *arguments: str, core: str | None = None, **given: Any
) -> tuple[str, Run]:
    """The message of the only failure. A run that refuses its inputs does nothing else."""
    run = play(f"playbooks/{playbook}.yml", inventory, *arguments, variables=given, core=core)
    assert run.code != 0
    assert run.changed == []
    assert len({str(item["result"]["msg"]) for item in run.failures}) == 1, run.screen
    return str(run.failures[0]["result"]["msg"]), run


@pytest.mark.parametrize("playbook", ["enable-csi", "verify", "remove"])
def test_with_hosts_every_wrong_input_is_reported_at_once(playbook: str) -> None:
    message, run = refused(playbook, UNREACHABLE, **HOSTS, **WRONG)
    assert "kubewin_drivers is floppy, expected one or more of" in message
    assert "kubewin_batches is abc, expected numbers of hosts or percentages" in message
    assert "kubewin_skip_unreachable is maybe, expected true or false" in message
    assert len(run.plays()) == 1


@pytest.mark.parametrize("playbook", ["handover", "upgrade", "convert_volumes"])
def test_without_hosts_wrong_inputs_are_reported_too(playbook: str) -> None:
    message, _run = refused(playbook, "localhost,", **WRONG)
    assert "kubewin_drivers is floppy" in message


@pytest.mark.parametrize("playbook", EVERY)
def test_names_values_and_the_inventory_are_checked_before_anything_else(playbook: str, tmp_path: Path) -> None:
    """One run reports all of it:  names from the inventory's second host and of -e, and what --limit leaves."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        "linux: {hosts: {192.0.2.9: {}}}\n"
        "windows: {hosts: {192.0.2.1: {}, 192.0.2.2: {kubewin_fail_on: drain, csi_proxy_vesion: 1.3.0, kubewin_upgrade_name: x}}}\n",
        encoding="utf-8",
    )
    core = {"build_csi_proxy": "2.16", "verify": "2.21"}.get(playbook)
    internal = {"kubewin_driver": "smb", "_kubewin_drivers": ["smb"], "csi_driver_version": "1.0.0"}
    message, run = refused(playbook, inventory, "--limit", "linux", core=core, kubewin_ouput_dir="reports", **internal)
    assert len(run.plays()) == 1
    assert "kubewin_fail_on is drain, expected blocked, unknown, warning or never." in message
    assert "csi_proxy_vesion is not a variable of this collection. Did you mean csi_proxy_version?" in message
    assert "kubewin_ouput_dir is not a variable of this collection. Did you mean kubewin_output_dir?" in message
    for name in internal:
        assert f"{name} is not a variable of this collection." in message
    assert "--limit is linux" in message
    assert "kubewin_upgrade_name" not in message


def test_an_input_of_another_playbook_is_refused_where_it_was_typed() -> None:
    message, _run = refused("preflight", "localhost,", "-e", "kubewin_upgrade_target=kubelet=1.27", **ALONE)
    assert message.endswith("it is an input of upgrade. Did you mean kubewin_target?")


@pytest.mark.parametrize("playbook", ["enable_csi", "preflight", "remove", "verify"])
def test_an_inventory_that_cannot_be_read_is_no_word_for_the_cluster_alone(playbook: str, tmp_path: Path) -> None:
    core = {"enable_csi": "2.16", "remove": "2.21"}.get(playbook)
    message, run = refused(playbook, tmp_path / "nosuch.yml", core=core)
    assert "The inventory has no Windows host (windows matches none)" in message
    assert "kubewin_cluster_only=true" in message
    assert len(run.plays()) == 1
    assert "2.16" in lines()


def test_a_removal_from_the_whole_cluster_cannot_be_limited() -> None:
    inventory = "192.0.2.1,192.0.2.2,"
    message, _run = refused("remove", inventory, "--limit", "192.0.2.1", **HOSTS, kubewin_drivers="smb")
    assert "--limit leaves out 192.0.2.2, but the node plugin of smb is removed from all nodes" in message


def test_a_driver_and_a_direction_have_to_be_named() -> None:
    # An unanswered question of a survey is no name.
    message, _run = refused("handover", "localhost,", kubewin_drivers="smb,vsphere", kubewin_handover="to_platform")
    assert "kubewin_drivers is smb, vsphere" in message


@pytest.mark.parametrize("core", lines())
@pytest.mark.parametrize("place", ["wrapper", "inventory"])
def test_hosts_and_batches_may_be_set_at_import_playbook_and_in_the_inventory(
    tmp_path: Path, core: str, place: str
) -> None:
    inventory, wrapper = tmp_path / "hosts.yml", tmp_path / "wrapper.yml"
    values = "{kubewin_hosts: wintel, kubewin_batches: '2,50%'}"
    inventory.write_text("wintel: {hosts: {192.0.2.1: {}, 192.0.2.2: {}}}\n", encoding="utf-8")
    if place == "inventory":
        with inventory.open("a", encoding="utf-8") as file:
            file.write(f"all: {{vars: {values}}}\n")
    settings = f"  vars: {values}\n" if place == "wrapper" else ""
    wrapper.write_text(
        f"- import_playbook: {ROOT / 'playbooks' / 'enable_csi.yml'}\n{settings}"
        "- hosts: localhost\n  gather_facts: false\n  tasks: [{ansible.builtin.debug: }]\n",
        encoding="utf-8",
    )
    run = play(str(wrapper), inventory, "--limit", "192.0.2.2", core=core)
    (inputs,) = run.results("Check the inputs").values()
    assert (inputs["hosts"], inputs["windows"], inputs["batches"]) == (
        "wintel",
        ["192.0.2.1", "192.0.2.2"],
        ["2", "50%"],
    )
    # There is no cluster.
    (failure,) = run.failures
    assert failure["host"] == "192.0.2.2", run.screen
    assert run.summary["failure"].startswith("no access to Kubernetes is configured")


# The first fails before its summary, the second in it.
@pytest.mark.parametrize(
    ("playbook", "core"),
    on_lines(["enable_csi", "preflight", "verify", "convert_volumes", "handover", "gather", "status"], every_line=2),
)
def test_a_failed_run_prints_its_cause_once_and_the_next_command(playbook: str, core: str, tmp_path: Path) -> None:
    """Of a task that fails before the summary, ansible-core 2.19 and later print the message twice themselves."""
    cause, given = (
        "no access to Kubernetes is configured",
        {
            "convert_volumes": {"kubewin_convert_claims": "shop/data"},
            "handover": {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"},
            "gather": {"kubewin_cluster_only": "maybe"},
        }.get(playbook, ALONE),
    )
    if playbook == "gather":
        # It fails for no cluster, so its input is wrong.
        cause = "kubewin_cluster_only is maybe, expected true or false."
    run = play(f"playbooks/{playbook}.yml", "localhost,", variables=given, core=core, env={"HOME": str(tmp_path)})
    assert run.code != 0
    before_summary = playbook in ("enable_csi", "status", "verify")
    assert run.screen.count(cause) == (2 if before_summary and core != "2.16" else 1), run.screen
    assert run.screen.count("The run failed:") == 1
    assert run.screen.count("\nNext, when that is fixed:\n") == (0 if playbook == "gather" else 1), run.screen
    assert cause in run.summary["failure"]


def test_an_api_server_that_does_not_run_is_known_soon() -> None:
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "not-of-any-cluster"}}
    kubeconfig = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
    for playbook in ("preflight", "verify"):
        message, _run = refused(playbook, "localhost,", **ALONE, kubewin_kubeconfig=kubeconfig)
        assert message.startswith("no response from the API server: ")


@pytest.mark.parametrize(
    ("playbook", "task", "inventory", "core"),
    on_lines(
        [
            # Ansible gathers facts, whatever the play says, if it starts at the first task of a play.
            (
                "enable-csi",
                "Plan each driver",
                f"localhost ansible_connection=local ansible_python_interpreter={sys.executable}",
            ),
            ("enable-csi", "Read csi-proxy and plan its change", "192.0.2.1"),
            ("enable-csi", "Print the summary", "192.0.2.1"),
            ("status", "Print the summary", "192.0.2.1"),
            ("verify", "Find the installed drivers", "192.0.2.1"),
            ("convert_volumes", "Check every claim, then convert", "192.0.2.1"),
            ("handover", "Hand over the nodes one by one", "192.0.2.1"),
        ],
        every_line=1,
    ),
)
def test_a_run_that_starts_at_a_later_task_notices_that_its_inputs_were_not_checked(
    playbook: str, task: str, inventory: str, core: str, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{inventory}\n", encoding="utf-8")
    arguments = ("--start-at-task", task)
    run = play(
        f"playbooks/{playbook}.yml", str(hosts), *arguments, variables={**HOSTS, "kubewin_batches": "abc"}, core=core
    )
    assert run.code != 0
    assert run.changed == []
    assert run.summary["failure"].startswith(f"--start-at-task {task}: the task that checks the inputs was skipped")


def test_a_refusal_is_one_with_any_tag() -> None:
    """A rescue whose tasks a tag skips would make a success of it."""
    run = play("playbooks/upgrade.yml", "localhost,", "--tags", "nothing", variables={"kubewin_upgrade_hook": "tasks"})
    assert run.code != 0, run.screen
    assert "kubewin_upgrade_tasks is not given" in run.summary["failure"]


@pytest.mark.parametrize("core", lines())
def test_a_run_whose_output_nobody_reads_any_more_ends(core: str, tmp_path: Path) -> None:
    """As one that is piped into `head`, or whose connection to the controller was lost."""
    record, (reader, writer) = tmp_path / "record.jsonl", os.pipe()
    os.close(reader)
    given = {"kubewin_drivers": "vsphere", "kubewin_kubeconfig": str(tmp_path / "missing")}
    words, environment = command("playbooks/enable_csi.yml", "localhost,", record=record, core=core, variables=given)
    subprocess.run(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    os.close(writer)
    tasks = [event["action"] for event in read(record) if event["event"] == "ok"]
    assert tasks[-1].endswith("summary")
