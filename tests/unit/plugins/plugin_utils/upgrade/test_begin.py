# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets that an upgrade cannot reach, and runs that cannot begin in order, are refused before the first node."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import (
    UpgradeRequest,
    begin,
    check_batch,
    plan_batches,
    resume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, NodeEntry, UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import (
    ClusterState,
    UpgradeNode,
    UpgradeObservation,
)

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=timezone.utc)


def observed(cluster: ClusterState | None = None, api_server: str = "", **kubelets: str) -> UpgradeObservation:
    nodes = {
        name: UpgradeNode.from_object(
            {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"nodeInfo": {"kubeletVersion": version}}}
        )
        for name, version in kubelets.items()
    }
    return UpgradeObservation(NOW, nodes, cluster=cluster, api_server=api_server)


def test_a_lower_kubelet_is_refused_by_name() -> None:
    with pytest.raises(
        TaskError,
        match=r"CSI-T12 Node a \(v1.36.0\), b \(v1.36.1\): its kubelet is newer than the target 1.27",
    ):
        begin(UpgradeRequest("x", "tasks", UpgradeTarget(kubelet="1.27")), observed(a="v1.36.0", b="v1.36.1"))


def test_openshift_on_another_cluster_is_refused() -> None:
    desired = UpgradeRequest("x", "tasks", UpgradeTarget(openshift="4.14"))
    with pytest.raises(TaskError, match=r"CSI-T13 Target: OpenShift 4.14, but this cluster is not OpenShift"):
        begin(desired, observed(ClusterState(is_openshift=False), a="v1.27.1"))
    # Its first update is not complete, or it was not read.
    for cluster in (ClusterState(is_openshift=True), None):
        assert begin(desired, observed(cluster, a="v1.27.1")).target.openshift == "4.14"


def test_an_earlier_openshift_is_refused() -> None:
    with pytest.raises(TaskError, match=r"CSI-T12 OpenShift: it runs 4.15.3 and cannot be downgraded to 4.14"):
        begin(
            UpgradeRequest("x", "tasks", UpgradeTarget(openshift="4.14")),
            observed(ClusterState("4.15.3", is_openshift=True), a="v1.28.1"),
        )


def test_a_kubelet_above_the_api_server_is_refused_unless_openshift_is_updated_first() -> None:
    now = observed(ClusterState("4.13.1", is_openshift=True), "v1.26.5", a="v1.26.1")
    with pytest.raises(TaskError, match=r"CSI-T17 Target: kubelet 1.27, but the API server is v1.26.5"):
        begin(UpgradeRequest("x", "tasks", UpgradeTarget(kubelet="1.27")), now)
    assert (
        begin(UpgradeRequest("x", "tasks", UpgradeTarget(kubelet="1.27", openshift="4.14")), now).target.kubelet
        == "1.27"
    )


@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_an_approval_of_no_pause_is_refused(resumed: bool) -> None:
    desired, now = UpgradeRequest("x", "tasks", pause=("canary",)), observed(win_1="v1.36.0")
    journal = begin(desired, now)

    def run(*confirmed: str) -> object:
        return resume(journal, desired, now, confirmed) if resumed else begin(desired, now, confirmed)

    with pytest.raises(TaskError, match="kubewin_upgrade_confirmed has 'canry', expected canary, batch-1"):
        run("canry")
    with pytest.raises(TaskError, match="'win_2'"):
        run("canary", "win_2")
    assert run("canary", "batch-2", "win_1")


def journal_of(*entries: NodeEntry) -> Journal:
    return Journal("u", "tasks", UpgradeTarget(), "2026-11-21T20:00:00Z", entries)


CANARY, SECOND, THIRD = NodeEntry("a", 0), NodeEntry("b", 1), NodeEntry("c", 1)


def test_a_run_takes_the_nodes_that_have_a_host_batch_by_batch() -> None:
    assert plan_batches(journal_of(CANARY, SECOND, THIRD), ["a", "b", "c"]) == [["a"], ["b", "c"]]
    assert plan_batches(journal_of(CANARY, SECOND, THIRD), ["c", "a"]) == [["a"], ["c"]]
    assert plan_batches(journal_of(replace(CANARY, step="done"), SECOND, THIRD), ["b"]) == [["b"]]
    # It has its target release, and needs no tasks.
    assert plan_batches(journal_of(replace(CANARY, step="gate", by_itself=True), SECOND), ["b"]) == [["b"]]


@pytest.mark.parametrize(
    ("journal", "nodes", "expected"),
    [
        (journal_of(CANARY, SECOND), ["b"], "Node a: the canary of upgrade u, without a host in this run"),
        (
            journal_of(replace(CANARY, step="done"), replace(SECOND, step="hook", tries=1), THIRD),
            ["c"],
            "Node b: in progress and without a host in this run",
        ),
    ],
    ids=["canary", "in progress"],
)
def test_a_run_without_the_host_that_is_next_is_refused(journal: Journal, nodes: list[str], expected: str) -> None:
    with pytest.raises(TaskError, match=expected):
        plan_batches(journal, nodes)


@pytest.mark.parametrize(
    ("journal", "batch", "expected"),
    [
        (journal_of(CANARY, SECOND), ["b"], "Node b: begun before the canary a, expected the canary first"),
        (journal_of(replace(CANARY, step="hook", tries=1), SECOND), ["b"], "Node a: its tasks did not end"),
        (journal_of(CANARY), ["z"], "Node z: not in upgrade u, expected one of a"),
    ],
    ids=["before the canary", "before the tasks of another ended", "unknown"],
)
def test_a_batch_out_of_order_is_refused(journal: Journal, batch: list[str], expected: str) -> None:
    check_batch(journal_of(CANARY, SECOND), ["a"])
    with pytest.raises(TaskError, match=expected):
        check_batch(journal, batch)
