# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""On which system a workload runs is decided by the first rule that can, and the rule is named."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import wire
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import pod_is_evaluated
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.usage import Workload, find_usage
from situations.cluster import SHOP, csi, healthy, owner_reference, pod, pod_spec, undecided, volume, workload
from situations.world import World


def decided(world: World, key: str) -> Workload:
    found = find_usage(Index(world.snapshot()))
    return next(one for one in found.workloads if one.key == key)


def one_with(**spec: Any) -> World:
    """A cluster with a Deployment whose pods have only this placement, none of them on a node."""
    world = healthy()
    volume(world, "pv-x", csi("csi.vsphere.vmware.com", "x"), "x", **spec.pop("of_volume", {}))
    scheduling = {"nodeSelector": {"kubernetes.io/os": "windows"}, "tolerations": [{"operator": "Exists"}]}
    world.add("RuntimeClass", "win", handler="runhcs-wcow-process", scheduling=scheduling)
    claims = spec.pop("claims", {})
    workload(world, "Deployment", "x", undecided("x", **spec), replicas=1)
    world.get("PersistentVolumeClaim", "x", SHOP)["metadata"]["annotations"].update(claims)
    return world


def zone(value: str) -> dict[str, Any]:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [value]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def hostnames(*names: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


RULES: list[tuple[str, dict[str, Any], str, str]] = [
    ("its own word", {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "linux"}}, "windows", "spec.os.name"),
    ("its own word for the other", {"os": {"name": "linux"}}, "linux", "spec.os.name"),
    ("the label", {"nodeSelector": {"kubernetes.io/os": "windows"}}, "windows", "nodeSelector kubernetes.io/os"),
    ("the old label", {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}, "linux", "nodeSelector beta.kubernetes.io/os"),
    ("a build", {"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.1"}}, "windows", "windows-build"),
    ("any other label", {"nodeSelector": {"kubernetes.io/hostname": "win-1"}}, "windows", "match Windows nodes only"),
    ("affinity", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": hostnames("linux-1")}}}, "linux", "affinity match"),
    ("a runtime class", {"runtimeClassName": "win", "tolerations": []}, "windows", "match Windows nodes only"),
    ("taints", {"tolerations": []}, "linux", "tolerations"),
    ("where its volume is", {"of_volume": {"nodeAffinity": {"required": hostnames("win-1", "win-2")}}}, "windows", "claim shop/x"),
    ("where its volume is, on the other", {"of_volume": {"nodeAffinity": {"required": hostnames("linux-2")}}}, "linux", "claim shop/x"),
    ("nothing", {}, "mixed", "nothing restricts it"),
    ("a selector that fits nothing", {"nodeSelector": {"a": "b"}}, "unknown", "match no node"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "system", "because"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_the_first_rule_that_can_decides(spec: dict[str, Any], system: str, because: str) -> None:
    found = decided(one_with(**dict(spec)), "Deployment shop/x")
    assert found.system == system, found.because
    assert because in found.because


def test_the_nodes_of_its_pods_outrank_its_template() -> None:
    world = one_with(os={"name": "linux"})
    owner = owner_reference("Deployment", "x", SHOP)
    world.add("ReplicaSet", "x-1", SHOP, metadata={"ownerReferences": [owner]}, spec={"replicas": 1})
    pod(world, "x-1-a", undecided("x"), on="win-1", owner=owner_reference("ReplicaSet", "x-1", SHOP))
    found = decided(world, "Deployment shop/x")
    assert (found.system, found.because) == ("windows", "pod shop/x-1-a is on Windows node win-1")
    pod(world, "x-1-b", undecided("x"), on="linux-1", owner=owner_reference("ReplicaSet", "x-1", SHOP))
    assert decided(world, "Deployment shop/x").system == "mixed"


def test_a_claim_that_waits_for_a_node_names_the_system_of_its_workload() -> None:
    world = one_with(claims={"volume.kubernetes.io/selected-node": "win-2"})
    world.get("PersistentVolumeClaim", "x", SHOP)["spec"].pop("volumeName")
    found = decided(world, "Deployment shop/x")
    assert (found.system, "claim shop/x" in found.because) == ("windows", True)


def test_claims_of_a_set_are_those_of_its_ordinals_and_no_spare_ones() -> None:
    world = healthy()
    for number in (2, 3, 4):
        volume(world, f"pv-more-{number}", csi("csi.vsphere.vmware.com", f"m{number}"), f"data-db-{number}")
    volume(world, "pv-other", csi("csi.vsphere.vmware.com", "o"), "data-db-x")
    world.get("StatefulSet", "db", SHOP)["spec"].update(ordinals={"start": 2}, replicas=2)
    found = decided(world, "StatefulSet shop/db")
    # The pods of the first two are still there.
    assert {claim for claim in found.claims if "data-db" in claim} == {f"shop/data-db-{number}" for number in range(4)}


def test_a_job_of_a_cron_job_and_the_pods_of_a_deployment_are_one_workload() -> None:
    world = healthy()
    volume(world, "pv-n", csi("csi.vsphere.vmware.com", "n"), "n")
    workload(world, "CronJob", "n", undecided("n"))
    owner = owner_reference("CronJob", "n", SHOP)
    world.add("Job", "n-1", SHOP, metadata={"ownerReferences": [owner]}, spec={"template": {"spec": undecided("n")}})
    pod(world, "n-1-a", undecided("n"), on="win-1", owner=owner_reference("Job", "n-1", SHOP))
    found = find_usage(Index(world.snapshot()))
    assert [one.key for one in found.users["shop/n"]] == ["CronJob shop/n"]
    assert [one.key for one in found.users["shop/share"]] == ["Deployment shop/feed", "Deployment shop/web"]


@pytest.mark.parametrize(
    ("labels", "evaluated"), [({}, True), ({"app.kubernetes.io/managed-by": "kubewin.csi"}, False)]
)
def test_a_pod_that_a_killed_run_left_behind_is_not_evaluated(labels: dict[str, str], evaluated: bool) -> None:
    left = {"metadata": {"namespace": SHOP, "name": "left", "labels": labels}, "spec": pod_spec("left")}
    page = msgspec.json.decode(json.dumps({"items": [left]}), type=wire.PodList)
    assert pod_is_evaluated(page["items"][0], frozenset()) is evaluated
