# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random namespaces with limits, and what the real admission plugins say of random pods there. A dry run creates nothing."""

from __future__ import annotations

import copy
import random
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.admission import Admission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedTemplate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.usage import Workload
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.pods import to_start
from integration.kube import connect
from integration.schema import ApiSchema
from lab.cluster.api import Api, ApiError
from lab.handle import eventually

Object = dict[str, Any]
NAMESPACES, PRIORITIES = "/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
_AMOUNTS = {"cpu": ("100m", "500m", "1", "2"), "memory": ("64Mi", "256Mi", "1Gi")}
_MAIN = {"name": "main", "image": "registry.example.com/main:1"}
_LEVEL = "pod-security.kubernetes.io/enforce"


@dataclass
class AdmissionTally:
    """What a run came to."""

    pods: int = 0
    admitted: int = 0
    rejected: int = 0
    undecided: int = 0
    invalid: int = 0
    wrong: list[str] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.pods} pods: {self.admitted} admitted, {self.rejected} rejected {dict(self.rejections)}, "
            f"{self.undecided} where nothing is claimed, {self.invalid} drawn and invalid; {len(self.wrong)} wrong"
        )


@dataclass(frozen=True)
class Attempt:
    """A pod of a namespace, and why admission rejects it, empty if it does not."""

    namespace: str
    spec: Object
    rejection: str

    def as_template(self) -> ObservedTemplate:
        """What makes such pods."""
        template = {"metadata": {"labels": {"app": "x"}}, "spec": self.spec}
        item = {"metadata": {"namespace": self.namespace, "name": "x"}, "spec": {"replicas": 1, "template": template}}
        return ObservedTemplate.from_object("Deployment", item)


