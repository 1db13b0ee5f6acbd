# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report on a terminal: what matters is at both ends, and it fits."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_terminal
from unit.plugins.plugin_utils.preflight.reports import finding, huge, node, report, troubled, volume, workload


@pytest.mark.parametrize("width", [80, 100])
def test_it_fits_the_width_that_it_is_given(width: int) -> None:
    text = render_terminal(troubled(), width)
    assert max(map(len, text.splitlines())) <= width


def test_a_large_report_fits_too_and_stays_short() -> None:
    lines = render_terminal(huge(), 100).splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) < 150
    assert "(950 further nodes OK; 980 lines not shown)" in lines


def test_the_verdict_comes_first_and_again_last_with_the_first_remedy() -> None:
    lines = render_terminal(troubled(), 200).splitlines()
    assert (
        lines[0] == lines[-2] == "NOT READY: With Kubernetes 1.30, 1 of 3 workloads will not start again; 1 is unknown."
    )
    assert lines[2] == "2 blockers, 1 warning, 1 note (in the HTML and JSON files)"
    assert lines[-1] == (
        "Begin with CSI-N44: Run enable_csi for the host of win-2. (Node win-2: ebs.csi.aws.com is not in its CSINode)"
    )


def test_the_same_reason_is_reported_once_for_all_nodes() -> None:
    why = "ebs.csi.aws.com does not work on win-1"
    lost = [workload(f"Pod shop/{name}", "no", because=f"claim shop/{name} is blocked: {why}") for name in ("a", "b")]
    alone = workload("Pod shop/c", "no", because="claim shop/c is blocked: it is of another kind")
    volumes = (volume("pv-a", "no", because=why), volume("pv-b", "no", because=why))
    text = render_terminal(report(workloads=(*lost, alone), volumes=volumes), 160)
    assert f"Pod shop/a, Pod shop/b   will not start again   its claim is blocked: {why}" in text
    assert "Pod shop/c               will not start again   claim shop/c is blocked: it is of another kind" in text
    assert f"pv-a, pv-b   cannot be mounted   {why}" in text


def test_the_steps_to_do_come_before_the_tables_in_order() -> None:
    text = render_terminal(troubled(), 100)
    places = [
        text.index(word) for word in ("Run enable_csi for the host of win-2.", "Inspect it.", "Repair it.", "WORKLOAD ")
    ]
    assert places == sorted(places)
    assert "(Node win-2: ebs.csi.aws.com is not in its CSINode) affects 1 node" in " ".join(text.split())


def test_ready_objects_are_counted_and_not_listed() -> None:
    text = render_terminal(troubled(), 100)
    assert "StatefulSet shop/db" not in text
    assert "(1 further workload OK)" in text
    assert "NODES: all 1 are OK" in render_terminal(report(nodes=(node(),)), 100)


def test_unread_and_accepted_findings_are_reported() -> None:
    text = render_terminal(troubled(), 100)
    assert "cronjobs   403 Forbidden   get, list cronjobs in batch" in text
    assert "Node win-1   2027-01-31   until the move   CSI-N60: something about Node win-1" in text


def test_a_name_cannot_steer_the_terminal() -> None:
    text = render_terminal(report(findings=(finding(about="Node \x1b[2Jwin"),), nodes=(node("\x1b]0;x\x07", "no"),)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2Jwin" in text
