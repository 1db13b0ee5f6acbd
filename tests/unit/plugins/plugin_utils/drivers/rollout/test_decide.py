# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change does next where something is not as it should be."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    NO_NODE,
    RollOptions,
    RollStep,
    decide,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import RolloutPicture
from unit.plugins.plugin_utils.drivers.rollout.pictures import daemon_set, host, node, picture, pod, registration, win2

CHANGED = daemon_set(revision="2")


def changing(**spoilt: Any) -> RolloutPicture:
    """Two nodes that still have the former template."""
    return picture(**{"daemon_set": CHANGED, **spoilt})


def step(current: RolloutPicture, goal: RollOptions | None = None, **waited: float) -> RollStep:
    spent = {name.replace("_", "-"): seconds for name, seconds in waited.items()}
    return decide(current, evaluate(current, GateRules()), goal or RollOptions(), spent)


def test_the_first_node_goes_first() -> None:
    assert step(changing()).nodes == ("win-1",)


def test_the_order_is_the_runs() -> None:
    assert step(changing(), RollOptions(nodes=("win-2", "win-1"))).nodes == ("win-2",)


def test_a_deleted_daemon_set_stops_it() -> None:
    assert step(changing(daemon_set=None)) == RollStep("stop", message="the DaemonSet does not exist")


def test_a_template_that_its_controller_has_not_processed_is_waited_for_with_a_timeout() -> None:
    unseen = changing(daemon_set=daemon_set(revision="2", observed=False))
    assert step(unseen) == RollStep("wait")
    late = decide(unseen, evaluate(unseen, GateRules()), RollOptions(node_timeout=5), {NO_NODE: 6.0})
    assert late.kind == "stop"
    assert "controller" in late.message


def test_a_node_that_is_down_is_skipped_and_does_not_count_as_unavailable() -> None:
    down = node("win-1", ready=False, not_ready_because="KubeletNotReady")
    lost = pod("win-1", ready=False, ready_since=None)
    found = step(changing(nodes=(down, node("win-2")), pods=(lost, pod("win-2"))))
    assert (found.kind, found.nodes) == ("replace", ("win-2",))


def test_a_template_of_another_run_stops_it() -> None:
    evaluation = evaluate(changing(), GateRules(template="mine"))
    found = decide(changing(), evaluation, RollOptions(), {})
    assert found.kind == "stop"
    assert "another run or user changed it" in found.message


def test_a_host_without_csi_proxy_keeps_its_plugin() -> None:
    found = step(changing(hosts={"win-1": host("win-1", serving=False, pipes=()), "win-2": host("win-2")}))
    assert (found.kind, found.nodes) == ("stop", ("win-1",))
    assert "csi-proxy-disk-v1" in found.message


def test_a_node_without_its_plugin_may_be_replaced_although_no_other_may_be_unavailable() -> None:
    crashing = pod("win-2", ready=False, ready_since=None)
    done = pod("win-1", revision="2")
    assert step(changing(pods=(done, crashing))).nodes == ("win-2",)


def test_a_node_that_another_run_has_begun_is_waited_for_before_the_next() -> None:
    begun = changing(pods=(pod("win-1"), pod("win-2", revision="2", ready=False, ready_since=None)))
    assert step(begun, RollOptions(max_unavailable=2)) == RollStep("wait")


def test_a_node_of_a_later_batch_that_was_begun_is_waited_for_too() -> None:
    names = ("win-1", "win-2", "win-3")
    done, begun = (
        pod("win-1", revision="2"),
        pod("win-3", revision="2", ready=False, ready_since=None),
    )
    current = changing(
        nodes=tuple(node(name) for name in names),
        pods=(done, pod("win-2"), begun),
        hosts={name: host(name) for name in names},
        registrations={name: registration(name) for name in names},
    )
    assert step(current, RollOptions(batches=("1", "1"), max_unavailable=3)) == RollStep("wait")


def test_a_pod_is_not_deleted_again_before_its_deletion_is_observed() -> None:
    current = changing(pods=(pod("win-1", uid="one"), pod("win-2", uid="two")))
    verdict = evaluate(current, GateRules())
    assert decide(current, verdict, RollOptions(), {}, frozenset({"one"})) == RollStep("wait")


def test_every_pod_of_the_template_ends_it() -> None:
    assert step(picture()) == RollStep("finish")
    left = win2(pods=pod("win-2", revision="0"))
    assert step(left, RollOptions(nodes=("win-1",))) == RollStep("finish", nodes=("win-2",))


def test_a_node_that_the_daemon_set_does_not_select_is_ignored() -> None:
    away = node("win-2", labels={"kubernetes.io/os": "windows"})
    assert step(picture(nodes=(node("win-1"), away))) == RollStep("finish")
