# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads whose template has changed, and the pods that the real controllers make when those that are there go.

Compared are the revision that a pod is made from, and which of its claims the garbage collector has left.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from integration.kube import connect
from integration.oracle_cluster import (
    CLASSES,
    NAMESPACES,
    NODES,
    VOLUMES,
    make_windows_node,
    read_objects,
    run_pods_with_claims,
)
from lab.cluster.api import Api
from lab.handle import Lab, eventually
from situations.recorded_answers import Recording, ReplacedPods

Object = dict[str, Any]
_MARK = "change.test/cluster"
_PLURALS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
}
_ON_DELETE: Object = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}
_STRATEGIES: dict[str, tuple[Object, ...]] = {
    "Deployment": ({"paused": True}, {"strategy": {"type": "Recreate", "rollingUpdate": None}}, {}),
    "StatefulSet": (
        _ON_DELETE, {},
        *({"updateStrategy": {"rollingUpdate": {"partition": partition}}} for partition in (1, 2, 5)),
    ),
    "DaemonSet": (_ON_DELETE, {}),
    "ReplicaSet": ({},),
}  # fmt: skip
# By revision of the template, what its pods ask for.
_REQUESTS = ("100m", "200m")
# Longer than the controllers wait before they look again.
_AT_REST = 3.0


@dataclass
class ChangedWorkload:
    """A workload of a seed, with the nodes and volumes of a namespace of its own."""

    seed: str
    name: str
    kind: str = ""
    nodes: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    workload: Object = field(default_factory=dict)
    strategy: Object = field(default_factory=dict)
    # How often the template changes: 2 is back to the first.
    changes: int = 0
    is_scaled: bool = False
    goes_alone: bool = False

    def __post_init__(self) -> None:
        luck = random.Random(self.seed)
        self.kind = luck.choice(("Deployment", "StatefulSet", "StatefulSet", "DaemonSet", "ReplicaSet"))
        self.strategy = luck.choice(_STRATEGIES[self.kind])
        self.changes, self.goes_alone = luck.choice((0, 1, 1, 1, 2)), luck.random() < 0.4
        self.is_scaled = self.kind == "StatefulSet" and luck.random() < 0.3
        self.nodes = [make_windows_node(f"{self.name}-{number}", {_MARK: self.name}, "4") for number in range(2)]
        self.volumes = [self._make_volume(number) for number in range(24)]
        request = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        whole: Object = {"selector": {"matchLabels": {"app": "main"}}}
        spec: Object = {"nodeSelector": {"kubernetes.io/os": "windows", _MARK: self.name}}
        spec["containers"] = [{"name": "main", "image": "registry.example.com/main:1"}]
        if self.kind == "StatefulSet":
            policy = {key: luck.choice(("Delete", "Retain")) for key in ("whenScaled", "whenDeleted")}
            whole |= {
                "serviceName": "main",
                "podManagementPolicy": "Parallel",
                "persistentVolumeClaimRetentionPolicy": policy,
            }
            if luck.random() < 0.7:
                whole["volumeClaimTemplates"] = [{"metadata": {"name": "disk"}, "spec": request}]
        if "volumeClaimTemplates" not in whole:
            spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": request}}}]
        if self.kind != "DaemonSet":
            # Of several pods with new claims each, the report does not say which one takes the last volume.
            whole["replicas"] = 1 if "volumes" in spec else luck.randint(1, 3)
        whole["template"] = {"metadata": {"labels": {"app": "main"}}, "spec": spec}
        metadata = {"name": "main", "namespace": self.name}
        self.workload = {"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": whole}
        self.set_revision(0)

    @property
    def count(self) -> int:
        """How many pods it asks for."""
        return int(self.workload["spec"].get("replicas", len(self.nodes)))

    @property
    def path(self) -> str:
        """Where the API has the workload."""
        return f"/apis/apps/v1/namespaces/{self.name}/{_PLURALS[self.kind]}"

    def set_revision(self, number: int) -> None:
        """Make the template that of a revision."""
        [container] = self.workload["spec"]["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": _REQUESTS[number % 2]}}

    def _make_volume(self, number: int) -> Object:
        name = self.nodes[number % len(self.nodes)]["metadata"]["name"]
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}
        spec = {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": self.name,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "C:\\disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }  # fmt: skip
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.name}-v{number}"},
            "spec": spec,
        }


