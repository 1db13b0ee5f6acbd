# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every situation that readiness must tell from a healthy cluster; situations/base.py says what a situation is."""

from __future__ import annotations

import json

from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.verdict import Target

from situations import unstarted, walked
from situations.base import (
    AZURE_DISK,
    AZURE_FILE,
    EBS,
    IN_TREE_VSPHERE,
    NO_OLD_SERVER,
    NO_OPENSHIFT,
    SITUATIONS,
    SMB,
    VSPHERE,
    WMCO,
    ZONE,
    Situation,
    crash,
    kubelets,
    on_windows,
    openshift,
    operator,
    situation,
    templates_of_vsphere,
)
from situations.cluster import (
    SHOP,
    attach,
    claim_of,
    controller,
    csi,
    daemon_set,
    install,
    owner_reference,
    pod,
    pod_spec,
    smb,
    undecided,
    unregister,
    volume,
    windows_nodes,
    workload,
)
from situations.world import World

__all__ = ["SITUATIONS", "Situation", "unstarted", "walked"]

# What looks wrong and is not


@situation("2.1", classes={"pv-legacy": "MIGRATED_OK"}, comes_back={"Deployment shop/legacy": "yes"})
def a_migrated_volume_still_looks_in_tree(world: World) -> None:
    assert "vsphereVolume" in world.get("PersistentVolume", "pv-legacy")["spec"]


@situation("2.3 false red", classes={"pv-static": "MIGRATED_OK"})
def a_static_in_tree_volume_never_says_that_it_was_migrated(world: World) -> None:
    assert not world.get("PersistentVolume", "pv-static")["metadata"]["annotations"]


@situation("correction 3", classes={"pv-new": "MIGRATED_OK"})
def a_claim_made_after_migration_carries_the_name_of_the_driver(world: World) -> None:
    disk = {"vsphereVolume": {"volumePath": "[ds] kubevols/new.vmdk", "fsType": "ntfs"}}
    on_windows(world, "new", disk, provisioned_by=IN_TREE_VSPHERE)
    annotations = world.get("PersistentVolumeClaim", "new", SHOP)["metadata"]["annotations"]
    annotations["volume.kubernetes.io/storage-provisioner"] = VSPHERE.name


@situation("3.1", classes={"pv-legacy": "MIGRATED_OK"})
def no_kubelet_of_today_lists_what_it_migrated(world: World) -> None:
    kubelets(world, "v1.36.3", migrated=())


@situation("revisions")
def a_template_that_was_brought_back(world: World) -> None:
    """Its pods have the generation of then, and the hash of the newest revision."""
    templates_of_vsphere(world, generation=3, revisions={"first": 3, "second": 2}, pods=("1", "first"))


@situation("3.2 #2")
def two_drivers_on_a_node_are_as_good_as_one(world: World) -> None:
    install(world, "smb", "host_process")


@situation("2.3")
def a_share_for_both_systems(world: World) -> None:
    assert {"web", "feed"} <= {one["metadata"]["name"] for one in world.of("Deployment")}


@situation("4")
def linux_volumes_of_every_kind(world: World) -> None:
    for name, source in (
        ("nfs", {"nfs": {"server": "s", "path": "/"}}),
        ("rbd", {"rbd": {"monitors": ["m"], "image": "i"}}),
        ("ext4", csi(EBS.name, "vol-1", "ext4")),
    ):
        volume(world, f"pv-{name}", source, name)
        workload(world, "Deployment", name, pod_spec(name, windows=False), on=["linux-1"])


@situation("4")
def an_unused_claim_that_only_linux_can_mount(world: World) -> None:
    volume(world, "pv-old", csi(EBS.name, "vol-1", "ext4"), "old")
    volume(world, "pv-ceph", csi("rbd.csi.ceph.com", "image-1", ""), "ceph")


@situation("2.1")
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


@situation("4")
def a_daemon_set_with_its_own_directory_only(world: World) -> None:
    directory = [{"name": "logs", "hostPath": {"path": "C:\\logs"}}]
    workload(world, "DaemonSet", "logs", pod_spec(extra_volumes=directory), on=["win-1", "win-2"])


@situation("5.5", classes={"pv-blank": "NATIVE_CSI"})
def vsphere_takes_ext4_for_ntfs_where_windows_mounted_it(world: World) -> None:
    on_windows(world, "blank", csi(VSPHERE.name, "fcd-blank", "ext4"))


@situation("4 runtime class")
def a_runtime_class_keeps_a_workload_on_windows(world: World) -> None:
    scheduling = {"nodeSelector": {"kubernetes.io/os": "windows"}, "tolerations": [{"key": "os", "operator": "Exists"}]}
    world.add("RuntimeClass", "windows-2022", handler="runhcs-wcow-process", scheduling=scheduling)
    volume(world, "pv-rc", csi(VSPHERE.name, "fcd-rc"), "rc")
    workload(world, "Deployment", "rc", undecided("rc", tolerations=None, runtimeClassName="windows-2022"), replicas=1)


@situation("4 affinity", comes_back={"Deployment shop/pinned": "yes"})
def node_affinity_pins_a_workload_to_one_windows_node(world: World) -> None:
    volume(world, "pv-pinned", csi(VSPHERE.name, "fcd-pinned"), "pinned")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-2"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    workload(world, "Deployment", "pinned", undecided("pinned", affinity=affinity), replicas=1)


