# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as text for a terminal. Pure.

The end of a run is directly above the prompt, so this form only counts ready objects; the other forms list all.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from ...base.grouped import group_values
from ...base.table import render_table, wrap
from ..verdict import SEVERITIES, Report
from .text_format import format_list, format_number, plain
from .view import NAMED, ReportPart, ReportRow, View, create_view, format_answer, format_headline

# Lines of a table that a reader of a terminal is shown.
SHOWN = 20
# What several workloads have in common, each with a claim of its own.
_ITS_CLAIM = re.compile(r"^claim \S+ is")
# Characters of a name before it is wrapped.
_NAMES = 34

FULL_REPORT = "the full report: run the playbook kubewin.csi.preflight with the same inventory"
# Findings that a refusal names.
_REASONS = 10
_ROLE = "ClusterRole kubewin-preflight of roles/csi_driver/files/kubewin-preflight-rbac.yaml has all required rules"


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


# In a few lines, for the end of a run that asked for it on its way


def render_brief(report: Report) -> tuple[str, ...]:
    """The verdict, what will not start again and why, what was not checked, where to read more."""
    verdict = f"{format_headline(report)}: {format_answer(report)}"
    parts = (verdict, *_list_stopped_workloads(report), *_list_notes(report))
    # Without a volume on Windows there is no more to read.
    pointer = (FULL_REPORT,) if len(parts) > 1 or report.volumes or report.workloads else ()
    return tuple(plain(line) for line in (*parts, *pointer))


def render_refusal(report: Report) -> str:
    """Why a run must not begin, with what helps; own: the report with the findings about it alone."""
    findings = [finding for finding in report.findings if finding.severity != "note"]
    lines = ["Refused before the first change, because of what this run would do to volumes on Windows:"]
    lines += [
        f"{finding.id} {finding.object}: {finding.message} -> {finding.remedy}" for finding in findings[:_REASONS]
    ]
    if len(findings) > _REASONS:
        lines.append(f"and {len(findings) - _REASONS:,} more")
    lines.append("To accept a finding, add an entry to suppressions (kubewin_suppressions).")
    return "\n".join((*lines, FULL_REPORT[0].upper() + FULL_REPORT[1:]))


def _list_stopped_workloads(report: Report) -> Iterator[str]:
    for answer, words in (("no", "will not start again"), ("unknown", "may not start again (unknown)")):
        workloads = [workload for workload in report.workloads if workload.starts_again == answer]
        yield from (f"{workload.workload} {words}: {workload.because}" for workload in workloads[:NAMED])
        if len(workloads) > NAMED:
            yield f"and {format_number(len(workloads) - NAMED, 'other workload')} {words}"


def _list_notes(report: Report) -> Iterator[str]:
    if report.unread:
        rules = [entry["rule"] for entry in report.unread if entry.get("rule")]
        yield f"not checked, because it could not be read: {format_list([entry['resource'] for entry in report.unread], 20)}"
        if rules:
            yield f"rules to grant for that: {', '.join(rules) if len(rules) <= NAMED else _ROLE}"
    if report.suppressed:
        yield f"{format_number(len(report.suppressed), 'finding')} suppressed by kubewin_suppressions"
