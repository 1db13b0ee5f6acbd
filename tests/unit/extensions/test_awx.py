# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What extensions/awx defines is what the modules of awx.awx take, each part names parts that are there, and apply.yml gives all of it."""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import template
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, list_wrong_inputs
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.awx_api import launch_errors, launch_variables, rule_errors, survey_error, validate_answers

PROJECT = Path(__file__).parents[3] / "extensions" / "awx"
PLAY: dict[str, Any] = yaml.safe_load((PROJECT / "apply.yml").read_text(encoding="utf-8"))[0]
GIVEN: dict[str, Any] = {
    "notification_url": "https://hooks.example.com",
    "cluster_token": "t",
    "windows_password": "p",
    "project_credential": "production git",
    "registry_credential": "production registry",
    "instance_groups": ["windows"],
    "operator_teams": ["operators"],
    "approver_teams": ["approvers"],
}
READING = {"preflight", "status", "diagnose", "gather", "verify"}
# The variables of the roles of infra.aap_configuration, in the order of its role dispatch, which applies them:
# https://github.com/redhat-cop/infra.aap_configuration/blob/3.0.0/roles/dispatch/defaults/main.yml
DISPATCHED = (
    "controller_labels", "controller_credentials", "controller_execution_environments", "controller_notifications", "controller_projects",
    "controller_inventories", "controller_inventory_sources", "controller_templates", "controller_workflows",
    "controller_schedules",
)  # fmt: skip
trust = getattr(template, "trust_as_template", str)


def trusted(value: Any) -> Any:
    """A value from a file with its templates."""
    if isinstance(value, dict):
        return {key: trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trusted(item) for item in value]
    return trust(value) if isinstance(value, str) else value


def variables(**given: Any) -> dict[str, Any]:
    """What apply.yml reads from its files, templates filled in."""
    return fill_templates(json.dumps(given))


@functools.cache
def fill_templates(given: str) -> dict[str, Any]:
    """The same for variables as JSON. The tests only read it."""
    # These come from the environment.
    access = {"cluster_host": "https://api.example.com:6443", "cluster_token": ""}
    raw: dict[str, Any] = {}
    for name in PLAY["vars_files"]:
        raw |= yaml.safe_load((PROJECT / name).read_text(encoding="utf-8"))
    raw |= access | json.loads(given)
    templar = Templar(loader=DataLoader(), variables={key: trusted(value) for key, value in raw.items()})
    return {name: templar.template(trusted(value)) for name, value in raw.items()}


def tasks(playbook: str = "apply.yml") -> Iterator[tuple[str, str, dict[str, str]]]:
    """The module, the variable of the loop, and the options of each task."""
    for task in yaml.safe_load((PROJECT / playbook).read_text(encoding="utf-8"))[0]["tasks"]:
        (module,) = [key for key in task if key.startswith("awx.awx.")]
        yield module, re.findall(r"controller_\w+", task["loop"])[0], task[module]


