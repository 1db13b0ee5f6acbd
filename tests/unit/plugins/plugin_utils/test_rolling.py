# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a change node by node, and when it fails."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.rolling import ended, failed_part, left_over, progress


def roll(
    step: str, message: str = "", nodes: tuple[str, ...] = (), left: tuple[str, ...] = (), **states: str
) -> dict[str, Any]:
    """An observation of nodes, given as win_1="done"."""
    found = [
        {"node": name.replace("_", "-"), "state": state, "why": "no pod" if state == "moving" else ""}
        for name, state in states.items()
    ]
    return {"step": step, "message": message, "nodes": list(nodes), "states": found, "left": list(left)}


def test_progress_reports_nodes_with_another_state() -> None:
    observed = roll("wait", win_1="done", win_2="moving", win_3="old")
    assert list(progress(observed, {"win-1": "moving"}, 7, 600)) == [
        "  7 s: 1 of 3 nodes have the new plugin",
        "    win-1: works",
        "    win-2: pod replaced (no pod)",
    ]


def test_progress_names_the_awaited_nodes_when_nothing_changed() -> None:
    observed = {**roll("wait", win_1="done", win_2="moving"), "waited": {"win-2": 80.5}}
    assert list(progress(observed, {"win-1": "done", "win-2": "moving"}, 130, 600)) == [
        "  2 min 10 s: 1 of 2 nodes have the new plugin; waiting for win-2, 1 min 20 s of 10 min (no pod)"
    ]


def test_progress_reports_a_missing_node() -> None:
    observed = {**roll("wait", win_1="done"), "waited": {}}
    assert list(progress(observed, {"win-1": "done", "win-2": "moving"}, 130, 600)) == [
        "  2 min 10 s: 1 of 1 nodes have the new plugin",
        "    win-2: the DaemonSet no longer places a pod there, for example because its Node was deleted; not waiting for it",
    ]


def test_a_successful_end_prints_nothing() -> None:
    assert ended(roll("finish", win_1="done"), "d/plugin", "smb") == {}
    assert ended(roll("rest", left=("win-2",), win_1="done"), "d/plugin", "smb") == {}


def test_a_stop_names_the_nodes_of_each_template_and_the_next_commands() -> None:
    result = ended(
        roll("stop", "ErrImagePull", ("win-2",), ("win-9",), win_1="done", win_2="moving", win_3="old"), "d/p", "smb"
    )
    assert (result["failed"], result["reason"]) == (True, "roll_stopped")
    assert "stopped at win-2: ErrImagePull. With the new plugin: win-1; untouched: win-3, win-9." in result["msg"]


def test_a_canary_that_is_back_fails_and_names_what_was_wrong() -> None:
    observed = {**roll("finish", win_1="done"), "failed_canary": {"node": "win-1", "because": "ErrImagePull"}}
    result = ended(observed, "d/plugin", "smb")
    assert result["reason"] == "canary_failed"
    assert "canary win-1: ErrImagePull. Rolled back" in result["msg"]


def test_a_canary_that_works_with_neither_reports_both() -> None:
    observed = {
        **roll("stop", "no pipe", ("win-1",), win_1="moving"),
        "failed_canary": {"node": "win-1", "because": "ErrImagePull"},
    }
    result = ended(observed, "d/plugin", "smb")
    assert result["reason"] == "canary_failed"
    assert "ErrImagePull" in result["msg"]
    assert "does not work there either: no pipe" in result["msg"]


def test_nodes_that_another_run_has_to_take_are_warned_of() -> None:
    assert left_over(roll("finish"), "d/plugin") == ""
    assert left_over(roll("rest", left=("win-2", "win-3")), "d/plugin").startswith("win-2, win-3 still have the former")


def test_a_failed_application_returns_changes_and_waiting_nodes_only() -> None:
    objects = [
        {"action": action, "kind": "Role", "namespace": "csi", "name": "r", "before": {"x": "y" * 500}, "after": {}}
        for action in ("none", "update")
    ]
    states = [{"node": f"win-{number}", "state": "done", "why": ""} for number in range(200)]
    waits = {"node": "win-x", "state": "moving", "why": "its pod crash-loops"}
    roll = {"step": "stop", "states": [*states, waits], "left": [], "replaced": ["win-0"], "waited": {"win-0": 3}}
    part = failed_part({"msg": "it stopped", "failed": True, "objects": objects, "diff": ["x" * 900], "roll": roll})
    assert part == {
        "msg": "it stopped",
        "failed": True,
        "objects": [{"action": "update", "kind": "Role", "namespace": "csi", "name": "r"}],
        "roll": {"step": "stop", "left": [], "replaced": ["win-0"], "states": [waits]},
    }
    assert failed_part({"msg": "refused", "failed": True}) == {"msg": "refused", "failed": True}
