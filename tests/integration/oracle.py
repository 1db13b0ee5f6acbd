# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random clusters side by side in one API server, and what the real scheduler does with their pods.

A cluster is a few nodes with a label of their own, which every pod of that cluster selects; classes and volumes have names
of their own. So many clusters are judged from one snapshot, and their pods are created at the same moment.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.readiness_pass import take
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.workloads import PodSeen
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.index import Index
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.bind import Bind
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.provision import Provision
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.schedule import BEYOND, Schedule
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.words import Answer, PodToStart
from integration.kube import connect
from lab.cluster.api import Api, ApiError
from lab.handle import PATIENCE

Object = dict[str, Any]
DRIVER = "disk.oracle.test"
TOPOLOGY = "topology.oracle.test/zone"
MARK = "oracle.test/cluster"
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
# Stands for a cluster's own prefix in every name.
OWN = "@"
CLASSES, CSI_NODES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/csinodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES, NODES, NAMESPACES = "/api/v1/persistentvolumes", "/api/v1/nodes", "/api/v1/namespaces"


@dataclass
class Cluster:
    """A cluster as API objects, their names with OWN in front. seed: it is made again from that."""

    seed: str
    nodes: list[Object] = field(default_factory=list)
    csi_nodes: list[Object] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    attachments: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)


@dataclass
class Disagreement:
    """A pod of which we and the scheduler say different things."""

    cluster: Cluster
    pod: int
    hopeful: bool
    told: str
    placed: str

    def __str__(self) -> str:
        shown = {key: value for key, value in vars(self.cluster).items() if value and key not in ("seed", "pods")}
        shown["pods"] = self.cluster.pods[: self.pod + 1]
        more = "more" if self.hopeful else "less"
        return (
            f"seed {self.cluster.seed}, pod {self.pod}: we are {more} hopeful\n{self.told}\n"
            f"scheduler: {self.placed or 'Pending'}\n{yaml.safe_dump(shown, sort_keys=False)}"
        )


@dataclass
class Tally:
    """What a run came to. pinned: pods that could go to one node only."""

    clusters: int = 0
    pods: int = 0
    placed: int = 0
    pending: int = 0
    undecided: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.clusters += other.clusters
        self.pods += other.pods
        self.placed += other.placed
        self.pending += other.pending
        self.undecided += other.undecided
        self.disagreements += other.disagreements


# Random clusters


def made(seed: str, pods: int = 10) -> Cluster:
    """A random cluster."""
    luck = random.Random(seed)
    found = Cluster(seed)
    for number in range(luck.randint(2, 5)):
        node = _node(luck, f"{OWN}n{number}")
        found.nodes.append(node)
        if luck.random() < 0.85:
            found.csi_nodes.append(_csi_node(luck, node))
    names = [one["metadata"]["name"] for one in found.nodes]
    for number in range(luck.randint(1, 3)):
        found.classes.append(_class(luck, f"{OWN}c{number}"))
    classes = [one["metadata"]["name"] for one in found.classes]
    some = [*classes, *classes, f"{OWN}static", ""]
    for number in range(luck.randint(2, 7)):
        name = f"{OWN}d{number}"
        volume = _volume(luck, f"{OWN}v{number}", some, names)
        found.claims.append(_claim(luck, name, some))
        if luck.random() < 0.6:
            _pair(luck, volume, found.claims[-1])
        found.volumes.append(volume)
        if luck.random() < 0.15 and "csi" in volume["spec"]:
            found.attachments.append(_attachment(f"{OWN}a{number}", volume, luck.choice(names)))
    for number in range(pods):
        found.pods.append(_pod(luck, f"{OWN}p{number}", found, names))
    return found


def _often(luck: random.Random, share: float) -> bool:
    return luck.random() < share


