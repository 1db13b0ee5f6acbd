# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random workloads, what the report says of them, and what the real admission, controllers and scheduler make of them.

The report is created while the controllers stand still; then they create the pods. Kubelets are simulated by KWOK: that a pod on
a node starts is no proof.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import WorkloadVerdict
from integration.kube import connect
from integration.schema import ApiSchema
from lab.cluster.api import ApiError
from lab.handle import PATIENCE, Lab, eventually
from situations.random_workloads import MARK, RandomWorkload

Object = dict[str, Any]
NODES, NAMESPACES, VOLUMES = "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/persistentvolumes"
CLASSES, PRIORITIES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/scheduling.k8s.io/v1/priorityclasses"
_PLURALS = {
    "ResourceQuota": "resourcequotas", "LimitRange": "limitranges", "Pod": "pods",
    "PersistentVolumeClaim": "persistentvolumeclaims", "Deployment": "deployments", "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets", "ReplicaSet": "replicasets", "Job": "jobs",
}  # fmt: skip
# Longer than controllers and scheduler wait before they look again.
_AT_REST = 12.0
# Drawn from the schema, these would leave the cluster or the scheduler.
_FIXED = frozenset(
    ("containers", "ephemeralContainers", "nodeName", "nodeSelector", "volumes", "schedulerName", "restartPolicy")
)


@dataclass(frozen=True)
class WorkloadOutcome:
    """What was predicted of a workload, and what came. missing: empty where all of its pods are on Windows nodes."""

    cluster: RandomWorkload
    verdict: WorkloadVerdict
    missing: str

    @property
    def error(self) -> str:
        """Why the prediction is wrong, empty if it is right or claims nothing."""
        answer = self.verdict.starts_again
        if answer == "yes" and self.missing:
            return f"too hopeful: {self.missing}"
        return f"too wary: {self.verdict.because}" if answer == "no" and not self.missing else ""

    def __str__(self) -> str:
        shown = {name: getattr(self.cluster, name) for name in ("labels", "limits", "claims", "neighbours", "workload")}
        shown["nodes"] = [
            {**node["metadata"]["labels"], **node["spec"], **node["status"]["allocatable"]}
            for node in self.cluster.nodes
        ]
        shown["volumes"] = [f"{v['metadata']['name']} {v['spec']['capacity']['storage']}" for v in self.cluster.volumes]
        return f"seed {self.cluster.seed}, {self.cluster.key}: {self.error}\n{yaml.safe_dump(shown, sort_keys=False)}"


@dataclass
class WorkloadTally:
    """What runs came to."""

    outcomes: list[WorkloadOutcome] = field(default_factory=list)

    @property
    def wrong(self) -> list[WorkloadOutcome]:
        """The predictions that are wrong."""
        return [outcome for outcome in self.outcomes if outcome.error]

    def count(self, answer: str) -> int:
        """How many workloads got an answer."""
        return sum(outcome.verdict.starts_again == answer for outcome in self.outcomes)

    def __str__(self) -> str:
        predicted = {answer: self.count(answer) for answer in ("yes", "no", "unknown")}
        started = sum(not outcome.missing for outcome in self.outcomes)
        return f"{len(self.outcomes)} workloads: predicted {predicted}, {started} started; {len(self.wrong)} wrong"


