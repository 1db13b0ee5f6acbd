# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods with volumes, from the view of a kubelet:  what has to be mounted, and the statuses they get. No I/O here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lab.cluster import plugin
from lab.cluster.api import Object

HOLD_DELETE = "lab/hold-delete"
# A file in the pod's first container to which it adds the time as long as it runs.
WRITES = "lab/writes"


@dataclass(frozen=True, slots=True)
class Container:
    """One container. `mounts`: name of the volume by path in the container."""

    name: str
    image: str
    mounts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod that cannot run before its volumes are mounted. `claims`: claim by name of the volume."""

    uid: str
    namespace: str
    name: str
    node: str
    containers: tuple[Container, ...]
    claims: Mapping[str, str]

    @property
    def involved(self) -> Object:
        return {"apiVersion": "v1", "kind": "Pod", "namespace": self.namespace, "name": self.name, "uid": self.uid}


def read(pod: Object) -> Workload | None:
    """The workload that this pod is; None for a pod without claims, and for node plugins.

    KWOK's stages draw the same line.
    """
    volumes: list[Object] = pod["spec"].get("volumes") or []
    claims = {
        one["name"]: one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one
    }
    found = plugin.read(pod)
    if not claims or (found is not None and (found.registrar or found.pipes)):
        return None
    return Workload(
        uid=pod["metadata"]["uid"],
        namespace=pod["metadata"]["namespace"],
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        containers=tuple(
            Container(
                item["name"],
                item["image"],
                {mount["mountPath"]: mount["name"] for mount in item.get("volumeMounts") or []},
            )
            for item in pod["spec"].get("containers") or []
        ),
        claims=claims,
    )


def attachment_name(driver: str, handle: str, node: str) -> str:
    """The VolumeAttachment of a volume on a node, as the attach controller and the kubelet both call it."""
    return "csi-" + hashlib.sha256(f"{handle}{driver}{node}".encode()).hexdigest()


def unique_name(driver: str, handle: str) -> str:
    """A volume in a node's volumesInUse."""
    return f"kubernetes.io/csi/{driver}^{handle}"


def running(pod: Workload, started: str, address: str) -> Object:
    """The status of a pod whose containers all run."""
    return {
        "phase": "Running",
        "startTime": started,
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(started, "True", "", ""),
        "containerStatuses": [
            {
                "name": item.name,
                "image": item.image,
                "imageID": f"lab://{item.image}",
                "containerID": f"containerd://{pod.uid}-{item.name}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": plugin.stamp()}},
            }
            for item in pod.containers
        ],
    }


def waiting(pod: Workload, started: str, address: str, reason: str = "ContainerCreating", message: str = "") -> Object:
    """The status of a pod whose containers do not run yet."""
    names = " ".join(item.name for item in pod.containers)
    because = f"containers with unready status: [{names}]"
    return {
        "phase": "Pending",
        "startTime": started,
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "conditions": _conditions(started, "False", "ContainersNotReady", because),
        "containerStatuses": [
            {
                "name": item.name,
                "image": item.image,
                "imageID": "",
                "ready": False,
                "started": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": reason, **({"message": message} if message else {})}},
            }
            for item in pod.containers
        ],
    }


def _conditions(moment: str, ready: str, reason: str, message: str) -> list[Object]:
    reported = {"lastTransitionTime": moment, "reason": reason, "message": message}
    return [
        {"type": "PodReadyToStartContainers", "status": ready, "lastTransitionTime": moment},
        {"type": "Initialized", "status": "True", "lastTransitionTime": moment},
        {"type": "Ready", "status": ready, **reported},
        {"type": "ContainersReady", "status": ready, **reported},
    ]


class Trouble(Exception):
    """Why a volume cannot be mounted, in the kubelet's words; reason: the event's."""

    def __init__(self, message: str, reason: str = "FailedMount") -> None:
        super().__init__(message)
        self.reason = reason


def held_elsewhere(volume: str) -> Trouble:
    return Trouble(
        f'Multi-Attach error for volume "{volume}" Volume is already exclusively attached to one node and can\'t be attached '
        "to another",
        "FailedAttachVolume",
    )


def not_attachable(volume: str, why: str) -> Trouble:
    return Trouble(f'AttachVolume.Attach failed for volume "{volume}" : {why}', "FailedAttachVolume")


def not_mounted(volume: str, why: str) -> Trouble:
    return Trouble(f'MountVolume.MountDevice failed for volume "{volume}" : {why}')


def not_registered(volume: str, driver: str) -> Trouble:
    return not_mounted(
        volume,
        "kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: "
        f"driver name {driver} not found in the list of registered CSI drivers",
    )


def no_plugin(volume: str, driver: str) -> Trouble:
    socket = rf"C:\\var\\lib\\kubelet\\plugins\\{driver}\\csi.sock"
    return not_mounted(
        volume,
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix '
        f'{socket}: connect: No connection could be made because the target machine actively refused it."',
    )


def no_pipe(volume: str, driver: str, pipe: str) -> Trouble:
    target = rf"\\var\\lib\\kubelet\\plugins\\kubernetes.io\\csi\\{driver}\\{hashlib.sha256(volume.encode()).hexdigest()}\\globalmount"
    return not_mounted(
        volume,
        f"rpc error: code = Internal desc = Could not mount target {target}: rpc error: code = Unavailable desc = "
        rf'connection error: desc = "transport: Error while dialing open \\\\.\\pipe\\{pipe}: The system cannot find the '
        'file specified."',
    )


def unbound(volumes: list[str], namespace: str, claim: str, why: str) -> Trouble:
    names = " ".join(volumes)
    return Trouble(
        f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], failed to process "
        f"volumes=[{names}]: error processing PVC {namespace}/{claim}: {why}"
    )


def not_attached(volumes: list[str]) -> Trouble:
    names = " ".join(volumes)
    return Trouble(
        f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], failed to process "
        "volumes=[]: timed out waiting for the condition"
    )
