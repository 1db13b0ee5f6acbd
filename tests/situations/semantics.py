# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the API, a kubelet or a driver makes of a field, where a reader of the object expects something else."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

from situations.base import (
    AZURE_DISK,
    AZURE_FILE,
    GCE,
    NO_OLD_SERVER,
    VSPHERE,
    kubelets,
    on_windows,
    situation,
    templates_of_vsphere,
)
from situations.cluster import (
    SHOP,
    claim_of,
    csi,
    in_zones,
    install,
    namespace,
    owner_reference,
    pod_spec,
    smb,
    volume,
    windows_nodes,
    workload,
)
from situations.foreign import Plugin, deploy
from situations.world import World

HOST = "kubernetes.io/hostname"
# What kubelets that migrate nothing have besides.
_IN_TREE = ("CSI-V10", "CSI-V11")


@situation("CSI-V26", starts_again={"StatefulSet shop/old": "no"})
def a_claim_template_with_the_annotation_of_a_class_that_is_gone(world: World) -> None:
    template = {
        "metadata": {"name": "data", "annotations": {"volume.beta.kubernetes.io/storage-class": "gone"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "vsphere-csi-windows",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    workload(
        world, "StatefulSet", "old", pod_spec(), replicas=1, status={"replicas": 1}, volumeClaimTemplates=[template]
    )


@situation("CSI-W20", starts_again={"Deployment shop/web": "no", "Deployment shop/static": "yes"})
def pods_that_tolerate_a_taint_for_a_minute(world: World) -> None:
    for one in windows_nodes(world):
        one["spec"]["taints"] = [{"key": "os", "value": "Windows", "effect": "NoExecute"}]
    for one in world.objects:
        template = (one.get("spec") or {}).get("template") or {}
        for toleration in (template.get("spec") or {}).get("tolerations") or ():
            toleration.pop("effect", None)
    spec = world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"]
    spec["tolerations"] = [{"key": "os", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]


@situation("CSI-W09", starts_again={"Deployment shop/twice": "unknown"})
def a_pod_with_two_volumes_of_one_claim(world: World) -> None:
    volume(world, "pv-twice", csi(VSPHERE.name, "fcd-twice"), "twice")
    again = {"name": "again", "persistentVolumeClaim": {"claimName": "twice"}}
    spec = pod_spec("twice", extra_volumes=[again])
    workload(world, "Deployment", "twice", spec, replicas=1)


@situation("CSI-V15", starts_again={"Deployment shop/raw": "no"})
def a_local_volume_that_is_a_raw_device(world: World) -> None:
    here = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["win-1"]}]}
    affinity = {"required": {"nodeSelectorTerms": [here]}}
    on_windows(world, "raw", {"local": {"path": "C:\\disk"}}, volumeMode="Block", nodeAffinity=affinity)


def _mount_in_tree(world: World, name: str, fs_type: str = "ntfs", **more: Any) -> None:
    """Kubelets that migrate nothing, and a disk that was not mounted yet."""
    world.kubernetes = "v1.22.17"
    kubelets(world, "v1.22.17", migrated=())
    uri = f"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/{name}"
    disk = {"diskName": name, "diskURI": uri, "kind": "Managed", "fsType": fs_type}
    volume(world, f"pv-{name}", {"azureDisk": disk}, name, nodeAffinity=in_zones("a", "b"), **more)


@situation(*_IN_TREE, "CSI-V18", starts_again={"Deployment shop/x": "unknown"}, only_here=NO_OLD_SERVER)
def a_disk_with_ext4_that_kubelets_mount_in_tree(world: World) -> None:
    _mount_in_tree(world, "x", "ext4")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation(*_IN_TREE, "CSI-V15", starts_again={"Deployment shop/x": "no"}, only_here=NO_OLD_SERVER)
def a_raw_device_that_kubelets_mount_in_tree(world: World) -> None:
    _mount_in_tree(world, "x", volumeMode="Block")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


def _limit_in_tree(world: World, limit: str) -> None:
    for node in windows_nodes(world):
        node["status"]["allocatable"]["attachable-volumes-azure-disk"] = limit
    for name in ("x", "y"):
        _mount_in_tree(world, name)
    workload(world, "Deployment", "x", pod_spec("x", "y"), replicas=1)


@situation(*_IN_TREE, "CSI-W20", starts_again={"Deployment shop/x": "no"}, only_here=NO_OLD_SERVER)
def more_disks_than_kubelets_attach_in_tree(world: World) -> None:
    _limit_in_tree(world, "1")


@situation(*_IN_TREE, starts_again={"Deployment shop/x": "yes"}, only_here=NO_OLD_SERVER)
def as_many_disks_as_kubelets_attach_in_tree(world: World) -> None:
    _limit_in_tree(world, "2")


@situation("CSI-V31", starts_again={"Deployment shop/typo": "no"})
def a_disk_whose_handle_is_no_disk_of_azure(world: World) -> None:
    on_windows(world, "typo", csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/disks/d"))


@situation("CSI-V31", starts_again={"Deployment shop/typo": "no"})
def an_in_tree_disk_whose_handle_is_no_disk_of_azure(world: World) -> None:
    uri = "/subscriptions/s/resourceGroups/rg/disks/d"
    on_windows(world, "typo", {"azureDisk": {"diskName": "d", "diskURI": uri, "kind": "Managed", "fsType": "ntfs"}})


@situation("CSI-V31", starts_again={"Deployment shop/typo": "no"})
def a_vsphere_volume_whose_handle_is_that_of_a_file_volume(world: World) -> None:
    on_windows(world, "typo", csi(VSPHERE.name, "file:5f0b7a6e-0000-4000-8000-000000000001"))


@situation("CSI-V31", starts_again={"Deployment shop/typo": "no"})
def a_share_of_smb_whose_source_names_no_share(world: World) -> None:
    install(world, "smb", "host_process")
    source = smb("typo")
    source["csi"]["volumeAttributes"]["source"] = "server"
    on_windows(world, "typo", source)


def _put_in_google(world: World, handle: str) -> None:
    install(world, "gce_pd", "csi_proxy")
    for node in world.of("Node"):
        node["metadata"]["labels"]["topology.kubernetes.io/region"] = "europe-west1"
    on_windows(world, "far", csi(GCE.name, handle))


@situation("CSI-V31", starts_again={"Deployment shop/far": "no"})
def a_disk_of_google_in_another_region(world: World) -> None:
    _put_in_google(world, "projects/erp/regions/us-east1/disks/d")


@situation("CSI-V31", starts_again={"Deployment shop/far": "no"})
def a_disk_of_google_in_another_project(world: World) -> None:
    _put_in_google(world, "projects/shop/regions/europe-west1/disks/d")
    for node in world.of("Node"):
        node["spec"]["providerID"] = f"gce://erp/europe-west1-b/{node['metadata']['name']}"


@situation(starts_again={"Deployment shop/far": "yes"})
def a_disk_of_google_where_its_nodes_are(world: World) -> None:
    _put_in_google(world, "projects/erp/regions/europe-west1/disks/d")


def _claim_of_class(world: World, provisioner: str, **parameters: str) -> None:
    """A claim without a volume, of a class with these parameters."""
    world.add(
        "StorageClass", "made", provisioner=provisioner, parameters=parameters, reclaimPolicy="Delete",
        volumeBindingMode="WaitForFirstConsumer",
    )  # fmt: skip
    claim_of(world, "new", storage_class="made")
    workload(world, "Deployment", "new", pod_spec("new"), replicas=1)


@situation("CSI-V26", starts_again={"Deployment shop/new": "no"})
def a_class_with_half_of_a_secret(world: World) -> None:
    secret = {"csi.storage.k8s.io/provisioner-secret-name": "${pvc.name}"}
    _claim_of_class(world, VSPHERE.name, **{"csi.storage.k8s.io/fstype": "ntfs"}, **secret)


@situation("CSI-V26", starts_again={"Deployment shop/new": "no"})
def a_class_with_a_reserved_parameter_that_is_unknown(world: World) -> None:
    _claim_of_class(world, VSPHERE.name, **{"csi.storage.k8s.io/fsgroup": "1"})


@situation("CSI-V26", starts_again={"Deployment shop/new": "no"})
def a_class_that_names_its_file_system_twice(world: World) -> None:
    _claim_of_class(world, VSPHERE.name, **{"csi.storage.k8s.io/fstype": "ntfs"}, fsType="ntfs")


@situation("CSI-V26", starts_again={"Deployment shop/new": "no"})
def an_in_tree_class_of_a_zone_without_nodes(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    _claim_of_class(world, "kubernetes.io/aws-ebs", fsType="ntfs", zone="c")


@situation("CSI-V41", starts_again={"Deployment shop/new": "unknown"})
def an_in_tree_class_of_the_zone_of_one_node(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    _claim_of_class(world, "kubernetes.io/aws-ebs", fsType="ntfs", zones="a")


@situation(starts_again={"Deployment shop/new": "yes"})
def an_in_tree_class_of_the_zones_of_all_nodes(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    _claim_of_class(world, "kubernetes.io/aws-ebs", fsType="ntfs", zones="a, b")


@situation("CSI-V14", starts_again={"Deployment shop/new": "no"})
def a_class_without_a_file_system_where_the_provisioner_takes_ext4(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    spec = world.get("Deployment", GCE.controller.deployments[0], GCE.namespace)["spec"]["template"]["spec"]
    provisioner = next(part for part in spec["containers"] if part["name"] == "csi-provisioner")
    provisioner["args"] = ["--v=5", "--default-fstype=ext4"]
    _claim_of_class(world, GCE.name, type="pd-balanced")


def _name_secrets(world: World) -> None:
    """Pods of Windows that name a volume of the driver for secrets."""
    driver = "secrets-store.csi.k8s.io"
    deploy(world, Plugin(driver, "csi-secrets-store-windows", "kube-system", "csi-secrets-store", ""))
    source = {"driver": driver, "readOnly": True, "volumeAttributes": {"secretProviderClass": "vault"}}
    workload(world, "Deployment", "vault", pod_spec(extra_volumes=[{"name": "v", "csi": source}]), replicas=1)


@situation(starts_again={"Deployment shop/vault": "yes"})
def a_volume_of_secrets(world: World) -> None:
    _name_secrets(world)
    world.add(
        "CSIDriver", "secrets-store.csi.k8s.io",
        spec={"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Ephemeral"]},
    )  # fmt: skip


@situation("CSI-V28", starts_again={"Deployment shop/vault": "no"})
def a_volume_of_secrets_whose_driver_has_no_csidriver(world: World) -> None:
    _name_secrets(world)


@situation("CSI-V28", starts_again={"Deployment shop/kept": "no"})
def a_claim_of_the_driver_for_secrets(world: World) -> None:
    a_volume_of_secrets(world)
    on_windows(world, "kept", csi("secrets-store.csi.k8s.io", "x", ""))


@situation("CSI-V28", "CSI-D21", starts_again={"Deployment shop/inline": "no"})
def a_share_of_a_pod_whose_driver_learns_nothing_of_pods(world: World) -> None:
    world.get("CSIDriver", AZURE_FILE.name)["spec"]["podInfoOnMount"] = False
    source = {"driver": AZURE_FILE.name, "volumeAttributes": {"shareName": "s", "secretName": "creds"}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[{"name": "v", "csi": source}]), replicas=1)


@situation("CSI-N46", starts_again={"StatefulSet shop/db": "unknown"})
def a_node_plugin_without_a_registrar(world: World) -> None:
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"] = [part for part in spec["containers"] if part["name"] == VSPHERE.container]


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no"})
def a_node_plugin_that_is_being_deleted(world: World) -> None:
    metadata = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["metadata"]
    metadata.update(deletionTimestamp=world.ago(minutes=5), finalizers=["foregroundDeletion"])


@situation()
def a_former_controller_that_is_scaled_to_zero(world: World) -> None:
    namespace(world, "former")
    controller = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)
    spec = {**controller["spec"], "replicas": 0}
    world.add("Deployment", VSPHERE.controller.deployments[0], "former", spec=spec, status={"observedGeneration": 1})


@situation("CSI-V31", starts_again={"Deployment shop/typo": "no"})
def a_share_of_azure_that_neither_handle_nor_attribute_names(world: World) -> None:
    on_windows(world, "typo", csi(AZURE_FILE.name, "share-1"))


@situation(starts_again={"Deployment shop/named": "yes"})
def a_share_of_azure_that_an_attribute_names(world: World) -> None:
    source = csi(AZURE_FILE.name, "share-1")
    source["csi"]["volumeAttributes"] = {"shareName": "data"}
    on_windows(world, "named", source)


@situation("CSI-V31", starts_again={"Deployment shop/far": "unknown"})
def a_disk_of_google_whose_handle_alone_names_its_zone(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    volume(world, "pv-far", csi(GCE.name, "projects/p/zones/a/disks/d"), "far")
    workload(world, "Deployment", "far", pod_spec("far"), on=["win-1"])


@situation(starts_again={"Deployment shop/near": "yes"})
def a_disk_of_google_that_stays_in_the_zone_of_its_handle(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    volume(world, "pv-near", csi(GCE.name, "projects/p/zones/a/disks/d"), "near")
    zone = {"kubernetes.io/os": "windows", "topology.kubernetes.io/zone": "a"}
    workload(world, "Deployment", "near", pod_spec("near", nodeSelector=zone), on=["win-1"])


@situation("CSI-V31", starts_again={"Deployment shop/far": "no"})
def an_in_tree_disk_of_aws_whose_handle_alone_names_its_zone(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    on_windows(world, "far", {"awsElasticBlockStore": {"volumeID": "aws://us-east-1c/vol-1", "fsType": "ntfs"}})


@situation("CSI-V53", starts_again={"Deployment shop/one": "unknown", "Deployment shop/two": "unknown"})
def a_disk_for_workloads_that_are_pinned_to_different_nodes(world: World) -> None:
    volume(world, "pv-both", csi(VSPHERE.name, "fcd-both"), "both")
    for name, node in (("one", "win-1"), ("two", "win-2")):
        selector = {"kubernetes.io/os": "windows", HOST: node}
        workload(world, "Deployment", name, pod_spec("both", nodeSelector=selector), replicas=1, status={"replicas": 1})


@situation("CSI-N33", starts_again={"StatefulSet shop/pairs": "no"})
def pods_with_two_volumes_each_on_nodes_with_an_odd_room(world: World) -> None:
    for node in ("win-1", "win-2"):
        drivers = world.get("CSINode", node)["spec"]["drivers"]
        next(one for one in drivers if one["name"] == VSPHERE.name)["allocatable"] = {"count": 1 + 3}
    templates = [
        {
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "vsphere-csi-windows",
                "resources": {"requests": {"storage": "10Gi"}},
            },
        }
        for name in ("data", "log")
    ]
    workload(
        world, "StatefulSet", "pairs", pod_spec(), replicas=3, status={"replicas": 3}, volumeClaimTemplates=templates
    )


def use_unknown_driver(world: World, fs_type: str, *, attaches: bool) -> None:
    deploy(world, Plugin("disk.example.com", "disk-node", "storage", "disk.example.com", ""))
    world.add("CSIDriver", "disk.example.com", spec={"attachRequired": attaches})
    volume(world, "pv-foreign", csi("disk.example.com", "x", fs_type), "foreign")
    workload(world, "Deployment", "foreign", pod_spec("foreign"), replicas=1)


@situation("CSI-V18", starts_again={"Deployment shop/foreign": "unknown"})
def a_disk_of_an_unknown_driver_that_linux_may_have_formatted(world: World) -> None:
    use_unknown_driver(world, "ext4", attaches=False)


@situation("CSI-V32", starts_again={"Deployment shop/foreign": "unknown"})
def a_disk_of_an_unknown_driver_that_never_attached_one(world: World) -> None:
    use_unknown_driver(world, "", attaches=True)


@situation(starts_again={"Deployment shop/loud": "yes"})
def a_file_system_in_capital_letters(world: World) -> None:
    on_windows(world, "loud", csi(VSPHERE.name, "fcd-loud", "NTFS"))


@situation(starts_again={"Deployment shop/modes": "yes"})
def an_in_tree_disk_of_google_that_one_node_writes_or_many_read(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    source = {"gcePersistentDisk": {"pdName": "d", "fsType": "ntfs"}}
    modes = ["ReadWriteOnce", "ReadOnlyMany"]
    zone = {"kubernetes.io/os": "windows", "topology.kubernetes.io/zone": "a"}
    made = volume(world, "pv-modes", source, "modes", accessModes=modes)
    made["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    workload(world, "Deployment", "modes", pod_spec("modes", nodeSelector=zone), on=["win-1"])


@situation("CSI-W09", starts_again={"Deployment shop/web": "unknown", "StatefulSet shop/db": "unknown"})
def nodes_that_are_being_deleted(world: World) -> None:
    for node in windows_nodes(world):
        node["metadata"].update(deletionTimestamp=world.ago(minutes=5), finalizers=["example.com/machine"])


@situation("CSI-V40", starts_again={"StatefulSet shop/cache": "no"})
def a_claim_that_is_not_of_the_pod_whose_name_it_bears(world: World) -> None:
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "vsphere-csi-windows",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    workload(world, "StatefulSet", "cache", pod_spec(extra_volumes=[scratch]), replicas=1, status={"replicas": 1})
    claim_of(world, "cache-0-scratch", storage_class="vsphere-csi-windows")


@situation(starts_again={"Deployment shop/front": "yes", "StatefulSet shop/cache": "yes"})
def claims_that_bear_the_names_of_workloads_with_claims_of_their_own(world: World) -> None:
    a_claim_that_is_not_of_the_pod_whose_name_it_bears(world)
    world.remove("PersistentVolumeClaim", "cache-0-scratch", SHOP)
    spec = world.get("StatefulSet", "cache", SHOP)["spec"]["template"]["spec"]
    workload(world, "Deployment", "front", {**spec}, on=["win-1"])
    for name in ("cache", "front"):
        claim_of(world, f"{name}-scratch", storage_class="vsphere-csi-windows")


@situation("CSI-V40", starts_again={"StatefulSet shop/cache": "no"})
def a_claim_that_names_its_pod_as_an_owner_that_does_not_control_it(world: World) -> None:
    a_claim_that_is_not_of_the_pod_whose_name_it_bears(world)
    owner = {**owner_reference("Pod", "cache-0", SHOP), "controller": False}
    world.get("PersistentVolumeClaim", "cache-0-scratch", SHOP)["metadata"]["ownerReferences"] = [owner]


@situation("CSI-V31", starts_again={"Deployment shop/alone": "no"})
def a_disk_for_one_pod_with_an_attacher_from_before(world: World) -> None:
    volume(world, "pv-alone", csi(VSPHERE.name, "fcd-alone"), "alone", accessModes=["ReadWriteOncePod"])
    workload(world, "Deployment", "alone", pod_spec("alone"), replicas=1, strategy={"type": "Recreate"})
    controller = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)
    for container in controller["spec"]["template"]["spec"]["containers"]:
        if container["name"] == "csi-attacher":
            container["image"] = "registry.k8s.io/sig-storage/csi-attacher:v3.1.0"


def _claims_of_one_volume(world: World, mode: str) -> None:
    world.add("StorageClass", "static", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=mode,
              reclaimPolicy="Delete", parameters={})  # fmt: skip
    volume(world, "pv-free", csi(VSPHERE.name, "fcd-free"), storage_class="static")
    for name in ("first", "second"):
        claim_of(world, name, storage_class="static")
        workload(world, "Deployment", name, pod_spec(name), replicas=1)


_EACH = {"Deployment shop/first": "unknown", "Deployment shop/second": "unknown"}


@situation("CSI-V41", starts_again=_EACH)
def one_free_volume_for_two_claims_that_wait_for_pods(world: World) -> None:
    _claims_of_one_volume(world, "WaitForFirstConsumer")


@situation("CSI-V41", starts_again=_EACH)
def one_free_volume_for_two_claims(world: World) -> None:
    _claims_of_one_volume(world, "Immediate")


@situation("CSI-V41", starts_again=_EACH)
def a_free_volume_for_each_of_two_claims(world: World) -> None:
    """Which one each of them takes decides where its pod goes."""
    _claims_of_one_volume(world, "WaitForFirstConsumer")
    volume(world, "pv-other", csi(VSPHERE.name, "fcd-other"), storage_class="static")


@situation("CSI-V41", starts_again=_EACH)
def one_free_volume_for_two_claims_of_a_class_that_provisions(world: World) -> None:
    world.add("StorageClass", "at-once", provisioner=VSPHERE.name, volumeBindingMode="Immediate",
              reclaimPolicy="Delete", parameters={"csi.storage.k8s.io/fstype": "ntfs"})  # fmt: skip
    volume(world, "pv-free", csi(VSPHERE.name, "fcd-free"), storage_class="at-once")
    for name in ("first", "second"):
        claim_of(world, name, storage_class="at-once")
        workload(world, "Deployment", name, pod_spec(name), replicas=1)


@situation("CSI-D30", starts_again={"Deployment shop/next": "no"})
def a_driver_of_the_user_on_aks_without_its_controller(world: World) -> None:
    for node in windows_nodes(world):
        node["metadata"]["labels"]["kubernetes.azure.com/cluster"] = "mc_group"
    world.remove("Deployment", AZURE_DISK.controller.deployments[0], AZURE_DISK.namespace)
    claim_of(world, "next", storage_class=AZURE_DISK.storage_class.name)
    workload(world, "Deployment", "next", pod_spec("next"), replicas=1)


def _delete(world: World, name: str) -> None:
    """A volume that is deleted once its claim is gone."""
    metadata = world.get("PersistentVolume", name)["metadata"]
    metadata.update(deletionTimestamp=world.ago(hours=2), finalizers=["kubernetes.io/pv-protection"])


@situation("CSI-V24", starts_again={"StatefulSet shop/db": "unknown"})
def a_disk_that_is_being_deleted_and_is_attached_to_one_node(world: World) -> None:
    _delete(world, "pv-db-0")


@situation("CSI-V24", starts_again={"Deployment shop/late": "no"})
def a_disk_that_is_being_deleted_and_not_attached(world: World) -> None:
    volume(world, "pv-late", csi(VSPHERE.name, "fcd-late"), "late")
    workload(world, "Deployment", "late", pod_spec("late"), replicas=1)
    _delete(world, "pv-late")


@situation("CSI-V24", starts_again={"Deployment shop/web": "yes"})
def a_share_that_is_being_deleted(world: World) -> None:
    _delete(world, "pv-share")


@situation(starts_again={"StatefulSet shop/over": "yes"})
def a_claim_template_in_place_of_a_volume_with_its_name(world: World) -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "vsphere-csi-windows",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    spec = pod_spec(extra_volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "nothing"}}])
    workload(world, "StatefulSet", "over", spec, replicas=1, status={"replicas": 1}, volumeClaimTemplates=[template])


def _mark_two_defaults(world: World) -> None:
    for key in ("vsphere", "azure_disk"):
        metadata = world.get("StorageClass", DRIVERS[key].storage_class.name)["metadata"]
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": claim}
    workload(
        world, "StatefulSet", "two", pod_spec(), replicas=1, status={"replicas": 1}, volumeClaimTemplates=[template]
    )


@situation(starts_again={"StatefulSet shop/two": "yes"})
def two_default_classes(world: World) -> None:
    _mark_two_defaults(world)


@situation("CSI-V26", starts_again={"StatefulSet shop/two": "no"}, only_here=NO_OLD_SERVER)
def two_default_classes_of_an_older_api_server(world: World) -> None:
    world.kubernetes = "v1.25.16"
    kubelets(world, "v1.25.16", migrated=("kubernetes.io/azure-disk", "kubernetes.io/vsphere-volume"))
    _mark_two_defaults(world)


@situation("CSI-V40", starts_again={"Deployment shop/half": "no"})
def a_bound_claim_whose_volume_names_it_without_its_uid(world: World) -> None:
    on_windows(world, "half", csi(VSPHERE.name, "fcd-half"))
    del world.get("PersistentVolume", "pv-half")["spec"]["claimRef"]["uid"]


@situation(starts_again={"Deployment shop/open": "yes"})
def a_bound_claim_whose_volume_names_no_claim(world: World) -> None:
    on_windows(world, "open", csi(VSPHERE.name, "fcd-open"))
    restored = world.get("PersistentVolume", "pv-open")
    del restored["spec"]["claimRef"]
    restored["status"]["phase"] = "Available"


@situation("CSI-V41", starts_again={"Deployment shop/waits": "unknown"})
def a_claim_whose_volume_is_being_made_for_a_linux_node(world: World) -> None:
    made = claim_of(world, "waits", storage_class="vsphere-csi-windows")
    made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "linux-1"
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation(starts_again={"Deployment shop/web": "yes"})
def pods_that_follow_another_workload_to_its_node(world: World) -> None:
    labels = world.get("StatefulSet", "db", SHOP)["spec"]["template"]["metadata"]["labels"]
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"]["affinity"] = {"podAffinity": required}


@situation("CSI-G14", starts_again={"StatefulSet shop/db": "unknown"})
def a_node_plugin_with_ondelete_whose_next_image_is_broken(world: World) -> None:
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]
    spec["updateStrategy"] = {"type": "OnDelete"}
    spec["template"]["spec"]["containers"][0]["image"] = "registry.invalid/broken:0"
    templates_of_vsphere(world, generation=2, revisions={"aaa": 1, "bbb": 2}, pods=("1", "aaa"))
