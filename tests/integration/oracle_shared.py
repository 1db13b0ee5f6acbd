# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that a whole API server has, drawn for a group of clusters: default StorageClasses, a global PriorityClass, CSIDrivers.

One server has one group of them at a time, as servers of their own would.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from integration.oracle_cluster import CLASSES
from lab.cluster.api import Api
from lab.handle import eventually
from situations.random_clusters import DRIVER

Object = dict[str, Any]
GROUPS = 3
_PRIORITIES, _DRIVERS = "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/storage.k8s.io/v1/csidrivers"
_NAMESPACE = "/api/v1/namespaces/default"
_IS_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


class SharedObjects:
    """What one server has of one seed, group by group: none, one and two default classes come in some order."""

    def __init__(self, api: Api, seed: str) -> None:
        self._api, self._seed = api, seed
        self._created: list[str] = []

    def replace(self, group: int) -> None:
        """Delete what another group had, create what this one has, and wait until admission has noticed both."""
        self.delete()
        luck = random.Random(f"{self._seed} group {group % GROUPS}")
        count = random.Random(f"{self._seed} defaults").sample(range(3), 3)[group % GROUPS]
        classes = [_draw_class(luck, number) for number in range(count)]
        priorities = [_draw_priority_class(luck)] if luck.random() < 0.6 else []
        drivers = _draw_drivers(luck)
        for path, items in ((CLASSES, classes), (_PRIORITIES, priorities), (_DRIVERS, drivers)):
            for item in items:
                self._api.post(path, item)
                self._created.append(f"{path}/{item['metadata']['name']}")
        self._wait_for_admission({item["metadata"]["name"] for item in classes}, priorities)
        print(f"seed {self._seed}, group {group % GROUPS}: {_describe(classes, priorities, drivers)}", flush=True)

    def delete(self) -> None:
        """Take what the last group had away."""
        for path in self._created:
            self._api.gone(path)
        self._created.clear()

    def _wait_for_admission(self, classes: set[str | None], priorities: list[Object]) -> None:
        metadata = {"name": "probe"}
        request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": request}
        # The admission plugin for ServiceAccounts would reject a pod while the namespace is new.
        spec = {"containers": [{"name": "main", "image": "x"}], "automountServiceAccountToken": False}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        default = {item["value"] for item in priorities} or {0}

        def has_noticed() -> bool:
            claimed = self._api.post(f"{_NAMESPACE}/persistentvolumeclaims?dryRun=All", claim)["spec"]
            prioritised = self._api.post(f"{_NAMESPACE}/pods?dryRun=All", pod)["spec"]
            return claimed.get("storageClassName") in (classes or {None}) and prioritised["priority"] in default

        eventually(lambda: self._api.ok(f"{_NAMESPACE}/serviceaccounts/default"), "the namespace can hold pods")
        eventually(has_noticed, "admission notices the classes of the group")


def _draw_class(luck: random.Random, number: int) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": f"default-{number}", "annotations": _IS_DEFAULT},
        "provisioner": luck.choice((DRIVER, "kubernetes.io/no-provisioner", "kubernetes.io/no-provisioner")),
        "volumeBindingMode": "WaitForFirstConsumer" if luck.random() < 0.8 else "Immediate",
    }  # fmt: skip


def _draw_priority_class(luck: random.Random) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "default"},
        "value": luck.choice((-10, 10, 500, 2000)), "globalDefault": True,
        "preemptionPolicy": luck.choice(("Never", "PreemptLowerPriority")),
    }  # fmt: skip


def _draw_drivers(luck: random.Random) -> list[Object]:
    items = []
    for name in (DRIVER, "ebs.csi.aws.com"):
        if luck.random() < 0.3:
            continue
        spec = {
            "attachRequired": luck.random() < 0.6,
            "podInfoOnMount": luck.random() < 0.5,
            "storageCapacity": luck.random() < 0.3,
            "fsGroupPolicy": luck.choice(("None", "File", "ReadWriteOnceWithFSType")),
        }
        metadata = {"name": name}
        items.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": metadata, "spec": spec})
    return items


def _describe(classes: list[Object], priorities: list[Object], drivers: list[Object]) -> str:
    parts = [f"default class {item['provisioner']} {item['volumeBindingMode']}" for item in classes]
    parts += [f"default priority {item['value']} {item['preemptionPolicy']}" for item in priorities]
    parts += [f"CSIDriver {item['metadata']['name']} {item['spec']}" for item in drivers]
    return "; ".join(parts) or "nothing"


def find_default_class(api: Api) -> str:
    """The name of a default class, empty where there is none."""
    classes = api.items(CLASSES)
    names = (item["metadata"]["name"] for item in classes if item["metadata"].get("annotations") == _IS_DEFAULT)
    return max(names, default="")


def leave_classes_out(luck: random.Random, claims: Iterator[Object], volumes: list[Object], default: str) -> None:
    """Let some claims of a cluster ask for no class, and volumes be of the default class, or of none where there is none.

    claims and volumes are their specs.
    """
    if luck.random() < 0.6:
        return
    for spec in claims:
        if luck.random() < 0.7:
            spec.pop("storageClassName", None)
    for spec in volumes:
        if luck.random() < 0.6:
            spec["storageClassName"] = default
