# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an upgrade finishes, held against nodes that are drained by real evictions, controllers and the real scheduler."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Roll
from integration.kube import connect
from lab.cluster.api import Api, ApiError
from lab.handle import Lab, eventually

SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")
NODES, NAMESPACES = "/api/v1/nodes", "/api/v1/namespaces"
MARK, HOST = "roll.test/cluster", "kubernetes.io/hostname"
# Longer than the scheduler and the disruption controller wait before they look again.
AT_REST = 15.0


@dataclass
class RollingCluster:
    """A few nodes and Deployments of their own, made by a seed, in a lab that has others too."""

    api: Api
    seed: str
    name: str = field(default_factory=lambda: f"roll-{uuid.uuid4().hex[:8]}")

    def create(self) -> None:
        luck = random.Random(self.seed)
        for number in range(luck.randint(2, 4)):
            self._create_node(f"{self.name}-{number}", luck.choice(["2", "3", "4"]), luck.choice("ab"))
        self.api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        account = f"{NAMESPACES}/{self.name}/serviceaccounts/default"
        eventually(lambda: self.api.ok(account), "the namespace can hold pods")
        for number in range(luck.randint(1, 4)):
            self._create_workload(luck, f"app-{number}")
        self.rest()

    def _create_node(self, name: str, cpu: str, zone: str) -> None:
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
        self.api.post(NODES, node)

    def _create_workload(self, luck: random.Random, name: str) -> None:
        labels, replicas = {"app": name}, luck.randint(1, 3)
        selector = {"matchLabels": labels}
        requests = {"cpu": luck.choice(["200m", "500m", "1", "1500m"])}
        main = {"name": "main", "image": "registry.example.com/main:1", "resources": {"requests": requests}}
        spec: dict[str, Any] = {"nodeSelector": {MARK: self.name}, "containers": [main]}
        if luck.random() < 0.25:
            term = {"topologyKey": HOST, "labelSelector": selector}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif luck.random() < 0.25:
            constraint = {"topologyKey": luck.choice([HOST, "topology.kubernetes.io/zone"]), "maxSkew": 1}
            spec["topologySpreadConstraints"] = [
                {**constraint, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            ]
        template = {"metadata": {"labels": labels}, "spec": spec}
        self._post(
            "apps/v1", "deployments", "Deployment", name, replicas=replicas, selector=selector, template=template
        )
        if luck.random() < 0.5:
            limit = luck.choice([{"maxUnavailable": 1}, {"minAvailable": luck.randint(0, replicas)}])
            self._post("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", name, selector=selector, **limit)

    def _post(self, version: str, plural: str, kind: str, name: str, **spec: Any) -> None:
        path = f"/apis/{version}/namespaces/{self.name}/{plural}"
        self.api.post(path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})

    @property
    def nodes(self) -> list[str]:
        return sorted(
            one["metadata"]["name"] for one in self.api.items(NODES) if one["metadata"]["labels"].get(MARK) == self.name
        )

    def pods(self) -> list[dict[str, Any]]:
        return self.api.items(f"{NAMESPACES}/{self.name}/pods")

    def rest(self) -> None:
        """Wait until pods and budgets have not changed for long enough."""
        seen: Any = None
        since = time.monotonic()

        def has_rested() -> bool:
            nonlocal seen, since
            budgets = self.api.items(f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets")
            state = [_describe(pod) for pod in self.pods()], [one.get("status") for one in budgets]
            if state != seen:
                seen, since = state, time.monotonic()
            settled = all(node and phase == "Running" for _name, node, phase, _deleting in state[0])
            return time.monotonic() - since > (2.0 if settled else AT_REST)

        eventually(has_rested, f"cluster {self.seed} comes to rest")

    def roll(self) -> str:
        """Drain node by node; returns the node at which that stops, empty when it finishes."""
        for node in self.nodes:
            self.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
            drained = self._drain(node)
            self.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": False}})
            self.rest()
            if not drained or not all(pod["spec"].get("nodeName") for pod in self.pods()):
                return node
        return ""

    def _drain(self, node: str) -> bool:
        last = time.monotonic()
        while left := [pod for pod in self.pods() if pod["spec"].get("nodeName") == node]:
            evicted = [self._evict(pod) for pod in left]
            if any(evicted):
                last = time.monotonic()
            if time.monotonic() - last > AT_REST:
                return False
            time.sleep(0.2)  # as kubectl drain, which asks again until the API allows the eviction
        return True

    def _evict(self, pod: dict[str, Any]) -> bool:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            return False
        path = f"{NAMESPACES}/{self.name}/pods/{name}"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self.api.post(f"{path}/eviction", eviction | {"deleteOptions": {"gracePeriodSeconds": 0}})
        except ApiError as error:
            if error.status not in (404, 429, 500):
                raise
            return False
        return True

    def remove(self) -> None:
        self.api.gone(f"{NAMESPACES}/{self.name}")
        for node in self.nodes:
            self.api.gone(f"{NODES}/{node}")


def _describe(pod: dict[str, Any]) -> tuple[str, str, str, bool]:
    metadata = pod["metadata"]
    return metadata["name"], pod["spec"].get("nodeName", ""), pod["status"]["phase"], "deletionTimestamp" in metadata


def compare_rolls(lab: Lab, seeds: Sequence[str]) -> list[tuple[str, Roll, str]]:
    """By seed, what is predicted and where the roll really stops."""
    clusters = [RollingCluster(lab.api, seed) for seed in seeds]
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(RollingCluster.create, clusters))
            snapshot = take(connect(lab.state.kubeconfigs["admin"]))
            predicted = []
            for cluster in clusters:
                own = tuple(node for node in snapshot.nodes if node.labels.get(MARK) == cluster.name)
                roll = evaluate(replace(snapshot, nodes=own)).roll
                assert roll is not None
                predicted.append(roll)
            stops = list(pool.map(RollingCluster.roll, clusters))
    finally:
        for cluster in clusters:
            cluster.remove()
    return list(zip(seeds, predicted, stops, strict=True))


def explain_difference(roll: Roll, stop: str) -> str:
    """Why a prediction is wrong, empty when it is right or claims nothing."""
    first = next((node for node in roll.nodes if node.answer != "yes"), None)
    if roll.answer == "yes":
        return f"too hopeful: stops at {stop}" if stop else ""
    if roll.answer == "no" and (first is None or stop != first.node):
        return f"predicted {roll.because}, stops at {stop or 'no node'}"
    return ""


def check_rolls(lab: Lab, count: int, label: str) -> None:
    results = compare_rolls(lab, [f"{SEED}-{label}-{number}" for number in range(count)])
    words = [roll.answer for _seed, roll, _stop in results]
    tally = {word: words.count(word) for word in ("yes", "no", "unknown")}
    really = sum(bool(stop) for _seed, _roll, stop in results)
    print(f"seed {SEED}-{label}: {count} rolls, predicted {tally}, {really} really stopped", flush=True)
    wrong = [f"{seed}: {why}" for seed, roll, stop in results if (why := explain_difference(roll, stop))]
    assert not wrong, "\n".join(wrong)


def test_a_few_rolls_end_as_predicted(lab: Lab) -> None:
    check_rolls(lab, 4, "daily")


@pytest.mark.torture
def test_thirty_rolls_end_as_predicted(lab: Lab) -> None:
    for batch in range(3):
        check_rolls(lab, 10, str(batch))