@situation("4 legacy label")
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
    source = {"azureDisk": {"diskName": "z", "diskURI": "/subscriptions/s/z", "kind": "Managed", "fsType": "ntfs"}}
    on_windows(world, "zone", source, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


@situation("1.2 zones", "CSI-W20", classes={"pv-zone": "MIGRATED_OK"}, comes_back={"Deployment shop/zone": "no"})
def an_old_zone_label_that_no_node_has(world: World) -> None:
    _old_zone(world)


@situation("1.2 zones", classes={"pv-zone": "MIGRATED_OK"}, comes_back={"Deployment shop/zone": "yes"})
def an_old_zone_label_that_the_node_has(world: World) -> None:
    _old_zone(world)
    world.get("Node", "win-2")["metadata"]["labels"]["failure-domain.beta.kubernetes.io/zone"] = "b"


@situation("ownership")
def aks_shows_nobody_its_controllers(world: World) -> None:
    for one in windows_nodes(world):
        one["metadata"]["labels"]["kubernetes.azure.com/cluster"] = "mc_group"
    for driver in (AZURE_DISK, AZURE_FILE):
        world.remove("Deployment", driver.controller.deployments[0], driver.namespace)


# Nodes and drivers


@situation("3.1", "CSI-G10", "CSI-G20", comes_back={"Deployment shop/web": "unknown"})
def a_csinode_that_is_there_and_names_no_driver(world: World) -> None:
    for driver in (VSPHERE, AZURE_DISK, AZURE_FILE):
        unregister(world, driver, "win-2")
        world.remove("Pod", f"{driver.daemonset}-win-2", driver.namespace)


@situation("3.1", "CSI-G12")
def a_stale_entry_after_a_reboot(world: World) -> None:
    world.host("win-1")["boot_time"] = world.ago(minutes=3)


@situation("3.1", "CSI-G11", classes={"pv-db-0": "NATIVE_CSI NATIVE_NO_DRIVER"})
def a_stale_entry_while_the_plugin_crashes(world: World) -> None:
    crash(world, "vsphere", "win-2")


@situation("3.1", "CSI-G02", classes={"pv-db-0": "NATIVE_NO_DRIVER"}, comes_back={"StatefulSet shop/db": "no"})
def entries_left_by_a_driver_that_was_removed(world: World) -> None:
    world.remove("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    for on in ("win-1", "win-2"):
        world.remove("Pod", f"{VSPHERE.daemonset}-{on}", VSPHERE.namespace)


@situation("3.2 #3", "CSI-G21")
def a_registration_that_stopped_half_way(world: World) -> None:
    annotations = world.get("Node", "win-1")["metadata"]["annotations"]
    ids = json.loads(annotations["csi.volume.kubernetes.io/nodeid"])
    ids[VSPHERE.name] = "an-older-id"
    annotations["csi.volume.kubernetes.io/nodeid"] = json.dumps(ids)


@situation("3.2 #4", "CSI-G22")
def a_topology_label_that_is_missing(world: World) -> None:
    del world.get("Node", "win-1")["metadata"]["labels"]["topology.disk.csi.azure.com/zone"]


@situation("3.2 #7, 6.4", "CSI-G30")
def the_same_driver_brought_twice(world: World) -> None:
    rule = VSPHERE.rule("csi_proxy")
    assert rule is not None
    daemon_set(world, VSPHERE, rule, "3.4.0", name="by-hand")


@situation("revisions", "CSI-G14")
def a_pod_of_the_template_before(world: World) -> None:
    templates_of_vsphere(world, generation=2, revisions={"first": 1, "second": 2}, pods=("2", "second"))
    older = world.get("Pod", f"{VSPHERE.daemonset}-win-2", VSPHERE.namespace)["metadata"]["labels"]
    older.update({"pod-template-generation": "1", "controller-revision-hash": "first"})


@situation("revisions", "CSI-C01", "CSI-G14", classes={"pv-db-0": "UNKNOWN"})
def whose_template_a_pod_is_of_could_not_be_read(world: World) -> None:
    a_template_that_was_brought_back(world)
    why = "this account may not list controllerrevisions"
    world.unread.append(Unread("controllerrevisions", why, '{apiGroups: ["apps"], resources: ["controllerrevisions"]}'))
    world.objects = [one for one in world.objects if one["kind"] != "ControllerRevision"]


@situation("3.2 #8", "CSI-G43")
def csi_proxy_has_stopped_under_a_running_plugin(world: World) -> None:
    world.host("win-1").update(serving=False, state="STOPPED")


@situation("3.2 #8", "CSI-G42")
def a_pipe_that_the_plugin_mounts_is_missing(world: World) -> None:
    seen = world.host("win-1")
    seen["pipes"].remove("csi-proxy-system-v1alpha1")
    seen["missing_pipes"] = ["csi-proxy-system-v1alpha1"]
    seen["serving"] = False


@situation("3.2 #8", "CSI-G40", classes={"pv-db-0": "NATIVE_CSI UNKNOWN"})
def nobody_looked_at_a_host(world: World) -> None:
    world.hosts = [one for one in world.hosts if one["node"] != "win-1"]


@situation("3.2 #8", "CSI-G41")
def a_host_was_looked_at_yesterday(world: World) -> None:
    world.host("win-1")["observed_at"] = world.ago(hours=26)


@situation("3.2 #1", "CSI-G05", "CSI-V52")
def a_node_that_is_not_ready(world: World) -> None:
    condition = world.get("Node", "win-1")["status"]["conditions"][0]
    condition.update(status="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting node status.")


@situation("3.2 #1", "CSI-N31")
def a_node_that_is_cordoned(world: World) -> None:
    world.get("Node", "win-1")["spec"]["unschedulable"] = True


@situation("3.2 #1", "CSI-N30")
def a_label_that_disagrees_with_the_kubelet(world: World) -> None:
    world.get("Node", "linux-2")["metadata"]["labels"]["kubernetes.io/os"] = "windows"


@situation("2.5 wmic", "CSI-G11", "CSI-G20", "CSI-N38")
def windows_without_wmic_and_a_plugin_that_calls_it(world: World) -> None:
    world.get("Node", "win-1")["metadata"]["labels"]["node.kubernetes.io/windows-build"] = "10.0.26100"
    world.host("win-1")["release"] = "1.2.1"
    unregister(world, VSPHERE, "win-1")
    crash(world, "vsphere", "win-1", 'exec: "wmic": executable file not found in %PATH%')


@situation("2.5 wmic", "CSI-N14")
def the_host_itself_lacks_wmic(world: World) -> None:
    world.host("win-1")["findings"] = [
        {
            "id": "CSI-N14",
            "severity": "blocker",
            "object": "wmic.exe",
            "message": "The driver calls wmic.",
            "remedy": "Add it.",
        }
    ]


@situation("3.2 #13", "CSI-G11", "CSI-G20", "CSI-N37")
def no_image_for_the_build_of_a_node(world: World) -> None:
    world.get("Node", "win-1")["metadata"]["labels"]["node.kubernetes.io/windows-build"] = "10.0.14393"
    unregister(world, VSPHERE, "win-1")
    crash(world, "vsphere", "win-1", "no match for platform in manifest")


@situation("7", "CSI-N32")
def a_host_process_plugin_that_mounts_pipes(world: World) -> None:
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["securityContext"] = {"windowsOptions": {"hostProcess": True}}
    # A real API server takes it only so.
    spec["hostNetwork"] = True


@situation("3.2 #10", "CSI-N33")
def a_node_with_fifty_nine_volumes(world: World) -> None:
    for number in range(57):
        volume(world, f"pv-many-{number}", csi(VSPHERE.name, f"fcd-many-{number}"), f"many-{number}")
        workload(world, "Deployment", f"many{number}", pod_spec(f"many-{number}"), on=["win-1"])
        attach(world, f"pv-many-{number}", "win-1", VSPHERE.name, f"fcd-many-{number}")


@situation("3.2 #10", "CSI-N33")
def a_node_that_is_full_while_others_have_room(world: World) -> None:
    _limit(world, "win-1", 2)


@situation("3.2 #10", "CSI-N33")
def a_node_whose_volumes_fit_nowhere_else(world: World) -> None:
    _limit(world, "win-2", 2)
    volume(world, "pv-third", csi(VSPHERE.name, "fcd-third"), "third")
    workload(world, "Deployment", "third", pod_spec("third"), on=["win-1"])
    attach(world, "pv-third", "win-1", VSPHERE.name, "fcd-third")


def _limit(world: World, on: str, count: int) -> None:
    drivers = world.get("CSINode", on)["spec"]["drivers"]
    next(one for one in drivers if one["name"] == VSPHERE.name)["allocatable"]["count"] = count


@situation("3.2 #11", "CSI-N34", comes_back={"StatefulSet shop/db": "no"})
def an_attachment_that_failed(world: World) -> None:
    found = next(
        one for one in world.of("VolumeAttachment") if one["spec"]["source"]["persistentVolumeName"] == "pv-db-0"
    )
    found["status"] = {"attached": False, "attachError": {"message": "disk is busy", "time": world.ago(minutes=1)}}


@situation("3.2 #11", "CSI-N35", "CSI-W09")
def an_attachment_that_does_not_go(world: World) -> None:
    found = next(
        one for one in world.of("VolumeAttachment") if one["spec"]["source"]["persistentVolumeName"] == "pv-db-0"
    )
    found["metadata"].update(
        deletionTimestamp=world.ago(minutes=11), finalizers=["external-attacher/csi-vsphere-vmware-com"]
    )


@situation("3.2 #12", "CSI-N36")
def a_volume_attached_the_in_tree_way_to_a_migrated_kubelet(world: World) -> None:
    attached = world.get("Node", "win-1")["status"]["volumesAttached"]
    attached.append({"name": f"{IN_TREE_VSPHERE}/[ds] kubevols/left.vmdk", "devicePath": ""})


@situation(
    "3.1", "CSI-N39", "CSI-V10", "CSI-V50", classes={"pv-legacy": "MIGRATED_OK SPLIT", "pv-static": "MIGRATED_OK SPLIT"}
)
def a_kubelet_that_loses_registration_sockets(world: World) -> None:
    kubelets(world, "v1.23.9", migrated=(), only="win-1")


@situation("7.1", "CSI-G02", classes={"pv-lh": "NATIVE_NO_DRIVER"}, comes_back={"Deployment shop/lh": "no"})
def a_driver_that_was_never_brought_to_windows(world: World) -> None:
    on_windows(world, "lh", smb("share-1"))
    install_linux_half(world)


def install_linux_half(world: World) -> None:
    """A driver that Linux alone has."""
    world.add("CSIDriver", SMB.name, spec=dict(SMB.csi_driver))
    controller(world, SMB, SMB.default_version)


@situation("3.2 #2", "CSI-N44", comes_back={"Deployment shop/lh": "no"})
def a_driver_that_nobody_knows_on_windows(world: World) -> None:
    on_windows(world, "lh", csi("driver.longhorn.io", "lh-1"))


@situation("3.2 #7", "CSI-G03")
def a_plugin_whose_selector_leaves_a_node_out(world: World) -> None:
    del world.get("Node", "win-2")["metadata"]["labels"]["kubewin.io/csi-proxy"]
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["nodeSelector"]["kubewin.io/csi-proxy"] = "proven"


# Volumes


@situation(
    "2.3 SPLIT", "CSI-V10", "CSI-V50", classes={"pv-legacy": "SPLIT"}, comes_back={"Deployment shop/legacy": "no"}
)
def a_split_migration(world: World) -> None:
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("2.3 SPLIT", "CSI-V10", "CSI-V50", classes={"pv-legacy": "SPLIT MIGRATED_OK"})
def one_node_of_two_was_upgraded(world: World) -> None:
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk",), only="win-1")


@situation("2.3 false green", "CSI-V10", classes={"pv-legacy": "SPLIT"}, only_here=NO_OPENSHIFT)
def migrated_to_says_nothing_of_windows_under_operator_8(world: World) -> None:
    openshift(world, "4.13.12")
    operator(world, "8.1.0-1a2b3c")
    world.kubernetes = "v1.26.9"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("2.3 IN_TREE", "CSI-V11", classes={"pv-legacy": "IN_TREE"}, only_here=NO_OLD_SERVER)
def nothing_of_the_cluster_was_migrated(world: World) -> None:
    world.kubernetes = "v1.24.17"
    kubelets(world, "v1.24.17", migrated=("kubernetes.io/azure-disk",))
    del world.get("PersistentVolume", "pv-legacy")["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"]


@situation("2.3 UNKNOWN", "CSI-V22", classes={"pv-legacy": "UNKNOWN"})
def a_kubelet_that_does_not_tell_what_it_migrates(world: World) -> None:
    kubelets(world, "v1.26.9")


@situation(
    "2.3",
    "CSI-G11",
    "CSI-G20",
    classes={"pv-legacy": "MIGRATED_NO_DRIVER"},
    comes_back={"Deployment shop/legacy": "no"},
)
def a_migrated_volume_without_its_driver(world: World) -> None:
    for on in ("win-1", "win-2"):
        unregister(world, VSPHERE, on)
        crash(world, "vsphere", on)


@situation("1.1", "CSI-V20", classes={"pv-legacy": "MIGRATED_REFUSED"})
def the_kubelet_release_that_forgot_vsphere(world: World) -> None:
    kubelets(world, "v1.29.0", migrated=())


@situation("1.1", "CSI-V20")
def the_kubelet_release_that_breaks_azure_file(world: World) -> None:
    kubelets(world, "v1.32.0")
    on_windows(
        world,
        "files",
        {"azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s", "secretNamespace": SHOP}},
    )


@situation("1.2", "CSI-V13", classes={"pv-blob": "DEAD"}, comes_back={"Deployment shop/blob": "no"})
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


@situation("1.2", "CSI-V13")
def an_inline_vsphere_volume_with_a_storage_policy(world: World) -> None:
    inline = {
        "name": "data",
        "vsphereVolume": {"volumePath": "[ds] x.vmdk", "fsType": "ntfs", "storagePolicyName": "gold"},
    }
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation("4 inline", comes_back={"Deployment shop/inline": "yes"})
def an_inline_azure_file_volume(world: World) -> None:
    inline = {"name": "data", "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s"}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation("4 inline", "CSI-W03", "CSI-G10", "CSI-G20")
def an_inline_azure_file_volume_at_zero_replicas_without_driver(world: World) -> None:
    world.remove("Deployment", "web", SHOP)
    for number in (0, 1):
        world.remove("Pod", f"web-{number}", SHOP)
    for on in ("win-1", "win-2"):
        unregister(world, AZURE_FILE, on)
        world.remove("Pod", f"{AZURE_FILE.daemonset}-{on}", AZURE_FILE.namespace)
    inline = {"name": "data", "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s"}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), replicas=0)


