# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The third step: on which nodes does the scheduler put a pod. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/plugins: nodeaffinity, nodename,
nodeunschedulable, tainttoleration, volumebinding, volumezone, volumerestrictions and nodevolumelimits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import (
    REGIONS,
    ZONES,
    TranslationError,
    parse_ebs_id,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import Taint
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.placement import (
    ANYWHERE,
    Requirement,
    Term,
    Toleration,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedClass, ObservedVolume
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index, accepted, union
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import found
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.usage import Workload
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import (
    Claims,
    Request,
    provisioner,
    reachable,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.limits import Limits, Starting
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.split import Split
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import SPEC_OS, Answer, PodToStart

# By field of an in-tree volume, the label for its zone once the scheduler translates it, which it does on nodes whose
# CSINode names the plugin (https://github.com/kubernetes/csi-translation-lib, plugins; binder.go, tryTranslatePVToCSI).
_TRANSLATED = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "topology.gke.io/zone"),
    "cinder": ("kubernetes.io/cinder", "topology.cinder.csi.openstack.org/zone"),
}
# What begins the reasons that are not the scheduler's: it puts the pod there, and the kubelet does not start it.
BEYOND = (SPEC_OS, "the node is not Ready")
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# Admission gives every pod the first two, and the DaemonSet controller all of them to its pods.
_GIVEN = tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoExecute") for key in ("not-ready", "unreachable")
)
_OF_DAEMONS = _GIVEN + tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoSchedule")
    for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
_OPERATORS = ("Equal", "Exists")


