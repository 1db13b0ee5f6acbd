# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What if: the versions that an upgrade would bring."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Target

from situations.base import (
    IN_TREE_VSPHERE,
    NO_OLD_SERVER,
    NO_OPENSHIFT,
    VSPHERE,
    crash,
    kubelets,
    on_windows,
    openshift,
    operator,
    situation,
)
from situations.cluster import (
    SHOP,
    install,
    unregister,
)
from situations.world import World


@situation(target=Target(kubernetes="1.37"))
def the_next_kubernetes_changes_nothing(world: World) -> None:
    pass


@situation(
    "CSI-G11",
    "CSI-G20",
    target=Target(kubernetes="1.30"),
    classes={"pv-legacy": "no"},
    only_here=NO_OLD_SERVER,
)
def an_upgrade_takes_in_tree_code_away_before_its_driver_is_there(world: World) -> None:
    world.kubernetes = "v1.28.9"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk",))
    world.remove("StorageClass", "thin")
    for name in ("pv-db-0", "pv-db-1"):
        world.objects = [
            one
            for one in world.objects
            if not (one["kind"] == "VolumeAttachment" and one["spec"]["source"]["persistentVolumeName"] == name)
        ]
    for on in ("win-1", "win-2"):
        unregister(world, VSPHERE, on)
        crash(world, "vsphere", on)
    attached = world.get("Node", "win-1")["status"]["volumesAttached"]
    attached.append({"name": f"{IN_TREE_VSPHERE}/[ds] kubevols/legacy.vmdk", "devicePath": ""})


@situation("CSI-T01", target=Target(kubernetes="1.36"), classes={"pv-legacy": "yes"})
def kubelets_too_far_behind_for_the_target(world: World) -> None:
    kubelets(world, "v1.31.4")


@situation("CSI-V20", target=Target(kubernetes="1.29.0"), only_here=NO_OLD_SERVER)
def a_target_release_with_a_known_fault(world: World) -> None:
    world.kubernetes = "v1.28.9"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk", IN_TREE_VSPHERE))


@situation(
    "CSI-T18",
    target=Target(openshift="4.13.20", wmco="8.1.0"),
    only_here=NO_OPENSHIFT,
    classes={"pv-static": "yes"},
)
def scenario_a_both_operators_bring_csi_proxy(world: World) -> None:
    _operator_7(world, "7.2.0-1a2b3c")


@situation("CSI-T18", target=Target(openshift="4.13.20", wmco="8.1.0"), only_here=NO_OPENSHIFT)
def scenario_b_only_the_later_operator_brings_csi_proxy(world: World) -> None:
    _operator_7(world, "7.1.1-1a2b3c")


@situation("CSI-T18", "CSI-T03", target=Target(openshift="4.13.20", wmco="8.0.1"), only_here=NO_OPENSHIFT)
def scenario_c_the_later_operator_takes_csi_proxy_away(world: World) -> None:
    _operator_7(world, "7.2.0-1a2b3c")


def _operator_7(world: World, version: str) -> None:
    """OpenShift 4.12 on a platform without a guard, with volumes of Azure Disk only, which 4.12 has migrated."""
    openshift(world, "4.12.40")
    operator(world, version)
    world.kubernetes = "v1.25.16"
    kubelets(world, "v1.25.16", migrated=("kubernetes.io/azure-disk",))
    world.remove("Deployment", "legacy", SHOP)
    world.remove("Pod", "legacy-0", SHOP)
    world.remove("PersistentVolumeClaim", "legacy", SHOP)
    world.remove("PersistentVolume", "pv-legacy")
    for one in list(world.of("VolumeAttachment")):
        if one["spec"]["source"]["persistentVolumeName"] == "pv-legacy":
            world.objects.remove(one)


@situation("CSI-T18", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def scenario_d_from_8_to_9_with_csi_proxy(world: World) -> None:
    _operator_8(world, "8.1.0-1a2b3c")


@situation("CSI-T18", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def scenario_e_from_8_without_csi_proxy_to_9(world: World) -> None:
    _operator_8(world, "8.0.1-1a2b3c")


def _operator_8(world: World, version: str) -> None:
    """OpenShift 4.13 on vSphere: Windows is in-tree there whatever Linux does."""
    openshift(world, "4.13.20")
    operator(world, version)
    world.kubernetes = "v1.26.9"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("CSI-T06", "CSI-T07", target=Target(wmco="10.22.0"), only_here=NO_OPENSHIFT)
def an_operator_of_another_line(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c")


@situation("CSI-T18", "CSI-T14", target=Target(openshift="4.23.1"), only_here=NO_OPENSHIFT)
def an_operator_that_leaps_over_lines(world: World) -> None:
    openshift(world, "4.20.9")
    operator(world, "10.20.0-1a2b3c")


# The API server of this cluster is later than its OpenShift; CSI-V10 and CSI-V50 are of that.
@situation(
    "CSI-T18",
    "CSI-T14",
    "CSI-T15",
    "CSI-V10",
    "CSI-V32",
    "CSI-V50",
    target=Target(openshift="4.13.20"),
    only_here=NO_OPENSHIFT,
)
def an_ebs_volume_from_before_the_operator_had_csi_proxy(world: World) -> None:
    openshift(world, "4.11.9")
    operator(world, "6.0.0")
    install(world, "aws_ebs", "csi_proxy")
    source = {"awsElasticBlockStore": {"volumeID": "aws:///vol-1", "fsType": "ntfs"}}
    on_windows(world, "ebs", source, nodeAffinity={})


@situation("CSI-T18", target=Target(openshift="4.23.1"), only_here=NO_OPENSHIFT)
def an_operator_that_goes_to_the_next_line(world: World) -> None:
    openshift(world, "4.22.9")
    operator(world, "10.22.0-1a2b3c")


@situation("CSI-T18", "CSI-T16", target=Target(openshift="5.0.3"), only_here=NO_OPENSHIFT)
def a_plugin_of_ours_where_openshift_will_bring_its_own(world: World) -> None:
    openshift(world, "4.23.9")
    operator(world, "11.0.0-1a2b3c")


@situation("CSI-T18", target=Target(openshift="5.0.3"), only_here=NO_OPENSHIFT)
def the_operators_own_plugin_stays(world: World) -> None:
    openshift(world, "4.23.9")
    operator(world, "11.0.0-1a2b3c")
    for one in world.of("DaemonSet"):
        one["metadata"]["labels"].pop("app.kubernetes.io/managed-by", None)
        one["metadata"].setdefault("annotations", {})["operator.openshift.io/spec-hash"] = "1"


@situation("CSI-T12", target=Target(kubernetes="1.27"))
def a_target_that_every_node_is_past(world: World) -> None:
    pass


@situation("CSI-T13", target=Target(openshift="4.23.1"))
def a_target_of_a_platform_that_this_is_not(world: World) -> None:
    pass


@situation("CSI-T02", "CSI-T16", target=Target(openshift="6.4"), only_here=NO_OPENSHIFT)
def an_unknown_line(world: World) -> None:
    openshift(world)


@situation("CSI-T18", target=Target(openshift="4.20.3"), only_here=NO_OPENSHIFT)
def a_release_of_openshift_that_ships_vsphere_as_a_host_process_container(world: World) -> None:
    openshift(world, "4.19.9")
    operator(world, "10.19.0-1a2b3c")
