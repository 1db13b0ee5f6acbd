# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods on their way to running: each situation stops one step, and its ready twin differs from it in one field."""

from __future__ import annotations

from situations.base import (
    AZURE_DISK,
    GCE,
    IN_TREE_VSPHERE,
    NO_OLD_SERVER,
    NO_OPENSHIFT,
    VSPHERE,
    ZONE,
    kubelets,
    openshift,
    situation,
)
from situations.cluster import attach, csi, disk_handle, install, pod_spec, volume, windows_nodes, workload
from situations.world import Object, World


def _in_zones(world: World, *zones: str) -> None:
    """A Deployment with a volume in each of these zones."""
    names = [f"zoned-{number}" for number in range(len(zones))]
    for name, zone in zip(names, zones, strict=True):
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
        volume(world, f"pv-{name}", csi(VSPHERE.name, f"fcd-{name}"), name, nodeAffinity=affinity)
    workload(world, "Deployment", "zoned", pod_spec(*names), replicas=1)


@situation("CSI-W20", starts_again={"Deployment shop/zoned": "no"})
def two_volumes_in_two_zones(world: World) -> None:
    _in_zones(world, "a", "b")


@situation(starts_again={"Deployment shop/zoned": "yes"})
def two_volumes_in_one_zone(world: World) -> None:
    _in_zones(world, "a", "a")


# Attach: kubelet and control plane go the same way


def _openshift_4_13(world: World) -> None:
    """Its kubelets on Windows use CSI for vSphere, and an administrator chooses for the control plane."""
    world.kubernetes = "v1.26.5"
    openshift(world, "4.13.9")
    kubelets(world, "v1.26.5", migrated=(IN_TREE_VSPHERE,))
    for one in world.of("PersistentVolume"):
        one["metadata"]["annotations"].pop("pv.kubernetes.io/migrated-to", None)


@situation("CSI-V50", starts_again={"Deployment shop/legacy": "no"}, only_here=NO_OPENSHIFT)
def a_kubelet_that_migrates_and_a_control_plane_that_does_not(world: World) -> None:
    _openshift_4_13(world)


@situation("CSI-V51", starts_again={"Deployment shop/legacy": "unknown"}, only_here=NO_OPENSHIFT)
def a_kubelet_that_migrates_and_a_choice_that_no_volume_shows(world: World) -> None:
    _openshift_4_13(world)
    for one in world.of("PersistentVolume"):
        one["metadata"]["annotations"].pop("pv.kubernetes.io/provisioned-by", None)


@situation(
    "CSI-V10",
    "CSI-V50",
    starts_again={"Deployment shop/legacy": "no"},
    only_here=NO_OLD_SERVER,
)
def a_control_plane_without_the_code_that_a_kubelet_waits_for(world: World) -> None:
    world.kubernetes = "v1.30.1"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation(starts_again={"Deployment shop/legacy": "yes"}, only_here=NO_OLD_SERVER)
def a_control_plane_without_code_that_no_kubelet_waits_for(world: World) -> None:
    world.kubernetes = "v1.30.1"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file", IN_TREE_VSPHERE))


@situation("CSI-V10", starts_again={"Deployment shop/legacy": "yes"}, only_here=NO_OLD_SERVER)
def a_control_plane_that_attaches_for_a_kubelet_in_tree(world: World) -> None:
    world.kubernetes = "v1.29.4"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("CSI-V51", starts_again={"Deployment shop/legacy": "unknown"}, only_here=NO_OLD_SERVER)
def a_control_plane_that_does_not_say_whether_it_migrates(world: World) -> None:
    a_control_plane_that_wrote_that_it_migrates(world)
    for one in world.of("PersistentVolume"):
        one["metadata"]["annotations"] = {}


@situation(starts_again={"Deployment shop/legacy": "yes"}, only_here=NO_OLD_SERVER)
def a_control_plane_that_wrote_that_it_migrates(world: World) -> None:
    world.kubernetes = "v1.24.9"
    kubelets(world, "v1.24.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file", IN_TREE_VSPHERE))


# Attach: one node at a time


def _two_users(world: World, second: str) -> None:
    """Two Deployments that name one claim, the first of them running on win-1 and the second kept on a node."""
    volume(world, "pv-both", csi(VSPHERE.name, "fcd-both"), "both")
    attach(world, "pv-both", "win-1", VSPHERE.name, "fcd-both")
    workload(world, "Deployment", "holder", pod_spec("both"), on=["win-1"])
    selector = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": second}
    workload(world, "Deployment", "second", pod_spec("both", nodeSelector=selector), replicas=1)


