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
from dataclasses import dataclass, field
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Roll
from integration.kube import connect
from integration.oracle_cluster import NAMESPACES, NODES, read_objects
from lab.cluster.api import Api, ApiError
from lab.handle import Lab, eventually
from situations.recorded_answers import Recording, RolledCluster, explain_roll_error, predict_roll
from situations.smaller import Cut, smallest

Object = dict[str, Any]
MARK, HOST = "roll.test/cluster", "kubernetes.io/hostname"
# Longer than the scheduler and the disruption controller wait before they look again.
AT_REST = 15.0
_PLURALS = {"Deployment": "deployments", "PodDisruptionBudget": "poddisruptionbudgets"}


@dataclass
class RandomRoll:
    """A few nodes and Deployments, made by a seed. name: what the names of the nodes begin with."""

    seed: str
    name: str
    nodes: list[Object] = field(default_factory=list)
    workloads: list[Object] = field(default_factory=list)
    budgets: list[Object] = field(default_factory=list)

    @classmethod
    def draw(cls, seed: str, prefix: str) -> RandomRoll:
        """The cluster of a seed."""
        luck = random.Random(seed)
        cluster = cls(seed, f"{prefix}-{uuid.uuid4().hex[:8]}")
        for number in range(luck.randint(2, 4)):
            cluster._draw_node(f"{cluster.name}-{number}", luck.choice(["2", "3", "4"]), luck.choice("ab"))
        for number in range(luck.randint(1, 4)):
            cluster._draw_workload(luck, f"app-{number}")
        return cluster

    def _draw_node(self, name: str, cpu: str, zone: str) -> None:
        room = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
        info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), "")
        info |= {"containerRuntimeVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.3"}
        labels = {"kubernetes.io/os": "windows", HOST: name, MARK: self.name, "topology.kubernetes.io/zone": zone}
        node = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {
                "capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True", "reason": "r"}],
                "nodeInfo": {**info, "operatingSystem": "windows", "architecture": "amd64"},
            },
        }  # fmt: skip
        self.nodes.append(node)

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
            constraint = {"topologyKey": luck.choice([HOST, "topology.kubernetes.io/zone"]), "maxSkew": 1}
            spec["topologySpreadConstraints"] = [
                {**constraint, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            ]
        template = {"metadata": {"labels": labels}, "spec": spec}
        parts = {"replicas": replicas, "selector": selector, "template": template}
        self.workloads.append(_make("apps/v1", "Deployment", name, parts))
        if luck.random() < 0.5:
            limit = luck.choice([{"maxUnavailable": 1}, {"minAvailable": luck.randint(0, replicas)}])
            self.budgets.append(_make("policy/v1", "PodDisruptionBudget", name, {"selector": selector, **limit}))

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(sorted(node["metadata"]["name"] for node in self.nodes))

    def list_cuts(self) -> Iterator[Cut]:
        """What may be left out."""
        for part in ("nodes", "workloads", "budgets"):
            for number, item in enumerate(getattr(self, part)):
                yield part, number, ()
                if part == "workloads":
                    template = ("spec", "template", "spec")
                    for key in ("affinity", "topologySpreadConstraints"):
                        if key in item["spec"]["template"]["spec"]:
                            yield part, number, (*template, key)

    def __str__(self) -> str:
        room = {node["metadata"]["name"]: node["status"]["allocatable"]["cpu"] for node in self.nodes}
        zones = {
            node["metadata"]["name"]: node["metadata"]["labels"].get("topology.kubernetes.io/zone")
            for node in self.nodes
        }
        shown = {"cpu": room, "zones": zones, "workloads": self.workloads, "budgets": self.budgets}
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
        metadata = {"name": self.cluster.name}
        self._api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        account = f"{self._space}/serviceaccounts/default"
        eventually(lambda: self._api.ok(account), "the namespace can hold pods")
        for item in (*self.cluster.workloads, *self.cluster.budgets):
            path = f"/apis/{item['apiVersion']}/namespaces/{self.cluster.name}/{_PLURALS[item['kind']]}"
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
            state = [_describe(pod) for pod in self._list_pods()], [budget.get("status") for budget in budgets]
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
            if not drained or not all(pod["spec"].get("nodeName") for pod in self._list_pods()):
                return node
        return ""

    def _drain(self, node: str) -> bool:
        last = time.monotonic()
        while left := [pod for pod in self._list_pods() if pod["spec"].get("nodeName") == node]:
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

    def run(self, seeds: Sequence[str]) -> list[RollOutcome]:
        """One roll for each seed."""
        return self._run([RandomRoll.draw(seed, self._own) for seed in seeds])

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
    text = json.dumps([cluster.nodes, cluster.workloads, cluster.budgets])
    return RandomRoll(cluster.seed, name, *json.loads(text.replace(cluster.name, name)))
