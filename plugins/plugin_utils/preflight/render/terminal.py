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
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.table import render_table
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.paths import stops
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    NAMED,
    Group,
    Limits,
    Table,
    View,
    view_of,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number, plain
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import SEVERITIES, Report

# Lines of a table that a reader of a terminal is shown.
SHOWN = Limits(whole=20, most=20)
# What several workloads have in common, each with a claim of its own.
_ITS_CLAIM = re.compile(r"^claim \S+ is")
# Characters of a name before it is wrapped.
_NAMES = 34


def render_terminal(report: Report, width: int = 100) -> str:
    """The text; no line is longer than width unless a word is."""
    view = view_of(report, SHOWN)
    counts = ", ".join(number(view.severities[one], one) for one in SEVERITIES)
    read = f"{plain(view.cluster)}: {plain(view.versions)}, read at {plain(view.taken_at)}"
    verdict = textwrap.fill(f"{view.headline.upper()}: {plain(view.answer)}", width)
    parts = [f"{verdict}\n{textwrap.fill(read, width)}\n{counts}"]
    if view.first:
        parts.append(_steps(view, width))
    parts += filter(
        None,
        (
            _table("WORKLOAD", "AFTER A RESTART", "workload", view.workloads, width),
            _stops(report, width),
            _table("NODE", "ITS VOLUMES", "node", view.nodes, width),
            _table("VOLUME", "CLASS", "volume", view.volumes, width),
        ),
    )
    if view.assumptions:
        rows = [[f"{at}.", about, plain(text)] for at, (text, about) in enumerate(view.assumptions, 1)]
        parts.append(render_table(("NO.", "FOR", "ASSUMED"), rows, width))
    if view.unread:
        rows = [
            [plain(one.get("resource", "")), plain(one.get("why", "")), plain(one.get("rule", ""))]
            for one in view.unread
        ]
        parts.append(render_table(("NOT READ", "WHY", "RULE TO ADD"), rows, width, _NAMES))
    if view.suppressed:
        rows = [
            [one.finding.id, plain(one.finding.object), plain(one.expires), plain(one.reason)]
            for one in view.suppressed
        ]
        parts.append(render_table(("ACCEPTED", "ABOUT", "UNTIL", "REASON"), rows, width, _NAMES))
    begin = f"\n{textwrap.fill(_begin(view.first[0]), width)}" if view.first else ""
    parts.append(f"{verdict}{begin}")
    return "\n\n".join(parts)


def _begin(group: Group) -> str:
    help_ = group.helps[0]
    return f"Begin with {group.id}: {plain(help_.remedy)} ({help_.about(plain, plain)})"


def _steps(view: View, width: int) -> str:
    rows: list[list[str]] = []
    for position, group in enumerate(view.first, 1):
        helps = [f"{plain(one.remedy)} ({one.about(plain, plain)})" for one in group.helps[:NAMED]]
        more = len(group.helps) - NAMED
        helps += [f"and {number(more, 'other remedy', 'other remedies')}"] if more > 0 else []
        helps += [f"blocks {group.concerns}"] if group.concerns else []
        kind = f"{group.severity}, unknown" if group.doubt else group.severity
        rows += [[f"{position}.", kind, group.id, helps[0]], *(["", "", "", one] for one in helps[1:])]
    return render_table(("DO", "BECAUSE OF A", "FINDING", "WHAT HELPS, AND WHERE"), rows, width)


def _stops(report: Report, width: int) -> str:
    """Where pods stop on their way to running, a line for each reason."""
    found, more = stops(report, SHOWN.most)
    rows = [
        [plain(listed(one.pods, NAMED)), one.at, plain(one.where), f"{plain(one.because)} -> {plain(one.first)}"]
        for one in found
    ]
    if not rows:
        return ""
    shown = render_table(("WORKLOAD", "STEP", "ON", "BECAUSE, AND WHAT TO DO FIRST"), rows, width, _NAMES)
    return f"{shown}\n(and {number(more, 'other reason')})" if more else shown


def _table(name: str, state: str, kind: str, table: Table, width: int) -> str:
    """The lines that are not ready, and the number of ready ones."""
    alike = group_values(
        ((line.state, _ITS_CLAIM.sub("its claim is", line.because)), line) for line in table.lines if line.mark != "yes"
    )
    rows = [
        [", ".join(plain(one.name) for one in some), state, plain(reason if len(some) > 1 else some[0].because)]
        for (state, reason), some in alike.items()
    ]
    well = table.counts["yes"]
    if not rows:
        return f"{name}S: all {well:,} are OK" if well else ""
    shown = render_table((name, state, "BECAUSE"), rows, width, _NAMES)
    return f"{shown}\n({number(well, f'further {kind}')} {'is' if well == 1 else 'are'} OK)" if well else shown
