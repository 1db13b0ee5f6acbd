# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of the cluster from which an upgrade is decided. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ..catalog import wmco
from ..kube.labels import MANAGER, PART_OF, is_of_run, read_cordon_reason
from ..kube.node import ObservedNode
from ..kube.pod import PodFacts
from .journal import UpgradeWorkload

# Keeps workloads off a node that WMCO opens by itself.
TAINT = "kubewin.io/upgrade"

_CSI = "kubernetes.io/csi/"

# Its ClusterServiceVersions, one a release (github.com/openshift/windows-machine-config-operator: bundle/manifests).
OPERATOR = "windows-machine-config-operator.v"


@dataclass(frozen=True, slots=True)
class UpgradeNode:
    """A Windows Node. attached: names of volumes from its status. pods: None if they were not read.

    tainted: by us. cordoned_for: the reason of our cordon. tainted_for: the upgrade that our taint names. version, desired: WMCO's.
    allowed, upgrading, blocked: its labels.
    """

    name: str
    ready: bool
    not_ready_because: str
    cordoned: bool
    cordoned_for: str
    tainted: bool
    kubelet: str
    tainted_for: str = ""
    version: str = ""
    desired: str = ""
    allowed: bool = False
    upgrading: bool = False
    blocked: bool = False
    attached: tuple[str, ...] = ()
    pods: tuple[PodFacts, ...] | None = None
    workloads: tuple[UpgradeWorkload, ...] = ()

    @classmethod
    def from_object(
        cls,
        node: Mapping[str, Any],
        pods: tuple[PodFacts, ...] | None = None,
        workloads: tuple[UpgradeWorkload, ...] = (),
    ) -> UpgradeNode:
        facts = ObservedNode.from_object(node)
        notes, labels = node["metadata"].get("annotations") or {}, facts.labels
        return cls(
            name=facts.name,
            ready=facts.ready,
            not_ready_because=facts.not_ready_because,
            cordoned=facts.cordoned,
            cordoned_for=read_cordon_reason(node),
            tainted=any(taint.key == TAINT for taint in facts.taints),
            tainted_for=next((taint.value for taint in facts.taints if taint.key == TAINT), ""),
            kubelet=facts.kubelet,
            version=str(notes.get(wmco.VERSION, "")),
            desired=str(notes.get(wmco.DESIRED, "")),
            allowed=labels.get(wmco.ALLOW) == "true",
            upgrading=labels.get(wmco.UPGRADING) == "true",
            blocked=labels.get(wmco.BLOCKED) == "true",
            attached=facts.attached,
            pods=pods,
            workloads=workloads,
        )

    @property
    def in_tree(self) -> tuple[str, ...]:
        """Volumes that are attached by the in-tree code."""
        return tuple(name for name in self.attached if not name.startswith(_CSI))

    @property
    def carries_volumes(self) -> bool:
        """Whether a workload has a volume on the node."""
        return bool(self.attached) or any(pod.volumes and not pod.finished for pod in self.pods or ())


def read_pod(pod: Mapping[str, Any]) -> PodFacts:
    """Read a core/v1 Pod. One of another run of this collection has that run as its owner; its volume is not a workload's."""
    facts = PodFacts.from_object(pod)
    feature = str((pod["metadata"].get("labels") or {}).get(PART_OF, ""))
    return replace(facts, owner=(MANAGER, feature), volumes=False) if is_of_run(pod) else facts


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """A workload's desired and Ready pods, and why a pod is not created."""

    replicas: int
    ready: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Releases and state of the cluster.

    openshift: the release whose update is complete. is_openshift: None if that was not read. failing: what ClusterVersion
    reports. wmco: the operator that runs.
    """

    openshift: str = ""
    failing: str = ""
    wmco: str = ""
    is_openshift: bool | None = None


@dataclass(frozen=True, slots=True)
class UpgradeObservation:
    """The state from which a step is decided.

    current_time: the API server's clock. nodes: all Windows nodes. workloads: those that entries wait for. refused: evictions that the
    server refused, by pod uid, in its words; retriable: those that are due for another try. cluster: None if it was not read.
    api_server: its release, empty if it was not read.
    """

    current_time: datetime
    nodes: Mapping[str, UpgradeNode]
    workloads: Mapping[UpgradeWorkload, WorkloadState] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    retriable: frozenset[str] = frozenset()
    cluster: ClusterState | None = None
    api_server: str = ""
