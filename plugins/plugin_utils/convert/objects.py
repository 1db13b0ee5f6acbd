# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a conversion: volumes and claims as they are created, the helper pod, the record's ConfigMap. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.native import Native
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record, Side
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.pod import idle_pod

PART = "convert"
# On a claim: run and generation of its conversion. On a volume: the run and the side, old or new.
LOCK = "kubewin.io/convert"
# On a claim while its volume's policy is restored.
HOLD = "kubewin.io/convert-hold"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MOUNT = "C:\\kubewin"
CONTAINER = "convert"
# Where a record stands in its ConfigMap.
KEY = "record.json"

_SERVERS = (
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "managedFields", "selfLink", "finalizers",
)  # fmt: skip
# What Kubernetes, a provisioner or a driver writes about a volume or claim as it was; wrong on another one.
_WRITTEN_FOR_IT = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "kubewin.io/")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def bare(thing: Mapping[str, Any]) -> dict[str, Any]:
    """An object as a manifest: without what only the server writes."""
    found: dict[str, Any] = copy.deepcopy({key: value for key, value in thing.items() if key != "status"})
    found["metadata"] = {key: value for key, value in found["metadata"].items() if key not in _SERVERS}
    return found


def without_noise(thing: Mapping[str, Any]) -> dict[str, Any]:
    """For the record: everything but managedFields."""
    found: dict[str, Any] = copy.deepcopy(dict(thing))
    found["metadata"].pop("managedFields", None)
    return found


def new_volume(old: Mapping[str, Any], found: Native, handle: str, name: str, storage_class: str) -> dict[str, Any]:
    """The native volume of the same disk."""
    spec = old["spec"]
    made = bare(old)
    metadata = made["metadata"]
    annotations = _own_annotations(metadata)
    made["metadata"] = {"name": name, "labels": metadata.get("labels") or {}, "annotations": annotations}
    made["spec"] = {
        "capacity": spec["capacity"],
        "accessModes": list(found.spec["accessModes"]),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": found.source(handle),
        "claimRef": _claim_ref(spec["claimRef"]),
    }
    if spec.get("mountOptions"):
        made["spec"]["mountOptions"] = list(spec["mountOptions"])
    if found.affinity:
        made["spec"]["nodeAffinity"] = copy.deepcopy(dict(found.affinity))
    return {"apiVersion": "v1", "kind": "PersistentVolume", **made}


def old_volume(old: Mapping[str, Any]) -> dict[str, Any]:
    """The in-tree volume again, with policy Retain."""
    made = bare(old)
    made["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
    made["spec"]["claimRef"] = _claim_ref(old["spec"]["claimRef"])
    annotations = made["metadata"].setdefault("annotations", {})
    annotations.pop(LOCK, None)
    return {**made, "apiVersion": "v1", "kind": "PersistentVolume"}


def claim(old: Mapping[str, Any], volume: str, storage_class: str) -> dict[str, Any]:
    """A claim of the same name for that volume: labels, own annotations and owners as before, no data source."""
    metadata, spec = old["metadata"], old["spec"]
    made = {"name": metadata["name"], "namespace": metadata["namespace"], "annotations": _own_annotations(metadata)}
    for key in ("labels", "ownerReferences"):
        if metadata.get(key):
            made[key] = copy.deepcopy(metadata[key])
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": made,
        "spec": {
            "accessModes": list(spec["accessModes"]),
            "resources": copy.deepcopy(spec["resources"]),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "storageClassName": storage_class,
            "volumeName": volume,
        },
    }


def _own_annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(value)
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(_WRITTEN_FOR_IT) and key != _LAST_APPLIED
    }


def _claim_ref(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Reserved for that claim, whichever uid it has."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": reference["namespace"],
        "name": reference["name"],
    }


