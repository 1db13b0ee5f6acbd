# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a driver's node plugin as variables: <driver>_csi_<option>, then the variable that sets it for all drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..catalog.registry import DRIVERS
from ..drivers import declared
from .inputs import as_list, is_blank


def map_variables(driver: str) -> dict[str, declared.DriverOption]:
    """The variables of a driver's role, each with its option."""
    return {f"{driver}_csi_{name}": option for name, option in declared.OPTIONS.items()}


def list_wrong_options(driver: str, values: Mapping[str, Any]) -> list[str]:
    """What Ansible says of values that an option cannot have. values: variables that are set; a blank one counts as not set."""
    messages: list[str] = []
    for name, option in map_variables(driver).items():
        if not is_blank(values.get(name)):
            checked = ArgumentSpecValidator({name: option.build_spec()}).validate({name: values[name]})
            messages += checked.error_messages
    return messages


def read_module_options(module: str, driver: str, variable: Callable[[str], Any]) -> dict[str, Any]:
    """The options of a module that variables set. variable: the value of one, None where it is not set. ValueError for a wrong value."""
    options: dict[str, Any] = {}
    for named, (name, option) in declared.list_module_options(module).items() if driver in DRIVERS else ():
        for variable_name in filter(None, (f"{driver}_csi_{name}", option.playbooks)):
            value = variable(variable_name)
            if is_blank(value) or value in ([], {}):
                continue
            if problems := list_wrong_options(driver, {variable_name: value}):
                raise ValueError("\n".join(problems))
            options[named] = as_list(value) if option.elements == "str" else value
            # The driver's own variable counts.
            break
    return options
