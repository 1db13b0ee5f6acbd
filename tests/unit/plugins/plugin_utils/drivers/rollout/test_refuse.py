# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a change of a running plugin from beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    RollOptions,
    find_state,
    list_refusals,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import RolloutPicture
from unit.plugins.plugin_utils.drivers.rollout.pictures import daemon_set, host, node, picture

CHANGED = daemon_set(revision="2")
PROXY = CHANGED.pod_spec["nodeSelector"]


def refused(
    observed: RolloutPicture,
    kept: Mapping[str, str] | None = None,
    uses: Callable[[], Iterable[tuple[str, str]]] = tuple,
) -> tuple[str, ...]:
    evaluation = evaluate(observed, GateRules())
    return list_refusals(observed, evaluation, find_state(observed, evaluation, RollOptions()), kept or {}, uses)


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


def test_a_node_with_volumes_that_would_be_lost_is_named_with_the_command() -> None:
    (found,) = refused(picture(daemon_set=CHANGED), {"win-2": "volumes are in use"})
    assert found.startswith("win-2: volumes are in use")
    assert "kubectl drain win-2" in found


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
