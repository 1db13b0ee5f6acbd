# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as Markdown, for a ticket or a merge request. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.paths import walks
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    NAMED,
    Group,
    Limits,
    Table,
    view_of,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import number, plain, sentence
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import SEVERITIES, Report

# A ticket takes some 65,000 characters.
SHOWN = Limits(whole=50, most=100)
_OBJECTS = 20

# What Markdown or the HTML in it gives a meaning to (https://spec.commonmark.org/0.31.2/#backslash-escapes).
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&]|^[-+#])")
_SIGNS = {"no": "✗", "unknown": "?", "watch": "!", "yes": "✓"}


def render_markdown(report: Report) -> str:
    """The text."""
    view = view_of(report, SHOWN)
    counts = ", ".join(number(view.severities[one], one) for one in SEVERITIES)
    facts = " · ".join(_text(one) for one in (view.versions, f"read at {view.taken_at}", counts) if one)
    parts = [f"# {_text(f'{view.headline}: {view.cluster}')}", f"**{_text(view.answer)}**", facts]
    if view.first:
        parts += ["## What to do first", "\n".join(map(_step, view.first))]
    if view.assumptions:
        parts += ["## Assumptions", "\n".join(f"1. {_text(text)} ({about})" for text, about in view.assumptions)]
    parts += _table(view.workloads)
    parts += _paths(report)
    parts += _table(view.nodes)
    parts += _table(view.volumes)
    if view.groups:
        parts += ["## Findings", *(_group(group) for group in view.groups)]
    if view.unread:
        rows = [(one.get("resource", ""), one.get("why", ""), one.get("rule", "")) for one in view.unread]
        parts += ["## What could not be read", _rows(("Resource", "Why", "Rule to add"), rows)]
    if view.suppressed:
        accepted = [(one.finding.object, one.finding.id, one.reason, one.expires) for one in view.suppressed]
        parts += ["## Accepted findings", _rows(("About", "Finding", "Reason", "Until"), accepted)]
    parts += [f"*{_text(one)}*" for one in view.aggregated]
    return "\n\n".join(parts) + "\n"


def _text(value: object) -> str:
    return _SPECIAL.sub(r"\\\1", plain(value))


def _step(group: Group) -> str:
    lines = [f"1. {group.severity} {_text(group.id)}: {_text(group.why)}"]
    lines[0] += f" Blocks {group.concerns}." if group.concerns else ""
    lines += [f"   - **{_text(one.remedy)}** {one.about(_text, _text)}" for one in group.helps[:NAMED]]
    more = len(group.helps) - NAMED
    lines += [f"   - and {number(more, 'other remedy', 'other remedies')}"] if more > 0 else []
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    if not table.lines:
        return []
    rows = [
        (line.name, f"{_SIGNS[line.mark]} {line.state}", " ".join((line.because, *line.findings)), *line.cells)
        for line in table.lines
    ]
    return [f"## {table.title}", _rows(table.columns, rows)]


_REACHED = {"yes": "✓", "no": "✗", "unknown": "?", "never": "·"}


def _paths(report: Report) -> list[str]:
    """The way of each pod that stops, a line for each group of nodes."""
    rows = [
        (
            walk.workload if walk.workload.endswith(f"/{pod}") else f"{walk.workload}: {pod}",
            path.nodes,
            " ".join(f"{step} {_REACHED[reached]}" for step, reached in path.steps),
            "; ".join(dict.fromkeys(one.because for one in path.stops)),
            path.stops[0].remedy,
        )
        for walk in walks(report, SHOWN.most)
        for pod, paths in walk.paths
        for path in paths
    ][: SHOWN.most]
    if not rows:
        return []
    columns = ("Pod", "Nodes", "Steps", "Because", "First")
    return ["## Where pods stop", _rows(columns, rows)]


def _rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns)]
    return "\n".join(
        [f"| {' | '.join(line)} |" for line in lines]
        + [f"| {' | '.join(_text(cell) for cell in row)} |" for row in rows]
    )


def _group(group: Group) -> str:
    remedy = f" **What to do:** {_text(group.remedy)}" if group.remedy else ""
    lines = [
        f"**{_text(group.id)}** ({group.severity}, {number(group.total, 'object')}): {_text(group.why)}{remedy}",
        "",
    ]
    for case in group.cases[:_OBJECTS]:
        remedy = "" if group.remedy else f" *What to do:* {_text(sentence(case.finding.remedy))}"
        lines.append(f"- {_text(case.finding.object)}: {_text(case.finding.message)}{remedy}")
    if group.total > _OBJECTS:
        lines.append(f"- and {group.total - _OBJECTS:,} more")
    return "\n".join(lines)
