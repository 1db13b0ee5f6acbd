# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random clusters side by side in one API server, and what the real scheduler does with their pods.

A cluster is a few nodes with a label of their own, which every pod of that cluster selects; classes and volumes have names
of their own. So many clusters are evaluated from one snapshot, and their pods are created at the same moment.
"""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.persistent_volume_controller import (
    PersistentVolumeController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.cluster import ObservedCluster
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedClass, ObservedVolume
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import PodToStart
from integration.kube import connect
from integration.oracle_cluster import (
    ACCOUNTS,
    ATTACHMENTS,
    CLAIMS,
    CLASSES,
    CSI_NODES,
    NODES,
    PODS,
    RUN,
    VOLUMES,
    WRITTEN,
    CreatedCluster,
    WatchedObjects,
    for_each_cluster,
    read_objects,
)
from lab.cluster.api import Api, ApiError
from lab.handle import PATIENCE, eventually
from situations.random_clusters import DRIVER, OWN, TOPOLOGY, Cluster, Object, affinity, list_cuts
from situations.recorded_answers import PlacedPod, PodPrediction, PodPredictor, Recording, to_pod_to_start
from situations.smaller import smallest


@dataclass
class Disagreement:
    """A pod for which our prediction and the scheduler differ."""

    cluster: Cluster
    pod: int
    hopeful: bool
    reported: str
    placed: str

    def __str__(self) -> str:
        shown = {key: value for key, value in vars(self.cluster).items() if value and key not in ("seed", "pods")}
        shown["pods"] = self.cluster.pods[: self.pod + 1]
        more = "more" if self.hopeful else "less"
        return (
            f"seed {self.cluster.seed}, pod {self.pod}: we are {more} hopeful\n{self.reported}\n"
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


class SchedulingOracle:
    """Clusters on a real control plane. records: keep what is compared in recordings."""

    def __init__(self, api: Api, kubeconfig: str, records: bool = False) -> None:
        self._api, self._client = api, connect(kubeconfig)
        self._records = records
        self.recordings: list[Recording] = []
        self._runs, self._own = 0, uuid.uuid4().hex[:6]
        self._prefix = ""
        self._made: set[str] = set()
        self._watched: dict[str, WatchedObjects] = {}
        self._classes: dict[str, Object] = {}

    def run(self, clusters: Sequence[Cluster]) -> Tally:
        """Create these clusters and their pods, one pod of each at a time, and compare."""
        tally = Tally(clusters=len(clusters))
        lived = self._begin(clusters)
        try:
            for_each_cluster(CreatedCluster.create, lived)
            self._until(lambda: self._settled(lived), "nodes and namespaces are there")
            self._at_rest()
            for number in range(max(len(one.cluster.pods) for one in lived)):
                self._round([one for one in lived if number < len(one.cluster.pods)], number, tally)
        finally:
            self._end(lived)
        return tally

    def _begin(self, clusters: Sequence[Cluster]) -> list[CreatedCluster]:
        """Names of their own for these clusters, and watches of what controllers write."""
        self._runs += 1
        # Namespaces of an earlier run may still be going away.
        self._prefix = f"o{self._own}r{self._runs}x"
        self._watched = {path: WatchedObjects(self._api, path, self._prefix) for path in WRITTEN}
        lived = [CreatedCluster(self._api, one, self._prefix, number) for number, one in enumerate(clusters)]
        self._classes = {item["metadata"]["name"]: item for item in self._api.items(CLASSES)}
        self._classes |= {name: found for one in lived for name, found in one.classes().items()}
        return lived

    def _end(self, lived: Sequence[CreatedCluster]) -> None:
        """Take everything of this run away."""
        for watched in self._watched.values():
            watched.stop()
        for_each_cluster(CreatedCluster.remove, lived)
        for path in (ATTACHMENTS, VOLUMES, CLASSES, CSI_NODES, NODES):
            eventually(partial(self._deleted, path), f"{path} of this run are deleted", PATIENCE)

    def _deleted(self, path: str) -> bool:
        """Delete all of this run. A busy server ends the request after a minute with a part of them deleted."""
        try:
            self._api.request("DELETE", f"{path}?labelSelector={RUN}={self._prefix}", timeout=PATIENCE)
        except ApiError as error:
            if error.status != 504:
                raise
            return False
        return True

    def _settled(self, lived: Sequence[CreatedCluster]) -> bool:
        if any(
            one.get("status", {}).get("phase", "Pending") == "Pending"
            for one in self._watched[VOLUMES].objects().values()
        ):
            # The volume controller has not processed it yet.
            return False
        accounts, nodes = self._watched[ACCOUNTS].objects(), self._watched[NODES].objects()
        return all(one.settled(accounts, nodes) for one in lived)

    def _round(self, lived: Sequence[CreatedCluster], number: int, tally: Tally) -> None:
        snapshot = take(self._client)
        objects = read_objects(self._api, self._prefix) if self._records else ()
        index = Index(snapshot)
        predictor = PodPredictor(index)
        predicted = [(one, predictor.predict(one.placed_pod(number), one.nodes(index))) for one in lived]
        for_each_cluster(lambda one: one.start(number), lived)
        self._until_decided(predicted, number)
        self._at_rest()
        pods = self._watched[PODS].objects()
        pending = []
        answers = []
        for one, prediction in predicted:
            node = pods[one.key(number)]["spec"].get("nodeName", "")
            tally.pods += 1
            tally.placed += bool(node)
            tally.pending += not node
            tally.undecided += not prediction.good and one.nodes(index) & ~prediction.bad != 0
            if prediction.explain_error(index.bit.get(node, 0)):
                cluster = copy.deepcopy(one.cluster)
                tally.disagreements.append(Disagreement(cluster, number, not node, prediction.because, node))
            if not node:
                pending.append(one)
            seed = f"{one.cluster.seed} {number}"
            answers.append(PlacedPod(seed, one.placed_pod(number), index.list_names(one.nodes(index)), node))
        if self._records:
            taken_at = snapshot.taken_at.isoformat()
            self.recordings.append(Recording(taken_at, snapshot.cluster.kubernetes, objects, pods=tuple(answers)))
        for_each_cluster(lambda one: self._api.gone(one.path(number) + "?gracePeriodSeconds=0"), pending)
        self._at_rest()

    def _until_decided(self, predicted: Sequence[tuple[CreatedCluster, PodPrediction]], number: int) -> None:
        """Until each pod is on a node or refused; one that may still come gets a second chance."""
        deadline, alone = time.monotonic() + PATIENCE, 0.0
        while time.monotonic() < deadline:
            self._provision()
            pods = self._watched[PODS].objects()
            states = [_state(pods.get(one.key(number))) for one, dummy in predicted]
            if "" not in states:
                hoped = any(
                    prediction.good and state == "refused"
                    for (dummy, prediction), state in zip(predicted, states, strict=True)
                )
                if not hoped and "chosen" not in states:
                    return
                alone = alone or time.monotonic()
                if time.monotonic() - alone > SECOND_CHANCE:
                    return
            _pause()
        # A pod that the scheduler has not processed is pending, and would agree with "it cannot be placed".
        left = [one for (one, dummy), state in zip(predicted, states, strict=True) if not state]
        assert not left, "the scheduler left pods undecided\n" + "\n".join(self._shown(one, number) for one in left)

    def _shown(self, one: CreatedCluster, number: int) -> str:
        """A pod and the claims of its cluster, as they are."""
        claims = [
            found for key, found in self._watched[CLAIMS].objects().items() if key.startswith(f"{one.namespace}/")
        ]
        shown = [self._watched[PODS].objects().get(one.key(number)), *claims]
        return f"seed {one.cluster.seed}, pod {number}\n{yaml.safe_dump_all(shown)}"

    def _until(self, probe: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not probe():
            assert time.monotonic() < deadline, what
            _pause()

    def _at_rest(self) -> None:
        """Until controllers have written nothing for longer than one of their rounds."""
        deadline = time.monotonic() + PATIENCE
        since = time.monotonic()
        while time.monotonic() < deadline:
            self._provision()
            if time.monotonic() - max(since, *(one.changed for one in self._watched.values())) > REST:
                return
            _pause()
        raise AssertionError("the cluster does not come to rest")

    def _provision(self) -> None:
        """What the driver's own controller does: make a volume for a claim, where its pod goes."""
        for claim in self._watched[CLAIMS].objects().values():
            metadata, spec = claim["metadata"], claim["spec"]
            found = self._classes.get(spec.get("storageClassName") or "")
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
            "metadata": {
                "name": name,
                "labels": {RUN: self._prefix},
                "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER},
            },
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
                "csi": {
                    "driver": DRIVER,
                    "volumeHandle": name,
                    "volumeAttributes": {"storage.kubernetes.io/csiProvisionerIdentity": f"1-{DRIVER}"},
                },
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
        """The phase of the only claim of each cluster: those with another phase than predicted, and every prediction.

        The prediction precedes the volume controller. again: the claim is deleted when it is settled, so that its
        volume is Released, and created again; the prediction follows once the controller has processed the new one.
        """
        lived = self._begin(clusters)
        try:
            for_each_cluster(CreatedCluster.create, lived)
            self._at_rest()
            expected = [_before(copy.deepcopy(one.cluster)) for one in lived] if not again else []
            if again:
                for_each_cluster(CreatedCluster.claim_again, lived)
                self._at_rest()
                index = Index(take(self._client))
                expected = [_to_be(index, to_pod_to_start(one.placed_pod(0)), index.all) for one in lived]
            deadline = time.monotonic() + SECOND_CHANCE
            while (found := self._otherwise(lived, expected)) and time.monotonic() < deadline:
                _pause()
            return found, expected
        finally:
            self._end(lived)

    def _otherwise(self, lived: Sequence[CreatedCluster], expected: Sequence[str]) -> list[Object]:
        """The claims with another phase than predicted."""
        claims = self._watched[CLAIMS].objects()
        found: list[Object] = []
        for one, word in zip(lived, expected, strict=True):
            claim = claims[f"{one.namespace}/{one.claim}"]
            phase = claim["status"]["phase"]
            if word and (word == "Bound") != (phase == "Bound"):
                found.append({"expected": word, "is": phase, **vars(one.cluster)})
        return found

    # Making a disagreement small

    def shrink(self, found: Disagreement) -> Disagreement:
        """The same disagreement with less around it."""
        begun = Cluster(**{**vars(found.cluster), "pods": found.cluster.pods[: found.pod + 1]})

        def same(clusters: Sequence[Cluster]) -> list[bool]:
            several = [
                Cluster(**{**vars(one), "seed": f"{found.cluster.seed} {number}"})
                for number, one in enumerate(clusters)
            ]
            again = {
                one.cluster.seed
                for one in self.run(several).disagreements
                if one.hopeful == found.hopeful and one.pod == len(one.cluster.pods) - 1
            }
            return [one.seed in again for one in several]

        small = smallest(begun, same, list_cuts)
        return next((one for one in self.run([small]).disagreements if one.pod == len(small.pods) - 1), found)


