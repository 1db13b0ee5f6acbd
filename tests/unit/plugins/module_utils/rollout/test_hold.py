# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a DaemonSet is written while its pods are replaced one by one, and what is remembered in it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.rollout import hold
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.hold import ANNOTATION, Rolling

MODE, RELEASE = "kubewin.io/mode", "kubewin.io/driver-version"


def daemon_set(image: str = "driver:1", *, strategy: str = "RollingUpdate", **annotations: str) -> dict[str, Any]:
    """A plugin's DaemonSet of ours, as the API has it."""
    labels = {"app.kubernetes.io/managed-by": "kubewin.csi"}
    return {
        "metadata": {"name": "plugin", "namespace": "d", "labels": labels, "annotations": annotations},
        "spec": {
            "updateStrategy": {"type": strategy, "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"spec": {"containers": [{"name": "driver", "image": image}]}},
        },
    }


def under_way(state: Rolling, image: str = "driver:2") -> dict[str, Any]:
    return daemon_set(image, strategy="OnDelete", **{ANNOTATION: state.text(), MODE: "host_process"})


def test_a_stored_state_is_read_back() -> None:
    state = Rolling("run", "hash", {MODE: "csi_proxy"}, failed="win-1", because="ErrImagePull", taken={"win-2": "uid"})
    assert hold.rolling(under_way(state)) == state
    assert state.goes_back
    assert hold.rolling(daemon_set()) is None


@pytest.mark.parametrize("text", ["", "no json", "[]", "3", '{"annotations": 3}'])
def test_an_unreadable_annotation_still_means_a_change(text: str) -> None:
    assert hold.rolling(daemon_set(**{ANNOTATION: text})) == Rolling()


@pytest.mark.parametrize(
    ("live", "after", "expected"),
    [
        pytest.param(daemon_set(), daemon_set(), False, id="the same pods"),
        pytest.param(daemon_set(), daemon_set("driver:2"), True, id="other pods"),
        pytest.param(daemon_set(strategy="OnDelete"), daemon_set(), True, id="held, with pods of unknown templates"),
        pytest.param(under_way(Rolling("run")), daemon_set("driver:2"), True, id="an interrupted change"),
    ],
)
def test_pods_are_held_wherever_the_controller_would_replace_them_by_itself(
    live: dict[str, Any], after: dict[str, Any], expected: bool
) -> None:
    assert hold.must_hold(live, after) is expected


def test_a_daemon_set_of_another_owner_is_not_held() -> None:
    theirs = daemon_set()
    theirs["metadata"]["labels"] = {}
    assert not hold.must_hold(theirs, daemon_set("driver:2"))


def test_the_upcoming_daemon_set_counts_its_template_as_the_api_server_does() -> None:
    live = daemon_set(**{"deprecated.daemonset.template.generation": "4"})
    changed, same = hold.to_be(live, daemon_set("driver:2")), hold.to_be(live, daemon_set())
    assert changed["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "5"
    assert same["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "4"
    assert live["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "4"


def test_the_template_before_the_first_of_several_runs_stays_the_former_one() -> None:
    first = hold.begun(daemon_set(**{MODE: "csi_proxy", "other": "x"}), "hash-1", "run-1", {})
    assert first == Rolling("run-1", "hash-1", {MODE: "csi_proxy"})
    failed = under_way(Rolling("run-1", "hash-1", {MODE: "csi_proxy"}, failed="win-1", because="x"))
    assert hold.begun(failed, "hash-2", "run-2", {}) == Rolling("run-2", "hash-1", {MODE: "csi_proxy"})


def test_runs_with_the_same_template_make_one_change_together() -> None:
    first = hold.run_of(daemon_set("driver:2"))
    assert first == hold.run_of(daemon_set("driver:2", strategy="OnDelete", other="x"))
    assert first != hold.run_of(daemon_set("driver:3"))


def test_pods_that_a_killed_run_announced_are_forgotten_by_the_next() -> None:
    observed = under_way(Rolling("run-1", "hash-1", taken={"win-1": "uid"}))
    assert hold.begun(observed, "hash-2", "run-1", {"win-1": "uid"}) == Rolling("run-1", "hash-1")


def test_a_run_that_joins_others_keeps_the_pods_that_they_are_replacing() -> None:
    away = Rolling("run-1", "hash-1", taken={"win-1": "gone"})
    assert hold.begun(under_way(away), "hash-2", "run-1", {"win-2": "uid"}) == away


def test_the_mode_before_a_change_that_is_under_way_is_that_of_its_first_pods() -> None:
    assert hold.former_mode(daemon_set(**{MODE: "csi_proxy"})) == "csi_proxy"
    assert hold.former_mode(under_way(Rolling("run", "hash", {MODE: "csi_proxy"}))) == "csi_proxy"
    assert hold.former_mode(daemon_set()) == ""


def test_held_moves_nothing_and_leaves_the_definition_alone() -> None:
    definition = daemon_set("driver:2")
    found = hold.held(definition, Rolling("run", "hash"))
    assert found["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert hold.rolling(found) == Rolling("run", "hash")
    assert definition == daemon_set("driver:2")


def test_a_rollback_restores_the_template_and_its_annotations() -> None:
    definition = daemon_set("driver:2", **{MODE: "host_process", RELEASE: "2.0.0", "other": "x"})
    template = daemon_set("driver:1")["spec"]["template"]
    found = hold.former(definition, Rolling("run", "hash", {MODE: "csi_proxy"}), template)
    assert found["spec"]["template"] == template
    assert found["metadata"]["annotations"] == {MODE: "csi_proxy", "other": "x"}
    assert found["spec"]["updateStrategy"] == definition["spec"]["updateStrategy"]


def test_max_unavailable_is_read_from_the_daemon_set() -> None:
    assert hold.max_unavailable(daemon_set()) == "10%"
    assert hold.max_unavailable({"spec": {}}) == 1
