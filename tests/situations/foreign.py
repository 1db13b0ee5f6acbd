# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Node plugins of others, as upstream's manifests deploy them: recognised by what registers them, not by their folder.

Each situation comes with a twin that differs in one field and is evaluated otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

from situations.cluster import (
    attach,
    csi,
    namespace,
    owner_reference,
    pod_spec,
    volume,
    windows_nodes,
    workload,
)
from situations.world import Object, World

PLUGINS = "C:\\var\\lib\\kubelet\\plugins"


@dataclass(frozen=True)
class Plugin:
    """A foreign node plugin. folder: of its socket. by_variable: the registrar gets it by a variable."""

    driver: str
    daemon_set: str
    namespace: str
    folder: str
    source: str
    dash: str = "--"
    by_variable: bool = False
    host_process: bool = False
    arguments: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    selector: bool = True
    ephemeral: bool = False

    def spec(self) -> Object:
        """Its pod, reduced to what identifies it."""
        socket = f"{PLUGINS}\\{self.folder}\\csi.sock"
        reported = "$(DRIVER_REG_SOCK_PATH)" if self.by_variable else socket
        registrar: Object = {
            "name": "node-driver-registrar",
            "image": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0",
            "args": [
                "--v=5",
                "--csi-address=unix://C:\\csi\\csi.sock",
                f"{self.dash}kubelet-registration-path={reported}",
            ],
        }
        if self.by_variable:
            registrar["env"] = [{"name": "DRIVER_REG_SOCK_PATH", "value": socket}]
        mounts = ["C:\\var\\lib\\kubelet\\plugins_registry\\", f"{PLUGINS}\\{self.folder}\\", *self.mounts]
        volumes = [{"name": f"p-{number}", "hostPath": {"path": path}} for number, path in enumerate(mounts)]
        main = {"name": "driver", "image": "example.com/driver:v1.0.0", "args": list(self.arguments)}
        made: Object = {
            "containers": [registrar, main],
            "volumes": [] if self.host_process else volumes,
            "tolerations": [{"operator": "Exists"}],
        }
        if self.selector:
            made["nodeSelector"] = {"kubernetes.io/os": "windows"}
        if self.host_process:
            made["securityContext"] = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
            made["hostNetwork"] = True
        return made


SECRETS = Plugin(
    "secrets-store.csi.k8s.io", "csi-secrets-store-windows", "kube-system", "csi-secrets-store",
    "https://github.com/kubernetes-sigs/secrets-store-csi-driver manifest_staging/deploy/secrets-store-csi-driver-windows.yaml",
    arguments=("--endpoint=$(CSI_ENDPOINT)", "--nodeid=$(KUBE_NODE_NAME)"), ephemeral=True,
)  # fmt: skip
SEAWEED = Plugin(
    "seaweedfs.csi.example.com", "seaweedfs-csi-node-windows", "storage", "seaweedfs-csi-driver",
    "https://github.com/seaweedfs/seaweedfs-csi-driver, a HostProcess mode that names its driver in an argument",
    host_process=True, arguments=("--driverName=seaweedfs.csi.example.com", "--components=node"),
)  # fmt: skip
RKE2 = Plugin(
    "csi.vsphere.vmware.com", "vsphere-csi-node-windows", "kube-system", "csi.vsphere.vmware.com",
    "https://github.com/rancher/vsphere-charts charts/rancher-vsphere-csi/templates/node/windows-daemonset.yaml", by_variable=True,
)  # fmt: skip
GKE = Plugin(
    "pd.csi.storage.gke.io", "pdcsi-node-windows", "kube-system", "pd.csi.storage.gke.io",
    "https://github.com/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver deploy/kubernetes/base/node_windows/node.yaml",
)  # fmt: skip
AKS = Plugin(
    "disk.csi.azure.com", "csi-azuredisk-node-win", "kube-system", "disk.csi.azure.com",
    "https://github.com/kubernetes-sigs/azuredisk-csi-driver deploy/csi-azuredisk-node-windows-hostprocess.yaml",
    by_variable=True, host_process=True,
)  # fmt: skip
EKS = Plugin(
    "ebs.csi.aws.com", "ebs-csi-node-windows", "kube-system", "ebs.csi.aws.com",
    "https://github.com/kubernetes-sigs/aws-ebs-csi-driver charts/aws-ebs-csi-driver/templates/_node-windows.tpl", by_variable=True,
)  # fmt: skip
OPERATOR = Plugin(
    "smb.csi.k8s.io", "smb-csi-driver-node-windows", "openshift-cluster-csi-drivers", "smb.csi.k8s.io",
    "https://github.com/kubernetes-csi/csi-driver-smb deploy/csi-smb-node-windows.yaml", dash="-", by_variable=True,
)  # fmt: skip
UPSTREAM = (SECRETS, SEAWEED, RKE2, GKE, AKS, EKS, OPERATOR)


