# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole upgrades on paper, killed at every point: the next run ends them well, and meanwhile every rule holds.

The rules are the model's own: no node is closed by us without the journal saying so, never more of them than were asked for, and
no workload comes to a changed node before that was proven. The model leaves out what the API server does to requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import UpgradeRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import (
    ChangeObject,
    UpgradeRules,
    decide,
    find_left_cordoned,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.maintenance_windows import parse_window
from unit.plugins.plugin_utils.upgrade.model import BEGAN, Killed, World, kubelets, until_done, wmco

KINDS: dict[str, Callable[[], World]] = {
    "tasks": kubelets,
    "tasks that replace the machine": lambda: made_anew(kubelets(nodes=2)),
    "none": lambda: self_upgrading(kubelets(hook="none")),
    "batches": lambda: in_batches(kubelets(nodes=4, pods=3, batches=("1", "2"))),
    "wmco": wmco,
    "wmco, most by itself": lambda: wmco(nodes=4, pods=1),
}


def made_anew(world: World) -> World:
    world.made_anew = True
    return world


def in_batches(world: World) -> World:
    world.allowed_away = 2
    return world


def self_upgrading(world: World) -> World:
    """With hook none an administrator upgrades each node once it is drained."""
    before = world._time

    def time() -> None:
        before()
        for name, box in world.boxes.items():
            if box.cordoned_for and not [pod for pod in world.pods if pod.node == name] and box.kubelet != "v1.27.3":
                box.kubelet, box.changing = "v1.27.3", 3

    world._time = time  # type: ignore[method-assign]  # one world's own course of things
    return world


def killed(world: World, number: int, *, after: bool) -> None:
    """A run that dies at that event from now."""
    world.killed_at = (world.events + number, after)
    with pytest.raises(Killed):
        world.run()
    world.killed_at = None


@pytest.mark.parametrize("kind", KINDS)
def test_every_node_is_upgraded_and_proven_before_workloads_return(kind: str) -> None:
    world = KINDS[kind]()
    assert world.run().journal.state == "finished"
    world.converged()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_right_before_or_after_any_event_is_ended_by_the_next(kind: str) -> None:
    uninterrupted = KINDS[kind]()
    uninterrupted.run()
    # Only events change the world, so right after one is right before the next; after the last there is no next.
    instants = [(number, False) for number in range(1, uninterrupted.events + 1)]
    for number, after in [*instants, (uninterrupted.events, True)]:
        world = KINDS[kind]()
        killed(world, number, after=after)
        assert until_done(world) == []
        world.converged()


@pytest.mark.parametrize("kind", KINDS)
def test_repeatedly_killed_runs_finish(kind: str) -> None:
    chance = random.Random(20261121)
    for _try in range(40):
        world = KINDS[kind]()
        for _kill in range(chance.randrange(2, 6)):
            try:
                killed(world, chance.randrange(1, 25), after=chance.random() < 0.5)
            except pytest.fail.Exception:
                break
        world.killed_at = None
        until_done(world)
        world.converged()


def test_a_finished_upgrade_does_nothing_more() -> None:
    world = kubelets()
    world.run()
    hooked, kept = list(world.hooked), world.reopened[:]
    assert world.run().journal.state == "finished"
    assert world.hooked == hooked
    assert world.reopened == kept


@pytest.mark.parametrize("seldom", [False, True])
def test_a_budget_that_never_allows_is_named_and_the_node_given_back(seldom: bool) -> None:
    """Also if each observation is so late that the eviction is due for a retry: its reason is kept."""
    world = kubelets(rules=UpgradeRules(budget=60))
    world.stuck, world.seldom = {"db-0"}, seldom
    decision = world.run()
    assert decision.journal.state == "stopped"
    stopping = decision.journal.stopping
    assert stopping is not None
    assert stopping.id == "CSI-U03"
    assert "pod shop/db-0-1 may not be evicted: disruption budget shop/never needs 1" in stopping.message
    # Where it runs nothing was begun, one node is done, and the other one was never touched.
    assert [box.cordoned for box in world.boxes.values()] == [False] * 3
    assert [(entry.node, entry.step, entry.failed) for entry in decision.journal.nodes] == [
        ("win-3", "done", ""),
        ("win-1", "waiting", "CSI-U03"),
        ("win-2", "waiting", ""),
    ]
    world.stuck, world.refused = set(), {}
    assert world.run().journal.state == "finished"
    world.converged()


def test_in_a_batch_a_node_that_cannot_be_drained_releases_the_others_and_begun_ones_finish() -> None:
    world = in_batches(kubelets(nodes=5, pods=4, batches=("1", "2"), rules=UpgradeRules(budget=60)))
    world.stuck = {"db-0"}
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert not any(box.cordoned for box in world.boxes.values())
    steps = {entry.node: entry.step for entry in decision.journal.nodes}
    assert steps == {"win-5": "done", "win-1": "waiting", "win-2": "waiting", "win-3": "waiting", "win-4": "waiting"}
    world.stuck, world.refused = set(), {}
    assert world.run().journal.state == "finished"
    world.converged()


@pytest.mark.parametrize(("where", "finding"), [("hook", "CSI-U07"), ("gate", "CSI-U05")])
def test_a_node_that_fails_after_a_change_stays_cordoned_and_the_rest_untouched(where: str, finding: str) -> None:
    world = kubelets()
    if where == "hook":
        world.failing_hooks = {"win-1": "the image is gone"}
    else:
        world.broken = {"win-1"}
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert decision.journal.find_entry("win-1").failed == finding
    assert decision.journal.find_entry("win-1").step == where
    assert world.boxes["win-1"].cordoned_for == "upgrade kubelets"
    assert decision.journal.find_entry("win-2").step == "waiting"
    assert not world.boxes["win-2"].cordoned
    # Again, without a repair: nothing else is begun.
    assert world.run().journal.state == "stopped"
    assert not world.boxes["win-2"].cordoned
    world.failing_hooks, world.broken = {}, set()
    assert world.run().journal.state == "finished"
    world.converged()
    assert world.hooked.count("win-1") == (3 if where == "hook" else 1)


def test_a_node_that_was_missing_is_upgraded_once_it_returns() -> None:
    """Clouds delete the Node of a machine that is switched off."""
    world = kubelets(nodes=4, rules=UpgradeRules(pause=("canary", "win-1")))
    assert world.run().journal.state == "paused"
    switched_off = world.boxes.pop("win-4")
    rests = world.run(confirmed=("canary",))
    assert rests.journal.state == "paused"
    assert (rests.journal.find_entry("win-4").step, rests.journal.find_entry("win-4").why.split(";")[0]) == (
        "done",
        "the Node does not exist",
    )
    world.boxes["win-4"] = switched_off
    assert world.run(confirmed=("win-1",)).journal.state == "finished"
    world.converged()
    assert "win-4" in world.hooked


def test_a_node_that_does_not_return_times_out() -> None:
    world = kubelets(hook="none", rules=UpgradeRules(budget=120))
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert decision.journal.stopping is not None
    assert decision.journal.stopping.id == "CSI-U04"
    assert "its kubelet is v1.26.1, expected 1.27" in decision.journal.stopping.message


@pytest.mark.parametrize("kind", ["hook", "gate", "verify"])
@pytest.mark.parametrize("nodes", [1, 4])
def test_external_steps_do_not_count_as_the_nodes_time(kind: str, nodes: int) -> None:
    """One after the other, the nodes of a batch may be away for longer than one of them may take. To one alone its pods come back."""
    world = in_batches(kubelets(nodes=nodes, batches=("1", "2"), rules=UpgradeRules(budget=60)))
    world.takes = {kind: timedelta(minutes=30)}
    assert world.run().journal.state == "finished"
    world.converged()


def test_while_another_node_is_unavailable_no_further_one_starts() -> None:
    world = kubelets()
    world.boxes["win-2"].down = True
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert decision.journal.stopping is not None
    assert decision.journal.stopping.id == "CSI-U02"
    assert "win-2 is not Ready (KubeletDown)" in decision.journal.stopping.message
    assert world.hooked == []
    world.boxes["win-2"].down = False
    assert world.run().journal.state == "finished"
    world.converged()


def test_the_journal_names_the_node_that_the_next_batch_waits_for() -> None:
    world = kubelets(rules=UpgradeRules(wait_timeout=30))
    world.boxes["win-2"].down = True
    journal = world.run().journal
    assert journal.state == "stopped"
    (event,) = [line for line in journal.happened if "not Ready" in line]
    assert event.endswith(journal.why)
    assert [line for line in world.messages if "not Ready" in line] == [f"waiting: {journal.why} (0 s of 30 s)"]


def test_a_cordon_of_another_user_stays() -> None:
    world = kubelets()
    world.boxes["win-3"].cordoned = True
    assert world.run().journal.state == "finished"
    assert world.boxes["win-3"].cordoned
    assert not world.boxes["win-1"].cordoned


def test_pauses_end_the_run_in_order_until_an_approval() -> None:
    world = kubelets(rules=UpgradeRules(pause=("canary", "win-2")))
    decision = world.run()
    assert decision.journal.state == "paused"
    assert "kubewin_upgrade_confirmed=canary" in decision.journal.why
    assert decision.journal.approval == "canary"
    assert world.hooked == ["win-3"]
    assert world.run().journal.state == "paused"
    decision = world.run(("canary",))
    assert decision.journal.state == "paused"
    assert "kubewin_upgrade_confirmed=win-2" in decision.journal.why
    assert decision.journal.approval == "win-2"
    assert world.hooked == ["win-3", "win-1"]
    assert world.run(("win-2",)).journal.state == "finished"
    world.converged()
    assert set(decision.journal.confirmed) == {"canary"}


def test_a_node_that_has_the_target_release_is_not_the_canary() -> None:
    """It is only verified. The canary is the first node that the tasks change, alone, and the pause comes after it."""
    world = in_batches(kubelets(nodes=4, batches=("1", "100%"), rules=UpgradeRules(pause=("canary",))))
    world.boxes["win-4"].kubelet = "v1.27.3"
    assert world.run().journal.approval == "canary"
    assert world.hooked == ["win-3"]
    assert world.run(("canary",)).journal.state == "finished"
    assert world.hooked == ["win-3", "win-1", "win-2"]
    world.converged()


def test_outside_its_hours_nothing_begins_and_what_is_begun_is_ended() -> None:
    world = kubelets(rules=UpgradeRules(budget=60, windows=(parse_window("20:00-20:02", "UTC"),)))
    decision = world.run()
    assert decision.journal.state == "paused"
    assert (
        "the maintenance window closes at 2026-11-21T20:02:00Z, and a node may take 1 min (kubewin_upgrade_node_timeout)"
        in decision.journal.why
    )
    assert world.hooked == ["win-3", "win-1"]
    assert not any(box.cordoned for box in world.boxes.values())
    world.now = BEGAN + timedelta(days=1)
    assert world.run().journal.state == "finished"
    world.converged()


def test_a_batch_begins_when_there_is_time_for_each_of_its_nodes() -> None:
    rules = UpgradeRules(budget=45, windows=(parse_window("20:00-20:02", "UTC"),))
    world = in_batches(kubelets(nodes=3, batches=("1", "2"), rules=rules))
    decision = world.run()
    assert decision.journal.state == "paused"
    assert (
        "closes at 2026-11-21T20:02:00Z, and the 2 nodes of the next batch may take 1 min 30 s" in decision.journal.why
    )
    assert world.hooked == ["win-3"]
    world.now = BEGAN + timedelta(days=1)
    assert world.run().journal.state == "finished"
    world.converged()


def test_wmco_is_waited_for_until_its_plan_is_approved() -> None:
    world = wmco(rules=UpgradeRules(wait_timeout=30))
    world.running = "8.1.2"
    decision = world.run()
    assert decision.journal.state == "paused"
    assert "WMCO is 8.1.2, expected 9.0.0" in decision.journal.why
    assert "approve its InstallPlan now" in decision.journal.why
    assert [line for line in world.messages if "approve" in line] == [f"waiting: {decision.journal.why} (0 s of 30 s)"]
    assert world.hooked == []
    world.running = "9.0.0"
    assert world.run().journal.state == "finished"
    world.converged()


@pytest.mark.parametrize("pause", [("canary",), ()], ids=["under way", "finished"])
@pytest.mark.parametrize("make", [kubelets, wmco], ids=["cordon", "taint"])
def test_a_finished_node_cordoned_by_a_late_write_is_uncordoned_by_the_next_run(
    make: Callable[..., World], pause: tuple[str, ...]
) -> None:
    world = make(nodes=4, rules=UpgradeRules(pause=pause))
    world.run()
    journal = world.journal
    assert journal is not None
    name = next(entry.node for entry in journal.nodes if entry.step == "done")
    world._close(world.boxes[name], journal)
    decision = world.run(pause)
    assert decision.journal.state == "finished"
    assert any(
        f"{name}: waits for its workloads" in line and "cordoned again after" in line
        for line in decision.journal.happened
    )
    world.converged()


def test_a_later_cordon_of_another_user_stays() -> None:
    """An administrator, or another upgrade."""
    world = kubelets()
    journal = world.run().journal
    assert [entry.step for entry in journal.nodes] == ["done"] * 3
    world.boxes["win-1"].cordoned = True
    world.boxes["win-2"].cordoned, world.boxes["win-2"].cordoned_for = True, "upgrade another"
    world.boxes["win-3"].tainted, world.boxes["win-3"].tainted_for = True, "another"
    assert find_left_cordoned(journal, world.see().nodes) == []


def test_uncordon_removes_the_annotation_also_if_a_user_removed_the_cordon() -> None:
    """Or the user's next cordon would carry it, and be taken for ours."""
    world = kubelets()
    journal = world.run().journal
    world.boxes["win-1"].cordoned_for = journal.mark
    decision = decide(
        journal.put(journal.find_entry("win-1").move_to("workloads", world.now), world.now), world.see(), UpgradeRules()
    )
    assert isinstance(decision, ChangeObject)
    assert (decision.kind, decision.node) == ("uncordon", "win-1")


def test_nodes_that_wmco_begins_by_itself_are_gated_like_the_others() -> None:
    world = wmco(nodes=4, pods=1)
    decision = world.run()
    assert decision.journal.state == "finished"
    by_itself = [entry.node for entry in decision.journal.nodes if entry.by_itself]
    assert len(by_itself) == 3
    assert not any(box.allowed for box in world.boxes.values())
    world.converged()


def test_without_csi_proxy_before_one_node_without_volumes_is_first() -> None:
    desired = UpgradeRequest("wmco-9", "wmco", UpgradeTarget(wmco="9.0.0"), canary="win-1", unproven_canary=True)
    world = World(desired, operator=True)
    for box in world.boxes.values():
        box.version = "8.0.1"
    world.running = "9.0.0"
    decision = world.run()
    assert decision.journal.state == "finished"
    # win-1 was requested, and has a volume.
    assert [entry.node for entry in decision.journal.nodes] == ["win-3", "win-1", "win-2"]
    world.converged()


def test_a_node_that_a_user_uncordoned_is_drained_again_before_its_tasks_run_again() -> None:
    world = kubelets()
    world.failing_hooks = {"win-1": "the image is gone"}
    world.run()
    journal = world.journal
    assert journal is not None
    assert journal.find_entry("win-1").step == "hook"
    box = world.boxes["win-1"]
    box.cordoned, box.cordoned_for = False, ""
    # win-2 is full, so they go back to the node that nothing was done to.
    for pod in world.pods:
        pod.node = "win-1"
    world.failing_hooks = {}
    decision = world.run()
    assert decision.journal.state == "finished"
    assert any("(another user uncordoned it; it is" in line for line in decision.journal.happened)
    world.converged()


def test_pods_on_a_cordoned_node_are_evicted_before_the_tasks_run_again() -> None:
    world = kubelets(rules=UpgradeRules(budget=60))
    world.failing_hooks = {"win-1": "the image is gone"}
    world.run()
    for pod in world.pods:
        pod.node = "win-1"
    world.failing_hooks, world.stuck = {}, {"db-0"}
    # It may have been changed: it is not released, although it is at its drain again.
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert (decision.journal.find_entry("win-1").step, decision.journal.find_entry("win-1").failed) == (
        "drain",
        "CSI-U03",
    )
    assert world.boxes["win-1"].cordoned_for == "upgrade kubelets"
    world.stuck, world.refused = set(), {}
    assert world.run().journal.state == "finished"
    world.converged()


def test_tasks_that_succeeded_without_effect_run_again() -> None:
    world = kubelets(rules=UpgradeRules(budget=60))
    world.idle_hooks = {"win-3"}
    decision = world.run()
    assert decision.journal.state == "stopped"
    assert decision.journal.find_entry("win-3").failed == "CSI-U04"
    # One that is away is awaited, for it may be on its way.
    world.boxes["win-3"].down = True
    assert world.run().journal.state == "stopped"
    assert world.hooked == ["win-3"]
    world.boxes["win-3"].down, world.idle_hooks = False, set()
    assert world.run().journal.state == "finished"
    assert world.hooked == ["win-3", "win-3", "win-1", "win-2"]
    world.converged()


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        (
            UpgradeRequest("kubelets", "none", UpgradeTarget(kubelet="1.27")),
            "hook tasks, target .* requested is hook none",
        ),
        (
            UpgradeRequest("kubelets", "tasks", UpgradeTarget(kubelet="1.28")),
            r"target kubelet 1\.27 .* requested is .* target kubelet 1\.28",
        ),
        (
            UpgradeRequest("kubelets", "tasks", UpgradeTarget(kubelet="1.27"), nodes=("win-2",)),
            "nodes all.* requested is .* nodes win-2",
        ),
    ],
)
@pytest.mark.parametrize("pause", [("canary",), ()])
def test_a_journal_continues_with_its_own_options_or_is_refused(
    desired: UpgradeRequest, words: str, pause: tuple[str, ...]
) -> None:
    """Also when it is finished: nothing would be done, and that would look like success."""
    world = kubelets(rules=UpgradeRules(pause=pause))
    world.run()
    world.desired = desired
    with pytest.raises(TaskError, match=f"(?s){words}.*kubewin_upgrade_name") as refused:
        world.run()
    assert ("It is finished; give" in str(refused.value)) == (not pause)


def test_named_nodes_stay_the_only_ones() -> None:
    world = kubelets(rules=UpgradeRules(pause=("win-1",)))
    world.desired = replace(world.desired, nodes=("win-2", "win-1"))
    world.run()
    world.desired = replace(world.desired, nodes=())
    with pytest.raises(TaskError, match=r"nodes win-1, win-2, requested .* nodes all"):
        world.run()
    world.desired = replace(world.desired, nodes=("win-1", "win-2"))
    assert world.run(("win-1",)).journal.state == "finished"
    assert world.hooked == ["win-2", "win-1"]


def test_a_pause_that_never_applies_is_refused_at_the_beginning_and_later() -> None:
    world = kubelets(rules=UpgradeRules(pause=("canary",)))
    world.desired = replace(world.desired, pause=("canary", "win-9"))
    words = (
        "kubewin_upgrade_pause has 'win-9', expected canary, batches, or a Node of this upgrade: win-1, win-2, win-3"
    )
    with pytest.raises(TaskError, match=words):
        world.run()
    world.desired = replace(world.desired, pause=("canary",))
    world.run()
    world.desired = replace(world.desired, pause=("canary", "win-9"))
    with pytest.raises(TaskError, match=words):
        world.run(("canary",))
