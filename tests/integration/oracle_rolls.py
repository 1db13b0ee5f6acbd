# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random clusters whose nodes are drained one after the other, by real evictions, controllers and the real scheduler.

KWOK runs the pods: that a pod on a node starts is no proof.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Roll
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
from lab.cluster.api import Api, ApiError
from lab.cluster.workload import HOLD_DELETE
from lab.handle import Lab, eventually
from situations.recorded_answers import Recording, RolledCluster, explain_roll_error, predict_roll
from situations.smaller import Cut, smallest

Object = dict[str, Any]
MARK, HOST, ZONE = "roll.test/cluster", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Longer than the scheduler and the disruption controller wait before they look again.
AT_REST = 15.0
_PLURALS = {
    "Deployment": "deployments", "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims", "Job": "jobs",
}  # fmt: skip
# "once": ReadWriteOncePod. "late": a volume is chosen when the first pod is scheduled. "shared": two Deployments name the claim.
_STORAGE = ("", "", "", "node", "zone", "zone", "once", "once", "late", "late", "shared", "ephemeral")


@dataclass
class RandomRoll:
    """A few nodes and Deployments, made by a seed. name: what the names of nodes and volumes begin with."""

    seed: str
    name: str
    nodes: list[Object] = field(default_factory=list)
    workloads: list[Object] = field(default_factory=list)
    budgets: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)

    @classmethod
    def draw(cls, seed: str, prefix: str, job_alone: bool = False) -> RandomRoll:
        """The cluster of a seed. job_alone: it has a Job and nothing else that could stop a roll."""
        luck = random.Random(seed)
        cluster = cls(seed, f"{prefix}-{uuid.uuid4().hex[:8]}")
        for number in range(luck.randint(2, 4)):
            cpu, labels = luck.choice(["2", "3", "4"]), {MARK: cluster.name, ZONE: luck.choice("ab")}
            cluster.nodes.append(make_windows_node(f"{cluster.name}-{number}", labels, cpu))
        for number in range(0 if job_alone else luck.randint(1, 4)):
            cluster._draw_workload(luck, f"app-{number}")
        # Drawn apart, so that a seed makes the workloads that it made before.
        luck = random.Random(f"{seed} storage")
        for workload in cluster.workloads:
            cluster._draw_storage(luck, workload)
        luck = random.Random(f"{seed} jobs")
        if job_alone or luck.random() < 0.5:
            cluster._draw_job(luck)
        return cluster

    def _draw_workload(self, luck: random.Random, name: str) -> None:
        labels, replicas = {"app": name}, luck.randint(1, 3)
        selector = {"matchLabels": labels}
        requests = {"cpu": luck.choice(["200m", "500m", "1", "1500m"])}
        main = {"name": "main", "image": "registry.example.com/main:1", "resources": {"requests": requests}}
        spec: Object = {"nodeSelector": {MARK: self.name}, "containers": [main]}
        if luck.random() < 0.25:
            term = {"topologyKey": HOST, "labelSelector": selector}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif luck.random() < 0.25:
            constraint = {"topologyKey": luck.choice([HOST, ZONE]), "maxSkew": 1}
            spec["topologySpreadConstraints"] = [
                {**constraint, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            ]
        template = {"metadata": {"labels": labels}, "spec": spec}
        parts = {"replicas": replicas, "selector": selector, "template": template}
        self.workloads.append(_make("apps/v1", "Deployment", name, parts))
        if luck.random() < 0.5:
            limit = luck.choice([{"maxUnavailable": 1}, {"minAvailable": luck.randint(0, replicas)}])
            self.budgets.append(_make("policy/v1", "PodDisruptionBudget", name, {"selector": selector, **limit}))

    def _draw_job(self, luck: random.Random) -> None:
        """A Job whose evicted pods come back late, so they request nothing that others could take meanwhile."""
        main = {"name": "main", "image": "registry.example.com/main:1"}
        spec = {"nodeSelector": {MARK: self.name}, "containers": [main], "restartPolicy": "Never"}
        # The Job controller counts a pod before it ends.
        template = {"metadata": {"annotations": {HOLD_DELETE: "true"}}, "spec": spec}
        parts: Object = {
            "parallelism": luck.randint(1, 2),
            "backoffLimit": luck.choice((0, 1, 2, 6)),
            "template": template,
        }
        action = luck.choice((None, None, "Ignore", "Count"))
        if action is not None:
            condition = {"type": "DisruptionTarget", "status": "True"}
            parts["podFailurePolicy"] = {"rules": [{"action": action, "onPodConditions": [condition]}]}
        self.workloads.append(_make("batch/v1", "Job", "job", parts))

    def _draw_storage(self, luck: random.Random, workload: Object) -> None:
        """Give the pods of a workload a volume."""
        kind, name = luck.choice(_STORAGE), workload["metadata"]["name"]
        mode = "ReadWriteOncePod" if kind == "once" else "ReadWriteOnce"
        request: Object = {"accessModes": [mode], "storageClassName": self.name}
        request["resources"] = {"requests": {"storage": "1Gi"}}
        spec = workload["spec"]["template"]["spec"]
        if not kind:
            return
        if kind == "ephemeral":
            spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": request}}}]
            for _number in range(luck.randint(1, 8)):
                self._draw_volume(luck, request, luck.choice((HOST, ZONE)))
            return
        if kind == "shared" and self.claims:
            name = luck.choice(self.claims)["metadata"]["name"]
        else:
            volumes = [
                self._draw_volume(luck, request, HOST if kind == "node" else luck.choice((HOST, ZONE, ZONE)))
                for _number in range(luck.randint(1, 3) if kind == "late" else 1)
            ]
            chosen = {} if kind == "late" else {"volumeName": volumes[0]}
            self.claims.append(_make("v1", "PersistentVolumeClaim", name, request | chosen))
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        if luck.random() < 0.7:
            workload["spec"]["replicas"] = 1

    def _draw_volume(self, luck: random.Random, request: Object, key: str) -> str:
        """A volume that nodes reach by a label; returns its name."""
        value = luck.choice(self.nodes)["metadata"]["labels"][key]
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        spec = {
            "capacity": {"storage": "1Gi"}, "accessModes": request["accessModes"], "storageClassName": self.name,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "C:\\disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }  # fmt: skip
        self.volumes.append(_make("v1", "PersistentVolume", f"{self.name}-v{len(self.volumes)}", spec))
        return str(self.volumes[-1]["metadata"]["name"])

    @property
    def storage_class(self) -> Object:
        """The class of its volumes."""
        item = _make("storage.k8s.io/v1", "StorageClass", self.name, {})
        del item["spec"]
        return item | {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(sorted(node["metadata"]["name"] for node in self.nodes))

    def list_cuts(self) -> Iterator[Cut]:
        """What may be left out."""
        for part in ("nodes", "workloads", "budgets", "volumes", "claims"):
            for number, item in enumerate(getattr(self, part)):
                yield part, number, ()
                if part == "workloads":
                    template = ("spec", "template", "spec")
                    for key in ("affinity", "topologySpreadConstraints", "volumes"):
                        if key in item["spec"]["template"]["spec"]:
                            yield part, number, (*template, key)

    def __str__(self) -> str:
        room = {node["metadata"]["name"]: node["status"]["allocatable"]["cpu"] for node in self.nodes}
        zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in self.nodes}
        shown = {"cpu": room, "zones": zones, "workloads": self.workloads, "budgets": self.budgets}
        shown |= {"volumes": self.volumes, "claims": self.claims}
        return yaml.safe_dump(shown, sort_keys=False)


def _make(version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


class RollingCluster:
    """A cluster in a lab that has others too."""

    def __init__(self, api: Api, cluster: RandomRoll) -> None:
        self._api, self.cluster = api, cluster
        self._space = f"{NAMESPACES}/{cluster.name}"

    def create(self) -> None:
        for node in self.cluster.nodes:
            self._api.post(NODES, node)
        self._api.post(CLASSES, self.cluster.storage_class)
        for volume in self.cluster.volumes:
            self._api.post(VOLUMES, volume)
        metadata = {"name": self.cluster.name}
        self._api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        account = f"{self._space}/serviceaccounts/default"
        eventually(lambda: self._api.ok(account), "the namespace can hold pods")
        for item in (*self.cluster.claims, *self.cluster.workloads, *self.cluster.budgets):
            version = item["apiVersion"]
            root = "/api/v1" if version == "v1" else f"/apis/{version}"
            path = f"{root}/namespaces/{self.cluster.name}/{_PLURALS[item['kind']]}"
            self._api.post(path, item)
        self._rest()

    def _list_pods(self) -> list[Object]:
        return self._api.items(f"{self._space}/pods")

    def _rest(self) -> None:
        """Wait until pods and budgets have not changed for long enough."""
        seen: Any = None
        since = time.monotonic()

        def has_rested() -> bool:
            nonlocal seen, since
            budgets = self._api.items(f"/apis/policy/v1/namespaces/{self.cluster.name}/poddisruptionbudgets")
            pods = self._list_pods()
            run_pods_with_claims(self._api, pods)
            state = [_describe(pod) for pod in pods], [budget.get("status") for budget in budgets]
            if state != seen:
                seen, since = state, time.monotonic()
            settled = all(node and phase == "Running" for _name, node, phase, _deleting in state[0])
            return time.monotonic() - since > (2.0 if settled else AT_REST)

        eventually(has_rested, f"cluster {self.cluster.seed} comes to rest")

    def roll(self) -> str:
        """Drain node by node; returns the node at which that stops, empty when it finishes."""
        for node in self.cluster.node_names:
            self._api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
            drained = self._drain(node)
            self._api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": False}})
            self._rest()
            # A pod of a Job comes back when its backoff ends, which may be now.
            placed = all(pod["spec"].get("nodeName") or _is_of_job(pod) for pod in self._list_pods())
            if not drained or not placed or self._has_failed_job():
                return node
        return ""

    def _has_failed_job(self) -> bool:
        jobs = self._api.items(f"/apis/batch/v1/namespaces/{self.cluster.name}/jobs")
        conditions = [entry["type"] for job in jobs for entry in job["status"].get("conditions") or ()]
        return "FailureTarget" in conditions or "Failed" in conditions

    def _end_pods_of_jobs(self, pods: Sequence[Object]) -> None:
        """As a kubelet, which ends the containers of a pod that is deleted."""
        for pod in pods:
            metadata, phase = pod["metadata"], pod["status"]["phase"]
            if _is_of_job(pod) and "deletionTimestamp" in metadata and phase != "Failed":
                with suppress(ApiError):
                    self._api.patch(f"{self._space}/pods/{metadata['name']}/status", {"status": {"phase": "Failed"}})

    def _drain(self, node: str) -> bool:
        last = time.monotonic()
        while left := [pod for pod in self._list_pods() if pod["spec"].get("nodeName") == node]:
            run_pods_with_claims(self._api, self._list_pods())
            self._end_pods_of_jobs(left)
            evicted = [self._evict(pod) for pod in left]
            if any(evicted):
                last = time.monotonic()
            if time.monotonic() - last > AT_REST:
                return False
            time.sleep(0.2)  # as kubectl drain, which asks again until the API allows the eviction
        return True

    def _evict(self, pod: Object) -> bool:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            return False
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        options = {"deleteOptions": {"gracePeriodSeconds": 0}}
        try:
            self._api.post(f"{self._space}/pods/{name}/eviction", eviction | options)
        except ApiError as error:
            if error.status not in (404, 429, 500):
                raise
            return False
        return True

    def remove(self) -> None:
        self._api.gone(self._space)
        for node in self.cluster.node_names:
            self._api.gone(f"{NODES}/{node}")
        for volume in self.cluster.volumes:
            self._api.gone(f"{VOLUMES}/{volume['metadata']['name']}")
        self._api.gone(f"{CLASSES}/{self.cluster.name}")


def _is_of_job(pod: Object) -> bool:
    return HOLD_DELETE in pod["metadata"].get("annotations", {})


def _describe(pod: Object) -> tuple[str, str, str, bool]:
    metadata = pod["metadata"]
    return metadata["name"], pod["spec"].get("nodeName", ""), pod["status"]["phase"], "deletionTimestamp" in metadata


@dataclass(frozen=True)
class RollOutcome:
    """What is predicted of a roll, and where it really stops."""

    cluster: RandomRoll
    predicted: Roll
    stop: str

    @property
    def error(self) -> str:
        """Why the prediction is wrong; empty if it is right or claims nothing."""
        return explain_roll_error(self.predicted, self.stop)

    def __str__(self) -> str:
        return f"seed {self.cluster.seed}: {self.error}\n{self.cluster}"


@dataclass
class RollTally:
    """What rolls came to."""

    outcomes: list[RollOutcome] = field(default_factory=list)

    @property
    def wrong(self) -> list[RollOutcome]:
        """The predictions that are wrong."""
        return [outcome for outcome in self.outcomes if outcome.error]

    def count(self, answer: str) -> int:
        """How many rolls got an answer."""
        return sum(outcome.predicted.answer == answer for outcome in self.outcomes)

    def __str__(self) -> str:
        predicted = {answer: self.count(answer) for answer in ("yes", "no", "unknown")}
        stopped = sum(bool(outcome.stop) for outcome in self.outcomes)
        return f"{len(self.outcomes)} rolls, predicted {predicted}, {stopped} really stopped; {len(self.wrong)} wrong"


class RollOracle:
    """Rolls in one lab. records: keep what is compared in recordings."""

    def __init__(self, lab: Lab, records: bool = False) -> None:
        self._api, self._client = lab.api, connect(lab.state.kubeconfigs["admin"])
        self._records, self._own = records, f"roll{uuid.uuid4().hex[:6]}"
        self.recordings: list[Recording] = []

    def run(self, seeds: Sequence[str], job_seeds: Sequence[str] = ()) -> list[RollOutcome]:
        """One roll for each seed. job_seeds: of clusters with a Job alone."""
        clusters = [RandomRoll.draw(seed, self._own) for seed in seeds]
        return self._run([*clusters, *(RandomRoll.draw(seed, self._own, job_alone=True) for seed in job_seeds)])

    def _run(self, clusters: Sequence[RandomRoll]) -> list[RollOutcome]:
        rolling = [RollingCluster(self._api, cluster) for cluster in clusters]
        try:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(RollingCluster.create, rolling))
                snapshot = take(self._client)
                objects = read_objects(self._api, self._own) if self._records else ()
                reports = [predict_roll(snapshot, cluster.node_names) for cluster in clusters]
                stops = list(pool.map(RollingCluster.roll, rolling))
        finally:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(RollingCluster.remove, rolling))
        pairs = list(zip(clusters, stops, strict=True))
        if self._records:
            answers = tuple(RolledCluster(cluster.seed, cluster.node_names, stop) for cluster, stop in pairs)
            recording = Recording(snapshot.taken_at.isoformat(), snapshot.cluster.kubernetes, objects, rolls=answers)
            self.recordings.append(recording)
        rolls = [report.roll for report in reports if report.roll is not None]
        return [RollOutcome(cluster, roll, stop) for (cluster, stop), roll in zip(pairs, rolls, strict=True)]

    def shrink(self, outcome: RollOutcome) -> RollOutcome:
        """The smallest cluster with the same kind of error."""
        kind = outcome.error.partition(":")[0]

        def same(clusters: Sequence[RandomRoll]) -> list[bool]:
            possible = [cluster for cluster in clusters if cluster.nodes]
            # Of two clusters at a time, each has names of its own.
            outcomes = self._run([_rename(cluster, self._own) for cluster in possible])
            kept = {id(one) for one, again in zip(possible, outcomes, strict=True) if again.error.startswith(kind)}
            return [id(cluster) in kept for cluster in clusters]

        small = smallest(outcome.cluster, same, RandomRoll.list_cuts)
        [again] = self._run([_rename(small, self._own)])
        return again if again.error else outcome


def _rename(cluster: RandomRoll, prefix: str) -> RandomRoll:
    """The same cluster under a name of its own."""
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    text = json.dumps([cluster.nodes, cluster.workloads, cluster.budgets, cluster.volumes, cluster.claims])
    return RandomRoll(cluster.seed, name, *json.loads(text.replace(cluster.name, name)))
