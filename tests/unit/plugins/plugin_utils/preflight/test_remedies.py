# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Remedies that can work on the cluster that gets them."""

from __future__ import annotations

import re

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import CHECKS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from situations.cluster import csi, healthy, install, pod_spec, undecided, volume, workload
from situations.named import SITUATIONS, report_of
from situations.real_clusters import REAL_CLUSTERS
from situations.taken import PAIRS
from situations.world import World

# A command whose last word is a kind or a placeholder names no object.
_INCOMPLETE = re.compile(
    r"\b(kubectl|oc) (?!get|adm)[^;:(]*(\b(pvc|pv|pod|the node|delete|uncordon|describe)|\.\.\.)(?=[;:,)]|$)"
)


def list_reports() -> list[Report]:
    """The report of every situation."""
    reports = [report_of(name) for name in SITUATIONS]
    reports += [evaluate(pair.world(wrong=True).snapshot()) for pair in PAIRS.values()]
    reports += [evaluate(cluster.world(trouble=True).snapshot()) for cluster in REAL_CLUSTERS.values()]
    return reports


def remedies(world: World) -> dict[str, str]:
    return {finding.id: finding.remedy for finding in evaluate(world.snapshot()).findings}


def test_a_command_names_its_object_and_a_fixed_field_is_recreated() -> None:
    reports = list_reports()
    findings = [finding for report in reports for finding in report.findings]
    assert [finding for finding in findings if _INCOMPLETE.search(finding.remedy)] == []
    source = re.compile(r"\bfsType\b|readOnly|as server|source //")
    assert [
        finding
        for finding in findings
        if finding.object.startswith("PersistentVolume ")
        and source.search(finding.remedy)
        and not re.search("recreate|convert", finding.remedy)
    ] == []


@pytest.mark.parametrize(
    ("name", "id_"), [("a_claim_that_is_lost", "CSI-V23"), ("a_disk_that_is_being_deleted_and_not_attached", "CSI-V24")]
)
def test_an_interrupted_conversion_is_continued(name: str, id_: str) -> None:
    """Another volume, made by hand, would be in the way of its next run."""
    world = SITUATIONS[name].world()
    (claim,) = [claim for claim in world.of("PersistentVolumeClaim") if claim["metadata"]["name"] in ("lost", "late")]
    claim["metadata"].setdefault("annotations", {})["kubewin.io/convert"] = "ba6fa880c6ee0f38.4e2ea0c5/1"
    command = f"run convert_volumes with kubewin_convert_claims=shop/{claim['metadata']['name']}"
    found = [finding.remedy for finding in evaluate(world.snapshot()).findings if finding.id == id_]
    assert found
    assert all(remedy.startswith(f"if its conversion was interrupted, {command}; otherwise ") for remedy in found)


def test_each_assumption_has_a_command_except_what_a_driver_supports() -> None:
    kinds = {assumption.kind for report in list_reports() for assumption in report.assumptions}
    assert kinds >= {"admission", "room", "references", "drivers"}
    assert kinds - CHECKS.keys() == {"drivers"}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("aks", "az aks update --resource-group GROUP --name CLUSTER --enable-disk-driver"),
        ("gke", "gcloud container clusters update CLUSTER --update-addons=GcePersistentDiskCsiDriver=ENABLED"),
    ],
)
def test_a_managed_driver_that_is_off_is_switched_on_at_its_platform(name: str, command: str) -> None:
    world = REAL_CLUSTERS[name].world(trouble=False)
    plugins = ("csi-azuredisk-node-win", "pdcsi-node-windows")
    world.objects = [
        one for one in world.objects if one["kind"] != "CSIDriver" and not one["metadata"]["name"].startswith(plugins)
    ]
    for csi_node in world.of("CSINode"):
        csi_node["spec"]["drivers"] = []
    found = remedies(world)
    assert (found["CSI-D20"], found["CSI-G02"]) == (command, command)


def test_an_attacher_is_not_asked_for_where_the_drivers_manifest_has_none() -> None:
    world = healthy()
    install(world, "smb", "host_process")
    volume(world, "pv-x", csi("smb.csi.k8s.io", "x", ""), "x")
    workload(world, "Deployment", "x", pod_spec("x"), on=["win-1"])
    world.get("CSIDriver", "smb.csi.k8s.io")["spec"]["attachRequired"] = True
    assert remedies(world)["CSI-C14"] == (
        "recreate CSIDriver smb.csi.k8s.io with attachRequired: false, as in the driver's own manifest"
    )


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Job", "recreate it with spec.os.name and nodeSelector kubernetes.io/os"),
        ("StatefulSet", "add spec.os.name and nodeSelector kubernetes.io/os to its pod template"),
    ],
)
def test_the_pods_of_a_job_are_recreated_and_those_of_a_statefulset_changed(kind: str, remedy: str) -> None:
    world = healthy()
    volume(world, "pv-x", csi("csi.vsphere.vmware.com", "x"), "x")
    workload(world, kind, "x", undecided("x"))
    assert remedies(world)["CSI-W01"] == remedy


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        (
            "node.kubernetes.io/out-of-service",
            "repair the nodes, then: kubectl taint nodes win-1 win-2 node.kubernetes.io/out-of-service-",
        ),
        (
            "node.kubernetes.io/memory-pressure",
            "repair the nodes, and the taint goes: kubectl describe nodes win-1 win-2",
        ),
        ("node.kubernetes.io/os", "add a toleration to its pod template, or remove the taint"),
        ("team", "add a toleration to its pod template, or remove the taint"),
    ],
)
def test_a_taint_of_a_broken_node_is_not_tolerated(key: str, remedy: str) -> None:
    world = healthy()
    for name in ("win-1", "win-2"):
        world.get("Node", name)["spec"]["taints"].append({"key": key, "value": "", "effect": "NoSchedule"})
    report = evaluate(world.snapshot())
    findings = [finding for finding in report.findings if finding.object == "StatefulSet shop/db"]
    assert {finding.remedy for finding in findings} == {remedy}
