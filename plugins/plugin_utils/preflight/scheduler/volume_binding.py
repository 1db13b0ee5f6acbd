# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VolumeBinding filter: where a pod reaches the volumes of its claims, those that it has and those that it will get. Pure.

Also upstream's binder.go, which binds or provisions the volumes of claims that wait for their pod.
"""

from __future__ import annotations

from ...catalog.translation import TranslationError, parse_ebs_id
from ..facts.placement import describe_terms
from ..facts.storage import ObservedVolume
from ..index import Index
from ..walk.claims import Claims, Request
from ..walk.steps import NodeToStatus


class VolumeBinding:
    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims

    def filter_claim(self, request: Request, statuses: NodeToStatus) -> None:
        if request.volume is not None:
            self._filter_by_affinity(request, request.volume, statuses)
        elif request.open and not self._claims.is_bound_late(request):
            self._check_immediate_provisioning(request, statuses)

    def _filter_by_affinity(self, request: Request, volume: ObservedVolume, statuses: NodeToStatus) -> None:
        outside = self._index.all & ~self._claims.match_affinity(volume)
        if not _is_translatable(volume) and (migrated := self._claims.find_migrated_nodes(volume)):
            message = (
                f"{request.volume_key}: volumeID {volume.source.handle} of volume {volume.name} is not an AWS volume ID, "
                "expected vol-... or aws://zone/vol-..."
            )
            # The scheduler gives a pod up at such a node, unless something else keeps the pod off it before.
            remedy = (
                "recreate the PersistentVolume with the volume ID of AWS; until then the scheduler rejects its pods"
            )
            statuses.block(migrated, "CSI-W20", message, remedy)
            statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)
        if outside & statuses.nodes:
            terms = f" ({describe_terms(volume.terms)})" if volume.terms else ""
            message = f"{request.volume_key}: nodeAffinity of volume {volume.name}{terms} does not match the node"
            remedy = "add a node that reaches the volume, or copy the data to another volume"
            if volume.source.field == "local" and not self._claims.match_affinity(volume):
                message = f"{request.volume_key}: volume {volume.name} is a disk of a deleted node"
                remedy = "add the node again with the same name, or restore the data to another volume"
            statuses.block(outside, "CSI-W20", message, remedy)

    def _check_immediate_provisioning(self, request: Request, statuses: NodeToStatus) -> None:
        """A claim whose volume is provisioned before its pod is scheduled, without regard to the pod."""
        storage_class = self._claims.find_class(request)
        if storage_class is None:
            return
        index, allowed = self._index, [part for term in storage_class.allowed or () for part in term]
        keys = index.find_differing_labels(index.all, storage_class.driver, frozenset(part.key for part in allowed))
        # Nodes that do not differ may all be outside of a place that the class allows.
        places = ((part.key, value) for part in allowed for value in part.values)
        keys += tuple(key for key, value in places if statuses.nodes & ~index.find_labelled(key, value))
        if keys:
            message = f"{request.volume_key}: its volume is provisioned in any zone before the pod is scheduled ({', '.join(dict.fromkeys(keys))})"
            remedy = "recreate the claim with a StorageClass that has volumeBindingMode WaitForFirstConsumer"
            statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)


def _is_translatable(volume: ObservedVolume) -> bool:
    """Whether the scheduler can read the volume's handle; it parses only those of AWS."""
    if volume.source.field == "awsElasticBlockStore":
        try:
            parse_ebs_id(volume.source.handle)
        except TranslationError:
            return False
    return True
