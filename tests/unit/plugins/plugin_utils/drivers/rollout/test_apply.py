# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change node by node over a model of nodes: wherever a run is killed, the next one completes it.

The model does what the DaemonSet controller and kubelets do under OnDelete: a deleted pod ends, is created again from the template
of that moment, becomes Ready and registers, each a moment later; on some nodes a template does not come to work.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.apply import (
    RollResult,
    choose_former,
    roll_pods,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import RollOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.observe import RolloutView
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import RolloutPicture, read_template
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from unit.plugins.plugin_utils.drivers.rollout.pictures import (
    NOW,
    container,
    daemon_set,
    host,
    node,
    picture,
    pod,
    registration,
)

GOES, COMES, LATE = 2.0, 3.0, 1.5


class Killed(Exception):
    """The run has ended at this point, without a chance to clear up."""


@dataclass
class Running:
    """A node's pod. since: when it was made, in seconds of the model."""

    uid: str
    template: str
    since: float
    ends: float | None = None


class Fleet(RolloutView):
    """Nodes, their plugin pods, and a clock that moves only while a run waits."""

    def __init__(self, count: int, *, broken: dict[str, str] | None = None) -> None:
        self.names = [f"win-{number:03}" for number in range(1, count + 1)]
        self.broken = broken or {}
        self.now = 1000.0
        self.pods = {name: Running(f"{name}-0", "1", 0.0) for name in self.names}
        self.template = "2"
        self.replaced: list[str] = []
        self.away = 0
        self.explained = 0
        self.lines: list[str] = []
        self.unseen: dict[str, float] = {}
        self.killed_after: int | None = None

    def load(self) -> None:
        self.unseen.clear()
        self._step()

    def watch(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read_providers(self) -> None:
        pass

    def explain(self) -> None:
        self.explained += 1

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self._count()
        self.now += seconds
        self._step()

    def delete(self, deleted: PodFacts) -> bool:
        self._count()
        self.replaced.append(deleted.node)
        self.pods[deleted.node].ends = self.now + GOES
        self.unseen[deleted.node] = self.now + LATE
        self.away = max(self.away, sum(not self.ready(name) for name in self.names))
        return True

    def ready(self, name: str) -> bool:
        there = self.pods[name]
        late = self.now - there.since >= COMES
        return there.ends is None and late and self.broken.get(name) != there.template

    def picture(self, planned: dict[str, Any] | None = None) -> RolloutPicture:
        return picture(
            now=NOW + timedelta(seconds=self.now),
            controller_now=NOW,
            daemon_set=daemon_set(revision=self.template, desired=len(self.names)),
            nodes=tuple(node(name) for name in self.names),
            pods=tuple(self._pod(name) for name in self.names),
            hosts={name: host(name) for name in self.names},
            registrations={
                name: registration(name, written_at=NOW + timedelta(seconds=self.pods[name].since + COMES))
                for name in self.names
                if self.ready(name)
            },
        )

    def _pod(self, name: str) -> PodFacts:
        there = self.pods[name]
        # A watch is late: what this run has just done does not show at once.
        deleting = there.ends is not None and name not in self.unseen
        ready = self.ready(name) or name in self.unseen
        return pod(
            name,
            uid=there.uid,
            revision=there.template,
            deleting=deleting,
            ready=ready,
            ready_since=NOW + timedelta(seconds=there.since + COMES) if ready else None,
            containers=(container(started_at=NOW + timedelta(seconds=there.since), ready=ready),),
        )

    def _step(self) -> None:
        self.unseen = {name: until for name, until in self.unseen.items() if until > self.now}
        for name, there in self.pods.items():
            if there.ends is not None and there.ends <= self.now:
                self.pods[name] = Running(f"{name}-{self.now}", self.template, self.now)
        self.away = max(self.away, sum(not self.ready(name) for name in self.names))

    def _count(self) -> None:
        if self.killed_after is not None:
            self.killed_after -= 1
            if self.killed_after < 0:
                self.killed_after = None
                raise Killed


def roll(fleet: Fleet, options: RollOptions) -> RollResult:
    return roll_pods(fleet, options, GateRules(), fleet.delete, fleet.lines.append, fleet.clock)


def test_canary_first_then_batches_and_never_more_than_max_unavailable() -> None:
    fleet = Fleet(12)
    report = roll(fleet, RollOptions(batches=("1", "50%"), max_unavailable=3))
    assert report.step.kind == "finish"
    assert fleet.replaced == fleet.names
    assert fleet.away == 3
    assert set(report.state.done) == set(fleet.names)


def test_no_node_follows_before_the_canary_works() -> None:
    class Watching(Fleet):
        def delete(self, deleted: PodFacts) -> bool:
            assert not self.replaced or (self.ready("win-001") and self.pods["win-001"].template == "2")
            return super().delete(deleted)

    fleet = Watching(3)
    assert roll(fleet, RollOptions(max_unavailable=3)).step.kind == "finish"
    assert fleet.lines[0] == "0 s: 0 of 3 nodes have the new plugin"
    assert any(line.endswith(": 1 of 3 nodes have the new plugin") for line in fleet.lines)
    assert any(line.startswith("  win-001: pod ") and line.endswith(" of 10 min)") for line in fleet.lines)


def test_a_failed_canary_gets_its_former_plugin_and_no_other_node_changes() -> None:
    fleet = Fleet(5, broken={"win-001": "2"})
    report = roll(fleet, RollOptions(node_timeout=60, max_unavailable=5))
    assert (report.step.kind, report.step.nodes) == ("restore", ("win-001",))
    assert "after 60 s" in report.step.message
    assert fleet.replaced == ["win-001"]
    assert fleet.explained
    # The former template is there again: it goes to the canary, and everybody else has it.
    fleet.template = "1"
    report = roll(fleet, RollOptions(node_timeout=60, restores=True))
    assert report.step.kind == "finish"
    assert fleet.replaced == ["win-001", "win-001"]
    assert {there.template for there in fleet.pods.values()} == {"1"}


def test_a_canary_that_works_with_neither_template_stops_the_change() -> None:
    fleet = Fleet(2, broken={"win-001": "2"})
    assert roll(fleet, RollOptions(node_timeout=60)).step.kind == "restore"
    fleet.template, fleet.broken = "1", {"win-001": "1"}
    assert roll(fleet, RollOptions(node_timeout=60, restores=True)).step.kind == "stop"


def test_a_later_node_that_fails_stops_the_change_and_the_rest_stay_as_they_are() -> None:
    fleet = Fleet(6, broken={"win-003": "2"})
    report = roll(fleet, RollOptions(node_timeout=60, batches=("1", "1")))
    assert (report.step.kind, report.step.nodes) == ("stop", ("win-003",))
    assert [there.template for there in fleet.pods.values()] == ["2", "2", "2", "1", "1", "1"]
    # Repaired, and run again: it continues with the others.
    fleet.broken = {}
    assert roll(fleet, RollOptions(batches=("1", "1"))).step.kind == "finish"
    assert fleet.replaced == fleet.names


def test_nodes_that_are_not_of_the_run_keep_their_pods() -> None:
    fleet = Fleet(4)
    report = roll(fleet, RollOptions(nodes=("win-003", "win-001")))
    assert (report.step.kind, report.state.outdated_elsewhere) == ("finish", ("win-002", "win-004"))
    assert fleet.replaced == ["win-003", "win-001"]


def test_a_roll_ends_soon_when_a_node_is_deleted_on_its_way() -> None:
    class Shrinking(Fleet):
        def _step(self) -> None:
            super()._step()
            if self.replaced == ["win-001", "win-002"] and "win-002" in self.names:
                self.names.remove("win-002")
                del self.pods["win-002"]

    fleet = Shrinking(4)
    began = fleet.now
    report = roll(fleet, RollOptions(node_timeout=600))
    assert report.step.kind == "finish"
    assert fleet.replaced == ["win-001", "win-002", "win-003", "win-004"]
    assert fleet.now - began < 60


def test_a_pod_that_changed_since_it_was_read_is_read_again() -> None:
    class Changing(Fleet):
        refusals = 2

        def delete(self, deleted: PodFacts) -> bool:
            self.refusals -= 1
            return self.refusals < 0 and super().delete(deleted)

    fleet = Changing(2)
    assert roll(fleet, RollOptions()).step.kind == "finish"
    assert fleet.replaced == fleet.names


def test_the_template_that_ready_pods_have_is_restored() -> None:
    def revision(name: str) -> dict[str, Any]:
        template = {"metadata": {"name": name}, "spec": {}}
        return {"metadata": {"labels": {"controller-revision-hash": name}}, "data": {"spec": {"template": template}}}

    revisions = [revision(name) for name in ("failed", "newer", "older")]
    broken = pod("win-1", revision="newer", ready=False)
    assert choose_former(revisions, [broken, pod("win-2", revision="older")]) == read_template(revisions[2])
    assert choose_former(revisions, [broken]) == read_template(revisions[1])
    # The only pod had the failed template.
    assert choose_former(revisions, [pod("win-1", revision="failed")]) == read_template(revisions[1])
    assert choose_former(revisions[:1], []) is None


def test_a_node_that_is_unavailable_already_counts() -> None:
    fleet = Fleet(3, broken={"win-003": "1"})
    report = roll(fleet, RollOptions(nodes=("win-001", "win-002"), node_timeout=30))
    assert report.step.kind == "stop"
    assert "win-003 without a Ready plugin, expected at most 1" in report.step.message
    assert fleet.replaced == []


@pytest.mark.parametrize("point", range(60))
def test_killed_at_any_point_and_run_again_it_succeeds(point: int) -> None:
    fleet = Fleet(5)
    goal = RollOptions(batches=("1", "2"), max_unavailable=2)
    fleet.killed_after = point
    try:
        report = roll(fleet, goal)
    except Killed:
        report = roll(fleet, goal)
    assert report.step.kind == "finish"
    assert {there.template for there in fleet.pods.values()} == {"2"}
    assert fleet.away <= 2
    # A pod that had been deleted when the run died was not deleted twice.
    assert sorted(fleet.replaced) == fleet.names


def test_every_point_at_which_a_run_can_die_is_among_them() -> None:
    fleet = Fleet(5)
    fleet.killed_after = 60
    roll(fleet, RollOptions(batches=("1", "2"), max_unavailable=2))
    assert fleet.killed_after is not None


def test_200_nodes() -> None:
    fleet = Fleet(200)
    report = roll(fleet, RollOptions(max_unavailable="10%"))
    assert report.step.kind == "finish"
    assert fleet.away == 20
    assert fleet.replaced[0] == "win-001"
    assert sorted(fleet.replaced) == fleet.names
