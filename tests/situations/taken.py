# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Volumes that a driver does not take on Windows, each with a twin that differs in one field and is ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

from situations.base import AZURE_DISK, AZURE_FILE, EBS, SMB, VSPHERE
from situations.cluster import SHOP, claim_of, csi, healthy, in_zones, install, volume, workload
from situations.cluster import pod_spec as spec_of
from situations.world import World

GCE = DRIVERS["gce_pd"]

Plant = Callable[[World, bool], None]


@dataclass(frozen=True)
class Pair:
    """A situation and its twin. expected: ids of the findings; word: the verdict of pv-x; starts_again: of Deployment x."""

    name: str
    expected: frozenset[str]
    word: str
    starts_again: str
    plant: Plant

    def world(self, wrong: bool) -> World:
        """A healthy cluster with it, or with its twin."""
        made = healthy().copy()
        self.plant(made, wrong)
        return made


PAIRS: dict[str, Pair] = {}


def pair(*expected: str, word: str = "no", starts_again: str = "no") -> Callable[[Plant], Plant]:
    """Name a pair after its function."""

    def note(plant: Plant) -> Plant:
        PAIRS[plant.__name__] = Pair(plant.__name__, frozenset(expected), word, starts_again, plant)
        return plant

    return note


def waits(world: World, source: Any, **more: Any) -> None:
    """A volume with a claim and a Deployment of it whose pod is not there yet."""
    volume(world, "pv-x", source, "x", **{"nodeAffinity": in_zones("a", "b"), **more})
    workload(world, "Deployment", "x", spec_of("x"), replicas=1, strategy={"type": "Recreate"})


def share(driver: str, **attributes: str) -> Any:
    """A share by its attributes."""
    made: Any = {"driver": driver, "volumeHandle": "rg#account#x", "volumeAttributes": attributes}
    if driver == SMB.name:
        made["nodeStageSecretRef"] = {"name": "smbcreds", "namespace": SHOP}
    return {"csi": made}


@pair("CSI-V15")
def a_raw_block_volume_of_a_disk(world: World, wrong: bool) -> None:
    waits(world, csi(VSPHERE.name, "x"), volumeMode="Block" if wrong else "Filesystem")


@pair("CSI-V15")
def a_raw_block_volume_of_a_share(world: World, wrong: bool) -> None:
    waits(world, share(AZURE_FILE.name), volumeMode="Block" if wrong else "Filesystem", accessModes=["ReadWriteMany"])


@pair("CSI-V31")
def a_vsphere_disk_that_many_nodes_may_write(world: World, wrong: bool) -> None:
    waits(world, csi(VSPHERE.name, "x"), accessModes=["ReadWriteMany" if wrong else "ReadWriteOnce"])


@pair("CSI-V31")
def a_vsphere_disk_that_many_nodes_may_read(world: World, wrong: bool) -> None:
    waits(world, csi(VSPHERE.name, "x"), accessModes=["ReadOnlyMany" if wrong else "ReadWriteOncePod"])


@pair("CSI-V31")
def a_claim_that_many_nodes_may_write_before_it_is_bound(world: World, wrong: bool) -> None:
    claim = claim_of(world, "x", SHOP, VSPHERE.storage_class.name)
    claim["spec"]["accessModes"] = ["ReadWriteMany" if wrong else "ReadWriteOnce"]
    workload(world, "Deployment", "x", spec_of("x"), replicas=1)


@pair("CSI-V15")
def a_raw_block_claim_before_it_is_bound(world: World, wrong: bool) -> None:
    claim = claim_of(world, "x", SHOP, VSPHERE.storage_class.name)
    claim["spec"]["volumeMode"] = "Block" if wrong else "Filesystem"
    workload(world, "Deployment", "x", spec_of("x"), replicas=1)


@pair("CSI-V31")
def an_ebs_disk_that_many_nodes_may_write(world: World, wrong: bool) -> None:
    install(world, "aws_ebs", "csi_proxy")
    waits(world, csi(EBS.name, "vol-1"), accessModes=["ReadWriteMany" if wrong else "ReadWriteOnce"])


@pair("CSI-V31")
def an_azure_disk_that_many_nodes_may_read(world: World, wrong: bool) -> None:
    waits(
        world,
        csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/x"),
        accessModes=["ReadOnlyMany" if wrong else "ReadWriteOnce"],
    )


@pair("CSI-V31")
def a_gce_disk_that_many_nodes_write_by_csi(world: World, wrong: bool) -> None:
    install(world, "gce_pd", "csi_proxy")
    waits(
        world,
        csi(GCE.name, "projects/p/regions/r/disks/x"),
        accessModes=["ReadWriteMany" if wrong else "ReadWriteOnce"],
    )


@pair("CSI-V32", word="unknown", starts_again="unknown")
def a_gce_disk_that_is_attached_read_only(world: World, wrong: bool) -> None:
    install(world, "gce_pd", "csi_proxy")
    source = csi(GCE.name, "projects/p/regions/r/disks/x")
    source["csi"]["readOnly"] = wrong
    waits(world, source)


