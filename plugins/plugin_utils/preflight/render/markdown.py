# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as Markdown, for a ticket or a merge request. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    NAMED,
    AssumptionLine,
    FindingGroup,
    Limits,
    Table,
    View,
    create_view,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number, plain, sentence
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import SEVERITIES, Report

# A ticket takes some 65,000 characters.
SHOWN = Limits(whole=50, most=100)
_OBJECTS = 20

# What Markdown or the HTML in it gives a meaning to (https://spec.commonmark.org/0.31.2/#backslash-escapes).
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&]|^[-+#])")
_SIGNS = {"no": "✗", "unknown": "?", "watch": "!", "yes": "✓"}


def render_markdown(report: Report) -> str:
    """The text."""
    view = create_view(report, SHOWN)
    counts = ", ".join(number(view.severities[entry], entry) for entry in SEVERITIES)
    facts = (view.versions, f"read at {view.taken_at}", f"by {view.collection}", counts)
    parts = [
        f"# {_escape(f'{view.headline}: {view.cluster}')}",
        f"**{_escape(view.answer)}**",
        " · ".join(map(_escape, filter(None, facts))),
    ]
    if view.first:
        parts += ["## What to do first", "\n".join(map(_render_step, view.first))]
    parts += _render_comparison(view)
    parts += _render_table(view.workloads)
    parts += _render_stops(view)
    if view.assumptions:
        parts += ["## Assumptions", "\n".join(map(_render_assumption, view.assumptions))]
    if view.roll:
        table = [_render_rows(("Node", "Its drain", "And then"), view.roll.rows)] if view.roll.rows else []
        parts += ["## The upgrade's drains", _escape(view.roll.headline), *table]
    parts += _render_table(view.nodes)
    parts += _render_table(view.volumes)
    if view.groups:
        parts += ["## Findings", *(_render_finding(group) for group in view.groups)]
    if view.unread:
        rows = [(entry.get("resource", ""), entry.get("why", ""), entry.get("rule", "")) for entry in view.unread]
        parts += ["## What could not be read", _render_rows(("Resource", "Why", "Rule to add"), rows)]
    if view.suppressed:
        accepted = [(entry.finding.object, entry.finding.id, entry.reason, entry.expires) for entry in view.suppressed]
        parts += ["## Accepted findings", _render_rows(("About", "Finding", "Reason", "Until"), accepted)]
    parts += [f"*{_escape(entry)}*" for entry in view.aggregated]
    return "\n\n".join(parts) + "\n"


def _escape(value: object) -> str:
    return _SPECIAL.sub(r"\\\1", plain(value))


def _render_step(group: FindingGroup) -> str:
    lines = [f"1. {group.severity} {_escape(group.id)}: {_escape(group.why)}"]
    lines[0] += f" Affects {group.concerns}." if group.concerns else ""
    lines += [
        f"   - **{_escape(remedy.remedy)}** {remedy.describe_objects(_escape, _escape)}"
        for remedy in group.remedies[:NAMED]
    ]
    hidden = len(group.remedies) - NAMED
    lines += [f"   - and {number(hidden, 'other remedy', 'other remedies')}"] if hidden > 0 else []
    return "\n".join(lines)


def _render_assumption(assumption: AssumptionLine) -> str:
    check = f" Check: `{assumption.check}`" if assumption.check else ""
    return f"1. {_escape(assumption.message)} ({assumption.dependents}).{check}"


def _render_comparison(view: View) -> list[str]:
    if not view.comparison:
        return []
    rows = [(change, cause.id, cause.object) for change, cause in view.changes]
    table = [_render_rows(("Change", "Finding", "About"), rows)] if rows else []
    return ["## Since the earlier report", _escape(view.comparison), *table]


def _render_table(table: Table) -> list[str]:
    if not table.lines:
        return []
    rows = [
        (line.name, f"{_SIGNS[line.mark]} {line.state}", " ".join((line.because, *line.findings)), *line.cells)
        for line in table.lines
    ]
    return [f"## {table.title}", _render_rows(table.columns, rows)]


def _render_stops(view: View) -> list[str]:
    """One row for each reason by which pods stop on their way to running."""
    if not view.stops:
        return []
    rows = [(listed(stop.pods, NAMED), f"{stop.at} on {stop.where}", stop.because, stop.first) for stop in view.stops]
    return ["## Where pods stop", _render_rows(("Pods", "Step", "Because", "What to do"), rows)]


def _render_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns)]
    return "\n".join(
        [f"| {' | '.join(line)} |" for line in lines]
        + [f"| {' | '.join(_escape(cell) for cell in row)} |" for row in rows]
    )


def _render_finding(group: FindingGroup) -> str:
    remedy = f" **What to do:** {_escape(group.remedy)}" if group.remedy else ""
    lines = [
        f"**{_escape(group.id)}** ({group.severity}, {number(group.total, 'object')}): {_escape(group.why)}{remedy}",
        "",
    ]
    for finding in group.findings[:_OBJECTS]:
        remedy = "" if group.remedy else f" *What to do:* {_escape(sentence(finding.remedy))}"
        lines.append(f"- {_escape(finding.object)}: {_escape(finding.message)}{remedy}")
    if group.total > _OBJECTS:
        lines.append(f"- and {group.total - _OBJECTS:,} more")
    return "\n".join(lines)
