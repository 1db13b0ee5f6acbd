# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate evaluates: the few facts of each object, read once from the API's JSON. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...base.text import join_lines
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.node import ObservedNode
from ...kube.pod import REVISION, PodFacts, is_owned_by
from ...kube.times import parse_time, read_event_time


@dataclass(frozen=True, slots=True)
class Registration:
    """A driver's entry in a CSINode.

    written_at: when the entry was written last. None if not recorded, and if other drivers are in that CSINode too: the
    API dates all entries of the kubelet together, so another driver's registration would renew the time of this one.
    """

    node_id: str
    topology_keys: tuple[str, ...]
    written_at: datetime | None

    @classmethod
    def from_object(cls, csi_node: Mapping[str, Any], driver: str) -> Registration | None:
        """Read a storage.k8s.io/v1 CSINode; None when the driver is not in spec.drivers."""
        entries = (csi_node.get("spec") or {}).get("drivers") or []
        entry = next((candidate for candidate in entries if candidate.get("name") == driver), None)
        if entry is None:
            return None
        writes = [parse_time(manager.get("time")) for manager in csi_node["metadata"].get("managedFields") or []]
        return cls(
            node_id=str(entry.get("nodeID", "")),
            topology_keys=tuple(entry.get("topologyKeys") or ()),
            written_at=max((written for written in writes if written is not None), default=None)
            if len(entries) == 1
            else None,
        )


def hash_template(daemon_set: Mapping[str, Any]) -> str:
    """A hash of the pod template as the API server keeps it."""
    text = json.dumps(daemon_set["spec"]["template"], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_revision_hash(daemon_set: Mapping[str, Any], revisions: Iterable[Mapping[str, Any]]) -> str:
    """The hash of a DaemonSet's template: that of the ControllerRevision which keeps this very template.

    Empty while the controller has not made one yet. A revision is never taken for its number alone: the list may be older
    than the DaemonSet.
    """
    template = _drop_nulls(daemon_set["spec"]["template"])
    for revision in list_own_revisions(daemon_set, revisions):
        if _drop_nulls(read_template(revision)) == template:
            return read_revision_hash(revision)
    return ""


def list_own_revisions(
    daemon_set: Mapping[str, Any], revisions: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """The ControllerRevisions of a DaemonSet, the newest first."""
    own_revisions = [revision for revision in revisions if is_owned_by(daemon_set["metadata"].get("uid"), revision)]
    return tuple(sorted(own_revisions, key=lambda revision: -int(revision.get("revision") or 0)))


def read_revision_hash(revision: Mapping[str, Any]) -> str:
    """The hash that pods of a ControllerRevision carry."""
    return str((revision["metadata"].get("labels") or {}).get(REVISION, ""))


def read_template(revision: Mapping[str, Any]) -> dict[str, Any]:
    template = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    pod_template: dict[str, Any] = _drop_nulls({key: value for key, value in template.items() if key != "$patch"})
    return pod_template


def _drop_nulls(value: Any) -> Any:
    """Without nulls: what is kept has them where the API leaves them out."""
    if isinstance(value, Mapping):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class ObservedHost:
    """What csi_proxy_info read on a node's host. pipes: None if they were not reported. findings: of csi_proxy_info."""

    node: str
    observed_at: datetime | None
    serving: bool | None
    release: str
    state: str
    reason: str
    pipes: tuple[str, ...] | None
    boot_time: datetime | None
    findings: tuple[Mapping[str, str], ...] = ()

    @classmethod
    def from_option(cls, option: Mapping[str, Any]) -> ObservedHost:
        pipes = option.get("pipes")
        return cls(
            node=str(option["node"]),
            observed_at=parse_time(option.get("observed_at")),
            serving=option.get("serving"),
            release=str(option.get("release") or ""),
            state=str(option.get("state") or ""),
            reason=str(option.get("reason") or ""),
            pipes=None if pipes is None else tuple(pipes),
            boot_time=parse_time(option.get("boot_time")),
            findings=tuple(
                {key: str(value) for key, value in finding.items()} for finding in option.get("findings") or ()
            ),
        )


@dataclass(frozen=True, slots=True)
class EventFacts:
    """A warning about a DaemonSet or pod."""

    kind: str
    name: str
    reason: str
    message: str
    last_seen: float

    @classmethod
    def from_object(cls, event: Mapping[str, Any]) -> EventFacts:
        involved_object = event.get("involvedObject") or {}
        return cls(
            kind=str(involved_object.get("kind", "")),
            name=str(involved_object.get("name", "")),
            reason=str(event.get("reason", "")),
            message=join_lines(str(event.get("message", ""))),
            last_seen=read_event_time(event),
        )


@dataclass(frozen=True, slots=True)
class RolloutPicture:
    """Everything an evaluation is made from.

    now: the cluster's clock. controller_now: ours, which host facts were dated with. daemon_set: None when absent.
    other_providers: "namespace/name" of DaemonSets that serve the same driver, by node. logs: last lines by pod, as far
    as they were read.
    """

    now: datetime
    controller_now: datetime
    driver: str
    daemon_set: ObservedDaemonSet | None
    nodes: Sequence[ObservedNode]
    registrations: Mapping[str, Registration]
    pods: Sequence[PodFacts]
    hosts: Mapping[str, ObservedHost] = field(default_factory=dict)
    events: Sequence[EventFacts] = ()
    other_providers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
