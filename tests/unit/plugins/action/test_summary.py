# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closing summary is the job's statistic on every path: a task that fails would set none."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.kubewin.csi.plugins.action import summary
from unit.plugins.hostvars import STATE, HostVars, match

FORMS: list[dict[str, Any]] = [{}, {"nodes": True}]


def run(
    monkeypatch: pytest.MonkeyPatch,
    check: bool = False,
    output_dir: str = "",
    registered: Mapping[str, Any] = types.MappingProxyType({}),
    **options: Any,
) -> dict[str, Any]:
    monkeypatch.setattr(
        "ansible.context.CLIARGS", {"args": ["playbooks/remove.yml"], "inventory": ["hosts.yml"], "check": check}
    )
    task = Mock(check_mode=check, async_val=0, args=options, action="kubewin.csi.summary")
    made: Any = summary.ActionModule
    plan = {"msg": "it could not be read", "reason": "connection_lost"}
    hosts = HostVars({"win-1": {"csi_proxy_plan": plan, "kubewin_nodes": match("win-1")}})
    inputs = {"windows": ["win-1"], "output_dir": output_dir, "playbook": "remove", "remove_csi_proxy": True}
    variables = {"kubewin_inputs": inputs, "ansible_play_hosts_all": ["win-1"], "hostvars": hosts, **registered}
    result: dict[str, Any] = made(task, Mock(), Mock(), Mock(), Mock(), None).run(task_vars=variables)
    return result


@pytest.mark.parametrize("options", FORMS, ids=["lines", "nodes"])
def test_a_failed_run_keeps_the_reason_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    work = {"failed": False, "msg": "win-1 has no room", "next": ["remove"]}
    result = run(monkeypatch, result=work, **options)
    assert not result.get("failed")
    kept = result["ansible_stats"]["data"]["kubewin_summary"]
    assert kept["failure"] == "win-1 has no room"
    following = "enable_csi" if options else "remove"
    assert kept["next"] == [f"ansible-playbook -i hosts.yml kubewin.csi.{following}"]
    shown = capsys.readouterr().out
    # The other form names the command of another playbook.
    heading = "Next:" if options else "Next, when that is fixed:"
    assert shown.endswith(f"The run failed:\n  win-1 has no room\n\n{heading}\n  {kept['next'][0]}\n")


@pytest.mark.parametrize(("failure", "option"), [("no room", " --check"), ("", "")])
def test_only_a_failed_dry_run_is_followed_by_a_dry_run(
    monkeypatch: pytest.MonkeyPatch, failure: str, option: str
) -> None:
    result = run(monkeypatch, check=True, result={"msg": failure}, next=["remove"])
    assert result["summary"]["next"] == [f"ansible-playbook -i hosts.yml kubewin.csi.remove{option}"]


def test_a_summary_that_cannot_be_written_is_still_a_statistic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    try:
        result = run(monkeypatch, nodes=True, output_file="enable-csi.json", output_dir=str(in_the_way))
    except AnsibleActionFail as error:  # as it was
        pytest.fail(f"the statistic is lost: {error}")
    assert result["ansible_stats"]["data"]["kubewin_summary"]["nodes"][0]["host"] == "win-1"
    (warning,) = result["warnings"]
    assert "enable-csi.json cannot be written" in warning
    assert result["path"] is None


def test_what_diagnose_and_verify_list_is_in_the_file_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    work = {"diagnosis": [{"id": "CSI-X15"}], "lines": ["1."], "msg": "host win-1: stopped"}
    result = run(monkeypatch, result=work, output_file="diagnose.json", output_dir=str(tmp_path))
    written = json.loads(Path(result["path"]).read_text(encoding="utf-8"))
    assert written == {**result["summary"], "diagnosis": work["diagnosis"]}
    assert written["failure"] == "host win-1: stopped"
    assert result["ansible_stats"]["data"]["kubewin_summary"] == result["summary"]


def test_a_failure_that_the_lines_above_have_is_not_printed_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = {"lines": ["1. host win-1: stopped"], "msg": "host win-1: stopped", "failure_place": "fix item 1 first."}
    result = run(monkeypatch, result=work)
    assert result["summary"]["failure"] == "host win-1: stopped"
    shown = capsys.readouterr().out
    assert shown.count("host win-1: stopped") == 1
    assert "The run failed: fix item 1 first.\n" in shown


def test_status_names_the_nodes_that_an_interrupted_run_left_cordoned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = match("win-1", matched={"win-1": "win-1"}, cordoned_for="csi-proxy is being replaced")
    inputs = {"windows": ["win-1"], "playbook": "status"}
    hosts = HostVars({"win-1": {"kubewin_nodes": nodes}})
    run(monkeypatch, nodes=True, registered={"kubewin_inputs": inputs, "hostvars": hosts, "kubewin_nodes": nodes})
    assert "Node win-1 is cordoned (csi-proxy is being replaced) and lacks the label" in capsys.readouterr().out


