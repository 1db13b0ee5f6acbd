# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as text for a terminal. Pure.

The end of a run is directly above the prompt, so this form only counts ready objects; the other forms list all.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from ...base.grouped import group_values
from ...base.table import render_table, wrap
from ..verdict import SEVERITIES, Report
from .text_format import format_number, plain
from .view import NAMED, ReportPart, ReportRow, View, create_view

# Lines of a table that a reader of a terminal is shown.
SHOWN = 20
# What several workloads have in common, each with a claim of its own.
_ITS_CLAIM = re.compile(r"^claim \S+ is")
# Characters of a name before it is wrapped.
_NAMES = 34


def render_terminal(report: Report, width: int = 100) -> str:
    """The text; no line is longer than width unless a word is."""
    view = create_view(report, SHOWN)
    counts = ", ".join(format_number(view.severities[entry], entry) for entry in SEVERITIES)
    counts += " (in the HTML and JSON files)" if view.severities["note"] else ""
    source = f"{view.cluster}: {view.versions}, read at {view.taken_at}, by {view.collection}"
    verdict = _fill(f"{view.headline.upper()}: {view.answer}", width)
    stop = _fill(view.stop, width)
    parts = [
        "\n".join(filter(None, (verdict, stop, _fill(source, width), counts))),
        _render_steps(view, width),
        *(_render_objects(part, width) if part.counts else _render_part(part, width) for part in view.parts.values()),
        "\n".join(filter(None, (verdict, stop, *wrap(_format_beginning(view), width)))),
    ]
    return "\n\n".join(filter(None, parts))


def _fill(text: str, width: int) -> str:
    """Text in lines that break no name."""
    return textwrap.fill(plain(text), width, break_long_words=False, break_on_hyphens=False)


def _format_beginning(view: View) -> str:
    """The first thing to do; without a finding that asks for something, the node that stops the upgrade or the first assumption."""
    if view.first:
        group, remedy = view.first[0], view.first[0].remedies[0]
        return f"Begin with {group.id}: {plain(remedy.remedy)} ({remedy.describe_objects(plain, plain)})"
    if view.stop and view.parts["roll"].lines:
        node, _drain, because = view.parts["roll"].lines[0].cells
        return f"Begin with node {plain(node)}: {plain(because)}"
    assumptions = view.parts["assumptions"].lines
    return f"Check the assumptions, first: {plain(assumptions[0].cells[-1])}" if assumptions else ""


def _render_steps(view: View, width: int) -> str:
    if not view.first:
        return ""
    rows: list[list[str]] = []
    for position, group in enumerate(view.first, 1):
        texts = [
            f"{plain(remedy.remedy)} ({remedy.describe_objects(plain, plain)})" for remedy in group.remedies[:NAMED]
        ]
        hidden = len(group.remedies) - NAMED
        texts += [f"and {format_number(hidden, 'other remedy', 'other remedies')}"] if hidden > 0 else []
        texts += [f"affects {group.concerns}"] if group.concerns else []
        kind = f"{group.severity}, unknown" if group.doubt else group.severity
        rows += [[f"{position}.", kind, group.id, texts[0]], *(["", "", "", text] for text in texts[1:])]
    return render_table(("DO", "BECAUSE OF A", "FINDING", "WHAT HELPS, AND WHERE"), rows, width)


def _render_part(part: ReportPart, width: int) -> str:
    rows = [[plain(cell) for cell in line.cells] for line in part.lines]
    table = render_table([column.upper() for column in part.columns], rows, width, _NAMES) if rows else ""
    hidden = f"({part.hidden:,} more)" if part.hidden else ""
    return "\n".join(filter(None, (_fill(part.text, width), table, hidden)))


def _render_objects(part: ReportPart, width: int) -> str:
    """The objects that are not ready, and the number of ready ones."""
    groups: Mapping[tuple[str, str], list[ReportRow]] = group_values(
        ((line.cells[1], _ITS_CLAIM.sub("its claim is", line.cells[2])), line)
        for line in part.lines
        if line.mark != "yes"
    )
    rows = [
        [
            ", ".join(dict.fromkeys(plain(line.cells[0]) for line in lines)),
            state,
            plain(reason if len(lines) > 1 else lines[0].cells[2]),
        ]
        for (state, reason), lines in groups.items()
    ]
    ready, noun = part.counts["yes"], part.key.removesuffix("s")
    if not rows:
        return f"{part.key.upper()}: all {ready:,} are OK" if ready else ""
    text = render_table([column.upper() for column in part.columns[:3]], rows, width, _NAMES)
    further = f"{format_number(ready, f'further {noun}')} OK" if ready else ""
    hidden = f"{format_number(part.hidden, 'line')} not shown" if part.hidden else ""
    notes = "; ".join(filter(None, (further, hidden)))
    return f"{text}\n({notes})" if notes else text
