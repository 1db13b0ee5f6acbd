# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a rolling update begins, in which order it goes, and what it does next where something is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    NO_NODE,
    RollOptions,
    RollStep,
    count_allowed_unavailable,
    count_share,
    decide,
    find_state,
    find_wrong_sizes,
    list_refusals,
    split_batches,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import (
    Evaluation,
    GateRules,
    evaluate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import RolloutPicture
from unit.plugins.plugin_utils.drivers.rollout.pictures import daemon_set, host, node, picture, pod, registration, win2

CHANGED = daemon_set(revision="2")


def changing(**spoilt: Any) -> RolloutPicture:
    """Two nodes that still have the former template."""
    return picture(**{"daemon_set": CHANGED, **spoilt})


def next_step(
    current: RolloutPicture, evaluation: Evaluation, options: RollOptions, waited: Mapping[str, float],
    deleted: frozenset[str] = frozenset(),
) -> RollStep:  # fmt: skip
    return decide(current, evaluation, find_state(current, evaluation, options, deleted), options, waited)


def step(current: RolloutPicture, goal: RollOptions | None = None, **waited: float) -> RollStep:
    spent = {name.replace("_", "-"): seconds for name, seconds in waited.items()}
    return next_step(current, evaluate(current, GateRules()), goal or RollOptions(), spent)


def test_the_first_node_goes_first() -> None:
    assert step(changing()).nodes == ("win-1",)


def test_the_order_is_the_runs() -> None:
    assert step(changing(), RollOptions(nodes=("win-2", "win-1"))).nodes == ("win-2",)


def test_a_deleted_daemon_set_stops_it() -> None:
    assert step(changing(daemon_set=None)) == RollStep("stop", message="the DaemonSet does not exist")


def test_a_template_that_its_controller_has_not_processed_is_waited_for_with_a_timeout() -> None:
    unseen = changing(daemon_set=daemon_set(revision="2", processed=False))
    assert step(unseen) == RollStep("wait")
    late = next_step(unseen, evaluate(unseen, GateRules()), RollOptions(node_timeout=5), {NO_NODE: 6.0})
    assert late.kind == "stop"
    assert "controller" in late.message


def test_a_node_that_is_down_is_skipped_and_does_not_count_as_unavailable() -> None:
    down = node("win-1", ready=False, not_ready_because="KubeletNotReady")
    lost = pod("win-1", ready=False, ready_since=None)
    found = step(changing(nodes=(down, node("win-2")), pods=(lost, pod("win-2"))))
    assert (found.kind, found.nodes) == ("replace", ("win-2",))


def test_a_template_of_another_run_stops_it() -> None:
    evaluation = evaluate(changing(), GateRules(template="mine"))
    found = next_step(changing(), evaluation, RollOptions(), {})
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
    assert next_step(current, verdict, RollOptions(), {}, frozenset({"one"})) == RollStep("wait")


def test_every_pod_of_the_template_ends_it() -> None:
    assert step(picture()) == RollStep("finish")
    left = win2(pods=pod("win-2", revision="0"))
    assert step(left, RollOptions(nodes=("win-1",))) == RollStep("finish", nodes=("win-2",))


def test_a_node_that_the_daemon_set_does_not_select_is_ignored() -> None:
    away = node("win-2", labels={"kubernetes.io/os": "windows"})
    assert step(picture(nodes=(node("win-1"), away))) == RollStep("finish")


@pytest.mark.parametrize(
    ("count", "sizes", "expected"),
    [
        pytest.param(7, ("1", "2"), (1, 2, 2, 2), id="the last size repeats"),
        pytest.param(9, ("1", "25%"), (1, 2, 2, 2, 2), id="a percentage of them all, rounded down"),
        pytest.param(3, ("1", "25%"), (1, 1, 1), id="a percentage below one node is one"),
        pytest.param(4, ("100%",), (1, 3), id="the canary is a batch of its own"),
        pytest.param(3, (), (1, 2), id="no sizes"),
        pytest.param(0, ("1",), (), id="no nodes"),
    ],
)
def test_nodes_follow_in_batches_after_a_canary(count: int, sizes: tuple[str, ...], expected: tuple[int, ...]) -> None:
    nodes = [f"win-{number}" for number in range(count)]
    found = split_batches(nodes, sizes)
    assert tuple(len(batch) for batch in found) == expected
    assert [name for batch in found for name in batch] == nodes


def test_a_wrong_batch_size_is_named() -> None:
    assert find_wrong_sizes(("1", "25%", "0", "x", "", "-1", "%", "1.5")) == ("0", "x", "", "-1", "%", "1.5")


def test_batches_are_rounded_as_in_ansible_and_max_unavailable_as_in_kubernetes() -> None:
    assert (count_share("10%", 19), count_share("3", 19), count_share("1%", 19)) == (1, 3, 1)
    assert (
        count_allowed_unavailable("10%", 19),
        count_allowed_unavailable(3, 19),
        count_allowed_unavailable("0", 19),
    ) == (2, 3, 1)


PROXY = CHANGED.pod_spec["nodeSelector"]


def refused(observed: RolloutPicture, uses: Callable[[], Iterable[tuple[str, str]]] = tuple) -> tuple[str, ...]:
    evaluation = evaluate(observed, GateRules())
    return list_refusals(observed, evaluation, find_state(observed, evaluation, RollOptions()), uses)


def no_run_asks() -> Iterable[tuple[str, str]]:
    raise AssertionError("every pod of the cluster was read without need")


def test_a_good_cluster_is_not_refused_and_volumes_are_not_read() -> None:
    observed = picture(daemon_set=CHANGED)
    assert refused(observed, uses=no_run_asks) == ()


def test_all_nodes_where_the_plugin_cannot_work_are_named_at_once() -> None:
    hosts = {name: host(name, serving=False, pipes=()) for name in ("win-1", "win-2")}
    found = refused(picture(daemon_set=CHANGED, hosts=hosts))
    assert [text.split(":")[0] for text in found] == ["win-1", "win-2"]
    assert "--limit" in found[0]


def test_without_a_ready_node_there_is_no_canary() -> None:
    down = tuple(node(name, ready=False) for name in ("win-1", "win-2"))
    (found,) = refused(picture(daemon_set=CHANGED, nodes=down))
    assert "win-1, win-2: not Ready, expected a Ready node for the canary" in found


def test_a_node_that_has_the_desired_plugin_is_not_required() -> None:
    assert refused(picture(hosts={"win-1": host("win-1", serving=False, pipes=())})) == ()


def test_a_node_that_was_not_proven_would_lose_its_plugin_at_once() -> None:
    observed = picture(
        daemon_set=daemon_set(revision="2", pod_spec={**CHANGED.pod_spec, "nodeSelector": PROXY}),
        nodes=(node("win-1"), node("win-2", labels={"kubernetes.io/os": "windows"})),
    )
    (found,) = refused(observed, uses=no_run_asks)
    assert "win-2" in found
    assert "csi-proxy does not serve there" in found


@pytest.mark.parametrize("uses", [(), (("win-2", "pod shop/db-0 (claim data)"),)])
def test_a_selector_that_leaves_a_node_out_is_refused_only_where_volumes_are_in_use(
    uses: tuple[tuple[str, str], ...],
) -> None:
    spec = {**CHANGED.pod_spec, "nodeSelector": {"pool": "storage"}}
    observed = picture(
        daemon_set=daemon_set(revision="2", pod_spec=spec),
        nodes=(node("win-1", labels={"pool": "storage"}), node("win-2")),
    )
    found = refused(observed, uses=lambda: uses)
    assert len(found) == len(uses)
    for text in found:
        assert "win-2" in text
        assert "shop/db-0" in text
