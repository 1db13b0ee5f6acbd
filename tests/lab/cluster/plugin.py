# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CSI node plugin's pod from the view of a kubelet:  what it needs, and the statuses and log lines it gets. No I/O here."""

from __future__ import annotations

import datetime
import enum
import json
import re
from dataclasses import dataclass

from lab.cluster.api import Object

PIPE = re.compile(r"^\\\\\.\\pipe\\+(csi-proxy-[a-z0-9-]+)\\*$", re.IGNORECASE)
REGISTRAR_IMAGE = "csi-node-driver-registrar"
LIVENESS_IMAGE = "livenessprobe"
PATH_FLAG = "--kubelet-registration-path="
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


# The annotation of a pod with what its containers log besides.
SAYS = "lab/log"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A pod that the stand-in answers for.

    `registrar` and `driver_name` are empty for a pod that mounts pipes but registers nothing; `driver` is the container
    that opens the pipes. `pipes` are bare lower-case names. `once` is a pod that ends and is not started again.
    """

    uid: str
    namespace: str
    name: str
    node: str
    containers: tuple[tuple[str, str], ...]
    driver: str
    registrar: str
    driver_name: str
    pipes: frozenset[str]
    max_volumes: int | None
    csi_address: str
    host_network: bool
    once: bool = False
    logs: str = ""


def read(pod: Object) -> Plugin | None:
    """The plugin that this pod is; None for a pod that KWOK answers for."""
    spec = pod["spec"]
    containers: list[Object] = spec.get("containers") or []
    registrar = next((item for item in containers if REGISTRAR_IMAGE in item["image"]), None)
    pipes = frozenset(
        match.group(1).lower()
        for volume in spec.get("volumes") or []
        if (match := PIPE.match((volume.get("hostPath") or {}).get("path", "")))
    )
    if registrar is None and not pipes and not any(item["image"].endswith(":nosuchtag") for item in containers):
        return None
    driver = _driver_container(containers, registrar, pipes, spec)
    words = [*(registrar.get("command") or []), *(registrar.get("args") or [])] if registrar else []
    path = next((word.removeprefix(PATH_FLAG) for word in words if word.startswith(PATH_FLAG)), "")
    environment = _environment(registrar) if registrar else {}
    path = _VARIABLE.sub(lambda match: environment.get(match.group(1), match.group(0)), path)
    parts = [part for part in re.split(r"[\\/]+", path) if part]
    limit = _environment(driver).get("MAX_VOLUMES_PER_NODE", "")
    return Plugin(
        uid=pod["metadata"]["uid"],
        namespace=pod["metadata"]["namespace"],
        name=pod["metadata"]["name"],
        node=spec.get("nodeName", ""),
        containers=tuple((item["name"], item["image"]) for item in containers),
        driver=driver["name"],
        registrar=registrar["name"] if registrar else "",
        driver_name=parts[-2] if len(parts) >= 2 else "",
        pipes=pipes,
        max_volumes=int(limit) if limit.isdigit() else None,
        csi_address=environment.get("ADDRESS", "/csi/csi.sock"),
        host_network=bool(spec.get("hostNetwork")),
        once=spec.get("restartPolicy") == "Never",
        logs=(pod["metadata"].get("annotations") or {}).get(SAYS, ""),
    )


def _environment(container: Object) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container.get("env") or [] if "value" in item}


def _driver_container(
    containers: list[Object], registrar: Object | None, pipes: frozenset[str], spec: Object
) -> Object:
    """The container that mounts a pipe; without pipes the first that is neither registrar nor liveness probe."""
    volumes = {
        volume["name"]
        for volume in spec.get("volumes") or []
        if PIPE.match((volume.get("hostPath") or {}).get("path", ""))
    }
    for container in containers:
        if pipes and volumes & {mount["name"] for mount in container.get("volumeMounts") or []}:
            return container
    for container in containers:
        if container is not registrar and LIVENESS_IMAGE not in container["image"]:
            return container
    return containers[0]


class Phase(enum.Enum):
    """Where a plugin pod stands."""

    RUNNING = "running"
    CRASHED = "crashed"
    PULL_FAILED = "pull failed"
    ENDED = "ended"


def stamp(moment: datetime.datetime | None = None) -> str:
    moment = moment or datetime.datetime.now(datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Standing:
    """A pod's state as the kubelet knows it.

    `restarts` counts the driver container's, `reboots` everybody's on top; `started` is the pod's time, `booted` that
    of its containers' first start since the last reboot, `since` that of the driver container's last start, and
    `turned` when the pod last became Ready or stopped being so.
    """

    phase: Phase
    restarts: int
    started: str
    since: str
    turned: str
    booted: str
    reboots: int = 0
    bad_images: frozenset[str] = frozenset()
    crashed_before: bool = False
    backoff: float = 0.0


def status(plugin: Plugin, standing: Standing, host_ip: str) -> Object:
    """The pod's whole status for that standing."""
    statuses = [_container(plugin, name, image, standing) for name, image in plugin.containers]
    unready = [item["name"] for item in statuses if not item["ready"]]
    ready: Object = {"status": "True", "reason": "", "message": ""}
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        ready = {"status": "False", "reason": "ContainersNotReady", "message": message}
    started = {"lastTransitionTime": standing.started}
    phases = {Phase.PULL_FAILED: "Pending", Phase.ENDED: "Succeeded"}
    return {
        "phase": phases.get(standing.phase, "Running"),
        "startTime": standing.started,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "containerStatuses": statuses,
        "conditions": [
            {"type": "PodReadyToStartContainers", "status": "True", **started},
            {"type": "Initialized", "status": "True", **started},
            {"type": "Ready", "lastTransitionTime": standing.turned, **ready},
            {"type": "ContainersReady", "lastTransitionTime": standing.turned, **ready},
        ],
    }


