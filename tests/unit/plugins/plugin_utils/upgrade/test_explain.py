# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal's text shows the state of each node without the names of steps."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import get_args

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import warning
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.explain import (
    describe,
    describe_changes,
    describe_plan,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    Journal,
    NodeEntry,
    UpgradeStep,
    UpgradeTarget,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import UpgradeNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.snapshot import ClaimedVolume

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=timezone.utc)
BEGUN = Journal(
    "kubelet-1.27",
    "tasks",
    UpgradeTarget(kubelet="1.27"),
    "2026-11-21T20:00:00Z",
    (NodeEntry("win-1", 0), NodeEntry("win-2", 1)),
)


def failed(step: UpgradeStep, finding: str) -> Journal:
    return BEGUN.put(replace(BEGUN.find_entry("win-2").move_to(step, NOW, "the reason"), failed=finding), NOW)


@pytest.mark.parametrize(
    ("step", "finding", "line"),
    [
        ("waiting", "CSI-U03", "win-2 (batch 1): failed (CSI-U03) since 2026-11-21T20:00:00Z; the reason; it was uncordoned"),
        ("hook", "CSI-U07", "win-2 (batch 1): failed (CSI-U07) while it is being upgraded by your tasks since "
                            "2026-11-21T20:00:00Z; the reason; it stays cordoned and drained"),
        ("workloads", "CSI-U08", "win-2 (batch 1): failed (CSI-U08) while it waits for its workloads since "
                                 "2026-11-21T20:00:00Z; the reason; it is schedulable"),
        # The state of a missing node is unknown.
        ("wait_ready", "CSI-U10", "win-2 (batch 1): failed (CSI-U10) while it waits until it is Ready since 2026-11-21T20:00:00Z; the reason"),
    ],
)  # fmt: skip
def test_a_failed_node_reports_its_step_and_its_state(step: UpgradeStep, finding: str, line: str) -> None:
    assert line in describe(failed(step, finding)).splitlines()


def test_the_journal_lists_past_and_remaining_steps() -> None:
    journal = BEGUN.put(BEGUN.find_entry("win-1").start(NOW), NOW)
    assert journal.happened == ("2026-11-21T20:00:00Z win-1: is being cordoned",)
    assert "canary: win-1 (is being cordoned)" in describe_plan(journal)
    status = {NodeEntry("win-1", 0, step).status for step in get_args(UpgradeStep)}
    assert len(status) == len(get_args(UpgradeStep))
    assert not status & set(get_args(UpgradeStep))


def test_a_node_that_this_run_did_not_take_reports_why() -> None:
    journal = BEGUN.put(replace(BEGUN.find_entry("win-1").move_to("done", NOW), by_itself=True), NOW)
    assert (
        "win-1 (batch 0): is done since 2026-11-21T20:00:00Z; it already had the target release and was only verified"
        in describe(journal)
    )
    assert "win-1 (batch 0): is done since 2026-11-21T20:00:00Z; it began by itself" in describe(
        replace(journal, hook="wmco")
    )


def test_the_report_has_each_node_before_and_after_and_counts_unchanged_volumes() -> None:
    names = ("win-1", "win-2", "win-3")
    entries = tuple(NodeEntry(name, number, kubelet="v1.26.1", wmco="8.1.2") for number, name in enumerate(names))
    before = {"shop/db": ClaimedVolume("shop/db", "c1", "pv-1", "v1", "csi", "disk", "Delete")}
    journal = replace(BEGUN, nodes=entries, before=before)
    node = UpgradeNode("win-1", True, "", False, "", False, "v1.27.3", version="8.1.2")
    nodes = {"win-1": node, "win-2": replace(node, name="win-2", kubelet="v1.26.1", version="9.0.0")}
    assert describe_changes(journal, nodes, []) == [
        "win-1: kubelet v1.26.1 -> v1.27.3, WMCO 8.1.2",
        "win-2: kubelet v1.26.1, WMCO 8.1.2 -> 9.0.0",
        "win-3: the Node does not exist",
        "1 of 1 volumes of Windows workloads are unchanged",
    ]
    changed = warning("CSI-U17", "PersistentVolumeClaim shop/db", "it no longer exists", "find it")
    assert describe_changes(journal, {}, [changed])[-1] == "0 of 1 volumes of Windows workloads are unchanged"