@situation("4 inline", "CSI-V28")
def an_inline_csi_volume_that_its_driver_does_not_allow(world: World) -> None:
    inline = {"name": "data", "csi": {"driver": VSPHERE.name}}
    workload(world, "Deployment", "inline", pod_spec(extra_volumes=[inline]), on=["win-1"])


@situation("1.1 dead", "CSI-V12", classes={"pv-gluster": "DEAD"})
def a_kind_that_left_kubernetes(world: World) -> None:
    on_windows(world, "gluster", {"glusterfs": {"endpoints": "e", "path": "p"}})


@situation("1.1 dead", "CSI-V12", classes={"pv-rbd": "DEAD"})
def a_kind_whose_translation_is_gone_too(world: World) -> None:
    on_windows(world, "rbd", {"rbd": {"monitors": ["m"], "image": "i"}})


@situation("4", "CSI-V30")
def a_kind_that_windows_does_not_mount(world: World) -> None:
    on_windows(world, "nfs", {"nfs": {"server": "s", "path": "/"}})


@situation("4", classes={"pv-local": "NOT_CSI"})
def a_directory_of_the_node(world: World) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["win-1"]}]}]
    on_windows(world, "local", {"local": {"path": "C:\\data"}}, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


@situation("4 hazard", "CSI-V18", classes={"pv-ext4": "UNKNOWN"}, comes_back={"Deployment shop/ext4": "unknown"})
def a_linux_file_system_reachable_from_windows(world: World) -> None:
    on_windows(world, "ext4", csi(AZURE_DISK.name, "/subscriptions/s/ext4", "ext4"))
    world.get("Pod", "ext4-0", SHOP)["status"]["phase"] = "Pending"


@situation("4 hazard", classes={"pv-ext4": "NATIVE_CSI"}, comes_back={"Deployment shop/ext4": "yes"})
def a_disk_named_ext4_that_windows_has_mounted(world: World) -> None:
    on_windows(world, "ext4", csi(AZURE_DISK.name, "/subscriptions/s/ext4", "ext4"))


@situation("correction 5", "CSI-V32", classes={"pv-ebs": "UNKNOWN"})
def an_ebs_volume_that_names_no_file_system(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    on_windows(world, "ebs", {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}})
    world.get("Pod", "ebs-0", SHOP)["status"]["phase"] = "Pending"


@situation("correction 5", classes={"pv-pd": "MIGRATED_OK"})
def a_gce_disk_that_names_no_file_system(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    on_windows(world, "pd", {"gcePersistentDisk": {"pdName": "d"}})


@situation("correction 5", "CSI-V14", classes={"pv-pd": "MIGRATED_REFUSED"})
def a_gce_disk_with_another_file_system(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    on_windows(world, "pd", {"gcePersistentDisk": {"pdName": "d", "fsType": "ext4"}})


@situation("1.2", "CSI-V29")
def a_gce_disk_that_many_nodes_may_write(world: World) -> None:
    install(world, "gce_pd", "csi_proxy")
    on_windows(world, "pd", {"gcePersistentDisk": {"pdName": "d", "fsType": "ntfs"}}, accessModes=["ReadWriteMany"])


@situation(
    "4 hazard", "CSI-V18", "CSI-W03", classes={"pv-cold": "UNKNOWN"}, comes_back={"Deployment shop/cold": "unknown"}
)
def an_ext4_disk_that_windows_has_not_mounted_yet(world: World) -> None:
    volume(world, "pv-cold", csi(VSPHERE.name, "fcd-cold", "ext4"), "cold")
    workload(world, "Deployment", "cold", pod_spec("cold"), replicas=0)


@situation("4 hazard", "CSI-V18", classes={"pv-slow": "UNKNOWN"})
def an_ext4_disk_whose_first_windows_pod_still_waits(world: World) -> None:
    on_windows(world, "slow", csi(VSPHERE.name, "fcd-slow", "ext4"))
    world.get("Pod", "slow-0", SHOP)["status"]["phase"] = "Pending"


@situation("4 hazard", "CSI-V19")
def a_disk_that_both_systems_use(world: World) -> None:
    workload(world, "Deployment", "reader", pod_spec("data-db-0", windows=False), on=["linux-1"])


@situation("2.5", "CSI-V15")
def a_raw_block_volume(world: World) -> None:
    on_windows(world, "raw", csi(VSPHERE.name, "fcd-raw", ""), volumeMode="Block")


@situation("5.5 MBR", "CSI-V16", classes={"pv-legacy": "MIGRATED_REFUSED", "pv-static": "MIGRATED_OK"})
def a_disk_with_an_mbr_and_an_early_csi_proxy(world: World) -> None:
    for seen in world.hosts:
        seen["release"] = "1.0.2"
    for name in ("pv-legacy", "pv-static"):
        world.get("PersistentVolume", name)["metadata"]["creationTimestamp"] = "2021-03-01T00:00:00Z"


@situation("5.5 MBR", "CSI-V18", classes={"pv-legacy": "UNKNOWN"})
def a_disk_that_may_have_an_mbr(world: World) -> None:
    for seen in world.hosts:
        seen["release"] = "1.0.2"


@situation("3.2 #4", "CSI-V17", classes={"pv-far": "NATIVE_REFUSED"}, comes_back={"Deployment shop/far": "no"})
def a_volume_in_a_zone_without_windows_nodes(world: World) -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]}]
    volume(
        world, "pv-far", csi(VSPHERE.name, "fcd-far"), "far", nodeAffinity={"required": {"nodeSelectorTerms": terms}}
    )
    workload(world, "Deployment", "far", pod_spec("far"), replicas=1)


