# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade writes two reports into the same files: only the last one prints its table and names them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import Readiness


def test_a_report_that_another_one_follows_names_no_file_and_repeats_no_table() -> None:
    lines, report = ("READY: all", "NODES: all 2 are OK", "READY: all"), object()
    made: Any = Readiness
    readiness = made(report, report, lines, {"html": "/out/readiness.html"})
    assert readiness.render(brief=True) == ["", "READY: all"]
    assert readiness.render(brief=False) == ["", *lines, "written to /out/readiness.html"]
