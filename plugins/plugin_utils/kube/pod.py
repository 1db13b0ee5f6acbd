# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Pod, read once from the API's JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..base.text import join_lines
from .times import parse_time

MIRROR = "kubernetes.io/config.mirror"
REVISION = "controller-revision-hash"
_TEMPLATE_GENERATION = "pod-template-generation"
_PIPE = "\\\\.\\pipe\\"


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """One container's state: what it waits for or why it ended last."""

    name: str
    ready: bool
    restarts: int
    started_at: datetime | None
    waiting: str
    waiting_message: str
    exit_code: int | None
    ended_at: datetime | None
    ended_because: str

    @classmethod
    def from_object(cls, status: Mapping[str, Any]) -> ContainerFacts:
        state, last = status.get("state") or {}, status.get("lastState") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or last.get("terminated") or {}
        return cls(
            name=str(status.get("name", "")),
            ready=bool(status.get("ready")),
            restarts=int(status.get("restartCount") or 0),
            started_at=parse_time((state.get("running") or {}).get("startedAt")),
            waiting=str(waiting.get("reason", "")),
            waiting_message=join_lines(str(waiting.get("message", ""))),
            exit_code=int(ended["exitCode"]) if "exitCode" in ended else None,
            ended_at=parse_time(ended.get("finishedAt")),
            ended_because=join_lines(
                " ".join(str(part) for part in (ended.get("reason"), ended.get("message")) if part)
            ),
        )


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod.

    node: where it is, or is to be while it waits for the scheduler. ready_since: since when it is Ready. deleting: it is being deleted.
    deleting_since: when its grace period ended or ends. not_scheduled: why it has no node. version: its resourceVersion. revision: hash of the template
    it was made from. owner: kind and name of its controller, empty without one. mirror: of its node's own, not of the API's.
    volumes: whether it has one that a CSI driver mounts.
    """

    name: str
    node: str
    ready: bool
    ready_since: datetime | None = None
    deleting: bool = False
    deleting_since: datetime | None = None
    template_generation: str = ""
    containers: tuple[ContainerFacts, ...] = ()
    not_scheduled: str = ""
    phase: str = "Running"
    uid: str = ""
    version: str = ""
    revision: str = ""
    namespace: str = ""
    owner: tuple[str, str] = ("", "")
    mirror: bool = False
    volumes: bool = False

    @classmethod
    def from_object(cls, pod: Mapping[str, Any]) -> PodFacts:
        metadata, status = pod["metadata"], pod.get("status") or {}
        labels = metadata.get("labels") or {}
        conditions = {entry.get("type"): entry for entry in status.get("conditions") or []}
        ready, scheduled = conditions.get("Ready") or {}, conditions.get("PodScheduled") or {}
        return cls(
            name=str(metadata["name"]),
            node=_find_node(pod),
            ready=ready.get("status") == "True",
            ready_since=parse_time(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None,
            deleting=bool(metadata.get("deletionTimestamp")),
            deleting_since=parse_time(metadata.get("deletionTimestamp")),
            template_generation=str(labels.get(_TEMPLATE_GENERATION, "")),
            containers=tuple(ContainerFacts.from_object(entry) for entry in status.get("containerStatuses") or []),
            not_scheduled=join_lines(str(scheduled.get("message", ""))) if scheduled.get("status") == "False" else "",
            phase=str(status.get("phase", "")),
            uid=str(metadata.get("uid", "")),
            version=str(metadata.get("resourceVersion", "")),
            revision=str(labels.get(REVISION, "")),
            namespace=str(metadata.get("namespace", "")),
            owner=find_controller(metadata),
            mirror=MIRROR in (metadata.get("annotations") or {}),
            volumes=has_volume(pod),
        )

    @property
    def title(self) -> str:
        return f"pod {self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        """Whether its containers will not run again."""
        return self.phase in ENDED

    @property
    def finished(self) -> bool:
        """Whether it is over for its node too."""
        return self.ended and not self.deleting

    @property
    def works(self) -> bool:
        return (
            self.phase == "Running" and bool(self.containers) and all(container.ready for container in self.containers)
        )

    @property
    def started_at(self) -> datetime | None:
        """When the oldest of its running containers started."""
        return min((container.started_at for container in self.containers if container.started_at), default=None)

    @property
    def last_restart(self) -> datetime | None:
        """When a container of it ended last."""
        return max((container.ended_at for container in self.containers if container.ended_at), default=None)

    def find_workload(self, labels: Mapping[str, str]) -> tuple[str, str] | None:
        """Kind and name of the Deployment or StatefulSet that it is of, None for anything else."""
        kind, name = self.owner
        if kind == "StatefulSet":
            return kind, name
        suffix = "-" + labels.get("pod-template-hash", "")
        if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
            return "Deployment", name[: -len(suffix)]
        return None


# Phases of pods whose containers will not run again
ENDED = ("Succeeded", "Failed")


# Single fields, for passes over all pods of a cluster


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a core/v1 Pod is over for its node too: a kubelet reports the last phase of a deleted pod before it unmounts its volumes."""
    return (pod.get("status") or {}).get("phase") in ENDED and not pod["metadata"].get("deletionTimestamp")


