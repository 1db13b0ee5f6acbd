# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Volumes of every kind: migrated, left behind, with two handles, lost, or without a claim."""

from __future__ import annotations

from situations.base import (
    AZURE_DISK,
    AZURE_FILE,
    GCE,
    IN_TREE_VSPHERE,
    NO_OLD_SERVER,
    NO_OPENSHIFT,
    VSPHERE,
    ZONE,
    crash,
    kubelets,
    on_windows,
    openshift,
    operator,
    situation,
)
from situations.cluster import (
    SHOP,
    attach,
    claim_of,
    csi,
    install,
    pod_spec,
    unregister,
    volume,
    workload,
)
from situations.world import KUBERNETES, World


@situation("CSI-V10", "CSI-V50", classes={"pv-legacy": "yes"}, starts_again={"Deployment shop/legacy": "no"})
def a_split_migration(world: World) -> None:
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("CSI-V10", "CSI-V50", classes={"pv-legacy": "yes"})
def one_node_of_two_was_upgraded(world: World) -> None:
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk",), only="win-1")


@situation("CSI-V10", classes={"pv-legacy": "yes"}, only_here=NO_OPENSHIFT)
def migrated_to_says_nothing_of_windows_under_operator_8(world: World) -> None:
    openshift(world, "4.13.12")
    operator(world, "8.1.0-1a2b3c")
    world.kubernetes = "v1.26.9"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("CSI-V11", classes={"pv-legacy": "yes"}, only_here=NO_OLD_SERVER)
def nothing_of_the_cluster_was_migrated(world: World) -> None:
    world.kubernetes = "v1.24.17"
    kubelets(world, "v1.24.17", migrated=("kubernetes.io/azure-disk",))
    del world.get("PersistentVolume", "pv-legacy")["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"]


@situation("CSI-V22", classes={"pv-legacy": "unknown"})
def a_kubelet_that_does_not_report_what_it_migrates(world: World) -> None:
    kubelets(world, "v1.26.9")


@situation(
    "CSI-G11",
    "CSI-G20",
    classes={"pv-legacy": "no"},
    starts_again={"Deployment shop/legacy": "no"},
)
def a_migrated_volume_without_its_driver(world: World) -> None:
    for on in ("win-1", "win-2"):
        unregister(world, VSPHERE, on)
        crash(world, "vsphere", on)


@situation("CSI-V20", classes={"pv-legacy": "no"})
def the_kubelet_release_that_forgot_vsphere(world: World) -> None:
    kubelets(world, "v1.29.0", migrated=())


@situation("CSI-V20")
def the_kubelet_release_that_breaks_azure_file(world: World) -> None:
    kubelets(world, "v1.32.0")
    on_windows(
        world,
        "files",
        {"azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s", "secretNamespace": SHOP}},
    )


@situation("CSI-V13", classes={"pv-blob": "no"}, starts_again={"Deployment shop/blob": "no"})
def an_unmanaged_azure_disk(world: World) -> None:
    source = {
        "azureDisk": {
            "diskName": "b",
            "diskURI": "https://a.blob.core.windows.net/vhds/b.vhd",
            "kind": "Dedicated",
            "fsType": "ntfs",
        }
    }
    on_windows(world, "blob", source)


@situation("CSI-V13")
def an_inline_vsphere_volume_with_a_storage_policy(world: World) -> None:
    inline = {
        "name": "data",
        "vsphereVolume": {"volumePath": "[ds] x.vmdk", "fsType": "ntfs", "storagePolicyName": "gold"},
    }
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation(starts_again={"Deployment shop/inline": "yes"})
def an_inline_azure_file_volume(world: World) -> None:
    inline = {"name": "data", "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s"}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation("CSI-G10", "CSI-G20")
def an_inline_azure_file_volume_at_zero_replicas_without_driver(world: World) -> None:
    world.remove("Deployment", "web", SHOP)
    for number in (0, 1):
        world.remove("Pod", f"web-{number}", SHOP)
    for on in ("win-1", "win-2"):
        unregister(world, AZURE_FILE, on)
        world.remove("Pod", f"{AZURE_FILE.daemonset}-{on}", AZURE_FILE.namespace)
    inline = {"name": "data", "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s"}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), replicas=0)