@situation("2.1", classes={"pv-orphan": "NATIVE_CSI"})
def a_volume_attached_to_windows_that_nothing_known_uses(world: World) -> None:
    volume(world, "pv-orphan", csi(VSPHERE.name, "fcd-orphan"), "orphan")
    attach(world, "pv-orphan", "win-1", VSPHERE.name, "fcd-orphan")


@situation("5.1", "CSI-V25", comes_back={"StatefulSet shop/db": "unknown", "Deployment shop/legacy": "yes"})
def two_volumes_with_one_handle(world: World) -> None:
    volume(world, "pv-copy", csi(VSPHERE.name, "fcd-0"), policy="Retain")


@situation("5.1", "CSI-V25", comes_back={"Deployment shop/static": "unknown"})
def a_converted_disk_whose_old_volume_was_kept(world: World) -> None:
    volume(world, "pv-static-csi", csi(AZURE_DISK.name, "/subscriptions/S/d"), policy="Retain")


@situation("5.5")
def two_in_tree_volumes_of_one_share(world: World) -> None:
    for name in ("one", "two"):
        share = {
            "azureFile": {"secretName": "azure-storage-account-a-secret", "shareName": "s", "secretNamespace": SHOP}
        }
        on_windows(world, name, share)


@situation("2.1", "CSI-V23", comes_back={"Deployment shop/lost": "no"})
def a_claim_that_is_lost(world: World) -> None:
    claim = claim_of(world, "lost", volume_name="pv-gone")
    claim["status"]["phase"] = "Lost"
    workload(world, "Deployment", "lost", pod_spec("lost"), on=["win-1"])


