# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VolumeRestrictions filter: volumes that pods do not share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ...base.grouped import group_values
from ..facts.workloads import ObservedPod
from ..index import Index
from ..scope import find_root, key_templates
from ..walk.claims import Request
from ..walk.steps import NodeToStatus, PodToStart

ALONE = "ReadWriteOncePod"
# Volumes that a pod names itself and that two pods on a node may not share (volumerestrictions, isVolumeConflict).
_ALONE = ("awsElasticBlockStore", "gcePersistentDisk", "rbd", "iscsi")


class VolumeRestrictions:
    def __init__(self, index: Index) -> None:
        self._index, self._templates = index, key_templates(index.snapshot.templates)

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Note nodes with a pod that has a disk which this pod names itself."""
        sources = (inline.source for inline in pod.inline)
        own_disks = {(source.field, source.handle) for source in sources if source.field in _ALONE}
        for other_pod in self._index.snapshot.pods if own_disks else ():
            nodes = self._index.bit.get(other_pod.node, 0) & statuses.nodes
            disks = {(inline.source.field, inline.source.handle) for inline in other_pod.volumes.inline}
            if nodes and not other_pod.finished and not own_disks.isdisjoint(disks):
                message = f"pod {other_pod.key} on {other_pod.node} has a volume that may be the same disk"
                statuses.doubt(nodes, "CSI-W21", message, "use claims for these volumes")

    @cached_property
    def _pods_by_claim(self) -> Mapping[str, list[ObservedPod]]:
        """By claim, the pods on nodes that have it."""
        at_work = (pod for pod in self._index.snapshot.pods if pod.node and not pod.finished)
        return group_values((f"{pod.namespace}/{name}", pod) for pod in at_work for name in pod.volumes.claims)

    @cached_property
    def _workloads_by_claim(self) -> Mapping[str, Mapping[str, None]]:
        """By claim, what makes pods that name it."""
        templates = (template for template in self._index.snapshot.templates if not template.owner and template.runs)
        pairs = group_values(
            (f"{template.namespace}/{name}", template.key) for template in templates for name in template.volumes.claims
        )
        return {claim: dict.fromkeys(keys) for claim, keys in pairs.items()}

    def filter_claim(self, request: Request, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block a claim with ReadWriteOncePod that another pod uses."""
        claim = request.claim
        if ALONE not in claim.access_modes or request.is_new:
            return
        if user := self._find_other_user(claim.key, pod):
            message = f"its access mode is {ALONE}, and {user}"
            remedy = "give each pod a claim of its own, or recreate the claim with ReadWriteOnce"
            statuses.block(statuses.nodes, "CSI-V42", message, remedy, object_name=request.title)
        elif pod.surges:
            message = f"its access mode is {ALONE}, and a rollout of {pod.workload} starts the new pod before the old one ends"
            remedy = "set the strategy of the Deployment to Recreate, or maxSurge to 0"
            statuses.doubt(statuses.nodes, "CSI-V43", message, remedy, object_name=request.title)

    def _find_other_user(self, claim: str, pod: PodToStart) -> str:
        """What else uses a claim of a pod, empty for nothing."""
        if pod.count > 1 or (claim in pod.shared and self._has_several_pods(pod)):
            return f"{pod.count if pod.count > 1 else 'several'} pods of {pod.workload} share it"
        users = self._pods_by_claim.get(claim, ())
        for other_pod in users:
            if not self._is_replaced(other_pod, pod):
                return f"pod {other_pod.key} on {other_pod.node} uses it"
        named = self._workloads_by_claim.get(claim, {})
        other_key = next((name for name in named if name != pod.workload), "")
        return f"{other_key} also uses it" if other_key and pod.workload in named and not users else ""

    def _has_several_pods(self, pod: PodToStart) -> bool:
        """Whether a workload with a pod on each node, or with ordinals, has more than one."""
        nodes = self._index.find_fitting(pod.placement) & self._index.windows
        return pod.kind != "DaemonSet" or bool(nodes & (nodes - 1))

    def _is_replaced(self, other_pod: ObservedPod, pod: PodToStart) -> bool:
        """Whether a pod on a node is this one, or goes before this one comes."""
        if (other_pod.namespace, other_pod.name) == (pod.namespace, pod.name):
            return True
        kind, namespace, name = find_root(other_pod, self._templates)
        return f"{kind} {namespace}/{name}" == pod.workload
