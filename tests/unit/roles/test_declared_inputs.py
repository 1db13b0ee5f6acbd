# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An input of the playbooks is declared once: what is documented, and what the playbooks do without it, is what is declared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, parse_inputs
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.declared import OPTIONS
from unit.roles import specs

ROOT = Path(__file__).parents[3]


def test_generated_files_match_the_declared_inputs() -> None:
    assert specs.PAGE.read_text(encoding="utf-8") == specs.page()


@pytest.mark.parametrize("playbook", specs.PLAYBOOKS)
def test_a_playbook_gets_a_value_for_each_input_where_none_is_set(playbook: str) -> None:
    values = parse_inputs(playbook, {})
    rules = {name.removeprefix("kubewin_"): rule for name, rule in INPUTS.items() if playbook in rule.playbooks}
    assert values.keys() == {name for name, rule in rules.items() if not rule.secret}
    for name, value in values.items():
        assert value is not None, name
        rule = rules[name]
        if rule.default is not None and not rule.parse:
            assert value == rule.default, name


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_has_a_text_and_a_default_that_fits(name: str) -> None:
    rule = INPUTS[name]
    assert re.fullmatch(r"[A-Z].*\.", rule.text), rule.text
    assert rule.default is None or rule.fits(rule.default)
    assert not rule.choices or all(rule.fits(one) for one in rule.choices)
    assert rule.default is None or isinstance(rule.default, {"bool": bool, "int": int}.get(rule.type, str))


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.playbooks in INPUTS])
def test_an_option_and_the_variable_for_all_drivers_have_one_default(name: str) -> None:
    option = OPTIONS[name]
    default = ",".join(option.default) if isinstance(option.default, list) else option.default
    assert INPUTS[option.playbooks].default == default
