# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook gives the action every option, and the defaults that it documents are the module's."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC
from ansible_collections.kubewin.csi.plugins.plugin_utils.inputs import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.lists import as_list

TASKS = Path(__file__).parents[4] / "playbooks" / "tasks"
PREFIX = "kubewin_upgrade_"
DOCUMENTED = [
    name for name, rule in INPUTS.items() if name.removeprefix(PREFIX) in ARGUMENT_SPEC and rule.default is not None
]


def options(tasks: str) -> dict[str, str]:
    """What the first task of a file gives the action."""
    task, *_others = yaml.safe_load((TASKS / tasks).read_text("utf-8"))
    given: dict[str, str] = task["kubewin.csi.node_upgrade"]
    return given


def test_a_step_has_every_option_but_those_of_the_lease_and_the_action() -> None:
    assert options("upgrade_step.yml").keys() == ARGUMENT_SPEC.keys() - {"only_lease", "holder", "progress_file"}


@pytest.mark.parametrize("option", ["name", "namespace", "output_dir"])
def test_the_lease_is_taken_for_the_journal_that_the_steps_read(option: str) -> None:
    assert options("upgrade_hold.yml")[option] == options("upgrade_step.yml")[option]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_playbook_documents_the_modules_default(name: str) -> None:
    option, default = ARGUMENT_SPEC[name.removeprefix(PREFIX)], INPUTS[name].default
    assert option["default"] == (as_list(default) if option["type"] == "list" else default)
