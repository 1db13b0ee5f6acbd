# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which targets a run has, which nodes it leaves out, and what it refuses before it begins."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import (
    VerifyPlan,
    VerifyRequest,
    plan_verification,
)
from unit.plugins.plugin_utils.verify.clusters import node, storage_class

VSPHERE, SMB = DRIVERS["vsphere"], DRIVERS["smb"]
CLASSES = [storage_class("disks", VSPHERE.name), storage_class("share", SMB.name, {"source": "//server/share"})]
THREE = [node("win-3"), node("win-1"), node("win-2")]


def planned(
    there: list[ProofNode] | None = None, keys: tuple[str, ...] = ("vsphere", "smb"), **desired: Any
) -> VerifyPlan:
    drivers = tuple(DRIVERS[key] for key in keys)
    return plan_verification(
        VerifyRequest(drivers, **desired), THREE if there is None else there, CLASSES, {SMB.name: False}
    )


def test_each_driver_is_proven_on_each_node_and_read_on_the_next_ones() -> None:
    made = planned()
    assert [(one.node, one.driver) for one in made.targets] == [
        (name, driver) for name in ("win-1", "win-2", "win-3") for driver in ("vsphere", "smb")
    ]
    first, share = made.targets[:2]
    assert (first.storage_class, first.access_mode, first.attaches) == ("disks", "ReadWriteOnce", True)
    assert (share.storage_class, share.access_mode, share.attaches) == ("share", "ReadWriteMany", False)
    assert [one.elsewhere for one in made.targets[::2]] == [
        ("win-2", "win-3"), ("win-3", "win-1"), ("win-1", "win-2"),
    ]  # fmt: skip
    assert (made.refusals, made.left_out) == ((), ())


def test_nothing_runs_on_nodes_that_were_not_chosen() -> None:
    made = planned(THREE, nodes=("win-2", "win-3"))
    assert {one.node for one in made.targets} == {"win-2", "win-3"}
    assert {other for one in made.targets for other in one.elsewhere} == {"win-2", "win-3"}


def test_one_node_alone_is_read_nowhere_else_and_neither_is_what_shall_not_move() -> None:
    alone = planned([node("win-1")]).targets[0]
    assert (alone.elsewhere, alone.stays) == ((), "there is no other node to read it on")
    # A missing node outside of the request is not reported.
    assert {(target.elsewhere, target.stays) for target in planned(verify_reattach=False).targets} == {((), "")}


def test_a_node_that_cannot_be_used_is_left_out_of_all_but_refused_by_name() -> None:
    nodes = [node("win-1"), node("win-2", cordoned=True)]
    made = planned(nodes, ("vsphere",))
    assert [one.node for one in made.targets] == ["win-1"]
    assert made.targets[0].elsewhere == ()
    assert made.left_out == (
        ("vsphere", "win-2", "it is cordoned; when it may run pods again: kubectl uncordon win-2"),
    )
    assert made.refusals == ()
    named = planned(nodes, ("vsphere",), nodes=("win-1", "win-2"))
    assert named.refusals == (
        "vSphere on Node win-2: it is cordoned; when it may run pods again: kubectl uncordon win-2.",
    )


def test_a_node_that_is_not_windows_is_refused() -> None:
    (refusal,) = planned(nodes=("win-1", "linux-1")).refusals
    assert refusal == "Node linux-1 is not a Windows node of this cluster, expected one of win-1, win-2, win-3."


def test_no_node_at_all_is_a_refusal_and_not_a_success() -> None:
    assert "no Windows node to verify it on (there is none)" in planned([], ("vsphere",)).refusals[0]
    unregistered = [node("win-1", drivers=(SMB.name,))]
    (refusal,) = planned(unregistered).refusals
    assert "vSphere: no Windows node to verify it on (win-1: csi.vsphere.vmware.com is not in its CSINode" in refusal


def test_every_refusal_is_reported_at_once() -> None:
    made = planned(keys=("vsphere", "aws_ebs", "gce_pd"), nodes=("win-9",))
    assert len(made.refusals) == 3


def test_the_plan_reads_like_what_will_be_done() -> None:
    first = planned().describe_steps()[0]
    assert first == (
        "vsphere on win-1: a claim of 10Gi (disks, ReadWriteOnce), written by one pod, read back by another, and "
        "read on another node (win-2 or win-3)"
    )


def test_the_plan_names_the_volumes_that_will_stay() -> None:
    kept = {**CLASSES[0], "reclaimPolicy": "Retain"}
    (step,) = plan_verification(VerifyRequest((VSPHERE,)), [node("win-1")], [kept], {}).describe_steps()
    assert step.endswith("; the volume is kept, because disks retains volumes")