class Schedule:
    """The step for one snapshot."""

    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims, self._limits = index, claims, Limits(index, claims)
        self._taints: dict[tuple[Taint, ...], int] = defaultdict(int)
        for node in index.node_list:
            self._taints[node.taints] |= index.bit[node.name]
        self._cordoned = sum(index.bit[node.name] for node in index.node_list if node.cordoned)
        self._not_ready = sum(index.bit[node.name] for node in index.node_list if not node.ready)
        self._going = frozenset(one.name for one in index.snapshot.namespaces if one.phase == "Terminating")
        self._moves: dict[str, int] = {}
        self._spread: dict[str, tuple[str, ...]] = {}

    def __call__(self, pod: PodToStart, nodes: int) -> list[Answer]:
        """Where the scheduler puts a pod, of nodes: by the pod itself, and by each of its volumes."""
        maker = partial(_finding, pod)
        split = Split("schedule", nodes, maker)
        if pod.node:
            self._bound(pod, split)
        else:
            self._by_itself(pod, split)
            self._limits.narrow(pod, split)
            self._system(pod, split)
            what = "the node is not Ready"
            split.blocked(self._not_ready, "CSI-W20", what, "check the conditions of the node")
        answers = split.answers("the scheduler may put it there")
        for one in self._claims.of(pod):
            split = Split("schedule", nodes, maker, one.volume_key)
            because = self._reach(one, pod, split)
            answers += split.answers(because)
        return answers

    def together(self, workload: Workload, places: Sequence[tuple[PodToStart, int]]) -> Finding | None:
        """That nodes take each of a workload's pods, and not the volumes of all of them. places: its pods, each with its nodes."""
        pods, nodes = [pod for pod, dummy in places], union(nodes for dummy, nodes in places)
        if sum(pod.count for pod in pods) < 2 or workload.kind == "DaemonSet":
            return None
        short = self._limits.too_many(pods, workload.pods, nodes)
        if short is None:
            return None
        driver, number, room = short
        what = f"its pods need {number} volumes of {driver}, and the nodes that accept them can attach {room}"
        evidence = tuple(f"Node {node.name}" for node in self._index.each(nodes))[:3]
        return found("CSI-N33", workload.key, what, evidence, "add nodes, or let fewer pods run", "blocker")

    def crowded(self, some: Sequence[Starting]) -> Iterator[tuple[tuple[str, ...], Finding]]:
        """Workloads of which each fits on its nodes by itself, and not all of them together."""
        for one in self._limits.crowded(some):
            what = f"{listed(one.workloads, 3)} need {one.needed} volumes of {one.driver} together"
            what += f", and the nodes that accept them can attach {one.room}"
            evidence = tuple(f"Node {node.name}" for node in self._index.each(one.nodes))[:3]
            about = f"Windows nodes, driver {one.driver}"
            remedy = "add nodes, or let fewer pods run"
            yield one.workloads, found("CSI-N33", about, what, evidence, remedy, "blocker")

    # The pod itself

    def _bound(self, pod: PodToStart, split: Split) -> None:
        """A pod that names its node: no scheduler is asked, and the kubelet refuses what does not fit."""
        here = self._index.bit.get(pod.node, 0)
        what = f"the pod is bound to node {pod.node}"
        split.blocked(split.nodes & ~here, "CSI-W20", what, "delete the pod, so that the scheduler places a new one")
        self._kept_off(pod, split, ("NoExecute",))
        self._fitting(pod, split)
        self._system(pod, split)

    def _by_itself(self, pod: PodToStart, split: Split) -> None:
        index, placement = self._index, pod.placement
        if placement.scheduler:
            what = f"spec.schedulerName is {placement.scheduler}, whose rules are unknown"
            split.unknown(split.nodes, "CSI-W21", what, "check the events of its pods")
        if placement.gated:
            what = "the pod has schedulingGates, and waits until a controller removes them"
            split.unknown(split.nodes, "CSI-W21", what, "find the controller that removes the gates")
        self._fitting(pod, split)
        self._kept_off(pod, split, ("NoSchedule", "NoExecute"))
        if not accepted(_UNSCHEDULABLE, self._tolerations(pod)):
            what = "the node is cordoned"
            split.blocked(self._cordoned, "CSI-W20", what, "kubectl uncordon the node")
        if pod.namespace in self._going:
            what = f"namespace {pod.namespace} is being deleted and accepts no new pod"
            remedy = "wait for the deletion, then recreate the namespace and its workloads"
            split.blocked(split.nodes, "CSI-W20", what, remedy)
        if "nodes" in index.unread:
            what = "nodes could not be read"
            split.unread("CSI-W21", "nodes", what)

    def _fitting(self, pod: PodToStart, split: Split) -> None:
        index, placement = self._index, pod.placement
        added = index.runtime_classes.get(placement.runtime_class)
        if placement.runtime_class and added is None:
            if "runtimeclasses" in index.unread:
                what = "runtime classes could not be read"
                split.unread("CSI-W21", "runtimeclasses", what)
            else:
                what = f"RuntimeClass {placement.runtime_class} does not exist, so its pods are rejected"
                split.blocked(split.nodes, "CSI-W20", what, "create the RuntimeClass, or correct the workload")
        for by, selector in (("nodeSelector", placement.selector), ("RuntimeClass", (added or ANYWHERE).selector)):
            for key, value in selector:
                what = f"{by} {key}={value} does not match the node's labels"
                outside = index.all & ~index.with_label(key, value)
                split.blocked(outside, "CSI-W20", what, "label the nodes, or change the selector")
        if placement.terms is not None:
            outside = index.all & ~index.matching(placement.terms, exact=True)
            what = "its required node affinity does not match the node"
            split.blocked(outside, "CSI-W20", what, "label the nodes, or change the affinity")

    def _tolerations(self, pod: PodToStart) -> tuple[Toleration, ...]:
        added = self._index.runtime_classes.get(pod.placement.runtime_class, ANYWHERE).tolerations
        given = _OF_DAEMONS if pod.workload.startswith("DaemonSet ") else _GIVEN
        return pod.placement.tolerations + added + given

    def _kept_off(self, pod: PodToStart, split: Split, effects: tuple[str, ...]) -> None:
        tolerations = self._tolerations(pod)
        known = tuple(one for one in tolerations if one.operator in _OPERATORS)
        for taints, nodes in self._taints.items():
            for taint in taints:
                if not nodes & split.nodes or taint.effect not in effects or accepted(taint, known):
                    continue
                shown = f"{taint.key}={taint.value}" if taint.value else taint.key
                compared = [one for one in tolerations if one.operator not in _OPERATORS and one.key == taint.key]
                if compared:
                    what = f"its toleration of taint {shown}:{taint.effect} has operator {compared[0].operator}, expected Equal or Exists"
                    split.unknown(nodes, "CSI-W21", what, "use operator Equal or Exists")
                    continue
                what = f"taint {shown}:{taint.effect} is not tolerated"
                remedy = "add a toleration to its pods, or remove the taint when its cause is fixed"
                split.blocked(nodes, "CSI-W20", what, remedy)

    def _system(self, pod: PodToStart, split: Split) -> None:
        """spec.os: the scheduler ignores it, and the kubelet refuses a pod of the other system."""
        os = pod.placement.os
        if os and (other := self._index.linux if os == "windows" else self._index.windows):
            what = f"{SPEC_OS}{os}, and a kubelet of the other operating system rejects its pod"
            split.blocked(other, "CSI-W20", what, f"add nodeSelector kubernetes.io/os={os}")

    # Its volumes

    def _reach(self, one: Request, pod: PodToStart, split: Split) -> str:
        index, claim, volume = self._index, one.claim, one.volume
        if one.missing:
            return "the claim does not exist"
        if volume is None and not claim.volume and one.open and not self._claims.waits(one):
            some = self._claims.candidates(one)
            volume = some[0] if some else None
            reaches = {reachable(index, other) for other in some}
            if len(reaches) > 1:
                what = "several volumes fit, and different nodes reach them"
                split.unknown(split.nodes, "CSI-W21", f"{one.volume_key}: {what}", "set spec.volumeName in the claim")
                return ""
        if volume is not None:
            self._places(one, volume, pod, split)
            return f"volume {volume.name} is reachable there"
        # If the node is gone, the external-provisioner asks the scheduler for another one
        # (https://github.com/kubernetes-csi/external-provisioner, pkg/controller/controller.go, prepareProvision).
        if claim.selected_node in index.bit and self._claims.waits(one):
            outside = index.all & ~index.bit.get(claim.selected_node, 0)
            what = f"{one.volume_key}: the scheduler has selected node {claim.selected_node} for its volume"
            remedy = f"if provisioning hangs: kubectl -n {claim.namespace} annotate pvc {claim.name} volume.kubernetes.io/selected-node-"
            split.blocked(outside, "CSI-W20", what, remedy)
            return "the scheduler has chosen the node"
        if not one.open or self._claims.waits(one):
            self._chosen(one, pod, split)
            return "its volume is selected or provisioned where the pod goes"
        self._made_anywhere(one, split)
        return "its volume is reachable wherever it is provisioned"

    def _chosen(self, one: Request, pod: PodToStart, split: Split) -> None:
        """Free volumes that the scheduler chooses on a node and does not bind there.

        It chooses the smallest by node affinity as written, and translates it before it binds the volume (binder.go,
        checkBindings). Another open claim of the pod can take the smallest one.
        """
        others = sum(each.open for each in self._claims.of(pod)) > 1
        left = self._index.all
        for dummy, alike in groupby(self._claims.candidates(one) if one.open else (), key=lambda volume: volume.size):
            some = list(alike)
            reached = [reachable(self._index, volume) & left for volume in some]
            bound = [nodes & self._bindable(volume) for nodes, volume in zip(reached, some, strict=True)]
            for volume, nodes, good in zip(some, reached, bound, strict=True):
                what = f"{one.volume_key}: volume {volume.name} fits, but its node affinity or labels, translated for CSI, do not match the node"
                remedy = "name another volume in the claim's spec.volumeName, or correct the zone of the volume"
                lost = 0 if others else nodes & ~good & ~union(bound)
                split.blocked(lost, "CSI-W20", what, remedy)
                split.unknown(nodes & ~good & ~lost, "CSI-W21", what, remedy)
            left &= ~union(reached)

    def _bindable(self, volume: ObservedVolume) -> int:
        """The nodes on which the scheduler binds a volume."""
        nodes = self._affine(volume)
        return nodes if _translatable(volume) else nodes & ~self._moved(_TRANSLATED[volume.source.field][0])

    def _places(self, one: Request, volume: ObservedVolume, pod: PodToStart, split: Split) -> None:
        index = self._index
        outside = index.all & ~self._affine(volume)
        local = volume.source.field == "local"
        if not _translatable(volume) and self._moved(_TRANSLATED[volume.source.field][0]):
            what = f"{one.volume_key}: volumeID {volume.source.handle} of volume {volume.name} is not an AWS volume ID, expected vol-... or aws://zone/vol-..."
            # The scheduler gives a pod up at such a node, unless something else keeps the pod off it before.
            remedy = (
                "recreate the PersistentVolume with the volume ID of AWS; until then the scheduler rejects its pods"
            )
            moved = self._moved(_TRANSLATED[volume.source.field][0])
            split.blocked(moved, "CSI-W20", what, remedy)
            split.unknown(split.nodes, "CSI-W21", what, remedy)
        if outside & split.nodes:
            what = f"{one.volume_key}: nodeAffinity of volume {volume.name} does not match the node"
            remedy = "add a node that reaches the volume, or copy the data to another volume"
            if local and not self._affine(volume):
                what = f"{one.volume_key}: volume {volume.name} is a disk of a deleted node"
                remedy = "add the node again with the same name, or restore the data to another volume"
            split.blocked(outside, "CSI-W20", what, remedy)
        if volume.places and not _is_ephemeral(one, pod):
            outside = self._zoned() & ~self._in_zone(volume.places)
            shown = ", ".join(f"{key}={value}" for key, value in volume.places)
            what = f"{one.volume_key}: labels {shown} of volume {volume.name} do not match the node's labels"
            split.blocked(outside, "CSI-W20", what, "add a node in the volume's zone, or correct the labels")

    def _affine(self, volume: ObservedVolume) -> int:
        """The nodes that the affinity of a volume lets pass, which is translated on nodes that migrate its plugin."""
        nodes = reachable(self._index, volume)
        plugin, key = _TRANSLATED.get(volume.source.field, ("", ""))
        moved = self._moved(plugin)
        if not moved:
            return nodes
        translated = reachable(self._index, replace(volume, terms=_translated(volume, key)))
        return (nodes & ~moved) | (translated & moved)

    def _moved(self, plugin: str) -> int:
        """The nodes whose kubelet uses CSI for an in-tree plugin."""
        if plugin and plugin not in self._moves:
            moved = (one.name for one in self._index.csi_nodes.values() if plugin in (one.migrated or ()))
            self._moves[plugin] = sum(self._index.bit.get(name, 0) for name in moved)
        return self._moves.get(plugin, 0)

    def _zoned(self) -> int:
        """Nodes with any label of zone or region."""
        return self._index.matching(tuple((Requirement(key, "Exists"),) for key in (*ZONES, *REGIONS)), exact=True)

    def _in_zone(self, places: Iterable[tuple[str, str]]) -> int:
        """Nodes whose labels are a volume's; the newer label of a node answers for the older one of a volume."""
        index, nodes = self._index, self._index.all
        for key, text in places:
            values = {part.strip() for part in text.split("__")}
            if "" in values:
                # The scheduler passes over a label that it cannot read.
                continue
            newer = ZONES[0] if key in ZONES else REGIONS[0]
            own = index.matching(((Requirement(key, "Exists"),),), exact=True)
            here = newest = 0
            for value in values:
                here |= index.with_label(key, value)
                newest |= index.with_label(newer, value)
            nodes &= here | (newest & ~own)
        return nodes

    def _made_anywhere(self, one: Request, split: Split) -> None:
        """A claim whose volume is provisioned before its pod is scheduled, without regard to the pod."""
        storage_class = self._claims.storage_class(one)
        if storage_class is None:
            return
        if "csinodes" in self._index.unread:
            what = f"{one.volume_key}: CSINodes could not be read, so where its volume can be provisioned is unknown"
            split.unread("CSI-W21", "csinodes", what)
        if storage_class.name not in self._spread:
            self._spread[storage_class.name] = self._spreading(storage_class)
        if keys := self._spread[storage_class.name]:
            what = f"{one.volume_key}: its volume is provisioned in any zone before the pod is scheduled ({', '.join(keys)})"
            remedy = "use a StorageClass with volumeBindingMode WaitForFirstConsumer"
            split.unknown(split.nodes, "CSI-W21", what, remedy)

    def _spreading(self, storage_class: ObservedClass) -> tuple[str, ...]:
        """The labels by which nodes differ in whether they reach volumes of a class."""
        index, name = self._index, provisioner(storage_class)
        keys = {key for node in index.csi_nodes.values() if (entry := node.entry(name)) for key in entry.topology_keys}
        keys |= {part.key for term in storage_class.allowed or () for part in term}
        labels = sorted(keys)
        places = {tuple(node.labels.get(key) for key in labels) for node in index.node_list}
        return tuple(labels) if len(places) > 1 else ()


