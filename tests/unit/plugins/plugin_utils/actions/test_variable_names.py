# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable with one of our prefixes is one that exists, or is refused with the nearest that does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import variable_names
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import declared

ROOT = Path(__file__).parents[5]
PLAYBOOKS = ROOT / "playbooks"


def errors(playbook: str, *given: str, extra: Iterable[str] = ()) -> list[str]:
    """Refusals of names, where `extra` are those of -e, one by one."""
    return variable_names.find_refused_variables(playbook, given, extra, extra)[0]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("kubewin_ouput_dir", "kubewin_output_dir"),
        ("kubewin_upgrade_pauses", "kubewin_upgrade_pause"),
        ("kubewin_driver", "kubewin_drivers"),
        ("_kubewin_drivers", "kubewin_drivers"),
        ("csi_proxy_vesion", "csi_proxy_version"),
        ("vsphere_csi_versoin", "vsphere_csi_version"),
    ],
)
def test_a_mistyped_or_internal_name_is_refused_with_the_nearest(given: str, meant: str) -> None:
    for playbook in ("enable_csi", "preflight", "build_csi_proxy"):
        for one in (errors(playbook, given), errors(playbook, extra=[given])):
            (sentence,) = one
            assert sentence.startswith(f"{given} is not a variable of this collection. Did you mean {meant}? ")


def test_a_name_like_none_is_refused_without_a_guess() -> None:
    (sentence,) = errors("verify", "kubewin_colour")
    assert "Did you mean" not in sentence
    assert "another prefix" in sentence


def test_own_variables_of_the_user_pass() -> None:
    others = ["ansible_user", "inventory_hostname", "netapp_csi_version", "site", "kubernetes_release"]
    assert errors("enable_csi", *others, extra=others) == []


def test_a_mistyped_prefix_is_detected_in_extra_variables() -> None:
    (sentence,) = errors("enable_csi", extra=["kubwin_drivers"])
    assert "Did you mean kubewin_drivers?" in sentence
    assert errors("enable_csi", "kubwin_drivers") == []


def test_variables_of_the_role_csi_driver_are_refused_only_as_extra_variables() -> None:
    assert len(errors("enable_csi", extra=["csi_driver_version"])) == 1
    assert errors("enable_csi", "csi_driver_version") == []


def test_a_variable_that_the_playbook_sets_is_refused() -> None:
    (sentence,) = errors("remove", extra=["csi_proxy_state"])
    assert "enable_csi installs, remove removes" in sentence
    assert len(errors("enable_csi", "csi_proxy_state")) == 1


@pytest.mark.parametrize("role", variable_names.ROLES)
def test_the_variables_of_a_role_are_those_of_its_specs(role: str) -> None:
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text("utf-8")
    specs = {name for entry in yaml.safe_load(text)["argument_specs"].values() for name in entry["options"]}
    assert variable_names.list_role_variables(role) == specs


# https://github.com/kubernetes-sigs/kubespray, roles/kubespray_defaults and roles/kubernetes-apps/csi_driver.
KUBESPRAYS = (
    "vsphere_csi_enabled", "vsphere_csi_controller_replicas", "vsphere_csi_aggressive_node_drain", "vsphere_csi_block_volume_snapshot",
    "aws_ebs_csi_enabled", "aws_ebs_csi_enable_volume_scheduling", "aws_ebs_csi_controller_replicas",
)  # fmt: skip


@pytest.mark.parametrize("name", KUBESPRAYS)
def test_names_of_another_project_are_ignored_in_the_inventory_and_refused_where_they_were_given_for_this_run(
    name: str,
) -> None:
    wrong, ignored = variable_names.find_refused_variables("enable_csi", [name], [], [])
    assert wrong == []
    assert ignored == [f"{name} is not a variable of this collection and is ignored."]
    assert variable_names.find_refused_variables("enable_csi", [], [name], [name])[0]


@pytest.mark.parametrize(
    "name", ["vsphere_csi_vesion", "vsphere_csi_gate_timout", "smb_csi_node_timeouts", "aws_ebs_csi_mod"]
)
def test_slips_are_refused_in_the_inventory_too(name: str) -> None:
    (sentence,) = variable_names.find_refused_variables("enable_csi", [name], [], [])[0]
    assert "Did you mean" in sentence


def test_an_input_of_another_playbook_is_refused_where_it_was_typed_and_else_fits() -> None:
    (sentence,) = errors("preflight", extra=["kubewin_upgrade_target"])
    assert sentence == (
        "kubewin_upgrade_target is set for preflight, which does not use it; it is an input of upgrade. Did you mean kubewin_target?"
    )
    # One inventory serves all playbooks, and so may a file of extra variables.
    assert variable_names.find_refused_variables("preflight", ["kubewin_upgrade_target"], [], []) == ([], [])
    wrong, elsewhere = variable_names.find_refused_variables("preflight", [], ["csi_proxy_version"], [])
    assert wrong == []
    assert elsewhere == [
        "csi_proxy_version is set for preflight, which does not use it; it is an input of enable_csi or remove."
    ]


