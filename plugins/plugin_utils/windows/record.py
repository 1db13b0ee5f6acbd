# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a swap writes beside the service, under its Parameters key, and takes away when it is over."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import (
    Command,
    discard_output,
    program,
    tolerate,
)

LabelledSteps = list[tuple[str, Command]]


def locate_parameters(name: str) -> str:
    return rf"{model.SERVICES_KEY}\{name}\Parameters"


def set_value(key: str, name: str, value: str | int) -> Command:
    kind, data = ("REG_DWORD", str(value)) if isinstance(value, int) else ("REG_SZ", value)
    return discard_output(program("reg", "add", key, "/v", name, "/t", kind, "/d", data, "/f"))


def build_remember_steps(service: model.Service) -> LabelledSteps:
    """Record the command line and process that a swap replaces."""
    key = locate_parameters(service.name)
    return [
        ("previous", set_value(key, "Previous", service.command_line)),
        ("previous pid", set_value(key, "PreviousPid", service.pid)),
    ]


def build_forget_steps(key: str) -> LabelledSteps:
    return [
        (f"forget {value}", tolerate(program("reg", "delete", key, "/v", value, "/f")))
        for value in ("Previous", "PreviousPid")
    ]
