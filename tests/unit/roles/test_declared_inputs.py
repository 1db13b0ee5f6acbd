# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An input of the playbooks is declared once: what is documented, and what the playbooks do without it, is what is declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, Input
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.declared import OPTIONS
from unit.roles import specs

ROOT = Path(__file__).parents[3]
# A variable and the defaults behind it, as in: kubewin_x | default('') | kubewin.csi.given(300)
USED = re.compile(r"\b(kubewin_\w+)((?: \| (?:string \| )?(?:default|kubewin\.csi\.given)\((?:'[^']*'|[^()'])*\))+)")
VALUE = re.compile(r"\(('[^']*'|[\w.]+)(?:, true)?\)")
# upgrade takes Nodes one at a time. A message names a direction where none is given.
OTHER = {("upgrade_prepare.yml", "kubewin_batches"): {"1"}, ("handover.yml", "kubewin_handover"): {"to_platform"}}


def defaults() -> Iterator[tuple[str, str, str]]:
    """File, variable and each default that a text there has for it."""
    for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/*/**/*.yml"), *ROOT.glob("roles/*/*/*.yml")]:
        for name, behind in USED.findall(path.read_text(encoding="utf-8")):
            for value in VALUE.findall(behind):
                yield path.name, name, value.strip("'")


def test_generated_files_match_the_declared_inputs() -> None:
    assert (ROOT / "roles" / "kubewin" / "meta" / "argument_specs.yml").read_text(encoding="utf-8") == specs.kubewin()
    assert specs.PAGE.read_text(encoding="utf-8") == specs.page()


def test_the_playbooks_use_the_declared_defaults() -> None:
    found = list(defaults())
    assert len(found) > 50
    wrong = [
        (file, name, value)
        for file, name, value in found
        if name in INPUTS
        and value not in ("", "omit", "not given")
        and not value.startswith(("lookup", "kubewin", "_kubewin"))
        and value not in OTHER.get((file, name), {shown(INPUTS[name])})
    ]
    assert wrong == []


def shown(rule: Input) -> str:
    return str(rule.default).lower() if rule.type == "bool" else str(rule.default)


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


def test_ansible_finds_no_entry_to_check_where_the_role_is_applied() -> None:
    entries = yaml.safe_load(specs.kubewin())["argument_specs"]
    assert "main" not in entries
    assert set(entries) == {path.stem for path in ROOT.glob("playbooks/*.yml")} - {"enable-csi"}
