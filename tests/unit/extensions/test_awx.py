# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What extensions/awx defines is what the modules of awx.awx take, each part names parts that are there, and apply.yml gives all of it."""

from __future__ import annotations

import importlib
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
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, wrong
from unit.roles.surveys import QUESTIONS, REQUIRED

PROJECT = Path(__file__).parents[3] / "extensions" / "awx"
PLAY: dict[str, Any] = yaml.safe_load((PROJECT / "apply.yml").read_text(encoding="utf-8"))[0]
GIVEN = {
    "notification_url": "https://hooks.example.com",
    "execution_environment_image": "quay.io/example/kubewin",
    "cluster_token": "t",
    "project_credential": "production git",
}
# Values that the documentation of AWX's API allows for a survey.
TYPES = {"text", "textarea", "password", "integer", "float", "multiplechoice", "multiselect"}
# The variables of the roles of infra.aap_configuration, in the order of its role dispatch, which applies them:
# https://github.com/redhat-cop/infra.aap_configuration/blob/3.0.0/roles/dispatch/defaults/main.yml
DISPATCHED = (
    "controller_credentials", "controller_execution_environments", "controller_notifications", "controller_projects",
    "controller_inventories", "controller_inventory_sources", "controller_templates", "controller_workflows",
    "controller_schedules",
)  # fmt: skip
trust = getattr(template, "trust_as_template", str)


def trusted(value: Any) -> Any:
    """A value from a file with its templates."""
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [trusted(one) for one in value]
    return trust(value) if isinstance(value, str) else value


def variables(**given: Any) -> dict[str, Any]:
    """What apply.yml reads from its files, templates filled in."""
    # These come from the environment.
    access = {"cluster_host": "https://api.example.com:6443", "cluster_token": ""}
    raw: dict[str, Any] = {}
    for name in PLAY["vars_files"]:
        raw |= yaml.safe_load((PROJECT / name).read_text(encoding="utf-8"))
    raw |= access | given
    templar = Templar(loader=DataLoader(), variables={key: trusted(value) for key, value in raw.items()})
    return {name: templar.template(trusted(value)) for name, value in raw.items()}


def tasks() -> Iterator[tuple[str, str, dict[str, str]]]:
    """The module, the variable of the loop, and the options of each task of apply.yml."""
    for task in PLAY["tasks"]:
        (module,) = [key for key in task if key.startswith("awx.awx.")]
        yield module, re.sub(r"[{} ]", "", task["loop"]), task[module]


def spec_of(module: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The argument spec with which the module of awx.awx is made."""
    found: list[dict[str, Any]] = []

    class Made(Exception):
        pass

    def made(argument_spec: dict[str, Any], **_more: object) -> None:
        found.append(argument_spec)
        raise Made

    loaded = importlib.import_module(f"ansible_collections.awx.awx.plugins.modules.{module.rpartition('.')[2]}")
    monkeypatch.setattr(loaded, "ControllerAPIModule", made)
    with pytest.raises(Made):
        loaded.main()
    return found[0]


@pytest.mark.parametrize("given", [{}, GIVEN], ids=["as shipped", "with everything"])
@pytest.mark.parametrize(
    ("module", "loop", "options"), list(tasks()), ids=lambda one: one if isinstance(one, str) else ""
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
        assert not missing, f"{item['name']} lacks {missing}"


def test_infra_aap_configuration_applies_the_same_variables_in_the_same_order() -> None:
    defined = {name for path in (PROJECT / "controller").iterdir() for name in yaml.safe_load(path.read_text("utf-8"))}
    assert {name for name in defined if name.startswith("controller_")} == set(DISPATCHED)
    assert [loop for _module, loop, _options in tasks()] == list(DISPATCHED)
    # Its role passes the item to the module; the module's default would remove secrets that were entered in AWX.
    assert [item["update_secrets"] for item in variables()["controller_credentials"]] == [False, False]


def test_every_part_names_parts_that_are_there() -> None:
    found = variables(**GIVEN)
    named = {loop: [item["name"] for item in found[loop]] for _module, loop, _options in tasks()}
    assert all(len(names) == len(set(names)) for names in named.values())
    templates = named["controller_templates"]
    for item in found["controller_templates"]:
        assert item["project"] in named["controller_projects"]
        assert item["inventory"] in named["controller_inventories"]
        assert set(item["credentials"]) <= set(named["controller_credentials"])
        assert set(item["notification_templates_error"]) == set(named["controller_notifications"])
    for item in found["controller_workflows"]:
        nodes = {node["identifier"]: node for node in item["workflow_nodes"]}
        assert len(nodes) == len(item["workflow_nodes"])
        after = [
            one["identifier"] for node in nodes.values() for one in node.get("related", {}).get("success_nodes", [])
        ]
        # A chain: each but the first follows one other.
        assert sorted(after) == sorted(list(nodes)[1:])
        for node in nodes.values():
            job = node["unified_job_template"]
            assert job["type"] == "workflow_approval" or job["name"] in templates
            assert wrong(node.get("extra_data", {})) == []
    for item in found["controller_schedules"]:
        assert item["unified_job_template"] in templates
        assert wrong(item["extra_data"]) == []
    (source,) = found["controller_inventory_sources"]
    assert (PROJECT / source["source_path"]).exists()


def test_a_template_runs_a_wrapper_with_its_survey() -> None:
    for item in variables()["controller_templates"]:
        (play,) = yaml.safe_load((PROJECT / item["playbook"]).read_text(encoding="utf-8"))
        playbook = Path(item["playbook"]).stem
        assert play["ansible.builtin.import_playbook"] == f"kubewin.csi.{playbook}"
        asked = [question["variable"] for question in item["survey_spec"]["spec"]]
        assert asked == [f"kubewin_{name}" for name in QUESTIONS[playbook].split()]


def test_a_survey_has_the_form_that_awx_takes_and_defaults_that_fit() -> None:
    for playbook, survey in variables()["surveys"].items():
        for question in survey["spec"]:
            assert question["type"] in TYPES
            assert question["question_name"]
            assert not re.search(r"\b[A-Z]+\(", question["question_description"]), question
            assert len(question["question_description"]) <= 1024
            assert wrong({question["variable"]: question["default"]}) == []
            if question["type"].startswith("multi"):
                assert question["default"] in ("", *question["choices"])
                assert not INPUTS[question["variable"]].fits("something else")
            assert not question["required"] or question["variable"][8:] in REQUIRED[playbook].split()
