# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CSINodes. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class DriverEntry:
    """A driver in a CSINode. limit: most volumes, None when it sets none."""

    name: str
    node_id: str
    topology_keys: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedCsiNode:
    """A CSINode. migrated: in-tree plugins for which the kubelet uses CSI, None if it does not report them."""

    name: str
    drivers: tuple[DriverEntry, ...] = ()
    migrated: tuple[str, ...] | None = None

    @classmethod
    def from_object(cls, csi_node: Mapping[str, Any]) -> ObservedCsiNode:
        """Read a storage.k8s.io/v1 CSINode."""
        metadata = csi_node["metadata"]
        annotation = (metadata.get("annotations") or {}).get(MIGRATED_PLUGINS)
        return cls(
            name=str(metadata["name"]),
            drivers=tuple(
                DriverEntry(
                    sys.intern(str(entry.get("name", ""))),
                    str(entry.get("nodeID", "")),
                    tuple(entry.get("topologyKeys") or ()),
                    (entry.get("allocatable") or {}).get("count"),
                )
                for entry in (csi_node.get("spec") or {}).get("drivers") or ()
            ),
            migrated=None
            if annotation is None
            else tuple(part.strip() for part in annotation.split(",") if part.strip()),
        )

    def find_entry(self, driver: str) -> DriverEntry | None:
        """What it says of a driver, None when it does not name it."""
        return next((entry for entry in self.drivers if entry.name == driver), None)