def test_a_failed_upgrade_shows_its_reason_and_not_the_path_of_its_journal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, result={"msg": "Node win-1: not drained", "place": "ConfigMap kubewin/kubewin-upgrade-x"})
    assert "The run failed:\n  Node win-1: not drained\n" in capsys.readouterr().out


def test_status_is_followed_by_diagnose_where_a_node_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"windows": ["win-1"], "playbook": "status"}
    plan = {
        "csi_proxy": {**STATE, "service": {"name": "csi-proxy", "state": "stopped"}, "serving": False},
        "changed": False,
    }
    nodes = match("win-1", matched={"win-1": "win-1"})
    hosts = HostVars({"win-1": {"csi_proxy_plan": plan, "kubewin_nodes": nodes}})
    result = run(
        monkeypatch, nodes=True, accept_unproven=True, registered={"kubewin_inputs": inputs, "hostvars": hosts}
    )
    assert [command.split()[-1] for command in result["summary"]["next"]] == ["kubewin.csi.diagnose"]


def test_a_written_summary_is_also_the_jobs_statistic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run(monkeypatch, nodes=True, output_file="enable-csi.json", output_dir=str(tmp_path))
    assert Path(result["path"]).exists()
    assert result["ansible_stats"]["data"]["kubewin_summary"] == result["summary"]


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({}, "done"),
        ({"result": {"outcome": "paused"}}, "paused"),
        ({"result": {"msg": "no room", "changed": True}}, "failed"),
        # It failed before its first change.
        ({"result": {"msg": "no room", "changed": False}}, "refused"),
        ({"result": {"msg": "no room", "changed": False, "outcome": "failed"}}, "failed"),
        ({"result": {"msg": "no room", "changed": True}, "outcome": "refused"}, "refused"),
        # A dry run changes nothing.
        ({"result": {"msg": "no room", "changed": True}, "check": True}, "refused"),
    ],
)
def test_the_statistic_has_the_outcome_of_the_run(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], outcome: str
) -> None:
    for form in FORMS:
        kept = run(monkeypatch, **form, **options)["ansible_stats"]["data"]["kubewin_summary"]
        assert kept["outcome"] == outcome


def test_a_failed_task_is_named_and_its_message_is_not_printed_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"ansible_failed_result": {"msg": "win-1 has no room"}, "ansible_failed_task": {"name": "Apply"}}
    kept = run(monkeypatch, rescue=True, registered=failed)["summary"]
    assert (kept["failure"], kept["outcome"]) == ("win-1 has no room", "failed")
    shown = capsys.readouterr().out
    assert "The run failed: see the message of the task 'Apply' above." in shown
    assert "no room" not in shown


def test_a_failed_task_may_name_the_command_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"msg": "csi-proxy is in use", "next": ["remove -e kubewin_drivers=smb"]}
    failed = {"ansible_failed_result": result, "ansible_failed_task": {"name": "Check"}}
    kept = run(monkeypatch, rescue=True, registered=failed)["summary"]
    assert kept["next"] == ["ansible-playbook -i hosts.yml kubewin.csi.remove -e kubewin_drivers=smb"]


@pytest.mark.parametrize(
    ("check", "changed", "objects", "expected"),
    [
        (True, True, [], ["remove"]),
        (True, False, [{"kind": "DaemonSet"}], ["remove"]),
        (True, False, [], []),
        (False, True, [], []),
    ],
)
def test_a_dry_removal_of_csi_proxy_is_followed_by_the_removal(
    monkeypatch: pytest.MonkeyPatch, check: bool, changed: bool, objects: list[Any], expected: list[str]
) -> None:
    done = {"changed": changed, "csi_proxy": STATE, "plan": [{"description": "delete the service"}]}
    hosts = HostVars({"win-1": {"csi_proxy_result": done}})
    registered = {"hostvars": hosts, "kubewin_removed": {"objects": objects}}
    kept = run(monkeypatch, check=check, removed=True, registered=registered)["summary"]
    host = "win-1" if changed else "no host"
    assert kept["lines"] == [f"csi-proxy {'would be' if check else 'was'} removed from {host}"]
    assert [words.rpartition(" ")[2] for words in kept["next"]] == [f"kubewin.csi.{name}" for name in expected]


def test_a_removal_of_drivers_and_csi_proxy_has_one_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = {"hostvars": HostVars({"win-1": {}}), "kubewin_removed": {"lines": ["removed DaemonSet vsphere"]}}
    kept = run(monkeypatch, removed=True, registered=registered)["summary"]
    assert kept["lines"] == ["removed DaemonSet vsphere", "csi-proxy was removed from no host"]


