# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VolumeZone filter: labels of zone and region that volumes carry. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog.translation import REGIONS, ZONES
from ..index import Index, unite
from ..walk.claims import Request
from ..walk.steps import NodeToStatus, PodToStart


class VolumeZone:
    def __init__(self, index: Index) -> None:
        self._index = index

    def filter_claim(self, request: Request, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block nodes whose labels are not those of the volume."""
        volume = request.volume
        if volume is not None and volume.places and not _is_ephemeral(request, pod):
            labels = ", ".join(f"{key}={value}" for key, value in volume.places)
            message = f"{request.volume_key}: labels {labels} of volume {volume.name} do not match the node's labels"
            remedy = "add a node in the volume's zone, or correct the labels"
            statuses.block(self._find_nodes_outside(volume.places), "CSI-W20", message, remedy)

    def _find_nodes_outside(self, places: Iterable[tuple[str, str]]) -> int:
        """Nodes with any label of zone or region, but those that a volume needs; a node's newer label answers for the volume's older one."""
        index = self._index
        nodes = index.all
        for key, text in places:
            values = {part.strip() for part in text.split("__")}
            if "" in values:
                # The scheduler passes over a label that it cannot read.
                continue
            newer = ZONES[0] if key in ZONES else REGIONS[0]
            matching, newest = (unite(index.find_labelled(name, value) for value in values) for name in (key, newer))
            nodes &= matching | (newest & ~index.find_nodes_with_label(key))
        return unite(map(index.find_nodes_with_label, (*ZONES, *REGIONS))) & ~nodes


def _is_ephemeral(request: Request, pod: PodToStart) -> bool:
    """Whether it is a generic ephemeral volume, whose zone labels the scheduler does not compare."""
    if request.is_new and pod.kind != "StatefulSet":
        return True
    return bool(request.claim.pod) and request.claim.pod == pod.name
