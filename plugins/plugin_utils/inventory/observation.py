# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory is made from: Windows Nodes, what is registered there, and WMCO's list of instances. Pure.

This is what an inventory cache keeps, so nothing secret is ever read into it: of a Node's annotations only those that
were asked for, and of an instance's entry only the user's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.stored import check_version, restore, serialize
from ..catalog import wmco
from ..catalog.registry import DRIVERS
from ..drivers.ownership import detect_platform_of_nodes
from ..kube.node import ObservedNode

SCHEMA = 2

# WMCO's ConfigMap of instances, and the kind of their addresses.
INSTANCE = "windows-instances"
_USER = re.compile(r"\s*username=(\S.*?)\s*")

# Which WMCO prepared the Node, and which one it is to become.
_ALWAYS_KEPT = (wmco.VERSION, wmco.DESIRED)

_DRIVER_KEYS = {driver.name: key for key, driver in DRIVERS.items()}


@dataclass(frozen=True, slots=True)
class InventoryNode:
    """A Windows Node.

    build: "20348", empty if it is not reported. annotations: those that were asked for. addresses: (type, address) in the
    Node's order. drivers: registered in its CSINode, by the catalog's key where it knows them.
    """

    name: str
    build: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    addresses: tuple[tuple[str, str], ...]
    ready: bool
    unschedulable: bool
    kubelet_version: str
    os_image: str
    drivers: tuple[str, ...]

    @classmethod
    def from_object(cls, node: Mapping[str, Any], annotations: Iterable[str], drivers: Iterable[str]) -> InventoryNode:
        """Read a core/v1 Node, keep these annotations of it; drivers as its CSINode names them."""
        base = ObservedNode.from_object(node)
        status, present = node.get("status") or {}, node["metadata"].get("annotations") or {}
        return cls(
            name=base.name,
            build=base.build,
            labels=base.labels,
            annotations={key: str(present[key]) for key in (*_ALWAYS_KEPT, *annotations) if key in present},
            addresses=tuple(
                (str(address["type"]), str(address["address"])) for address in status.get("addresses") or []
            ),
            ready=base.ready,
            unschedulable=base.cordoned,
            kubelet_version=base.kubelet,
            os_image=str((status.get("nodeInfo") or {}).get("osImage", "")),
            drivers=tuple(sorted(_DRIVER_KEYS.get(name, name) for name in drivers)),
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """A cluster as far as an inventory needs it.

    server: URL of the API server. read_at: RFC 3339. platform: a key of drivers.ownership.PLATFORMS, empty for any other. instances: of
    WMCO's ConfigMap, the user by IPv4 address or DNS name; without entries whose value is not username=<user>, which the operator rejects.
    """

    server: str
    read_at: str
    platform: str
    nodes: tuple[InventoryNode, ...]
    instances: Mapping[str, str]

    @classmethod
    def from_objects(
        cls, server: str, read_at: str, kubernetes: str, nodes: Iterable[Mapping[str, Any]],
        csi_nodes: Iterable[Mapping[str, Any]], instances: Mapping[str, Any] | None, annotations: Iterable[str],
    ) -> Observation:  # fmt: skip
        """Read core/v1 Nodes, storage.k8s.io/v1 CSINodes and the ConfigMap (None: absent)."""
        registered = {
            csi_node["metadata"]["name"]: [
                str(entry["name"]) for entry in (csi_node.get("spec") or {}).get("drivers") or []
            ]
            for csi_node in csi_nodes
        }
        listed, kept = list(nodes), tuple(annotations)
        platform = detect_platform_of_nodes(kubernetes, (ObservedNode.from_object(node) for node in listed))
        return cls(
            server=server,
            read_at=read_at,
            platform="openshift" if instances is not None else platform,
            nodes=tuple(
                InventoryNode.from_object(node, kept, registered.get(node["metadata"]["name"], ())) for node in listed
            ),
            instances={
                key: user[1]
                for key, value in sorted(((instances or {}).get("data") or {}).items())
                if (user := _USER.fullmatch(str(value)))
            },
        )

    def as_dict(self) -> dict[str, Any]:
        """For a cache: JSON's types alone."""
        return {"schema": SCHEMA, **serialize(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Observation:
        """What as_dict made; ValueError for anything else."""
        check_version(stored.get("schema"), SCHEMA)
        observed: Observation = restore(cls, {name: value for name, value in stored.items() if name != "schema"})
        return observed