def _container(plugin: Plugin, name: str, image: str, standing: Standing) -> Object:
    identity = f"{plugin.uid}-{name}-{standing.restarts}"
    found: Object = {
        "name": name,
        "image": image,
        "imageID": f"{image.rpartition(':')[0]}@sha256:{'0' * 64}",
        "containerID": f"containerd://{identity}",
        "restartCount": standing.reboots + (standing.restarts if name == plugin.driver else 0),
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": standing.since if name == plugin.driver else standing.booted}},
    }
    if standing.phase is Phase.PULL_FAILED:
        waiting = {"reason": "ContainerCreating"}
        if image in standing.bad_images:
            waiting = {"reason": "ImagePullBackOff", "message": pull_message(image)}
        return {
            **found,
            "imageID": "",
            "containerID": "",
            "ready": False,
            "started": False,
            "state": {"waiting": waiting},
        }
    if standing.phase is Phase.ENDED:
        ended = {**_terminated(standing, identity), "exitCode": 0, "reason": "Completed"}
        return {**found, "ready": False, "started": False, "state": {"terminated": ended}}
    if name != plugin.driver:
        return found
    if standing.crashed_before:
        found["lastState"] = {"terminated": _terminated(standing, identity)}
    if standing.phase is Phase.CRASHED:
        message = (
            f"back-off {standing.backoff:g}s restarting failed container={name} "
            f"pod={plugin.name}_{plugin.namespace}({plugin.uid})"
        )
        found |= {
            "ready": False,
            "started": False,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        }
    return found


def _terminated(standing: Standing, identity: str) -> Object:
    return {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": standing.since,
        "finishedAt": standing.since,
        "containerID": f"containerd://{identity}",
    }


def pull_message(image: str) -> str:
    return (
        f'Back-off pulling image "{image}": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack '
        f'image "{image}": failed to resolve reference "{image}": {image}: not found'
    )


def driver_log(plugin: Plugin, missing: frozenset[str]) -> list[str]:
    """The driver's log at start: the vSphere driver's lines where they matter."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")

    def entry(level: str, text: str) -> str:
        return json.dumps({"level": level, "time": now, "caller": "service/driver.go:203", "msg": text})

    lines = [entry("info", f"Starting the node plugin of {plugin.driver_name or plugin.driver}")]
    for pipe in sorted(missing):
        lines.append(
            entry(
                "error",
                f"failed to connect to csi-proxy: open \\\\.\\pipe\\{pipe}: The system cannot find the file specified.",
            )
        )
    if missing:
        lines.append(entry("fatal", "failed to create safe mounter: could not initialise the csi-proxy clients"))
    else:
        lines.append(entry("info", f"Serving requests at {plugin.csi_address}"))
    return [*lines, *([plugin.logs] if plugin.logs else [])]


def registrar_log(plugin: Plugin, registered: bool) -> list[str]:
    """The node-driver-registrar's log while it waits, and once it has registered the driver."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%m%d %H:%M:%S.%f")
    lines = [
        f"I{now}    5168 main.go:150] Version: v2.12.0",
        f'I{now}    5168 main.go:164] Attempting to open a gRPC connection with: "{plugin.csi_address}"',
    ]
    if registered:
        lines += [
            f"I{now}    5168 main.go:171] Calling CSI driver to discover driver name",
            f'I{now}    5168 main.go:176] CSI driver name: "{plugin.driver_name}"',
            f"I{now}    5168 main.go:101] Received NotifyRegistrationStatus call: "
            "&RegistrationStatus{PluginRegistered:true,Error:,}",
        ]
    else:
        lines.append(f"W{now}    5168 connection.go:234] Still connecting to {plugin.csi_address}")
    return [*lines, *([plugin.logs] if plugin.logs else [])]
