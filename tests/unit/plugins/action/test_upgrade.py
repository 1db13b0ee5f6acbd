# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook gives the action every option, and the defaults that it documents are the action's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action.upgrade import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.lists import as_list

PLAYBOOKS = Path(__file__).parents[4] / "playbooks"
PREFIX = "kubewin_upgrade_"
SPEC = ActionModule.argument_spec
DOCUMENTED = [name for name, rule in INPUTS.items() if name.removeprefix(PREFIX) in SPEC and rule.default is not None]
OF_LATER_STEPS = {"plan", "batch", "results", "failures"}
# What the action reads of the hosts of the playbook's run.
OF_THE_RUN = {"name", "hosts"}


def steps(content: Any) -> Iterator[dict[str, str]]:
    """The options of each task that calls the action, however deep it is nested."""
    for entry in content if isinstance(content, list) else []:
        if "kubewin.csi.upgrade" in entry:
            yield entry["kubewin.csi.upgrade"]
        for name in ("tasks", "block", "rescue", "always"):
            yield from steps(entry.get(name))


def test_the_first_step_has_every_option_and_the_others_only_their_own() -> None:
    files = [PLAYBOOKS / "upgrade.yml", *sorted((PLAYBOOKS / "tasks").glob("upgrade_*.yml"))]
    found = {step["step"]: step for file in files for step in steps(yaml.safe_load(file.read_text("utf-8")))}
    assert found["prepare"].keys() == SPEC.keys() - OF_LATER_STEPS - OF_THE_RUN
    assert [step.keys() for name, step in found.items() if name != "prepare"] == [{"step", "plan"}] * 3


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_playbook_documents_the_actions_default(name: str) -> None:
    option, default = SPEC[name.removeprefix(PREFIX)], INPUTS[name].default
    assert option["default"] == (as_list(default) if option["type"] == "list" else default)
