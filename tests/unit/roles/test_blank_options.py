# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A survey answers a blank question with an empty text. For a variable of a role that means its default, never 0 or false."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubewin.csi.plugins.filter.given import given
from ansible_collections.kubewin.csi.plugins.plugin_utils.lists import as_list
from jinja2.nativetypes import NativeEnvironment

ROOT = Path(__file__).parents[3]
OMITTED = "it is omitted"
# Those of csi_proxy and of a driver are read by actions: action/test_csi_proxy.py, plugin_utils/test_driver_options.py.
ROLES = {"csi_driver": ("handover",)}
# As the playbooks' own defaults say.
DEFAULTS: dict[str, set[Any]] = {
    "timeout": {600, 1800}, "node_timeout": {600}, "stable_for": {10}, "batches": {("1", "25%")}, "accept_unproven": {False},
    "allow_zero_nodes": {False}, "force_conflicts": {False}, "create_cluster_objects": {False}, "allow_version_skew": {False},
    "csi_proxy_managed": {True}, "check_access": {True}, "show": {True},
}  # fmt: skip


def options(role: str) -> dict[str, Any]:
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text("utf-8")
    found: dict[str, Any] = {}
    for entry in yaml.safe_load(text)["argument_specs"].values():
        found |= entry["options"]
    return found


def arguments() -> Iterator[tuple[str, str, str]]:
    """Role, option of a module, and the expression that fills it from one variable that is no plain text."""
    for role, files in ROLES.items():
        declared = options(role)
        plain = {name for name, one in declared.items() if one["type"] == "str" and "choices" not in one}
        for file in files:
            path = ROOT / "roles" / role / "tasks" / f"{file}.yml"
            for task in yaml.safe_load(path.read_text("utf-8")):
                (given,) = [value for key, value in task.items() if key.startswith(("kubewin.", "ansible."))]
                for option, expression in given.items() if isinstance(given, dict) else ():
                    used = [name for name in declared if f"{{{{ {name} " in str(expression)]
                    if used and used[0] not in plain:
                        yield f"{role} {file} {option}", used[0], expression


def filled(expression: str, **variables: Any) -> Any:
    engine = NativeEnvironment()
    engine.filters |= {"kubewin.csi.given": given, "kubewin.csi.as_list": as_list, "bool": boolean}

    def lookup(_kind: str, name: str, default: Any) -> Any:
        return variables.get(name, default)

    return engine.from_string(expression).render({"omit": OMITTED, "lookup": lookup, **variables})


@pytest.mark.parametrize(("option", "variable", "expression"), list(arguments()))
def test_a_blank_variable_is_its_default(option: str, variable: str, expression: str) -> None:
    # The action checks the state; a playbook decides it.
    if variable == "csi_driver_step":
        return
    name = option.split()[-1]
    found = filled(expression, **{variable: ""})
    if name in DEFAULTS:
        assert (tuple(found) if isinstance(found, list) else found) in DEFAULTS[name]
    else:
        assert found in (OMITTED, [], {}), option
    # What is given stays, false and 0 included.
    if isinstance(found, bool) or found == OMITTED:
        assert filled(expression, **{variable: False}) in (False, OMITTED)


@pytest.mark.parametrize(
    ("task", "option", "name", "default"),
    [
        ("gate", "proven", "vsphere_csi_proven", ["win-1"]),
    ],
)
def test_the_playbooks_read_a_blank_option_of_a_driver_as_not_given(
    task: str, option: str, name: str, default: Any
) -> None:
    """What an action does not read itself."""
    (one,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / f"{task}.yml").read_text("utf-8"))
    (given,) = [value for key, value in one.items() if key.startswith("kubewin.")]
    variables = {
        "item": "vsphere", "kubewin_proven": {"vsphere": ["win-1"]},
    }  # fmt: skip
    assert filled(given[option], **variables, **{name: ""}) == default
    assert filled(given[option], **variables) == default
