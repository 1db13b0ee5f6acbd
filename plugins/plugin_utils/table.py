# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain text tables for people. Pure: no I/O."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 120) -> str:
    """Lay out rows under a header; the last column is wrapped so that no line is longer than width characters."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header) - 1)]
    left = sum(widths) + 3 * len(widths)
    lines = []
    for row in cells:
        wrapped = textwrap.wrap(row[-1], max(20, width - left), break_long_words=False, break_on_hyphens=False) or [""]
        start = "".join(f"{cell:<{size}}   " for cell, size in zip(row, widths, strict=False))
        lines.append((start + wrapped[0]).rstrip())
        lines.extend((" " * left + more).rstrip() for more in wrapped[1:])
    return "\n".join(lines)
