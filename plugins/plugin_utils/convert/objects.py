# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a conversion: volumes as they are created, the helper pod, the record's ConfigMap. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..catalog.native import NativeVolume
from ..kube.labels import CONVERSION, MANAGED_BY, MANAGER, PART_OF
from ..verify.nodes import ProofNode
from ..verify.objects import define_reading_pod
from .record import ConversionRecord, Side

PART = "convert"
LOCK = CONVERSION
# On a claim while its volume's policy is restored.
HOLD = "kubewin.io/convert-hold"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
# Where a record stands in its ConfigMap.
KEY = "record.json"

_SERVERS = (
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "managedFields", "selfLink", "finalizers",
)  # fmt: skip
# What Kubernetes, a provisioner or a driver writes about a volume or claim as it was; wrong on another one.
_WRITTEN_FOR_IT = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "kubewin.io/")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def strip_server_fields(thing: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that the API server writes."""
    manifest: dict[str, Any] = copy.deepcopy({key: value for key, value in thing.items() if key != "status"})
    manifest["metadata"] = {key: value for key, value in manifest["metadata"].items() if key not in _SERVERS}
    return manifest


def strip_managed_fields(thing: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = copy.deepcopy(dict(thing))
    copied["metadata"].pop("managedFields", None)
    return copied


def define_native_volume(
    old: Mapping[str, Any], native: NativeVolume, handle: str, storage_class: str
) -> dict[str, Any]:
    """Define the native volume of the same disk."""
    spec = old["spec"]
    definition = strip_server_fields(old)
    metadata = definition["metadata"]
    annotations = _filter_annotations(metadata)
    definition["metadata"] = {
        "name": metadata["name"],
        "labels": metadata.get("labels") or {},
        "annotations": annotations,
    }
    definition["spec"] = {
        "capacity": spec["capacity"],
        "accessModes": list(native.spec["accessModes"]),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": native.source(handle),
        "claimRef": _define_claim_ref(spec["claimRef"]),
    }
    if spec.get("mountOptions"):
        definition["spec"]["mountOptions"] = list(spec["mountOptions"])
    if native.affinity:
        definition["spec"]["nodeAffinity"] = copy.deepcopy(dict(native.affinity))
    return {"apiVersion": "v1", "kind": "PersistentVolume", **definition}


def define_in_tree_volume(old: Mapping[str, Any]) -> dict[str, Any]:
    """Define the in-tree volume again, with policy Retain."""
    definition = strip_server_fields(old)
    definition["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
    definition["spec"]["claimRef"] = _define_claim_ref(old["spec"]["claimRef"])
    annotations = definition["metadata"].setdefault("annotations", {})
    annotations.pop(LOCK, None)
    return {**definition, "apiVersion": "v1", "kind": "PersistentVolume"}


def _filter_annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(value)
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(_WRITTEN_FOR_IT) and key != _LAST_APPLIED
    }


def _define_claim_ref(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Define a claimRef for a claim of that name with any uid."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": reference["namespace"],
        "name": reference["name"],
    }


def define_volume(record: ConversionRecord, side: Side, claim_uid: str) -> dict[str, Any]:
    """Define a side's volume for that claim, with our annotation."""
    definition: dict[str, Any] = copy.deepcopy(record.objects[side])
    definition["metadata"].setdefault("annotations", {})[LOCK] = f"{record.run}/{side}"
    if claim_uid:
        definition["spec"]["claimRef"]["uid"] = claim_uid
    return definition


def define_scratch_volume(record: ConversionRecord, side: Side) -> dict[str, Any]:
    """Define a side's volume under an unused name, for the dry run."""
    definition = define_volume(record, side, "")
    definition["metadata"]["name"] = f"kubewin-convert-{record.run}-{side}"
    definition["spec"]["claimRef"]["name"] = definition["metadata"]["name"]
    return definition


def format_lock(record: ConversionRecord) -> str:
    return f"{record.lock}/{record.generation}"


def parse_lock(thing: Mapping[str, Any]) -> tuple[str, str]:
    """Parse run, and generation or side, from the annotation; empty strings without one."""
    run, dummy, detail = str((thing["metadata"].get("annotations") or {}).get(LOCK, "")).partition("/")
    return run, detail


def format_retention_command(namespace: str, stateful_set: str) -> str:
    """Format the command after which a StatefulSet deletes no claims."""
    policy = '{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Retain","whenDeleted":"Retain"}}}'
    return f"kubectl -n {namespace} patch statefulset {stateful_set} --type=merge -p '{policy}'"


def build_labels(run: str = "") -> dict[str, str]:
    """Build the labels of objects that a run creates for itself."""
    return {MANAGED_BY: MANAGER, PART_OF: PART, **({LOCK: run} if run else {})}


def name_lease(namespace: str, claim: str) -> str:
    return f"kubewin-convert-{hashlib.sha256(f'{namespace}/{claim}'.encode()).hexdigest()[:16]}"


def name_record(run: str) -> str:
    return f"kubewin-convert-{run}"


def name_run(claim_uid: str) -> str:
    """Name the run of a claim. Two records of a claim have the same name, so the second is refused."""
    return hashlib.sha256(claim_uid.encode()).hexdigest()[:16]


def name_helper(run: str) -> str:
    return f"kubewin-convert-{run}"


def define_helper(
    record: ConversionRecord, node: ProofNode, image: str, tolerations: Sequence[Mapping[str, Any]], seconds: int
) -> dict[str, Any]:
    """Define the pod that reads the data, on that node, for so many seconds."""
    metadata = {
        "name": name_helper(record.run),
        "namespace": record.namespace,
        "labels": build_labels(record.run),
        "annotations": {LOCK: format_lock(record)},
    }
    return define_reading_pod(metadata, node, image, tolerations, record.claim, seconds)


def name_on_node(driver: str, handle: str) -> str:
    """Name a CSI volume as in a Node's status."""
    return f"kubernetes.io/csi/{driver}^{handle}"
