# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cordon names its owner, and only our own is removed; a Node that another client writes meanwhile is read again."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import CORDONED
from ansible_collections.kubewin.csi.plugins.module_utils.kube.quiesce import (
    at_rest,
    change_node,
    cordoned,
    uncordoned,
)
from unit.plugins.module_utils.kube.fakes import ApiError, Clock, Response, Script

OURS = "csi-proxy is being replaced"


def node(reason: str = "", unschedulable: bool = False) -> dict[str, Any]:
    notes = {CORDONED: reason} if reason else {}
    return {
        "metadata": {"name": "win-1", "resourceVersion": "7", "annotations": notes},
        "spec": {"unschedulable": unschedulable},
    }


def changed(script: Script, **how: bool) -> bool:
    return change_node(Client(script), "win-1", lambda live: cordoned(live, OURS), **how)


def test_cordon_and_reason_are_one_patch_of_the_node_that_was_read() -> None:
    script = Script(Response(node()), Response({}))
    assert changed(script)
    patch = script.asked[-1][2]
    assert patch["body"] == {
        "metadata": {"resourceVersion": "7", "annotations": {CORDONED: OURS}},
        "spec": {"unschedulable": True},
    }
    assert "dry_run" not in patch
    script = Script(Response(node()), Response({}))
    assert changed(script, dry_run=True)
    assert script.asked[-1][2]["dry_run"] == "All"


@pytest.mark.parametrize("reason", ["", OURS, "an upgrade"])
def test_a_node_that_is_cordoned_keeps_the_reason_of_its_cordon(reason: str) -> None:
    script = Script(Response(node(reason, True)))
    assert not changed(script)
    assert [method for method, *_rest in script.asked] == ["GET"]


@pytest.mark.parametrize("unschedulable", [True, False])
def test_only_the_cordon_of_the_reason_is_lifted(unschedulable: bool) -> None:
    assert uncordoned(node(OURS, unschedulable), OURS) == {
        "metadata": {"annotations": {CORDONED: None}},
        "spec": {"unschedulable": False},
    }
    assert uncordoned(node("an upgrade", unschedulable), OURS) == {}
    assert uncordoned(node("", unschedulable), OURS) == {}


def test_a_node_that_was_written_meanwhile_is_read_again() -> None:
    script = Script(
        Response(node()), ApiError(409, {"message": "the object has been modified"}), Response(node("", True))
    )
    assert not changed(script)
    assert [method for method, *_rest in script.asked] == ["GET", "PATCH", "GET"]
    with pytest.raises(ClusterError, match="changes faster than it can be written"):
        change_node(Contested(), "win-1", lambda live: cordoned(live, OURS))


class Contested(Client):
    """A Node that another client writes before each of our writes."""

    def __init__(self) -> None:
        super().__init__(Script(Response(node())))

    def patch(self, *_what: Any, **_how: Any) -> dict[str, Any]:
        raise ClusterError("the object has been modified", "conflict", 409)


def test_a_deleted_node_needs_no_uncordon_and_cannot_be_cordoned() -> None:
    assert not changed(Script(ApiError(404)))
    with pytest.raises(ClusterError, match="Node win-1 does not exist"):
        changed(Script(ApiError(404)), required=True)


def test_the_wait_ends_when_nothing_is_in_flight_or_with_its_time() -> None:
    volumes = [{"name": "data", "csi": {}}]
    pod: dict[str, Any] = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"volumes": volumes}}
    pod["status"] = {"phase": "Pending"}
    starting, none = Response({"items": [pod]}), Response({"items": []})
    why = ["pod shop/web is starting and its volumes are being mounted"]
    messages: list[str] = []
    clock = Clock()

    def waited(*answers: Response, timeout: float) -> list[str]:
        return at_rest(Client(Script(*answers)), "win-1", timeout, messages.append, clock, clock.sleep)

    assert waited(starting, none, timeout=12) == []
    assert clock.slept == [5.0]
    assert messages == [f"win-1: waiting, {why[0]} (0 s of 12 s)"]
    assert waited(starting, timeout=12) == why
    assert clock.slept == [5.0, 5.0, 5.0, 2.0]
    assert waited(none, timeout=0) == []