def _node(luck: random.Random, name: str) -> Object:
    zone = luck.choice("abc")
    labels = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": name, MARK: f"{OWN}x"}
    for key, share in ((ZONE, 0.75), (OLD_ZONE, 0.4), (TOPOLOGY, 0.7), ("topology.ebs.csi.aws.com/zone", 0.4)):
        if _often(luck, share):
            labels[key] = zone if _often(luck, 0.9) else luck.choice("abc")
    if _often(luck, 0.6):
        labels["disk"] = luck.choice(["ssd", "hdd"])
    if _often(luck, 0.5):
        labels["rank"] = luck.choice(["1", "2", "3", "x"])
    taints = []
    for key, value in (("os", "Windows"), ("team", luck.choice(["a", "b"])), ("bare", "")):
        if _often(luck, 0.2):
            effect = luck.choice(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
            taints.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    ready = _often(luck, 0.93)
    spec: Object = {"taints": taints}
    if _often(luck, 0.1):
        spec["unschedulable"] = True
    room = {"cpu": "100", "memory": "100Gi", "pods": "200"}
    condition = {"type": "Ready", "status": str(ready), "reason": "Told", "message": "told"}
    info = dict.fromkeys(
        (
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeProxyVersion",
        ),
        "",
    )
    info |= {"kubeletVersion": "v1.36.3", "operatingSystem": "windows", "architecture": "amd64"}
    status = {"capacity": room, "allocatable": room, "conditions": [condition], "nodeInfo": info}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _csi_node(luck: random.Random, node: Object) -> Object:
    drivers = []
    for driver, keys in ((DRIVER, [TOPOLOGY]), ("ebs.csi.aws.com", ["topology.ebs.csi.aws.com/zone"])):
        if not _often(luck, 0.8):
            continue
        entry: Object = {"name": driver, "nodeID": node["metadata"]["name"]}
        entry["topologyKeys"] = [key for key in keys if key in node["metadata"]["labels"]]
        if _often(luck, 0.7):
            entry["allocatable"] = {"count": luck.randint(1, 5)}
        drivers.append(entry)
    found: Object = {"metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": drivers}}
    if _often(luck, 0.5):
        found["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    return found


def _class(luck: random.Random, name: str) -> Object:
    provisioner = luck.choice([DRIVER, DRIVER, DRIVER, "kubernetes.io/no-provisioner"])
    found: Object = {"metadata": {"name": name}, "provisioner": provisioner}
    found["volumeBindingMode"] = "WaitForFirstConsumer" if _often(luck, 0.8) else "Immediate"
    if _often(luck, 0.3):
        key = luck.choice([ZONE, TOPOLOGY, "disk"])
        values = luck.sample("abc", 2) if key != "disk" else ["ssd"]
        found["allowedTopologies"] = [{"matchLabelExpressions": [{"key": key, "values": values}]}]
    return found


def _modes(luck: random.Random, more: int) -> list[str]:
    known = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]
    if _often(luck, 0.12):
        return ["ReadWriteOncePod"]
    return known[: luck.randint(1, more)] if _often(luck, 0.8) else luck.sample(known, 1)


def _volume(luck: random.Random, name: str, classes: Sequence[str], nodes: Sequence[str]) -> Object:
    spec: Object = {
        "capacity": {"storage": f"{luck.randint(1, 3)}Gi"},
        "accessModes": _modes(luck, 3),
        "storageClassName": luck.choice(classes),
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if _often(luck, 0.1):
        spec["volumeMode"] = "Block"
    labels: Object = {}
    if _often(luck, 0.3):
        labels[luck.choice([ZONE, OLD_ZONE])] = luck.choice(["a", "b", "c", "a__b", "a__b__c"])
    kind = luck.random()
    if kind < 0.65:
        spec["csi"] = {"driver": DRIVER, "volumeHandle": luck.choice([name, name, f"{OWN}shared"])}
    elif kind < 0.85:
        disk = f"vol-{name}" if _often(luck, 0.9) else name
        spec["awsElasticBlockStore"] = {"volumeID": luck.choice([f"aws://a/{disk}", disk])}
    else:
        spec["local"] = {"path": "C:\\data"}
        there = luck.choice([*nodes, f"{OWN}lost"])
        spec["nodeAffinity"] = _affinity([{"key": "kubernetes.io/hostname", "operator": "In", "values": [there]}])
    if "local" not in spec and _often(luck, 0.5):
        spec["nodeAffinity"] = _affinity(*[[_zone_rule(luck)] for _ in range(luck.randint(1, 2))])
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _zone_rule(luck: random.Random) -> Object:
    key = luck.choice([ZONE, ZONE, OLD_ZONE, TOPOLOGY, "disk"])
    if _often(luck, 0.15):
        return {"key": key, "operator": luck.choice(["Exists", "DoesNotExist"])}
    values = luck.sample("abc", luck.randint(1, 2)) if key != "disk" else ["ssd"]
    return {"key": key, "operator": luck.choice(["In", "In", "In", "NotIn"]), "values": values}


def _affinity(*terms: list[Object]) -> Object:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}


