# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An accepted finding does not count for the verdict: with a reason, until a day, and never silently."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.suppress import (
    read_suppression,
    suppress,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Cause
from unit.plugins.plugin_utils.preflight.reports import finding, report, workload

LAST_DAY = date(2027, 1, 31)
EVALUATED = report(
    findings=(finding(about="PersistentVolume pv-1"), finding(about="PersistentVolume pv-2")),
    workloads=(
        workload(),
        *(
            workload(f"Deployment shop/{name}", "no", causes=(Cause("CSI-V10", f"PersistentVolume {name}"),))
            for name in ("pv-1", "pv-2")
        ),
    ),
)


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "id": "CSI-V10",
        "object": "PersistentVolume pv-*",
        "reason": "moved by hand",
        "expires": "2027-01-31",
        **changes,
    }


def test_an_accepted_finding_changes_the_verdict_and_stays_visible_with_its_reason() -> None:
    left = suppress(EVALUATED, [read_suppression(entry())], LAST_DAY)
    assert EVALUATED.verdict == "blocked"
    assert (left.verdict, left.findings) == ("ready", ())
    assert [one.accepted for one in left.workloads] == ["", "moved by hand", "moved by hand"]
    assert [(one.finding.object, one.reason, one.expires) for one in left.suppressed] == [
        ("PersistentVolume pv-1", "moved by hand", "2027-01-31"),
        ("PersistentVolume pv-2", "moved by hand", "2027-01-31"),
    ]


def test_the_object_is_a_glob_that_minds_case_and_the_id_is_none() -> None:
    named = suppress(EVALUATED, [read_suppression(entry(object="PersistentVolume pv-1"))], LAST_DAY)
    assert [one.object for one in named.findings] == ["PersistentVolume pv-2"]
    assert named.verdict == "blocked"
    for other in (entry(object="persistentvolume *"), entry(id="CSI-V11")):
        left = suppress(EVALUATED, [read_suppression(other)], LAST_DAY)
        assert left.verdict == "blocked"
        assert left.suppressed == ()


def test_after_its_last_day_an_entry_is_ignored() -> None:
    assert suppress(EVALUATED, [read_suppression(entry())], date(2027, 2, 1)) == EVALUATED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"reason": "  "}, "reason is empty, expected text"),
        ({"object": ""}, "object is empty, expected text"),
        ({"expires": "soon"}, "expires is 'soon', expected a day such as 2027-01-31"),
        ({"expires": "2027-02-30"}, "expires is '2027-02-30', expected a day"),
        ({"id": "CSI-*"}, "suppression of CSI-* on PersistentVolume pv-*: expected the ID of one finding"),
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_meant_is_refused_with_what_was_expected(
    changes: dict[str, str], expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        [*map(read_suppression, [entry(), entry(**changes)])]
