# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, their CSINodes, and what was seen on their hosts. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import wmco
from ansible_collections.kubewin.csi.plugins.module_utils.drivers import request
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import HostFacts, Taint, node_ids

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A Node.

    os: of nodeInfo, which the kubelet tells; the label can be edited. build: "20348". in_use, attached: unique volume
    names. node_ids: by driver. annotations: those of the Windows Machine Config Operator only.
    """

    name: str
    os: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    not_ready_because: str = ""
    cordoned: bool = False
    kubelet: str = ""
    build: str = ""
    runtime: str = ""
    node_ids: Mapping[str, str] = field(default_factory=dict)
    in_use: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> NodeSeen:
        """Read a core/v1 Node.

        Reads metadata (name, labels, annotations), spec (taints, unschedulable), status (conditions, nodeInfo
        (operatingSystem, kubeletVersion, kernelVersion, containerRuntimeVersion), volumesInUse, volumesAttached (name)).
        """
        metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
        annotations, info = metadata.get("annotations") or {}, status.get("nodeInfo") or {}
        ready: Mapping[str, Any] = next(
            (one for one in status.get("conditions") or () if one.get("type") == "Ready"), {}
        )
        return cls(
            name=str(metadata["name"]),
            os=str(info.get("operatingSystem", "")),
            labels=dict(metadata.get("labels") or {}),
            taints=tuple(
                Taint(str(one.get("key", "")), str(one.get("value") or ""), str(one.get("effect", "")))
                for one in spec.get("taints") or ()
            ),
            ready=ready.get("status") == "True",
            not_ready_because=" ".join(filter(None, [ready.get("reason"), ready.get("message")])),
            cordoned=bool(spec.get("unschedulable")),
            kubelet=sys.intern(str(info.get("kubeletVersion", ""))),
            build=request.NodeSeen.from_object(node).build,
            runtime=sys.intern(str(info.get("containerRuntimeVersion", ""))),
            node_ids=node_ids(annotations),
            in_use=tuple(str(one) for one in status.get("volumesInUse") or ()),
            attached=tuple(str(one.get("name", "")) for one in status.get("volumesAttached") or ()),
            annotations={key: str(value) for key, value in annotations.items() if key.startswith(wmco.PREFIX)},
        )

    @property
    def windows(self) -> bool:
        """Whether it is a Windows node: what the kubelet says, else the label."""
        return (self.os or self.labels.get("kubernetes.io/os", "")) == "windows"

    @property
    def of_operator(self) -> bool:
        """Whether the Windows Machine Config Operator prepared it."""
        return bool(self.annotations) or any(key.startswith(wmco.PREFIX) for key in self.labels)


@dataclass(frozen=True, slots=True)
class DriverEntry:
    """A driver in a CSINode. limit: most volumes, None when it sets none."""

    name: str
    node_id: str
    topology_keys: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CsiNodeSeen:
    """A CSINode. migrated: in-tree plugins for which the kubelet uses CSI, None where it does not tell."""

    name: str
    drivers: tuple[DriverEntry, ...] = ()
    migrated: tuple[str, ...] | None = None

    @classmethod
    def from_object(cls, csi_node: Mapping[str, Any]) -> CsiNodeSeen:
        """Read a storage.k8s.io/v1 CSINode.

        Reads metadata (name, annotations), spec.drivers (name, nodeID, topologyKeys, allocatable.count).
        """
        metadata = csi_node["metadata"]
        told = (metadata.get("annotations") or {}).get(MIGRATED_PLUGINS)
        return cls(
            name=str(metadata["name"]),
            drivers=tuple(
                DriverEntry(
                    sys.intern(str(one.get("name", ""))),
                    str(one.get("nodeID", "")),
                    tuple(one.get("topologyKeys") or ()),
                    (one.get("allocatable") or {}).get("count"),
                )
                for one in (csi_node.get("spec") or {}).get("drivers") or ()
            ),
            migrated=None if told is None else tuple(part.strip() for part in told.split(",") if part.strip()),
        )

    def entry(self, driver: str) -> DriverEntry | None:
        """What it says of a driver, None when it does not name it."""
        return next((one for one in self.drivers if one.name == driver), None)


@dataclass(frozen=True, slots=True)
class HostSeen:
    """What csi_proxy_info saw on a node's host.

    facts: as the gate takes them. managed_by: who owns csi-proxy there. findings: of that module, passed on.
    """

    facts: HostFacts
    managed_by: str = ""
    findings: tuple[Mapping[str, str], ...] = ()

    @property
    def node(self) -> str:
        """The Node that this host is."""
        return self.facts.node

    @classmethod
    def from_option(cls, given: Mapping[str, Any]) -> HostSeen:
        """Read what the gate's option hosts takes, with managed_by and findings besides."""
        return cls(
            facts=HostFacts.from_option(given),
            managed_by=str(given.get("managed_by") or ""),
            findings=tuple({key: str(value) for key, value in one.items()} for one in given.get("findings") or ()),
        )
