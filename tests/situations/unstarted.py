# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods that no single volume and no single node keeps from starting: each with a ready twin that differs in one field."""

from __future__ import annotations

from typing import Any

from situations.base import AZURE_DISK, AZURE_FILE, NO_OPENSHIFT, SMB, VSPHERE, crash, openshift, situation
from situations.cluster import SHOP, attach, claim_of, csi, install, pod_spec, smb, volume, workload
from situations.foreign import Plugin, deploy
from situations.world import Object, World

_KEPT = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": "win-1"}


def _share(world: World, mode: str) -> None:
    volume(world, "pv-x", csi(AZURE_FILE.name, "rg#account#x", ""), "x", accessModes=[mode])


def _disk(world: World, name: str = "x") -> None:
    volume(world, f"pv-{name}", csi(VSPHERE.name, f"fcd-{name}"), name)


def _template(storage_class: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def _class(world: World, name: str, provisioner: str, mode: str, **parameters: str) -> None:
    world.add(
        "StorageClass", name, provisioner=provisioner, parameters=parameters, reclaimPolicy="Delete", volumeBindingMode=mode
    )  # fmt: skip


# Several pods with one claim


@situation("CSI-V42", starts_again={"DaemonSet shop/x": "no"})
def a_share_for_one_pod_in_a_daemon_set(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    workload(world, "DaemonSet", "x", pod_spec("x"))


@situation(starts_again={"DaemonSet shop/x": "yes"})
def a_share_for_one_pod_in_a_daemon_set_of_one_node(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    workload(world, "DaemonSet", "x", pod_spec("x", nodeSelector=_KEPT))


def _ordinals(world: World, mode: str) -> None:
    _share(world, mode)
    for number in (0, 1):
        _disk(world, f"data-x-{number}")
    made = _template("vsphere-csi-windows")
    workload(world, "StatefulSet", "x", pod_spec("x"), replicas=2, volumeClaimTemplates=[made])


@situation("CSI-V42", starts_again={"StatefulSet shop/x": "no"})
def ordinals_that_share_a_claim_for_one_pod(world: World) -> None:
    _ordinals(world, "ReadWriteOncePod")


@situation(starts_again={"StatefulSet shop/x": "yes"})
def ordinals_that_share_a_claim_for_many_nodes(world: World) -> None:
    _ordinals(world, "ReadWriteMany")


@situation("CSI-V53", starts_again={"Job shop/x": "unknown"})
def a_job_whose_pods_share_a_disk(world: World) -> None:
    _disk(world)
    workload(world, "Job", "x", pod_spec("x"), parallelism=3)


@situation(starts_again={"Job shop/x": "yes"})
def a_job_whose_pods_come_one_after_another(world: World) -> None:
    _disk(world)
    workload(world, "Job", "x", pod_spec("x"), parallelism=3, completions=1)


@situation("CSI-V53", starts_again={"Deployment shop/x": "unknown", "Deployment shop/y": "unknown"})
def two_workloads_that_start_with_one_disk(world: World) -> None:
    _disk(world)
    for name in ("x", "y"):
        workload(world, "Deployment", name, pod_spec("x"), replicas=1)


@situation(starts_again={"Deployment shop/x": "yes", "Deployment shop/y": "yes"})
def two_workloads_that_start_with_one_disk_on_one_node(world: World) -> None:
    _disk(world)
    for name in ("x", "y"):
        workload(world, "Deployment", name, pod_spec("x", nodeSelector=_KEPT), replicas=1)


@situation("CSI-V42", starts_again={"Deployment shop/x": "no", "Deployment shop/y": "no"})
def two_workloads_that_start_with_a_share_for_one_pod(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    for name in ("x", "y"):
        workload(world, "Deployment", name, pod_spec("x"), replicas=1)


def _rolling(world: World, surge: str | int) -> None:
    _share(world, "ReadWriteOncePod")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": "25%"}}
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1, strategy=strategy)


@situation("CSI-V43", starts_again={"Deployment shop/x": "unknown"})
def a_share_for_one_pod_and_a_rollout_that_starts_the_next_before(world: World) -> None:
    _rolling(world, "25%")


@situation(starts_again={"Deployment shop/x": "yes"})
def a_share_for_one_pod_and_a_rollout_that_ends_the_last_before(world: World) -> None:
    _rolling(world, 0)


@situation("CSI-V43", starts_again={"Deployment shop/x": "unknown"})
def a_share_for_one_pod_and_the_strategy_of_the_api(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_share_for_one_pod_and_a_strategy_that_recreates(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1, strategy={"type": "Recreate"})


def _own_share(world: World, secret: str) -> None:
    install(world, "smb", "host_process")
    attributes = {"source": "//server/share", secret: "smbcreds"}
    own = {"name": "own", "csi": {"driver": SMB.name, "volumeAttributes": attributes}}
    workload(world, "Deployment", "x", pod_spec(extra_volumes=[own]), replicas=1)


@situation("CSI-V31", starts_again={"Deployment shop/x": "no"})
def a_share_of_a_pod_without_a_secret(world: World) -> None:
    _own_share(world, "secretnames")


@situation(starts_again={"Deployment shop/x": "yes"})
def a_share_of_a_pod_with_a_secret(world: World) -> None:
    _own_share(world, "secretName")


def _from_class(world: World, name: str) -> None:
    install(world, "smb", "host_process")
    secret = {f"csi.storage.k8s.io/{name}-secret-name": "smbcreds", f"csi.storage.k8s.io/{name}-secret-namespace": SHOP}
    _class(world, "shares", SMB.name, "Immediate", source="//server/share", **secret)
    claim_of(world, "x", SHOP, "shares")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V31", starts_again={"Deployment shop/x": "no"})
def a_class_of_shares_without_a_secret_for_nodes(world: World) -> None:
    _from_class(world, "provisioner")


@situation(starts_again={"Deployment shop/x": "yes"})
def a_class_of_shares_with_a_secret_for_nodes(world: World) -> None:
    _from_class(world, "node-stage")


def _device(world: World, key: str, path: str) -> None:
    """A volume that each pod makes, which a container mounts or takes as a device."""
    spec = pod_spec()
    spec["containers"][0][key] = [{"name": "data", path: "/data"}]
    workload(world, "StatefulSet", "x", spec, replicas=1, volumeClaimTemplates=[_template("vsphere-csi-windows")])


@situation("CSI-V15", starts_again={"StatefulSet shop/x": "no"})
def a_new_file_system_that_a_container_takes_as_a_device(world: World) -> None:
    _device(world, "volumeDevices", "devicePath")


@situation(starts_again={"StatefulSet shop/x": "yes"})
def a_new_file_system_that_a_container_mounts(world: World) -> None:
    _device(world, "volumeMounts", "mountPath")


@situation(starts_again={"Deployment shop/x": "yes"})
def a_share_for_one_pod_whose_second_user_is_scaled_to_zero(world: World) -> None:
    _share(world, "ReadWriteOncePod")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1, strategy={"type": "Recreate"})
    workload(world, "Deployment", "y", pod_spec("x"), replicas=0, strategy={"type": "Recreate"})


# What has waited too long


def _waits(world: World, **since: float) -> None:
    _class(world, "at-once", VSPHERE.name, "Immediate", **{"csi.storage.k8s.io/fstype": "ntfs"})
    made = claim_of(world, "x", SHOP, "at-once")
    made["metadata"]["creationTimestamp"] = world.ago(**since)
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V41", starts_again={"Deployment shop/x": "unknown"})
def a_claim_for_which_no_volume_was_made_for_days(world: World) -> None:
    _waits(world, days=3)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_claim_for_which_a_volume_is_just_being_made(world: World) -> None:
    _waits(world, minutes=2)


def _attaching(world: World, **since: float) -> None:
    _disk(world)
    made = attach(world, "pv-x", "win-1", VSPHERE.name, "fcd-x")
    made["status"] = {"attached": False}
    made["metadata"]["creationTimestamp"] = world.ago(**since)
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-N34", starts_again={"Deployment shop/x": "no"})
def an_attachment_without_an_attacher(world: World) -> None:
    _attaching(world, hours=3)


@situation(starts_again={"Deployment shop/x": "yes"})
def an_attachment_that_is_just_being_done(world: World) -> None:
    _attaching(world, minutes=2)


def _leaving(world: World, **since: float) -> None:
    """A pod on win-2 that is being deleted, of a workload that is kept on win-1 now."""
    _disk(world)
    attach(world, "pv-x", "win-2", VSPHERE.name, "fcd-x")
    workload(world, "Deployment", "x", pod_spec("x", nodeSelector=_KEPT), on=["win-2"])
    world.get("Pod", "x-0", SHOP)["metadata"]["deletionTimestamp"] = world.ago(**since)


@situation("CSI-V53", starts_again={"Deployment shop/x": "unknown"})
def a_pod_that_should_be_gone_and_has_its_disk_still(world: World) -> None:
    _leaving(world, hours=5)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_pod_that_lets_its_disk_go(world: World) -> None:
    _leaving(world, minutes=2)


# Volumes that are there, for claims that are not bound


def _free(world: World, source: Object) -> None:
    _class(world, "mixed", AZURE_DISK.name, "WaitForFirstConsumer", **{"csi.storage.k8s.io/fstype": "ntfs"})
    volume(world, "pv-free", source, storage_class="mixed")
    claim_of(world, "x", SHOP, "mixed")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V41", "CSI-W09", starts_again={"Deployment shop/x": "unknown"})
def a_claim_that_may_take_a_share_of_nfs(world: World) -> None:
    _free(world, {"nfs": {"server": "s", "path": "/"}})


@situation("CSI-V41", starts_again={"Deployment shop/x": "unknown"})
def a_claim_that_may_take_a_disk_of_the_same_driver(world: World) -> None:
    _free(world, csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/free"))


@situation("CSI-V41", "CSI-G11", starts_again={"Deployment shop/x": "no"})
def a_claim_that_may_take_a_disk_of_a_driver_that_crashes(world: World) -> None:
    a_claim_that_may_take_a_disk_of_the_same_driver(world)
    for node in ("win-1", "win-2"):
        crash(world, "azure_disk", node)


def _free_shares(world: World) -> None:
    """Each share has a Secret of its own."""
    _class(world, "static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    for name in ("one", "other"):
        source = smb(f"share-{name}")
        source["csi"]["nodeStageSecretRef"]["name"] = f"smbcreds-{name}"
        volume(world, f"pv-{name}", source, storage_class="static")
    claim_of(world, "x", SHOP, "static")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-D20", "CSI-D30", "CSI-G02", starts_again={"Deployment shop/x": "no"})
def a_claim_that_may_take_shares_of_a_driver_that_is_missing(world: World) -> None:
    _free_shares(world)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_claim_that_may_take_shares_with_secrets_of_their_own(world: World) -> None:
    install(world, "smb", "host_process")
    _free_shares(world)


def _local(world: World, node: str) -> None:
    _class(world, "local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    volume(world, "pv-free", {"local": {"path": "C:\\data"}}, storage_class="local", nodeAffinity=affinity)
    claim_of(world, "data-x-0", SHOP, "local")
    workload(world, "StatefulSet", "x", pod_spec(), replicas=1, volumeClaimTemplates=[_template("local")])


@situation("CSI-V26", starts_again={"StatefulSet shop/x": "no"})
def a_disk_of_a_linux_node_for_a_claim_that_waits(world: World) -> None:
    _local(world, "linux-1")


@situation(starts_again={"StatefulSet shop/x": "yes"})
def a_disk_of_a_windows_node_for_a_claim_that_waits(world: World) -> None:
    _local(world, "win-1")


def _reserved(world: World, source: Object) -> None:
    made = volume(world, "pv-x", source, "x", bound=False, accessModes=["ReadWriteMany"])
    del made["spec"]["claimRef"]["uid"]
    made["status"]["phase"] = "Available"
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V30", classes={"pv-x": "no"}, starts_again={"Deployment shop/x": "no"})
def a_volume_of_nfs_that_is_reserved_for_a_claim(world: World) -> None:
    _reserved(world, {"nfs": {"server": "s", "path": "/"}})


@situation(classes={"pv-x": "yes"}, starts_again={"Deployment shop/x": "yes"})
def a_share_that_is_reserved_for_a_claim(world: World) -> None:
    _reserved(world, csi(AZURE_FILE.name, "rg#account#x", ""))


def _reserved_for_ordinals(world: World, ordinals: tuple[int, ...]) -> None:
    """A set of two whose claims are not there yet, with disks that were made for these and no class."""
    for number in ordinals:
        made = volume(world, f"pv-{number}", csi(VSPHERE.name, f"fcd-x-{number}"))
        made["spec"]["claimRef"] = {"namespace": SHOP, "name": f"data-x-{number}"}
    workload(world, "StatefulSet", "x", pod_spec(), replicas=2, volumeClaimTemplates=[_template("by-hand")])
    for one in world.of("PersistentVolume"):
        if one["metadata"]["name"] in ("pv-0", "pv-1"):
            one["spec"]["storageClassName"] = "by-hand"


@situation("CSI-V26", starts_again={"StatefulSet shop/x": "no"})
def a_disk_that_is_reserved_for_one_ordinal_of_two(world: World) -> None:
    _reserved_for_ordinals(world, (0,))


@situation(classes={"pv-0": "yes", "pv-1": "yes"}, starts_again={"StatefulSet shop/x": "yes"})
def disks_that_are_reserved_for_each_ordinal(world: World) -> None:
    _reserved_for_ordinals(world, (0, 1))


def _ephemeral_disk(world: World, source: Object) -> None:
    """A set of one whose claim is not there yet, with a volume that was made for it."""
    made = volume(world, "pv-0", source, storage_class="by-hand", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    made["spec"]["claimRef"] = {"namespace": SHOP, "name": "data-x-0"}
    workload(world, "StatefulSet", "x", pod_spec(), replicas=1, volumeClaimTemplates=[_template("by-hand")])


@situation("CSI-V30", classes={"pv-0": "no"}, starts_again={"StatefulSet shop/x": "no"})
def a_volume_of_nfs_that_is_reserved_for_an_ordinal(world: World) -> None:
    _ephemeral_disk(world, {"nfs": {"server": "s", "path": "/"}})


@situation(classes={"pv-0": "yes"}, starts_again={"StatefulSet shop/x": "yes"})
def a_share_that_is_reserved_for_an_ordinal(world: World) -> None:
    _ephemeral_disk(world, csi(AZURE_FILE.name, "rg#account#x", ""))


def _defaults(world: World, newer: str) -> None:
    """Two classes that are marked as the default one, of which the newer makes volumes for Windows or not."""
    for name, fs_type in (("for-linux", "ext4"), ("for-windows", "ntfs")):
        _class(world, name, AZURE_DISK.name, "WaitForFirstConsumer", **{"csi.storage.k8s.io/fstype": fs_type})
        metadata = world.get("StorageClass", name)["metadata"]
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        metadata["creationTimestamp"] = world.ago(days=1 if name == newer else 2)
    claim_of(world, "x", SHOP, None)
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V32", starts_again={"Deployment shop/x": "unknown"})
def the_newer_of_two_default_classes_makes_volumes_of_linux(world: World) -> None:
    _defaults(world, "for-linux")


@situation(starts_again={"Deployment shop/x": "yes"})
def the_newer_of_two_default_classes_makes_volumes_of_windows(world: World) -> None:
    _defaults(world, "for-windows")


@situation("CSI-V41", starts_again={"Deployment shop/x": "unknown"})
def a_driver_that_reports_its_free_capacity(world: World) -> None:
    world.get("CSIDriver", VSPHERE.name)["spec"]["storageCapacity"] = True
    world.get("StorageClass", "vsphere-csi-windows")["volumeBindingMode"] = "WaitForFirstConsumer"
    claim_of(world, "x", SHOP, "vsphere-csi-windows")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


# Kinds of volumes without a source that Windows mounts them


def _with(world: World, extra: Any) -> None:
    _share(world, "ReadWriteMany")
    workload(world, "Deployment", "x", pod_spec("x", extra_volumes=[{"name": "more", **extra}]), replicas=1)


@situation("CSI-W09", starts_again={"Deployment shop/x": "unknown"})
def a_pod_with_a_volume_that_is_an_image(world: World) -> None:
    _with(world, {"image": {"reference": "registry.example.com/model:1"}})


@situation("CSI-W09", starts_again={"Deployment shop/x": "unknown"})
def a_pod_with_a_volume_that_is_a_repository(world: World) -> None:
    _with(world, {"gitRepo": {"repository": "https://git.example.com/x.git"}})


@situation(starts_again={"Deployment shop/x": "yes"})
def a_pod_with_a_volume_that_is_empty(world: World) -> None:
    _with(world, {"emptyDir": {}})


# Objects without which nothing starts


@situation(
    "CSI-W20",
    starts_again={"Deployment brief/x": "no"},
    only_here="a server takes nothing into such a namespace",
)
def a_namespace_that_is_being_deleted(world: World) -> None:
    a_namespace_that_stays(world)
    world.get("Namespace", "brief")["status"]["phase"] = "Terminating"


@situation(starts_again={"Deployment brief/x": "yes"})
def a_namespace_that_stays(world: World) -> None:
    world.add("Namespace", "brief", spec={}, status={"phase": "Active"})
    source = csi(AZURE_FILE.name, "rg#account#x", "")
    volume(world, "pv-x", source, "x", namespace="brief", accessModes=["ReadWriteMany"])
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1, namespace="brief")


def _foreign(world: World) -> None:
    deploy(world, Plugin("disk.example.com", "disk-node", "storage", "disk.example.com", ""))
    volume(world, "pv-x", csi("disk.example.com", "1", ""), "x")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@situation("CSI-V32", starts_again={"Deployment shop/x": "unknown"})
def a_driver_of_others_without_its_csidriver(world: World) -> None:
    _foreign(world)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_driver_of_others_with_its_csidriver(world: World) -> None:
    _foreign(world)
    world.add("CSIDriver", "disk.example.com", spec={"attachRequired": False})


@situation(starts_again={"Job shop/x": "yes"})
def a_job_that_is_done_and_whose_claim_is_gone(world: World) -> None:
    status = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    workload(world, "Job", "x", pod_spec("x"), status=status)


@situation("CSI-V27", starts_again={"Job shop/x": "no"})
def a_job_that_is_not_done_and_whose_claim_is_gone(world: World) -> None:
    workload(world, "Job", "x", pod_spec("x"))


def _platform(world: World, enforced: str) -> None:
    openshift(world, "4.20.1")
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = enforced
    source = {"driver": AZURE_FILE.name, "volumeAttributes": {"shareName": "s", "secretName": "k"}}
    spec = pod_spec(extra_volumes=[{"name": "own", "csi": source}])
    workload(world, "Deployment", "x", spec, replicas=1)


@situation("CSI-V28", starts_again={"Deployment shop/x": "no"}, only_here=NO_OPENSHIFT)
def a_share_of_a_pod_in_a_namespace_of_openshift_that_allows_less(world: World) -> None:
    _platform(world, "baseline")


@situation(starts_again={"Deployment shop/x": "yes"}, only_here=NO_OPENSHIFT)
def a_share_of_a_pod_in_a_namespace_of_openshift_that_allows_it(world: World) -> None:
    _platform(world, "privileged")


# More volumes than all nodes together take


def _limited(world: World, count: int) -> None:
    for name in ("win-1", "win-2"):
        drivers = world.get("CSINode", name)["spec"]["drivers"]
        next(one for one in drivers if one["name"] == VSPHERE.name)["allocatable"]["count"] = count


def _many(world: World, limit: int) -> None:
    """Seven new ordinals; one node holds two volumes, and the other one."""
    _limited(world, limit)
    made = _template("vsphere-csi-windows")
    workload(world, "StatefulSet", "x", pod_spec(), replicas=7, volumeClaimTemplates=[made])


@situation("CSI-N33", starts_again={"StatefulSet shop/x": "no"})
def more_ordinals_than_all_nodes_take_volumes(world: World) -> None:
    _many(world, 4)


@situation(starts_again={"StatefulSet shop/x": "yes"})
def as_many_ordinals_as_all_nodes_take_volumes(world: World) -> None:
    _many(world, 5)


def _bound(world: World, limit: int) -> None:
    for number in range(7):
        _disk(world, f"data-x-{number}")
    _many(world, limit)


@situation("CSI-N33", starts_again={"StatefulSet shop/x": "no"})
def more_bound_claims_than_all_nodes_take_volumes(world: World) -> None:
    _bound(world, 4)


@situation(starts_again={"StatefulSet shop/x": "yes"})
def as_many_bound_claims_as_all_nodes_take_volumes(world: World) -> None:
    _bound(world, 5)


def _sets(world: World, limit: int) -> None:
    """Two sets of new ordinals, beside a set whose two volumes count as well."""
    _limited(world, limit)
    for name, replicas in (("x", 3), ("y", 4)):
        made = _template("vsphere-csi-windows")
        workload(world, "StatefulSet", name, pod_spec(), replicas=replicas, volumeClaimTemplates=[made])


@situation(
    "CSI-N33",
    starts_again={"StatefulSet shop/x": "unknown", "StatefulSet shop/y": "unknown", "StatefulSet shop/db": "unknown"},
)
def workloads_of_which_each_fits_and_not_all_of_them(world: World) -> None:
    _sets(world, 4)


@situation(starts_again={"StatefulSet shop/x": "yes", "StatefulSet shop/y": "yes"})
def workloads_that_fit_together(world: World) -> None:
    _sets(world, 5)


def _kept(world: World, second: str) -> None:
    """A set of two kept on win-1, which takes three volumes, and two Deployments of one."""
    _limited(world, 3)
    world.get("StatefulSet", "db", SHOP)["spec"]["template"]["spec"]["nodeSelector"] = _KEPT
    for name, node in (("x", "win-1"), ("y", second)):
        _disk(world, name)
        selector = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": node}
        workload(world, "Deployment", name, pod_spec(name, nodeSelector=selector), replicas=1)


@situation("CSI-N33", starts_again={"Deployment shop/x": "unknown", "Deployment shop/y": "unknown"})
def workloads_that_are_kept_on_one_node_and_do_not_fit_there(world: World) -> None:
    _kept(world, "win-1")


@situation(starts_again={"Deployment shop/x": "yes", "Deployment shop/y": "yes"})
def workloads_that_are_kept_on_two_nodes_and_fit_there(world: World) -> None:
    _kept(world, "win-2")
