# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change does next where something is not as it should be."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import NO_NODE, Goal, Step, decide
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import Picture
from unit.plugins.module_utils.rollout.pictures import daemon_set, host, node, picture, pod, registration, win2

CHANGED = daemon_set(template_generation="2")


def changing(**spoilt: Any) -> Picture:
    """Two nodes that still have the former template."""
    return picture(**{"daemon_set": CHANGED, **spoilt})


def step(current: Picture, goal: Goal | None = None, **waited: float) -> Step:
    spent = {name.replace("_", "-"): seconds for name, seconds in waited.items()}
    return decide(current, evaluate(current, Rules()), goal or Goal(), spent)


def test_the_first_node_goes_first() -> None:
    assert step(changing()).nodes == ("win-1",)


def test_the_order_is_the_runs() -> None:
    assert step(changing(), Goal(nodes=("win-2", "win-1"))).nodes == ("win-2",)


def test_a_deleted_daemon_set_stops_it() -> None:
    assert step(changing(daemon_set=None)) == Step("stop", message="the DaemonSet does not exist")


def test_a_template_that_its_controller_has_not_processed_is_waited_for_with_a_timeout() -> None:
    unseen = changing(daemon_set=daemon_set(template_generation="2", observed=False))
    assert step(unseen) == Step("wait")
    late = decide(unseen, evaluate(unseen, Rules()), Goal(node_timeout=5), {NO_NODE: 6.0})
    assert late.kind == "stop"
    assert "controller" in late.message


def test_the_canary_is_not_replaced_on_a_node_where_no_plugin_can_work() -> None:
    not_ready = changing(nodes=(node("win-1", ready=False, not_ready_because="KubeletNotReady"), node("win-2")))
    found = step(not_ready)
    assert (found.kind, found.nodes) == ("stop", ("win-1",))
    assert "KubeletNotReady" in found.message


def test_a_host_without_csi_proxy_keeps_its_plugin() -> None:
    found = step(changing(hosts={"win-1": host("win-1", serving=False, pipes=()), "win-2": host("win-2")}))
    assert (found.kind, found.nodes) == ("stop", ("win-1",))
    assert "csi-proxy-disk-v1" in found.message


def test_a_node_whose_volumes_would_be_lost_keeps_its_plugin() -> None:
    found = step(changing(), Goal(kept={"win-1": "volumes are in use"}))
    assert (found.kind, found.message) == ("stop", "volumes are in use; its plugin is not changed")


def test_a_node_without_its_plugin_may_be_replaced_although_no_other_may_be_unavailable() -> None:
    crashing = pod("win-2", ready=False, ready_since=None)
    done = pod("win-1", template_generation="2")
    assert step(changing(pods=(done, crashing))).nodes == ("win-2",)


def test_a_node_that_another_run_has_begun_is_waited_for_before_the_next() -> None:
    begun = changing(pods=(pod("win-1"), pod("win-2", template_generation="2", ready=False, ready_since=None)))
    assert step(begun, Goal(max_unavailable=2)) == Step("wait")


def test_a_node_of_a_later_batch_that_was_begun_is_waited_for_too() -> None:
    names = ("win-1", "win-2", "win-3")
    done, begun = (
        pod("win-1", template_generation="2"),
        pod("win-3", template_generation="2", ready=False, ready_since=None),
    )
    current = changing(
        nodes=tuple(node(name) for name in names),
        pods=(done, pod("win-2"), begun),
        hosts={name: host(name) for name in names},
        registrations={name: registration(name) for name in names},
    )
    assert step(current, Goal(batches=("1", "1"), max_unavailable=3)) == Step("wait")


def test_a_pod_is_not_deleted_again_before_its_deletion_is_observed() -> None:
    current = changing(pods=(pod("win-1", uid="one"), pod("win-2", uid="two")))
    verdict = evaluate(current, Rules())
    assert decide(current, verdict, Goal(), {}, frozenset({"one"})) == Step("wait")


def test_every_pod_of_the_template_ends_it() -> None:
    assert step(picture()) == Step("finish")
    left = win2(pods=pod("win-2", template_generation="0"))
    assert step(left, Goal(nodes=("win-1",))) == Step("rest", nodes=("win-2",))


def test_a_node_that_the_daemon_set_does_not_select_is_ignored() -> None:
    away = node("win-2", labels={"kubernetes.io/os": "windows"})
    assert step(picture(nodes=(node("win-1"), away))) == Step("finish")
