# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The five clusters with several troubles at once, as clusters have them that have run for years."""

from __future__ import annotations

import copy
from collections.abc import Callable

from situations.cluster import csi, owner_reference, pod, volume, workload
from situations.real_clusters import REAL_CLUSTERS, add_volume, add_workloads, crash_plugin, erp_pod, rename_nodes
from situations.world import Object, World

SPACE = "erp"


def build_imperfect_cluster(name: str) -> World:
    """One of the five clusters with its troubles."""
    cluster = REAL_CLUSTERS[name]
    world = cluster.build()
    add_workloads(world)
    TROUBLES[name](world)
    return rename_nodes(world, cluster.node_names)


def pin(world: World, name: str, node: str) -> None:
    """A Deployment whose pods name their node."""
    of_deployment = world.get("Deployment", name, SPACE)["spec"]["template"]["spec"]
    of_replica_set = world.get("ReplicaSet", f"{name}-6d4f", SPACE)["spec"]["template"]["spec"]
    for spec in (of_deployment, of_replica_set, world.get("Pod", f"{name}-0", SPACE)["spec"]):
        spec["nodeSelector"] = {**spec["nodeSelector"], "kubernetes.io/hostname": node}


def forbid_evictions(world: World, app: str, pods: int, **spec: object) -> None:
    """A PodDisruptionBudget that allows no eviction."""
    status = {"currentHealthy": pods, "desiredHealthy": pods, "expectedPods": pods, "disruptionsAllowed": 0}
    world.add(
        "PodDisruptionBudget", app, SPACE, spec={**spec, "selector": {"matchLabels": {"app": app}}}, status=status
    )


def limit_namespace(world: World, hard: Object, used: Object) -> None:
    """A ResourceQuota."""
    world.add("ResourceQuota", "erp-quota", SPACE, spec={"hard": hard}, status={"hard": hard, "used": used})


def add_waiting_pod(world: World, name: str, spec: Object, *conditions: Object, on: str = "") -> None:
    """A Deployment whose pod has waited for days."""
    workload(world, "Deployment", name, spec, namespace=SPACE, replicas=1)
    owner = owner_reference("Deployment", name, SPACE)
    labels = {"app": name}
    world.add(
        "ReplicaSet", f"{name}-6d4f", SPACE, metadata={"labels": labels, "ownerReferences": [owner]},
        spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    )  # fmt: skip
    owner = owner_reference("ReplicaSet", f"{name}-6d4f", SPACE)
    made = pod(world, f"{name}-0", copy.deepcopy(spec), on=on, owner=owner, namespace=SPACE, phase="Pending")
    made["metadata"]["creationTimestamp"] = world.ago(days=4)
    made["status"]["conditions"] = [{**condition, "lastTransitionTime": world.ago(days=4)} for condition in conditions]


def add_large_pod(world: World) -> None:
    """A pod that requests more memory than a node has."""
    driver = next(world.of("CSIDriver"))["metadata"]["name"]
    storage_class = next(item for item in world.of("StorageClass") if item["provisioner"] == driver)
    add_volume(world, "reports-data", driver, storage_class["metadata"]["name"], "win-1", attached=False)
    spec = erp_pod(world, "reports-data", image="reports")
    spec["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "64Gi"}}
    message = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient memory."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    add_waiting_pod(world, "reports", spec, condition)


def add_share(world: World, driver: str, handle: str) -> None:
    """A share whose driver runs on Linux nodes only, and a pod that waits for it on Windows."""
    world.add("CSIDriver", driver, spec={"attachRequired": False})
    world.get("CSINode", "linux-1")["spec"]["drivers"].append({"name": driver, "nodeID": "linux-1", "topologyKeys": []})
    volume(
        world, "pv-media", csi(driver, handle, ""), "media-data", namespace=SPACE, storage_class="media",
        accessModes=["ReadWriteMany"],
    )  # fmt: skip
    conditions = ({"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"})
    add_waiting_pod(world, "media", erp_pod(world, "media-data", image="media"), *conditions, on="win-2")


def add_in_tree_volume(world: World) -> None:
    """A volume of the in-tree vSphere plugin with Linux' default file system."""
    source = {"vsphereVolume": {"volumePath": "[ds] kubevols/legacy.vmdk", "fsType": "ext4"}}
    volume(
        world, "pv-legacy", source, "legacy-data", namespace=SPACE, storage_class="legacy",
        provisioned_by="kubernetes.io/vsphere-volume",
    )  # fmt: skip
    workload(
        world, "Deployment", "legacy", erp_pod(world, "legacy-data", image="legacy"), on=["win-1"], namespace=SPACE,
        strategy={"type": "Recreate"},
    )  # fmt: skip


def spoil_vsphere(world: World) -> None:
    """A pinned disk, an old in-tree volume, a budget without slack, a pod that waits for days."""
    pin(world, "documents", "win-1")
    add_in_tree_volume(world)
    forbid_evictions(world, "search", 2, minAvailable=2)
    add_large_pod(world)


def spoil_eks(world: World) -> None:
    """A plugin that crashes on a node, EFS on Windows, a budget, a tight quota."""
    crash_plugin("ebs-csi-node-windows", "kube-system", "win-2", "failed to get instance metadata")(world)
    add_share(world, "efs.csi.aws.com", "fs-0a1b2c3d")
    forbid_evictions(world, "print-server", 1, maxUnavailable=0)
    limit_namespace(world, {"requests.memory": "12Gi"}, {"requests.memory": "11Gi"})


def spoil_aks(world: World) -> None:
    """The driver of Azure Files disabled, a disk in a zone without nodes, a quota of claims, a pod that waits for days."""
    add_share(world, "file.csi.azure.com", "rg#account#share#")
    limit_namespace(world, {"persistentvolumeclaims": "7"}, {"persistentvolumeclaims": "7"})
    world.get("StatefulSet", "search", SPACE)["spec"]["replicas"] = 3
    zone = {"key": "topology.disk.csi.azure.com/zone", "operator": "In", "values": ["westeurope-3"]}
    terms = [{"matchExpressions": [zone]}]
    world.get("PersistentVolume", "pvc-ftp-data")["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    add_large_pod(world)


def spoil_gke(world: World) -> None:
    """A plugin that crashes on a node, Filestore on Windows, a budget, and two pinned Deployments with one disk."""
    crash_plugin("pdcsi-node-windows", "kube-system", "win-2", "connect: pipe not found")(world)
    add_share(world, "filestore.csi.storage.gke.io", "modeInstance/europe-west1-b/erp/vol1")
    forbid_evictions(world, "documents", 1, maxUnavailable=0)
    index = erp_pod(world, "documents-data", image="documents-index")
    workload(world, "Deployment", "documents-index", index, on=["win-1"], namespace=SPACE)
    pin(world, "documents-index", "win-2")
    pin(world, "documents", "win-1")


def spoil_openshift(world: World) -> None:
    """An old in-tree volume, a quota that was lowered, a pod without a controller, a budget, a pod that waits for days."""
    add_in_tree_volume(world)
    limit_namespace(world, {"requests.cpu": "2"}, {"requests.cpu": "2500m"})
    pod(world, "migrate-tool", erp_pod(world, "ftp-data", image="tool"), on="win-2", namespace=SPACE)
    forbid_evictions(world, "search", 2, maxUnavailable=0)
    add_large_pod(world)


TROUBLES: dict[str, Callable[[World], None]] = {
    "vsphere": spoil_vsphere,
    "eks": spoil_eks,
    "aks": spoil_aks,
    "gke": spoil_gke,
    "openshift": spoil_openshift,
}
