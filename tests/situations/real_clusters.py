# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Five clusters as an administrator has them before an upgrade, with ordinary workloads and one trouble each.

Names, taints and labels of nodes are those that each platform gives; `RealCluster.world(trouble=False)` is the cluster when all is well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET, Target
from unit.roles.manifests import Case, cases

from situations.base import operator
from situations.cluster import (
    attach,
    claim_of,
    csi,
    namespace,
    owner_reference,
    pod,
    pod_spec,
    unregister,
    volume,
    workload,
)
from situations.deployed import deployed
from situations.platforms import OPERATORS, built_in, managed, shipped
from situations.world import Object, World

REGISTRY = "registry.example.com/erp"


@dataclass(frozen=True)
class RealCluster:
    """A cluster. target: the upgrade that its administrator plans."""

    name: str
    build: Callable[[], World]
    spoil: Callable[[World], None]
    node_names: Mapping[str, str]
    target: Target = NO_TARGET

    def world(self, *, trouble: bool) -> World:
        """The cluster, with its trouble or without."""
        world = self.build()
        add_workloads(world)
        if trouble:
            self.spoil(world)
        return rename_nodes(world, self.node_names)


def rename_nodes(world: World, names: Mapping[str, str]) -> World:
    """The same cluster with the platform's own node names."""
    objects, hosts = json.dumps(world.objects), json.dumps(world.hosts)
    for old, new in names.items():
        objects, hosts = objects.replace(old, new), hosts.replace(old, new)
    world.objects, world.hosts = json.loads(objects), json.loads(hosts)
    return world


def case_of(key: str, mode: str, version: str = "") -> Case:
    """The newest release of a driver in a mode, or that one."""
    releases = [case for case in cases(20) if (case.driver.key, case.rule.mode) == (key, mode)]
    return next((case for case in releases if case.version == version), releases[-1])


def erp_pod(world: World, *claims: str, image: str, **more: Any) -> Object:
    """A pod as charts make them: a ConfigMap, a Secret, probes, requests and a pull secret."""
    spec = pod_spec(*claims, **more)
    spec["tolerations"] = [{"operator": "Equal", **taint} for taint in world.get("Node", "win-1")["spec"]["taints"]]
    spec["imagePullSecrets"] = [{"name": "registry-credentials"}]
    spec["containers"] = [
        {
            "name": image,
            "image": f"{REGISTRY}/{image}:2026.11",
            "ports": [{"containerPort": 8080}],
            "envFrom": [{"configMapRef": {"name": "erp-settings"}}],
            "env": [{"name": "DB", "valueFrom": {"secretKeyRef": {"name": "erp-database", "key": "dsn"}}}],
            "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
            "volumeMounts": [{"name": f"v-{claim}", "mountPath": f"C:\\data\\{claim}"} for claim in claims],
        }
    ]
    return spec


def add_workloads(world: World) -> None:
    """A StatefulSet over both Windows nodes, three Deployments, a CronJob, and an API on Linux."""
    driver = next(
        known
        for known in DRIVERS.values()
        if any(one["metadata"]["name"] == known.name for one in world.of("CSIDriver"))
    )
    own = next(one for one in world.of("StorageClass") if one["provisioner"] == driver.name)
    storage_class = own["metadata"]["name"]
    namespace(world, "erp")
    for number, node in enumerate(("win-1", "win-2")):
        add_volume(world, f"data-search-{number}", driver.name, storage_class, node)
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }
    workload(
        world, "StatefulSet", "search", erp_pod(world, image="search"), namespace="erp", replicas=2,
        volumeClaimTemplates=[template],
    )  # fmt: skip
    for number, node in enumerate(("win-1", "win-2")):
        pod(
            world, f"search-{number}", erp_pod(world, f"data-search-{number}", image="search"), on=node,
            owner=owner_reference("StatefulSet", "search", "erp"), namespace="erp",
        )  # fmt: skip
    for name, node in (("documents", "win-1"), ("print-server", "win-2"), ("ftp", "win-2")):
        add_volume(world, f"{name}-data", driver.name, storage_class, node)
        workload(
            world, "Deployment", name, erp_pod(world, f"{name}-data", image=name), on=[node], namespace="erp",
            strategy={"type": "Recreate"},
        )  # fmt: skip
    add_volume(world, "exports-data", driver.name, storage_class, "win-1", attached=False)
    workload(world, "CronJob", "exports", erp_pod(world, "exports-data", image="exports"), namespace="erp")
    api = pod_spec("api-cache", windows=False)
    add_volume(world, "api-cache", driver.name, storage_class, "linux-1", fs_type="ext4")
    workload(world, "Deployment", "api", api, on=["linux-1"], namespace="erp")


def add_volume(
    world: World,
    claim: str,
    driver: str,
    storage_class: str,
    node: str,
    *,
    attached: bool = True,
    fs_type: str = "ntfs",
) -> None:
    """A provisioned disk with its claim, attached to the node of its pod."""
    handle = handle_of(driver, claim)
    name = f"pvc-{claim}"
    volume(
        world, name, csi(driver, handle, fs_type), claim, namespace="erp", storage_class=storage_class,
        provisioned_by=driver,
    )  # fmt: skip
    if attached:
        attach(world, name, node, driver, handle)


def handle_of(driver: str, name: str) -> str:
    """A volume handle in the form of the driver."""
    forms = {
        "csi.vsphere.vmware.com": f"5f0b7a6e-0000-4000-8000-{sum(name.encode()):012d}",
        "ebs.csi.aws.com": f"vol-0{sum(name.encode()):016x}",
        "disk.csi.azure.com": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/mc_erp/providers/"
        f"Microsoft.Compute/disks/pvc-{name}",
        "pd.csi.storage.gke.io": f"projects/erp-prod/regions/europe-west1/disks/pvc-{name}",
    }
    return forms[driver]


