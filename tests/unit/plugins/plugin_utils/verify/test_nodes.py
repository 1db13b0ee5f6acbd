# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a proof may run, and where a volume can go next."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import (
    ProofNode,
    can_reach,
    explain_unfit,
    explain_unschedulable,
)
from unit.plugins.plugin_utils.verify.clusters import WINDOWS, node

NAME = DRIVERS["vsphere"].name
DEDICATED = {"key": "team", "value": "shop", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("build", "image"),
    [
        ("10.0.17763", "ltsc2019"),
        ("10.0.20348.2700", "ltsc2022"),
        ("10.0.26100", "ltsc2025"),
    ],
)
def test_the_image_is_that_of_the_nodes_build(build: str, image: str) -> None:
    assert node("win-1", build=build).choose_image() == f"mcr.microsoft.com/windows/nanoserver:{image}"


def test_the_label_has_the_build_before_the_node_info() -> None:
    labelled = node("win-1", build="6.1.0", labels={"node.kubernetes.io/windows-build": "10.0.17763"})
    assert labelled.facts.build == "17763"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (node("win-1"), ""),
        (node("win-1", cordoned=True), "it is cordoned; when it may run pods again: kubectl uncordon win-1"),
        (node("win-1", ready=False), "it is not Ready: KubeletDown"),
        (node("win-1", taints=[WINDOWS, DEDICATED]), "taint team=shop:NoSchedule keeps the pod away"),
        (node("win-1", taints=[{"key": "x", "effect": "PreferNoSchedule"}]), ""),
        (node("win-1", taints=[{"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}]), ""),
        (node("win-1", taints=[{"key": "os", "value": "Linux", "effect": "NoSchedule"}]), "taint os=Linux:NoSchedule"),
        (node("win-1", build="10.0.19042"), "Windows build 19042, for which no image is known"),
        (node("win-1", build="unknown"), "no Windows build in its labels"),
    ],
)
def test_a_node_is_excluded_from_proofs_with_the_reason(found: ProofNode, why: str) -> None:
    assert explain_unschedulable(found, "", ()).startswith(why) if why else explain_unschedulable(found, "", ()) == ""


def test_an_image_and_tolerations_admit_their_nodes() -> None:
    assert explain_unschedulable(node("win-1", build="10.0.19042"), "mine:1", ()) == ""
    tainted = node("win-1", taints=[WINDOWS, DEDICATED])
    assert explain_unschedulable(tainted, "", ({"key": "team", "operator": "Exists"},)) == ""
    assert explain_unschedulable(tainted, "", ({"key": "team", "value": "shop", "effect": "NoSchedule"},)) == ""
    assert explain_unschedulable(tainted, "", ({"operator": "Exists"},)) == ""
    assert explain_unschedulable(tainted, "", ({"key": "team", "value": "bank"},)) != ""
    assert explain_unschedulable(tainted, "", ({"key": "team", "operator": "Exists", "effect": "NoExecute"},)) != ""


def test_a_pod_tolerates_the_windows_taints_of_its_node_only() -> None:
    found = node("win-1", taints=[WINDOWS, DEDICATED]).list_tolerations([{"operator": "Exists", "key": "mine"}])
    assert found == [
        {"key": "os", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"},
        {"operator": "Exists", "key": "mine"},
    ]


def test_a_node_without_the_driver_is_not_tried() -> None:
    assert explain_unfit(node("win-1"), NAME, "", ()) == ""
    assert explain_unfit(node("win-1", drivers=()), NAME, "", ()).startswith(f"{NAME} is not in its CSINode")
    assert explain_unfit(node("win-1", drivers=(), cordoned=True), NAME, "", ()).startswith("it is cordoned")


def test_a_volume_goes_where_its_affinity_lets_it() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    volume: dict[str, Any] = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}
    assert can_reach(node("win-1", labels={"zone": "a"}), volume)
    assert not can_reach(node("win-1", labels={"zone": "b"}), volume)
    assert can_reach(node("win-1"), {"spec": {}})
