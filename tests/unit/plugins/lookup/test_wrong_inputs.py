# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that are set are evaluated as their templates come out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup.inventory_hostnames import LookupModule as Hostnames
from ansible.template import Templar
from ansible.utils.context_objects import CLIArgs
from ansible_collections.kubewin.csi.plugins.lookup.wrong_inputs import LookupModule


def lookup() -> LookupModule:
    loader = DataLoader()
    return LookupModule(loader=loader, templar=Templar(loader=loader))


def test_only_what_is_set_is_evaluated() -> None:
    given = {"kubewin_quiesce": "drain", "kubewin_prepull": "yes", "kubewin_batches": "", "inventory_hostname": "win-1"}
    assert lookup().run(["enable_csi"], given) == ["kubewin_quiesce is drain, expected cordon or none."]
    assert lookup().run(["enable_csi"], {}) == []


def test_names_are_evaluated_with_the_variables_of_the_real_roles() -> None:
    given = {
        "csi_proxy_vesion": "1.3.0",
        "azure_disk_csi_mode": "auto",
        "csi_proxy_version": "1.3.0",
        "kubewin_site": "x",
    }
    problems = lookup().run(["enable_csi"], {**given, "kubewin_own_variables": "kubewin_site"})
    assert len(problems) == 1
    assert "csi_proxy_vesion is not a variable of this collection. Did you mean csi_proxy_version?" in problems[0]


def test_values_of_a_drivers_variables_are_evaluated_where_they_are_read() -> None:
    given = {"vsphere_csi_gate_timeout": "", "aws_ebs_csi_batches": "1,25%"}
    (problems,) = lookup().run(["enable_csi"], {**given, "smb_csi_mode": "hostprocess"})
    assert problems == "value of smb_csi_mode must be one of: auto, csi_proxy, host_process, got: hostprocess"
    assert lookup().run(["preflight"], {**given, "smb_csi_mode": "hostprocess"}) == []
    assert lookup().run(["enable_csi"], {**given, "smb_csi_mode": "host_process"}) == []


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
        (problems,) = lookup().run(["upgrade"], given)
        assert problems.startswith(f"kubewin_upgrade_tasks is {path}, {why}")
        assert lookup().run(["upgrade"], {**given, "kubewin_upgrade_hook": "none"}) == []
    path.write_text("- ansible.builtin.debug: {msg: !unsafe '{{ x'}\n", encoding="utf-8")
    assert lookup().run(["upgrade"], given) == []


@pytest.fixture
def hostnames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find Ansible's own lookup without a collection loader."""
    monkeypatch.setattr(lookup_loader, "get", lambda _name, **given: Hostnames(**given))


class Hosts(dict[str, dict[str, Any]]):
    """Variables of the inventory, as hostvars has them."""

    def raw_get(self, host: str) -> dict[str, Any]:
        return self.get(host, {})


def run_of(playbook: str, inventory: dict[str, Any], **play: Any) -> list[str]:
    """The errors with these variables in group_vars/all, and these in the play."""
    names = ["lin-1", "win-1"]
    here = {
        "inventory_hostname": "lin-1",
        "groups": {"all": names, "windows": [], "win": ["win-1"]},
        "hostvars": Hosts({name: dict(inventory) for name in [*names, "localhost"]}),
        "ansible_play_hosts_all": [*names, "localhost"],
    }
    return lookup().run([playbook], {**inventory, **here, **play})


@pytest.mark.usefixtures("hostnames")
def test_variables_that_plays_cannot_read_from_the_inventory_are_refused() -> None:
    problems = run_of("enable_csi", {"kubewin_hosts": "win", "kubewin_cluster_only": True})
    assert problems == [
        "kubewin_hosts is set in the inventory, where plays do not read it. Set it with -e kubewin_hosts=..."
    ]
    (said_of_remove,) = run_of("remove", {"kubewin_remove_csi_proxy": True}, kubewin_hosts="win")
    assert "Set it with -e kubewin_remove_csi_proxy=..." in said_of_remove
    (said_of_batches,) = run_of("remove", {"kubewin_batches": "2", "kubewin_drivers": "smb"}, kubewin_hosts="win")
    assert "Set it with -e kubewin_batches=..." in said_of_batches


@pytest.mark.usefixtures("hostnames")
def test_required_inputs_are_read_on_the_host_where_the_plays_run() -> None:
    """The check runs on any host of the inventory; handover runs on localhost, and remove on Windows hosts."""
    named = {"kubewin_drivers": "smb", "kubewin_handover": "to_kubewin", "kubewin_hosts": "win"}
    for playbook, host in (("handover", "localhost"), ("remove", "win-1")):
        assert any("is not given" in one for one in run_of(playbook, {}, kubewin_hosts="win"))
        hostvars = Hosts({"lin-1": {}, "win-1": {}, "localhost": {}}) | {host: dict(named)}
        assert not any(
            "is not given" in one for one in run_of(playbook, {}, kubewin_hosts="win", hostvars=Hosts(hostvars))
        )


