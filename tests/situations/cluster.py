# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Objects of a cluster, in the form of the API: nodes, drivers, volumes, workloads; and a healthy cluster."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse

from situations.world import API_VERSIONS, KUBERNETES, NOW, Object, World, uid

BUILD = "10.0.20348.2700"
SHOP = "shop"


# Nodes


def node(world: World, name: str, *, windows: bool = True, zone: str = "a", kubelet: str = KUBERNETES) -> Object:
    """A Node with its CSINode, as its kubelet made them."""
    system = "windows" if windows else "linux"
    labels = {
        "kubernetes.io/os": system,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
    }
    if windows:
        labels["node.kubernetes.io/windows-build"] = ".".join(BUILD.split(".")[:3])
        labels["kubewin.io/csi-proxy"] = "serving"
        world.hosts.append(host(world, name))
    made = world.add(
        "Node",
        name,
        metadata={"labels": labels, "annotations": {}},
        spec={"taints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}] if windows else []},
        status={
            "nodeInfo": {
                "machineID": name,
                "systemUUID": uid("Node", name),
                "bootID": uid("Boot", name),
                "kernelVersion": BUILD if windows else "6.1.0-18-amd64",
                "osImage": "Windows Server 2022 Datacenter" if windows else "Debian GNU/Linux 12 (bookworm)",
                "containerRuntimeVersion": "containerd://1.7.20",
                "kubeletVersion": kubelet,
                "kubeProxyVersion": kubelet,
                "operatingSystem": system,
                "architecture": "amd64",
            },
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": world.ago(seconds=10),
                    "lastTransitionTime": world.ago(days=2),
                }
            ],
            "volumesInUse": [],
            "volumesAttached": [],
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "250"},
        },
    )
    world.add("CSINode", name, metadata={"annotations": {}}, spec={"drivers": []})
    return made


def host(world: World, name: str) -> Object:
    """The result of csi_proxy_info for a host with csi-proxy 1.3.0."""
    rules = [driver.rule("csi_proxy") for driver in DRIVERS.values()]
    pipes = sorted({pipe for rule in rules if rule is not None for pipe in rule.pipes})
    return {
        "node": name,
        "observed_at": world.ago(seconds=60),
        "serving": True,
        "release": "1.3.0",
        "state": "RUNNING",
        "reason": "",
        "pipes": pipes,
        "boot_time": world.ago(days=3),
        "findings": [],
    }


def windows_nodes(world: World) -> list[Object]:
    """The Windows Nodes."""
    return [one for one in world.of("Node") if one["status"]["nodeInfo"]["operatingSystem"] == "windows"]


# Drivers


def install(world: World, key: str, mode: str, version: str = "") -> None:
    """A driver as its own installation and this collection leave it: both halves, registered on every Windows node."""
    driver, rule = DRIVERS[key], DRIVERS[key].rule(mode)
    assert rule is not None
    release = version or driver.default_version
    world.add("CSIDriver", driver.name, spec=dict(driver.csi_driver))
    if driver.namespace not in {one["metadata"]["name"] for one in world.of("Namespace")}:
        namespace(world, driver.namespace, privileged=True)
    controller(world, driver, release)
    if driver.feature_states is not None:
        shipped = {**driver.feature_states.shipped, "csi-windows-support": "true"}
        world.add("ConfigMap", driver.feature_states.name, driver.namespace, data=shipped)
    parameters = {**driver.storage_class.parameters, **dict.fromkeys(driver.storage_class.required, "//server/share")}
    if key == "smb":
        parameters |= {f"csi.storage.k8s.io/node-stage-secret-{key}": SHOP for key in ("name", "namespace")}
    world.add(
        "StorageClass",
        driver.storage_class.name,
        provisioner=driver.name,
        parameters=parameters,
        reclaimPolicy="Delete",
        volumeBindingMode=driver.storage_class.binding_mode,
    )
    daemon_set(world, driver, rule, release)
    for one in windows_nodes(world):
        register(world, driver, one["metadata"]["name"])
        plugin_pod(world, driver, rule, release, one["metadata"]["name"])


def namespace(world: World, name: str, *, privileged: bool = False) -> Object:
    """A Namespace."""
    labels = {"kubernetes.io/metadata.name": name}
    if privileged:
        labels["pod-security.kubernetes.io/enforce"] = "privileged"
    return world.add("Namespace", name, metadata={"labels": labels}, spec={}, status={"phase": "Active"})


