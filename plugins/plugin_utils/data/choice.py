# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of a volume are read when not all of them may be: a sample that is the same for the same seed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry

# A command line of Windows holds 32767 characters; there is more on it than names.
_WORDS = 20000


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading may cost: bytes in all and a second, and seconds. seed: of the sample when that is not enough."""

    total: int
    rate: int
    seconds: float
    seed: str


def sample(files: Sequence[FileEntry], total: int, seed: str) -> frozenset[str]:
    """Paths of files whose contents are together no larger than that; all of them if they fit."""
    if sum(one.size for one in files) <= total:
        return frozenset(one.path for one in files)
    chosen, left = set(), total
    for one in sorted(files, key=lambda one: hashlib.sha256(f"{seed}\0{one.path}".encode("utf-8", "replace")).digest()):
        # The tar of Windows, which gets single names here, accepts no name beyond ASCII.
        if one.path.isascii() and one.size <= left:
            chosen.add(one.path)
            left -= one.size
    return frozenset(chosen)


def batches(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The paths in groups that each fit on a command line."""
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
