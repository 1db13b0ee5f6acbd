# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's in-tree era: old kubelets mount in-tree volumes themselves, their upgrade takes that away, and nothing is lost."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import storage
from integration.kube import install_csi_proxy, pipes
from integration.storage import ATTACHMENTS, CLAIMS, PODS, VOLUMES, claim, pod, reported, runs, storage_class
from integration.test_lab_cluster import daemonset
from lab import handle
from lab.cluster import era, in_tree, nodes, openshift, vsphere, workload
from lab.cluster.api import Object
from lab.cluster.settings import Wmco
from lab.handle import Lab, eventually

OLD, NEW = "v1.26.9", "v1.27.11"
MIGRATIONS = "/apis/cns.vmware.com/v1alpha1/cnsvspherevolumemigrations"
DAEMONSETS = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
IN_TREE = "kubernetes.io/vsphere-volume"
CLASSES_OF_KINDS = {
    "thin": (IN_TREE, {"diskformat": "thin", "fstype": "ntfs"}),
    "gp2": ("kubernetes.io/aws-ebs", {"type": "gp2", "fsType": "ntfs"}),
    "managed": ("kubernetes.io/azure-disk", {"skuName": "Premium_LRS", "kind": "Managed", "fsType": "ntfs"}),
    "azurefile": ("kubernetes.io/azure-file", {"skuName": "Standard_LRS"}),
    "standard": ("kubernetes.io/gce-pd", {"type": "pd-standard", "fstype": "ntfs"}),
}


@pytest.fixture(scope="module")
def old() -> Iterator[Lab]:
    """Two nodes with kubelets of the era, the first with a host and csi-proxy, and no driver on them."""
    made = handle.start(f"era-{os.getpid()}", nodes=2, hosts=1, kubelets={"win-1": OLD, "win-2": OLD})
    install_csi_proxy(made, "win-1")
    storage.make_namespace(made)
    with made.settings(pipes_without_host=True):
        for name, (provisioner, parameters) in CLASSES_OF_KINDS.items():
            storage_class(made, name, provisioner, parameters)
        for driver in in_tree.PROVISIONERS.values():
            body = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver}}
            made.api.ensure(DRIVERS, {**body, "spec": {"attachRequired": driver != in_tree.AZURE_FILE}})
        yield made
    made.stop()


def volume_of(lab: Lab, name: str) -> Object:
    """The PersistentVolume of a claim."""
    bound = eventually(lambda: lab.api.get(f"{CLAIMS}/{name}")["spec"].get("volumeName"), f"{name} is bound")
    return lab.api.get(f"{VOLUMES}/{bound}")


def disk_of(lab: Lab, volume: Object) -> Path:
    """The directory behind a volume."""
    served = in_tree.served_by(volume)
    assert served is not None
    wanted = (served[0], in_tree.disk(*served))
    (folder,) = (one for one in storage.folders(lab) if (one.parent.name, urllib.parse.unquote(one.name)) == wanted)
    return folder


def attached(lab: Lab, node: str) -> list[str]:
    return [one["name"] for one in storage.status(lab, node).get("volumesAttached") or []]


def test_an_old_kubelet_mounts_an_in_tree_volume_without_any_driver(old: Lab) -> None:
    claim(old, "data", "thin")
    pod(old, "app", "data", "win-1")
    runs(old, "app")
    volume = volume_of(old, "data")
    told_by = volume["metadata"]["annotations"]
    assert told_by["pv.kubernetes.io/provisioned-by"] == IN_TREE
    eventually(
        lambda: old.api.get(f"{VOLUMES}/{volume['metadata']['name']}")["metadata"]["annotations"].get(
            "pv.kubernetes.io/migrated-to") == vsphere.DRIVER,
        "the controller manager, which knows of the migration, says so",
    )  # fmt: skip
    unique = f"{IN_TREE}/{volume['spec']['vsphereVolume']['volumePath']}"
    assert storage.status(old, "win-1")["volumesInUse"] == attached(old, "win-1") == [unique]
    assert not old.api.items(ATTACHMENTS)
    listed = old.api.get(f"{nodes.CSI_NODES}/win-1")["metadata"]["annotations"][era.MIGRATED_PLUGINS]
    assert IN_TREE not in listed
    assert "kubernetes.io/azure-disk" in listed
    storage.gone(old, f"{PODS}/app")
    eventually(lambda: not attached(old, "win-1"), "detached")
    storage.gone(old, f"{CLAIMS}/data")


