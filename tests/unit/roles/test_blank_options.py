# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A survey answers a blank question with an empty text. For a variable of a role that means its default, never 0 or false."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubewin.csi.plugins.filter.given import given
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.lists import as_list
from jinja2.nativetypes import NativeEnvironment

ROOT = Path(__file__).parents[3]


def filled(expression: str, **variables: Any) -> Any:
    engine = NativeEnvironment()
    engine.filters |= {"kubewin.csi.given": given, "kubewin.csi.as_list": as_list, "bool": boolean}

    def lookup(_kind: str, name: str, default: Any) -> Any:
        return variables.get(name, default)

    return engine.from_string(expression).render({"lookup": lookup, **variables})


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
