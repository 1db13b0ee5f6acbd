# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last step of a play that ended early reports why, and continues no node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action.upgrade import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize_known
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import run
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import EndRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, NodeEntry, UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import Upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.snapshot import ClaimedVolume
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of


def upgrade_of(features: Any, **options: Any) -> Upgrade:
    defaults = {name: option.get("default") for name, option in ActionModule.argument_spec.items()}
    return Upgrade(client_of(ObjectStore()), {**defaults, "name": "nine", **options}, "me", features)


def end(state: Any, failures: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Upgrade, TaskError | None, int]:
    """Perform the step on a journal with a node in progress; its error, and how often it continued nodes."""
    entry = NodeEntry("win-1", 0, step="drain")
    journal, continued = Journal("nine", "none", UpgradeTarget(), "", (entry,), state=state), list[Journal]()
    upgrade, error = upgrade_of(SimpleNamespace(show=lambda *_lines: None), failures=failures), None

    def follow(of: Journal, _only: frozenset[str]) -> EndRun:
        continued.append(of)
        return EndRun(of)

    monkeypatch.setattr(upgrade, "_open", lambda: journal)
    monkeypatch.setattr(upgrade, "_follow", follow)
    try:
        upgrade.end()
    except TaskError as raised:
        error = raised
    assert upgrade.over
    return upgrade, error, len(continued)


def test_nodes_in_progress_stay_as_they_are_after_a_step_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade, error, continued = end("open", ["the API server does not answer"], monkeypatch)
    assert error is not None
    assert (str(error), error.reason, continued) == ("the API server does not answer", "stopped", 0)
    result = serialize_known(upgrade.result)
    assert result["outcome"] == "stopped"
    assert result["journal"][0]["step"] == "drain"
    assert result["next"] == ["upgrade"]


def test_a_pause_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade, error, continued = end("paused", ["an approval is required"], monkeypatch)
    assert (upgrade.result.outcome, error, continued) == ("paused", None, 1)


@pytest.mark.parametrize("unproven_canary", [False, True])
def test_check_mode_refuses_what_the_run_would_refuse_before_the_first_node(
    unproven_canary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {"shop/data": ClaimedVolume("shop/data", "c", "pv", "v", "csi", "disk", "Delete")}
    journal = Journal("nine", "none", UpgradeTarget(), "", (NodeEntry("win-1", 0),), before=before)
    called = list[str]()
    features: Any = SimpleNamespace(
        report_readiness=lambda: called.append("readiness"),
        verify=lambda nodes: called.append(f"verify {nodes}"),
        read_data=lambda claims, compare: called.append(f"data {[*claims]} {compare}"),
        show=lambda *_lines: None,
    )
    upgrade = upgrade_of(features, step="prepare", unproven_canary=unproven_canary)
    monkeypatch.setattr(run, "require_roles", lambda *_given: called.append("permissions"))
    monkeypatch.setattr(upgrade, "_plan_journal", lambda: journal)
    upgrade.plan(check_mode=True)
    proven = [] if unproven_canary else ["readiness", "verify ['win-1']"]
    assert called == ["permissions", *proven, "data ['shop/data'] False"]