def test_a_disk_is_attached_to_one_node_only(old: Lab) -> None:
    claim(old, "one", "thin")
    pod(old, "here", "one", "win-1")
    runs(old, "here")
    pod(old, "there", "one", "win-2")
    reported(old, "there FailedAttachVolume", "Multi-Attach error")
    storage.gone(old, f"{PODS}/here")
    runs(old, "there")
    assert len(attached(old, "win-2")) == 1
    storage.gone(old, f"{PODS}/there")
    storage.gone(old, f"{CLAIMS}/one")


@pytest.mark.parametrize("name", CLASSES_OF_KINDS)
def test_every_kind_is_made_and_deleted_by_its_driver_and_stays_in_tree_in_the_api(old: Lab, name: str) -> None:
    """What a claim of an in-tree class gets once the control plane is migrated. 1.26 mounts one kind itself, the others not."""
    provisioner, _parameters = CLASSES_OF_KINDS[name]
    claim(old, name, name)
    pod(old, name, name, "win-1")
    volume = volume_of(old, name)
    assert "csi" not in volume["spec"]
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == provisioner
    folder = disk_of(old, volume)
    if provisioner == IN_TREE:
        runs(old, name)
    else:
        event = "FailedMount" if provisioner == "kubernetes.io/azure-file" else "FailedAttachVolume"
        reported(old, f"{name} {event}", in_tree.PROVISIONERS[provisioner])
    storage.gone(old, f"{PODS}/{name}")
    storage.gone(old, f"{CLAIMS}/{name}")
    eventually(lambda: not folder.exists(), f"the disk of {name} is gone")
    eventually(lambda: not storage.volumes(old), "and its volume")


# What the first design document's repair does ("delete the claim, then the pod; it will be provisioned again"), tried here so
# as evidence why this collection never does it: claims and volumes are never deleted to convert them.


def write(lab: Lab, name: str) -> None:
    assert storage.run(lab, name, "cmd", "/c", f"echo years of orders>{storage.MOUNT}\\orders.txt") == (0, "", "")


def with_controller(lab: Lab, kind: str, storage_class_name: str) -> Object:
    """A Deployment with a claim beside it, or a StatefulSet that makes its own; answers the PersistentVolume."""
    labels = {"app": "shop"}
    template = storage.pod_body("shop", "data-shop-0", "win-1")
    spec: Object = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
    }
    if kind == "StatefulSet":
        del template["spec"]["volumes"]
        wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class_name,
                  "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
        spec.update(serviceName="shop", volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": wanted}])
    else:
        claim(lab, "data-shop-0", storage_class_name)
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "shop"}, "spec": spec}
    lab.api.post(f"/apis/apps/v1/namespaces/{storage.NAMESPACE}/{kind.lower()}s", body)
    name = eventually(lambda: running(lab), "the shop runs")
    write(lab, name)
    return volume_of(lab, "data-shop-0")


def running(lab: Lab) -> str:
    found = lab.pods("app=shop", storage.NAMESPACE)
    return next((one["metadata"]["name"] for one in found if one["status"].get("phase") == "Running"), "")


def the_destructive_step(lab: Lab) -> None:
    """Delete the claim, then the pod, as in the document."""
    pod_name = running(lab)
    lab.api.delete(f"{CLAIMS}/data-shop-0")
    lab.api.delete(f"{PODS}/{pod_name}")


def close(lab: Lab, kind: str) -> None:
    lab.api.delete(f"/apis/apps/v1/namespaces/{storage.NAMESPACE}/{kind.lower()}s/shop")
    eventually(lambda: not lab.api.items(PODS), "its pods are gone")
    lab.api.gone(f"{CLAIMS}/data-shop-0")
    eventually(lambda: not storage.volumes(lab), "and its volumes")


def test_deleting_claim_and_pod_deletes_the_disk_and_the_claim_is_not_created_again(old: Lab) -> None:
    """Policy Delete, which is the default of every dynamic class, and a Deployment, which does not own its claim.

    Why the collection never does this: external-provisioner deletes the disk behind a migrated volume although the object
    is in-tree to look at. Nothing is "provisioned again": the new pod waits for a claim that is gone. What the step was to
    cure is no disease either, since a volume that is served by CSI keeps its in-tree source for ever.
    """
    folder = disk_of(old, with_controller(old, "Deployment", "thin"))
    assert (folder / "orders.txt").is_file()
    the_destructive_step(old)
    eventually(lambda: not folder.exists(), "the disk with all its data is gone")
    eventually(lambda: not old.api.ok(f"{CLAIMS}/data-shop-0"), "and so is the claim")
    (successor,) = eventually(lambda: old.pods("app=shop", storage.NAMESPACE), "there is a new pod")
    reported(old, f"{successor['metadata']['name']} FailedScheduling", 'persistentvolumeclaim "data-shop-0" not found')
    assert storage.phase(old, successor["metadata"]["name"]) == "Pending"
    close(old, "Deployment")


