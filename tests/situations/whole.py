# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster as a whole: drivers' other halves, classes, and OpenShift's own status."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread

from situations.base import (
    AZURE_FILE,
    NO_OPENSHIFT,
    VSPHERE,
    kubelets,
    openshift,
    operator,
    situation,
)
from situations.cluster import (
    claim_of,
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


@situation("CSI-D20", starts_again=_ALL_OF_VSPHERE)
def a_driver_without_its_csidriver(world: World) -> None:
    world.remove("CSIDriver", VSPHERE.name)


@situation("CSI-D21", starts_again=_ALL_OF_VSPHERE)
def a_csidriver_that_says_otherwise(world: World) -> None:
    world.get("CSIDriver", VSPHERE.name)["spec"]["attachRequired"] = False


@situation("CSI-D30", starts_again=_ALL_OF_VSPHERE)
def a_driver_without_its_controller(world: World) -> None:
    world.remove("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)


@situation("CSI-D31", starts_again=_ALL_OF_VSPHERE)
def a_controller_that_does_not_run(world: World) -> None:
    world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["status"]["availableReplicas"] = 0


@situation("CSI-C14", starts_again=_ALL_OF_VSPHERE)
def a_controller_without_its_attacher(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"] = [one for one in spec["containers"] if one["name"] != "csi-attacher"]


@situation("CSI-D31", starts_again={"Deployment shop/web": "yes"})
def a_controller_of_shares_that_does_not_run_while_no_claim_waits(world: World) -> None:
    name = AZURE_FILE.controller.deployments[0]
    world.get("Deployment", name, AZURE_FILE.namespace)["status"]["availableReplicas"] = 0


@situation("CSI-D31", starts_again={"Deployment shop/web": "yes", "Deployment shop/waits": "no"})
def a_controller_of_shares_that_does_not_run_while_a_claim_waits(world: World) -> None:
    a_controller_of_shares_that_does_not_run_while_no_claim_waits(world)
    claim_of(world, "waits", storage_class=AZURE_FILE.storage_class.name)
    workload(world, "Deployment", "waits", pod_spec("waits"), replicas=1)


@situation("CSI-C17", starts_again={"Deployment shop/legacy": "no", "StatefulSet shop/db": "yes"})
def an_attacher_that_does_not_know_the_in_tree_kind(world: World) -> None:
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][-1]["image"] = "registry.k8s.io/sig-storage/csi-attacher:v2.2.0"


def _switch_of_release(world: World, name: str, state: str) -> None:
    """A release of vSphere CSI that reads its switches, with one of them in that state."""
    assert VSPHERE.feature_states is not None
    data = world.get("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)["data"]
    data.update({"csi-migration": "true", name: state})
    spec = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][1]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.0.2"


def _switch_of_controller(world: World, state: str) -> None:
    """A controller whose release needs the switch for volumes of the in-tree plugin, with the switch in that state."""
    _switch_of_release(world, "csi-migration", state)
    spec = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)["spec"]["template"]["spec"]
    spec["containers"][0]["image"] = "registry.k8s.io/csi-vsphere/driver:v3.0.2"


@situation("CSI-C17", starts_again={"Deployment shop/legacy": "no", "StatefulSet shop/db": "yes"})
def a_controller_that_does_not_migrate(world: World) -> None:
    _switch_of_controller(world, "false")


@situation(starts_again={"Deployment shop/legacy": "yes"})
def a_controller_that_migrates_by_its_switch(world: World) -> None:
    _switch_of_controller(world, "true")


@situation("CSI-D22", starts_again=_ALL_OF_VSPHERE)
def no_map_of_feature_states(world: World) -> None:
    assert VSPHERE.feature_states is not None
    world.remove("ConfigMap", VSPHERE.feature_states.name, VSPHERE.namespace)


@situation("CSI-D23", starts_again=_ALL_OF_VSPHERE)
def windows_support_is_switched_off(world: World) -> None:
    _switch_of_release(world, "csi-windows-support", "false")


@situation("CSI-W20", starts_again=_ALL_OF_VSPHERE)
def a_namespace_that_refuses_privileged_pods(world: World) -> None:
    labels = world.get("Namespace", VSPHERE.namespace)["metadata"]["labels"]
    labels["pod-security.kubernetes.io/enforce"] = "baseline"


@situation("CSI-C01")
def pods_could_not_be_read(world: World) -> None:
    world.unread.append(
        Unread("pods", "this account may not list pods", '{apiGroups: [""], resources: [pods], verbs: [list]}')
    )
    world.objects = [one for one in world.objects if one["kind"] != "Pod"]


@situation("CSI-G42", "CSI-V10", only_here=NO_OPENSHIFT)
def an_operator_that_brings_no_csi_proxy(world: World) -> None:
    openshift(world, "4.12.40")
    operator(world, "7.1.0-1a2b3c")
    world.kubernetes = "v1.25.16"
    kubelets(world, "v1.25.16", migrated=("kubernetes.io/azure-disk",))
    for observed in world.hosts:
        observed.update(serving=False, state="absent", pipes=[])