@pytest.mark.usefixtures("hostnames")
def test_a_variable_of_the_host_of_the_check_does_not_count_on_localhost() -> None:
    """Otherwise handover would work on the default driver in place of the one that group_vars/windows names."""
    named = {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"}
    hostvars = Hosts({"lin-1": named, "win-1": named, "localhost": {"kubewin_handover": "to_platform"}})
    (problems,) = run_of("handover", {}, kubewin_hosts="win", hostvars=hostvars, **named)
    assert problems.startswith("kubewin_drivers is not given and kubewin_handover to_platform, expected one driver")


@pytest.mark.usefixtures("hostnames")
def test_variables_of_a_play_are_taken() -> None:
    assert run_of("verify", {}, kubewin_hosts="win") == []
    assert run_of("verify", {"kubewin_hosts": "all"}, kubewin_hosts="win") == []
    assert run_of("upgrade", {"kubewin_batches": "2", "kubewin_hosts": "win"}) == []
    assert run_of("enable_csi", {"kubewin_batches": "2", "kubewin_cluster_only": True}) == []


@pytest.mark.usefixtures("hostnames")
def test_hosts_of_a_play_that_would_change_the_plays_of_enable_csi_are_refused() -> None:
    (problems,) = run_of("enable_csi", {}, kubewin_hosts="win")
    assert problems.startswith("kubewin_hosts is win, set at import_playbook")
    assert "-e kubewin_hosts=win" in problems


@pytest.mark.parametrize("terms", [[], ["kubewin_quiesce"], ["verify", "remove"]])
def test_one_playbook_is_named(terms: list[str]) -> None:
    with pytest.raises(AnsibleError, match="takes the name of one playbook"):
        lookup().run(terms, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "kubewin_drivers=vsphere smb",
            "-e kubewin_drivers=... has words without a name.*Did you mean kubewin_drivers=vsphere,smb",
        ),
        ("kubewin_verify_nodes=win-1 win-2", "-e kubewin_verify_nodes=... has words without a name"),
        ("vsphere", "-e ... has words without a name"),
    ],
)
def test_words_of_the_command_line_that_ansible_drops_are_refused(
    text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": (text,)}))
    (problem,) = lookup().run(["verify"], {})
    assert re.search(expected, problem)


def test_a_dropped_word_may_be_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": ("ansible_password=hunter2 hunter3",)}))
    (problem,) = lookup().run(["verify"], {})
    assert "ansible_password=..." in problem
    assert "hunter" not in problem


def test_a_tag_is_checked_by_the_playbook_that_the_command_line_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "site.yml"
    wrapper.write_text("[{import_playbook: kubewin.csi.enable_csi, tags: [storage]}]", encoding="utf-8")

    def problems(playbook: str, *started: str, **tags: list[str]) -> list[str]:
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"args": started}))
        return lookup().run([playbook], {"ansible_run_tags": ["all"], **tags})

    ours = str(Path(__file__).parents[4] / "playbooks" / "enable-csi.yml")
    for started in (ours, "kubewin.csi.enable_csi", str(wrapper)):
        (problem,) = problems("enable_csi", started, ansible_run_tags=["gates"])
        assert "Did you mean gate?" in problem
        (problem,) = problems("enable_csi", started, ansible_skip_tags=["drivers"])
        assert "Did you mean driver?" in problem
        assert problems("enable_csi", started, ansible_run_tags=["gate"]) == []
    assert problems("enable_csi", str(wrapper), ansible_run_tags=["storage"]) == []
    assert len(problems("enable_csi", ours, ansible_run_tags=["storage"])) == 1
    assert problems("verify", str(wrapper), ansible_run_tags=["gate"]) == []
    assert len(problems("verify", "kubewin.csi.verify", ansible_run_tags=["gate"])) == 1


def test_a_missing_package_is_named_before_anything_imports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    for gone in ("ansible_collections.kubernetes.core", "kubernetes"):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, gone=gone: None if name == gone else find(name))
        (problem,) = lookup().run(["verify"], {})
        assert problem.startswith(f"controller, {gone.removeprefix('ansible_collections.')}: it is not installed")
        assert "install --upgrade" in problem
        # diagnose lists it with what else is to be mended, and a build uses no cluster.
        assert lookup().run(["diagnose"], {}) == lookup().run(["build_csi_proxy"], {}) == []
