# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that a user accepted, for a reason and until a day. Pure: the caller passes the day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import found
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    Cause,
    Finding,
    Report,
    Suppressed,
    WorkloadVerdict,
)

KEYS = ("id", "object", "reason", "expires")

_ID = re.compile(r"CSI-[A-Z]\d\d")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class SuppressionError(ValueError):
    """Entries that cannot be used; each with what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """One accepted finding. object: a glob over a finding's object. expires: the last day on which it counts."""

    id: str
    object: str
    reason: str
    expires: date

    @property
    def title(self) -> str:
        """What findings about it call it."""
        return f"suppression of {self.id} on {self.object}"

    def covers(self, finding: Finding | Cause) -> bool:
        """Whether it is about this finding."""
        return finding.id == self.id and fnmatchcase(finding.object, self.object)


def read_suppressions(entries: Iterable[Any]) -> tuple[Suppression, ...]:
    """Read a list of {id, object, reason, expires}; SuppressionError names everything that is wrong with all of them."""
    read: list[Suppression] = []
    troubles: list[str] = []
    for number, entry in enumerate(entries, 1):
        wrong = list(_wrong(entry))
        troubles += [f"suppression {number}{_named(entry)}: {what}" for what in wrong]
        day = None if wrong else _day(entry["expires"])
        if day is not None:
            read.append(Suppression(entry["id"], entry["object"], entry["reason"].strip(), day))
    if troubles:
        raise SuppressionError("\n".join(troubles))
    return tuple(read)


def suppress(report: Report, suppressions: Sequence[Suppression], today: date) -> Report:
    """The report without what is accepted today, which is listed beside it; entries that do nothing become findings.

    A workload is accepted when each of its causes is.
    """
    live = [one for one in suppressions if one.expires >= today]
    kept: list[Finding] = []
    left_out: list[Suppressed] = list(report.suppressed)
    used: set[Suppression] = set()
    for finding in report.findings:
        cover = next((one for one in live if one.covers(finding)), None)
        if cover is None:
            kept.append(finding)
        else:
            left_out.append(Suppressed(finding, cover.reason, cover.expires.isoformat()))
        used.update(one for one in suppressions if one.covers(finding))
    kept += [_expired(one, one in used) for one in suppressions if one.expires < today]
    kept += [_unused(one) for one in live if one not in used]
    workloads = tuple(_accept(one, live) for one in report.workloads)
    return replace(report, findings=tuple(kept), suppressed=tuple(left_out), workloads=workloads)


def _accept(workload: WorkloadVerdict, live: Sequence[Suppression]) -> WorkloadVerdict:
    covers = [next((one for one in live if one.covers(cause)), None) for cause in workload.causes]
    reasons = dict.fromkeys(one.reason for one in covers if one is not None)
    if not covers or None in covers:
        return workload
    return replace(workload, accepted="; ".join(reasons))


def _expired(suppression: Suppression, used: bool) -> Finding:
    message = f"it expired on {suppression.expires.isoformat()}; "
    message += "its finding counts again" if used else "it would suppress nothing"
    remedy = "do what the finding says, or review it and set a later day" if used else "remove the entry"
    return found("CSI-R01", suppression.title, message, (f"reason given: {suppression.reason}",), remedy, "warning")


def _unused(suppression: Suppression) -> Finding:
    evidence = (f"reason given: {suppression.reason}", f"it would expire on {suppression.expires.isoformat()}")
    remedy = "remove the entry, or copy the object from a report"
    return found(
        "CSI-R02", suppression.title, "no finding has this id and an object that fits", evidence, remedy, "note"
    )


def _named(entry: Any) -> str:
    named = [str(entry[key]) for key in ("id", "object") if entry.get(key)] if isinstance(entry, Mapping) else []
    return f" ({' on '.join(named)})" if named else ""


def _wrong(entry: Any) -> Iterable[str]:
    """What is wrong with an entry, in words."""
    if not isinstance(entry, Mapping):
        yield f"found {entry!r}, expected a dictionary with {', '.join(KEYS)}"
        return
    for key in KEYS:
        if entry.get(key) in (None, ""):
            yield f"{key} is missing, expected {', '.join(KEYS)}"
    for key in entry:
        if key not in KEYS:
            yield f"found {key!r}, expected {', '.join(KEYS)}"
    for key in ("id", "object", "reason"):
        value = entry.get(key)
        if value not in (None, "") and not (isinstance(value, str) and value.strip()):
            yield f"{key} is {value!r}, expected text"
    if isinstance(entry.get("id"), str) and entry["id"] and not _ID.fullmatch(entry["id"]):
        yield f"id is {entry['id']!r}, expected the ID of one finding, such as CSI-V10; write one entry for each"
    if entry.get("expires") not in (None, "") and _day(entry["expires"]) is None:
        yield f"expires is {str(entry['expires'])!r}, expected a day such as 2027-01-31"


def _day(value: Any) -> date | None:
    """The date that is meant, None when it is none. YAML makes a date of what is not quoted."""
    if isinstance(value, datetime):
        return None
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not _DAY.fullmatch(value.strip()):
        return None
    try:
        return date.fromisoformat(value.strip())
    except ValueError:
        return None
