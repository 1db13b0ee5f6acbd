# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal's text shows the state of each node without the names of steps."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import get_args

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.explain import describe, describe_plan
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    Journal,
    NodeEntry,
    UpgradeStep,
    UpgradeTarget,
)

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
