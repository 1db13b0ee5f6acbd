# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What diagnose takes of the readiness report."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.action.diagnose import select_findings
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import blocker, note, warning
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import NAMED


def test_blockers_come_before_warnings_and_notes_are_left_out() -> None:
    findings = [warning(str(number), "Node win-1", "x", "y") for number in range(NAMED + 1)]
    findings += [note("note", "Node win-1", "x", "y"), blocker("first", "Node win-1", "x", "y")]
    assert [finding.id for finding in select_findings(findings)] == ["first", *map(str, range(NAMED))]