def _wish(luck: random.Random, classes: Sequence[str]) -> Object:
    spec: Object = {
        "accessModes": _modes(luck, 2),
        "resources": {"requests": {"storage": f"{luck.randint(1, 3)}Gi"}},
        "storageClassName": luck.choice(classes),
    }
    if _often(luck, 0.06):
        spec["volumeMode"] = "Block"
    return spec


def _claim(luck: random.Random, name: str, classes: Sequence[str]) -> Object:
    return {"metadata": {"name": name}, "spec": _wish(luck, classes)}


def _pair(luck: random.Random, volume: Object, claim: Object) -> None:
    """Let a claim and a volume know each other in one of the ways there are; mostly so that they fit."""
    mine, yours = volume["spec"], claim["spec"]
    if _often(luck, 0.85):
        yours["storageClassName"] = mine["storageClassName"]
        yours["accessModes"] = mine["accessModes"][:1]
        yours["resources"] = {"requests": {"storage": "1Gi"}}
        yours.pop("volumeMode", None)
        if "volumeMode" in mine:
            yours["volumeMode"] = mine["volumeMode"]
    how = luck.random()
    reference = {"namespace": f"{OWN}x", "name": claim["metadata"]["name"]}
    if how < 0.6:
        yours["volumeName"] = volume["metadata"]["name"]
    if 0.4 < how < 0.9:
        mine["claimRef"] = reference
    if how >= 0.9:
        mine["claimRef"] = {**reference, "uid": "00000000-0000-0000-0000-000000000001"}


def _attachment(name: str, volume: Object, node: str) -> Object:
    source = {"persistentVolumeName": volume["metadata"]["name"]}
    return {"metadata": {"name": name}, "spec": {"attacher": DRIVER, "nodeName": node, "source": source}}


def _pod(luck: random.Random, name: str, cluster: Cluster, nodes: Sequence[str]) -> Object:
    spec: Object = {
        "nodeSelector": {MARK: f"{OWN}x"},
        "containers": [{"name": "main", "image": "registry.example.com/main:1"}],
        "tolerations": [],
        "volumes": [],
    }
    if _often(luck, 0.25):
        spec["nodeSelector"] |= luck.choice(
            [{"disk": "ssd"}, {"disk": "hdd"}, {ZONE: "a"}, {"kubernetes.io/os": "windows"}]
        )
    for one in ({"key": "os", "value": "Windows", "effect": "NoSchedule"}, {"key": "team", "operator": "Exists"}):
        if _often(luck, 0.4):
            spec["tolerations"].append(one)
    if _often(luck, 0.15):
        spec["tolerations"].append(
            luck.choice(
                [
                    {"operator": "Exists"},
                    {"operator": "Exists", "effect": "NoSchedule"},
                    {"key": "bare", "operator": "Equal"},
                    {"key": "team", "value": "a", "effect": "NoExecute"},
                    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                ]
            )
        )
    terms = []
    if _often(luck, 0.25):
        terms = [
            {"matchExpressions": [_wanted_rule(luck) for _ in range(luck.randint(1, 2))]}
            for _ in range(luck.randint(1, 2))
        ]
    if _often(luck, 0.5):
        # To one node only: so what is said of each pair of a pod and a node is put to the test.
        pin = {"key": "metadata.name", "operator": "In", "values": [luck.choice(nodes)]}
        terms = [{**term, "matchFields": [pin]} for term in terms or [{}]]
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if _often(luck, 0.1):
        spec["os"] = {"name": "windows"}
    claims = [one["metadata"]["name"] for one in cluster.claims]
    for claim in luck.sample(claims, min(len(claims), luck.choice([0, 1, 1, 1, 2, 3]))):
        spec["volumes"].append({"name": claim[1:], "persistentVolumeClaim": {"claimName": claim}})
    if _often(luck, 0.15):
        some = [one["metadata"]["name"] for one in cluster.classes]
        template = {"volumeClaimTemplate": {"spec": _wish(luck, some)}}
        spec["volumes"].append({"name": "scratch", "ephemeral": template})
    if _often(luck, 0.08):
        disk = {"volumeID": luck.choice([f"vol-{OWN}i1", f"vol-{OWN}i2"])}
        spec["volumes"].append({"name": "inline", "awsElasticBlockStore": disk})
    if _often(luck, 0.03):
        spec["volumes"].append({"name": "gone", "persistentVolumeClaim": {"claimName": f"{OWN}gone"}})
    return {"metadata": {"name": name}, "spec": spec}