def spec_of(module: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The argument spec with which the module of awx.awx is made."""
    specs: list[dict[str, Any]] = []

    class CreatedError(Exception):
        pass

    def create(argument_spec: dict[str, Any], **_more: object) -> None:
        specs.append(argument_spec)
        raise CreatedError

    loaded = importlib.import_module(f"ansible_collections.awx.awx.plugins.modules.{module.rpartition('.')[2]}")
    monkeypatch.setattr(loaded, "ControllerAPIModule", create)
    with pytest.raises(CreatedError):
        loaded.main()
    return specs[0]


@pytest.mark.parametrize("given", [{}, GIVEN], ids=["as shipped", "with everything"])
@pytest.mark.parametrize(
    ("module", "loop", "options"), list(tasks()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_definition_is_what_its_module_takes(
    monkeypatch: pytest.MonkeyPatch, module: str, loop: str, options: dict[str, str], given: dict[str, str]
) -> None:
    spec = spec_of(module, monkeypatch)
    assert set(options) <= set(spec)
    items = variables(**given)[loop]
    assert items or not given
    for item in items:
        checked = ArgumentSpecValidator(spec).validate(item)
        assert checked.error_messages == []
        # What is defined is given, and nothing else is.
        assert set(item) <= set(options), f"apply.yml leaves out {set(item) - set(options)}"
        # An option of the task alone is no template.
        missing = {
            name for name in set(options) - set(item) if "{{" in str(options[name]) and "omit" not in str(options[name])
        }
        assert not missing, f"{item.get('name', loop)} lacks {missing}"


def test_infra_aap_configuration_applies_the_same_variables_in_the_same_order() -> None:
    defined = {name for path in (PROJECT / "controller").iterdir() for name in yaml.safe_load(path.read_text("utf-8"))}
    # Its role dispatch leaves out controller_roles; its role controller_roles applies them.
    assert {name for name in defined if name.startswith("controller_")} == {*DISPATCHED, "controller_roles"}
    assert [loop for _module, loop, _options in tasks()] == [*DISPATCHED, "controller_roles"]


def test_delete_removes_what_apply_creates() -> None:
    deleted = [loop for _module, loop, options in tasks("delete.yml") if options["state"] == "absent"]
    # AWX deletes these with the templates and inventories that they belong to.
    dependent = {"controller_labels", "controller_inventory_sources", "controller_schedules", "controller_roles"}
    assert {*deleted, *dependent} == {*DISPATCHED, "controller_roles"}


def test_every_part_names_parts_that_are_there() -> None:
    definitions = variables(**GIVEN)
    named = {
        loop: [item["name"] for item in definitions[loop]]
        for _module, loop, _options in tasks()
        if loop != "controller_roles"
    }
    assert all(len(names) == len(set(names)) for names in named.values())
    templates = named["controller_templates"]
    for item in definitions["controller_templates"]:
        assert item["project"] in named["controller_projects"]
        assert item["inventory"] in named["controller_inventories"]
        assert set(item["credentials"]) <= set(named["controller_credentials"])
        assert set(item["notification_templates_error"]) == set(named["controller_notifications"])
        assert item["labels"] == named["controller_labels"]
    for item in definitions["controller_workflows"]:
        assert item["labels"] == named["controller_labels"]
        for when in ("error", "approvals"):
            assert item[f"notification_templates_{when}"] == named["controller_notifications"]
    for item in definitions["controller_schedules"]:
        assert item["unified_job_template"] in templates
        assert list_wrong_inputs(item["extra_data"]) == []
    for item in definitions["controller_roles"]:
        assert set(item["job_templates"]) <= set(templates)
        assert set(item["workflows"]) == set(named["controller_workflows"])
    (source,) = definitions["controller_inventory_sources"]
    assert (PROJECT / source["source_path"]).exists()


def test_each_setting_reaches_what_is_created() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (PROJECT / "controller").iterdir())
    used = set(re.findall(r"\w+", " ".join(re.findall(r"{{.*?}}", texts, re.DOTALL))))
    assert set(yaml.safe_load((PROJECT / "settings.yml").read_text(encoding="utf-8"))) - used == set()


def workflows() -> dict[str, dict[str, Any]]:
    """The nodes of each workflow, by identifier."""
    definitions = variables(**GIVEN)["controller_workflows"]
    return {item["name"]: {node["identifier"]: node for node in item["workflow_nodes"]} for item in definitions}


def follow(nodes: dict[str, Any], results: dict[str, bool]) -> tuple[list[str], bool]:
    """The nodes that AWX starts, and whether the workflow succeeds: bfs_nodes_to_run and has_workflow_failed of
    awx/main/scheduler/dag_workflow.py. results: of the nodes that fail or, being an approval, are denied; others succeed.
    """
    started, succeeded = [next(iter(nodes))], True
    for name in started:
        related, result = nodes[name].get("related", {}), results.get(name, True)
        following = related.get("success_nodes" if result else "failure_nodes", []) + related.get("always_nodes", [])
        handled = related.get("failure_nodes", []) + related.get("always_nodes", [])
        succeeded &= result or bool(handled)
        started += [node["identifier"] for node in following if node["identifier"] not in started]
    return started, succeeded


@pytest.mark.parametrize("name", workflows())
def test_a_workflow_changes_nothing_before_an_approval_and_is_green_only_after_the_change(name: str) -> None:
    nodes = workflows()[name]
    kinds = {node: content["unified_job_template"]["type"] for node, content in nodes.items()}
    templates = {item["name"] for item in variables(**GIVEN)["controller_templates"]}
    assert all(
        kinds[node] == "workflow_approval" or nodes[node]["unified_job_template"]["name"] in templates for node in nodes
    )
    assert all(list_wrong_inputs(node.get("extra_data", {})) == [] for node in nodes.values())
    approvals = [nodes[node]["unified_job_template"] for node in nodes if kinds[node] == "workflow_approval"]
    assert {approval["timeout"] for approval in approvals} == {28800}
    usual, succeeded = follow(nodes, {})
    assert succeeded
    approval = next(node for node in usual if kinds[node] == "workflow_approval")
    before = usual[: usual.index(approval)]
    # A dry run, or a job that only reads.
    assert [node for node in before if nodes[node].get("job_type") != "check" and node != "preflight"] == []
    assert follow(nodes, {approval: False}) == ([*before, approval], False)
    refused, succeeded = follow(nodes, dict.fromkeys(nodes, False))
    assert not succeeded
    assert "change" not in refused
    failed, succeeded = follow(nodes, {"change": False, "diagnose": False, "approve_retry": False})
    assert failed[-3:] == ["change", "diagnose", "approve_retry"]
    assert not succeeded
    repeated, succeeded = follow(nodes, {"change": False, "diagnose": False})
    assert repeated[-len(usual[usual.index("change") :]) :] == ["retry", *usual[usual.index("change") + 1 :]]
    assert succeeded
    assert follow(nodes, {"change": False, "retry": False})[1] is False
    assert set(nodes) == {*usual, *repeated, *follow(nodes, {"preflight": False})[0]}


def test_an_approval_says_what_the_preflight_found() -> None:
    nodes = workflows()["production upgrade nodes"]
    for results, verdict in (({}, "nothing unknown"), ({"preflight": False}, "something is unknown")):
        started, _succeeded = follow(nodes, results)
        approval = next(nodes[node] for node in started if node.startswith("approve"))
        assert verdict in approval["unified_job_template"]["name"]
    assert nodes["preflight"]["extra_data"] == {"kubewin_fail_on": "unknown"}
    assert nodes["preflight_blocked"]["extra_data"] == {"kubewin_fail_on": "blocked"}


def test_operators_start_no_change_without_an_approval_and_approvers_start_nothing() -> None:
    execute, approval, read = variables(**GIVEN)["controller_roles"]
    assert (execute["role"], execute["teams"]) == ("execute", ["operators"])
    assert set(execute["job_templates"]) == {f"production {name}" for name in READING}
    assert (approval["role"], approval["teams"], approval["job_templates"]) == ("approval", ["approvers"], [])
    assert (read["role"], read["teams"]) == ("read", ["operators", "approvers"])


def test_awx_takes_the_saved_launches_and_the_rules_of_schedules() -> None:
    definitions = variables(**GIVEN)
    templates = {item["name"]: item for item in definitions["controller_templates"]}
    nodes = [node for content in workflows().values() for node in content.values()]
    jobs = [node for node in nodes if node["unified_job_template"]["type"] == "job_template"]
    for saved, name, required in [
        *((node, node["unified_job_template"]["name"], False) for node in jobs),
        *((item, item["unified_job_template"], True) for item in definitions["controller_schedules"]),
    ]:
        template = templates[name]
        assert launch_errors(template, template["survey_spec"], saved, required=required) == {}
    assert [rule_errors(item["rrule"]) for item in definitions["controller_schedules"]] == [[]] * 3
    # A template that does not ask refuses both.
    (check,) = [node for node in jobs if node.get("job_type") and "remove" in node["unified_job_template"]["name"]]
    silent = {**templates["production remove"], "ask_job_type_on_launch": False, "ask_variables_on_launch": False}
    errors = launch_errors(silent, silent["survey_spec"], {**check, "extra_data": {"a": 1}}, required=False)
    assert set(errors) == {"job_type", "extra_data"}


def test_the_connection_of_the_settings_reaches_the_hosts() -> None:
    """A host variable of the inventory plugin would win over a variable of the inventory."""
    assert "ansible_connection" in variables()["windows_variables"]
    assert yaml.safe_load((PROJECT / "windows_nodes.yml").read_text(encoding="utf-8"))["connection"] == "none"


def test_a_template_runs_a_wrapper_with_its_survey() -> None:
    definitions = variables()
    for item in definitions["controller_templates"]:
        (play,) = yaml.safe_load((PROJECT / item["playbook"]).read_text(encoding="utf-8"))
        playbook = Path(item["playbook"]).stem
        assert play["ansible.builtin.import_playbook"] == f"kubewin.csi.{playbook}"
        assert item["survey_spec"] == definitions["surveys"][playbook]


SURVEYS: dict[str, Any] = variables()["surveys"]
QUESTIONS = [(playbook, question) for playbook, survey in SURVEYS.items() for question in survey["spec"]]


@pytest.mark.parametrize(
    ("playbook", "question"), QUESTIONS, ids=lambda part: part if isinstance(part, str) else part["variable"]
)
def test_a_question_fits_its_input(playbook: str, question: dict[str, Any]) -> None:
    rule = INPUTS[question["variable"]]
    assert playbook in rule.playbooks
    assert question["question_name"].endswith("?")
    if question["required"]:
        assert "Blank" not in question["question_description"]
    choices = question.get("choices", [])
    if choices:
        assert [choice for choice in choices if list_wrong_inputs({question["variable"]: choice})] == []
        assert set(rule.choices or choices) == set(choices)
        assert not rule.fits("something else")
    if question["variable"] == "kubewin_drivers":
        assert choices == sorted(DRIVERS)


@pytest.mark.parametrize("playbook", SURVEYS)
def test_a_launch_without_answers_leaves_the_inventory_its_say(playbook: str) -> None:
    questions = SURVEYS[playbook]["spec"]
    assert 1 <= len(questions) <= 5
    assert survey_error(SURVEYS[playbook]) == ""
    assert launch_variables(SURVEYS[playbook], {}) == {}
    required = [question["variable"] for question in questions if question["required"]]
    assert len(validate_answers(SURVEYS[playbook], {})) == len(required)
    # An empty text is no answer.
    assert len(validate_answers(SURVEYS[playbook], dict.fromkeys(required, ""))) == len(required)