class RevisionOracle:
    """Changed workloads in one lab, and what is compared of them in recordings."""

    def __init__(self, lab: Lab) -> None:
        self._api, self._client = lab.api, connect(lab.state.kubeconfigs["admin"])
        self._own = f"rev{uuid.uuid4().hex[:6]}"
        self.recordings: list[Recording] = []

    def run(self, seeds: Sequence[str]) -> None:
        """One workload for each seed."""
        changing = [
            ChangingWorkload(self._api, ChangedWorkload(seed, f"{self._own}-{uuid.uuid4().hex[:8]}")) for seed in seeds
        ]
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(ChangingWorkload.create, changing))
                snapshot = take(self._client)
                objects = read_objects(self._api, self._own)
                answers = tuple(pool.map(ChangingWorkload.replace_pods, changing))
        finally:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(ChangingWorkload.remove, changing))
        taken_at, version = snapshot.taken_at.isoformat(), snapshot.cluster.kubernetes
        self.recordings.append(Recording(taken_at, version, objects, replacements=answers))


class ChangingWorkload:
    """A workload on the API server."""

    def __init__(self, api: Api, changed: ChangedWorkload) -> None:
        self._api, self._changed = api, changed
        self._space = f"{NAMESPACES}/{changed.name}"

    def create(self) -> None:
        """Create it, and let its template change in its own way."""
        changed = self._changed
        for node in changed.nodes:
            self._api.post(NODES, node)
        metadata = {"name": changed.name}
        self._api.post(CLASSES, {**_CLASS, "metadata": metadata})
        for volume in changed.volumes:
            self._api.post(VOLUMES, volume)
        self._api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        eventually(lambda: self._api.ok(f"{self._space}/serviceaccounts/default"), "the namespace can hold pods")
        self._api.post(changed.path, changed.workload)
        self._rest(changed.count)
        for number in range(changed.changes):
            changed.set_revision(number + 1)
            template = changed.workload["spec"]["template"]
            self._api.patch(f"{changed.path}/main", {"spec": {**changed.strategy, "template": template}})
            self._rest(changed.count)
        if changed.is_scaled:
            self._scale(0)

    def replace_pods(self) -> ReplacedPods:
        """Let its pods go, and return those that come."""
        changed = self._changed
        before = {item["metadata"]["uid"] for item in (*self._list("pods"), *self._list("persistentvolumeclaims"))}
        if changed.is_scaled:
            self._scale(changed.count)
        leaving = self._list("pods")[: 1 if changed.goes_alone else None] if not changed.is_scaled else []
        for pod in leaving:
            self._api.gone(f"{self._space}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
        self._rest(changed.count)
        made = [pod for pod in self._list("pods") if pod["metadata"]["uid"] not in before]
        kept = [
            f"{changed.name}/{item['metadata']['name']}"
            for item in self._list("persistentvolumeclaims")
            if item["metadata"]["uid"] in before
        ]
        return ReplacedPods(changed.seed, f"{changed.kind} {changed.name}/main", tuple(made), tuple(kept))

    def remove(self) -> None:
        """Take everything away."""
        self._api.gone(self._space)
        for path, items in ((NODES, self._changed.nodes), (VOLUMES, self._changed.volumes)):
            for item in items:
                self._api.gone(f"{path}/{item['metadata']['name']}")
        self._api.gone(f"{CLASSES}/{self._changed.name}")

    def _scale(self, replicas: int) -> None:
        self._api.patch(f"{self._changed.path}/main", {"spec": {"replicas": replicas}})
        self._rest(replicas)

    def _list(self, plural: str) -> list[Object]:
        return self._api.items(f"{self._space}/{plural}")

    def _rest(self, count: int) -> None:
        """Wait until so many pods run, and neither they nor claims have changed for long enough."""
        seen: Any = None
        since = time.monotonic()

        def has_rested() -> bool:
            nonlocal seen, since
            pods = self._list("pods")
            run_pods_with_claims(self._api, pods)
            state = [
                (item["metadata"]["uid"], item["status"].get("phase"), "deletionTimestamp" in item["metadata"])
                for item in (*pods, *self._list("persistentvolumeclaims"))
            ]
            if state != seen:
                seen, since = state, time.monotonic()
            is_running = len(pods) == count and all(pod["status"]["phase"] == "Running" for pod in pods)
            return is_running and time.monotonic() - since > _AT_REST

        eventually(has_rested, f"workload {self._changed.seed} comes to rest")


_CLASS = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
    "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
}  # fmt: skip
