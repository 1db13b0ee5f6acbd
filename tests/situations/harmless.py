# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Situations that seem wrong and are not: they must have no finding."""

from __future__ import annotations

from situations.base import (
    AZURE_DISK,
    AZURE_FILE,
    EBS,
    IN_TREE_VSPHERE,
    VSPHERE,
    kubelets,
    on_windows,
    situation,
    templates_of_vsphere,
)
from situations.cluster import (
    SHOP,
    csi,
    install,
    pod_spec,
    undecided,
    volume,
    windows_nodes,
    workload,
)
from situations.world import World


@situation(classes={"pv-legacy": "yes"}, starts_again={"Deployment shop/legacy": "yes"})
def a_migrated_volume_still_looks_in_tree(world: World) -> None:
    assert "vsphereVolume" in world.get("PersistentVolume", "pv-legacy")["spec"]


@situation(classes={"pv-static": "yes"})
def a_static_in_tree_volume_never_says_that_it_was_migrated(world: World) -> None:
    assert not world.get("PersistentVolume", "pv-static")["metadata"]["annotations"]


@situation(classes={"pv-new": "yes"})
def a_claim_made_after_migration_carries_the_name_of_the_driver(world: World) -> None:
    disk = {"vsphereVolume": {"volumePath": "[ds] kubevols/new.vmdk", "fsType": "ntfs"}}
    on_windows(world, "new", disk, provisioned_by=IN_TREE_VSPHERE)
    annotations = world.get("PersistentVolumeClaim", "new", SHOP)["metadata"]["annotations"]
    annotations["volume.kubernetes.io/storage-provisioner"] = VSPHERE.name


@situation(classes={"pv-legacy": "yes"})
def no_kubelet_of_today_lists_what_it_migrated(world: World) -> None:
    kubelets(world, "v1.36.3", migrated=())


@situation()
def a_template_that_was_brought_back(world: World) -> None:
    """Its pods have the generation of then, and the hash of the newest revision."""
    templates_of_vsphere(world, generation=3, revisions={"first": 3, "second": 2}, pods=("1", "first"))


@situation()
def two_drivers_on_a_node_are_as_good_as_one(world: World) -> None:
    install(world, "smb", "host_process")


@situation()
def a_share_for_both_systems(world: World) -> None:
    assert {"web", "feed"} <= {one["metadata"]["name"] for one in world.of("Deployment")}


@situation()
def linux_volumes_of_every_kind(world: World) -> None:
    for name, source in (
        ("nfs", {"nfs": {"server": "s", "path": "/"}}),
        ("rbd", {"rbd": {"monitors": ["m"], "image": "i"}}),
        ("ext4", csi(EBS.name, "vol-1", "ext4")),
    ):
        volume(world, f"pv-{name}", source, name)
        workload(world, "Deployment", name, pod_spec(name, windows=False), on=["linux-1"])


@situation()
def an_unused_claim_that_only_linux_can_mount(world: World) -> None:
    volume(world, "pv-old", csi(EBS.name, "vol-1", "ext4"), "old")
    volume(world, "pv-ceph", csi("rbd.csi.ceph.com", "image-1", ""), "ceph")


@situation()
def a_windows_node_without_any_volume(world: World) -> None:
    for kind, name in (
        ("StatefulSet", "db"),
        ("Deployment", "legacy"),
        ("Deployment", "static"),
        ("Deployment", "web"),
    ):
        world.remove(kind, name, SHOP)
    gone = {"db", "legacy", "static", "web"}
    world.objects = [
        one
        for one in world.objects
        if not (
            one["kind"] in ("Pod", "ReplicaSet")
            and one["metadata"].get("labels", {}).get("app", "").split("-")[0] in gone
        )
        and not (one["kind"] == "VolumeAttachment" and one["spec"]["nodeName"].startswith("win"))
        and not (
            one["kind"] in ("PersistentVolume", "PersistentVolumeClaim") and "linux" not in one["metadata"]["name"]
        )
    ]
    for one in windows_nodes(world):
        one["status"].update(volumesInUse=[], volumesAttached=[])


@situation()
def a_daemon_set_with_its_own_directory_only(world: World) -> None:
    directory = [{"name": "logs", "hostPath": {"path": "C:\\logs"}}]
    workload(world, "DaemonSet", "logs", pod_spec(extra_volumes=directory), on=["win-1", "win-2"])


@situation(classes={"pv-blank": "yes"})
def vsphere_takes_ext4_for_ntfs_where_windows_mounted_it(world: World) -> None:
    on_windows(world, "blank", csi(VSPHERE.name, "fcd-blank", "ext4"))


@situation()
def a_runtime_class_keeps_a_workload_on_windows(world: World) -> None:
    scheduling = {"nodeSelector": {"kubernetes.io/os": "windows"}, "tolerations": [{"key": "os", "operator": "Exists"}]}
    world.add("RuntimeClass", "windows-2022", handler="runhcs-wcow-process", scheduling=scheduling)
    volume(world, "pv-rc", csi(VSPHERE.name, "fcd-rc"), "rc")
    workload(world, "Deployment", "rc", undecided("rc", tolerations=None, runtimeClassName="windows-2022"), replicas=1)


@situation(starts_again={"Deployment shop/pinned": "yes"})
def node_affinity_pins_a_workload_to_one_windows_node(world: World) -> None:
    volume(world, "pv-pinned", csi(VSPHERE.name, "fcd-pinned"), "pinned")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-2"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    workload(world, "Deployment", "pinned", undecided("pinned", affinity=affinity), replicas=1)


@situation()
def an_old_label_selects_windows(world: World) -> None:
    volume(world, "pv-beta", csi(VSPHERE.name, "fcd-beta"), "beta")
    spec = undecided("beta", nodeSelector={"beta.kubernetes.io/os": "windows"})
    for one in windows_nodes(world):
        one["metadata"]["labels"]["beta.kubernetes.io/os"] = "windows"
    workload(world, "Deployment", "beta", spec, replicas=1)


def _old_zone(world: World) -> None:
    """A volume whose affinity names the label for zones that Kubernetes had before 1.17."""
    terms = [
        {"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["b"]}]}
    ]
    source = {
        "azureDisk": {
            "diskName": "z",
            "diskURI": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/z",
            "kind": "Managed",
            "fsType": "ntfs",
        }
    }
    on_windows(world, "zone", source, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


@situation("CSI-V17", classes={"pv-zone": "no"}, starts_again={"Deployment shop/zone": "no"})
def an_old_zone_label_that_no_node_has(world: World) -> None:
    _old_zone(world)


@situation(classes={"pv-zone": "yes"}, starts_again={"Deployment shop/zone": "yes"})
def an_old_zone_label_that_the_node_has(world: World) -> None:
    _old_zone(world)
    world.get("Node", "win-2")["metadata"]["labels"]["failure-domain.beta.kubernetes.io/zone"] = "b"


@situation()
def aks_hides_its_controllers(world: World) -> None:
    for one in windows_nodes(world):
        one["metadata"]["labels"]["kubernetes.azure.com/cluster"] = "mc_group"
    for driver in (AZURE_DISK, AZURE_FILE):
        world.remove("Deployment", driver.controller.deployments[0], driver.namespace)
        plugin = world.get("DaemonSet", driver.daemonset, driver.namespace)
        plugin["metadata"]["labels"] = {"kubernetes.azure.com/managedby": "aks"}
