# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Progress of the gate, and when it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import (
    Evaluation,
    GateProblem,
    NodeEvaluation,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate_report import (
    build_gate_result,
    describe_progress,
)
from unit.operations import is_linear
from unit.plugins.plugin_utils.drivers.rollout.pictures import picture


def node(name: str, verdict: Any = "green", problem: str = "") -> NodeEvaluation:
    problems = () if verdict == "green" else (GateProblem("CSI-G20", verdict, problem, "do this"),)
    return NodeEvaluation(name, "p", problems)


def rollout(*nodes: NodeEvaluation, problems: tuple[GateProblem, ...] = ()) -> Evaluation:
    skipped_nodes = (("win-9", "no plugin pod: label is missing"),)
    return Evaluation(nodes, skipped_nodes, problems, picture().daemon_set)


def test_progress_reports_nodes_whose_verdict_changed() -> None:
    observed = rollout(node("win-1", "green"), node("win-2", "waiting", "no pod"))
    lines = list(describe_progress(observed, {"win-1": node("win-1").fingerprint}, 4, 60))
    assert lines == ["  4 s of 1 min: 1 of 2 nodes green", "    win-2: waiting (CSI-G20 no pod)"]


def test_progress_accepts_an_unproven_node_where_allowed() -> None:
    observed = rollout(node("win-1", "green"), node("win-2", "unproven", "not read"))
    [head, dummy] = describe_progress(observed, {"win-1": node("win-1").fingerprint}, 1, 600, accepts=True)
    assert head == "  1 s of 10 min: 1 of 2 nodes green, 1 registered and unproven (accepted)"
    assert "enough" not in next(describe_progress(observed, {"win-1": node("win-1").fingerprint}, 1, 600))


def test_progress_names_the_awaited_nodes_when_nothing_changed() -> None:
    observed = rollout(node("win-1", "green"), node("win-2", "waiting", "no pod"))
    known = {one.node: one.fingerprint for one in observed.nodes}
    assert list(describe_progress(observed, known, 80, 600)) == [
        "  1 min 20 s of 10 min: 1 of 2 nodes green; still waiting for win-2"
    ]


def test_progress_reports_nodes_that_were_deleted() -> None:
    assert list(describe_progress(rollout(), {"win-1": "x"}, 1, 2))[1].startswith("    win-1: no longer expected")


def test_the_work_for_each_node_does_not_grow_with_their_number() -> None:
    def report(count: int) -> None:
        nodes = [node(f"win-{number}", "waiting", "no pod") for number in range(count)]
        list(describe_progress(rollout(*nodes), {node.node: node.fingerprint for node in nodes}, 4, 60))

    assert is_linear(report)


def test_green_passes() -> None:
    result = build_gate_result(rollout(node("win-1", "green")), False, 60, "", check_mode=False)
    assert result.reason == ""
    assert result.message == "green: win-1"


@pytest.mark.parametrize(
    ("verdict", "reason", "expected"),
    [
        ("waiting", "gate_timeout", "after 60 s these nodes are not ready: win-2"),
        ("red", "gate_red", "these nodes need a change before they can become ready: win-2"),
        ("unproven", "gate_unproven", "not everything was read on their hosts: win-2"),
    ],
)
def test_everything_else_fails_with_a_reason_and_a_table(verdict: str, reason: str, expected: str) -> None:
    observed = rollout(node("win-1", "green"), node("win-2", verdict, "what it lacks"))
    result = build_gate_result(observed, False, 60, "", check_mode=False)
    assert (result.as_dict()["failed"], result.reason) == (True, reason)
    assert expected in result.message
    assert "win-2: CSI-G20 what it lacks -> do this" in result.message
    assert "CSI-G20 what it lacks -> do this" in result.table
    assert "win-9" in result.table
    assert [one["node"] for one in (result.gate or {})["nodes"]] == ["win-2"]


def test_a_failure_of_many_nodes_is_short_and_names_each_cause_once() -> None:
    nodes = [node(f"win-{at}", "red", "csi-proxy is stopped") for at in range(200)]
    result = build_gate_result(rollout(*nodes), False, 60, "", check_mode=False)
    printed = json.dumps(result.as_dict())
    assert printed.count("csi-proxy is stopped -> do this") == 1
    assert len((result.gate or {})["nodes"]) == 5
    assert "win-199" in result.table


def test_nodes_that_are_all_green_at_first_are_one_line() -> None:
    observed = rollout(node("win-1", "green"), node("win-2", "green"))
    assert list(describe_progress(observed, {}, 0, 600)) == ["  0 s of 10 min: 2 of 2 nodes green"]
    # A gate that does not wait has no time.
    assert list(describe_progress(observed, {}, 0, 0)) == ["  2 of 2 nodes green"]


def test_unproven_passes_when_accepted_and_is_reported() -> None:
    observed = rollout(node("win-2", "unproven", "not read"))
    result = build_gate_result(observed, True, 60, "", check_mode=False)
    assert result.reason == ""
    assert "not read" in result.message


def test_unproven_fails_unless_accepted() -> None:
    observed = rollout(node("win-2", "unproven", "not read"))
    assert build_gate_result(observed, False, 60, "", check_mode=False).reason == "gate_unproven"


def test_no_node_has_its_own_reason() -> None:
    problem = GateProblem("CSI-G01", "red", "there is no node to check", "see")
    assert build_gate_result(rollout(problems=(problem,)), False, 60, "", check_mode=False).reason == "no_nodes"


def test_an_api_server_that_never_answered_is_the_reason() -> None:
    result = build_gate_result(None, False, 60, "connection refused", check_mode=False)
    assert result.reason == "unreachable"
    assert "connection refused" in result.message


def test_a_gate_that_could_not_read_at_its_end_does_not_pass() -> None:
    """What was green before the API server went away may not be green now."""
    result = build_gate_result(rollout(node("win-1", "green")), False, 60, "connection refused", check_mode=False)
    assert result.reason == "unreachable"


def test_check_mode_observes_and_does_not_fail() -> None:
    result = build_gate_result(rollout(node("win-2", "waiting", "no pod")), False, 60, "", check_mode=True)
    assert result.reason == ""
    assert "would fail now" in result.message


def test_progress_names_a_driver_that_is_not_deployed() -> None:
    assert list(describe_progress(Evaluation((), (), ()), {}, 0, 600)) == [
        "  0 s of 10 min: the driver is not deployed"
    ]
