# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate judges: the few facts of each object, read once from the API's JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube.node import NodeSeen
from ansible_collections.kubewin.csi.plugins.module_utils.kube.times import moment

_PIPE = "\\\\.\\pipe\\"
_TEMPLATE_GENERATION_LABEL = "pod-template-generation"
_TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_REVISION_LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Registration:
    """A driver's entry in a CSINode.

    written_at: when the entry was written last. None when not told, and when other drivers are in that CSINode too: the
    API dates all entries of the kubelet together, so another driver's registration would renew the time of this one.
    """

    node_id: str
    topology_keys: tuple[str, ...]
    written_at: datetime | None

    @classmethod
    def from_object(cls, csi_node: Mapping[str, Any], driver: str) -> Registration | None:
        """Read a storage.k8s.io/v1 CSINode; None when the driver is not in spec.drivers."""
        entries = (csi_node.get("spec") or {}).get("drivers") or []
        entry = next((one for one in entries if one.get("name") == driver), None)
        if entry is None:
            return None
        writes = [moment(one.get("time")) for one in csi_node["metadata"].get("managedFields") or []]
        return cls(
            node_id=str(entry.get("nodeID", "")),
            topology_keys=tuple(entry.get("topologyKeys") or ()),
            written_at=max((one for one in writes if one is not None), default=None) if len(entries) == 1 else None,
        )


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
        """Read a core/v1 ContainerStatus."""
        state, last = status.get("state") or {}, status.get("lastState") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or last.get("terminated") or {}
        return cls(
            name=str(status.get("name", "")),
            ready=bool(status.get("ready")),
            restarts=int(status.get("restartCount") or 0),
            started_at=moment((state.get("running") or {}).get("startedAt")),
            waiting=str(waiting.get("reason", "")),
            waiting_message=str(waiting.get("message", "")),
            exit_code=int(ended["exitCode"]) if "exitCode" in ended else None,
            ended_at=moment(ended.get("finishedAt")),
            ended_because=" ".join(str(part) for part in (ended.get("reason"), ended.get("message")) if part),
        )


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A plugin pod.

    ready_since: since when it is Ready. not_scheduled: why it has no node. revision: hash of the template it was made from.
    """

    name: str
    node: str
    ready: bool
    ready_since: datetime | None
    deleting: bool
    template_generation: str
    containers: tuple[ContainerFacts, ...] = ()
    not_scheduled: str = ""
    phase: str = "Running"
    uid: str = ""
    revision: str = ""

    @classmethod
    def from_object(cls, pod: Mapping[str, Any]) -> PodFacts:
        """Read a core/v1 Pod of a DaemonSet."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
        ready, scheduled = conditions.get("Ready") or {}, conditions.get("PodScheduled") or {}
        return cls(
            name=metadata["name"],
            node=_node_of(pod),
            ready=ready.get("status") == "True",
            ready_since=moment(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None,
            deleting=bool(metadata.get("deletionTimestamp")),
            template_generation=str((metadata.get("labels") or {}).get(_TEMPLATE_GENERATION_LABEL, "")),
            containers=tuple(ContainerFacts.from_object(entry) for entry in status.get("containerStatuses") or []),
            not_scheduled=str(scheduled.get("message", "")) if scheduled.get("status") == "False" else "",
            phase=str(status.get("phase", "")),
            uid=str(metadata.get("uid", "")),
            revision=str((metadata.get("labels") or {}).get(_REVISION_LABEL, "")),
        )

    @property
    def started_at(self) -> datetime | None:
        """When the oldest of its running containers started."""
        return min((one.started_at for one in self.containers if one.started_at), default=None)

    @property
    def last_restart(self) -> datetime | None:
        """When a container of it ended last."""
        return max((one.ended_at for one in self.containers if one.ended_at), default=None)


def _node_of(pod: Mapping[str, Any]) -> str:
    """The node of a DaemonSet's pod: bound, or the one its affinity names while it waits for the scheduler."""
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


@dataclass(frozen=True, slots=True)
class DaemonSetFacts:
    """The plugin's DaemonSet.

    pipes: what its pods mount, bare names. pod_spec: selector, affinity and tolerations. revision: hash of its template, empty
    where it is not known.
    """

    namespace: str
    name: str
    desired: int
    current: int
    ready: int
    observed: bool
    template_generation: str
    pipes: tuple[str, ...]
    pod_spec: Mapping[str, Any]
    host_network: bool = False
    revision: str = ""

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any], revision: str = "") -> DaemonSetFacts:
        """Read an apps/v1 DaemonSet."""
        metadata, spec, status = daemon_set["metadata"], daemon_set["spec"], daemon_set.get("status") or {}
        pod = spec["template"]["spec"]
        paths = [str((volume.get("hostPath") or {}).get("path", "")) for volume in pod.get("volumes") or []]
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            desired=int(status.get("desiredNumberScheduled") or 0),
            current=int(status.get("currentNumberScheduled") or 0),
            ready=int(status.get("numberReady") or 0),
            observed=int(status.get("observedGeneration") or 0) >= int(metadata.get("generation") or 0),
            template_generation=str((metadata.get("annotations") or {}).get(_TEMPLATE_GENERATION_ANNOTATION, "")),
            pipes=tuple(path[len(_PIPE) :] for path in paths if path.startswith(_PIPE)),
            pod_spec=pod,
            host_network=bool(pod.get("hostNetwork")),
            revision=revision,
        )

    def made(self, pod: PodFacts) -> bool:
        """Whether a pod is of the template as it is now: the DaemonSet controller's own rule.

        A template that comes back has a new generation and its old hash, so pods that always had it are left alone.
        """
        if self.revision and pod.revision == self.revision:
            return True
        return not self.template_generation or pod.template_generation in ("", self.template_generation)


