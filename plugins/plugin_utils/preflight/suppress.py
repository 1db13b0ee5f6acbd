# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that a user accepted, for a reason and until a day. Pure: the caller passes the day."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase

from .verdict import Cause, Report, ReportFinding, Suppressed, WorkloadVerdict

_ID = re.compile(r"CSI-[A-Z]\d\d")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One accepted finding. object: a glob over a finding's object. expires: the last day on which it counts."""

    id: str
    object: str
    reason: str
    expires: date

    def covers(self, finding: ReportFinding | Cause) -> bool:
        return finding.id == self.id and fnmatchcase(finding.object, self.object)


def read_suppression(entry: Mapping[str, str]) -> Suppression:
    """Read an entry of the option suppressions, whose keys and types are checked. ValueError names it and what was expected."""
    title = f"suppression of {entry['id']} on {entry['object']}"
    if not _ID.fullmatch(entry["id"]):
        raise ValueError(f"{title}: expected the ID of one finding, such as CSI-V10. Write one entry for each finding.")
    for key in ("object", "reason"):
        if not entry[key].strip():
            raise ValueError(f"{title}: {key} is empty, expected text. Set {key}.")
    try:
        expires = date.fromisoformat(entry["expires"].strip())
    except ValueError:
        raise ValueError(f"{title}: expires is {entry['expires']!r}, expected a day such as 2027-01-31.") from None
    return Suppression(entry["id"], entry["object"], entry["reason"].strip(), expires)


def suppress(report: Report, suppressions: Sequence[Suppression], today: date) -> Report:
    """The report without what is accepted today, which is listed beside it. A workload is accepted when each of its causes is."""
    live = [suppression for suppression in suppressions if suppression.expires >= today]
    kept: list[ReportFinding] = []
    left_out: list[Suppressed] = list(report.suppressed)
    for finding in report.findings:
        cover = next((suppression for suppression in live if suppression.covers(finding)), None)
        if cover is None:
            kept.append(finding)
        else:
            left_out.append(Suppressed(finding, cover.reason, cover.expires.isoformat()))
    workloads = tuple(_accept(workload, live) for workload in report.workloads)
    return replace(report, findings=tuple(kept), suppressed=tuple(left_out), workloads=workloads)


def _accept(workload: WorkloadVerdict, live: Sequence[Suppression]) -> WorkloadVerdict:
    covers = [
        next((suppression for suppression in live if suppression.covers(cause)), None) for cause in workload.causes
    ]
    reasons = dict.fromkeys(suppression.reason for suppression in covers if suppression is not None)
    if not covers or None in covers:
        return workload
    return replace(workload, accepted="; ".join(reasons))
