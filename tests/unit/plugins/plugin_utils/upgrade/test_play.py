# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last step of a play that ended early reports why, and continues no node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize_known
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import EndRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, NodeEntry, UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.play import UpgradeSteps
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.snapshot import ClaimedVolume


def end(state: Any, failures: list[str]) -> tuple[UpgradeSteps, TaskError | None, list[str]]:
    """Perform the step on a journal with a node in progress; its error, and what it did with the nodes."""
    entry = NodeEntry("win-1", 0, step="drain")
    journal, done = Journal("nine", "none", UpgradeTarget(), "", (entry,), state=state), list[str]()

    def settle() -> EndRun:
        done.append("settle")
        return EndRun(journal)

    fake: Any = SimpleNamespace(
        open=lambda: journal, settle=settle, journal_store=SimpleNamespace(location="ConfigMap kubewin/nine")
    )
    steps, error = UpgradeSteps(fake, fake, {"failures": failures}), None
    try:
        steps.end()
    except TaskError as raised:
        error = raised
    assert steps.over
    return steps, error, done


def test_nodes_in_progress_stay_as_they_are_after_a_step_that_failed() -> None:
    steps, error, done = end("open", ["the API server does not answer"])
    assert error is not None
    assert (str(error), error.reason, done) == ("the API server does not answer", "stopped", [])
    result = serialize_known(steps.result)
    assert result["outcome"] == "stopped"
    assert result["journal"][0]["step"] == "drain"
    assert result["next"] == ["upgrade"]


def test_a_pause_is_no_failure() -> None:
    steps, error, done = end("paused", ["an approval is required"])
    assert (steps.result.outcome, error, done) == ("paused", None, ["settle"])


@pytest.mark.parametrize("unproven_canary", [False, True])
def test_check_mode_refuses_what_the_run_would_refuse_before_the_first_node(unproven_canary: bool) -> None:
    before = {"shop/data": ClaimedVolume("shop/data", "c", "pv", "v", "csi", "disk", "Delete")}
    journal = Journal("nine", "none", UpgradeTarget(), "", (NodeEntry("win-1", 0),), before=before)
    called = list[str]()
    features: Any = SimpleNamespace(
        report_readiness=lambda: called.append("readiness"),
        verify=lambda nodes: called.append(f"verify {nodes}"),
        read_data=lambda claims, compare: called.append(f"data {[*claims]} {compare}"),
        show=lambda *_lines: None,
    )
    upgrade: Any = SimpleNamespace(
        refuse=lambda: called.append("permissions"),
        plan=lambda: (journal, []),
        journal_store=SimpleNamespace(location="ConfigMap kubewin/nine"),
        lease=SimpleNamespace(find_other_run=lambda: ""),
    )
    options = {"step": "prepare", "hosts": {}, "hook": "none", "data": True, "unproven_canary": unproven_canary}
    UpgradeSteps(upgrade, features, options).plan(check_mode=True)
    proven = [] if unproven_canary else ["readiness", "verify ['win-1']"]
    assert called == ["permissions", *proven, "data ['shop/data'] False"]