def revision_of(daemon_set: Mapping[str, Any], revisions: Iterable[Mapping[str, Any]]) -> str:
    """The hash of a DaemonSet's template: that of the ControllerRevision which keeps this very template.

    Empty while the controller has not made one yet. A revision is never taken for its number alone: the list may be older
    than the DaemonSet.
    """
    wanted = _bare(daemon_set["spec"]["template"])
    for one in own_revisions(daemon_set, revisions):
        if _bare(kept_template(one)) == wanted:
            return hash_of(one)
    return ""


def own_revisions(
    daemon_set: Mapping[str, Any], revisions: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """The ControllerRevisions of a DaemonSet, the newest first."""
    uid = daemon_set["metadata"].get("uid")
    own = [one for one in revisions if any(by.get("uid") == uid for by in one["metadata"].get("ownerReferences") or [])]
    return tuple(sorted(own, key=lambda one: -int(one.get("revision") or 0)))


def hash_of(revision: Mapping[str, Any]) -> str:
    """The hash that pods of a ControllerRevision carry."""
    return str((revision["metadata"].get("labels") or {}).get(_REVISION_LABEL, ""))


def kept_template(revision: Mapping[str, Any]) -> dict[str, Any]:
    """The pod template that a ControllerRevision keeps."""
    template = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    found: dict[str, Any] = _bare({key: value for key, value in template.items() if key != "$patch"})
    return found


def _bare(value: Any) -> Any:
    """Without nulls: what is kept has them where the API leaves them out."""
    if isinstance(value, Mapping):
        return {key: _bare(item) for key, item in value.items() if item is not None}
    return [_bare(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What csi_proxy_info saw on a node's host. pipes: None when only the missing ones were told."""

    node: str
    observed_at: datetime | None
    serving: bool | None
    release: str
    state: str
    reason: str
    missing_pipes: tuple[str, ...]
    pipes: tuple[str, ...] | None
    boot_time: datetime | None

    @classmethod
    def from_option(cls, given: Mapping[str, Any]) -> HostFacts:
        """Read an element of the module's option hosts."""
        pipes = given.get("pipes")
        return cls(
            node=str(given["node"]),
            observed_at=moment(given.get("observed_at")),
            serving=given.get("serving"),
            release=str(given.get("release") or ""),
            state=str(given.get("state") or ""),
            reason=str(given.get("reason") or ""),
            missing_pipes=tuple(given.get("missing_pipes") or ()),
            pipes=None if pipes is None else tuple(pipes),
            boot_time=moment(given.get("boot_time")),
        )


@dataclass(frozen=True, slots=True)
class EventFacts:
    """A warning about a DaemonSet or pod."""

    kind: str
    name: str
    reason: str
    message: str
    last_seen: datetime | None

    @classmethod
    def from_object(cls, event: Mapping[str, Any]) -> EventFacts:
        """Read a core/v1 Event."""
        about, series = event.get("involvedObject") or {}, event.get("series") or {}
        times = [series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")]
        return cls(
            kind=str(about.get("kind", "")),
            name=str(about.get("name", "")),
            reason=str(event.get("reason", "")),
            message=str(event.get("message", "")),
            last_seen=next((moment(time) for time in times if moment(time)), None),
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything a judgement is made from.

    now: the cluster's clock. controller_now: ours, which host facts were dated with. daemon_set: None when absent.
    other_providers: "namespace/name" of DaemonSets that serve the same driver, by node. logs: last lines by pod, as far
    as they were read.
    """

    now: datetime
    controller_now: datetime
    driver: str
    daemon_set: DaemonSetFacts | None
    nodes: Sequence[NodeSeen]
    registrations: Mapping[str, Registration]
    pods: Sequence[PodFacts]
    hosts: Mapping[str, HostFacts] = field(default_factory=dict)
    events: Sequence[EventFacts] = ()
    other_providers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
