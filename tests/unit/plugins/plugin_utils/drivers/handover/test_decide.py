# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which nodes go over next, in which order, and when none does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import (
    Direction,
    HandoverSide,
    HandoverState,
    WaitingNode,
    list_excluded_nodes,
    make_exclusion_patch,
    plan_handover,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.ownership import Owner
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.drivers.worlds import HOME, VSPHERE, daemon_set

NODES = ("win-1", "win-2")
OPERATOR = Owner("kept by an operator", "annotation x", True, "change the operator")
HELM = Owner("installed with Helm", "release x", False, "remove it from the chart")
THEIRS = f"{HOME}/theirs"


def side(name: str, *on: str, mode: str = "csi_proxy", home: str = HOME, **away: str) -> HandoverSide:
    return HandoverSide(
        home,
        name,
        mode,
        {key.replace("_", "-"): why for key, why in away.items()},
        {node: f"{name}-{node}" for node in on},
    )


def they(owner: Owner, *on: str, name: str = "theirs", **more: Any) -> HandoverSide:
    return dataclasses.replace(side(name, *on, **more), owner=owner)


def scene(ours: HandoverSide | None, *theirs: HandoverSide, **more: Any) -> HandoverState:
    return HandoverState(**{"driver": VSPHERE, "nodes": NODES, "ours": ours, "theirs": theirs, **more})


BOTH = scene(side("ours", *NODES), they(OPERATOR, *NODES))
INSTALLED = scene(side("ours"), they(HELM, *NODES))


def test_every_node_of_ours_is_handed_to_the_platform() -> None:
    made = plan_handover("to_platform", BOTH)
    assert (made.refusal, made.nodes, made.done) == ("", NODES, ())
    assert made.lines == (
        f"from {HOME}/ours of this collection to DaemonSet {THEIRS}, kept by an operator (annotation x)",
    )


def test_a_node_that_ours_was_kept_off_is_done() -> None:
    made = plan_handover("to_platform", scene(side("ours", "win-2", win_1="its name"), they(OPERATOR, *NODES)))
    assert (made.nodes, made.done) == (("win-2",), ("win-1",))


def test_the_node_of_an_interrupted_run_is_next_although_ours_has_left_it() -> None:
    made = plan_handover(
        "to_platform", scene(side("ours", "win-1", win_2="its name"), they(OPERATOR, *NODES), waiting="win-2")
    )
    assert made.nodes == ("win-2", "win-1")


def test_every_node_of_theirs_is_handed_to_ours() -> None:
    made = plan_handover("to_kubewin", INSTALLED, THEIRS)
    assert (made.refusal, made.nodes, made.done) == ("", NODES, ())


def test_a_begun_handover_continues_with_the_remaining_nodes() -> None:
    made = plan_handover("to_kubewin", scene(side("ours", *NODES), begun=THEIRS, replaced_nodes=("win-2",)), THEIRS)
    assert (made.nodes, made.done) == (("win-2",), ("win-1",))


@pytest.mark.parametrize("direction", ["to_platform", "to_kubewin"])
def test_a_finished_handover_has_no_nodes_left(direction: Direction) -> None:
    done = scene(None, they(OPERATOR, *NODES)) if direction == "to_platform" else scene(side("ours", *NODES))
    made = plan_handover(direction, done, THEIRS)
    assert (made.refusal, made.nodes) == ("", ())


@pytest.mark.parametrize(
    ("there", "replace", "expected"),
    [
        pytest.param(scene(side("ours", *NODES)), "", "nothing else provides csi.vsphere.vmware.com", id="none exists"),
        pytest.param(BOTH, "x/y", "x/y does not provide", id="another name"),
        pytest.param(
            scene(side("ours", *NODES), they(OPERATOR, *NODES), they(HELM, *NODES, name="more")),
            "",
            "Name the one to take over with kubewin_replace",
            id="two of them",
        ),
        pytest.param(
            scene(side("ours", *NODES), they(OPERATOR, "win-1", win_2="taint x")),
            "",
            "has no pod on win-2 (taint x)",
            id="a node that they pass by",
        ),
        pytest.param(
            dataclasses.replace(BOTH, begun="a/b"),
            "",
            "kubewin_handover=to_kubewin and kubewin_replace=a/b",
            id="begun",
        ),
    ],
)
def test_no_node_is_handed_to_the_platform(there: HandoverState, replace: str, expected: str) -> None:
    made = plan_handover("to_platform", there, replace)
    assert made.nodes == ()
    assert expected in made.refusal


