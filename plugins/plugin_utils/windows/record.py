# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a swap writes beside the service, under its Parameters key, and takes away when it is over."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import Command, program, silenced, tolerated

LabelledSteps = list[tuple[str, Command]]


def parameters_key(name: str) -> str:
    return rf"{model.SERVICES_KEY}\{name}\Parameters"


def set_value(key: str, name: str, value: str | int) -> Command:
    kind, data = ("REG_DWORD", str(value)) if isinstance(value, int) else ("REG_SZ", value)
    return silenced(program("reg", "add", key, "/v", name, "/t", kind, "/d", data, "/f"))


def remember_swap_steps(service: model.Service) -> LabelledSteps:
    """Record the command line and process that a swap replaces."""
    key = parameters_key(service.name)
    return [
        ("previous", set_value(key, "Previous", service.command_line)),
        ("previous pid", set_value(key, "PreviousPid", service.pid)),
    ]


def forget_swap_steps(key: str) -> LabelledSteps:
    return [
        (f"forget {value}", tolerated(program("reg", "delete", key, "/v", value, "/f")))
        for value in ("Previous", "PreviousPid")
    ]
