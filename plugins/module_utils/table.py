# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain text tables for people. Pure: no I/O."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def render_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 120, most: int | None = None
) -> str:
    """Lay out rows under a header; the last column is wrapped so that no line is longer than width characters.

    most: the other columns are wrapped too, each at so many characters; without it they are as wide as what they hold.
    """
    cells = [list(header), *(list(row) for row in rows)]
    widths = [min(max(len(row[i]) for row in cells), most or width) for i in range(len(header) - 1)]
    widths.append(max(20, width - sum(widths) - 3 * len(widths)))
    lines = []
    for row in cells:
        # Names are cut where they do not fit, the sentences of the last column between words.
        wrapped = [
            textwrap.wrap(cell, size, break_long_words=at < len(widths) - 1, break_on_hyphens=False) or [""]
            for at, (cell, size) in enumerate(zip(row, widths, strict=False))
        ]
        for at in range(max(map(len, wrapped))):
            parts = [column[at] if at < len(column) else "" for column in wrapped]
            lines.append("   ".join(f"{part:<{size}}" for part, size in zip(parts, widths, strict=False)).rstrip())
    return "\n".join(lines)
