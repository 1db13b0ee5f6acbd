# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A saved report groups hosts by their verdicts, shows its age, and is refused if it is of another cluster."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.verdicts import read_verdicts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Answer, NodeVerdict, Report, Target

TAKEN = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
NOW = TAKEN + timedelta(hours=2)


def report(target: Target | None = None, **nodes: Answer) -> Any:
    return Report(
        cluster="production",
        kubernetes="v1.36.3",
        openshift="",
        taken_at=TAKEN.isoformat(),
        target=target or Target(),
        findings=(),
        volumes=(),
        nodes=tuple(
            NodeVerdict(name.replace("_", "-"), ("vsphere",), ok, f"because {ok}", ()) for name, ok in nodes.items()
        ),
        workloads=(),
    ).as_dict()


def test_each_node_has_its_verdict_with_its_age() -> None:
    found = read_verdicts(report(win_1="yes", win_2="no", win_3="unknown"), ["win-1", "win-2", "win-3"], NOW)
    assert {node: one["kubewin_verdict"] for node, one in found.items()} == {
        "win-1": "ready",
        "win-2": "blocked",
        "win-3": "unknown",
    }
    assert found["win-2"]["kubewin_verdict_because"] == "because no"
    assert {one["kubewin_verdict_age"] for one in found.values()} == {7200}
    assert {one["kubewin_verdict_taken_at"] for one in found.values()} == {"2026-11-20T12:00:00+00:00"}
    assert found["win-1"]["kubewin_verdict_target"] == {}


def test_a_node_that_the_report_does_not_evaluate_is_unknown() -> None:
    found = read_verdicts(report(win_1="yes"), ["win-1", "new"], NOW)["new"]
    assert (found["kubewin_verdict"], found["kubewin_verdict_because"]) == (
        "unknown",
        "the report does not include this Node",
    )


def test_a_report_of_another_version_is_refused() -> None:
    found = read_verdicts(report(Target(kubernetes="1.37"), win_1="yes"), ["win-1"], NOW)
    assert found["win-1"]["kubewin_verdict_target"] == {"kubernetes": "1.37"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "found report_version None, expected 1"),
        ({**report(), "report_version": 99}, "found report_version 99, expected 1"),
        ({**report(), "taken_at": "yesterday"}, "found taken_at 'yesterday'"),
        (report(node_a="yes"), "it has node-a and none of this cluster's Windows Nodes"),
    ],
)
def test_a_wrong_report_or_one_of_another_cluster_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read_verdicts(given, ["win-1"], NOW)


def test_a_report_of_a_cluster_that_had_no_windows_node_evaluates_none() -> None:
    assert read_verdicts(report(), ["win-1"], NOW)["win-1"]["kubewin_verdict"] == "unknown"
    assert read_verdicts(report(win_1="yes"), [], NOW) == {}