@situation("CSI-V53", starts_again={"Deployment shop/second": "no"})
def a_volume_that_a_pod_on_another_node_holds(world: World) -> None:
    _two_users(world, "win-2")


@situation(starts_again={"Deployment shop/second": "yes"})
def a_volume_that_a_pod_on_the_same_node_holds(world: World) -> None:
    _two_users(world, "win-1")


def _replicas(world: World, replicas: int, node: str = "") -> None:
    volume(world, "pv-one", csi(VSPHERE.name, "fcd-one"), "one")
    selector = {"kubernetes.io/os": "windows", **({"kubernetes.io/hostname": node} if node else {})}
    workload(world, "Deployment", "alike", pod_spec("one", nodeSelector=selector), replicas=replicas)


@situation("CSI-V53", starts_again={"Deployment shop/alike": "unknown"})
def two_replicas_with_one_volume_for_one_node(world: World) -> None:
    _replicas(world, 2)


@situation(starts_again={"Deployment shop/alike": "yes"})
def one_replica_with_one_volume_for_one_node(world: World) -> None:
    _replicas(world, 1)


@situation(starts_again={"Deployment shop/alike": "yes"})
def two_replicas_with_one_volume_that_are_kept_on_one_node(world: World) -> None:
    _replicas(world, 2, "win-1")


# Attach: attachments that fail or hang


def _down(world: World, *taints: Object) -> None:
    """win-2 does not answer; its volumes are attached to it still."""
    node = world.get("Node", "win-2")
    node["status"]["conditions"][0].update(status="Unknown", reason="NodeStatusUnknown", message="stopped posting")
    node["spec"]["taints"] += [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}, *taints]


@situation("CSI-G05", "CSI-V52", starts_again={"Deployment shop/static": "no"})
def a_volume_held_by_a_node_that_is_not_ready(world: World) -> None:
    _down(world)


