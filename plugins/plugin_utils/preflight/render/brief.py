# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report in a few lines, for the end of a run that asked for it on its way. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..verdict import Report
from .text_format import format_list, format_number, plain
from .view import NAMED, format_answer, format_headline

FULL_REPORT = "the full report: run the playbook kubewin.csi.preflight with the same inventory"
# Findings that a refusal names.
_REASONS = 10
_ROLE = "ClusterRole kubewin-preflight of roles/csi_driver/files/kubewin-preflight-rbac.yaml has all required rules"


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
