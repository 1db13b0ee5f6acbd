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
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.cluster import ClusterSeen
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.nodes import NodeSeen
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.storage import (
    ClaimSeen,
    ClassSeen,
    VolumeSeen,
)
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.workloads import PodSeen
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.index import Index
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.observe import take
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.bind import Bind
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.provision import Provision
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.schedule import BEYOND, Schedule
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.words import Answer, PodToStart
from integration.kube import connect
from lab.cluster.api import Api, ApiError
from lab.handle import PATIENCE, eventually
from situations.random_clusters import DRIVER, OWN, TOPOLOGY, Cluster, Object, affinity, without_one

CLASSES, CSI_NODES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/csinodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES, NODES, NAMESPACES = "/api/v1/persistentvolumes", "/api/v1/nodes", "/api/v1/namespaces"


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


# On the API server


class Oracle:
    """Clusters on a real control plane."""

    def __init__(self, api: Api, kubeconfig: str) -> None:
        self._api, self._client = api, connect(kubeconfig)
        self._runs, self._own = 0, uuid.uuid4().hex[:6]
        self._prefix = ""
        self._made: set[str] = set()

    def run(self, clusters: Sequence[Cluster]) -> Tally:
        """Create these clusters and their pods, one pod of each at a time, and compare."""
        tally = Tally(clusters=len(clusters))
        lived = self._lived(clusters)
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

    def _lived(self, clusters: Sequence[Cluster]) -> list[_Living]:
        self._runs += 1
        # Namespaces of an earlier run may still be going away.
        self._prefix = f"o{self._own}r{self._runs}x"
        return [_Living(self._api, one, f"{self._prefix}{number}-") for number, one in enumerate(clusters)]

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
        # A pod that nobody looked at is pending whatever we say, and would agree with "it cannot be placed".
        assert "" not in states, f"the scheduler left {states.count('')} of {len(states)} pods undecided"

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
                if self._is_own(item)
            ]
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > REST:
                return
            time.sleep(PAUSE)
        raise AssertionError("the cluster does not come to rest")

    def _is_own(self, item: Object) -> bool:
        """Whether an object belongs to the clusters of this run; the lab has others."""
        metadata, reference = item["metadata"], item["spec"].get("claimRef") or {}
        names = (metadata["name"], metadata.get("namespace", ""), reference.get("namespace", ""))
        return any(name.startswith(self._prefix) for name in names)

    def _provision(self) -> None:
        """What the driver's own controller does: make a volume for a claim, where its pod goes."""
        classes = {one["metadata"]["name"]: one for one in self._api.items(CLASSES)}
        for claim in self._api.items("/api/v1/persistentvolumeclaims"):
            metadata, spec = claim["metadata"], claim["spec"]
            found = classes.get(spec.get("storageClassName") or "")
            if (
                not self._is_own(claim)
                or spec.get("volumeName")
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
                body["spec"]["nodeAffinity"] = affinity([rule])
        try:
            self._api.post(VOLUMES, body)
        except ApiError as error:
            if error.status != 409:
                raise

    # The volume controller

    def bound(self, clusters: Sequence[Cluster], again: bool = False) -> tuple[list[Object], list[str]]:
        """What becomes of the only claim of each cluster: those where we say another phase, and what we say of each.

        We say it before the volume controller has seen the claim. again: it is deleted when it is settled, so that its
        volume is Released, and created again; we say it once the controller has seen the new one.
        """
        lived = self._lived(clusters)
        for one in lived:
            one.create()
        try:
            self._at_rest()
            said = [_before(copy.deepcopy(one.cluster)) for one in lived] if not again else []
            if again:
                for one in lived:
                    one.claim_again()
                self._at_rest()
                index = Index(take(self._client))
                said = [_to_be(index, one.pod_to_start(0), index.all) for one in lived]
            found: list[Object] = []
            for one, word in zip(lived, said, strict=True):
                claim = self._api.items(f"{NAMESPACES}/{one.namespace}/persistentvolumeclaims")[0]
                phase = claim["status"]["phase"]
                if word and (word == "Bound") != (phase == "Bound"):
                    found.append({"said": word, "is": phase, **vars(one.cluster)})
            return found, said
        finally:
            for one in lived:
                one.remove()

    # Making a disagreement small

    def shrunk(self, found: Disagreement, tries: int = 12) -> Disagreement:
        """The same disagreement with less around it: all ways to leave one thing out are tried at once."""
        small = found
        for _tried in range(tries):
            pods = small.cluster.pods[: small.pod + 1]
            smaller = list(without_one(Cluster(**{**vars(small.cluster), "pods": pods})))
            again = self.run(smaller).disagreements
            same = [one for one in again if one.hopeful == small.hopeful and one.pod == len(one.cluster.pods) - 1]
            if not same:
                return small
            small = min(same, key=lambda one: len(json.dumps(vars(one.cluster))))
        return small


# Seconds between two looks at the API server; each loop ends by what it sees, or fails after PATIENCE.
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

    def pod_to_start(self, number: int) -> PodToStart:
        return _to_start(self.pod(number), self.namespace)

    def claim_again(self) -> None:
        """Delete the only claim, and create it again."""
        path = f"{NAMESPACES}/{self.namespace}/persistentvolumeclaims"
        claim = self._own(self.cluster.claims[0], "PersistentVolumeClaim")
        name = f"{path}/{claim['metadata']['name']}"
        self._api.gone(name)
        eventually(lambda: not self._api.ok(name), "the claim is gone")
        self._api.post(path, claim)

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


def _before(cluster: Cluster) -> str:
    """What is said of a cluster's only claim before the volume controller has seen it: its phase, or nothing."""
    metadata = {**cluster.claims[0]["metadata"], "namespace": f"{OWN}x"}
    claim = ClaimSeen.from_object({**cluster.claims[0], "metadata": metadata, "status": {"phase": "Pending"}})
    volumes = [
        {**one, "status": {"phase": "Released" if (one["spec"].get("claimRef") or {}).get("uid") else "Available"}}
        for one in cluster.volumes
    ]
    snapshot = Snapshot(
        taken_at=datetime.now(timezone.utc),
        cluster=ClusterSeen("v1.36.3"),
        nodes=tuple(map(NodeSeen.from_object, cluster.nodes)),
        classes=tuple(map(ClassSeen.from_object, cluster.classes)),
        volumes=tuple(map(VolumeSeen.from_object, volumes)),
        claims=(claim,),
    )
    index = Index(snapshot)
    return _to_be(index, _to_start(cluster.pods[0], f"{OWN}x"), index.all)


def _to_be(index: Index, pod: PodToStart, nodes: int) -> str:
    """The phase that a pod's only claim comes to, by the step that binds; empty where that is not known."""
    claims = Claims(index)
    words = {one.word for one in Bind(index, claims)(pod, nodes)}
    [wanted] = claims.of(pod)
    if "unknown" in words or wanted.claim is None:
        return ""
    if "ok" not in words:
        return "Pending"
    if wanted.bound:
        return "Bound"
    taken = wanted.claim.volume or wanted.volume or (not claims.waits(wanted) and claims.candidates(wanted))
    if not taken and not claims.waits(wanted):
        # The driver's own controller makes it at once.
        return "Bound"
    return "Bound" if taken else "Pending"


def _to_start(body: Object, namespace: str) -> PodToStart:
    body["metadata"]["namespace"] = namespace
    seen = PodSeen.from_object(body)
    return PodToStart(
        workload=f"Pod {seen.key}",
        namespace=seen.namespace,
        name=seen.name,
        placement=seen.placement,
        claims=tuple(f"{seen.namespace}/{name}" for name in seen.volumes.claims),
        made=seen.volumes.ephemeral,
        inline=seen.volumes.inline,
    )


def _judged(index: Index, steps: Iterable[Any], one: _Living, number: int) -> tuple[int, int, str]:
    """Nodes that a pod can be scheduled on, those that it cannot, and why."""
    pod = one.pod_to_start(number)
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