def remove_sample_workloads(world: World) -> World:
    """The cluster without the workloads that `deployed` adds."""
    for node in ("win-1", "win-2"):
        names = {f"app-{node}", f"app-{node}-6d4f", f"app-{node}-0", f"pv-{node}", f"data-{node}"}
        world.objects = [
            one
            for one in world.objects
            if one["metadata"]["name"] not in names
            and one.get("spec", {}).get("source", {}).get("persistentVolumeName") not in names
        ]
    for node in world.of("Node"):
        node["status"].update(volumesInUse=[], volumesAttached=[])
    return world


def without_taints(world: World) -> World:
    """The cluster as clouds make Windows nodes: without a taint."""
    for node in world.of("Node"):
        node["spec"]["taints"] = []
    return world


def vsphere() -> World:
    """Kubernetes by kubeadm on vSphere, whose node plugin this collection installed."""
    world = remove_sample_workloads(deployed(case_of("vsphere", "csi_proxy")))
    for node in world.of("Node"):
        node["status"]["nodeInfo"].update(kubeletVersion="v1.31.9", kubeProxyVersion="v1.31.9")
    world.kubernetes = "v1.31.9"
    return world


def eks() -> World:
    """EKS with the add-on of the EBS driver."""
    return without_taints(remove_sample_workloads(managed(case_of("aws_ebs", "host_process"), "eks")))


def aks() -> World:
    """AKS with its managed disk driver."""
    return without_taints(remove_sample_workloads(managed(case_of("azure_disk", "host_process"), "aks")))


def gke() -> World:
    """GKE with its managed disk driver, which needs csi-proxy, and GKE brings it."""
    world = remove_sample_workloads(managed(case_of("gce_pd", "csi_proxy"), "gke"))
    for node in world.of("Node"):
        windows = node["status"]["nodeInfo"]["operatingSystem"] == "windows"
        taint = {"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}
        node["spec"]["taints"] = [taint] if windows else []
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "n2-standard-4"
    return world


def openshift() -> World:
    """OpenShift with its vSphere driver for Linux, the Windows operator, and this collection's node plugin."""
    case, version = next(pair for pair in shipped() if pair[0].driver.key == "vsphere" and pair[1].startswith("4.18"))
    world = remove_sample_workloads(built_in(case, version))
    operator(world, "10.18.1-a1b2c3d")
    return world


def crash_plugin(name: str, space: str, node: str, message: str) -> Callable[[World], None]:
    """The container of a platform's node plugin crashes on a node."""

    def plant(world: World) -> None:
        status = world.get("Pod", f"{name}-{node}", space)["status"]
        status["conditions"][-1]["status"] = "False"
        status["containerStatuses"][0].update(
            ready=False, restartCount=212,
            state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
            lastState={"terminated": {"exitCode": 1, "reason": "Error", "message": message}},
        )  # fmt: skip

    return plant


def wait_for_missing_class(world: World) -> None:
    """A claim names a StorageClass that does not exist."""
    claim_of(world, "archive-data", "erp", "gp3-encrypted")
    workload(
        world, "Deployment", "archive", erp_pod(world, "archive-data", image="archive"), replicas=1, namespace="erp"
    )


def stop_csi_proxy(world: World) -> None:
    """csi-proxy does not serve on the second Windows node."""
    for host in world.hosts:
        if host["node"] == "win-2":
            host.update(serving=False, state="STOPPED", reason="the service csi-proxy is STOPPED", pipes=[])


def disable_managed_driver(world: World) -> None:
    """The administrator switched the managed disk driver of AKS off."""
    world.remove("CSIDriver", "disk.csi.azure.com")
    world.remove("DaemonSet", "csi-azuredisk-node-win", "kube-system")
    for node in ("win-1", "win-2"):
        world.remove("Pod", f"csi-azuredisk-node-win-{node}", "kube-system")
        unregister(world, DRIVERS["azure_disk"], node)


def names(linux: str, first: str, second: str) -> Mapping[str, str]:
    """Names of nodes in place of the samples'."""
    return {"linux-1": linux, "win-1": first, "win-2": second}


REAL_CLUSTERS = {
    cluster.name: cluster
    for cluster in (
        RealCluster("vsphere", vsphere, stop_csi_proxy, names("erp-worker-01", "erp-win-01", "erp-win-02"),
                    Target(kubernetes="1.32")),
        RealCluster("eks", eks, wait_for_missing_class,
                    names("ip-10-0-12-7.eu-west-1.compute.internal", "ip-10-0-34-21.eu-west-1.compute.internal",
                          "ip-10-0-56-98.eu-west-1.compute.internal"), Target(kubernetes="1.34")),
        RealCluster("aks", aks, disable_managed_driver,
                    names("aks-system-31245678-vmss000000", "akswinpool000000", "akswinpool000001"),
                    Target(kubernetes="1.34")),
        RealCluster("gke", gke, crash_plugin("pdcsi-node-windows", "kube-system", "win-2", "connect: pipe not found"),
                    names("gke-erp-default-pool-8c4b1f2a-x1qz", "gke-erp-win-0b1c2d3e-k2vp", "gke-erp-win-0b1c2d3e-t9ws"),
                    Target(kubernetes="1.34")),
        RealCluster("openshift", openshift, crash_plugin("vsphere-csi-node-windows", OPERATORS, "win-1", "pipe not found"),
                    names("erp-worker-0-b7k2m", "winworker-4hx9p", "winworker-q8r2z"), Target(openshift="4.19")),
    )
}  # fmt: skip
