# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a cluster in which a volume may be converted, as the API returns them, for tests to spoil one at a time."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import ConversionFacts

Object = dict[str, Any]
PATH = "[ds] dir/x.vmdk"


def volume(source: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": "pv-1",
            "uid": "pv-uid",
            "resourceVersion": "7",
            "labels": {"tier": "data"},
            "annotations": {
                "pv.kubernetes.io/provisioned-by": "kubernetes.io/vsphere-volume",
                "pv.kubernetes.io/migrated-to": "csi.vsphere.vmware.com",
                "team": "shop",
            },
            "finalizers": ["kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"],
            "managedFields": [{"manager": "x"}],
        },
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Filesystem",
            "mountOptions": ["noatime"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "thin",
            "claimRef": {"namespace": "shop", "name": "data-db-0", "uid": "claim-uid", "resourceVersion": "5"},
            **(source or {"vsphereVolume": {"volumePath": PATH, "storagePolicyName": "gold"}}),
            **spec,
        },
        "status": {"phase": "Bound"},
    }


def claim(**metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-db-0",
            "namespace": "shop",
            "uid": "claim-uid",
            "resourceVersion": "9",
            "labels": {"app": "db"},
            "annotations": {"pv.kubernetes.io/bind-completed": "yes", "team": "shop"},
            **metadata,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "thin",
            "volumeName": "pv-1",
            "resources": {"requests": {"storage": "5Gi"}},
        },
        "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}},
    }


def node(name: str = "win-1", kubelet: str = "v1.31.0", drivers: tuple[str, ...] = ("csi.vsphere.vmware.com",)) -> Any:
    found = {
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows", "kubernetes.io/hostname": name}},
        "status": {
            "nodeInfo": {"kubeletVersion": kubelet},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return found, {"metadata": {"name": name}, "spec": {"drivers": [{"name": one} for one in drivers]}}


def stateful_set(**spec: Any) -> Object:
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop", "uid": "set-uid"},
        "spec": {
            "replicas": 2,
            "template": {"spec": {}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "thin"}}],
            **spec,
        },
    }


def pod(owner: Object | None, name: str = "db-0") -> Object:
    owners = [{**owner, "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": owners},
        "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]},
    }


GOOD = ConversionFacts(
    claim=claim(),
    volume=volume(),
    volumes=[volume()],
    pods=[pod({"kind": "StatefulSet", "name": "db", "uid": "set-uid"})],
    sets=[stateful_set()],
    claims=[claim()],
    storage_class={"metadata": {"name": "thin"}},
    nodes=[node()],
    migrations=[{"metadata": {"name": "fcd-1"}, "spec": {"volumepath": PATH, "volumeid": "fcd-1"}}],
)


def facts(**changes: Any) -> ConversionFacts:
    return replace(copy.deepcopy(GOOD), **changes)
