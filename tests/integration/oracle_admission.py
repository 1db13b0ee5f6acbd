# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random namespaces with limits, and what the real admission plugins say of random pods there. A dry run creates nothing."""

from __future__ import annotations

import copy
import random
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from integration.kube import connect
from integration.oracle_cluster import read_objects
from integration.schema import ApiSchema
from lab.cluster.api import Api, ApiError
from lab.handle import eventually
from situations.recorded_answers import AdmittedPod, Recording, predict_admission
from situations.smaller import Cut, smallest

Object = dict[str, Any]
NAMESPACES, PRIORITIES = "/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
_AMOUNTS = {"cpu": ("100m", "500m", "1", "2"), "memory": ("64Mi", "256Mi", "1Gi")}
_MAIN = {"name": "main", "image": "registry.example.com/main:1"}
# Keeps a namespace that is deleted.
_FINALIZER = "oracle.test/hold"
_LEVEL = "pod-security.kubernetes.io/enforce"


@dataclass
class AdmissionTally:
    """What a run came to."""

    pods: int = 0
    admitted: int = 0
    rejected: int = 0
    undecided: int = 0
    invalid: int = 0
    wrong: list[AdmittedPod] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.pods} pods: {self.admitted} admitted, {self.rejected} rejected {dict(self.rejections)}, "
            f"{self.undecided} where nothing is claimed, {self.invalid} drawn and invalid; {len(self.wrong)} wrong"
        )


class AdmissionOracle:
    """Namespaces of one seed on a real API server. records: keep what is compared in recordings."""

    def __init__(self, api: Api, kubeconfig: str, seed: str, records: bool = False) -> None:
        self._api, self._client, self._seed = api, connect(kubeconfig), seed
        self._records = records
        self.recordings: list[Recording] = []
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
                objects = read_objects(self._api, self._own) if self._records else ()
                tried = pool.map(lambda name: self._try_pods(name, pods, tally), names)
                attempts = [attempt for attempts in tried for attempt in attempts]
            index = Index(snapshot)
            for attempt in attempts:
                if compare(index, attempt, tally):
                    tally.wrong.append(self._shrink(index, attempt) if len(tally.wrong) < 3 else attempt)
        finally:
            self._remove(names)
        if self._records:
            taken_at, version = snapshot.taken_at.isoformat(), snapshot.cluster.kubernetes
            self.recordings.append(Recording(taken_at, version, objects, admissions=tuple(attempts)))
        return tally

    def _shrink(self, index: Index, attempt: AdmittedPod) -> AdmittedPod:
        """The smallest pod spec with the same kind of error."""
        kind = predict_admission(index, attempt).explain_error(attempt.rejection).partition("\n")[0]

        def same(attempts: Sequence[AdmittedPod]) -> list[bool]:
            again = [self._try_pod(attempt.namespace, attempt.spec) for attempt in attempts]
            return [
                rejection is not None and predict_admission(index, attempt).explain_error(rejection).startswith(kind)
                for attempt, rejection in zip(attempts, again, strict=True)
            ]

        small = smallest(attempt, same, _list_cuts)
        return replace(small, rejection=self._try_pod(small.namespace, small.spec) or "")

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

        # Drawn apart, so that a seed makes what it made before.
        if random.Random(f"{self._seed} {name.rpartition('-')[2]} end").random() < 0.1:
            self._post(f"{space}/configmaps", "v1", "ConfigMap", {"name": "hold", "finalizers": [_FINALIZER]})
            self._api.gone(space)

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

    def _try_pods(self, namespace: str, count: int, tally: AdmissionTally) -> list[AdmittedPod]:
        number = namespace.rpartition("-")[2]
        luck = random.Random(f"{self._seed} pods {number}")
        attempts: list[AdmittedPod] = []
        while len(attempts) < count:
            spec = self.draw_spec(luck)
            rejection = self._try_pod(namespace, spec)
            if rejection is None:
                tally.invalid += 1
            else:
                attempts.append(AdmittedPod(f"{self._seed} {number} {len(attempts)}", namespace, spec, rejection))
        return attempts

    def _try_pod(self, namespace: str, spec: Object) -> str | None:
        """Why admission rejects a pod, empty if it does not; None for an invalid one."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"app": "x"}}, "spec": spec}
        try:
            self._api.request("POST", f"{NAMESPACES}/{namespace}/pods?dryRun=All", copy.deepcopy(pod))
        except ApiError as error:
            return error.message if error.status == 403 else None
        return ""

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
            hold = f"{NAMESPACES}/{name}/configmaps/hold"
            if self._api.ok(hold):
                self._api.patch(hold, {"metadata": {"finalizers": None}})
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


def compare(index: Index, admitted: AdmittedPod, tally: AdmissionTally) -> str:
    """Hold our answer against the server's; why it is wrong, empty if it is not."""
    prediction = predict_admission(index, admitted)
    tally.pods += 1
    tally.admitted += not admitted.rejection
    tally.rejected += bool(admitted.rejection)
    tally.undecided += prediction.word == "unknown"
    if admitted.rejection:
        tally.rejections[_classify(admitted.rejection)] += 1
    return prediction.explain_error(admitted.rejection)


def _list_cuts(admitted: AdmittedPod) -> Iterator[Cut]:
    """What may be left out of a pod spec."""

    def list_paths(value: Any) -> Iterator[tuple[Any, ...]]:
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, part in entries:
            yield (key,)
            yield from ((key, *path) for path in list_paths(part))

    yield from (("spec", path[0], path[1:]) for path in list_paths(admitted.spec))


def _classify(rejection: str) -> str:
    for word in ("PodSecurity", "quota", "usage per", "ratio", "service account", "serviceaccount", "priority",
                 "PriorityClass", "PreemptionPolicy", "RuntimeClass", "Overhead"):  # fmt: skip
        if word in rejection:
            return word
    return rejection[:80]