def _is_ephemeral(one: Request, pod: PodToStart) -> bool:
    """Whether it is a generic ephemeral volume, whose zone labels the scheduler does not compare."""
    if one.made and not pod.workload.startswith("StatefulSet "):
        return True
    return bool(one.claim.pod) and one.claim.pod == pod.name


def _translatable(volume: ObservedVolume) -> bool:
    """Whether the scheduler can read the volume's handle; it parses only those of AWS."""
    if volume.source.field == "awsElasticBlockStore":
        try:
            parse_ebs_id(volume.source.handle)
        except TranslationError:
            return False
    return True


def _translated(volume: ObservedVolume, key: str) -> tuple[Term, ...] | None:
    """A volume's affinity once it is translated: its label of the zone becomes the driver's."""
    terms, places = volume.terms or (), dict(volume.places)
    named = {one.key for term in terms for one in term if not one.field}
    which = next((n for n in (0, 1) if ZONES[n] in named), next((n for n in (0, 1) if ZONES[n] in places), 0))
    zone = ZONES[which]
    if any(one.key == zone and one.values for term in terms for one in term):
        terms = tuple(tuple(replace(one, key=key) if one.key == zone else one for one in term) for term in terms)
    elif zone in places:
        zones = tuple(sorted({part.strip() for part in places[zone].split("__")} - {""}))
        if zones:
            terms = tuple((*term, Requirement(key, "In", zones)) for term in terms or ((),))
    if which == 1:
        terms = tuple(
            tuple(replace(one, key=REGIONS[0]) if one.key == REGIONS[1] else one for one in term) for term in terms
        )
    return terms or None


def _finding(pod: PodToStart, id_: str, message: str, remedy: str) -> Finding:
    return found(id_, pod.workload, message, (f"Pod {pod.namespace}/{pod.name}",), remedy)
