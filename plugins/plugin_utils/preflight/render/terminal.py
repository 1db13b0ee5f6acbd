# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as text for a terminal. Pure.

The end of a run is directly above the prompt, so this form only counts ready objects; the other forms list all.
"""

from __future__ import annotations

import re
import textwrap

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.table import render_table, wrap
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    NAMED,
    Limits,
    Table,
    View,
    create_view,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number, plain, sentence
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import SEVERITIES, Report

# Lines of a table that a reader of a terminal is shown.
SHOWN = Limits(whole=20, most=20)
# What several workloads have in common, each with a claim of its own.
_ITS_CLAIM = re.compile(r"^claim \S+ is")
# Characters of a name before it is wrapped.
_NAMES = 34


def render_terminal(report: Report, width: int = 100) -> str:
    """The text; no line is longer than width unless a word is."""
    view = create_view(report, SHOWN)
    counts = ", ".join(number(view.severities[entry], entry) for entry in SEVERITIES)
    source = f"{plain(view.cluster)}: {plain(view.versions)}, read at {plain(view.taken_at)}, by {view.collection}"
    verdict = textwrap.fill(f"{view.headline.upper()}: {plain(view.answer)}", width)
    parts = [
        f"{verdict}\n{textwrap.fill(source, width)}\n{counts}",
        _render_steps(view, width),
        _render_comparison(view, width),
        _render_table("WORKLOAD", "AFTER A RESTART", "workload", view.workloads, width),
        _render_stops(view, width),
        _render_assumptions(view, width),
        _render_roll(view, width),
        _render_table("NODE", "ITS VOLUMES", "node", view.nodes, width),
        _render_table("VOLUME", "CLASS", "volume", view.volumes, width),
    ]
    if view.unread:
        rows = [
            [plain(entry.get("resource", "")), plain(entry.get("why", "")), plain(entry.get("rule", ""))]
            for entry in view.unread
        ]
        parts.append(render_table(("NOT READ", "WHY", "RULE TO ADD"), rows, width, _NAMES))
    if view.suppressed:
        rows = [
            [entry.finding.id, plain(entry.finding.object), plain(entry.expires), plain(entry.reason)]
            for entry in view.suppressed
        ]
        parts.append(render_table(("ACCEPTED", "ABOUT", "UNTIL", "REASON"), rows, width, _NAMES))
    parts.append("\n".join((verdict, *wrap(_format_beginning(view), width))))
    return "\n\n".join(filter(None, parts))


def _format_beginning(view: View) -> str:
    """The first thing to do; without a finding that asks for something, the check of the first assumption."""
    if view.first:
        group, remedy = view.first[0], view.first[0].remedies[0]
        return f"Begin with {group.id}: {plain(remedy.remedy)} ({remedy.describe_objects(plain, plain)})"
    check = next((assumption.check for assumption in view.assumptions if assumption.check), "")
    return f"Check the assumptions, first: {check}" if check else ""


def _render_steps(view: View, width: int) -> str:
    if not view.first:
        return ""
    rows: list[list[str]] = []
    for position, group in enumerate(view.first, 1):
        texts = [
            f"{plain(remedy.remedy)} ({remedy.describe_objects(plain, plain)})" for remedy in group.remedies[:NAMED]
        ]
        hidden = len(group.remedies) - NAMED
        texts += [f"and {number(hidden, 'other remedy', 'other remedies')}"] if hidden > 0 else []
        texts += [f"affects {group.concerns}"] if group.concerns else []
        kind = f"{group.severity}, unknown" if group.doubt else group.severity
        rows += [[f"{position}.", kind, group.id, texts[0]], *(["", "", "", text] for text in texts[1:])]
    return render_table(("DO", "BECAUSE OF A", "FINDING", "WHAT HELPS, AND WHERE"), rows, width)


def _render_comparison(view: View, width: int) -> str:
    """What is new and what is fixed since an earlier report."""
    if not view.comparison:
        return ""
    rows = [[change, cause.id, plain(cause.object)] for change, cause in view.changes]
    table = f"\n{render_table(('SINCE THEN', 'FINDING', 'ABOUT'), rows, width)}" if rows else ""
    return f"{textwrap.fill(plain(view.comparison), width)}{table}"


def _render_assumptions(view: View, width: int) -> str:
    rows: list[list[str]] = []
    for position, assumption in enumerate(view.assumptions, 1):
        rows.append([f"{position}.", assumption.dependents, plain(assumption.message)])
        rows += [["", "", assumption.check]] if assumption.check else []
    return render_table(("NO.", "FOR", "ASSUMED, AND HOW TO CHECK IT"), rows, width) if rows else ""


def _render_roll(view: View, width: int) -> str:
    if view.roll is None:
        return ""
    rows = [[plain(cell) for cell in row] for row in view.roll.rows]
    table = f"\n{render_table(('NODE', 'ITS DRAIN', 'AND THEN'), rows, width, _NAMES)}" if rows else ""
    return f"{textwrap.fill(plain(view.roll.headline), width)}{table}"


def _render_stops(view: View, width: int) -> str:
    """Where pods stop on their way to running, a line for each reason, with what to do first unless the steps above have it."""
    steps = {
        remedy.remedy: f" (step {position})"
        for position, group in reversed([*enumerate(view.first, 1)])
        for remedy in group.remedies[:NAMED]
    }
    rows = [
        [
            plain(listed(stop.pods, NAMED)),
            stop.at,
            plain(stop.where),
            plain(stop.because) + steps.get(sentence(stop.first), f" -> {plain(stop.first)}"),
        ]
        for stop in view.stops
    ]
    if not rows:
        return ""
    return render_table(("WORKLOAD", "STEP", "ON", "BECAUSE, AND WHAT TO DO FIRST"), rows, width, _NAMES)


def _render_table(name: str, state: str, kind: str, table: Table, width: int) -> str:
    """The lines that are not ready, and the number of ready ones."""
    groups = group_values(
        ((line.state, _ITS_CLAIM.sub("its claim is", line.because)), line) for line in table.lines if line.mark != "yes"
    )
    rows = [
        [
            ", ".join(dict.fromkeys(plain(line.name) for line in lines)),
            state,
            plain(reason if len(lines) > 1 else lines[0].because),
        ]
        for (state, reason), lines in groups.items()
    ]
    ready = table.counts["yes"]
    if not rows:
        return f"{name}S: all {ready:,} are OK" if ready else ""
    text = render_table((name, state, "BECAUSE"), rows, width, _NAMES)
    return f"{text}\n({number(ready, f'further {kind}')} {'is' if ready == 1 else 'are'} OK)" if ready else text