def to_create(record: Record, side: Side, claim_uid: str) -> dict[str, Any]:
    """A side's volume, marked as ours, for that claim."""
    made: dict[str, Any] = copy.deepcopy(record.objects[side])
    made["metadata"].setdefault("annotations", {})[LOCK] = f"{record.run}/{side}"
    if claim_uid:
        made["spec"]["claimRef"]["uid"] = claim_uid
    return made


def scratch(record: Record, side: Side) -> dict[str, Any]:
    """A side's volume under an unused name, for the server's dry run."""
    made = to_create(record, side, "")
    made["metadata"]["name"] = f"kubewin-convert-{record.run}-{side}"
    made["spec"]["claimRef"]["name"] = made["metadata"]["name"]
    return made


def claim_to_create(record: Record, side: Side) -> dict[str, Any]:
    """A side's claim, locked."""
    made: dict[str, Any] = copy.deepcopy(record.objects[f"{side}_claim"])
    made["metadata"].setdefault("annotations", {})[LOCK] = lock(record)
    return made


def lock(record: Record) -> str:
    """The lock's text on a claim."""
    return f"{record.lock}/{record.generation}"


def locked_by(thing: Mapping[str, Any]) -> tuple[str, str]:
    """Run, and generation or side, of the annotation; empty strings without one."""
    run, dummy, rest = str((thing["metadata"].get("annotations") or {}).get(LOCK, "")).partition("/")
    return run, rest


def keep_claims(namespace: str, stateful_set: str) -> str:
    """The command by which a StatefulSet deletes no claims any more."""
    policy = '{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Retain","whenDeleted":"Retain"}}}'
    return f"kubectl -n {namespace} patch statefulset {stateful_set} --type=merge -p '{policy}'"


def labels(run: str = "") -> dict[str, str]:
    """On what a run makes for itself."""
    return {MANAGED_BY: MANAGER, PART_OF: PART, **({LOCK: run} if run else {})}


def lease_name(namespace: str, claim: str) -> str:
    """Name of the Lease of a claim's conversions."""
    return f"kubewin-convert-{hashlib.sha256(f'{namespace}/{claim}'.encode()).hexdigest()[:16]}"


def record_name(run: str) -> str:
    """Name of a record's ConfigMap, and of its file without the ending."""
    return f"kubewin-convert-{run}"


def run_name(claim_uid: str) -> str:
    """One run a claim: two records of the same claim would have the same name, and the second is refused."""
    return hashlib.sha256(claim_uid.encode()).hexdigest()[:16]


def list_fenced_objects(record: Record) -> list[tuple[Kind, str, str | None]]:
    """Kind, name and namespace of what a conversion updates or deletes.

    Its record is bound to the version that was read, and its helper pod names the generation of its run.
    """
    return [
        (kinds.PERSISTENT_VOLUME_CLAIM, record.claim, record.namespace),
        *((kinds.PERSISTENT_VOLUME, name, None) for name in dict.fromkeys((record.old.name, record.new.name))),
        *((kinds.SCALABLE[one.kind], one.name, one.namespace) for one in record.workloads),
    ]


def helper_name(run: str) -> str:
    """Name of the pod that reads the data."""
    return f"kubewin-convert-{run}"


def helper(
    record: Record, node: str, image: str, tolerations: Sequence[Mapping[str, Any]], seconds: int
) -> dict[str, Any]:
    """The pod that reads the data, on that node and no other, for so many seconds. It cannot write."""
    metadata = {
        "name": helper_name(record.run),
        "namespace": record.namespace,
        "labels": labels(record.run),
        "annotations": {LOCK: lock(record)},
    }
    return idle_pod(
        metadata, node, image, tolerations, record.claim,
        container=CONTAINER, mount=MOUNT, read_only=True, restartPolicy="Never", activeDeadlineSeconds=seconds,
    )  # fmt: skip


def on_node(driver: str, handle: str) -> str:
    """A CSI volume in a Node's status."""
    return f"kubernetes.io/csi/{driver}^{handle}"