def find_controller(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the object that controls this one, empty when none does."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("kind", "")), str(owner.get("name", ""))
    return "", ""


def is_owned_by(uid: str, live: Mapping[str, Any]) -> bool:
    return any(owner.get("uid") == uid for owner in live["metadata"].get("ownerReferences") or [])


def list_claims(pod: Mapping[str, Any]) -> list[str]:
    """Names of the PersistentVolumeClaims that a core/v1 Pod uses, generic ephemeral ones included."""
    claims = []
    for volume in (pod.get("spec") or {}).get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            claims.append(str(volume["persistentVolumeClaim"]["claimName"]))
        elif "ephemeral" in volume:
            claims.append(f"{pod['metadata']['name']}-{volume['name']}")
    return claims


def has_volume(pod: Mapping[str, Any]) -> bool:
    """Whether a core/v1 Pod has a volume that a CSI driver mounts."""
    volumes = (pod.get("spec") or {}).get("volumes") or []
    return any(not {"persistentVolumeClaim", "ephemeral", "csi"}.isdisjoint(volume) for volume in volumes)


def is_host_process(pod_spec: Mapping[str, Any]) -> bool:
    """Whether a pod's containers are HostProcess containers, by spec.securityContext.windowsOptions.hostProcess."""
    options = (pod_spec.get("securityContext") or {}).get("windowsOptions") or {}
    return bool(options.get("hostProcess"))


def list_images(pod_spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """By container, the images of a PodSpec."""
    containers = pod_spec.get("containers") or ()
    return tuple((str(container.get("name", "")), str(container.get("image", ""))) for container in containers)


def list_host_paths(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """What a PodSpec mounts from the host, as of normalize_path."""
    paths = (str((volume.get("hostPath") or {}).get("path", "")) for volume in pod_spec.get("volumes") or [])
    return tuple(normalize_path(path) for path in paths if path)


def list_pipes(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The named pipes that a PodSpec mounts, bare names in lower case."""
    return tuple(path[len(_PIPE) :] for path in list_host_paths(pod_spec) if path.startswith(_PIPE))


def normalize_path(path: str) -> str:
    """A path of Windows in lower case with single backslashes, but for those at its begin."""
    single = path.lower().replace("/", "\\")
    while "\\\\" in single[1:]:
        single = single[0] + single[1:].replace("\\\\", "\\")
    return single


def _find_node(pod: Mapping[str, Any]) -> str:
    """The node that a pod is bound to, or the one that a DaemonSet's affinity names while it waits for the scheduler."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or []:
        for entry in term.get("matchFields") or []:
            if entry.get("key") == "metadata.name" and entry.get("values"):
                return str(entry["values"][0])
    return ""