class WorkloadOracle:
    """A lab of its own, whose controllers it stops and starts."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self._api = lab, lab.api
        self._client = connect(lab.state.kubeconfigs["admin"])
        self._own = f"wl{uuid.uuid4().hex[:6]}"
        self._classes = (f"{self._own}-high", f"{self._own}-low")
        self._schema = ApiSchema(
            self._api,
            {"priorityClassName": self._classes, "serviceAccountName": ("default",), "topologyKey": (MARK,)},
        )
        for name, value in zip(self._classes, (1000, 10), strict=True):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            self._api.post(PRIORITIES, {**kind, "value": value})

    def run(self, seeds: Sequence[str]) -> list[WorkloadOutcome]:
        """One workload for each seed."""
        names = [f"{self._own}-{uuid.uuid4().hex[:8]}" for _seed in seeds]
        clusters = [RandomWorkload(seed, name, self._classes) for seed, name in zip(seeds, names, strict=True)]
        with ThreadPoolExecutor(8) as pool:
            try:
                list(pool.map(self._create_cluster, clusters))
                self._rest(clusters)
                self._lab.call("stop", name="controller-manager")
                try:
                    list(pool.map(self._create_workload, clusters))
                    verdicts = {one.workload: one for one in evaluate(_without_lacks(take(self._client))).workloads}
                finally:
                    self._lab.call("start", name="controller-manager")
                eventually(lambda: self._has_created(clusters[0]), "controllers create pods")
                self._rest(clusters)
                return [
                    WorkloadOutcome(cluster, verdicts[cluster.key], self._find_missing(cluster))
                    for cluster in clusters
                    if cluster.key in verdicts
                ]
            finally:
                list(pool.map(self._remove, clusters))

    def _post(self, item: Object) -> Object:
        version, namespace = item["apiVersion"], item["metadata"]["namespace"]
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        return self._api.post(f"{root}/namespaces/{namespace}/{_PLURALS[item['kind']]}", item)

    def _create_cluster(self, cluster: RandomWorkload) -> None:
        metadata = {"name": cluster.name, "labels": cluster.labels}
        self._api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for node in cluster.nodes:
            self._api.post(NODES, node)
        self._api.post(CLASSES, cluster.storage_class)
        for volume in cluster.volumes:
            self._api.post(VOLUMES, volume)
        account = f"{NAMESPACES}/{cluster.name}/serviceaccounts/default"
        eventually(lambda: self._api.ok(account), "the namespace can hold pods")
        for item in (*cluster.neighbours, *cluster.claims, *cluster.limits):
            try:
                self._post(item)
            except ApiError as error:
                # Admission may reject a neighbour.
                if error.status != 403:
                    raise

    def _create_workload(self, cluster: RandomWorkload) -> None:
        """With fields of its pods drawn from the schema, as far as the API server takes them."""
        luck = random.Random(f"{cluster.seed} fields")
        spec = cluster.workload["spec"]["template"]["spec"]
        drawn: Object = {}
        for _number in range(luck.choice((0, 1, 2))):
            name = luck.choice([f for f in self._schema.list_fields("io.k8s.api.core.v1.PodSpec") if f not in _FIXED])
            if name not in spec:
                drawn[name] = self._schema.draw_field(luck, "io.k8s.api.core.v1.PodSpec", name, 0.5)
        spec.update(drawn)
        try:
            self._post(cluster.workload)
        except ApiError as error:
            if error.status not in (400, 422):
                raise
            for name in drawn:
                del spec[name]
            self._post(cluster.workload)

    def _list_pods(self, cluster: RandomWorkload) -> list[Object]:
        """The pods that its workload made."""
        pods = self._api.items(f"{NAMESPACES}/{cluster.name}/pods")
        return [pod for pod in pods if not pod["metadata"]["name"].startswith("neighbour-")]

    def _has_created(self, cluster: RandomWorkload) -> bool:
        """Whether the controllers are at work again: they have seen a workload."""
        item = cluster.workload
        path = f"/apis/{item['apiVersion']}/namespaces/{cluster.name}/{_PLURALS[item['kind']]}/main"
        status = self._api.get(path).get("status") or {}
        return "observedGeneration" in status or bool(status.get("active") or status.get("conditions"))

    def _rest(self, clusters: Sequence[RandomWorkload]) -> None:
        """Wait until nothing has changed for long enough."""
        seen: Any = None
        since = time.monotonic()
        names = {cluster.name for cluster in clusters}

        def has_rested() -> bool:
            nonlocal seen, since
            pods = [pod for pod in self._api.items("/api/v1/pods") if pod["metadata"]["namespace"] in names]
            claims = self._api.items("/api/v1/persistentvolumeclaims")
            state = (
                [
                    (
                        pod["metadata"]["uid"],
                        pod["spec"].get("nodeName", ""),
                        pod["status"].get("phase"),
                        len(pod["metadata"]),
                    )
                    for pod in pods
                ],
                [(claim["metadata"]["uid"], claim["status"].get("phase")) for claim in claims],
            )
            if state != seen:
                seen, since = state, time.monotonic()
            return time.monotonic() - since > _AT_REST

        eventually(has_rested, "the clusters come to rest", PATIENCE * 2)

    def _find_missing(self, cluster: RandomWorkload) -> str:
        """What keeps the workload from running, empty for nothing."""
        windows = {
            node["metadata"]["name"]
            for node in cluster.nodes
            if node["metadata"]["name"].startswith(f"{cluster.name}-w")
        }
        pods = self._list_pods(cluster)
        expected = cluster.count
        if expected is None:
            path = f"/apis/apps/v1/namespaces/{cluster.name}/daemonsets/main"
            expected = max(1, int(self._api.get(path)["status"].get("desiredNumberScheduled", 0)))
        if len(pods) < expected:
            return f"{len(pods)} of {expected} pods are created"
        for pod in pods:
            node = pod["spec"].get("nodeName", "")
            if not node:
                conditions = pod["status"].get("conditions") or ()
                return f"{pod['metadata']['name']} is on no node: {[c.get('message') for c in conditions]}"
            if node not in windows:
                return f"{pod['metadata']['name']} is on {node}"
        return ""

    def _remove(self, cluster: RandomWorkload) -> None:
        self._api.gone(f"{NAMESPACES}/{cluster.name}")
        for node in cluster.nodes:
            self._api.gone(f"{NODES}/{node['metadata']['name']}")
        for volume in cluster.volumes:
            self._api.gone(f"{VOLUMES}/{volume['metadata']['name']}")
        self._api.gone(f"{CLASSES}/{cluster.name}")


def _without_lacks(snapshot: Snapshot) -> Snapshot:
    """Without the sign that the controllers have created no pod yet."""
    templates = tuple(replace(template, lacks="", lacks_since="") for template in snapshot.templates)
    return replace(snapshot, templates=templates)