@situation("CSI-G05", starts_again={"Deployment shop/static": "yes"})
def a_volume_let_go_by_a_node_that_is_out_of_service(world: World) -> None:
    _down(world, {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"})


def _share_own_disk(world: World, node: str, claim: str = "") -> None:
    """Two workloads whose pods name one disk themselves, the first on win-1. claim: by which the second names it."""
    disk = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/own"
    volume_of_pod = {
        "name": "own",
        "azureDisk": {"diskName": "own", "diskURI": disk, "kind": "Managed", "fsType": "ntfs"},
    }
    for name, place in (("first", "win-1"), ("second", node)):
        selector = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": place}
        spec = pod_spec(extra_volumes=[volume_of_pod], nodeSelector=selector)
        if claim and name == "second":
            volume(world, "pv-own", {"azureDisk": volume_of_pod["azureDisk"]}, claim)
            spec = pod_spec(claim, nodeSelector=selector)
        workload(world, "Deployment", name, spec, on=["win-1"] if name == "first" else (), replicas=1)


@situation("CSI-V53", starts_again={"Deployment shop/second": "no"})
def a_disk_of_pods_themselves_that_a_pod_on_another_node_holds(world: World) -> None:
    _share_own_disk(world, "win-2")


@situation("CSI-V53", starts_again={"Deployment shop/second": "no"})
def a_disk_of_a_claim_that_a_pod_on_another_node_names_itself(world: World) -> None:
    _share_own_disk(world, "win-2", "own")


@situation(starts_again={"Deployment shop/first": "yes", "Deployment shop/second": "yes"})
def a_disk_of_pods_themselves_that_a_pod_on_the_same_node_holds(world: World) -> None:
    _share_own_disk(world, "win-1")


def _fail_attachment(world: World, message: str) -> None:
    """An attachment of a disk that a pod names itself."""
    disk = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/own"
    source = {"diskName": "own", "diskURI": disk, "kind": "Managed", "fsType": "ntfs"}
    own = pod_spec(extra_volumes=[{"name": "own", "azureDisk": source}])
    workload(world, "Deployment", "own", own, replicas=1)
    spec = {"csi": {"driver": AZURE_DISK.name, "volumeHandle": disk}, "accessModes": ["ReadWriteOnce"]}
    world.add(
        "VolumeAttachment", "csi-own",
        spec={"attacher": AZURE_DISK.name, "nodeName": "win-1", "source": {"inlineVolumeSpec": spec}},
        status={"attached": not message, **({"attachError": {"message": message}} if message else {})},
    )  # fmt: skip


@situation("CSI-N34", starts_again={"Deployment shop/own": "unknown", "Deployment shop/static": "yes"})
def a_disk_of_a_pod_itself_that_could_not_be_attached(world: World) -> None:
    _fail_attachment(world, "disk own is attached to another machine")


@situation(starts_again={"Deployment shop/own": "yes"})
def a_disk_of_a_pod_itself_that_is_attached(world: World) -> None:
    _fail_attachment(world, "")
    _without_zones(world)


def _without_zones(world: World) -> None:
    """Nodes of Azure outside of its availability zones."""
    for node in windows_nodes(world):
        node["metadata"]["labels"][AZURE_DISK.topology_keys[0]] = ""


@situation("CSI-V32", starts_again={"Deployment shop/own": "unknown"})
def a_disk_of_a_pod_itself_of_which_nothing_says_its_zone(world: World) -> None:
    _fail_attachment(world, "")


@situation("CSI-V32", starts_again={"Deployment shop/x": "unknown"})
def a_disk_of_which_nothing_says_its_zone(world: World) -> None:
    volume(world, "pv-x", csi(AZURE_DISK.name, disk_handle(AZURE_DISK.name, "x")), "x")
    workload(world, "Deployment", "x", pod_spec("x"), on=["win-1"])


@situation("CSI-V32", starts_again={"Deployment shop/x": "unknown"})
def a_converted_disk_of_which_nothing_says_its_zone(world: World) -> None:
    """It has the annotation of the disks that its driver made, so that the driver deletes it."""
    a_disk_of_which_nothing_says_its_zone(world)
    annotations = world.get("PersistentVolume", "pv-x")["metadata"]["annotations"]
    annotations["pv.kubernetes.io/provisioned-by"] = AZURE_DISK.name


@situation(starts_again={"Deployment shop/x": "yes"})
def a_disk_of_which_its_driver_says_that_every_node_reaches_it(world: World) -> None:
    a_converted_disk_of_which_nothing_says_its_zone(world)
    source = world.get("PersistentVolume", "pv-x")["spec"]["csi"]
    source["volumeAttributes"] = {"storage.kubernetes.io/csiProvisionerIdentity": f"1-{AZURE_DISK.name}"}


@situation("CSI-G20", starts_again={"Deployment shop/x": "unknown"})
def a_disk_of_which_nothing_says_its_zone_where_the_other_node_is_new(world: World) -> None:
    """On the new node the driver is not registered yet."""
    a_disk_of_which_nothing_says_its_zone(world)
    world.get("CSINode", "win-2")["spec"]["drivers"] = []


@situation("CSI-V32", starts_again={"Deployment shop/x": "unknown"})
def a_disk_of_a_region_of_which_nothing_says_its_zones(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    for node in windows_nodes(world):
        node["metadata"]["labels"]["topology.kubernetes.io/region"] = "r"
    volume(world, "pv-x", csi(GCE.name, disk_handle(GCE.name, "x")), "x")
    workload(world, "Deployment", "x", pod_spec("x"), on=["win-1"])


@situation(starts_again={"Deployment shop/x": "yes"})
def a_disk_of_which_nothing_says_its_zone_where_there_are_none(world: World) -> None:
    a_disk_of_which_nothing_says_its_zone(world)
    _without_zones(world)


@situation(starts_again={"Deployment shop/x": "yes"})
def a_disk_of_which_nothing_says_its_zone_with_pods_of_one_zone(world: World) -> None:
    volume(world, "pv-x", csi(AZURE_DISK.name, disk_handle(AZURE_DISK.name, "x")), "x")
    spec = pod_spec("x")
    spec["nodeSelector"][ZONE] = "a"
    workload(world, "Deployment", "x", spec, on=["win-1"])


@situation("CSI-V53", starts_again={"CronJob shop/x": "unknown"})
def a_volume_that_a_node_has_mounted_for_no_pod(world: World) -> None:
    volume(world, "pv-x", csi(VSPHERE.name, "fcd-x"), "x")
    attach(world, "pv-x", "win-2", VSPHERE.name, "fcd-x")
    workload(world, "CronJob", "x", pod_spec("x"))


@situation(starts_again={"CronJob shop/x": "yes"})
def a_volume_that_a_node_has_attached_and_not_mounted(world: World) -> None:
    a_volume_that_a_node_has_mounted_for_no_pod(world)
    world.get("Node", "win-2")["status"]["volumesInUse"] = []
