# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A random cluster on an API server beside others: its objects under names of their own, and a watch of what controllers write."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from lab.cluster.api import Api, ApiError
from lab.handle import PATIENCE, eventually
from situations.random_clusters import OWN, Cluster, Object
from situations.served import KINDS

CLASSES, CSI_NODES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/csinodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES, NODES, NAMESPACES = "/api/v1/persistentvolumes", "/api/v1/nodes", "/api/v1/namespaces"
PODS, CLAIMS, ACCOUNTS = "/api/v1/pods", "/api/v1/persistentvolumeclaims", "/api/v1/serviceaccounts"
# What controllers write.
WRITTEN = (VOLUMES, CLAIMS, PODS, ATTACHMENTS, NODES, ACCOUNTS)
# On every object without a namespace, so that those of a run are deleted together.
RUN = "oracle.test/run"
NOT_READY, KEPT_OFF = "node.kubernetes.io/not-ready", ("NoSchedule", "NoExecute")


# The conditions of a pod whose containers run.
_STARTED = ("Initialized", "Ready", "ContainersReady")
# Seconds of one watch, after which it is asked for again from where it ended.
WATCH = 30
# Requests to the API server at a time.
THREADS = 8


class WatchedObjects:
    """A collection as a watch in a thread of its own last saw it, of one run's objects only."""

    def __init__(self, api: Api, path: str, prefix: str) -> None:
        self._api, self._path, self._prefix = api, path, prefix
        self._objects: dict[str, Object] = {}
        self._error: BaseException | None = None
        self._stop = threading.Event()
        # When an object came, changed or went last.
        self._changed = time.monotonic()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def changed(self) -> float:
        self._alive()
        return self._changed

    def objects(self) -> dict[str, Object]:
        """By "namespace/name", of what has no namespace "/name"."""
        self._alive()
        return dict(self._objects)

    def stop(self) -> None:
        self._stop.set()

    def _alive(self) -> None:
        if self._error is not None:
            raise self._error

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                for kind, item in self._api.watch(self._path, seconds=WATCH):
                    self._note(kind, item)
        except BaseException as error:
            self._error = error

    def _note(self, kind: str, item: Object) -> None:
        if kind == "RESET":
            kept = {self._key(one): one for one in item["items"] if self._is_own(one)}
            versions = [{key: _version(one) for key, one in some.items()} for some in (kept, self._objects)]
            self._objects = kept
            if versions[0] != versions[1]:
                self._changed = time.monotonic()
        elif self._is_own(item):
            if kind == "DELETED":
                self._objects.pop(self._key(item), None)
            else:
                self._objects[self._key(item)] = item
            self._changed = time.monotonic()

    @staticmethod
    def _key(item: Object) -> str:
        return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"

    def _is_own(self, item: Object) -> bool:
        return is_of_run(item, self._prefix)


