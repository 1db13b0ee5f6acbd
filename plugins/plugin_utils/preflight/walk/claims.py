# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of each claim of a pod that is to start: bound, waiting, or taking a volume that is there. Pure.

Kubernetes decides this in two places that follow the same rules, the volume controller and the scheduler
(pkg/controller/volume/persistentvolume/pv_controller.go, pkg/scheduler/framework/plugins/volumebinding/binder.go, and
k8s.io/component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...base.cached import cached_method
from ...base.grouped import group_values
from ...catalog import in_tree
from ...catalog.kubernetes import SETS_DEFAULT_CLASS_LATER
from ...catalog.translation import translate_topology
from ..facts.placement import read_terms, write_terms
from ..facts.sources import ObservedClaim
from ..facts.storage import ObservedClass, ObservedVolume
from ..index import Index, unite
from .steps import PodToStart

WAITS = "WaitForFirstConsumer"
# In-tree volumes with a label for their zone once the scheduler translates them, which it does on nodes whose CSINode names
# the plugin (https://github.com/kubernetes/csi-translation-lib, plugins; binder.go, tryTranslatePVToCSI).
_TRANSLATED = ("awsElasticBlockStore", "gcePersistentDisk", "cinder")


@dataclass(frozen=True, slots=True)
class Request:
    """A claim of a pod. volume_key: what answers call it. missing: it is named, and does not exist. foreign: a claim that
    the pod does not own has the name of one that comes with it. is_new: it comes with the pod.

    storage_class: with the default one filled in. volume: the one it has, asks for, or will be given by the volume
    controller.
    """

    volume_key: str
    claim: ObservedClaim
    missing: bool = False
    foreign: bool = False
    is_new: bool = False
    storage_class: str = ""
    volume: ObservedVolume | None = None

    @property
    def title(self) -> str:
        """What findings call it."""
        return self.volume_key if self.is_new else f"PersistentVolumeClaim {self.claim.key}"

    @property
    def bound(self) -> bool:
        """Whether it is bound, whatever became of its volume."""
        return self.claim.phase in ("Bound", "Lost")

    @property
    def open(self) -> bool:
        """Whether it is there, or will be, and has no volume yet."""
        return not self.missing and not self.bound and not self.claim.volume and self.volume is None


class Claims:
    """The claims of a snapshot, and the available volumes."""

    def __init__(self, index: Index) -> None:
        self._index = index
        # By the identity of a pod, that pod with its claims.
        self._requests: dict[int, tuple[PodToStart, tuple[Request, ...]]] = {}
        # A claim that was created while there was no default class gets a later one.
        self._sets_default_later = index.kubernetes is None or index.kubernetes.minor >= SETS_DEFAULT_CLASS_LATER

    @cached_property
    def _free(self) -> Mapping[str, list[ObservedVolume]]:
        """By class, the available volumes, smallest first."""
        volumes = self._index.snapshot.volumes
        free = (
            volume for volume in volumes if not volume.claim and volume.phase == "Available" and not volume.deleting
        )
        return group_values(
            ((volume.storage_class, volume) for volume in free), lambda volume: (volume.size, volume.name)
        )

    def list_requests(self, pod: PodToStart) -> tuple[Request, ...]:
        entry = self._requests.get(id(pod))
        if entry is None:
            entry = self._requests[id(pod)] = (pod, tuple(self._make_requests(pod)))
        return entry[1]

    def _make_requests(self, pod: PodToStart) -> Iterator[Request]:
        for key in pod.claims:
            claim = self._index.claims.get(key)
            absent = ObservedClaim(pod.namespace, key.partition("/")[2])
            yield Request(key, absent, missing=True) if claim is None else self.read_request(claim)
        # Names of other pods end at random.
        is_named = pod.kind == "Pod" or not pod.workload.endswith(f"/{pod.name}")
        for template in pod.new_claims:
            yield self.make_request(template, pod.namespace, pod.name, is_named)

    def make_request(self, template: ObservedClaim, namespace: str, pod: str, is_named: bool = False) -> Request:
        """A claim that is made with a pod. is_named: pod is its name, not that of its workload."""
        # Of a StatefulSet, else of a generic ephemeral volume; only a name that a volume is reserved for matters.
        names = (f"{template.name}-{pod}", f"{pod}-{template.name}")
        key = next((name for name in names if is_named and f"{namespace}/{name}" in self._index.reserved), names[0])
        existing = self._index.claims.get(f"{namespace}/{names[1]}") if is_named else None
        if existing is not None and not existing.pod:
            return Request(f"new claim {namespace}/{template.name}", existing, foreign=True, is_new=True)
        claim = replace(template, namespace=namespace, name=key, phase="Pending")
        return self.read_request(claim, f"new claim {namespace}/{template.name}")

    def read_request(self, claim: ObservedClaim, new_key: str = "") -> Request:
        """A claim with its class and volume. new_key: what answers call one that comes with its pod."""
        name = claim.storage_class
        if name is None:
            default = self._index.default_class if new_key or self._sets_default_later else None
            name = default.name if default is not None else ""
        volume = self._index.volumes.get(claim.volume)
        if not claim.volume and claim.phase not in ("Bound", "Lost"):
            reserved = [
                candidate for candidate in self._index.reserved.get(claim.key, ()) if is_reserved_for(candidate, claim)
            ]
            volume = next((candidate for candidate in reserved if not explain_misfit(candidate, claim)), None)
        return Request(new_key or claim.key, claim, is_new=bool(new_key), storage_class=name, volume=volume)

    def find_class(self, request: Request) -> ObservedClass | None:
        """The class that makes its volume."""
        return self._index.classes.get(request.storage_class)

    def is_provisioned(self, request: Request) -> bool:
        """Whether something makes volumes of its class."""
        storage_class = self.find_class(request)
        return storage_class is not None and bool(storage_class.driver)

    def uses_up_volumes(self, pod: PodToStart) -> bool:
        """Whether each start of a pod takes a volume that nothing makes and that is free only once."""
        return any(request.is_new and not self.is_provisioned(request) for request in self.list_requests(pod))

    def is_bound_late(self, request: Request) -> bool:
        """Whether its volume is chosen or made only once a pod is scheduled."""
        storage_class = self.find_class(request)
        return storage_class is not None and storage_class.binding_mode == WAITS

    def find_candidates(self, request: Request) -> list[ObservedVolume]:
        """Free volumes that a claim could take, smallest first."""
        free = self._free.get(request.storage_class, ())
        return [volume for volume in free if not explain_misfit(volume, request.claim)]

    @cached_property
    def _open_requests(self) -> Mapping[str, list[tuple[Request, int]]]:
        """By class, claims without a volume and those that workloads make with their pods, each with how many of them."""
        index = self._index
        requests = [(self.read_request(claim), 1) for claim in index.snapshot.claims]
        for template in index.snapshot.templates:
            if template.owner or not template.runs:
                continue
            # Of a DaemonSet there may be several.
            count = 2 if template.kind == "DaemonSet" else template.replicas or template.parallel
            requests += [
                (self.make_request(ephemeral_claim, template.namespace, template.name), count)
                for ephemeral_claim in template.volumes.ephemeral
            ]
            for claim_template in template.claim_templates:
                ordinals = range(template.first, template.first + count)
                names = (
                    f"{template.namespace}/{claim_template.name}-{template.name}-{ordinal}" for ordinal in ordinals
                )
                absent = sum(name not in index.claims for name in names)
                requests.append((self.make_request(claim_template, template.namespace, template.name), absent))
        return group_values((request.storage_class, (request, count)) for request, count in requests if request.open)

    def is_contended(self, request: Request, pod: PodToStart) -> bool:
        """Whether other claims fit a free volume that a claim of a pod could take, as which comes first is not known."""
        names = {volume.name for volume in self.find_candidates(request)}
        rivals = (
            count
            for other_request, count in self._open_requests.get(request.storage_class, ())
            if any(volume.name in names for volume in self.find_candidates(other_request))
        )
        return bool(names) and (sum(rivals) > 1 or (request.is_new and pod.count > 1))

    def is_undecided(self, request: Request) -> bool:
        """Whether a claim could take a free volume of a kind that this report does not follow.

        Followed are volumes of a class without a provisioner that waits for pods, if nothing about their place is translated or labelled.
        """
        candidates = self.find_candidates(request)
        if self.is_provisioned(request) or not self.is_bound_late(request):
            return bool(candidates)
        return any(volume.places or volume.source.field in _TRANSLATED for volume in candidates)

    def find_free_nodes(self, request: Request, pod: PodToStart) -> tuple[int, int]:
        """Where a claim that waits for its pod takes a volume that is there: surely, and if no other pod is first."""
        if not request.open or not self.is_bound_late(request) or request.claim.selected_node:
            return 0, 0
        reached = [find_reaching_nodes(self._index, volume) for volume in self.find_candidates(request)]
        nodes = unite(reached)
        # The first of several pods with one claim decides where the others go.
        is_shared = request.claim.key in pod.shared and len(set(reached)) > 1
        return (0, nodes) if is_shared or self.is_contended(request, pod) else (nodes, 0)

    def match_affinity(self, volume: ObservedVolume) -> int:
        """The nodes that the affinity of a volume lets pass, which is translated on nodes that migrate its plugin."""
        nodes, plugin = find_reaching_nodes(self._index, volume), in_tree.find_by_field(volume.source.field)
        moved = self.find_migrated_nodes(volume)
        if not moved or plugin is None:
            return nodes
        terms = read_terms(translate_topology(plugin, dict(volume.places), write_terms(volume.terms)))
        return (nodes & ~moved) | (find_reaching_nodes(self._index, replace(volume, terms=terms)) & moved)

    def find_migrated_nodes(self, volume: ObservedVolume) -> int:
        """The nodes whose kubelet uses CSI for the plugin of a volume with a translated label."""
        plugin = in_tree.find_by_field(volume.source.field)
        return 0 if plugin is None or plugin.field not in _TRANSLATED else self._find_migrating_nodes(plugin.plugin)

    @cached_method
    def _find_migrating_nodes(self, plugin: str) -> int:
        csi_nodes = self._index.csi_nodes.values()
        return self._index.find_nodes(node.name for node in csi_nodes if plugin in (node.migrated or ()))


def is_reserved_for(volume: ObservedVolume, claim: ObservedClaim) -> bool:
    """Whether a volume is reserved for a claim or bound to it."""
    return volume.claim == claim.key and volume.claim_uid in ("", claim.uid)


def explain_misfit(volume: ObservedVolume, claim: ObservedClaim) -> str:
    """Why a volume of its class is none for a claim, empty where it is one."""
    if volume.deleting:
        return "being deleted"
    if volume.size < claim.size:
        return "too small"
    if volume.block != claim.block:
        return "of the other volumeMode"
    if lacking := set(claim.access_modes) - set(volume.access_modes):
        return f"without access mode {', '.join(sorted(lacking))}"
    return "of another VolumeAttributesClass" if volume.attributes_class else ""


def find_reaching_nodes(index: Index, volume: ObservedVolume) -> int:
    """The nodes that a volume's own node affinity lets pass, label by label as the scheduler compares them."""
    if volume.terms is None:
        return index.all
    # Of a volume only labels are compared; an expression about a node's name is passed over.
    terms = tuple(tuple(requirement for requirement in term if not requirement.field) for term in volume.terms if term)
    return index.all if () in terms else index.find_matching(terms)
