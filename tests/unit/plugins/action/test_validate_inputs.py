# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that are set are evaluated as their templates come out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup.inventory_hostnames import LookupModule as Hostnames
from ansible.template import Templar
from ansible.utils.context_objects import CLIArgs
from ansible_collections.kubewin.csi.plugins.action.validate_inputs import ActionModule
from unit.plugins.hostvars import HostVars


@pytest.fixture(autouse=True)
def hostnames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find Ansible's own lookup without a collection loader, and a command line without options."""
    monkeypatch.setattr(lookup_loader, "get", lambda _name, **given: Hostnames(**given))
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({}))


def run_of(playbook: str, inventory: dict[str, Any], hostvars: HostVars | None = None, **play: Any) -> dict[str, Any]:
    """The result with these variables in group_vars/all, and these in the play."""
    names = ["lin-1", "win-1"]
    loader = DataLoader()
    variables = {
        **inventory,
        "inventory_hostname": "lin-1",
        "groups": {"all": names, "windows": [], "win": ["win-1"]},
        "hostvars": hostvars or HostVars({name: dict(inventory) for name in [*names, "localhost"]}),
        "ansible_play_hosts_all": [*names, "localhost"],
        **play,
    }
    task = SimpleNamespace(
        action="kubewin.csi.validate_inputs", args={"playbook": playbook}, async_val=0, check_mode=False,
        get_play=lambda: SimpleNamespace(get_vars=lambda: play),
    )  # fmt: skip
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/"))
    make: Any = ActionModule
    result: dict[str, Any] = make(
        task, connection, None, loader, Templar(loader=loader, variables=variables), None
    ).run(task_vars=variables)
    return result


def problems_of(playbook: str, inventory: dict[str, Any], hostvars: HostVars | None = None, **play: Any) -> list[str]:
    result = run_of(playbook, inventory, hostvars, **play)
    assert result.get("failed", False) == ("msg" in result)
    return str(result["msg"]).splitlines() if "msg" in result else []


