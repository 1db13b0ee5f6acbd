# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What refuses a conversion, one by one: each names the object, what was found, what was expected, and what helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.begin import create_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import (
    ConversionFacts,
    ConversionRequest,
    Eligibility,
    evaluate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionRecord, RecordedWorkload
from unit.plugins.plugin_utils.convert.world import PATH, claim, facts, node, pod, stateful_set, volume

REQUEST = ConversionRequest("shop", "data-db-0")
CSI = "csi.vsphere.vmware.com"


def evaluated(found: ConversionFacts, desired: ConversionRequest = REQUEST) -> Eligibility:
    return evaluate(found, desired)


def blocks(found: ConversionFacts, desired: ConversionRequest = REQUEST) -> dict[str, str]:
    """Lines of the blockers by their ids."""
    return {one.id: one.line() for one in evaluated(found, desired).findings if one.severity == "blocker"}


def test_a_migrated_volume_enters_with_its_workload_and_its_disks_id() -> None:
    entry = evaluated(facts())
    assert not entry.refused, entry.findings
    assert entry.handle == "fcd-1"
    assert entry.workloads == (RecordedWorkload("StatefulSet", "shop", "db", "set-uid", 2),)
    assert [finding.id for finding in entry.findings] == ["CSI-B33"]


def _claim(**changes: Any) -> dict[str, Any]:
    found = claim()
    for key, value in changes.items():
        found[key] = {**found[key], **value}
    return found


KEPT = volume()
KEPT["metadata"]["finalizers"].append("backup.example.com/protect")
ARGO = {"annotations": {"argocd.argoproj.io/tracking-id": "shop:v1/PersistentVolumeClaim:shop/data-db-0"}}
TWIN = {
    "metadata": {"name": "pv-2"},
    "spec": {"csi": {"driver": CSI, "volumeHandle": "fcd-1"}},
}
JOB = {"kind": "Job", "name": "import", "uid": "job-uid"}
PENDING_SNAPSHOT = {
    "metadata": {"name": "s1"},
    "spec": {"source": {"persistentVolumeClaimName": "data-db-0"}},
    "status": {"readyToUse": False},
}
CLONE = {
    "metadata": {"name": "copy", "namespace": "shop"},
    "spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "data-db-0"}},
    "status": {"phase": "Pending"},
}


@pytest.mark.parametrize(
    ("number", "found", "words"),
    [
        ("CSI-B01", facts(claim=None), "does not exist"),
        ("CSI-B01", facts(claim=_claim(status={"phase": "Lost"})), "it is Lost"),
        ("CSI-B03", facts(volume=volume({"cephfs": {}})), "expected one of awsElasticBlockStore"),
        ("CSI-B03", facts(volume=volume(volumeMode="Block")), "volumeMode Block"),
        ("CSI-B04", facts(migrations=[]), "no CnsVSphereVolumeMigration names it"),
        ("CSI-B05", facts(volumes=[volume(), TWIN]), "pv-2: it has the same disk as pv-1 (fcd-1)"),
        ("CSI-B06", facts(nodes=[]), "no Windows node matches the volume's node affinity"),
        ("CSI-B07", facts(nodes=[node(), node("win-2", "v1.27.4")]), "Node win-2: its kubelet v1.27.4 mounts"),
        ("CSI-B08", facts(nodes=[node(), node("win-2", drivers=())]), "Node win-2: csi.vsphere.vmware.com is not in its CSINode"),
        ("CSI-B09", facts(unhealthy="Deployment x/y has no ready pod"), "has no ready pod"),
        ("CSI-B10", facts(claim=_claim(metadata={"deletionTimestamp": "now"})), "it is being deleted"),
        ("CSI-B11", facts(claim=_claim(status={"conditions": [{"type": "Resizing"}]})), "being resized: conditions Resizing"),
        ("CSI-B11", facts(claim=_claim(status={"capacity": {"storage": "4Gi"}})), "5Gi requested, has 4Gi"),
        ("CSI-B12", facts(snapshots=[PENDING_SNAPSHOT]), "VolumeSnapshot s1 of it is not ready"),
        ("CSI-B12", facts(claims=[claim(), CLONE]), "PersistentVolumeClaim copy is being cloned from it"),
        ("CSI-B13", facts(claim=claim(annotations={"kubewin.io/convert": "abc/1"})), "locked by run abc"),
        ("CSI-B14", facts(pods=[pod(None, "debug")]), "pod shop/debug: no controller recreates it"),
        ("CSI-B15", facts(pods=[pod(JOB, "import-x")]), "pod shop/import-x: it belongs to Job import"),
        ("CSI-B16", facts(sets=[stateful_set(persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})]), "whenScaled: Delete"),
        ("CSI-B17", facts(claim=claim(**ARGO)), "Argo CD manages it"),
        ("CSI-B21", facts(volume=KEPT), "PersistentVolume pv-1: finalizer backup.example.com/protect blocks its deletion"),
        ("CSI-B18", facts(storage_class=None), "StorageClass thin does not exist"),
    ],
)  # fmt: skip
def test_refused(number: str, found: ConversionFacts, words: str) -> None:
    lines = blocks(found)
    assert list(lines) == [number], lines
    assert words in lines[number]
    assert " -> " in lines[number]