def test_a_removal_that_fails_at_a_host_repeats_the_drivers_part_and_names_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["win-1", "win-2", "win-3", "win-4"]
    done = {"changed": True, "csi_proxy": STATE, "plan": [{"description": "delete the service"}]}
    hosts: dict[str, dict[str, Any]] = {
        "win-1": {"csi_proxy_result": done},
        "win-2": {"csi_proxy_result": {**done, "failed": True, "msg": "access is denied"}},
        "win-3": {"csi_proxy_plan": {**done, "changed": False}},
        "win-4": {"csi_proxy_plan": {"csi_proxy": STATE, "plan": []}},
    }
    registered = {
        "hostvars": HostVars(hosts),
        "ansible_play_hosts_all": names,
        "kubewin_inputs": {"windows": names, "playbook": "remove", "remove_csi_proxy": True},
        "kubewin_removed": {"lines": ["removed DaemonSet vsphere"], "changed": True},
        "ansible_failed_result": {"msg": "win-2: access is denied"},
        "ansible_failed_task": {"name": "Fail if csi-proxy could not be changed on a host"},
    }
    kept = run(monkeypatch, removed=True, rescue=True, registered=registered)["summary"]
    assert kept["lines"] == [
        "removed DaemonSet vsphere",
        "csi-proxy was removed from win-1",
        "not removed yet: csi-proxy on win-2, win-3",
    ]
    assert (kept["failure"], kept["outcome"]) == ("win-2: access is denied", "failed")
    assert capsys.readouterr().out.startswith(
        "\nremoved DaemonSet vsphere\ncsi-proxy was removed from win-1\nnot removed yet"
    )


def test_a_removal_of_drivers_that_fails_has_no_line_about_csi_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = {
        "kubewin_inputs": {"windows": ["win-1"], "playbook": "remove", "remove_csi_proxy": False},
        "kubewin_removed": {"lines": ["not removed yet: DaemonSet vsphere"]},
        "ansible_failed_result": {"msg": "pods still exist"},
        "ansible_failed_task": {"name": "Remove the drivers' node plugins"},
    }
    kept = run(monkeypatch, removed=True, rescue=True, registered=registered)["summary"]
    assert kept["lines"] == ["not removed yet: DaemonSet vsphere"]


@pytest.mark.parametrize(("changed", "outcome"), [(False, "refused"), (True, "failed")])
def test_a_removal_that_is_refused_before_its_first_change_says_so(
    monkeypatch: pytest.MonkeyPatch, changed: bool, outcome: str
) -> None:
    plan = {"csi_proxy": STATE, "plan": [{"description": "delete"}]}
    registered = {
        "hostvars": HostVars({"win-1": {"csi_proxy_plan": plan}}),
        "kubewin_removed": {"lines": [], "changed": changed},
        "ansible_failed_result": {"msg": "win-1: pod default/shop"},
        "ansible_failed_task": {"name": "Check"},
    }
    kept = run(monkeypatch, removed=True, rescue=True, registered=registered)["summary"]
    left = ["csi-proxy was removed from no host", "not removed yet: csi-proxy on win-1"] if changed else []
    assert (kept["outcome"], kept["lines"]) == (outcome, left)


def test_a_dry_removal_of_drivers_is_followed_by_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = {
        "kubewin_inputs": {"windows": [], "playbook": "remove", "remove_csi_proxy": False},
        "kubewin_removed": {"lines": ["would remove DaemonSet vsphere"], "next": ["remove"]},
    }
    kept = run(monkeypatch, check=True, removed=True, registered=registered)["summary"]
    assert kept["next"] == ["ansible-playbook -i hosts.yml kubewin.csi.remove"]


def test_a_removal_names_a_host_that_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {"failed": True, "reason": "connection_lost", "msg": "no route"}
    inputs = {"skip_unreachable": True, "windows": ["win-1"], "remove_csi_proxy": True}
    registered = {"hostvars": HostVars({"win-1": {"csi_proxy_plan": lost, "kubewin_inputs": inputs}})}
    kept = run(monkeypatch, removed=True, registered=registered)["summary"]
    assert kept["lines"] == [
        "csi-proxy was removed from no host",
        "win-1 is unreachable: skipped, csi-proxy stays there",
    ]


def test_a_status_that_read_no_host_fails_and_names_the_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = run(monkeypatch, nodes=True, accept_unproven=True)["summary"]
    assert kept["failure"] == "win-1: not read, expected at least one Windows host that can be read."
    assert (kept["outcome"], [words.rpartition(" ")[2] for words in kept["next"]]) == (
        "failed",
        ["kubewin.csi.diagnose"],
    )
    assert "The run failed:\n  win-1: not read" in capsys.readouterr().out


@pytest.mark.parametrize("outcome", ["refused", "failed"])
def test_a_refused_run_names_the_nodes_that_a_cancelled_run_left_cordoned(
    monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    failed = {
        "ansible_failed_result": {"msg": "volumes would lose their driver"},
        "ansible_failed_task": {"name": "Fail if volumes would lose their driver"},
        "kubewin_nodes": match("win-1", cordoned_for="csi-proxy is being replaced"),
    }
    kept = run(monkeypatch, rescue=True, outcome=outcome, registered=failed)["summary"]
    assert "volumes would lose their driver" in kept["failure"]
    # Another outcome comes after changes, among them that of this Node.
    assert ("Node win-1 is cordoned (csi-proxy is being replaced)" in kept["failure"]) == (outcome == "refused")
