# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What readiness is evaluated from: the few facts of each object of a cluster, read once from the API's JSON. Pure.

Which fields a ``from_object`` of these facts reads is in ``wire``, whose decoder skips all others. Absent fields are what the
API says they mean. What could not be read at all is in ``Snapshot.unread``, and nothing that depends on it is ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...drivers.rollout.snapshot import ObservedHost
from ...kube.node import ObservedNode
from .admission import PriorityClass, Webhook
from .cluster import (
    ObservedCluster,
    ObservedController,
    ObservedDriver,
    ObservedNamespace,
    ObservedRuntimeClass,
)
from .nodes import ObservedCsiNode
from .resources import LimitRange, ResourceQuota
from .scheduling import ObservedBudget, PodShape
from .sources import ObservedClaim
from .storage import ObservedAttachment, ObservedClass, ObservedVolume
from .workloads import ObservedJob, ObservedPod, ObservedTemplate

SNAPSHOT_VERSION = 7


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read. resource: "pods". rule: what the account lacks, as text, empty otherwise."""

    resource: str
    why: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster as it was observed. taken_at: by the cluster's clock. unread: what could not be read, and so is unknown.

    hosts_at: by the controller's clock, which dated what hosts saw.
    service_accounts: of those that templates name, the ones that exist, "namespace/name".
    feature_states: data of the ConfigMaps that drivers have for these, by "namespace/name"; None if the server has none.
    missing_webhooks: those of new pods and of what these need whose Service does not exist.
    jobs: each Job by "namespace/name", those without volumes too.
    shapes: of all pods that have not finished; pods_on: by node, their numbers there, below "" those of pods that wait for a node.
    """

    taken_at: datetime
    cluster: ObservedCluster
    name: str = ""
    hosts_at: datetime | None = None
    nodes: tuple[ObservedNode, ...] = ()
    csi_nodes: tuple[ObservedCsiNode, ...] = ()
    volumes: tuple[ObservedVolume, ...] = ()
    claims: tuple[ObservedClaim, ...] = ()
    attachments: tuple[ObservedAttachment, ...] = ()
    classes: tuple[ObservedClass, ...] = ()
    pods: tuple[ObservedPod, ...] = ()
    shapes: tuple[PodShape, ...] = ()
    pods_on: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    budgets: tuple[ObservedBudget, ...] = ()
    templates: tuple[ObservedTemplate, ...] = ()
    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    drivers: tuple[ObservedDriver, ...] = ()
    controllers: tuple[ObservedController, ...] = ()
    namespaces: tuple[ObservedNamespace, ...] = ()
    feature_states: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    runtime_classes: tuple[ObservedRuntimeClass, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    service_accounts: tuple[str, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    missing_webhooks: tuple[Webhook, ...] = ()
    hosts: tuple[ObservedHost, ...] = ()
    unread: tuple[Unread, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """Read the content of a snapshot's file; ValueError says what is wrong with it."""
        import msgspec

        version = data.get("snapshot_version")
        if version != SNAPSHOT_VERSION:
            raise ValueError(
                f"snapshot_version is {version}, expected {SNAPSHOT_VERSION}. Take the snapshot again with this release"
            )
        try:
            return msgspec.convert({key: value for key, value in data.items() if key != "snapshot_version"}, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is not a snapshot: {error}") from error