@pytest.mark.parametrize("job", ["awx_workflow_job_id", "tower_workflow_job_id"])
def test_answers_for_other_jobs_of_a_workflow_pass_and_a_mistyped_name_does_not(job: str) -> None:
    answers = ["kubewin_convert_claims", "csi_proxy_version", "kubewin_drivers"]
    assert variable_names.find_refused_variables("diagnose", [], [job, *answers], []) == ([], [])
    assert len(variable_names.find_refused_variables("diagnose", [], ["awx_job_id", *answers], [])[1]) == 2
    wrong, elsewhere = variable_names.find_refused_variables("diagnose", [], [job, "kubewin_convert_claim"], [])
    assert "Did you mean kubewin_convert_claims?" in wrong[0]
    assert elsewhere == []


def test_statistics_and_inventory_variables_pass_everywhere() -> None:
    handed = [*variable_names.STATISTICS, *variable_names.INVENTORY]
    assert errors("upgrade", *handed, extra=handed) == []


def test_every_statistic_is_known() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in _sources())
    found = set(re.findall(r"set_stats:(?: &\w+)?\n +data:\n +(\w+):", text)) | set(
        re.findall(r'(?:"data": \{|set_statistic\()"(\w+)"', text)
    )
    assert found - set(INPUTS) == variable_names.STATISTICS


def _sources() -> Iterator[Path]:
    yield from PLAYBOOKS.rglob("*.yml")
    yield from (ROOT / "plugins" / "action").glob("*.py")


def test_variables_of_the_inventory_plugin_are_known() -> None:
    folder = ROOT / "plugins" / "plugin_utils" / "inventory"
    sources = [*folder.glob("*.py"), ROOT / "plugins" / "inventory" / "windows_nodes.py"]
    written = set(re.findall(r'"(kubewin_\w+)":', "\n".join(path.read_text(encoding="utf-8") for path in sources)))
    assert written
    assert written <= variable_names.INVENTORY | {"kubewin_node_name"}


# What a playbook uses of its inputs' values besides the inputs.
OF_EVERY = {"hosts", "windows", "reads_hosts", "playbook", "msg"}
# Read by the check of the inputs alone.
CHECKED = {"own_variables", "cluster_only", "node_name", "kubeconfig", "context", "hosts"}


@cache
def _text(playbook: str) -> str:
    """A playbook, and the files of tasks that it imports."""
    text = (PLAYBOOKS / f"{playbook}.yml").read_text(encoding="utf-8")
    files = [PLAYBOOKS / "tasks" / file for file in re.findall(r"\btasks/(\w+\.yml)", text)]
    return text + "".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("playbook", sorted({name for rule in INPUTS.values() for name in rule.playbooks}))
def test_a_playbook_uses_its_own_inputs_and_all_of_them(playbook: str) -> None:
    declared_inputs = {name.removeprefix("kubewin_") for name, rule in INPUTS.items() if playbook in rule.playbooks}
    text = _text(playbook)
    used = set(re.findall(r"kubewin_inputs\.(\w+)", text))
    assert used - OF_EVERY - declared_inputs == set()
    actions = set(re.findall(r"\bkubewin\.csi\.(\w+):", text)) | (
        {"csi_proxy"} if "kubewin.csi.csi_proxy" in text else set()
    )
    read = _read_by_actions(actions) | set(re.findall(r"\bkubewin_(\w+)", text))
    assert declared_inputs - used - CHECKED - read == set()


def _read_by_actions(actions: set[str]) -> set[str]:
    """Names of inputs that actions read themselves."""
    read = {option.playbooks.removeprefix("kubewin_") for option in declared.OPTIONS.values()}
    files = [file for name in actions if (file := ROOT / "plugins" / "action" / f"{name}.py").exists()]
    files.append(ROOT / "plugins" / "plugin_utils" / "actions" / "host_results.py")
    for file in files:
        read |= set(re.findall(r'"(\w+)"', file.read_text(encoding="utf-8")))
    return read


def _variables(node: Any) -> Iterator[str]:
    """Every variable that a playbook sets itself."""
    if isinstance(node, list):
        for one in node:
            yield from _variables(one)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in ("vars", "ansible.builtin.set_fact") and isinstance(value, dict):
            yield from value
        if key == "register":
            yield value
        if key == "loop_control" and "loop_var" in value:
            yield value["loop_var"]
        yield from _variables(value)


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.rglob("*.yml")), ids=lambda path: path.name)
def test_no_variable_of_a_playbook_can_be_set_from_outside(path: Path) -> None:
    """An extra variable wins over them all, so each has a name that the check of the inputs refuses."""
    ours = set(_variables(yaml.safe_load(path.read_text(encoding="utf-8"))))
    ansible = {name for name in ours if name.startswith("ansible_")} | {"<<"}
    open_to_all = {name for name in ours - ansible - {"csi_proxy_state"} if not errors("enable_csi", extra=[name])}
    assert open_to_all == set()


def test_facts_of_one_playbook_are_accepted_by_the_next_of_the_same_run() -> None:
    pattern = re.compile(r"set_fact:\n((?:\s+(?:#.*|kubewin_\w+:.*)\n)+)")
    texts = [path.read_text(encoding="utf-8") for path in PLAYBOOKS.rglob("*.yml")]
    tasks = [task for text in texts for task in pattern.findall(text)]
    assert {name for task in tasks for name in re.findall(r"(?m)^\s+(kubewin_\w+):", task)} == variable_names.FACTS