@situation("CSI-V28")
def an_inline_csi_volume_that_its_driver_does_not_allow(world: World) -> None:
    inline = {"name": "data", "csi": {"driver": VSPHERE.name}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation("CSI-V30", classes={"pv-rbd": "no"}, only_here=NO_OLD_SERVER)
def a_kind_with_in_tree_code_for_linux_only(world: World) -> None:
    world.kubernetes = "v1.30.4"
    kubelets(world, "v1.30.4")
    on_windows(world, "rbd", {"rbd": {"monitors": ["m"], "image": "i"}})


@situation("CSI-V30", classes={"pv-portworx": "no"}, only_here=NO_OLD_SERVER)
def a_migrated_kind_with_in_tree_code_for_linux_only(world: World) -> None:
    world.kubernetes = "v1.30.4"
    kubelets(world, "v1.30.4", migrated=("kubernetes.io/azure-disk", IN_TREE_VSPHERE))
    on_windows(world, "portworx", {"portworxVolume": {"volumeID": "1"}})


@situation("CSI-V30")
def a_kind_that_windows_does_not_mount(world: World) -> None:
    on_windows(world, "nfs", {"nfs": {"server": "s", "path": "/"}})


@situation(classes={"pv-local": "yes"})
def a_directory_of_the_node(world: World) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["win-1"]}]}]
    on_windows(world, "local", {"local": {"path": "C:\\data"}}, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


@situation("CSI-V18", classes={"pv-ext4": "unknown"}, starts_again={"Deployment shop/ext4": "unknown"})
def a_linux_file_system_reachable_from_windows(world: World) -> None:
    on_windows(
        world,
        "ext4",
        csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/ext4", "ext4"),
    )
    world.get("Pod", "ext4-0", SHOP)["status"]["phase"] = "Pending"


@situation(classes={"pv-ext4": "yes"}, starts_again={"Deployment shop/ext4": "yes"})
def a_disk_named_ext4_that_windows_has_mounted(world: World) -> None:
    on_windows(
        world,
        "ext4",
        csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/ext4", "ext4"),
    )


@situation("CSI-V32", classes={"pv-ebs": "unknown"})
def an_ebs_volume_that_names_no_file_system(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    on_windows(world, "ebs", {"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}})
    world.get("Pod", "ebs-0", SHOP)["status"]["phase"] = "Pending"


@situation(classes={"pv-pd": "yes"})
def a_gce_disk_that_names_no_file_system(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    on_windows(world, "pd", {"gcePersistentDisk": {"pdName": "d"}})


@situation("CSI-V14", classes={"pv-pd": "no"})
def a_gce_disk_with_another_file_system(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    on_windows(world, "pd", {"gcePersistentDisk": {"pdName": "d", "fsType": "ext4"}})


@situation("CSI-V18", classes={"pv-cold": "unknown"}, starts_again={"Deployment shop/cold": "unknown"})
def an_ext4_disk_that_windows_has_not_mounted_yet(world: World) -> None:
    volume(world, "pv-cold", csi(VSPHERE.name, "fcd-cold", "ext4"), "cold")
    workload(world, "Deployment", "cold", pod_spec("cold"), replicas=0)


@situation("CSI-V18", classes={"pv-slow": "unknown"})
def an_ext4_disk_whose_first_windows_pod_still_waits(world: World) -> None:
    on_windows(world, "slow", csi(VSPHERE.name, "fcd-slow", "ext4"))
    world.get("Pod", "slow-0", SHOP)["status"]["phase"] = "Pending"


@situation(
    "CSI-V18", classes={"pv-next": "unknown", "pv-last": "yes"}, starts_again={"StatefulSet shop/moving": "unknown"}
)
def an_ext4_disk_that_the_next_pod_has_instead_of_the_last_one(world: World) -> None:
    volume(world, "pv-last", csi(VSPHERE.name, "fcd-last"), "last")
    attach(world, "pv-last", "win-1", VSPHERE.name, "fcd-last")
    volume(world, "pv-next", csi(VSPHERE.name, "fcd-next", "ext4"), "next")
    strategy = {"type": "OnDelete"}
    moving = workload(world, "StatefulSet", "moving", pod_spec("last"), on=["win-1"], updateStrategy=strategy)
    moving["spec"]["template"]["spec"] = pod_spec("next")


@situation("CSI-V19")
def a_disk_that_both_systems_use(world: World) -> None:
    workload(world, "Deployment", "reader", pod_spec("data-db-0", windows=False), on=["linux-1"])


@situation("CSI-V15")
def a_raw_block_volume(world: World) -> None:
    on_windows(world, "raw", csi(VSPHERE.name, "fcd-raw", ""), volumeMode="Block")


@situation("CSI-V17", classes={"pv-far": "no"}, starts_again={"Deployment shop/far": "no"})
def a_volume_in_a_zone_without_windows_nodes(world: World) -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]}]
    volume(
        world, "pv-far", csi(VSPHERE.name, "fcd-far"), "far", nodeAffinity={"required": {"nodeSelectorTerms": terms}}
    )
    workload(world, "Deployment", "far", pod_spec("far"), replicas=1)


@situation(classes={"pv-orphan": "yes"})
def a_volume_attached_to_windows_that_nothing_known_uses(world: World) -> None:
    volume(world, "pv-orphan", csi(VSPHERE.name, "fcd-orphan"), "orphan")
    attach(world, "pv-orphan", "win-1", VSPHERE.name, "fcd-orphan")


@situation("CSI-V25", starts_again={"StatefulSet shop/db": "yes"})
def a_second_volume_of_a_disk_that_nothing_uses(world: World) -> None:
    volume(world, "pv-copy", csi(VSPHERE.name, "fcd-0"), policy="Retain")


@situation("CSI-V25", starts_again={"StatefulSet shop/db": "yes"})
def a_released_volume_of_a_disk_whose_claim_was_made_again(world: World) -> None:
    former = volume(world, "pv-former", csi(VSPHERE.name, "fcd-0"), policy="Retain")
    former["spec"]["claimRef"] = {"namespace": SHOP, "name": "data-db-0", "uid": "former"}
    former["status"]["phase"] = "Released"


@situation("CSI-V25", "CSI-V53", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/copy": "unknown"})
def two_volumes_with_one_handle(world: World) -> None:
    on_windows(world, "copy", csi(VSPHERE.name, "fcd-0"))


def _add_disk_of_google(world: World, zone: str) -> None:
    """A disk in zone a as an in-tree volume, and one with its name."""
    install(world, "gce_pd", "csi_proxy")
    kubelets(world, KUBERNETES, migrated=("kubernetes.io/gce-pd", "kubernetes.io/azure-disk", IN_TREE_VSPHERE))
    on_windows(world, "old", {"gcePersistentDisk": {"pdName": "d", "fsType": "ntfs"}})
    world.get("PersistentVolume", "pv-old")["metadata"]["labels"] = {ZONE: "a"}
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    volume(world, "pv-new", csi(GCE.name, f"projects/p/zones/{zone}/disks/d"), "new", nodeAffinity=affinity)
    workload(world, "Deployment", "new", pod_spec("new"), replicas=1)


@situation("CSI-V25", starts_again={"Deployment shop/old": "unknown", "Deployment shop/new": "unknown"})
def two_volumes_of_a_disk_in_tree_and_native(world: World) -> None:
    _add_disk_of_google(world, "a")


@situation(starts_again={"Deployment shop/old": "yes", "Deployment shop/new": "yes"})
def two_disks_in_tree_and_native_with_one_name(world: World) -> None:
    _add_disk_of_google(world, "b")


@situation("CSI-V25", starts_again={"Deployment shop/static": "yes"})
def a_converted_disk_whose_old_volume_was_kept(world: World) -> None:
    volume(
        world,
        "pv-static-csi",
        csi(AZURE_DISK.name, "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/disks/d"),
        policy="Retain",
    )


@situation()
def two_in_tree_volumes_of_one_share(world: World) -> None:
    for name in ("one", "two"):
        share = {
            "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s", "secretNamespace": SHOP}
        }
        on_windows(world, name, share)


@situation("CSI-V23", starts_again={"Deployment shop/lost": "no"})
def a_claim_that_is_lost(world: World) -> None:
    claim = claim_of(world, "lost", volume_name="pv-gone")
    claim["status"]["phase"] = "Lost"
    workload(world, "Deployment", "lost", pod_spec("lost"), on=["win-1"])


@situation("CSI-V24", starts_again={"Deployment shop/legacy": "no"})
def a_claim_that_is_being_deleted_under_a_pod_that_names_its_node(world: World) -> None:
    a_claim_that_is_being_deleted_under_its_pod(world)
    world.get("Deployment", "legacy", SHOP)["spec"]["template"]["spec"]["nodeName"] = "win-1"


@situation("CSI-V24", starts_again={"Deployment shop/legacy": "no"})
def a_claim_that_is_being_deleted_under_its_pod(world: World) -> None:
    metadata = world.get("PersistentVolumeClaim", "legacy", SHOP)["metadata"]
    metadata.update(deletionTimestamp=world.ago(minutes=1), finalizers=["kubernetes.io/pvc-protection"])


@situation("CSI-V26", starts_again={"Deployment shop/waits": "no"})
def a_claim_of_a_class_that_is_not_there(world: World) -> None:
    claim_of(world, "waits", storage_class="gold")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("CSI-V26")
def a_claim_without_a_class_where_none_is_the_default(world: World) -> None:
    claim_of(world, "waits", storage_class=None)
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation(starts_again={"Deployment shop/waits": "yes"})
def a_claim_that_waits_for_its_first_pod(world: World) -> None:
    claim_of(world, "waits", storage_class="vsphere-csi-windows")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation(starts_again={"Deployment shop/waits": "yes"}, classes={"shop/waits": "yes"})
def a_claim_of_an_in_tree_class(world: World) -> None:
    claim_of(world, "waits", storage_class="thin")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("CSI-V27")
def a_claim_that_was_never_made(world: World) -> None:
    workload(world, "Deployment", "early", pod_spec("nothing"), replicas=1)