def test_deleting_claim_and_pod_of_a_set_gives_it_a_new_and_empty_disk_that_is_in_tree_again(old: Lab) -> None:
    """The same with a StatefulSet: it comes up, healthy to look at, without its data.

    And the check of that document ("does it still say in-tree?") finds the new volume as in-tree as the old one was, so its
    reader deletes once more: a disk is lost at every turn.
    """
    volume = with_controller(old, "StatefulSet", "thin")
    folder = disk_of(old, volume)
    the_destructive_step(old)
    eventually(lambda: not folder.exists(), "the disk with all its data is gone")
    eventually(lambda: running(old), "the set is healthy again")
    successor = volume_of(old, "data-shop-0")
    assert successor["metadata"]["uid"] != volume["metadata"]["uid"]
    assert successor["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == IN_TREE
    assert "vsphereVolume" in successor["spec"]
    assert list(disk_of(old, successor).iterdir()) == []
    close(old, "StatefulSet")


def test_with_retain_the_workload_gets_an_empty_disk_and_the_old_one_is_left_behind(old: Lab) -> None:
    """Policy Retain saves the bytes, on a Released volume that nothing binds; the workload runs on an empty disk."""
    storage_class(old, "kept", IN_TREE, {"diskformat": "thin"}, reclaim="Retain")
    volume = with_controller(old, "StatefulSet", "kept")
    folder = disk_of(old, volume)
    the_destructive_step(old)
    eventually(lambda: running(old) and volume_of(old, "data-shop-0")["metadata"]["uid"] != volume["metadata"]["uid"],
               "the set is healthy again, on another volume")  # fmt: skip
    assert (folder / "orders.txt").read_bytes() == b"years of orders\r\n"
    assert old.api.get(f"{VOLUMES}/{volume['metadata']['name']}")["status"]["phase"] == "Released"
    assert list(disk_of(old, volume_of(old, "data-shop-0")).iterdir()) == []
    for one in storage.volumes(old):
        body = {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}
        old.api.patch(f"{VOLUMES}/{one['metadata']['name']}", body)
    close(old, "StatefulSet")


def test_a_nodes_upgrade_hands_its_volumes_to_the_driver_with_what_is_on_them(old: Lab) -> None:
    """And a disk that an old node holds is attached nowhere else meanwhile, although no VolumeAttachment shows it."""
    old.api.post(DAEMONSETS, daemonset())
    eventually(lambda: all(old.registered(node) for node in ("win-1", "win-2")), "the driver on both nodes")
    claim(old, "orders", "thin")
    body = storage.pod_body("before", "orders", "win-2")
    body["metadata"]["annotations"] = {workload.WRITES: f"{storage.MOUNT}\\times.txt"}
    old.api.post(PODS, body)
    runs(old, "before")
    folder = disk_of(old, volume_of(old, "orders"))
    eventually(lambda: len(lines(folder)) > 1, "it writes")

    nodes.upgrade(old.api, "win-1", NEW)
    body["metadata"]["name"] = "after"
    body["spec"]["affinity"] = storage.pod_body("after", "orders", "win-1")["spec"]["affinity"]
    old.api.post(PODS, body)
    reported(old, "after FailedAttachVolume", "the disk is in use by the virtual machine win-2")
    assert [one["status"]["attached"] for one in old.api.items(ATTACHMENTS)] == [False]
    written = lines(folder)
    storage.gone(old, f"{PODS}/before")
    runs(old, "after")
    unique = f"kubernetes.io/csi/{vsphere.DRIVER}^[datastore1]"
    (name,) = eventually(lambda: attached(old, "win-1"), "the controller's word")
    assert name.startswith(unique)
    assert not attached(old, "win-2")
    count = len(lines(folder))
    assert lines(folder)[: len(written)] == written
    eventually(lambda: len(lines(folder)) > count, "it continues to write into the same file")
    assert len(old.api.items(MIGRATIONS)) == 1


def lines(folder: Path) -> list[str]:
    """None before the first was written, which a pod does after it began to run."""
    file = folder / "times.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_the_syncer_receives_a_deleted_volume_late_or_only_in_its_full_sync(old: Lab) -> None:
    (registered,) = old.api.items(MIGRATIONS)
    with old.settings(pipes_without_host=True, syncer_misses=True):
        storage.gone(old, f"{PODS}/after")
        storage.gone(old, f"{CLAIMS}/orders")
        eventually(lambda: not storage.volumes(old), "the volume is gone")
        assert old.api.items(MIGRATIONS) == [registered]
        with old.settings(pipes_without_host=True, full_sync=0.5, syncer_stuck=True):
            eventually(lambda: not old.api.items(ATTACHMENTS), "some time has passed")
            assert old.api.items(MIGRATIONS) == [registered]
        with old.settings(pipes_without_host=True, full_sync=0.5):
            eventually(lambda: not old.api.items(MIGRATIONS), "found by comparison")


def test_wmco_upgrades_at_once_what_has_no_volumes_and_what_it_is_allowed_to(old: Lab) -> None:
    """The guard of release 9 counts attached volumes, whatever attached them; a node without any is not even read."""
    claim(old, "guarded", "thin")
    pod(old, "guarded", "guarded", "win-1")
    runs(old, "guarded")
    plain = storage.pod_body("plain", "", "win-2")
    plain["metadata"]["labels"] = {"app": "plain"}
    del plain["spec"]["volumes"], plain["spec"]["containers"][0]["volumeMounts"]
    old.api.post(PODS, plain)
    runs(old, "plain")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "plain"}}}
    budgets = f"/apis/policy/v1/namespaces/{storage.NAMESPACE}/poddisruptionbudgets"
    old.api.post(budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                           "metadata": {"name": "plain"}, "spec": budget})  # fmt: skip
    eventually(lambda: old.api.get(f"{budgets}/plain").get("status", {}).get("currentHealthy") == 1, "it is counted")
    openshift.install(old.api, "8.1.0")
    with old.settings(wmco=Wmco(step=0.1)):
        plan = openshift.offer(old.api, "9.0.0")
        restarts = plugin_restarts(old, "win-2")
        assert old.api.items(openshift.VERSIONS)[0]["spec"]["version"] == "8.1.0"
        openshift.approve(old.api, plan)

        eventually(lambda: openshift.UPGRADING in labels(old, "win-2"), "the node without volumes is begun")
        eventually(lambda: openshift.BLOCKED in labels(old, "win-1"), "the other is blocked")
        reasons = [one["reason"] for one in old.api.items("/api/v1/namespaces/default/events")]
        assert reasons.count("UpgradeBlocked") == 1
        eventually(lambda: old.api.get("/api/v1/nodes/win-2")["spec"].get("unschedulable"), "it is cordoned")
        assert storage.phase(old, "plain") == "Running"
        assert version(old, "win-2") == "8.1.0"
        storage.gone(old, f"{budgets}/plain")
        eventually(lambda: version(old, "win-2") == "9.0.0", "it is upgraded once the budget allows it")
        eventually(lambda: openshift.UPGRADING not in labels(old, "win-2"), "and done")
        node = old.api.get("/api/v1/nodes/win-2")
        assert not node["spec"].get("unschedulable")
        assert node["status"]["nodeInfo"]["kubeletVersion"] == openshift.kubelet("9.0.0")
        assert node["metadata"]["annotations"][era.MANAGED] == "true"
        assert node["metadata"]["labels"][openshift.WITH_CSI] == "true"
        assert not old.api.ok(f"{PODS}/plain")
        eventually(lambda: plugin_restarts(old, "win-2") > restarts, "plugin pods are not drained but start again")

        assert version(old, "win-1") == "8.1.0"
        assert storage.phase(old, "guarded") == "Running"
        old.api.patch("/api/v1/nodes/win-1", {"metadata": {"labels": {openshift.ALLOW: "true"}}})
        eventually(lambda: version(old, "win-1") == "9.0.0", "allowed, drained and upgraded")
        eventually(lambda: openshift.UPGRADING not in labels(old, "win-1"), "and done")
        assert openshift.ALLOW in labels(old, "win-1")
        assert openshift.BLOCKED not in labels(old, "win-1")
        assert not old.api.ok(f"{PODS}/guarded")
        eventually(lambda: not attached(old, "win-1"), "its volume has left it")
        eventually(lambda: pipes(old, "win-1"), "csi-proxy is there again")
        assert b"C:\\k\\csi-proxy.exe -log_file=" in old.agent("win-1").run("sc.exe qc csi-proxy").stdout
        assert b"OpenShift managed csi-proxy" in old.agent("win-1").run("sc.exe qdescription csi-proxy").stdout


def labels(lab: Lab, node: str) -> Object:
    found: Object = lab.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
    return found


def version(lab: Lab, node: str) -> str:
    return str(lab.api.get(f"/api/v1/nodes/{node}")["metadata"]["annotations"].get(openshift.VERSION, ""))


def plugin_restarts(lab: Lab, node: str) -> int:
    (found,) = (one for one in lab.pods("app=story") if one["spec"]["nodeName"] == node)
    return sum(one["restartCount"] for one in found["status"].get("containerStatuses") or [])