def _wanted_rule(luck: random.Random) -> Object:
    if _often(luck, 0.3):
        return {"key": "rank", "operator": luck.choice(["Gt", "Lt"]), "values": [luck.choice(["1", "2"])]}
    return _zone_rule(luck)


# On the API server


class Oracle:
    """Clusters on a real control plane."""

    def __init__(self, api: Api, kubeconfig: str) -> None:
        self._api, self._client = api, connect(kubeconfig)
        self._runs = 0
        self._made: set[str] = set()

    def run(self, clusters: Sequence[Cluster]) -> Tally:
        """Create these clusters and their pods, one pod of each at a time, and compare."""
        self._runs += 1
        tally = Tally(clusters=len(clusters))
        lived = [_Living(self._api, one, f"o{self._runs}x{number}-") for number, one in enumerate(clusters)]
        for one in lived:
            one.create()
        try:
            self._until(lambda: all(one.settled() for one in lived), "nodes and namespaces are there")
            self._at_rest()
            for number in range(max(len(one.cluster.pods) for one in lived)):
                self._round([one for one in lived if number < len(one.cluster.pods)], number, tally)
        finally:
            for one in lived:
                one.remove()
        return tally

    def _round(self, lived: Sequence[_Living], number: int, tally: Tally) -> None:
        index = Index(take(self._client))
        claims = Claims(index)
        steps = (Bind(index, claims), Provision(index, claims), Schedule(index, claims))
        judged = [(one, _judged(index, steps, one, number)) for one in lived]
        for one in lived:
            one.start(number)
        self._until_decided(judged, number)
        self._at_rest()
        pods = self._pods()
        for one, (good, bad, told) in judged:
            pod = pods[one.key(number)]
            node = pod["spec"].get("nodeName", "")
            tally.pods += 1
            tally.placed += bool(node)
            tally.pending += not node
            tally.undecided += not good and one.nodes(index) & ~bad != 0
            bit = index.bit.get(node, 0)
            if (node and bit & bad) or (not node and good):
                tally.disagreements.append(
                    Disagreement(copy.deepcopy(one.cluster), number, not node, told, node and f"{node}")
                )
            if not node:
                self._api.gone(one.path(number) + "?gracePeriodSeconds=0")
        self._at_rest()

    def _until_decided(self, judged: Sequence[tuple[_Living, tuple[int, int, str]]], number: int) -> None:
        """Until each pod is on a node or refused; one of which we say that it can be placed gets a second chance."""
        deadline, alone = time.monotonic() + PATIENCE, 0.0
        while time.monotonic() < deadline:
            self._provision()
            pods = self._pods()
            states = [_state(pods[one.key(number)]) for one, dummy in judged]
            if "" not in states:
                hoped = [said[0] for (dummy, said), state in zip(judged, states, strict=True) if state == "refused"]
                if not any(hoped):
                    return
                alone = alone or time.monotonic()
                if time.monotonic() - alone > SECOND_CHANCE:
                    return
            time.sleep(PAUSE)

    def _pods(self) -> dict[str, Object]:
        return {
            f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in self._api.items("/api/v1/pods")
        }

    def _until(self, look: Any, what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not look():
            assert time.monotonic() < deadline, what
            time.sleep(PAUSE)

    def _at_rest(self) -> None:
        """Until two looks at what controllers write, one of their rounds apart, are the same."""
        before: object = None
        deadline = time.monotonic() + PATIENCE
        since = time.monotonic()
        while time.monotonic() < deadline:
            self._provision()
            now = [
                (item["metadata"]["uid"], item["metadata"]["resourceVersion"])
                for path in (VOLUMES, "/api/v1/persistentvolumeclaims", "/api/v1/pods", ATTACHMENTS)
                for item in self._api.items(path)
            ]
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > REST:
                return
            time.sleep(PAUSE)
        raise AssertionError("the cluster does not come to rest")

    def _provision(self) -> None:
        """What the driver's own controller does: make a volume for a claim, where its pod goes."""
        classes = {one["metadata"]["name"]: one for one in self._api.items(CLASSES)}
        for claim in self._api.items("/api/v1/persistentvolumeclaims"):
            metadata, spec = claim["metadata"], claim["spec"]
            found = classes.get(spec.get("storageClassName") or "")
            if (
                spec.get("volumeName")
                or found is None
                or found["provisioner"] != DRIVER
                or "deletionTimestamp" in metadata
            ):
                continue
            annotations = metadata.get("annotations") or {}
            if annotations.get("volume.kubernetes.io/storage-provisioner") != DRIVER:
                continue
            node = annotations.get("volume.kubernetes.io/selected-node", "")
            if found["volumeBindingMode"] == "WaitForFirstConsumer" and not node:
                continue
            if metadata["uid"] not in self._made:
                self._made.add(metadata["uid"])
                self._make(claim, node)

    def _make(self, claim: Object, node: str) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        body: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
                "csi": {"driver": DRIVER, "volumeHandle": name},
            },
        }
        if node:
            labels = self._api.get(f"{NODES}/{node}")["metadata"]["labels"]
            if TOPOLOGY in labels:
                rule = {"key": TOPOLOGY, "operator": "In", "values": [labels[TOPOLOGY]]}
                body["spec"]["nodeAffinity"] = _affinity([rule])
        try:
            self._api.post(VOLUMES, body)
        except ApiError as error:
            if error.status != 409:
                raise

    # Making a disagreement small

    def shrunk(self, found: Disagreement, tries: int = 12) -> Disagreement:
        """The same disagreement with less around it: all ways to leave one thing out are tried at once."""
        small = found
        for _tried in range(tries):
            pods = small.cluster.pods[: small.pod + 1]
            smaller = list(_without_one(Cluster(**{**vars(small.cluster), "pods": pods})))
            again = self.run(smaller).disagreements
            same = [one for one in again if one.hopeful == small.hopeful and one.pod == len(one.cluster.pods) - 1]
            if not same:
                return small
            small = min(same, key=lambda one: len(json.dumps(vars(one.cluster))))
        return small