class AdmissionOracle:
    """Namespaces of one seed on a real API server."""

    def __init__(self, api: Api, kubeconfig: str, seed: str) -> None:
        self._api, self._client, self._seed = api, connect(kubeconfig), seed
        self._own = f"adm{uuid.uuid4().hex[:6]}"
        high, low, runtime = (f"{self._own}-{name}" for name in ("high", "never", "runtime"))
        self._schema = ApiSchema(
            api,
            {
                "serviceAccountName": ("default", "app", "gone"),
                "priorityClassName": (high, high, low, f"{self._own}-gone", "system-node-critical"),
                "priority": (1000, 10, 0),
                "preemptionPolicy": ("Never", "PreemptLowerPriority"),
                "runtimeClassName": (runtime, runtime, f"{self._own}-gone"),
                "overhead": ({"cpu": "250m"}, {"cpu": "1"}),
                "resources": tuple(_list_resources()),
                "add": (["NET_BIND_SERVICE"], ["CHOWN"], ["SYS_ADMIN"]),
                "drop": (["ALL"], ["ALL"], ["KILL"]),
                "host": ("", "10.0.0.1"),
                "runAsUser": (0, 1000),
                "name": ("linux", "windows"),
            },
        )

    def run(self, namespaces: int, pods: int) -> AdmissionTally:
        """Create so many namespaces, try so many pods in each, and compare."""
        names = [f"{self._own}-{number}" for number in range(namespaces)]
        tally = AdmissionTally()
        try:
            self._create_classes()
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(self._create_namespace, names))
                snapshot = take(self._client)
                attempts = [
                    attempt
                    for some in pool.map(lambda name: self._try_pods(name, pods, tally), names)
                    for attempt in some
                ]
        finally:
            self._remove(names)
        index = Index(snapshot)
        for attempt in attempts:
            compare(index, attempt, tally)
        return tally

    def _create_classes(self) -> None:
        for name, value, policy in (("high", 1000, "PreemptLowerPriority"), ("never", 10, "Never")):
            metadata = {"name": f"{self._own}-{name}"}
            self._post(
                PRIORITIES, "scheduling.k8s.io/v1", "PriorityClass", metadata, value=value, preemptionPolicy=policy
            )
        metadata = {"name": f"{self._own}-runtime"}
        overhead = {"podFixed": {"cpu": "250m"}}
        self._post(RUNTIMES, "node.k8s.io/v1", "RuntimeClass", metadata, handler="x", overhead=overhead)

    def _post(self, path: str, version: str, kind: str, metadata: Object, **parts: Any) -> Object:
        return self._api.post(path, {"apiVersion": version, "kind": kind, "metadata": metadata, **parts})

    def _create_namespace(self, name: str) -> None:
        luck = random.Random(f"{self._seed} {name.rpartition('-')[2]}")
        labels = {}
        is_secured = luck.random() < 0.5
        if is_secured:
            labels[_LEVEL] = luck.choice(("privileged", "baseline", "baseline", "restricted", "restricted"))
            if luck.random() < 0.3:
                labels[f"{_LEVEL}-version"] = luck.choice(("latest", "v1.24", "v1.30", "v1.36"))
        self._post(NAMESPACES, "v1", "Namespace", {"name": name, "labels": labels})
        space = f"{NAMESPACES}/{name}"
        self._post(f"{space}/serviceaccounts", "v1", "ServiceAccount", {"name": "app"})
        eventually(lambda: self._api.ok(f"{space}/serviceaccounts/default"), "the namespace can hold pods")
        # A pass keeps the ServiceAccounts that templates with claims name.
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod = {"serviceAccountName": "app", "containers": [_MAIN], "volumes": [volume]}
        template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
        spec: Object = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        self._post(f"/apis/apps/v1/namespaces/{name}/deployments", "apps/v1", "Deployment", {"name": "x"}, spec=spec)
        # Of two plugins that reject a pod, a server names one.
        quotas = luck.choice((0, 1, 2)) if not is_secured else 0
        for number in range(quotas):
            spec = _draw_quota(luck, f"{self._own}-high")
            self._post(f"{space}/resourcequotas", "v1", "ResourceQuota", {"name": f"q{number}"}, spec=spec)
        eventually(partial(self._are_counted, f"{space}/resourcequotas"), "the quotas are counted")
        for number in range(luck.choice((0, 1, 2))):
            self._use_quota(luck, space, f"user-{number}")
        for number in range(luck.choice((0, 1, 2)) if not is_secured else 0):
            spec = {"limits": [_draw_limits(luck)]}
            self._post(f"{space}/limitranges", "v1", "LimitRange", {"name": f"l{number}"}, spec=spec)

    def _are_counted(self, path: str) -> bool:
        return all((quota.get("status") or {}).get("used") for quota in self._api.items(path))

    def _use_quota(self, luck: random.Random, space: str, name: str) -> None:
        """Create a pod that no scheduler places; admission may reject it."""
        main = {**_MAIN, "resources": luck.choice(_list_resources())}
        spec = {"schedulerName": "none", "containers": [main]}
        try:
            self._post(f"{space}/pods", "v1", "Pod", {"name": name}, spec=spec)
        except ApiError as error:
            if error.status != 403:
                raise

    def _try_pods(self, namespace: str, count: int, tally: AdmissionTally) -> list[Attempt]:
        luck = random.Random(f"{self._seed} pods {namespace.rpartition('-')[2]}")
        attempts: list[Attempt] = []
        while len(attempts) < count:
            spec = self.draw_spec(luck)
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"app": "x"}}, "spec": spec}
            try:
                self._api.request("POST", f"{NAMESPACES}/{namespace}/pods?dryRun=All", copy.deepcopy(pod))
            except ApiError as error:
                if error.status == 403:
                    attempts.append(Attempt(namespace, spec, error.message))
                else:
                    tally.invalid += 1
            else:
                attempts.append(Attempt(namespace, spec, ""))
        return attempts

    def draw_spec(self, luck: random.Random) -> Object:
        """A pod spec with a few fields drawn from the schema."""
        container: Object = dict(_MAIN)
        spec: Object = {"containers": [container]}
        if luck.random() < 0.5:
            spec["os"] = {"name": "windows"}
        if luck.random() < 0.6:
            container["resources"] = luck.choice(_list_resources())
        if luck.random() < 0.4:
            spec["securityContext"] = {"runAsNonRoot": luck.choice((True, True, False))}
        if luck.random() < 0.3:
            container["securityContext"] = {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }  # fmt: skip
        for target, name, most in ((spec, "PodSpec", 2), (container, "Container", 2)):
            full = f"io.k8s.api.core.v1.{name}"
            for _number in range(luck.randint(0, most)):
                key = luck.choice(self._schema.list_fields(full))
                if key not in ("containers", "ephemeralContainers", "nodeName", "name", "image"):
                    drawn = self._schema.draw_field(luck, full, key, 0.5)
                    target[key] = {**target.get(key, {}), **drawn} if isinstance(drawn, dict) else drawn
        return spec

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._api.gone(f"{NAMESPACES}/{name}")
        for path, name in ((PRIORITIES, "high"), (PRIORITIES, "never"), (RUNTIMES, "runtime")):
            self._api.gone(f"{path}/{self._own}-{name}")


