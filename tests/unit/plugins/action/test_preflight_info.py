# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade writes two reports into the same files: only the last one prints its table and names them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.action.preflight_info import render_lines

RESULT: dict[str, Any] = {
    "table": ["READY: all", "NODES: all 2 are OK", "READY: all"],
    "paths": {"html": "/out/readiness.html"},
}


def test_a_report_that_another_one_follows_names_no_file_and_repeats_no_table() -> None:
    assert render_lines(RESULT, brief=True) == ["", "READY: all"]
    whole = ["", *RESULT["table"], "written to /out/readiness.html"]
    assert render_lines(RESULT, brief=False) == whole
