# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps that bind, provision and schedule: each rule, beside a twin that differs in one field and is ready."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.admission import Admission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.external_provisioner import (
    ExternalProvisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.persistent_volume_controller import (
    PersistentVolumeController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.cluster import ObservedCluster
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.nodes import ObservedCsiNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot, Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import (
    ObservedAttachment,
    ObservedClass,
    ObservedVolume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.framework import Scheduler
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import StepAnswer
from situations.cluster import claim_of, healthy
from situations.placing import CASES, Case, Plant, both, unbound, unread, waiting
from situations.random_clusters import MARK, ZONE, Cluster, list_cuts, made
from situations.smaller import smallest
from situations.world import NOW, World, observed_pod, to_start

# What may not be read, and the step that depends on it.
UNREAD = (
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "deployments",
    "csinodes",
    "pods",
    "nodes",
)


def gone(resource: str) -> Plant:
    """A list that may not be read is empty. The pod and the nodes are the input."""
    kinds = {
        "persistentvolumeclaims": "PersistentVolumeClaim",
        "persistentvolumes": "PersistentVolume",
        "storageclasses": "StorageClass",
        "deployments": "Deployment",
        "csinodes": "CSINode",
    }

    def plant(world: World) -> None:
        world.objects = [one for one in world.objects if one["kind"] != kinds.get(resource)]

    return plant


def answers(plant: Plant, node: str = "") -> tuple[Index, list[StepAnswer]]:
    """The answers of the three steps for pod web on one node, on all nodes without one; one answer for each node."""
    world = waiting()
    plant(world)
    index = Index(world.snapshot())
    [web] = [one for one in index.snapshot.pods if one.name == "web"]
    pod = to_start(web)
    claims = Claims(index)
    nodes = index.bit[node] if node else index.all
    found = Admission(index)(pod, nodes)
    for step in (
        PersistentVolumeController(index, claims),
        ExternalProvisioner(index, claims),
        Scheduler(index, claims),
    ):
        expected = step(pod, nodes)
        # The walk reports inline volumes as such: nothing binds or provisions them.
        named = [one.volume_key for one in claims.list_requests(pod)]
        for about in ["", *named] if isinstance(step, Scheduler) else named:
            covered = [one.nodes for one in expected if one.volume == about]
            assert sum(covered) == nodes
            for one in covered:
                assert one
        found += expected
    return index, found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_rule_finds_its_case(case: Case) -> None:
    reported = [one for one in answers(case.plant, "win-1")[1] if one.answer != "yes"]
    assert {(one.step, one.answer) for one in reported} >= {(case.step, case.word)}, reported
    assert case.finding in {finding.id for one in reported for finding in one.findings if one.step == case.step}
    for one in reported:
        assert one.because
        assert one.findings


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_twin_is_ready(case: Case) -> None:
    assert [one for one in answers(case.ready, "win-1")[1] if one.answer != "yes"] == []


def test_each_node_is_answered_for() -> None:
    index, found = answers(lambda world: None)
    blocked = [one for one in found if one.answer == "no"]
    assert {one.nodes for one in blocked} == {index.linux}


def paper(seed: int) -> Snapshot:
    """A random cluster as it would be read, with things in it that no rule knows."""
    cluster, luck = made(str(seed)), random.Random(seed)
    for one in cluster.volumes:
        one["status"] = {"phase": luck.choice(["Available", "Bound", "Released", "Failed", "Strange"])}
        if luck.random() < 0.2:
            one["spec"] = {"newKind": {"id": "x"}, "accessModes": ["ReadWriteSometimes"]}
    for one in cluster.claims:
        one["metadata"]["namespace"] = "@x"
        one["status"] = {"phase": luck.choice(["Pending", "Bound", "Lost", "Strange", ""])}
        if luck.random() < 0.2:
            one["spec"] |= luck.choice([{"selector": {}}, {"dataSource": {"kind": "New"}}, {"accessModes": ["New"]}])
    for one in cluster.classes:
        if luck.random() < 0.3:
            one.update(
                luck.choice([{"volumeBindingMode": "New"}, {"provisioner": "new.example.com"}, {"provisioner": ""}])
            )
    for number, one in enumerate(cluster.pods):
        one["metadata"]["namespace"] = "@x"
        one["status"] = {"phase": "Running"}
        if luck.random() < 0.2:
            one["spec"]["tolerations"] = [{"key": "team", "operator": "New"}]
        if number < 3:
            one["spec"]["nodeName"] = luck.choice(cluster.nodes)["metadata"]["name"]
    resources = ("pods", "persistentvolumes", "persistentvolumeclaims", "storageclasses", "csinodes", "deployments")
    return Snapshot(
        taken_at=NOW,
        cluster=ObservedCluster("v1.36.3"),
        nodes=tuple(map(ObservedNode.from_object, cluster.nodes)),
        csi_nodes=tuple(map(ObservedCsiNode.from_object, cluster.csi_nodes)),
        volumes=tuple(map(ObservedVolume.from_object, cluster.volumes)),
        claims=tuple(map(ObservedClaim.from_object, cluster.claims)),
        classes=tuple(map(ObservedClass.from_object, cluster.classes)),
        attachments=tuple(map(ObservedAttachment.from_object, cluster.attachments)),
        pods=tuple(map(observed_pod, cluster.pods)),
        unread=(Unread(luck.choice(resources), "may not be read"),) if luck.random() < 0.3 else (),
    )


@pytest.mark.parametrize("seed", range(150))
def test_every_pod_has_an_answer_of_every_step_for_every_node(seed: int) -> None:
    index = Index(paper(seed))
    claims = Claims(index)
    steps = (PersistentVolumeController(index, claims), ExternalProvisioner(index, claims), Scheduler(index, claims))
    for observed in index.snapshot.pods:
        pod = to_start(observed)
        for step in steps:
            expected = step(pod, index.all)
            for about in pod.volumes or ("",):
                whole = [one.nodes for one in expected if one.volume == "" != about]
                nodes = [one.nodes for one in expected if one.volume == about] or whole
                assert sum(nodes) == index.all
            for one in expected:
                assert one.nodes
                assert one.because or one.answer == "yes"
                assert one.answer == "yes" or one.findings


def test_a_disagreement_is_shown_with_nothing_that_it_does_not_need() -> None:
    found = next(one for one in map(made, map(str, range(4, 99))) if len(one.pods[-1]["spec"]["volumes"]) > 1)
    tries = 0

    def same(clusters: Sequence[Cluster]) -> list[bool]:
        """Whether the last pod has a claim that a node's zone goes with."""
        nonlocal tries
        tries += 1
        return [
            any(ZONE in node["metadata"]["labels"] for node in one.nodes)
            and bool(
                {volume["name"] for volume in one.pods[-1]["spec"]["volumes"]}
                & {each["metadata"]["name"][1:] for each in one.claims}
            )
            for one in clusters
        ]

    small = smallest(found, same, list_cuts)
    assert (len(small.nodes), len(small.claims), len(small.pods), len(small.pods[0]["spec"]["volumes"])) == (1, 1, 1, 1)
    assert set(small.nodes[0]["metadata"]["labels"]) == {MARK, ZONE}
    assert not [*small.csi_nodes, *small.classes, *small.volumes, *small.attachments]
    assert tries < 12


@pytest.mark.parametrize("resource", UNREAD)
def test_what_was_not_read_is_never_taken_for_missing(resource: str) -> None:
    spoilt = both(unbound() if resource in ("storageclasses", "deployments") else lambda world: None, unread(resource))
    reported = answers(both(spoilt, gone(resource)), "win-1")[1]
    assert not [one for one in reported if one.answer == "no"]


@pytest.mark.parametrize(("kubernetes", "expected"), [("v1.25.16", ""), ("v1.26.0", "vsphere-csi-windows")])
def test_a_claim_from_before_the_default_class_gets_it_where_the_control_plane_sets_it_later(
    kubernetes: str, expected: str
) -> None:
    world = healthy()
    world.get("StorageClass", "vsphere-csi-windows")["metadata"]["annotations"] = {
        "storageclass.kubernetes.io/is-default-class": "true"
    }
    claim_of(world, "early", storage_class=None)
    snapshot = world.snapshot()
    index = Index(replace(snapshot, cluster=replace(snapshot.cluster, kubernetes=kubernetes)))
    assert Claims(index).read_request(index.claims["shop/early"]).storage_class == expected
