# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action takes its options from the variables of the role, which documents them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action.node_upgrade import VARIABLES, ActionModule
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC

SPECS = Path(__file__).parents[4] / "roles" / "node_upgrade" / "meta" / "argument_specs.yml"
DOCUMENTED = yaml.safe_load(SPECS.read_text("utf-8"))["argument_specs"]["main"]["options"]
# Which phase ended is what the role says itself.
INNER = {"finished"}


@pytest.mark.parametrize("option", sorted(VARIABLES.keys() - INNER))
def test_the_role_documents_each_option_as_the_module_has_it(option: str) -> None:
    role, own = DOCUMENTED[VARIABLES[option]], ARGUMENT_SPEC[option]
    assert role["type"] == {"path": "str"}.get(own["type"], own["type"])
    assert (role.get("default") or None) == (own.get("default") or None)
    assert role.get("elements") == own.get("elements")


def taken(variables: dict[str, Any], **args: Any) -> dict[str, Any]:
    task = SimpleNamespace(args=args)
    make: Any = ActionModule
    action = make(task, None, None, None, SimpleNamespace(template=dict), None)
    action._take_variables(variables)
    return dict(task.args)


def test_variables_are_options_that_the_task_may_overrule_and_blank_ones_are_not_given() -> None:
    variables = {
        "node_upgrade_name": "to-1.27",
        "node_upgrade_stop_on": [],
        "node_upgrade_canary": "",
        "node_upgrade_results": {"win-1": "of an earlier phase"},
    }
    assert taken(variables) == {"name": "to-1.27", "stop_on": []}
    assert taken(variables, name="another", generation=2) == {"name": "another", "stop_on": [], "generation": 2}