def controller(world: World, driver: Driver, release: str) -> Object:
    """A driver's Linux controller with its sidecars."""
    images = _images(driver, release, "csi_proxy")
    containers = [
        {"name": driver.container if key == "driver" else key, "image": image}
        for key, image in {
            "driver": images["driver"],
            "csi-provisioner": "registry.k8s.io/sig-storage/csi-provisioner:v5.3.0",
            **(
                {"csi-attacher": "registry.k8s.io/sig-storage/csi-attacher:v4.9.0"}
                if driver.csi_driver.get("attachRequired", True)
                else {}
            ),
        }.items()
    ]
    containers[0]["name"] = driver.controller.container
    name = driver.controller.deployments[0]
    labels = {"app": name}
    return world.add(
        "Deployment",
        name,
        driver.namespace,
        metadata={"labels": labels},
        spec={
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": containers, "nodeSelector": {"kubernetes.io/os": "linux"}},
            },
        },
        status={"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1},
    )


def _images(driver: Driver, release: str, mode: str) -> dict[str, str]:
    known = driver.find_release(parse(release)) or driver.releases[-1]
    images = known.map_images_of(mode)
    images["driver"] = images["driver"].replace(known.version, release)
    return images


def plugin_spec(driver: Driver, rule: ModeRule, release: str) -> Object:
    """The pod spec of a node plugin, reduced to what identifies it."""
    images = _images(driver, release, rule.mode)
    directory = f"C:\\var\\lib\\kubelet\\plugins\\{driver.name}"
    volumes: list[Object] = [
        {"name": "registration-dir", "hostPath": {"path": "C:\\var\\lib\\kubelet\\plugins_registry\\"}},
        {"name": "plugin-dir", "hostPath": {"path": f"{directory}\\", "type": "DirectoryOrCreate"}},
    ]
    if rule.mode == "csi_proxy":
        volumes += [
            {"name": pipe.removeprefix("csi-proxy-"), "hostPath": {"path": f"\\\\.\\pipe\\{pipe}", "type": ""}}
            for pipe in rule.pipes
        ]
    spec: Object = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists", "effect": "NoExecute"}],
        "priorityClassName": "system-node-critical",
        "containers": [
            {
                "name": "node-driver-registrar",
                "image": images["registrar"],
                "args": ["--v=5", f"--kubelet-registration-path={directory}\\csi.sock"],
            },
            {"name": driver.container, "image": images["driver"]},
        ],
        "volumes": volumes,
    }
    if rule.mode == "host_process":
        options = {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}
        spec.update(hostNetwork=True, securityContext={"windowsOptions": options})
    return spec


def daemon_set(world: World, driver: Driver, rule: ModeRule, release: str, name: str = "") -> Object:
    """The Windows node plugin's DaemonSet."""
    labels = {"app": name or driver.app_label}
    count = len(windows_nodes(world))
    return world.add(
        "DaemonSet",
        name or driver.daemonset,
        driver.namespace,
        metadata={"labels": {**labels, "app.kubernetes.io/managed-by": "kubewin.csi"}, "generation": 1},
        spec={
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": plugin_spec(driver, rule, release)},
        },
        status={
            "desiredNumberScheduled": count,
            "currentNumberScheduled": count,
            "numberMisscheduled": 0,
            "numberReady": count,
            "observedGeneration": 1,
        },
    )


def plugin_pod(world: World, driver: Driver, rule: ModeRule, release: str, on: str, owner: str = "") -> Object:
    """The plugin's pod on a node, Ready for hours."""
    owner = owner or driver.daemonset
    spec = {**plugin_spec(driver, rule, release), "nodeName": on}
    return world.add(
        "Pod",
        f"{owner}-{on}",
        driver.namespace,
        metadata={
            "labels": {"app": driver.app_label},
            "ownerReferences": [owner_reference("DaemonSet", owner, driver.namespace)],
        },
        spec=spec,
        status={
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": world.ago(hours=5)},
                {"type": "Ready", "status": "True", "lastTransitionTime": world.ago(hours=5)},
            ],
            "containerStatuses": [
                {
                    "name": one["name"],
                    "image": one["image"],
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": world.ago(hours=5)}},
                    "lastState": {},
                }
                for one in spec["containers"]
            ],
        },
    )