@pytest.mark.parametrize(
    ("there", "replace", "expected"),
    [
        pytest.param(INSTALLED, "", f"kubewin_replace=namespace/name; there is {THEIRS}", id="no name"),
        pytest.param(INSTALLED, "x/y", f"x/y does not provide csi.vsphere.vmware.com on Windows nodes; there is {THEIRS}",
                     id="another name"),
        pytest.param(scene(side("ours")), THEIRS, "nothing provides", id="none exists"),
        pytest.param(scene(side("ours"), they(OPERATOR, *NODES)), THEIRS, "change the operator", id="it would be recreated"),
        pytest.param(scene(side("ours"), they(HELM, *NODES), they(HELM, *NODES, name="more")), THEIRS,
                     f"DaemonSet {HOME}/more also provides", id="two of them"),
        pytest.param(scene(side("ours", home="mine"), they(HELM, *NODES)), THEIRS, f"Set the role's namespace to {HOME}",
                     id="another namespace"),
        pytest.param(scene(side("ours", win_2="label x"), they(HELM, *NODES)), THEIRS, "no pod on win-2 (label x)",
                     id="a node that ours passes by"),
        pytest.param(dataclasses.replace(INSTALLED, begun="a/b"), THEIRS, "kubewin_replace=a/b", id="another was begun"),
    ],
)  # fmt: skip
def test_no_node_is_handed_to_ours(there: HandoverState, replace: str, expected: str) -> None:
    made = plan_handover("to_kubewin", there, replace)
    assert made.nodes == ()
    assert expected in made.refusal


@pytest.mark.parametrize("direction", ["to_platform", "to_kubewin"])
def test_smb_does_not_return_to_csi_proxy(direction: Direction) -> None:
    before = {"mode": "host_process"}
    ours, theirs = (before, {}) if direction == "to_platform" else ({}, before)
    on = NODES if direction == "to_platform" else ()
    there = scene(side("ours", *on, **ours), they(HELM, *NODES, **theirs), driver=DRIVERS["smb"])
    made = plan_handover(direction, there, THEIRS)
    assert "it runs in mode host_process and cannot change to csi_proxy" in made.refusal
    assert ("Set smb_csi_mode to host_process" if direction == "to_kubewin" else "Remove it first") in made.refusal
    assert plan_handover(direction, dataclasses.replace(there, driver=VSPHERE), THEIRS).nodes == NODES


def live(**affinity: Any) -> dict[str, Any]:
    made = daemon_set("ours")
    made["spec"]["template"]["spec"]["affinity"] = affinity
    return made


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AVOID = {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["virtual"]}]}


@pytest.mark.parametrize("terms", [[], [AVOID], [AVOID, {"matchExpressions": []}]])
def test_ours_is_kept_off_nodes_in_every_term_and_gets_them_back(terms: list[Any]) -> None:
    before = live(nodeAffinity={REQUIRED: {"nodeSelectorTerms": terms}})
    body = make_exclusion_patch(before, NODES, None)
    during = live(**body["spec"]["template"]["spec"]["affinity"])
    found = during["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    # Terms are alternatives: one without the names would let the pod in. The API takes one name an entry.
    assert all([entry["values"] for entry in term["matchFields"]] == [["win-1"], ["win-2"]] for term in found)
    assert list_excluded_nodes(during) == NODES

    after = make_exclusion_patch(during, (), None)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert after == ({"nodeSelectorTerms": terms} if terms else None)


def test_the_awaited_node_is_recorded_with_the_runs_whose_sockets_are_closed() -> None:
    waiting = WaitingNode("win-1", frozenset({("uid", 2)}))
    notes = make_exclusion_patch(live(), ("win-1",), waiting)["metadata"]["annotations"]
    assert WaitingNode.from_object({"metadata": {"annotations": notes}}) == waiting
    cleared = make_exclusion_patch(live(), ("win-1",), None)["metadata"]["annotations"]
    assert WaitingNode.from_object({"metadata": {"annotations": cleared}}) is None


def test_an_awaited_node_that_a_later_release_recorded_is_refused() -> None:
    notes = make_exclusion_patch(live(), ("win-1",), WaitingNode("win-1", frozenset()))["metadata"]["annotations"]
    later = {name: text.replace('"stale"', '"until": "10:00", "stale"') for name, text in notes.items()}
    with pytest.raises(ClusterError, match=r"it has the field until, .* a later release wrote it; run that release"):
        WaitingNode.from_object({"metadata": {"name": "ours", "annotations": later}})


@pytest.mark.parametrize(
    ("direction", "remedy"),
    [("to_platform", "Enable it on the platform again"), ("to_kubewin", "run enable_csi with kubewin_drivers=vsphere")],
)
def test_no_node_goes_to_or_from_a_plugin_that_is_being_deleted(direction: Direction, remedy: str) -> None:
    deleted = dataclasses.replace(they(HELM, *NODES), deleting=True)
    made = plan_handover(direction, scene(side("ours", *NODES), deleted), THEIRS)
    assert made.nodes == ()
    assert made.refusal.startswith(f"DaemonSet {THEIRS} is being deleted")
    assert remedy in made.refusal


def test_a_node_that_waits_for_a_plugin_that_is_being_deleted_is_finished_or_gets_its_former_one() -> None:
    deleted = dataclasses.replace(they(HELM, *NODES), deleting=True)
    state = scene(side("ours", *NODES[1:]), deleted, waiting=NODES[0])
    assert plan_handover("to_platform", state, THEIRS).nodes[0] == NODES[0]
    # Of the next one it is refused.
    assert plan_handover("to_platform", dataclasses.replace(state, waiting=""), THEIRS).refusal


def test_a_hand_over_continues_that_was_killed_while_the_other_plugin_was_deleted() -> None:
    deleted = dataclasses.replace(they(HELM, *NODES), deleting=True)
    made = plan_handover("to_kubewin", scene(side("ours"), deleted, begun=THEIRS), THEIRS)
    assert (made.refusal, made.nodes) == ("", NODES)
