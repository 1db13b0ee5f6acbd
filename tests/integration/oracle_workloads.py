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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import WorkloadVerdict
from integration.kube import connect
from integration.oracle_cluster import read_objects
from integration.oracle_shared import find_default_class, leave_classes_out
from integration.schema import ApiSchema
from lab.cluster.api import ApiError
from lab.handle import PATIENCE, Lab, eventually
from situations.random_workloads import MARK, RandomWorkload
from situations.recorded_answers import Recording, StartedWorkload, explain_workload_error, without_lacks
from situations.smaller import smallest

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


# Where the report has no workload: it has nothing to do with Windows.
_NOT_EVALUATED = WorkloadVerdict("", "unknown", "", "unknown", "it is not in the report", (), ())


@dataclass(frozen=True)
class WorkloadOutcome:
    """What was predicted of a workload, and what came. missing: empty where all of its pods are on Windows nodes."""

    cluster: RandomWorkload
    verdict: WorkloadVerdict
    missing: str

    @property
    def error(self) -> str:
        """Why the prediction is wrong, empty if it is right or claims nothing."""
        return explain_workload_error(self.verdict.starts_again, self.verdict.because, self.missing)

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
    """A lab of its own, whose controllers it stops and starts. records: keep what is compared in recordings."""

    def __init__(self, lab: Lab, records: bool = False) -> None:
        self._lab, self._api = lab, lab.api
        self._records = records
        self.recordings: list[Recording] = []
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
        clusters = [RandomWorkload(seed, self._make_name(), self._classes) for seed in seeds]
        default = find_default_class(self._api)
        for cluster in clusters:
            volumes = [volume["spec"] for volume in cluster.volumes]
            leave_classes_out(random.Random(f"{cluster.seed} default"), cluster.list_claim_specs(), volumes, default)
        outcomes = self._run(clusters, self._create_workload)
        return [outcome for outcome in outcomes if outcome.verdict is not _NOT_EVALUATED]

    def shrink(self, outcome: WorkloadOutcome) -> WorkloadOutcome:
        """The smallest cluster with the same kind of error."""
        kind = outcome.error.partition(":")[0]

        def run_again(clusters: Sequence[RandomWorkload]) -> list[WorkloadOutcome]:
            # Of two clusters at a time, each has names of its own.
            return self._run([cluster.rename(self._make_name()) for cluster in clusters], self._create_again)

        def same(clusters: Sequence[RandomWorkload]) -> list[bool]:
            kept: dict[int, bool] = {}
            for start in range(0, len(clusters), 40):
                some = clusters[start : start + 40]
                kept |= {
                    id(one): again.error.startswith(kind) for one, again in zip(some, run_again(some), strict=True)
                }
            return [kept[id(cluster)] for cluster in clusters]

        small = smallest(outcome.cluster, same, RandomWorkload.list_cuts, tries=4)
        [again] = run_again([small])
        return again if again.error else outcome

    def _make_name(self) -> str:
        return f"{self._own}-{uuid.uuid4().hex[:8]}"

    def _run(
        self, clusters: Sequence[RandomWorkload], create_workload: Callable[[RandomWorkload], None]
    ) -> list[WorkloadOutcome]:
        with ThreadPoolExecutor(8) as pool:
            try:
                list(pool.map(self._create_cluster, clusters))
                self._rest(clusters)
                self._lab.call("stop", name="controller-manager")
                try:
                    list(pool.map(create_workload, clusters))
                    snapshot = take(self._client)
                    objects = read_objects(self._api, self._own) if self._records else ()
                    verdicts = {one.workload: one for one in evaluate(without_lacks(snapshot)).workloads}
                finally:
                    self._lab.call("start", name="controller-manager")
                eventually(lambda: any(map(self._has_created, clusters)), "controllers create pods")
                self._rest(clusters)
                missing = {cluster.key: self._find_missing(cluster) for cluster in clusters}
                if self._records:
                    answers = (
                        StartedWorkload(one.seed, one.key, missing[one.key]) for one in clusters if one.key in verdicts
                    )
                    taken_at, version = snapshot.taken_at.isoformat(), snapshot.cluster.kubernetes
                    self.recordings.append(Recording(taken_at, version, objects, workloads=tuple(answers)))
                return [
                    WorkloadOutcome(cluster, verdicts.get(cluster.key, _NOT_EVALUATED), missing[cluster.key])
                    for cluster in clusters
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
        self._cordon(cluster)
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

    def _cordon(self, cluster: RandomWorkload) -> None:
        """Cordon the nodes of some clusters while no controller adds the taint to them."""
        if random.Random(f"{cluster.seed} cordon").random() < 0.15:
            for node in cluster.nodes:
                self._api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"unschedulable": True}})

    def _create_again(self, cluster: RandomWorkload) -> None:
        """As it was drawn before; a workload that is no longer valid starts nothing."""
        self._cordon(cluster)
        try:
            self._post(cluster.workload)
        except ApiError as error:
            if error.status not in (400, 422):
                raise

    def _list_pods(self, cluster: RandomWorkload) -> list[Object]:
        """The pods that its workload made."""
        pods = self._api.items(f"{NAMESPACES}/{cluster.name}/pods")
        return [pod for pod in pods if not pod["metadata"]["name"].startswith("neighbour-")]

    def _path(self, cluster: RandomWorkload) -> str:
        item = cluster.workload
        return f"/apis/{item['apiVersion']}/namespaces/{cluster.name}/{_PLURALS[item['kind']]}/main"

    def _has_created(self, cluster: RandomWorkload) -> bool:
        """Whether the controllers are at work again: they have seen a workload."""
        path = self._path(cluster)
        status = (self._api.get(path).get("status") or {}) if self._api.ok(path) else {}
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
        if not self._api.ok(self._path(cluster)):
            return "the API server does not accept it"
        if expected is None:
            expected = max(1, int(self._api.get(self._path(cluster))["status"].get("desiredNumberScheduled", 0)))
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
