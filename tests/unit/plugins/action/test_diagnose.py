# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What diagnose takes of the readiness report."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.action.diagnose import select_findings
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import NAMED


def test_blockers_come_before_warnings_and_notes_are_left_out() -> None:
    findings = [{"id": str(number), "severity": "warning"} for number in range(NAMED + 1)]
    findings += [{"id": "note", "severity": "note"}, {"id": "first", "severity": "blocker"}]
    assert [finding["id"] for finding in select_findings(findings)] == ["first", *map(str, range(NAMED))]
