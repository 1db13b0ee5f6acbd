# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cordon names its owner, and only our own is removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action.node_info import describe_node
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import CORDONED
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.quiesce import (
    plan_cordon,
    plan_uncordon,
    wait_until_idle,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import UpgradeNode
from unit.plugins.plugin_utils.kube.fakes import Clock, Response, Script

OURS = "csi-proxy is being replaced"


def node(reason: str = "", unschedulable: bool = False) -> dict[str, Any]:
    notes = {CORDONED: reason} if reason else {}
    return {
        "metadata": {"name": "win-1", "resourceVersion": "7", "annotations": notes},
        "spec": {"unschedulable": unschedulable},
    }


@pytest.mark.parametrize("reason", ["", OURS, "an upgrade"])
def test_a_node_that_is_cordoned_keeps_the_reason_of_its_cordon(reason: str) -> None:
    assert plan_cordon(node(reason, True), OURS) == {}
    assert plan_cordon(node(reason, False), OURS)["spec"] == {"unschedulable": True}


@pytest.mark.parametrize("unschedulable", [True, False])
def test_only_the_cordon_of_the_reason_is_lifted(unschedulable: bool) -> None:
    assert plan_uncordon(node(OURS, unschedulable), OURS) == {
        "metadata": {"annotations": {CORDONED: None}},
        "spec": {"unschedulable": False},
    }
    assert plan_uncordon(node("an upgrade", unschedulable), OURS) == {}
    assert plan_uncordon(node("", unschedulable), OURS) == {}


@pytest.mark.parametrize(
    ("managers", "lifted"),
    [
        (["kubewin.csi"], True),
        (["kubectl"], False),
        (["kubectl", "kubewin.csi"], True),
        # Who it was is no longer known.
        (["ancient-changes"], True),
        ([], True),
    ],
)
def test_a_cordon_that_another_user_set_after_ours_was_lifted_stays(managers: list[str], lifted: bool) -> None:
    """kubectl uncordon keeps the annotation, so it is still there when the node is cordoned for a repair."""
    cordoned = node(OURS, unschedulable=True)
    fields: dict[str, Any] = {"f:spec": {"f:unschedulable": {}}}
    cordoned["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {"f:metadata": {}}}]
    cordoned["metadata"]["managedFields"] += [{"manager": name, "fieldsV1": fields} for name in managers]
    patch = plan_uncordon(cordoned, OURS)
    assert patch["metadata"] == {"annotations": {CORDONED: None}}
    assert ("spec" in patch) is lifted
    assert UpgradeNode.from_object(cordoned).cordoned_for == (OURS if lifted else "")
    assert describe_node(cordoned)["cordoned_for"] == (OURS if lifted else "")
    cordoned["spec"] = {}
    assert plan_uncordon(cordoned, OURS)["metadata"] == {"annotations": {CORDONED: None}}


def test_the_wait_ends_when_nothing_is_in_flight_or_with_its_time() -> None:
    volumes = [{"name": "data", "csi": {}}]
    pod: dict[str, Any] = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"volumes": volumes}}
    pod["status"] = {"phase": "Pending"}
    starting, none = Response({"items": [pod]}), Response({"items": []})
    why = ["pod shop/web is starting and its volumes are being mounted"]
    messages: list[str] = []
    clock = Clock()

    def waited(*answers: Response, timeout: float) -> Sequence[str]:
        return wait_until_idle(Client(Script(*answers)), "win-1", timeout, messages.append, clock, clock.sleep)

    assert waited(starting, none, timeout=12) == []
    assert clock.slept == [5.0]
    assert messages == [f"win-1: waiting, {why[0]} (0 s of 12 s)"]
    assert waited(starting, timeout=12) == why
    assert clock.slept == [5.0, 5.0, 5.0, 2.0]
    assert waited(none, timeout=0) == []