@pair("CSI-V32", word="unknown", starts_again="unknown")
def a_gce_disk_that_many_nodes_read(world: World, wrong: bool) -> None:
    install(world, "gce_pd", "csi_proxy")
    waits(
        world, csi(GCE.name, "projects/p/regions/r/disks/x"), accessModes=["ReadOnlyMany" if wrong else "ReadWriteOnce"]
    )


@pair("CSI-V31")
def an_nfs_share_of_azure_file(world: World, wrong: bool) -> None:
    waits(world, share(AZURE_FILE.name, protocol="nfs" if wrong else "smb"), accessModes=["ReadWriteMany"])


@pair("CSI-V31")
def an_nfs_share_of_azure_file_by_its_type(world: World, wrong: bool) -> None:
    waits(world, share(AZURE_FILE.name, fsType="nfs" if wrong else "cifs"), accessModes=["ReadWriteMany"])


@pair("CSI-V31")
def an_smb_server_known_in_the_cluster_only(world: World, wrong: bool) -> None:
    install(world, "smb", "host_process")
    server = "smb.shop.svc.cluster.local" if wrong else "smb.shop.example.com"
    waits(world, share(SMB.name, source=f"//{server}/share"), accessModes=["ReadWriteMany"])


@pair("CSI-V31")
def an_smb_server_with_the_short_name_of_a_service(world: World, wrong: bool) -> None:
    install(world, "smb", "csi_proxy")
    waits(
        world, share(SMB.name, source=f"//smb.shop{'.svc' if wrong else '.net'}/share"), accessModes=["ReadWriteMany"]
    )


@pair("CSI-V31")
def an_smb_share_without_source(world: World, wrong: bool) -> None:
    install(world, "smb", "host_process")
    given = {"subDir": "x"} if wrong else {"subDir": "x", "source": "//smb.example.com/share"}
    waits(world, share(SMB.name, **given), accessModes=["ReadWriteMany"])


@pair("CSI-V31")
def an_smb_share_without_secret(world: World, wrong: bool) -> None:
    install(world, "smb", "host_process")
    # Which a volume of a pod names so, and a PersistentVolume in vain.
    source = share(SMB.name, source="//smb.example.com/share", secretName="smbcreds")
    if wrong:
        del source["csi"]["nodeStageSecretRef"]
    waits(world, source, accessModes=["ReadWriteMany"], mountOptions=["guest"])


@pair("CSI-V15", word="yes")
def a_file_system_that_a_container_takes_as_a_device(world: World, wrong: bool) -> None:
    waits(world, csi(VSPHERE.name, "x"))
    spec = world.get("Deployment", "x", SHOP)["spec"]["template"]["spec"]
    key, path = ("volumeDevices", "devicePath") if wrong else ("volumeMounts", "mountPath")
    spec["containers"][0][key] = [{"name": "v-x", path: "/data"}]


@pair("CSI-V15")
def a_device_that_a_container_mounts(world: World, wrong: bool) -> None:
    a_file_system_that_a_container_takes_as_a_device(world, False)
    if wrong:
        for kind, name in (("PersistentVolume", "pv-x"), ("PersistentVolumeClaim", "x")):
            world.get(kind, name, SHOP if kind == "PersistentVolumeClaim" else "")["spec"]["volumeMode"] = "Block"


@pair("CSI-V14")
def a_gce_disk_with_ext4(world: World, wrong: bool) -> None:
    install(world, "gce_pd", "csi_proxy")
    waits(world, csi(GCE.name, "projects/p/regions/r/disks/x", "ext4" if wrong else "ntfs"))


@pair("CSI-V14")
def a_vsphere_disk_with_xfs(world: World, wrong: bool) -> None:
    waits(world, csi(VSPHERE.name, "x", "xfs" if wrong else "ntfs"))


@pair("CSI-V18", word="unknown", starts_again="unknown")
def an_azure_disk_with_ext4_by_its_attributes(world: World, wrong: bool) -> None:
    source = csi(AZURE_DISK.name, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/x", "ntfs")
    source["csi"]["volumeAttributes"] = {"fsType": "ext4" if wrong else "ntfs"}
    waits(world, source)


@pair("CSI-N45", word="no")
def a_vsphere_plugin_that_another_user_runs_through_csi_proxy(world: World, wrong: bool) -> None:
    release = "v3.5.0" if wrong else "v3.3.1"
    for kind in ("DaemonSet", "Deployment", "Pod"):
        for one in world.of(kind):
            spec = one["spec"] if kind == "Pod" else one["spec"]["template"]["spec"]
            for container in (*spec["containers"], *one["status"].get("containerStatuses", ())):
                container["image"] = container["image"].replace("driver:v3.4.0", f"driver:{release}")
    ours = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    del ours["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    waits(world, csi(VSPHERE.name, "x"))
