# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain text: paragraphs and tables that break neither a name nor a command. Pure: no I/O."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

# "curl 7" is an exit code. A command goes as far as the sentence, the remark or the next command; a word that ends in a stop ends it.
_PROGRAMS = r"kubectl|oc|ansible-playbook|ansible|sc\.exe|reg add|reg delete|icacls|curl(?! \d)|pip|make|python|az aks|aws eks|gcloud container"
_COMMAND = re.compile(rf"(?<![\w/-])(?:{_PROGRAMS}) (?:'[^']*'|\"[^\"]*\"|[^;'\"(\s,]|,(?! )|(?<=[^\s.]) (?=[^\s(]))+")
# A remedy stands behind this in a cell.
_REMEDY = " -> "
# The last column gets a line of its own below the others where less is left for it.
_LEAST = 24


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most width characters; a command that does not fit is a line of its own, however long."""
    if len(text) <= width:
        return [text]
    lines: list[str] = []
    for sentence in text.split(_REMEDY):
        begin = 0
        mark = "-> " if lines else ""
        for command in _COMMAND.finditer(sentence):
            prose = _strip_separator(sentence[begin : command.start()], begin).strip()
            lines += _wrap_prose(mark + prose, width) if prose else []
            lines.append(("" if prose else mark) + command.group().rstrip(" ."))
            begin, mark = command.end(), ""
        ending = _strip_separator(sentence[begin:], begin)
        if begin and not ending.strip(" ."):
            continue
        lines += _wrap_prose(mark + ending, width)
    return lines


def _strip_separator(text: str, begin: int) -> str:
    """Text as it is at the begin of a sentence, and behind a command without the mark that divides the two."""
    return text.lstrip(" ,;") if begin else text


def _wrap_prose(text: str, width: int) -> list[str]:
    return textwrap.wrap(text.strip(), width, break_long_words=False, break_on_hyphens=False)


def render_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 120, most: int | None = None
) -> str:
    """Lay out rows under a header; the last column is wrapped so that no line of words is longer than width.

    most: the other columns are wrapped at so many characters, between words; without it they are as wide as what they hold.
    Where long names leave no room for the last column, it stands below each row.
    """
    cells = [list(header), *(list(row) for row in rows)]
    last_column = len(header) - 1
    columns = [[wrap(row[at], most or width) for row in cells] for at in range(last_column)]
    widths = [max((len(line) for lines in column for line in lines), default=0) for column in columns]
    width_left = width - sum(widths) - 3 * last_column
    below = width_left < _LEAST and any(len(row[-1]) > max(width_left, 0) for row in cells)
    lines = []
    for at, row in enumerate(cells):
        last = wrap(row[-1], width - 4 if below else width_left)
        parts = [column[at] for column in columns] + ([] if below else [last])
        for step in range(max(map(len, parts))):
            shown = [part[step] if step < len(part) else "" for part in parts]
            lines.append(
                "   ".join(f"{cell:<{size}}" for cell, size in zip(shown, [*widths, 0], strict=False)).rstrip()
            )
        lines += [f"    {line}" for line in last] if below and any(last) else []
    return "\n".join(lines)
