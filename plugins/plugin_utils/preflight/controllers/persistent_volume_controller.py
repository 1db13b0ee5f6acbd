# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first step: is each claim of a pod bound, or will it be. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/controller/volume/persistentvolume/pv_controller.go, and
pkg/scheduler/framework/plugins/volumebinding.
"""

from __future__ import annotations

from datetime import timedelta

from ..facts.sources import SELECTED_NODE, ObservedClaim
from ..facts.storage import ObservedVolume
from ..index import Index
from ..walk.claims import WAITS, Claims, Request, explain_misfit, is_reserved_for
from ..walk.steps import NodeToStatus, PodToStart, StepAnswer, answer_without_claims

_MADE_WITHIN = timedelta(minutes=10)


class PersistentVolumeController:
    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """What becomes of each claim, on nodes."""
        answers: list[StepAnswer] = []
        for request in self._claims.list_requests(pod):
            is_there = not request.missing and not request.is_new
            used = f"claim {request.claim.key}: phase {request.claim.phase}" if is_there else f"used by {pod.workload}"
            statuses = NodeToStatus("bind", nodes, request.title, used, request.volume_key)
            self._check_claim(request, pod, statuses)
            answers += statuses.list_answers()
        return answers + answer_without_claims("bind", pod, nodes)

    def _check_claim(self, request: Request, pod: PodToStart, statuses: NodeToStatus) -> None:
        nodes = statuses.nodes
        if request.missing:
            if "persistentvolumeclaims" not in self._index.unread:
                message = f"{pod.workload} uses the claim, but the claim does not exist"
                statuses.block(nodes, "CSI-V27", message, "create the claim, or correct the workload")
            return
        if request.foreign:
            message = f"claim {request.claim.key} exists and belongs to no pod, so no pod may use it as its own"
            statuses.block(nodes, "CSI-V40", message, "rename the claim's volume in the pod, or delete the claim")
            return
        if request.claim.deleting:
            volume = request.volume
            policy = f" with policy {volume.policy}" if volume is not None and volume.policy else ""
            message = f"it is being deleted{policy}, so neither scheduler nor kubelet starts a pod with it"
            remedy = "before its last pod ends, set persistentVolumeReclaimPolicy of the volume to Retain"
            statuses.block(nodes, "CSI-V24", message, remedy)
        if request.bound:
            self._check_bound_claim(request, statuses)
        elif request.claim.volume:
            self._check_named_volume(request, statuses)
        elif request.volume is None:
            self._check_unbound_claim(request, pod, statuses)

    # Bound claims

    def _check_bound_claim(self, request: Request, statuses: NodeToStatus) -> None:
        claim, volume = request.claim, request.volume
        remedy = claim.choose_remedy(
            "restore the volume from a record, with claimRef.uid of this claim; do not delete the claim"
        )
        if claim.phase == "Lost":
            message = f"the claim is Lost: its volume {claim.volume or '(none named)'} does not exist or belongs to another claim"
            statuses.block(statuses.nodes, "CSI-V23", message, remedy)
        elif volume is None:
            self._refuse_missing_volume(claim, statuses, "CSI-V23", remedy)
        elif volume.claim and (volume.claim, volume.claim_uid) != (claim.key, claim.uid):
            # One without claimRef is bound again (pv_controller.go, syncBoundClaim).
            _refuse_other_claims_volume(claim, volume, statuses)

    def _refuse_missing_volume(self, claim: ObservedClaim, statuses: NodeToStatus, id_: str, remedy: str) -> None:
        if "persistentvolumes" not in self._index.unread:
            statuses.block(statuses.nodes, id_, f"its volume {claim.volume} does not exist", remedy)

    # Claims without a volume

    def _check_named_volume(self, request: Request, statuses: NodeToStatus) -> None:
        """A claim that names its volume itself and is not bound yet."""
        claim, volume = request.claim, request.volume
        if volume is None:
            self._refuse_missing_volume(
                claim, statuses, "CSI-V40", "create the volume, or a claim without spec.volumeName"
            )
        elif is_reserved_for(volume, claim):
            return
        elif volume.claim:
            _refuse_other_claims_volume(claim, volume, statuses)
        elif misfit := _format_error(request, volume):
            message = f"it requests volume {volume.name}, which is {misfit}"
            statuses.block(statuses.nodes, "CSI-V40", message, "create a claim that fits the volume")
        elif claim.narrowed:
            _report_narrowed_claim(claim, statuses)

    def _check_unbound_claim(self, request: Request, pod: PodToStart, statuses: NodeToStatus) -> None:
        """A claim that names no volume and has none."""
        claim = request.claim
        if "storageclasses" in self._index.unread:
            return
        if claim.narrowed:
            _report_narrowed_claim(claim, statuses)
            return
        mode = storage_class.binding_mode if (storage_class := self._claims.find_class(request)) is not None else ""
        if mode not in ("", WAITS, "Immediate"):
            message = f"volumeBindingMode of its StorageClass is {mode}, expected Immediate or WaitForFirstConsumer"
            statuses.doubt(statuses.nodes, "CSI-V41", message, "use a newer release of the collection")
            return
        if self._claims.is_undecided(request):
            message = "a free volume fits it, and whether it takes this one is not evaluated"
            statuses.doubt(statuses.nodes, "CSI-V41", message, "set spec.volumeName in the claim")
            return
        if not self._claims.is_provisioned(request):
            sure, unsure = self._claims.find_free_nodes(request, pod)
            statuses.block(statuses.nodes & ~sure & ~unsure, *self._explain_unprovisioned_claim(request))
            _report_contended_claim(statuses, unsure)
        if not self._claims.is_bound_late(request):
            if self._claims.is_provisioned(request):
                self._report_waiting_claim(request, statuses)
            return
        for volume in self._index.reserved.get(claim.key, ()):
            # The scheduler does not compare its access modes, and waits until it is bound; the controller compares them.
            message = f"volume {volume.name} is reserved for it, and is {_format_error(request, volume)}"
            remedy = f"correct spec.accessModes of one of them, or remove claimRef: kubectl edit pv {volume.name}"
            statuses.doubt(statuses.nodes, "CSI-V41", message, remedy)
        if claim.selected_node in self._index.bit:
            # On success other nodes may reach it. If the node is gone, the external-provisioner asks the scheduler for another one
            # (https://github.com/kubernetes-csi/external-provisioner, pkg/controller/controller.go, prepareProvision).
            message = f"node {claim.selected_node} is selected for it, and its volume is not provisioned yet"
            remedy = f"check the log of its provisioner; to choose again: kubectl -n {claim.namespace} annotate pvc {claim.name} {SELECTED_NODE}-"
            statuses.doubt(statuses.nodes, "CSI-V41", message, remedy)
        if pod.node and not claim.selected_node:
            message = f"StorageClass {request.storage_class} waits for the scheduler, which spec.nodeName bypasses"
            remedy = "replace spec.nodeName by nodeSelector kubernetes.io/hostname"
            statuses.block(statuses.nodes, "CSI-V40", message, remedy)

    def _report_waiting_claim(self, request: Request, statuses: NodeToStatus) -> None:
        """A volume that is made before its pod is placed is there soon, or something keeps it from being made."""
        claim = request.claim
        minutes = self._index.count_minutes(claim.waits_since, _MADE_WITHIN)
        if minutes is None:
            return
        message = f"it has waited {minutes} minutes for StorageClass {request.storage_class} to provision its volume"
        remedy = f"kubectl -n {claim.namespace} describe pvc {claim.name}; check the log of its provisioner"
        statuses.doubt(statuses.nodes, "CSI-V41", message, remedy)

    def _explain_unprovisioned_claim(self, request: Request) -> tuple[str, str, str]:
        if self._claims.find_class(request) is None:
            message = f"its StorageClass {request.storage_class} does not exist"
            if request.claim.storage_class is None and not request.storage_class:
                message = "the claim names no StorageClass, and none is the only default one"
            elif not request.storage_class:
                message = "the claim requests no StorageClass"
            remedy = "create the StorageClass, or a claim that names another one"
        else:
            message = f"its StorageClass {request.storage_class} has no provisioner"
            remedy = "create a PersistentVolume of that class"
        free = [
            volume
            for volume in self._index.snapshot.volumes
            if not volume.claim and volume.storage_class == request.storage_class
        ]
        if free:
            misfits = sorted({_format_error(request, volume) or "not reachable from these nodes" for volume in free})
            message += f", and its free volumes are {' or '.join(misfits)}"
        else:
            message += ", and no free volume fits"
        return "CSI-V26", message, remedy


def _refuse_other_claims_volume(claim: ObservedClaim, volume: ObservedVolume, statuses: NodeToStatus) -> None:
    message = f"volume {volume.name} is {volume.phase or 'taken'}"
    message += f" and belongs to claim {volume.claim or '(none)'}"
    if volume.claim == claim.key:
        message += f" with uid {volume.claim_uid or '(none)'}, expected uid {claim.uid}"
    # The volume of a claim that was bound before is only taken back without any claimRef.
    reference = "null" if claim.phase == "Bound" else '{"uid":null}'
    remedy = f'if nothing else uses the data: kubectl patch pv {volume.name} --type merge -p \'{{"spec":{{"claimRef":{reference}}}}}\''
    if volume.claim != claim.key:
        remedy = "recreate the claim with another volume, or delete the claim that has this one"
    statuses.block(statuses.nodes, "CSI-V40", message, remedy)


def _report_contended_claim(statuses: NodeToStatus, nodes: int) -> None:
    message = "other claims fit its free volumes too, or other pods share it, and another one may take the last one"
    statuses.doubt(
        nodes, "CSI-V41", message, "create the pods one after the other, or set spec.volumeName in each claim"
    )


def _report_narrowed_claim(claim: ObservedClaim, statuses: NodeToStatus) -> None:
    message = f"its spec has {', '.join(claim.narrowed)}, which this report does not evaluate"
    remedy = f"after its pod is created: kubectl -n {claim.namespace} describe pvc {claim.name}"
    statuses.doubt(statuses.nodes, "CSI-V41", message, remedy)


def _format_error(request: Request, volume: ObservedVolume) -> str:
    """Why a volume that is free is none for a claim, empty where it is one."""
    if volume.phase not in ("Available", "") and not volume.deleting:
        return volume.phase
    if volume.storage_class != request.storage_class and not volume.deleting:
        return f"of class {volume.storage_class or '(none)'}"
    return explain_misfit(volume, request.claim)
