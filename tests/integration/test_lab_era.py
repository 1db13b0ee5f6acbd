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
from integration.storage import ATTACHMENTS, CLAIMS, PODS, VOLUMES, claim, pod, runs, storage_class, told
from lab import handle
from lab.cluster import era, in_tree, nodes, vsphere
from lab.cluster.api import Object
from lab.handle import Lab, eventually

OLD = "v1.26.9"
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
    """Two nodes with kubelets of the era, without hosts, and no driver on them."""
    made = handle.start(f"era-{os.getpid()}", nodes=2, windows="none", kubelets={"win-1": OLD, "win-2": OLD})
    with made.settings(pipes_without_host=True), storage.a_namespace(made):
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
    told(old, "there FailedAttachVolume", "Multi-Attach error")
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
        told(old, f"{name} {event}", in_tree.PROVISIONERS[provisioner])
    storage.gone(old, f"{PODS}/{name}")
    storage.gone(old, f"{CLAIMS}/{name}")
    eventually(lambda: not folder.exists(), f"the disk of {name} is gone")
    eventually(lambda: not storage.volumes(old), "and its volume")


# What the first design document's repair does ("delete the claim, then the pod; it will be provisioned again"), tried here so
# that everybody sees why nothing in this collection ever does it: claims and volumes are never deleted to convert them.


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
    """Delete the claim, then the pod, as the document says."""
    pod_name = running(lab)
    lab.api.delete(f"{CLAIMS}/data-shop-0")
    lab.api.delete(f"{PODS}/{pod_name}")


def close(lab: Lab, kind: str) -> None:
    lab.api.delete(f"/apis/apps/v1/namespaces/{storage.NAMESPACE}/{kind.lower()}s/shop")
    eventually(lambda: not lab.api.items(PODS), "its pods are gone")
    lab.api.gone(f"{CLAIMS}/data-shop-0")
    eventually(lambda: not storage.volumes(lab), "and its volumes")


def test_deleting_claim_and_pod_deletes_the_disk_and_nobody_makes_the_claim_again(old: Lab) -> None:
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
    told(old, f"{successor['metadata']['name']} FailedScheduling", 'persistentvolumeclaim "data-shop-0" not found')
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
