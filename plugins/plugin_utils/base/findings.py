# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a deployment, or worth knowing before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .text import join_field_lines

Severity = Literal["blocker", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Id is stable (CSI-D01); object is what it is about; remedy is what helps, a command where one exists.
    """

    id: str
    severity: Severity
    object: str
    message: str
    remedy: str

    def __post_init__(self) -> None:
        join_field_lines(self, "object", "message", "remedy")

    def line(self) -> str:
        return f"{self.severity} {self.id} {self.object}: {self.message} -> {self.remedy}"


def blocker(id_: str, object_: str, message: str, remedy: str) -> Finding:
    return Finding(id_, "blocker", object_, message, remedy)


def warning(id_: str, object_: str, message: str, remedy: str) -> Finding:
    return Finding(id_, "warning", object_, message, remedy)


def note(id_: str, object_: str, message: str, remedy: str) -> Finding:
    return Finding(id_, "note", object_, message, remedy)
