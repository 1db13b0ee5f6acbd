# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster as a whole: drivers' other halves, classes, and OpenShift's own status."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread

from situations.base import (
    AZURE_FILE,
    EBS,
    NO_OLD_SERVER,
    NO_OPENSHIFT,
    VSPHERE,
    WMCO,
    kubelets,
    on_windows,
    openshift,
    operator,
    situation,
)
from situations.cluster import (
    claim_of,
    csi,
    install,
    pod_spec,
    workload,
)
from situations.world import World

_ALL_OF_VSPHERE = {
    "StatefulSet shop/db": "no",
    "Deployment shop/legacy": "no",
    "Deployment shop/static": "yes",
    "Deployment shop/web": "yes",
}


@situation("3.2 cluster", "CSI-D20", starts_again=_ALL_OF_VSPHERE)
def a_driver_without_its_csidriver(world: World) -> None:
    world.remove("CSIDriver", VSPHERE.name)


@situation("3.2 cluster", "CSI-D21", starts_again=_ALL_OF_VSPHERE)
def a_csidriver_that_says_otherwise(world: World) -> None:
    world.get("CSIDriver", VSPHERE.name)["spec"]["attachRequired"] = False


@situation("3.2 cluster", "CSI-D30", starts_again=_ALL_OF_VSPHERE)
def a_driver_without_its_controller(world: World) -> None:
    world.remove("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)


@situation("3.2 cluster", "CSI-D31", starts_again=_ALL_OF_VSPHERE)
def a_controller_that_does_not_run(world: World) -> None:
    world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["status"]["availableReplicas"] = 0


@situation("3.2 cluster", "CSI-C14", starts_again=_ALL_OF_VSPHERE)
def a_controller_without_its_attacher(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"] = [one for one in spec["containers"] if one["name"] != "csi-attacher"]


@situation("3.2 cluster", "CSI-D31", starts_again={"Deployment shop/web": "yes"})
def a_controller_of_shares_that_does_not_run_while_no_claim_waits(world: World) -> None:
    name = AZURE_FILE.controller.deployments[0]
    world.get("Deployment", name, AZURE_FILE.namespace)["status"]["availableReplicas"] = 0


@situation("3.2 cluster", "CSI-D31", starts_again={"Deployment shop/web": "yes", "Deployment shop/waits": "no"})
def a_controller_of_shares_that_does_not_run_while_a_claim_waits(world: World) -> None:
    a_controller_of_shares_that_does_not_run_while_no_claim_waits(world)
    claim_of(world, "waits", storage_class=AZURE_FILE.storage_class.name)
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("3.2 cluster", "CSI-C17", starts_again={"Deployment shop/legacy": "no", "StatefulSet shop/db": "yes"})
def an_attacher_that_does_not_know_the_in_tree_kind(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][-1]["image"] = "registry.k8s.io/sig-storage/csi-attacher:v2.2.0"


@situation("6.4 skew", "CSI-C15")
def a_controller_of_another_minor_release(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][0]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.2.0"


@situation("6.4", "CSI-D22", starts_again=_ALL_OF_VSPHERE)
def no_map_of_feature_states(world: World) -> None:
    assert VSPHERE.feature_states is not None
    world.remove("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)


@situation("6.4", "CSI-D23", "CSI-C15", starts_again=_ALL_OF_VSPHERE)
def windows_support_is_switched_off(world: World) -> None:
    assert VSPHERE.feature_states is not None
    world.get("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)["data"]["csi-windows-support"] = "false"
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][1]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.0.2"


@situation("6.5", "CSI-D10", starts_again=_ALL_OF_VSPHERE)
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


@situation("6.1", "CSI-C02", only_here=NO_OPENSHIFT)
def an_update_of_the_cluster_runs(world: World) -> None:
    openshift(world)
    world.get("ClusterVersion", "version")["status"]["desired"]["version"] = "4.23.4"


@situation("6.4", "CSI-C11", only_here=NO_OPENSHIFT)
def the_in_tree_driver_was_chosen_for_the_cluster(world: World) -> None:
    openshift(world)
    world.add("Storage", "cluster", spec={"vsphereStorageDriver": "LegacyDeprecatedInTreeDriver"})


@situation("6.5", "CSI-C13", only_here=NO_OPENSHIFT)
def a_plugin_that_does_not_name_its_system(world: World) -> None:
    openshift(world)
    del world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]["os"]


@situation("2 WICD", "CSI-N40", only_here=NO_OPENSHIFT)
def a_node_whose_daemon_has_not_reached_its_version(world: World) -> None:
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
    operator(world, "7.1.0-1a2b3c")
    world.kubernetes = "v1.25.16"
    kubelets(world, "v1.25.16", migrated=("kubernetes.io/azure-disk",))
    for observed in world.hosts:
        observed.update(serving=False, state="absent", pipes=[])