# Longer than a round of the volume controller in the lab.
REST = 1.5
# Longer than the scheduler waits before it tries a refused pod again, which is at most ten seconds.
SECOND_CHANCE = 15.0


def _pause() -> None:
    """Leave the API server alone between two reads."""
    time.sleep(0.1)  # each loop ends by its result, or fails after PATIENCE or SECOND_CHANCE


def _state(pod: Object | None) -> str:
    """ "placed", "refused", "chosen" where a node waits for its volumes, or nothing before the scheduler has processed it."""
    if pod is None:
        return ""
    if pod["spec"].get("nodeName"):
        return "placed"
    if pod["spec"]["schedulerName"] != "default-scheduler":
        return "refused"
    status = pod.get("status", {})
    if any(one["type"] == "PodScheduled" and one["status"] == "False" for one in status.get("conditions") or ()):
        return "refused"
    return "chosen" if status.get("nominatedNodeName") else ""


def _before(cluster: Cluster) -> str:
    """The predicted phase of a cluster's only claim before the volume controller has processed it, or nothing."""
    metadata = {**cluster.claims[0]["metadata"], "namespace": f"{OWN}x"}
    claim = ObservedClaim.from_object({**cluster.claims[0], "metadata": metadata, "status": {"phase": "Pending"}})
    volumes = [
        {**one, "status": {"phase": "Released" if (one["spec"].get("claimRef") or {}).get("uid") else "Available"}}
        for one in cluster.volumes
    ]
    snapshot = Snapshot(
        taken_at=datetime.now(timezone.utc),
        cluster=ObservedCluster("v1.36.3"),
        nodes=tuple(map(ObservedNode.from_object, cluster.nodes)),
        classes=tuple(map(ObservedClass.from_object, cluster.classes)),
        volumes=tuple(map(ObservedVolume.from_object, volumes)),
        claims=(claim,),
    )
    index = Index(snapshot)
    pod = {**cluster.pods[0], "metadata": {**cluster.pods[0]["metadata"], "namespace": f"{OWN}x"}}
    return _to_be(index, to_pod_to_start(pod), index.all)


def _to_be(index: Index, pod: PodToStart, nodes: int) -> str:
    """The phase that a pod's only claim comes to, by the step that binds; empty where that is not known."""
    claims = Claims(index)
    words = {one.answer for one in PersistentVolumeController(index, claims)(pod, nodes)}
    [wanted] = claims.list_requests(pod)
    if "unknown" in words or wanted.claim is None:
        return ""
    if "yes" not in words:
        return "Pending"
    if wanted.bound:
        return "Bound"
    taken = (
        wanted.claim.volume or wanted.volume or (not claims.is_bound_late(wanted) and claims.find_candidates(wanted))
    )
    if not taken and not claims.is_bound_late(wanted):
        # The driver's own controller makes it at once.
        return "Bound"
    return "Bound" if taken else "Pending"