def refused(playbook: str, variables: dict[str, Any]) -> list[str]:
    """The problems of a run with one Windows host and these variables, but for what the playbook has to be named."""
    needed = {
        "handover": {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"},
        "remove": {"kubewin_drivers": "smb"},
    }.get(playbook, {})
    return problems_of(playbook, {"kubewin_hosts": "win", **needed, **variables})


def test_only_what_is_set_is_evaluated() -> None:
    given = {
        "kubewin_fail_on": "drain",
        "kubewin_allow_downgrade": "yes",
        "kubewin_batches": "",
    }
    assert refused("enable_csi", given) == ["kubewin_fail_on is drain, expected blocked, unknown, warning or never."]
    assert refused("enable_csi", {}) == []


def test_names_are_evaluated_with_the_variables_of_the_real_roles() -> None:
    given = {
        "csi_proxy_vesion": "1.3.0",
        "azure_disk_csi_mode": "auto",
        "csi_proxy_version": "1.3.0",
    }
    problems = refused("enable_csi", given)
    assert len(problems) == 1
    assert "csi_proxy_vesion is not a variable of this collection. Did you mean csi_proxy_version?" in problems[0]


def test_values_of_a_drivers_variables_are_evaluated_where_they_are_read() -> None:
    given = {"vsphere_csi_gate_timeout": "", "aws_ebs_csi_batches": "1,25%"}
    (problems,) = refused("enable_csi", {**given, "smb_csi_mode": "hostprocess"})
    assert problems == "value of smb_csi_mode must be one of: auto, csi_proxy, host_process, got: hostprocess"
    assert refused("preflight", {**given, "smb_csi_mode": "hostprocess"}) == []
    assert refused("enable_csi", {**given, "smb_csi_mode": "host_process"}) == []


def test_a_file_without_tasks_is_refused_before_a_node_is_drained(tmp_path: Path) -> None:
    path = tmp_path / "one-node.yml"
    given = {"kubewin_upgrade_hook": "tasks", "kubewin_upgrade_tasks": str(path)}
    for text, why in (
        ("- ansible.builtin.debug: {msg: 'x\n", "which cannot be read: "),
        ("", "which is not a list of tasks"),
        ("- hosts: localhost\n  tasks: []\n", "which is not a list of tasks"),
        ("key: value\n", "which is not a list of tasks"),
    ):
        path.write_text(text, encoding="utf-8")
        (problems,) = refused("upgrade", given)
        assert problems.startswith(f"kubewin_upgrade_tasks is {path}, {why}")
        assert refused("upgrade", {**given, "kubewin_upgrade_hook": "none"}) == []
    path.write_text("- ansible.builtin.debug: {msg: !unsafe '{{ x'}\n", encoding="utf-8")
    assert refused("upgrade", given) == []


@pytest.mark.parametrize(
    ("playbook", "inventory", "value"),
    [
        ("enable_csi", {"kubewin_hosts": "win", "kubewin_batches": "2, 50%"}, ["2", "50%"]),
        ("remove", {"kubewin_hosts": "win", "kubewin_drivers": "smb", "kubewin_batches": 1}, ["1"]),
        ("enable_csi", {"kubewin_hosts": "win", "kubewin_batches": ""}, ["1", "25%"]),
    ],
)
def test_hosts_and_batches_are_taken_from_the_inventory(
    playbook: str, inventory: dict[str, Any], value: list[str]
) -> None:
    result = run_of(playbook, inventory)
    assert (result["batches"], result["hosts"], result["windows"]) == (value, "win", ["win-1"])


def test_a_forgotten_variable_of_the_inventory_does_not_remove_csi_proxy() -> None:
    (problem,) = refused("remove", {"kubewin_remove_csi_proxy": True})
    assert "Remove it there, and give it with -e kubewin_remove_csi_proxy=true." in problem
    assert run_of("remove", {"kubewin_hosts": "win"}, kubewin_remove_csi_proxy="yes")["remove_csi_proxy"] is True


def test_an_upgrade_works_on_hosts_only_with_your_tasks(tmp_path: Path) -> None:
    tasks = tmp_path / "one-node.yml"
    tasks.write_text("[{ansible.builtin.debug: }]", encoding="utf-8")
    of_tasks = {"kubewin_upgrade_hook": "tasks", "kubewin_upgrade_tasks": str(tasks)}
    for variables, hosts in ((of_tasks, "win"), ({}, "all:!all")):
        result = run_of("upgrade", {"kubewin_hosts": "win", **variables})
        assert (result["batches"], result["hosts"], result["drivers"]) == (["1"], hosts, [])


def test_a_saved_snapshot_needs_no_host(tmp_path: Path) -> None:
    result = run_of("preflight", {"kubewin_hosts": "win", "kubewin_snapshot_from": str(tmp_path)})
    assert (result["hosts"], result["reads_hosts"]) == ("win", False)


def test_values_are_converted_and_those_of_a_play_override_the_inventory() -> None:
    inventory = {"kubewin_hosts": "nobody", "kubewin_fail_on": "never", "kubewin_skip_unreachable": "yes"}
    result = run_of("enable_csi", inventory, kubewin_hosts="win", kubewin_fail_on="unknown", kubewin_gate_timeout="90")
    assert (result["hosts"], result["fail_on"], result["gate_timeout"]) == ("win", "unknown", 90)
    assert (result["skip_unreachable"], result["allow_downgrade"], result["drivers"]) == (True, False, [])
    assert result["proven"] == {}


def test_what_may_hold_a_secret_is_not_returned() -> None:
    inventory = {"kubewin_hosts": "win", "kubewin_kubeconfig": {"users": [{"user": {"token": "t0ken"}}]}}
    assert "t0ken" not in str(run_of("verify", inventory))


def test_hosts_with_different_values_are_refused() -> None:
    """Otherwise the value of the first host would be used for all."""
    other = {"kubewin_hosts": "all", "kubewin_node_name": "b", "kubewin_allow_downgrade": "yes"}
    hostvars = HostVars({"lin-1": {"kubewin_hosts": "all"}, "win-1": other, "localhost": {"kubewin_hosts": "all"}})
    problems = problems_of("enable_csi", {}, hostvars)
    assert problems == [
        "kubewin_allow_downgrade is yes for win-1 and not set for lin-1, expected one value. Set it for all hosts and localhost, such as "
        "in group_vars/all, or with -e."
    ]
    assert problems_of("preflight", {}, hostvars) == []


def test_different_values_that_may_be_secret_are_refused_without_the_values() -> None:
    config = {"users": [{"user": {"token": "t0ken"}}]}
    own = {"kubewin_hosts": "all", "kubewin_kubeconfig": config}
    hostvars = HostVars({"lin-1": {"kubewin_hosts": "all"}, "win-1": own, "localhost": {"kubewin_hosts": "all"}})
    result = run_of("enable_csi", {}, hostvars)
    assert "kubewin_kubeconfig differs between win-1 and lin-1" in result["msg"]
    assert "Use an inventory and a run for each cluster." in result["msg"]
    assert "t0ken" not in str(result)


@pytest.mark.parametrize(
    ("playbook", "given"),
    [
        ("handover", {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"}),
        ("convert_volumes", {"kubewin_convert_claims": "shop/data"}),
        ("upgrade", {}),
    ],
)
def test_variables_that_only_the_windows_hosts_have_are_refused_where_a_run_works_on_localhost(
    playbook: str, given: dict[str, Any]
) -> None:
    """Otherwise the run would work on the cluster of the default kubeconfig."""
    for_all = {"kubewin_hosts": "win", **given}
    own = {**for_all, "kubewin_kubeconfig": "./other", "kubewin_cluster_only": False, "csi_proxy_version": "1.3.0"}
    hostvars = HostVars({"lin-1": for_all, "win-1": own, "localhost": for_all})
    (problem,) = problems_of(playbook, {}, hostvars)
    assert problem.startswith(
        "kubewin_kubeconfig differs between win-1 and localhost, expected one value. Set it for all"
    )
    hostvars["localhost"] = own
    assert problems_of(playbook, {}, hostvars) == []


def test_variables_that_only_localhost_has_are_refused_where_a_run_also_works_on_hosts(tmp_path: Path) -> None:
    tasks = tmp_path / "one-node.yml"
    tasks.write_text("[{ansible.builtin.debug: }]", encoding="utf-8")
    for_all = {"kubewin_hosts": "win", "kubewin_upgrade_hook": "tasks", "kubewin_upgrade_tasks": str(tasks)}
    hostvars = HostVars({"lin-1": {}, "win-1": for_all, "localhost": {**for_all, "kubewin_context": "blue"}})
    (problem,) = problems_of("upgrade", {}, hostvars)
    assert problem.startswith("kubewin_context is not set for win-1 and blue for localhost, expected one value.")


@pytest.mark.parametrize(
    ("playbook", "target", "other"),
    [("enable_csi", "lin-1", "win-1"), ("handover", "localhost", "lin-1")],
)
def test_a_drivers_options_that_differ_between_hosts_are_refused(playbook: str, target: str, other: str) -> None:
    """A driver has one DaemonSet: the options of one host count for all."""
    for_all = {"kubewin_hosts": "all", "kubewin_drivers": "smb", "kubewin_handover": "to_platform"}
    hosts = {name: dict(for_all) for name in ("lin-1", "win-1", "localhost")}
    hosts[other]["smb_csi_image_mirror"] = "registry.example.com"
    (problem,) = problems_of(playbook, {}, HostVars(hosts))
    assert problem.startswith(f"smb_csi_image_mirror is registry.example.com for {other} and not set for {target}, ")
    assert problems_of("preflight", {}, HostVars(hosts)) == []


def test_a_host_of_the_limit_is_compared_although_one_outside_has_the_same_values() -> None:
    values = {"kubewin_hosts": "all", "kubewin_drivers": "smb"}
    other = {**values, "smb_csi_image_mirror": "registry.example.com"}
    hostvars = HostVars({"lin-1": values, "win-1": other, "win-2": values, "localhost": values})
    for limited, expected in ((["win-1", "win-2"], 1), (["win-1"], 0)):
        play = {
            "groups": {"all": ["lin-1", "win-1", "win-2"], "windows": []},
            "ansible_play_hosts_all": [*limited, "localhost"],
        }
        problems = problems_of("enable_csi", {}, hostvars, **play)
        assert len(problems) == expected, problems


def test_a_pattern_that_only_a_group_has_is_refused() -> None:
    """Plays choose their hosts on localhost: a host that the group leaves out would be changed."""
    hostvars = HostVars(
        {"lin-1": {}, "win-1": {"kubewin_hosts": "windows:!win-9"}, "localhost": {"kubewin_hosts": "all"}}
    )
    (problem,) = problems_of("enable_csi", {}, hostvars)
    assert "kubewin_hosts is windows:!win-9 for win-1 and all for localhost" in problem


def test_a_driver_that_is_named_twice_is_one() -> None:
    assert run_of("enable_csi", {"kubewin_hosts": "win", "kubewin_drivers": "smb, smb"})["drivers"] == ["smb"]


def test_results_of_an_earlier_playbook_are_no_inputs() -> None:
    registered = {"kubewin_nodes": {"changed": False, "nodes": {}}, "kubewin_upgrade_result": ""}
    assert refused("verify", registered) == []
    (problem,) = refused("verify", {"kubewin_nodes": ["win-1"]})
    assert problem.startswith("kubewin_nodes is not a variable of this collection.")


def test_required_inputs_are_read_on_the_host_where_the_plays_run() -> None:
    """The check runs on any host of the inventory; handover runs on localhost."""
    named = {"kubewin_drivers": "smb", "kubewin_handover": "to_kubewin", "kubewin_hosts": "win"}
    hostvars = HostVars({"lin-1": {}, "win-1": {}, "localhost": named})
    assert problems_of("handover", {}, hostvars, kubewin_hosts="win") == []


def test_a_variable_of_the_host_of_the_check_does_not_count_on_localhost() -> None:
    named = {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"}
    hostvars = HostVars({"lin-1": named, "win-1": named, "localhost": {"kubewin_drivers": "smb"}})
    (problems,) = problems_of("handover", {}, hostvars)
    assert problems.startswith("kubewin_drivers is smb and kubewin_handover not given, expected one driver")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "kubewin_drivers=vsphere smb",
            "-e kubewin_drivers=... has words without a name.*Did you mean kubewin_drivers=vsphere,smb",
        ),
        ("kubewin_batches=1 25%", "-e kubewin_batches=... has words without a name"),
        ("vsphere", "-e ... has words without a name"),
    ],
)
def test_words_of_the_command_line_that_ansible_drops_are_refused(
    text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": (text,)}))
    (problem,) = refused("verify", {})
    assert re.search(expected, problem)


def test_a_dropped_word_may_be_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": ("ansible_password=hunter2 hunter3",)}))
    (problem,) = refused("verify", {})
    assert "ansible_password=..." in problem
    assert "hunter" not in problem


def test_a_tag_is_checked_if_the_command_line_names_the_playbook_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def problems(playbook: str, *started: str, **tags: list[str]) -> list[str]:
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"args": started}))
        return refused(playbook, {"ansible_run_tags": ["all"], **tags})

    ours = str(Path(__file__).parents[4] / "playbooks" / "enable-csi.yml")
    for started in (ours, "kubewin.csi.enable_csi"):
        (problem,) = problems("enable_csi", started, ansible_run_tags=["gates"])
        assert "--tags is gates, expected" in problem
        (problem,) = problems("enable_csi", started, ansible_skip_tags=["drivers"])
        assert "--skip-tags is drivers, expected" in problem
        assert problems("enable_csi", started, ansible_run_tags=["gate"]) == []
    assert problems("enable_csi", "site.yml", ansible_run_tags=["storage"]) == []
    assert problems("verify", ours, "kubewin.csi.verify", ansible_run_tags=["gate"]) == []
    assert len(problems("verify", "kubewin.csi.verify", ansible_run_tags=["gate"])) == 1


def test_a_missing_package_is_named_before_anything_imports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    for gone in ("ansible_collections.kubernetes.core", "kubernetes"):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, gone=gone: None if name == gone else find(name))
        (problem,) = refused("verify", {})
        assert problem.startswith(f"controller, {gone.removeprefix('ansible_collections.')}: it is not installed")
        assert "install --upgrade" in problem
        # diagnose lists it with what else is to be mended, and a build uses no cluster.
        assert refused("diagnose", {}) == refused("build_csi_proxy", {}) == []
