# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample of files that are read if a volume is too large. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .manifest import FileEntry

# A command line of Windows holds 32767 characters; there is more on it than names.
_WORDS = 20000


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reading: bytes in total, bytes a second, and seconds."""

    total: int
    rate: int
    seconds: float


def choose_sample(files: Sequence[FileEntry], total: int) -> frozenset[str]:
    """Choose paths of files whose total size is within the limit, by the digests of their names; all files if they fit."""
    if sum(file.size for file in files) <= total:
        return frozenset(file.path for file in files)
    chosen, remaining = set(), total
    for file in sorted(files, key=lambda file: hashlib.sha256(file.path.encode("utf-8", "replace")).digest()):
        # The tar of Windows, which gets single names here, accepts no name beyond ASCII.
        if file.path.isascii() and file.size <= remaining:
            chosen.add(file.path)
            remaining -= file.size
    return frozenset(chosen)


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