def _list_resources() -> list[Object]:
    amounts: list[Object] = [{}]
    for cpu in _AMOUNTS["cpu"]:
        amounts.append({"requests": {"cpu": cpu}})
        amounts.append({"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}})
    amounts += [{"limits": {"memory": memory}} for memory in _AMOUNTS["memory"]]
    return amounts


def _draw_limits(luck: random.Random) -> Object:
    kind = luck.choice(("Container", "Container", "Pod"))
    name = luck.choice(("cpu", "memory"))
    amounts = _AMOUNTS[name]
    part: Object = {"type": kind}
    low, middle, high = sorted(luck.sample(range(len(amounts)), 3))
    if luck.random() < 0.4:
        part["min"] = {name: amounts[low]}
    if luck.random() < 0.4:
        part["max"] = {name: amounts[high]}
    if kind == "Container" and luck.random() < 0.6:
        part["default"] = {name: amounts[high if "max" in part else middle]}
        part["defaultRequest"] = {name: amounts[middle]}
    if luck.random() < 0.2 or len(part) == 1:
        part["maxLimitRequestRatio"] = {name: luck.choice(("1", "2", "4"))}
    return part


def _draw_quota(luck: random.Random, priority_class: str) -> Object:
    names = luck.sample(
        ("cpu", "requests.memory", "limits.cpu", "limits.memory", "pods", "count/pods", "requests.ephemeral-storage"), 2
    )
    hard = {name: luck.choice(("1", "4")) if "memory" not in name else "1Gi" for name in names}
    if luck.random() < 0.6:
        return {"hard": hard}
    scope = luck.choice(("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "Cross"))
    if scope == "BestEffort":
        return {"hard": {"pods": "1"}, "scopes": [scope]}
    if scope == "Cross":
        return {"hard": {"pods": "1"}, "scopes": ["CrossNamespacePodAffinity"]}
    if scope == "PriorityClass":
        hard = {"pods": "1"}
        operator = luck.choice(("In", "NotIn", "Exists"))
        entry: Object = {"scopeName": scope, "operator": operator}
        if operator != "Exists":
            entry["values"] = [priority_class]
        return {"hard": hard, "scopeSelector": {"matchExpressions": [entry]}}
    return {"hard": {"cpu": "2", "limits.memory": "1Gi"}, "scopes": [scope]}


def compare(index: Index, attempt: Attempt, tally: AdmissionTally) -> None:
    """Hold our answer against the server's."""
    template = attempt.as_template()
    workload = Workload("Deployment", attempt.namespace, "x", template=template)
    [pod] = to_start(index, workload)
    answers = Admission(index)(pod, index.all)
    words = {answer.word for answer in answers if answer.nodes == index.all}
    word = "blocked" if "blocked" in words else "unknown" if "unknown" in words else "ok"
    tally.pods += 1
    tally.admitted += not attempt.rejection
    tally.rejected += bool(attempt.rejection)
    tally.undecided += word == "unknown"
    if attempt.rejection:
        tally.rejections[_classify(attempt.rejection)] += 1
    if (word == "ok" and attempt.rejection) or (word == "blocked" and not attempt.rejection):
        reasons = "; ".join(answer.because for answer in answers)
        tally.wrong.append(
            f"{attempt.namespace}: {'too hopeful' if attempt.rejection else 'too wary'}\n"
            f"server: {attempt.rejection or 'admitted'}\nwe: {reasons or 'ok'}\n{yaml.safe_dump(attempt.spec)}"
        )


def _classify(rejection: str) -> str:
    for word in ("PodSecurity", "quota", "usage per", "ratio", "service account", "serviceaccount", "priority",
                 "PriorityClass", "PreemptionPolicy", "RuntimeClass", "Overhead"):  # fmt: skip
        if word in rejection:
            return word
    return rejection[:80]