def is_of_run(item: Object, prefix: str) -> bool:
    """Whether an object belongs to the clusters of a run; the lab has others."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    reference, node = spec.get("claimRef") or {}, spec.get("nodeName", "")
    names = (metadata["name"], metadata.get("namespace", ""), reference.get("namespace", ""), node)
    return any(name.startswith(prefix) for name in names)


# What the readiness report lists.
_OWN = (
    "CSINode", "PersistentVolume", "PersistentVolumeClaim", "VolumeAttachment", "Pod", "Deployment", "StatefulSet",
    "DaemonSet", "ReplicaSet", "Job", "ControllerRevision", "Namespace", "ServiceAccount", "ResourceQuota", "LimitRange",
    "PodDisruptionBudget",
)  # fmt: skip
# Lists of few objects, of which any cluster may have those of the lab.
_SHARED = ("Node", "PriorityClass", "RuntimeClass", "StorageClass", "CSIDriver")


def make_windows_node(name: str, labels: Mapping[str, str], cpu: str) -> Object:
    """A node on which KWOK runs pods."""
    room = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), "")
    info |= {"containerRuntimeVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.3"}
    own_labels = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": name, **labels}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": own_labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {
            "capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True", "reason": "r"}],
            "nodeInfo": {**info, "operatingSystem": "windows", "architecture": "amd64"},
        },
    }  # fmt: skip


def run_pods_with_claims(api: Api, pods: Iterable[Object]) -> None:
    """As a kubelet: start pods with claims on their nodes, which KWOK leaves alone, and end those that are deleted."""
    for pod in pods:
        metadata, volumes = pod["metadata"], pod["spec"].get("volumes") or ()
        if not pod["spec"].get("nodeName") or not any("persistentVolumeClaim" in volume for volume in volumes):
            continue
        path = f"{NAMESPACES}/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            api.gone(f"{path}?gracePeriodSeconds=0")
        elif pod["status"]["phase"] == "Pending":
            conditions = [
                *pod["status"].get("conditions", ()),
                *({"type": name, "status": "True"} for name in _STARTED),
            ]
            try:
                api.patch(f"{path}/status", {"status": {"phase": "Running", "conditions": conditions}})
            except ApiError as error:
                if error.status != 404:
                    raise


def read_objects(api: Api, prefix: str) -> tuple[Object, ...]:
    """What the readiness report reads of a run."""
    objects: list[Object] = []
    for name in (*_OWN, *_SHARED):
        kind = KINDS[name]
        for item in api.items(kind.path()):
            if name in _SHARED or is_of_run(item, prefix):
                for key in ("managedFields", "resourceVersion"):
                    item["metadata"].pop(key, None)
                objects.append({"apiVersion": kind.api_version, "kind": name, **item})
    return tuple(objects)


def _version(item: Object) -> tuple[str, str]:
    return item["metadata"]["uid"], item["metadata"]["resourceVersion"]


def for_each_cluster(do: Callable[[CreatedCluster], None], lived: Sequence[CreatedCluster]) -> None:
    """For several clusters at a time."""
    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(do, one) for one in lived]:
            future.result()


class CreatedCluster:
    """A cluster on the API server, under a prefix of its own within that of its run."""

    def __init__(self, api: Api, cluster: Cluster, run: str, number: int) -> None:
        self._api, self.cluster, self._run = api, cluster, run
        self._prefix = f"{run}{number}-"
        self.namespace = f"{self._prefix}x"

    def _own(self, thing: Object, kind: str, version: str = "v1") -> Object:
        found: Object = json.loads(json.dumps(thing).replace(OWN, self._prefix))
        return {"apiVersion": version, "kind": kind, **found}

    def classes(self) -> dict[str, Object]:
        """Its StorageClasses by name."""
        made = [self._own(one, "StorageClass", "storage.k8s.io/v1") for one in self.cluster.classes]
        return {one["metadata"]["name"]: one for one in made}

    def create(self) -> None:
        storage = "storage.k8s.io/v1"
        space = f"{NAMESPACES}/{self.namespace}"
        self._api.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        for path, kind, version, things in (
            (NODES, "Node", "v1", self.cluster.nodes),
            (CSI_NODES, "CSINode", storage, self.cluster.csi_nodes),
            (CLASSES, "StorageClass", storage, self.cluster.classes),
            (VOLUMES, "PersistentVolume", "v1", self.cluster.volumes),
            (f"{space}/persistentvolumeclaims", "PersistentVolumeClaim", "v1", self.cluster.claims),
            (ATTACHMENTS, "VolumeAttachment", storage, self.cluster.attachments),
        ):
            for thing in things:
                made = self._own(thing, kind, version)
                made["metadata"].setdefault("labels", {})[RUN] = self._run
                if kind == "Node" and not _is_ready(made):
                    # The controller adds the second one to a node every ten seconds and no sooner.
                    made["spec"]["taints"] += [{"key": NOT_READY, "effect": effect} for effect in KEPT_OFF]
                self._api.post(path, made)

    def settled(self, accounts: Mapping[str, Object], nodes: Mapping[str, Object]) -> bool:
        """Whether its namespace can hold pods, and its nodes carry the taints that their state asks for."""
        if f"{self.namespace}/default" not in accounts:
            return False
        for thing in self.cluster.nodes:
            node = nodes.get(f"/{self._own(thing, 'Node')['metadata']['name']}")
            if node is None:
                return False
            keys = {(one["key"], one["effect"]) for one in node["spec"].get("taints") or ()}
            out = {(NOT_READY, effect) for effect in KEPT_OFF}
            ready = _is_ready(thing)
            if bool(keys & out) == ready or (not ready and not out <= keys):
                return False
            if thing["spec"].get("unschedulable", False) != (
                ("node.kubernetes.io/unschedulable", "NoSchedule") in keys
            ):
                return False
        return True

    def nodes(self, index: Index) -> int:
        return sum(index.bit[self._own(one, "Node")["metadata"]["name"]] for one in self.cluster.nodes)

    def key(self, number: int) -> str:
        return f"{self.namespace}/{self.pod(number)['metadata']['name']}"

    def path(self, number: int) -> str:
        return f"{NAMESPACES}/{self.namespace}/pods/{self.pod(number)['metadata']['name']}"

    def pod(self, number: int) -> Object:
        return self._own(self.cluster.pods[number], "Pod")

    def placed_pod(self, number: int) -> Object:
        """A pod as the API server keeps it."""
        pod = self.pod(number)
        pod["metadata"]["namespace"] = self.namespace
        return pod

    @property
    def claim(self) -> str:
        """The name of its only claim."""
        return str(self._own(self.cluster.claims[0], "")["metadata"]["name"])

    def claim_again(self) -> None:
        """Delete the only claim, and create it again."""
        path = f"{NAMESPACES}/{self.namespace}/persistentvolumeclaims"
        claim = self._own(self.cluster.claims[0], "PersistentVolumeClaim")
        name = f"{path}/{self.claim}"
        self._api.gone(name)
        eventually(lambda: not self._api.ok(name), "the claim is gone")
        self._api.post(path, claim)

    def start(self, number: int) -> None:
        self._api.post(f"{NAMESPACES}/{self.namespace}/pods", self.pod(number))

    def remove(self) -> None:
        """Take its namespace away with what is in there; no kubelet ends its pods."""
        space = f"{NAMESPACES}/{self.namespace}"
        self._api.request("DELETE", f"{space}/pods?gracePeriodSeconds=0", timeout=PATIENCE)
        self._api.gone(space)


def _is_ready(node: Object) -> bool:
    return bool(node["status"]["conditions"][0]["status"] == "True")
