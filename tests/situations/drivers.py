# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What keeps drivers from working on nodes."""

from __future__ import annotations

import json

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread

from situations.base import (
    AZURE_DISK,
    AZURE_FILE,
    IN_TREE_VSPHERE,
    SMB,
    VSPHERE,
    crash,
    on_windows,
    situation,
    templates_of_vsphere,
)
from situations.cluster import (
    attach,
    controller,
    csi,
    daemon_set,
    pod_spec,
    smb,
    unregister,
    volume,
    workload,
)
from situations.harmless import a_template_that_was_brought_back
from situations.world import Object, World


@situation("CSI-G10", "CSI-G20", starts_again={"Deployment shop/web": "unknown"})
def a_csinode_that_is_there_and_names_no_driver(world: World) -> None:
    for driver in (VSPHERE, AZURE_DISK, AZURE_FILE):
        unregister(world, driver, "win-2")
        world.remove("Pod", f"{driver.daemonset}-win-2", driver.namespace)


@situation("CSI-G12")
def a_stale_entry_after_a_reboot(world: World) -> None:
    world.host("win-1")["boot_time"] = world.ago(minutes=3)


@situation("CSI-G11", classes={"pv-db-0": "yes no"})
def a_stale_entry_while_the_plugin_crashes(world: World) -> None:
    crash(world, "vsphere", "win-2")


