# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of reading a volume, and of the command lines that read it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A command line of Windows holds 32767 characters; there is more on it than names.
_WORDS = 20000


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reading: bytes in total, bytes a second, and seconds."""

    total: int
    rate: int
    seconds: float


def split_command_line(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Split the paths into groups that fit on a command line."""
    group: list[str] = []
    length = 0
    for path in paths:
        if group and length + len(path) > _WORDS:
            yield tuple(group)
            group, length = [], 0
        group.append(path)
        length += len(path) + 8
    if group:
        yield tuple(group)
