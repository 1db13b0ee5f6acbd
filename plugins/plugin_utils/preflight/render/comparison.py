# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since an earlier report of the same cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..verdict import REPORT_VERSION, Cause, Comparison, Report


def compare_reports(report: Report, earlier: Mapping[str, Any]) -> Report:
    """The report with its comparison. earlier: a readiness.json. ValueError if it is none, or of another cluster."""
    version, cluster = earlier.get("report_version"), earlier.get("cluster")
    if version != REPORT_VERSION:
        raise ValueError(f"its report_version is {version}, expected {REPORT_VERSION}. Compare with a readiness.json")
    if cluster != report.cluster:
        raise ValueError(f"it is of cluster {cluster}, expected {report.cluster}")
    findings = [*earlier["findings"], *(accepted["finding"] for accepted in earlier["suppressed"])]
    before = dict.fromkeys(Cause(finding["id"], finding["object"]) for finding in findings)
    # An accepted finding is not fixed.
    accepted_findings = (accepted.finding for accepted in report.suppressed)
    after = dict.fromkeys(Cause(finding.id, finding.object) for finding in (*report.findings, *accepted_findings))
    comparison = Comparison(
        taken_at=earlier["taken_at"],
        verdict=earlier["verdict"],
        target=earlier["target"],
        fixed=_select(before, without=after),
        new=_select(after, without=before),
        unchanged=tuple(cause for cause in after if cause in before),
    )
    return replace(report, comparison=comparison)


def _select(causes: Iterable[Cause], without: Mapping[Cause, None]) -> tuple[Cause, ...]:
    return tuple(cause for cause in causes if cause not in without)
