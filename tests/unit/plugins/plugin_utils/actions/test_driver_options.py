# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a driver, as the modules' actions and the check of the inputs read them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import driver_options
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import declared


def taken(module: str, **variables: Any) -> dict[str, Any]:
    return driver_options.read_module_options(module, "smb", variables.get)


@pytest.mark.parametrize("name", declared.OPTIONS)
@pytest.mark.parametrize("blank", ["", None, [], {}])
def test_a_blank_variable_leaves_the_modules_default(name: str, blank: Any) -> None:
    for module in (declared.INFO, declared.APPLY, declared.ROLLOUT):
        assert taken(module, **{f"smb_csi_{name}": blank}) == {}


def test_false_and_zero_are_answers() -> None:
    given = {"smb_csi_csi_proxy_managed": False, "smb_csi_gate_timeout": 0}
    assert taken(declared.INFO, **given) == {"csi_proxy_managed": False}
    assert taken(declared.ROLLOUT, **given) == {"timeout": 0}


def test_a_variable_of_the_driver_outranks_one_for_all_drivers() -> None:
    for_all = {"kubewin_gate_timeout": 900, "kubewin_batches": "2, 50%"}
    assert taken(declared.APPLY, **for_all) == {"batches": ["2", "50%"]}
    own = {"smb_csi_gate_timeout": "60", "smb_csi_batches": 1, "vsphere_csi_gate_timeout": 7}
    assert taken(declared.APPLY, **for_all, **own) == {"batches": ["1"]}
    assert taken(declared.ROLLOUT, **for_all, **own) == {"timeout": "60"}
    assert taken(declared.ROLLOUT, **for_all, smb_csi_gate_timeout="") == {"timeout": 900}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "mode",
            "hostprocess",
            "value of smb_csi_mode must be one of: auto, csi_proxy, host_process, got: hostprocess",
        ),
        ("gate_timeout", "soon", "smb_csi_gate_timeout"),
        ("accept_unproven", "maybe", "smb_csi_accept_unproven"),
        ("storage_class", {"nam": "x"}, "smb_csi_storage_class.nam"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_of_its_variable(name: str, value: Any, expected: str) -> None:
    (message,) = driver_options.list_wrong_options("smb", {f"smb_csi_{name}": value, "vsphere_csi_mode": "other"})
    assert expected in message
    (module,) = declared.OPTIONS[name].modules
    with pytest.raises(ValueError, match=message.replace("(", r"\(").split("(")[0][:20]):
        taken(module, **{f"smb_csi_{name}": value})


def test_an_unknown_driver_is_left_to_the_module() -> None:
    assert driver_options.read_module_options(declared.INFO, "floppy", {"floppy_csi_mode": "x"}.get) == {}
