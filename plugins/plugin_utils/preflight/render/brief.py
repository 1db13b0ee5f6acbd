# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report in a few lines, for the end of a run that asked for it on its way. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import NAMED, Limits, view_of
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import (
    listed,
    nothing_there,
    number,
    plain,
    share,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report

MORE = "the full report: run the playbook kubewin.csi.preflight with the same inventory"
# Findings that a refusal names.
_REASONS = 10
_ROLE = "ClusterRole kubewin-preflight of roles/csi_driver/files/kubewin-preflight-rbac.yaml has all required rules"


def render_brief(report: Report) -> tuple[str, ...]:
    """Counts of volumes and workloads on Windows, what will not start again and why, what was not checked, where to read more."""
    parts = (*_counts(report), *_not_back(report), *_besides(report))
    # Without a volume on Windows there is no more to read.
    more = (MORE,) if len(parts) > 1 or report.volumes or report.workloads else ()
    return tuple(plain(line) for line in (*parts, *more))


def render_refusal(own: Report) -> str:
    """Why a run must not begin, with what helps; own: the report with the findings about it alone."""
    worst = [one for one in own.findings if one.severity != "note"]
    lines = ["Refused before the first change, because of what this run would do to volumes on Windows:"]
    lines += [f"{one.id} {one.object}: {one.message} -> {one.remedy}" for one in worst[:_REASONS]]
    if len(worst) > _REASONS:
        lines.append(f"and {len(worst) - _REASONS:,} more")
    lines.append("To accept a finding, add an entry to suppressions (kubewin_suppressions).")
    return "\n".join((*lines, MORE[0].upper() + MORE[1:]))


def _counts(report: Report) -> Iterator[str]:
    volumes: dict[str, set[str]] = defaultdict(set)
    for one in report.volumes:
        answer = "unknown" if one.verdict == "UNKNOWN" else "no"
        volumes[one.volume or one.claim].add("yes" if one.works else answer)
    served = sum(answers == {"yes"} for answers in volumes.values())
    unknown = sum("unknown" in answers and "no" not in answers for answers in volumes.values())
    counts = view_of(report, Limits(0, 0)).workloads.counts
    total = sum(counts.values())
    parts = [share(served, unknown, len(volumes), "volume", "on Windows will be served")] if volumes else []
    if total:
        does = "there will start again after a restart"
        parts.append(share(counts["yes"], counts["unknown"], total, "workload", does))
    yield ", and ".join(parts) or nothing_there(report.unread)


def _not_back(report: Report) -> Iterator[str]:
    for answer, words in (("no", "will not start again"), ("unknown", "may not start again (unknown)")):
        some = [one for one in report.workloads if one.starts_again == answer]
        yield from (f"{one.workload} {words}: {one.because}" for one in some[:NAMED])
        if len(some) > NAMED:
            yield f"and {number(len(some) - NAMED, 'other workload')} {words}"


def _besides(report: Report) -> Iterator[str]:
    if report.assumptions and report.verdict == "ready":
        yield f"ready, if {number(len(report.assumptions), 'assumption holds', 'assumptions hold')}; the full report has them"
    if report.unread:
        rules = [one["rule"] for one in report.unread if one.get("rule")]
        yield f"not checked, because it could not be read: {listed([one['resource'] for one in report.unread], 20)}"
        if rules:
            yield f"rules to grant for that: {', '.join(rules) if len(rules) <= NAMED else _ROLE}"
    yield from (f"{one.id} {one.object}: {one.message}" for one in report.findings if one.id == "CSI-R01")
    if report.suppressed:
        yield f"{number(len(report.suppressed), 'finding')} suppressed by kubewin_suppressions"