# Between two looks at the API server.
PAUSE = 0.1
# Longer than a round of the volume controller in the lab.
REST = 1.5
# Longer than the scheduler waits before it tries a refused pod again, which is at most ten seconds.
SECOND_CHANCE = 15.0


def _state(pod: Object) -> str:
    """ "placed", "refused", or nothing while the scheduler has not looked at it."""
    if pod["spec"].get("nodeName"):
        return "placed"
    conditions = pod.get("status", {}).get("conditions") or []
    refused = any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
    return "refused" if refused else ""


def _without_one(cluster: Cluster) -> Iterator[Cluster]:
    for part in ("nodes", "csi_nodes", "classes", "volumes", "claims", "attachments", "pods"):
        things = getattr(cluster, part)
        for number in range(len(things) - (part == "pods")):
            smaller = copy.deepcopy(cluster)
            del getattr(smaller, part)[number]
            yield smaller
        for number, thing in enumerate(things):
            for path in _removable(thing):
                smaller = copy.deepcopy(cluster)
                at = getattr(smaller, part)[number]
                for key in path[:-1]:
                    at = at[key]
                del at[path[-1]]
                yield smaller


def _removable(thing: Object) -> Iterator[tuple[Any, ...]]:
    spec = thing.get("spec") or {}
    for key in ("unschedulable", "nodeAffinity", "affinity", "os", "volumeMode", "claimRef", "volumeName"):
        if key in spec and not (key == "nodeAffinity" and "local" in spec):
            yield ("spec", key)
    for key in ("taints", "tolerations", "volumes", "drivers"):
        for number in range(len(spec.get(key) or ())):
            yield ("spec", key, number)
    for key in thing["metadata"].get("labels") or ():
        if key != MARK:
            yield ("metadata", "labels", key)
    if "allowedTopologies" in thing:
        yield ("allowedTopologies",)