@situation("5.2", "CSI-V24")
def a_claim_that_is_being_deleted_under_its_pod(world: World) -> None:
    metadata = world.get("PersistentVolumeClaim", "legacy", SHOP)["metadata"]
    metadata.update(deletionTimestamp=world.ago(minutes=1), finalizers=["kubernetes.io/pvc-protection"])


@situation("4", "CSI-V26", comes_back={"Deployment shop/waits": "no"})
def a_claim_of_a_class_that_is_not_there(world: World) -> None:
    claim_of(world, "waits", storage_class="gold")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("4", "CSI-V26")
def a_claim_without_a_class_where_none_is_the_default(world: World) -> None:
    claim_of(world, "waits", storage_class=None)
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("4", comes_back={"Deployment shop/waits": "yes"})
def a_claim_that_waits_for_its_first_pod(world: World) -> None:
    claim_of(world, "waits", storage_class="vsphere-csi-windows")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("1.3", comes_back={"Deployment shop/waits": "yes"}, classes={"shop/waits": "MIGRATED_OK"})
def a_claim_of_an_in_tree_class(world: World) -> None:
    claim_of(world, "waits", storage_class="thin")
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("4", "CSI-V27")
def a_claim_that_was_never_made(world: World) -> None:
    workload(world, "Deployment", "early", pod_spec("nothing"), replicas=1)


# Workloads that nobody sees


@situation("4 hidden", "CSI-V21", classes={"pv-idle": "UNKNOWN"})
def a_claim_that_nobody_uses(world: World) -> None:
    volume(world, "pv-idle", csi(VSPHERE.name, "fcd-idle"), "idle")