def test_a_node_without_the_drivers_topology_could_not_have_the_new_volume() -> None:
    found = volume()
    found["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    lines = blocks(facts(volume=found))
    assert list(lines) == ["CSI-B20"]
    assert (
        "win-1 can mount it, but could not mount the native volume, expected labels topology.csi.vmware.com/zone"
        in lines["CSI-B20"]
    )
    labelled, csi_node = node()
    labelled["metadata"]["labels"]["topology.csi.vmware.com/zone"] = "a"
    assert not blocks(facts(volume=found, nodes=[(labelled, csi_node)]))


def test_a_native_volume_needs_nothing() -> None:
    native = volume({"csi": {"driver": CSI, "volumeHandle": "fcd-1"}})
    del native["spec"]["csi"]["driver"]
    native["spec"]["csi"]["driver"] = CSI
    assert [one.id for one in evaluated(facts(volume=native)).findings] == ["CSI-B02"]


def test_claims_of_argo_are_converted_on_request() -> None:
    allowed = ConversionRequest("shop", "data-db-0", managed=True)
    assert not evaluated(facts(claim=claim(**ARGO)), allowed).refused


def test_a_node_before_the_end_of_the_plugin_may_report_that_it_is_migrated() -> None:
    old, csi_node = node("win-2", "v1.27.4")
    csi_node["metadata"]["annotations"] = {
        "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/vsphere-volume"
    }
    assert not evaluated(facts(nodes=[(old, csi_node)])).refused


@pytest.mark.parametrize(("kubelet", "enters"), [("v1.28.9", False), ("v1.29.5", True), ("v1.30.0", True), ("", False)])
def test_a_node_that_lists_nothing_is_evaluated_by_its_kubelet_as_preflight_evaluates_it(
    kubelet: str, enters: bool
) -> None:
    found, csi_node = node("win-2", kubelet)
    csi_node["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": ""}
    assert list(blocks(facts(nodes=[(found, csi_node)]))) == ([] if enters else ["CSI-B07"])


def test_a_kind_that_left_kubernetes_altogether_is_refused_for_that_alone() -> None:
    gone = volume({"rbd": {"image": "i", "monitors": ["m"]}})
    assert set(blocks(facts(volume=gone, nodes=[node("win-1", "v1.31.0", ("rbd.csi.ceph.com",))]))) == {"CSI-B03"}


def test_a_deployment_is_found_behind_its_replica_set_and_by_its_template() -> None:
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d"},
        "spec": {"replicas": 1, "template": pod(None)},
    }
    owned = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d", "controller": True}]}
    replica_set = {"kind": "ReplicaSet", "metadata": {"name": "web-1", "uid": "r", **owned}, "spec": {}}
    sets = [deployment, replica_set]
    web = RecordedWorkload("Deployment", "shop", "web", "d", 1)
    by_pod = facts(sets=sets, pods=[pod({"kind": "ReplicaSet", "name": "web-1", "uid": "r"}, "web-1-x")])
    assert evaluated(by_pod).workloads == (web,)
    assert evaluated(facts(sets=sets, pods=[])).workloads == (web,)