@situation("CSI-G02", classes={"pv-db-0": "no"}, starts_again={"StatefulSet shop/db": "no"})
def entries_left_by_a_driver_that_was_removed(world: World) -> None:
    world.remove("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    for on in ("win-1", "win-2"):
        world.remove("Pod", f"{VSPHERE.daemonset}-{on}", VSPHERE.namespace)


@situation("CSI-G21")
def a_registration_that_stopped_half_way(world: World) -> None:
    annotations = world.get("Node", "win-1")["metadata"]["annotations"]
    ids = json.loads(annotations["csi.volume.kubernetes.io/nodeid"])
    ids[VSPHERE.name] = "an-older-id"
    annotations["csi.volume.kubernetes.io/nodeid"] = json.dumps(ids)


@situation("CSI-G22")
def a_topology_label_that_is_missing(world: World) -> None:
    del world.get("Node", "win-1")["metadata"]["labels"]["topology.disk.csi.azure.com/zone"]


@situation("CSI-G30")
def the_same_driver_brought_twice(world: World) -> None:
    rule = VSPHERE.rule("csi_proxy")
    assert rule is not None
    daemon_set(world, VSPHERE, rule, "3.4.0", name="by-hand")


@situation("CSI-G14", starts_again={"StatefulSet shop/db": "unknown"})
def a_pod_of_the_template_before(world: World) -> None:
    templates_of_vsphere(world, generation=2, revisions={"first": 1, "second": 2}, pods=("2", "second"))
    older = world.get("Pod", f"{VSPHERE.daemonset}-win-2", VSPHERE.namespace)["metadata"]["labels"]
    older.update({"pod-template-generation": "1", "controller-revision-hash": "first"})


@situation("CSI-C01", "CSI-G14", classes={"pv-db-0": "unknown"})
def whose_template_a_pod_is_of_could_not_be_read(world: World) -> None:
    a_template_that_was_brought_back(world)
    why = "this account may not list controllerrevisions"
    world.unread.append(Unread("controllerrevisions", why, '{apiGroups: ["apps"], resources: ["controllerrevisions"]}'))
    world.objects = [one for one in world.objects if one["kind"] != "ControllerRevision"]


@situation("CSI-G43")
def csi_proxy_has_stopped_under_a_running_plugin(world: World) -> None:
    world.host("win-1").update(serving=False, state="STOPPED")


@situation("CSI-G42")
def a_pipe_that_the_plugin_mounts_is_missing(world: World) -> None:
    observed = world.host("win-1")
    observed["pipes"].remove("csi-proxy-system-v1alpha1")
    observed["serving"] = False


@situation("CSI-G40", classes={"pv-db-0": "yes unknown"})
def no_host_was_read(world: World) -> None:
    world.hosts = [one for one in world.hosts if one["node"] != "win-1"]


@situation("CSI-G41")
def a_host_was_looked_at_yesterday(world: World) -> None:
    world.host("win-1")["observed_at"] = world.ago(hours=26)


@situation("CSI-G05", "CSI-V52")
def a_node_that_is_not_ready(world: World) -> None:
    condition = world.get("Node", "win-1")["status"]["conditions"][0]
    condition.update(status="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting node status.")


@situation()
def a_node_that_is_cordoned(world: World) -> None:
    world.get("Node", "win-1")["spec"]["unschedulable"] = True


@situation("CSI-N30", "CSI-W01")
def a_label_that_disagrees_with_the_kubelet(world: World) -> None:
    world.get("Node", "linux-2")["metadata"]["labels"]["kubernetes.io/os"] = "windows"


@situation("CSI-N12", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/web": "unknown"})
def the_host_itself_has_no_unix_sockets(world: World) -> None:
    world.host("win-1")["findings"] = [
        {
            "id": "CSI-N12",
            "severity": "blocker",
            "object": "driver afunix",
            "message": "The driver for Unix domain sockets is missing.",
            "remedy": "Add it.",
        }
    ]


@situation()
def a_host_process_plugin_that_mounts_pipes(world: World) -> None:
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["securityContext"] = {"windowsOptions": {"hostProcess": True}}
    # A real API server takes it only so.
    spec["hostNetwork"] = True


@situation("CSI-G42")
def the_operators_host_process_plugin_without_csi_proxy(world: World) -> None:
    """OpenShift's own form: a HostProcess container that mounts no pipe and uses csi-proxy."""
    plugin = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    plugin["metadata"]["annotations"] = {"operator.openshift.io/spec-hash": "1"}
    spec = plugin["spec"]["template"]["spec"]
    spec["securityContext"] = {"windowsOptions": {"hostProcess": True}}
    spec["hostNetwork"] = True
    spec["volumes"] = [one for one in spec["volumes"] if "pipe" not in one["hostPath"]["path"]]
    world.host("win-1").update(serving=False, state="stopped", pipes=[])


@situation()
def a_node_with_fifty_nine_volumes(world: World) -> None:
    for number in range(57):
        volume(world, f"pv-many-{number}", csi(VSPHERE.name, f"fcd-many-{number}"), f"many-{number}")
        workload(world, "Deployment", f"many{number}", pod_spec(f"many-{number}"), on=["win-1"])
        attach(world, f"pv-many-{number}", "win-1", VSPHERE.name, f"fcd-many-{number}")


@situation()
def a_node_that_is_full_while_others_have_room(world: World) -> None:
    _limit(world, "win-1", 2)


@situation()
def a_node_whose_volumes_fit_nowhere_else(world: World) -> None:
    _limit(world, "win-2", 2)
    volume(world, "pv-third", csi(VSPHERE.name, "fcd-third"), "third")
    workload(world, "Deployment", "third", pod_spec("third"), on=["win-1"])
    attach(world, "pv-third", "win-1", VSPHERE.name, "fcd-third")


def _limit(world: World, on: str, count: int) -> None:
    drivers = world.get("CSINode", on)["spec"]["drivers"]
    next(one for one in drivers if one["name"] == VSPHERE.name)["allocatable"]["count"] = count


@situation("CSI-N34", starts_again={"StatefulSet shop/db": "no"})
def an_attachment_that_failed(world: World) -> None:
    found = next(
        one for one in world.of("VolumeAttachment") if one["spec"]["source"]["persistentVolumeName"] == "pv-db-0"
    )
    found["status"] = {"attached": False, "attachError": {"message": "disk is busy", "time": world.ago(minutes=1)}}


@situation("CSI-N35", "CSI-W09")
def an_attachment_that_does_not_go(world: World) -> None:
    found = next(
        one for one in world.of("VolumeAttachment") if one["spec"]["source"]["persistentVolumeName"] == "pv-db-0"
    )
    found["metadata"].update(
        deletionTimestamp=world.ago(minutes=11), finalizers=["external-attacher/csi-vsphere-vmware-com"]
    )


@situation("CSI-N34", starts_again={"StatefulSet shop/db": "no"})
def a_volume_that_is_not_detached_because_the_kubelet_still_has_it_mounted(world: World) -> None:
    found = next(
        one for one in world.of("VolumeAttachment") if one["spec"]["source"]["persistentVolumeName"] == "pv-db-0"
    )
    found["metadata"].update(
        deletionTimestamp=world.ago(minutes=2), finalizers=["external-attacher/csi-vsphere-vmware-com"]
    )
    found["status"]["detachError"] = {"message": "context deadline exceeded", "time": world.ago(minutes=1)}


@situation("CSI-N36", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/web": "yes"})
def a_volume_attached_the_in_tree_way_to_a_migrated_kubelet(world: World) -> None:
    attached = world.get("Node", "win-1")["status"]["volumesAttached"]
    attached.append({"name": f"{IN_TREE_VSPHERE}/[ds] kubevols/left.vmdk", "devicePath": ""})


@situation("CSI-G02", classes={"pv-lh": "no"}, starts_again={"Deployment shop/lh": "no"})
def a_driver_that_was_never_brought_to_windows(world: World) -> None:
    on_windows(world, "lh", smb("share-1"))
    install_linux_half(world)


def install_linux_half(world: World) -> None:
    """A driver that Linux alone has."""
    world.add("CSIDriver", SMB.name, spec=dict(SMB.csi_driver))
    controller(world, SMB, SMB.default_version)


@situation("CSI-N44", starts_again={"Deployment shop/lh": "no"})
def an_unknown_driver_on_windows(world: World) -> None:
    on_windows(world, "lh", csi("driver.longhorn.io", "lh-1"))


@situation("CSI-G03")
def a_plugin_whose_selector_leaves_a_node_out(world: World) -> None:
    del world.get("Node", "win-2")["metadata"]["labels"]["kubewin.io/csi-proxy"]
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["nodeSelector"]["kubewin.io/csi-proxy"] = "serving"


# Their next pods, which are there once a node is replaced


def _plugin_spec(world: World) -> Object:
    found: Object = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    return found


def _requests_of_plugin(world: World, memory: str) -> None:
    for container in _plugin_spec(world)["containers"]:
        container["resources"] = {"requests": {"memory": memory}}


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no", "Deployment shop/web": "yes"})
def a_plugin_that_requests_more_than_nodes_have(world: World) -> None:
    _requests_of_plugin(world, "20Gi")


@situation(starts_again={"StatefulSet shop/db": "yes"})
def a_plugin_that_requests_what_nodes_have(world: World) -> None:
    _requests_of_plugin(world, "16Gi")


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no", "Deployment shop/web": "yes"})
def a_plugin_with_a_field_that_kubelets_on_windows_reject(world: World) -> None:
    spec = _plugin_spec(world)
    # With it, the API server refuses the field.
    del spec["os"]
    spec["resources"] = {"limits": {"memory": "1Gi"}}


@situation("CSI-W21", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/web": "yes"})
def a_plugin_of_another_scheduler(world: World) -> None:
    _plugin_spec(world)["schedulerName"] = "descheduled"


def _set_build_of_image(world: World, driver: Driver) -> None:
    spec = world.get("DaemonSet", driver.daemonset, driver.namespace)["spec"]["template"]["spec"]
    spec["containers"][0]["image"] += "-windows-ltsc2019"


@situation("CSI-W09", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/static": "yes"})
def a_plugin_with_an_image_of_another_build(world: World) -> None:
    _set_build_of_image(world, VSPHERE)


@situation(starts_again={"StatefulSet shop/db": "yes", "Deployment shop/static": "yes"})
def a_host_process_plugin_with_an_image_of_another_build(world: World) -> None:
    _set_build_of_image(world, AZURE_DISK)