def deploy(world: World, plugin: Plugin, *, registered: bool = True, ready: bool = True) -> None:
    """A plugin's DaemonSet with its pods, and what its registration wrote."""
    if not any(one["metadata"]["name"] == plugin.namespace for one in world.of("Namespace")):
        namespace(world, plugin.namespace)
    nodes = [one["metadata"]["name"] for one in windows_nodes(world)]
    labels, word = {"app": plugin.daemon_set}, "True" if ready else "False"
    world.add(
        "DaemonSet", plugin.daemon_set, plugin.namespace, metadata={"labels": labels, "generation": 1},
        spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": plugin.spec()}},
        status={
            "desiredNumberScheduled": len(nodes), "currentNumberScheduled": len(nodes), "numberMisscheduled": 0,
            "numberReady": len(nodes) if ready else 0, "observedGeneration": 1,
        },
    )  # fmt: skip
    for on in nodes:
        statuses = [
            {
                "name": one["name"], "image": one["image"], "imageID": "", "ready": ready, "restartCount": 0,
                "state": {"running": {"startedAt": world.ago(hours=5)}}, "lastState": {},
            }
            for one in plugin.spec()["containers"]
        ]  # fmt: skip
        world.add(
            "Pod", f"{plugin.daemon_set}-{on}", plugin.namespace,
            metadata={"labels": labels, "ownerReferences": [owner_reference("DaemonSet", plugin.daemon_set, plugin.namespace)]},
            spec={**plugin.spec(), "nodeName": on},
            status={
                "phase": "Running", "containerStatuses": statuses,
                "conditions": [{"type": "Ready", "status": word, "lastTransitionTime": world.ago(hours=5)}],
            },
        )  # fmt: skip
        if registered:
            register(world, plugin.driver, on)


def register(world: World, driver: str, on: str) -> None:
    """What the kubelet wrote."""
    world.get("CSINode", on)["spec"]["drivers"].append({"name": driver, "nodeID": f"{on}-id", "topologyKeys": []})
    annotations = world.get("Node", on)["metadata"]["annotations"]
    ids = json.loads(annotations.get("csi.volume.kubernetes.io/nodeid", "{}"))
    annotations["csi.volume.kubernetes.io/nodeid"] = json.dumps({**ids, driver: f"{on}-id"})


def used(world: World, driver: str, *, ephemeral: bool = False) -> None:
    """A workload on win-1 with a volume of a driver."""
    modes = ["Ephemeral"] if ephemeral else ["Persistent"]
    if not any(one["metadata"]["name"] == driver for one in world.of("CSIDriver")):
        world.add(
            "CSIDriver", driver, spec={"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": modes}
        )
    if ephemeral:
        source = {"name": "theirs", "csi": {"driver": driver, "readOnly": True}}
        workload(world, "Deployment", "theirs", pod_spec(extra_volumes=[source]), on=["win-1"])
        return
    volume(world, "pv-theirs", csi(driver, "theirs-1", ""), "theirs")
    workload(world, "Deployment", "theirs", pod_spec("theirs"), on=["win-1"])


@dataclass(frozen=True)
class Case:
    """What is planted, what the workload is then, and the findings about it that must be there, all of them."""

    name: str
    plant: Callable[[World], None]
    starts_again: str
    expected: frozenset[str]


CASES: list[Case] = []


def case(starts_again: str, *expected: str) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Name a case after its function."""

    def note(plant: Callable[[World], None]) -> Callable[[World], None]:
        CASES.append(Case(plant.__name__, plant, starts_again, frozenset(expected)))
        return plant

    return note


@case("yes")
def a_folder_with_another_name(world: World) -> None:
    deploy(world, SECRETS)
    used(world, SECRETS.driver, ephemeral=True)


@case("no", "CSI-G11")
def a_folder_with_another_name_not_ready(world: World) -> None:
    deploy(world, SECRETS, ready=False)
    used(world, SECRETS.driver, ephemeral=True)


@case("no", "CSI-G20")
def a_folder_with_another_name_not_registered(world: World) -> None:
    deploy(world, SECRETS, registered=False)
    used(world, SECRETS.driver, ephemeral=True)


@case("unknown", "CSI-N46")
def a_registration_that_nothing_brings(world: World) -> None:
    for one in windows_nodes(world):
        register(world, SECRETS.driver, one["metadata"]["name"])
    used(world, SECRETS.driver, ephemeral=True)


@case("yes")
def a_driver_named_by_an_argument(world: World) -> None:
    deploy(world, SEAWEED)
    used(world, SEAWEED.driver)


@case("no", "CSI-G20")
def a_driver_named_by_an_argument_not_registered(world: World) -> None:
    deploy(world, SEAWEED, registered=False)
    used(world, SEAWEED.driver)


OTHER = Plugin("lustre.csi.example.com", "lustre", "storage", "lustre-plugin", "")


@case("unknown", "CSI-N46")
def a_plugin_that_nothing_names(world: World) -> None:
    deploy(world, OTHER)
    used(world, OTHER.driver)


@case("yes")
def a_pod_that_mounts_another_drivers_folder(world: World) -> None:
    """A collector of logs is no second provider of what it reads."""
    vsphere = DRIVERS["vsphere"]
    deploy(world, Plugin(vsphere.name, "collector", "logging", vsphere.name, ""), registered=False)
    for kind in ("DaemonSet", "Pod"):
        for one in world.of(kind):
            if one["metadata"]["name"].startswith("collector"):
                spec = one["spec"]["template"]["spec"] if kind == "DaemonSet" else one["spec"]
                spec["containers"] = [one for one in spec["containers"] if one["name"] == "driver"]
    on_claim(world, "pv-theirs", csi(vsphere.name, "fcd-9"), vsphere.name)


def on_claim(world: World, name: str, source: Object, driver: str) -> None:
    """A workload on win-1 with that volume, attached."""
    volume(world, name, source, "theirs")
    attach(world, name, "win-1", driver, source["csi"]["volumeHandle"])
    workload(world, "Deployment", "theirs", pod_spec("theirs"), on=["win-1"])


@case("no", "CSI-G30")
def a_second_plugin_that_registers_the_same_driver(world: World) -> None:
    deploy(world, OTHER)
    deploy(world, Plugin(OTHER.driver, "again", "storage", OTHER.driver, ""), registered=False)
    deploy(world, Plugin(OTHER.driver, "again-2", "storage", OTHER.driver, ""), registered=False)
    used(world, OTHER.driver)