def second(**metadata: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The claim of the set's second pod, with its volume."""
    reference = {"namespace": "shop", "name": "data-db-1", "uid": "claim-uid"}
    return claim(name="data-db-1", **metadata), volume(claimRef=reference)


SECOND = ConversionRequest("shop", "data-db-1")


def test_a_set_at_zero_replicas_still_owns_all_its_claims() -> None:
    stopped = facts(sets=[stateful_set(replicas=0)], pods=[])
    assert evaluated(stopped).workloads[0].replicas == 0
    its, disk = second()
    found = replace(stopped, claim=its, volume=disk)
    assert evaluated(found, SECOND).workloads == (RecordedWorkload("StatefulSet", "shop", "db", "set-uid", 0),)
    spoiled = stateful_set(replicas=0, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})
    spoiled["metadata"].update(ARGO)
    assert set(blocks(replace(found, sets=[spoiled]), SECOND)) == {"CSI-B16", "CSI-B17"}


@pytest.mark.parametrize("name", ["data-db", "data-db-x", "logs-db-0", "data-db-1-0"])
def test_claims_of_other_names_are_not_a_sets(name: str) -> None:
    its = claim(name=name)
    disk = volume(claimRef={"namespace": "shop", "name": name, "uid": "claim-uid"})
    assert evaluated(facts(claim=its, volume=disk, pods=[]), ConversionRequest("shop", name)).workloads == ()


def first_record() -> ConversionRecord:
    """The conversion of the first pod's claim, which has stopped the set."""
    found = facts()
    return create_record(found, evaluate(found, REQUEST), REQUEST, "k1").move_to("baseline")


def stopped_by(*records: ConversionRecord, replicas: int = 0, lock: str = "") -> ConversionFacts:
    """The second pod's claim, while these records are there and the first one's claim may be locked."""
    its, disk = second()
    locked = claim(annotations={"kubewin.io/convert": lock}) if lock else claim()
    sets = [stateful_set(replicas=replicas)]
    return facts(claim=its, volume=disk, claims=[locked, its], sets=sets, pods=[], records=records)


def test_a_conversion_of_another_claim_of_the_workload_blocks() -> None:
    begun = first_record()
    reported = (
        f"CSI-B22 StatefulSet shop/db: run {begun.run} converts its PersistentVolumeClaim shop/data-db-0 and is at "
        "step baseline (forward), expected one conversion of a workload at a time"
    )
    for replicas in (0, 2):
        lines = blocks(stopped_by(begun, begun.advance(), replicas=replicas), SECOND)
        assert list(lines) == ["CSI-B22"]
    lines = blocks(stopped_by(begun), SECOND)
    assert reported in lines["CSI-B22"]
    assert "Name that claim too, which is then converted first, or roll it back" in lines["CSI-B22"]
    assert list(blocks(stopped_by(begun.roll_back("asked")), SECOND)) == ["CSI-B22"]


def test_a_claim_that_released_the_workload_or_precedes_or_belongs_to_another_does_not_block() -> None:
    begun = first_record()
    found = stopped_by(begun, lock=f"{begun.lock}/1")
    assert not evaluate(found, SECOND, ["data-db-0", "data-db-1"]).refused
    assert not blocks(stopped_by(begun.move_to("finish"), lock=f"{begun.lock}/1"), SECOND)
    others = replace(begun, workloads=(RecordedWorkload("Deployment", "shop", "web", "d", 1),))
    assert not blocks(stopped_by(others), SECOND)


def test_everything_in_the_way_is_named_at_once() -> None:
    spoiled = facts(nodes=[node("win-2", "v1.27.4", ())], storage_class=None, migrations=[])
    assert set(blocks(spoiled)) == {"CSI-B04", "CSI-B07", "CSI-B08", "CSI-B18"}
    assert PATH in blocks(spoiled)["CSI-B04"]
