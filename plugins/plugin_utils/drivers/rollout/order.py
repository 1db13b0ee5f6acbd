# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order nodes get a changed plugin: a canary alone, then batches. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import read_number

_SIZE = re.compile(r"[1-9][0-9]*%?")


def split_batches(nodes: Sequence[str], sizes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Nodes in batches of the given sizes, numbers or percentages of them all; the last size repeats.

    Whatever the sizes are, the first node is a batch of its own: the canary.
    """
    found: list[tuple[str, ...]] = []
    start, number = 0, 0
    while start < len(nodes):
        size = count_share(sizes[min(number, len(sizes) - 1)], len(nodes)) if sizes else len(nodes)
        found.append(tuple(nodes[start : start + size]))
        start, number = start + size, number + 1
    if found and len(found[0]) > 1:
        found[0:1] = [found[0][:1], found[0][1:]]
    return tuple(found)


def find_wrong_sizes(sizes: Sequence[str]) -> tuple[str, ...]:
    """The sizes that are neither a number above 0 nor a percentage."""
    return tuple(size for size in sizes if not _SIZE.fullmatch(size))


def count_share(size: str, of: int) -> int:
    """A number, or a percentage of a number rounded down as Ansible's serial does; at least one."""
    return max(1, int(size[:-1]) * of // 100 if size.endswith("%") else int(size))


def count_allowed_unavailable(max_unavailable: int | str, of: int) -> int:
    """How many nodes may be without a Ready plugin: a percentage rounded up, as the DaemonSet controller does."""
    text = str(max_unavailable).strip()
    number = read_number(text.removesuffix("%")) or 0
    return max(1, -(-number * of // 100) if text.endswith("%") else number)