class _Living:
    """A cluster on the API server, under a prefix."""

    def __init__(self, api: Api, cluster: Cluster, prefix: str) -> None:
        self._api, self.cluster, self._prefix = api, cluster, prefix
        self.namespace = f"{prefix}x"

    def _own(self, thing: Object, kind: str, version: str = "v1") -> Object:
        found: Object = json.loads(json.dumps(thing).replace(OWN, self._prefix))
        return {"apiVersion": version, "kind": kind, **found}

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
                self._api.post(path, self._own(thing, kind, version))

    def settled(self) -> bool:
        """Whether its namespace can hold pods, and its nodes carry the taints that their state asks for."""
        if not self._api.ok(f"{NAMESPACES}/{self.namespace}/serviceaccounts/default"):
            return False
        for thing in self.cluster.nodes:
            node = self._api.get(f"{NODES}/{self._own(thing, 'Node')['metadata']['name']}")
            keys = {(one["key"], one["effect"]) for one in node["spec"].get("taints") or ()}
            ready = thing["status"]["conditions"][0]["status"] == "True"
            out = {("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute")}
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

    def start(self, number: int) -> None:
        self._api.post(f"{NAMESPACES}/{self.namespace}/pods", self.pod(number))

    def remove(self) -> None:
        """Take everything away that has a name of this cluster's; what a provisioner made goes with its claims."""
        space = f"{NAMESPACES}/{self.namespace}"
        for pod in self._api.items(f"{space}/pods"):
            self._api.gone(f"{space}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
        self._api.request("DELETE", f"{space}/persistentvolumeclaims")
        for path, things in (
            (ATTACHMENTS, self.cluster.attachments),
            (VOLUMES, self.cluster.volumes),
            (CLASSES, self.cluster.classes),
            (CSI_NODES, self.cluster.csi_nodes),
            (NODES, self.cluster.nodes),
        ):
            for thing in things:
                self._api.gone(f"{path}/{self._own(thing, '')['metadata']['name']}")
        self._api.request("DELETE", space)


def _judged(index: Index, steps: Iterable[Any], one: _Living, number: int) -> tuple[int, int, str]:
    """Nodes that a pod can be scheduled on, those that it cannot, and why."""
    body = one.pod(number)
    body["metadata"]["namespace"] = one.namespace
    seen = PodSeen.from_object(body)
    pod = PodToStart(
        workload=f"Pod {seen.key}",
        namespace=seen.namespace,
        name=seen.name,
        placement=seen.placement,
        claims=tuple(f"{seen.namespace}/{name}" for name in seen.volumes.claims),
        made=seen.volumes.ephemeral,
        inline=seen.volumes.inline,
    )
    nodes = one.nodes(index)
    good, bad, told = nodes, 0, []
    for step in steps:
        answers: list[Answer] = step(pod, nodes)
        for about in {answer.volume for answer in answers}:
            covered = [answer.nodes for answer in answers if answer.volume == about]
            assert sum(covered) == nodes, f"{step} does not cover each node once"
        for answer in answers:
            if answer.word == "blocked" and not answer.because.startswith(BEYOND):
                bad |= answer.nodes
            if answer.word != "ok":
                if not answer.because.startswith(BEYOND):
                    good &= ~answer.nodes
                told.append(f"{answer.step} {answer.word} on {', '.join(index.names(answer.nodes))}: {answer.because}")
    return good, bad, "\n".join([f"ok on {', '.join(index.names(good)) or 'none'}", *told])