def owner_reference(kind: str, name: str, namespace: str = "") -> Object:
    """Of a controller."""
    return {
        "apiVersion": API_VERSIONS.get(kind, "v1"),
        "kind": kind,
        "name": name,
        "uid": uid(kind, name, namespace),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def register(world: World, driver: Driver, on: str, limit: int | None = 59) -> None:
    """What a kubelet writes when a driver has registered."""
    node_id = f"{on}-{driver.key}"
    keys = [key for key in driver.topology_keys if not key.endswith("/")][:1]
    entry: Object = {"name": driver.name, "nodeID": node_id, "topologyKeys": keys}
    if limit is not None and driver.csi_driver.get("attachRequired", True):
        entry["allocatable"] = {"count": limit}
    world.get("CSINode", on)["spec"]["drivers"].append(entry)
    metadata = world.get("Node", on)["metadata"]
    ids = json.loads(metadata["annotations"].get("csi.volume.kubernetes.io/nodeid", "{}"))
    metadata["annotations"]["csi.volume.kubernetes.io/nodeid"] = json.dumps({**ids, driver.name: node_id})
    for key in keys:
        metadata["labels"].setdefault(key, metadata["labels"]["topology.kubernetes.io/zone"])


def unregister(world: World, driver: Driver, on: str) -> None:
    """The opposite: the entry and the id are gone."""
    spec = world.get("CSINode", on)["spec"]
    spec["drivers"] = [one for one in spec["drivers"] if one["name"] != driver.name]
    annotations = world.get("Node", on)["metadata"]["annotations"]
    ids = json.loads(annotations["csi.volume.kubernetes.io/nodeid"])
    ids.pop(driver.name, None)
    annotations["csi.volume.kubernetes.io/nodeid"] = json.dumps(ids)


# Volumes


def csi(driver: str, handle: str, fs_type: str = "ntfs") -> Object:
    """A native source."""
    source = {"driver": driver, "volumeHandle": handle}
    return {"csi": {**source, "fsType": fs_type} if fs_type else source}


def disk_handle(driver: str, name: str) -> str:
    """The handle of a disk or share in the form of its driver."""
    forms = {
        "ebs.csi.aws.com": f"vol-{name.replace('-', '')}",
        "disk.csi.azure.com": f"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/{name}",
        "file.csi.azure.com": f"rg#account#{name}",
        "pd.csi.storage.gke.io": f"projects/p/regions/r/disks/{name}",
    }
    return forms.get(driver, name)


def smb(handle: str) -> Object:
    """A share of SMB with what its driver needs for it."""
    return {
        "csi": {
            "driver": DRIVERS["smb"].name,
            "volumeHandle": handle,
            "volumeAttributes": {"source": "//server/share"},
            "nodeStageSecretRef": {"name": "smbcreds", "namespace": SHOP},
        }
    }


def volume(
    world: World,
    name: str,
    source: Object,
    claim: str = "",
    *,
    namespace: str = SHOP,
    storage_class: str = "",
    provisioned_by: str = "",
    migrated_to: str = "",
    policy: str = "Delete",
    bound: bool = True,
    **spec: Any,
) -> Object:
    """A PersistentVolume, and the claim it is bound to where one is named."""
    annotations = {}
    if provisioned_by:
        annotations["pv.kubernetes.io/provisioned-by"] = provisioned_by
    if "csi" in source and provisioned_by:
        identity = {"storage.kubernetes.io/csiProvisionerIdentity": f"1-{provisioned_by}"}
        source = {
            "csi": {**source["csi"], "volumeAttributes": {**source["csi"].get("volumeAttributes", {}), **identity}}
        }
    if migrated_to:
        annotations["pv.kubernetes.io/migrated-to"] = migrated_to
    own: Object = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": storage_class,
        "volumeMode": "Filesystem",
        **source,
        **spec,
    }
    if claim:
        own["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim,
            "uid": uid("PersistentVolumeClaim", claim, namespace),
        }
        made = claim_of(world, claim, namespace, storage_class, name if bound else "")
        made["spec"]["accessModes"] = own["accessModes"]
        made["spec"]["volumeMode"] = own["volumeMode"]
        if provisioned_by:
            made["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] = migrated_to or provisioned_by
    return world.add(
        "PersistentVolume", name, metadata={"annotations": annotations}, spec=own,
        status={"phase": "Bound" if claim else "Available"},
    )  # fmt: skip


def claim_of(
    world: World, name: str, namespace: str = SHOP, storage_class: str | None = "", volume_name: str = ""
) -> Object:
    """A PersistentVolumeClaim, pending without a volume's name."""
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if volume_name:
        spec["volumeName"] = volume_name
    return world.add(
        "PersistentVolumeClaim", name, namespace, spec=spec,
        metadata={"annotations": {}, **({} if volume_name else {"creationTimestamp": world.ago(seconds=30)})},
        status={"phase": "Bound" if volume_name else "Pending"},
    )  # fmt: skip


def in_zones(*zones: str) -> Object:
    """The nodeAffinity of a volume that nodes of these zones reach."""
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [*zones]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def attach(world: World, name: str, on: str, driver: str, handle: str = "") -> Object:
    """A volume attached to a node, with what each side writes of it."""
    status = world.get("Node", on)["status"]
    unique = f"kubernetes.io/csi/{driver}^{handle or name}"
    status["volumesInUse"].append(unique)
    status["volumesAttached"].append({"name": unique, "devicePath": ""})
    return world.add(
        "VolumeAttachment", f"csi-{uid('VolumeAttachment', name, on)}",
        spec={"attacher": driver, "nodeName": on, "source": {"persistentVolumeName": name}},
        status={"attached": True},
    )  # fmt: skip


# Workloads


def pod_spec(*claims: str, windows: bool = True, **more: Any) -> Object:
    """A pod of a workload, with a volume for each claim."""
    system = "windows" if windows else "linux"
    image = "mcr.microsoft.com/windows/nanoserver:ltsc2022" if windows else "registry.k8s.io/pause:3.10"
    spec: Object = {
        "containers": [{"name": "main", "image": image}],
        "os": {"name": system},
        "nodeSelector": {"kubernetes.io/os": system},
        "volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in claims],
    }
    if windows:
        spec["tolerations"] = [{"key": "os", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"}]
    extra = more.pop("extra_volumes", [])
    spec["volumes"] += extra
    spec.update(more)
    return {key: value for key, value in spec.items() if value is not None}


def undecided(*claims: str, **more: Any) -> Object:
    """A pod without an operating system that tolerates the taint of Windows nodes."""
    return pod_spec(*claims, **{"os": None, "nodeSelector": None, **more})


def workload(
    world: World, kind: str, name: str, spec: Object, *, on: Iterable[str] = (), namespace: str = SHOP, **more: Any
) -> Object:
    """Something that makes pods, and those of its pods that are on nodes."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    own: Object = {"template": template}
    nodes = list(on)
    if kind in ("Deployment", "StatefulSet", "ReplicaSet"):
        own.update(selector={"matchLabels": labels}, replicas=more.pop("replicas", len(nodes)))
    if kind == "DaemonSet":
        own["selector"] = {"matchLabels": labels}
    if kind == "StatefulSet":
        own["serviceName"] = name
    if kind in ("Job", "CronJob"):
        spec["restartPolicy"] = "Never"
    if kind == "CronJob":
        own = {"schedule": "0 3 * * *", "jobTemplate": {"spec": own}}
    status = more.pop("status", {"replicas": own["replicas"]} if "replicas" in own else {})
    made = world.add(kind, name, namespace, metadata={"labels": labels}, spec={**own, **more}, status=status)
    owner = owner_reference(kind, name, namespace)
    if kind == "Deployment" and nodes:
        replica_set = f"{name}-6d4f"
        world.add(
            "ReplicaSet", replica_set, namespace, metadata={"labels": labels, "ownerReferences": [owner]},
            spec={"replicas": len(nodes), "selector": {"matchLabels": labels}, "template": template},
        )  # fmt: skip
        owner = owner_reference("ReplicaSet", replica_set, namespace)
    for number, one in enumerate(nodes):
        pod(world, f"{name}-{number}", copy.deepcopy(spec), on=one, owner=owner, namespace=namespace)
    return made


def pod(
    world: World,
    name: str,
    spec: Object,
    *,
    on: str = "",
    owner: Object | None = None,
    namespace: str = SHOP,
    phase: str = "Running",
    **metadata: Any,
) -> Object:
    """A pod."""
    if on:
        spec["nodeName"] = on
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    ready = "True" if on and phase == "Running" else "False"
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": world.ago(hours=4)}]
    return world.add(
        "Pod", name, namespace, metadata={"labels": {"app": name.rpartition("-")[0] or name}, **metadata}, spec=spec,
        status={"phase": phase if on else "Pending", "conditions": conditions},
    )  # fmt: skip


# The whole


def healthy(now: datetime = NOW) -> World:
    """Two nodes of each system, three drivers, and volumes of every kind that is ready."""
    made: World = pickle.loads(_pickle_healthy(now))
    return made


@cache
def _pickle_healthy(now: datetime) -> bytes:
    """Made once: the tests spoil some thousand of these."""
    world = World(now=now)
    namespace(world, SHOP)
    for name, windows, zone in (
        ("linux-1", False, "a"), ("linux-2", False, "b"), ("win-1", True, "a"), ("win-2", True, "b"),
    ):  # fmt: skip
        node(world, name, windows=windows, zone=zone)
    install(world, "vsphere", "csi_proxy")
    install(world, "azure_disk", "host_process")
    install(world, "azure_file", "host_process")
    vsphere, azure_disk, azure_file = (DRIVERS[key].name for key in ("vsphere", "azure_disk", "azure_file"))

    # A StatefulSet of native volumes, one on each node.
    made = "vsphere-csi-windows"
    for number, on in enumerate(("win-1", "win-2")):
        volume(
            world,
            f"pv-db-{number}",
            csi(vsphere, f"fcd-{number}"),
            f"data-db-{number}",
            storage_class=made,
            provisioned_by=vsphere,
        )
        attach(world, f"pv-db-{number}", on, vsphere, f"fcd-{number}")
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": made,
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    workload(world, "StatefulSet", "db", pod_spec(), replicas=2, volumeClaimTemplates=[template])
    for number, on in enumerate(("win-1", "win-2")):
        pod(
            world,
            f"db-{number}",
            pod_spec(f"data-db-{number}"),
            on=on,
            owner=owner_reference("StatefulSet", "db", SHOP),
        )

    # Migrated volumes, one made by a class and one by hand, keep their in-tree spec forever.
    disk = {"vsphereVolume": {"volumePath": "[ds] kubevols/legacy.vmdk", "fsType": "ntfs"}}
    volume(
        world,
        "pv-legacy",
        disk,
        "legacy",
        provisioned_by="kubernetes.io/vsphere-volume",
        migrated_to=vsphere,
        storage_class="thin",
    )
    attach(world, "pv-legacy", "win-1", vsphere, "[ds] kubevols/legacy.vmdk")
    workload(world, "Deployment", "legacy", pod_spec("legacy"), on=["win-1"])
    disk = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/d"
    managed = {"diskName": "d", "diskURI": disk, "kind": "Managed", "fsType": "ntfs", "cachingMode": "ReadWrite"}
    source = {"azureDisk": {**managed, "readOnly": False}}
    volume(world, "pv-static", source, "static", policy="Retain", nodeAffinity=in_zones("a", "b"))
    attach(world, "pv-static", "win-2", azure_disk, disk)
    workload(world, "Deployment", "static", pod_spec("static"), on=["win-2"])
    world.add(
        "StorageClass",
        "thin",
        provisioner="kubernetes.io/vsphere-volume",
        parameters={"diskformat": "thin"},
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )

    # A share that both systems use, which is what shares are for.
    share = csi(azure_file, "rg#account#share#pv-share#shop", "")
    volume(
        world,
        "pv-share",
        share,
        "share",
        accessModes=["ReadWriteMany"],
        storage_class="azure-file-csi-windows",
        provisioned_by=azure_file,
    )
    workload(world, "Deployment", "web", pod_spec("share"), on=["win-1", "win-2"])
    workload(world, "Deployment", "feed", pod_spec("share", windows=False), on=["linux-1"])

    # Linux, as it is in every cluster.
    volume(world, "pv-linux", csi(vsphere, "fcd-linux", "ext4"), "linux", provisioned_by=vsphere)
    attach(world, "pv-linux", "linux-2", vsphere, "fcd-linux")
    workload(world, "Deployment", "api", pod_spec("linux", windows=False), on=["linux-2"])
    return pickle.dumps(world)
