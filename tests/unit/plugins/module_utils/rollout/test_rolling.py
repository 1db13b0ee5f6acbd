# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change node by node over a model of nodes: wherever a run is killed, the next one completes it.

The model does what the DaemonSet controller and kubelets do under OnDelete: a deleted pod ends, is created again from the template
of that moment, becomes Ready and registers, each a moment later; on some nodes a template does not come to work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import Goal, permitted, still_away
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import Picture
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.rolling import Report, run
from unit.plugins.module_utils.rollout.pictures import (
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
# Between two turns of runs that go side by side.
PAUSE = 0.5


class Killed(Exception):
    """The run has ended at this point, without a chance to clear up."""


@dataclass
class Running:
    """A node's pod. since: when it was made, in seconds of the model."""

    uid: str
    template: str
    since: float
    ends: float | None = None


class Fleet:
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
        self.owner = ""
        self.taken: dict[str, str] = {}
        self.unseen: dict[str, float] = {}
        self.killed_after: int | None = None

    def load(self) -> None:
        self.unseen.clear()
        self._step()

    def watch(self, seconds: float) -> None:
        pass

    def explain(self) -> None:
        self.explained += 1

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self._count()
        self.now += seconds
        self._step()

    def taken_over(self) -> str:
        return self.owner

    def replace(self, pods: Sequence[PodFacts], expected: Sequence[str], allowed: int) -> Sequence[PodFacts]:
        """As Roller does: what other runs announced counts, and the pods are those of this moment."""
        unseen, self.unseen = self.unseen, {}
        now = [self._pod(name) for name in self.names]
        self.unseen = unseen
        chosen = permitted(pods, now, self.taken, expected, allowed)
        ready = {one.node: one.uid for one in now if one.ready and not one.deleting}
        self.taken = {**still_away(ready, self.taken, expected), **{one.node: one.uid for one in chosen}}
        for one in chosen:
            self._count()
            self.replaced.append(one.node)
            self.pods[one.node].ends = self.now + GOES
            self.unseen[one.node] = self.now + LATE
            self.away = max(self.away, sum(not self.ready(name) for name in self.names))
        return chosen

    def ready(self, name: str) -> bool:
        there = self.pods[name]
        late = self.now - there.since >= COMES
        return there.ends is None and late and self.broken.get(name) != there.template

    def picture(self) -> Picture:
        return picture(
            now=NOW + timedelta(seconds=self.now),
            controller_now=NOW,
            daemon_set=daemon_set(template_generation=self.template, desired=len(self.names)),
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
            template_generation=there.template,
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


def gone_through(fleet: Fleet, goal: Goal, windows: int = 400) -> Report:
    """Window after window, as the action does."""
    waited: dict[str, float] = {}
    for dummy in range(windows):
        report = run(fleet, fleet, goal, Rules(), waited, 30.0, fleet.clock)
        waited = dict(report.waited)
        if report.step.kind != "wait":
            return report
    raise AssertionError("it does not end")


def test_canary_first_then_batches_and_never_more_than_max_unavailable() -> None:
    fleet = Fleet(12)
    report = gone_through(fleet, Goal(batches=("1", "50%"), max_unavailable=3))
    assert report.step.kind == "finish"
    assert fleet.replaced == fleet.names
    assert fleet.away == 3
    assert {one["state"] for one in report.as_dict()["states"]} == {"done"}


def test_no_node_follows_before_the_canary_works() -> None:
    fleet = Fleet(3)
    waited: dict[str, float] = {}
    while len(fleet.replaced) < 2:
        waited = dict(run(fleet, fleet, Goal(max_unavailable=3), Rules(), waited, 2.0, fleet.clock).waited)
    assert fleet.ready("win-001")
    assert fleet.pods["win-001"].template == "2"


def test_a_failed_canary_gets_its_former_plugin_and_no_other_node_changes() -> None:
    fleet = Fleet(5, broken={"win-001": "2"})
    report = gone_through(fleet, Goal(node_timeout=60, max_unavailable=5))
    assert (report.step.kind, report.step.nodes) == ("back", ("win-001",))
    assert "after 60 s" in report.step.message
    assert fleet.replaced == ["win-001"]
    assert fleet.explained
    # The former template is there again: it goes to the canary, and everybody else has it.
    fleet.template = "1"
    report = gone_through(fleet, Goal(node_timeout=60, goes_back=True))
    assert report.step.kind == "finish"
    assert fleet.replaced == ["win-001", "win-001"]
    assert {there.template for there in fleet.pods.values()} == {"1"}


def test_a_canary_that_works_with_neither_template_stops_the_change() -> None:
    fleet = Fleet(2, broken={"win-001": "2"})
    assert gone_through(fleet, Goal(node_timeout=60)).step.kind == "back"
    fleet.template, fleet.broken = "1", {"win-001": "1"}
    assert gone_through(fleet, Goal(node_timeout=60, goes_back=True)).step.kind == "stop"


def test_a_later_node_that_fails_stops_the_change_and_the_rest_stay_as_they_are() -> None:
    fleet = Fleet(6, broken={"win-003": "2"})
    report = gone_through(fleet, Goal(node_timeout=60, batches=("1", "1")))
    assert (report.step.kind, report.step.nodes) == ("stop", ("win-003",))
    assert [there.template for there in fleet.pods.values()] == ["2", "2", "2", "1", "1", "1"]
    # Repaired, and run again: it continues with the others.
    fleet.broken = {}
    assert gone_through(fleet, Goal(batches=("1", "1"))).step.kind == "finish"
    assert fleet.replaced == fleet.names


def test_nodes_that_are_not_of_the_run_keep_their_pods() -> None:
    fleet = Fleet(4)
    report = gone_through(fleet, Goal(nodes=("win-003", "win-001")))
    assert (report.step.kind, report.standing.left) == ("rest", ("win-002", "win-004"))
    assert fleet.replaced == ["win-003", "win-001"]


class Side:
    """One of several runs over a fleet: what the others do shows to it a moment later."""

    def __init__(self, fleet: Fleet, goal: Goal) -> None:
        self.fleet, self.goal = fleet, goal
        self.waited: dict[str, float] = {}
        self.report: Report | None = None

    def turn(self) -> None:
        """One observation, and the step that follows from it."""
        if self.report is None:
            report = run(self, self.fleet, self.goal, Rules(), self.waited, 0.0, self.fleet.clock)
            # Until its next turn.
            self.waited = {name: spent + PAUSE for name, spent in report.waited.items()}
            self.report = None if report.step.kind == "wait" else report

    def load(self) -> None:
        pass

    def watch(self, seconds: float) -> None:
        pass

    def explain(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        raise AssertionError("one observation takes no time")

    def picture(self) -> Picture:
        everything = self.fleet.unseen
        self.fleet.unseen = {name: until for name, until in everything.items() if name not in self.goal.nodes}
        found = self.fleet.picture()
        self.fleet.unseen = everything
        return found


def side_by_side(fleet: Fleet, *goals: Goal) -> list[Report]:
    """Runs that make the same change over other nodes at the same time, as far as the last one's end."""
    sides = [Side(fleet, goal) for goal in goals]
    for dummy in range(1000):
        for side in sides:
            side.turn()
        ended = [side.report for side in sides if side.report is not None]
        if len(ended) == len(sides):
            return ended
        fleet.wait(PAUSE)
    raise AssertionError("they do not end")


@pytest.mark.parametrize("allowed", [1, 2])
def test_two_runs_over_other_nodes_end_like_one_and_respect_max_unavailable(allowed: int) -> None:
    fleet = Fleet(9)
    halves = (tuple(fleet.names[::2]), tuple(fleet.names[1::2]))
    reports = side_by_side(fleet, *(Goal(nodes=half, max_unavailable=allowed) for half in halves))
    # The run that ends first leaves the rest to the other, which finishes the change.
    assert sorted(report.step.kind for report in reports) == ["finish", "rest"]
    assert sorted(fleet.replaced) == fleet.names
    assert {there.template for there in fleet.pods.values()} == {"2"}
    assert fleet.away <= allowed
    # Each has its own canary, alone among its nodes.
    for half in halves:
        assert next(name for name in fleet.replaced if name in half) == half[0]


def test_a_canary_of_one_run_that_fails_beside_nodes_that_work_stops_that_run_alone() -> None:
    fleet = Fleet(4, broken={"win-002": "2"})
    goals = [
        Goal(nodes=("win-001", "win-003"), max_unavailable=2),
        Goal(nodes=("win-002", "win-004"), max_unavailable=2, node_timeout=60),
    ]
    first, second = side_by_side(fleet, *goals)
    assert first.step.kind == "rest"
    assert (second.step.kind, second.step.nodes) == ("stop", ("win-002",))
    assert fleet.pods["win-004"].template == "1"


class Busy(Fleet):
    """Another run gets on with other nodes all the time, as long as until."""

    until = 0.0

    def _step(self) -> None:
        turn = int(min(self.now, self.until)) % 2
        self.broken = {("win-002", "win-003")[turn]: "1"}
        super()._step()


def test_a_run_waits_as_long_as_another_gets_on_and_not_for_ever() -> None:
    fleet = Busy(3)
    fleet.until = fleet.now + 100
    report = gone_through(fleet, Goal(nodes=("win-001",), node_timeout=20))
    assert report.step.kind == "stop"
    assert "without a Ready plugin, expected at most 1" in report.step.message
    assert fleet.now > fleet.until
    assert fleet.replaced == []


def test_a_pod_that_was_recorded_and_not_deleted_is_deleted_by_the_next_window() -> None:
    pods = [pod("win-1", uid="a"), pod("win-2", uid="b")]
    both = ("win-1", "win-2")
    assert permitted(pods, pods, {}, both, 1) == (pods[0],)
    assert permitted([pods[1]], pods, {"win-1": "a"}, both, 1) == ()
    assert permitted([pods[0]], pods, {"win-1": "a"}, both, 1) == (pods[0],)
    # Its successor is Ready: it is back.
    assert permitted([pods[1]], pods, {"win-1": "before"}, both, 1) == (pods[1],)
    assert still_away({"win-1": "a"}, {"win-1": "before", "win-3": "c"}, (*both, "win-3")) == {"win-3": "c"}


def test_a_node_that_was_deleted_keeps_no_other_one_waiting() -> None:
    """Neither what was announced for it nor its pod, which is collected minutes later, counts as away."""
    left = pod("win-1", uid="a", ready=False, ready_since=None)
    other = pod("win-2", uid="b")
    assert permitted([other], [left, other], {"win-1": "a"}, ("win-2",), 1) == (other,)
    assert still_away({"win-2": "b"}, {"win-1": "a"}, ("win-2",)) == {}


def test_a_roll_ends_soon_when_a_node_is_deleted_on_its_way() -> None:
    class Shrinking(Fleet):
        def _step(self) -> None:
            super()._step()
            if self.replaced == ["win-001", "win-002"] and "win-002" in self.names:
                self.names.remove("win-002")
                del self.pods["win-002"]

    fleet = Shrinking(4)
    began = fleet.now
    report = gone_through(fleet, Goal(node_timeout=600))
    assert report.step.kind == "finish"
    assert fleet.replaced == ["win-001", "win-002", "win-003", "win-004"]
    assert fleet.now - began < 60


def test_a_run_that_another_one_has_taken_over_touches_nothing_more() -> None:
    fleet = Fleet(3)
    fleet.owner = "another run works on it"
    report = gone_through(fleet, Goal())
    assert (report.step.kind, report.step.message) == ("stop", "another run works on it")
    assert fleet.replaced == []


def test_a_node_that_is_unavailable_already_counts() -> None:
    fleet = Fleet(3, broken={"win-003": "1"})
    report = gone_through(fleet, Goal(nodes=("win-001", "win-002"), node_timeout=30))
    assert report.step.kind == "stop"
    assert "win-003 without a Ready plugin, expected at most 1" in report.step.message
    assert fleet.replaced == []


@pytest.mark.parametrize("point", range(60))
def test_killed_at_any_point_and_run_again_it_succeeds(point: int) -> None:
    fleet = Fleet(5)
    goal = Goal(batches=("1", "2"), max_unavailable=2)
    fleet.killed_after = point
    try:
        report = gone_through(fleet, goal)
    except Killed:
        report = gone_through(fleet, goal)
    assert report.step.kind == "finish"
    assert {there.template for there in fleet.pods.values()} == {"2"}
    assert fleet.away <= 2
    # A pod that had been deleted when the run died was not deleted twice.
    assert sorted(fleet.replaced) == fleet.names


def test_every_point_at_which_a_run_can_die_is_among_them() -> None:
    fleet = Fleet(5)
    fleet.killed_after = 60
    gone_through(fleet, Goal(batches=("1", "2"), max_unavailable=2))
    assert fleet.killed_after is not None


def test_200_nodes() -> None:
    fleet = Fleet(200)
    report = gone_through(fleet, Goal(max_unavailable="10%"))
    assert report.step.kind == "finish"
    assert fleet.away == 20
    assert fleet.replaced[0] == "win-001"
    assert sorted(fleet.replaced) == fleet.names