@situation("4 hidden", "CSI-W03", "CSI-G10", "CSI-G20")
def a_stateful_set_of_zero_replicas(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["spec"]["replicas"] = 0
    for number in (0, 1):
        world.remove("Pod", f"db-{number}", SHOP)
    unregister(world, VSPHERE, "win-2")
    world.remove("Pod", f"{VSPHERE.daemonset}-win-2", VSPHERE.namespace)


@situation("4 hidden", "CSI-W02")
def a_finished_job_that_holds_its_claim(world: World) -> None:
    volume(world, "pv-import", csi(VSPHERE.name, "fcd-import"), "import")
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    workload(world, "Job", "import", pod_spec("import"), status=done)
    owner = owner_reference("Job", "import", SHOP)
    pod(world, "import-x", pod_spec("import", restartPolicy="Never"), on="win-1", owner=owner, phase="Succeeded")


@situation("4 hidden", "CSI-W04")
def a_cron_job_between_its_runs(world: World) -> None:
    volume(world, "pv-nightly", csi(VSPHERE.name, "fcd-nightly"), "nightly")
    workload(world, "CronJob", "nightly", pod_spec("nightly"))


@situation("4 hidden", "CSI-W05")
def claims_above_the_replicas_of_a_stateful_set(world: World) -> None:
    volume(world, "pv-db-2", csi(VSPHERE.name, "fcd-2"), "data-db-2", storage_class="vsphere-csi-windows")


@situation("4 hidden", "CSI-W06")
def a_static_pod_with_a_volume(world: World) -> None:
    volume(world, "pv-mirror", csi(VSPHERE.name, "fcd-mirror"), "mirror")
    owner = {**owner_reference("Node", "win-1"), "apiVersion": "v1"}
    annotations = {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"}
    pod(world, "mirror-win-1", pod_spec("mirror"), on="win-1", owner=owner, annotations=annotations)


@situation("4 hidden", "CSI-W07", comes_back={"Pod shop/alone": "no"})
def a_pod_that_nothing_makes_again(world: World) -> None:
    volume(world, "pv-alone", csi(VSPHERE.name, "fcd-alone"), "alone")
    pod(world, "alone", pod_spec("alone"), on="win-1")


@situation("4 hidden", "CSI-W08")
def pods_of_a_kind_that_nobody_reads(world: World) -> None:
    volume(world, "pv-game", csi(VSPHERE.name, "fcd-game"), "game")
    owner = {**owner_reference("GameServer", "arena", SHOP), "apiVersion": "agones.dev/v1"}
    pod(world, "arena-0", pod_spec("game"), on="win-1", owner=owner)


@situation("4", "CSI-W01", comes_back={"Deployment shop/either": "unknown"})
def a_workload_that_may_run_on_either_system(world: World) -> None:
    volume(world, "pv-either", csi(VSPHERE.name, "fcd-either"), "either")
    workload(world, "Deployment", "either", undecided("either"), replicas=1)


@situation("4", "CSI-W01")
def a_selector_that_fits_no_node(world: World) -> None:
    volume(world, "pv-typo", csi(VSPHERE.name, "fcd-typo"), "typo")
    workload(world, "Deployment", "typo", undecided("typo", nodeSelector={"kubernetes.io/oss": "windows"}), replicas=1)


@situation("4", "CSI-W09", comes_back={"Deployment shop/kept-off": "unknown"}, classes={"shop/kept-off": "UNKNOWN"})
def pods_that_tolerate_no_taint_of_the_windows_nodes(world: World) -> None:
    claim_of(world, "kept-off", storage_class="vsphere-csi-windows")
    workload(world, "Deployment", "kept-off", pod_spec("kept-off", tolerations=[]), replicas=1)


@situation("4", "CSI-W09", comes_back={"Deployment shop/picky": "unknown"})
def a_selector_that_fits_no_windows_node(world: World) -> None:
    volume(world, "pv-picky", csi(VSPHERE.name, "fcd-picky"), "picky")
    selector = {"kubernetes.io/os": "windows", "pool": "gpu"}
    workload(world, "Deployment", "picky", pod_spec("picky", nodeSelector=selector), replicas=1)


@situation("4", "CSI-G10", "CSI-G20", comes_back={"Deployment shop/scratch": "unknown"})
def a_volume_that_is_made_with_each_pod(world: World) -> None:
    made = {
        "name": "tmp",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "smb-csi-windows",
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        },
    }
    install(world, "smb", "host_process")
    unregister(world, SMB, "win-2")
    world.remove("Pod", f"{SMB.daemonset}-win-2", SMB.namespace)
    workload(world, "Deployment", "scratch", pod_spec(extra_volumes=[made]), replicas=1)


# The cluster as a whole

_ALL_OF_VSPHERE = {
    "StatefulSet shop/db": "no",
    "Deployment shop/legacy": "no",
    "Deployment shop/static": "yes",
    "Deployment shop/web": "yes",
}


@situation("3.2 cluster", "CSI-D20", comes_back=_ALL_OF_VSPHERE)
def a_driver_without_its_csidriver(world: World) -> None:
    world.remove("CSIDriver", VSPHERE.name)


@situation("3.2 cluster", "CSI-D21", comes_back=_ALL_OF_VSPHERE)
def a_csidriver_that_says_otherwise(world: World) -> None:
    world.get("CSIDriver", VSPHERE.name)["spec"]["attachRequired"] = False


@situation("3.2 cluster", "CSI-D30", comes_back=_ALL_OF_VSPHERE)
def a_driver_without_its_controller(world: World) -> None:
    world.remove("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)


@situation("3.2 cluster", "CSI-D31", comes_back=_ALL_OF_VSPHERE)
def a_controller_that_does_not_run(world: World) -> None:
    world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["status"]["availableReplicas"] = 0


@situation("3.2 cluster", "CSI-C14", comes_back=_ALL_OF_VSPHERE)
def a_controller_without_its_attacher(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"] = [one for one in spec["containers"] if one["name"] != "csi-attacher"]


@situation("3.2 cluster", "CSI-D31", comes_back={"Deployment shop/web": "yes"})
def a_controller_of_shares_that_does_not_run_while_no_claim_waits(world: World) -> None:
    name = AZURE_FILE.controller.deployments[0]
    world.get("Deployment", name, AZURE_FILE.namespace)["status"]["availableReplicas"] = 0


@situation("3.2 cluster", "CSI-D31", comes_back={"Deployment shop/web": "yes", "Deployment shop/waits": "no"})
def a_controller_of_shares_that_does_not_run_while_a_claim_waits(world: World) -> None:
    a_controller_of_shares_that_does_not_run_while_no_claim_waits(world)
    claim_of(world, "waits", storage_class=AZURE_FILE.storage_class.name)
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("3.2 cluster", "CSI-C17", comes_back={"Deployment shop/legacy": "no", "StatefulSet shop/db": "yes"})
def an_attacher_that_does_not_know_the_in_tree_kind(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][-1]["image"] = "registry.k8s.io/sig-storage/csi-attacher:v2.2.0"


@situation("6.4 skew", "CSI-C15")
def a_controller_of_another_minor_release(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][0]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.2.0"


@situation("6.4", "CSI-D22", comes_back=_ALL_OF_VSPHERE)
def no_map_of_feature_states(world: World) -> None:
    assert VSPHERE.feature_states is not None
    world.remove("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)


@situation("6.4", "CSI-D23", "CSI-C15", comes_back=_ALL_OF_VSPHERE)
def windows_support_is_switched_off(world: World) -> None:
    assert VSPHERE.feature_states is not None
    world.get("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)["data"]["csi-windows-support"] = "false"
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][1]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.0.2"


@situation("6.5", "CSI-D10", comes_back=_ALL_OF_VSPHERE)
def a_namespace_that_refuses_privileged_pods(world: World) -> None:
    labels = world.get("Namespace", VSPHERE.namespace)["metadata"]["labels"]
    labels["pod-security.kubernetes.io/enforce"] = "baseline"


@situation("3.2 cluster", "CSI-C09")
def an_in_tree_class_is_the_default_one(world: World) -> None:
    world.get("StorageClass", "thin")["metadata"]["annotations"] = {
        "storageclass.kubernetes.io/is-default-class": "true"
    }


@situation("3.2 cluster", "CSI-C10")
def no_class_makes_what_windows_mounts(world: World) -> None:
    install(world, "aws_ebs", "csi_proxy")
    world.get("StorageClass", EBS.storage_class.name)["parameters"] = {"type": "gp3"}
    on_windows(world, "ebs", csi(EBS.name, "vol-1"))


@situation("1.1", "CSI-C16", only_here=NO_OLD_SERVER)
def the_api_server_release_that_refuses_in_tree_volumes(world: World) -> None:
    world.kubernetes = "v1.30.1"
    kubelets(world, "v1.30.1")


@situation("8", "CSI-C01")
def pods_could_not_be_read(world: World) -> None:
    world.unread.append(
        Unread("pods", "this account may not list pods", '{apiGroups: [""], resources: [pods], verbs: [list]}')
    )
    world.objects = [one for one in world.objects if one["kind"] != "Pod"]


@situation("6.3", "CSI-C03", "CSI-C04", only_here=NO_OPENSHIFT)
def an_admin_gate_that_nobody_acknowledged(world: World) -> None:
    openshift(world, "4.12.40")
    world.kubernetes = "v1.25.16"
    text = "vSphere migration may fail on unpatched vCenter"
    world.add(
        "ConfigMap",
        "admin-gates",
        "openshift-config-managed",
        data={"ack-4.12-kube-126-vsphere-migration-in-4.14": text},
    )
    world.add("ConfigMap", "admin-acks", "openshift-config", data={})
    conditions = world.get("ClusterVersion", "version")["status"]["conditions"]
    conditions.append({"type": "Upgradeable", "status": "False", "reason": "AdminAckRequired", "message": text})


@situation("6.3", only_here=NO_OPENSHIFT)
def an_admin_gate_that_was_acknowledged(world: World) -> None:
    openshift(world, "4.12.40")
    key = "ack-4.12-kube-1.26-api-removals-in-4.13"
    world.add(
        "ConfigMap", "admin-gates", "openshift-config-managed", data={key: "APIs go", "ack-4.11-kube-1.25-x": "old"}
    )
    world.add("ConfigMap", "admin-acks", "openshift-config", data={key: "true"})


@situation("6.1", "CSI-C02", "CSI-C05", only_here=NO_OPENSHIFT)
def an_update_runs_and_the_operator_is_busy(world: World) -> None:
    openshift(world)
    world.get("ClusterVersion", "version")["status"]["desired"]["version"] = "4.23.4"
    busy = {"type": "Upgradeable", "status": "False", "reason": "upgradeIsNotSafe", "message": "a controller is busy"}
    world.add(
        "OperatorCondition", "windows-machine-config-operator.v11.0.0", "openshift-windows-machine-config-operator",
        spec={"overrides": []}, status={"conditions": [busy]},
    )  # fmt: skip


@situation("6.1", only_here=NO_OPENSHIFT)
def an_override_wins_over_what_the_operator_says(world: World) -> None:
    openshift(world)
    busy = {"type": "Upgradeable", "status": "False", "reason": "upgradeIsNotSafe", "message": "a controller is busy"}
    fine = {"type": "Upgradeable", "status": "True", "reason": "upgradeIsSafe", "message": "an administrator says so"}
    world.add(
        "OperatorCondition", "windows-machine-config-operator.v11.0.0", "openshift-windows-machine-config-operator",
        spec={"overrides": [fine]}, status={"conditions": [busy]},
    )  # fmt: skip


@situation("6.4", "CSI-C11", only_here=NO_OPENSHIFT)
def the_in_tree_driver_was_chosen_for_the_cluster(world: World) -> None:
    openshift(world)
    world.add("Storage", "cluster", spec={"vsphereStorageDriver": "LegacyDeprecatedInTreeDriver"})


@situation("6.5", "CSI-C13", only_here=NO_OPENSHIFT)
def a_plugin_that_does_not_name_its_system(world: World) -> None:
    openshift(world)
    del world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]["os"]


@situation("2 WICD", only_here=NO_OPENSHIFT)
def a_list_of_services_as_the_operator_writes_it(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c")


@situation("2 WICD", "CSI-C06", only_here=NO_OPENSHIFT)
def a_list_of_services_that_the_daemon_refuses(world: World) -> None:
    openshift(world)
    circle = [
        {"name": "csi-proxy", "path": "csi-proxy.exe -windows-service", "priority": 2, "dependencies": ["b"]},
        {"name": "b", "path": "b.exe", "priority": 2, "dependencies": ["csi-proxy"]},
    ]
    operator(world, "11.0.0-1a2b3c", services=circle)


@situation("2 WICD", "CSI-C07", only_here=NO_OPENSHIFT)
def a_list_of_services_without_csi_proxy(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c", services=[{"name": "kubelet", "path": "kubelet.exe", "priority": 1}])


@situation("2 WICD", "CSI-C08", "CSI-N40", only_here=NO_OPENSHIFT)
def a_node_wants_a_list_of_services_that_is_gone(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c")
    world.get("Node", "win-1")["metadata"]["annotations"][f"{WMCO}desired-version"] = "11.0.1-4d5e6f"


@situation("2.3 WICD", "CSI-N41", "CSI-N42", "CSI-N43", only_here=NO_OPENSHIFT)
def what_the_operator_wrote_on_a_node(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c")
    metadata = world.get("Node", "win-1")["metadata"]
    metadata["annotations"][f"{WMCO}reboot-required"] = ""
    metadata["labels"].update({f"{WMCO}allow-upgrade": "true", f"{WMCO}upgrade-blocked": "true"})


@situation("1.4", "CSI-C12", "CSI-G42", "CSI-V10", only_here=NO_OPENSHIFT)
def an_operator_that_brings_no_csi_proxy(world: World) -> None:
    openshift(world, "4.12.40")
    operator(world, "7.1.0-1a2b3c", services=[{"name": "kubelet", "path": "kubelet.exe", "priority": 1}])
    world.kubernetes = "v1.25.16"
    kubelets(world, "v1.25.16", migrated=("kubernetes.io/azure-disk",))
    for seen in world.hosts:
        seen.update(serving=False, state="absent", pipes=[])


# What if


@situation("target", target=Target(kubernetes="1.37"))
def the_next_kubernetes_changes_nothing(world: World) -> None:
    pass


@situation(
    "target",
    "CSI-G11",
    "CSI-G20",
    "CSI-T08",
    target=Target(kubernetes="1.30"),
    classes={"pv-legacy": "MIGRATED_NO_DRIVER"},
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


@situation("target", "CSI-T01", target=Target(kubernetes="1.36"), classes={"pv-legacy": "MIGRATED_OK"})
def kubelets_too_far_behind_for_the_target(world: World) -> None:
    kubelets(world, "v1.31.4")


@situation("target", "CSI-V12", target=Target(kubernetes="1.31"), classes={"pv-rbd": "DEAD"}, only_here=NO_OLD_SERVER)
def a_kind_that_the_target_no_longer_has(world: World) -> None:
    world.kubernetes = "v1.30.4"
    kubelets(world, "v1.30.4")
    on_windows(world, "rbd", {"rbd": {"monitors": ["m"], "image": "i"}})


@situation("target", "CSI-V20", target=Target(kubernetes="1.29.0"), only_here=NO_OLD_SERVER)
def a_target_release_with_a_known_fault(world: World) -> None:
    world.kubernetes = "v1.28.9"
    kubelets(world, "v1.28.9", migrated=("kubernetes.io/azure-disk", IN_TREE_VSPHERE))


@situation(
    "6.6 A",
    target=Target(openshift="4.13.20", wmco="8.1.0"),
    only_here=NO_OPENSHIFT,
    classes={"pv-static": "MIGRATED_OK"},
)
def scenario_a_both_operators_bring_csi_proxy(world: World) -> None:
    _operator_7(world, "7.2.0-1a2b3c")


@situation("6.6 B", "CSI-T04", target=Target(openshift="4.13.20", wmco="8.1.0"), only_here=NO_OPENSHIFT)
def scenario_b_only_the_later_operator_brings_csi_proxy(world: World) -> None:
    _operator_7(world, "7.1.1-1a2b3c")


@situation("6.6 C", "CSI-T03", target=Target(openshift="4.13.20", wmco="8.0.1"), only_here=NO_OPENSHIFT)
def scenario_c_the_later_operator_takes_csi_proxy_away(world: World) -> None:
    _operator_7(world, "7.2.0-1a2b3c")


def _operator_7(world: World, version: str) -> None:
    """OpenShift 4.12 on a platform without a guard, with volumes of Azure Disk only, which 4.12 has migrated."""
    openshift(world, "4.12.40", platform="None")
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


@situation("6.6 D", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def scenario_d_from_8_to_9_with_csi_proxy(world: World) -> None:
    _operator_8(world, "8.1.0-1a2b3c")


@situation("6.6 E", "CSI-T04", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def scenario_e_from_8_without_csi_proxy_to_9(world: World) -> None:
    _operator_8(world, "8.0.1-1a2b3c")


def _operator_8(world: World, version: str) -> None:
    """OpenShift 4.13 on vSphere: Windows is in-tree there whatever Linux does."""
    openshift(world, "4.13.20")
    operator(world, version)
    world.kubernetes = "v1.26.9"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))


@situation("correction 7", "CSI-T05", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def an_empty_node_is_upgraded_at_once(world: World) -> None:
    _operator_8(world, "8.1.0-1a2b3c")
    world.get("Node", "win-2")["status"]["volumesAttached"] = []


@situation("correction 7", target=Target(openshift="4.14.1"), only_here=NO_OPENSHIFT)
def no_guard_on_another_platform(world: World) -> None:
    _operator_8(world, "8.1.0-1a2b3c")
    world.get("Infrastructure", "cluster")["status"]["platformStatus"]["type"] = "None"
    world.get("Node", "win-2")["status"]["volumesAttached"] = []


@situation("6.6", "CSI-T06", "CSI-T07", target=Target(wmco="10.22.0"), only_here=NO_OPENSHIFT)
def an_operator_of_another_line(world: World) -> None:
    openshift(world)
    operator(world, "11.0.0-1a2b3c")


@situation("6.6", "CSI-T14", target=Target(openshift="4.23.1"), only_here=NO_OPENSHIFT)
def an_operator_that_leaps_over_lines(world: World) -> None:
    openshift(world, "4.20.9")
    operator(world, "10.20.0-1a2b3c")


# The API server of this cluster is later than its OpenShift; CSI-V10 and CSI-V50 are of that.
@situation(
    "correction 5",
    "CSI-T14",
    "CSI-T15",
    "CSI-V10",
    "CSI-V50",
    target=Target(openshift="4.13.20"),
    only_here=NO_OPENSHIFT,
)
def an_ebs_volume_from_before_the_operator_had_csi_proxy(world: World) -> None:
    openshift(world, "4.11.9", "AWS")
    operator(world, "6.0.0")
    install(world, "aws_ebs", "csi_proxy")
    on_windows(world, "ebs", {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1", "fsType": "ntfs"}})


@situation("6.6", target=Target(openshift="4.23.1"), only_here=NO_OPENSHIFT)
def an_operator_that_goes_to_the_next_line(world: World) -> None:
    openshift(world, "4.22.9")
    operator(world, "10.22.0-1a2b3c")


@situation("target", "CSI-T12", target=Target(kubernetes="1.27"))
def a_target_that_every_node_is_past(world: World) -> None:
    pass


@situation("target", "CSI-T13", target=Target(openshift="4.23.1"))
def a_target_of_a_platform_that_this_is_not(world: World) -> None:
    pass


@situation("target", "CSI-T02", target=Target(openshift="6.4"), only_here=NO_OPENSHIFT)
def a_line_that_nobody_knows_yet(world: World) -> None:
    openshift(world)


@situation("target", "CSI-D02", target=Target(driver="vsphere", driver_version="3.4.0", mode="host_process"))
def a_mode_that_the_release_does_not_have(world: World) -> None:
    pass


@situation("target", "CSI-T09", target=Target(driver="smb", mode="csi_proxy"))
def a_change_of_mode_under_mounted_volumes(world: World) -> None:
    install(world, "smb", "host_process")
    on_windows(world, "files", smb("//server/share"))
    world.get("Node", "win-1")["status"]["volumesInUse"].append(f"kubernetes.io/csi/{SMB.name}^//server/share")


@situation("target", "CSI-T10", target=Target(driver="azure_disk", mode="csi_proxy"))
def a_change_of_mode_without_the_pipes(world: World) -> None:
    world.host("win-2")["pipes"].remove("csi-proxy-disk-v1")
    _only_azure(world)


@situation("target", "CSI-T11", target=Target(driver="azure_disk", mode="csi_proxy"))
def a_change_of_mode_with_hosts_that_nobody_looked_at(world: World) -> None:
    world.hosts = []
    _only_azure(world)


def _only_azure(world: World) -> None:
    """Without the workloads whose plugin talks to csi-proxy today."""
    gone = {"db", "legacy"}
    world.objects = [
        one
        for one in world.objects
        if not (one["metadata"].get("namespace") == SHOP and one["metadata"]["name"].split("-")[0] in gone)
        and not (one["metadata"].get("namespace") == SHOP and one["metadata"]["name"].startswith("data-db"))
        and not (one["kind"] == "PersistentVolume" and one["metadata"]["name"] in ("pv-db-0", "pv-db-1", "pv-legacy"))
        and not (
            one["kind"] == "VolumeAttachment"
            and one["spec"]["attacher"] == VSPHERE.name
            and "win" in one["spec"]["nodeName"]
        )
    ]
