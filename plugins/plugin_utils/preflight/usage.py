# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses storage, and on which system: workloads, the hidden ones too, each with the rule that decided. Pure.

The rules are asked in one order and the first that decides counts: the node that its pods are on, the pod's own word,
selector, affinity, runtime class, taints, the places where its volumes can be. Hints never decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..base.grouped import group_values
from ..kube.node import BUILD_LABEL
from .facts.placement import Placement, Toleration
from .facts.sources import Inline, Volumes
from .facts.workloads import ObservedPod, ObservedTemplate
from .index import Index
from .scope import find_root, is_decisive, key_templates
from .verdict import System

_SYSTEMS: Mapping[str, System] = {"windows": "windows", "linux": "linux"}
OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")


@dataclass(slots=True, eq=False)
class Workload:
    """Something whose pods use volumes.

    template: None for bare and static pods and for owners that were not read. pods: those that use volumes. claims: keys
    of claims. ordinals: of a StatefulSet that makes claims. eligible: Windows nodes that it may run on. nowhere: why it can run
    on none of them, empty where it may.
    """

    kind: str
    namespace: str
    name: str
    template: ObservedTemplate | None = None
    pods: list[ObservedPod] = field(default_factory=list)
    claims: tuple[str, ...] = ()
    inline: tuple[Inline, ...] = ()
    ordinals: range = range(0)
    system: System = "unknown"
    because: str = ""
    eligible: int = 0
    nowhere: str = ""

    @property
    def key(self) -> str:
        """ "Kind namespace/name"."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def volumes(self) -> tuple[str, ...]:
        """What verdicts call its volumes."""
        return (*self.claims, *(f"inline {inline.name}" for inline in self.inline))

    @property
    def done(self) -> bool:
        """Whether it is a Job that makes no more pods."""
        return self.template is not None and self.template.finished

    @property
    def on_windows(self) -> bool:
        """Whether its volumes are evaluated for Windows."""
        return self.system != "linux"


@dataclass(frozen=True, slots=True)
class Usage:
    """Every workload with volumes, and the users of each claim and of each disk, which claims and inline volumes name."""

    workloads: tuple[Workload, ...]
    users: dict[str, list[Workload]]


def find_usage(index: Index) -> Usage:
    workloads = _find_workloads(index)
    users: dict[str, list[Workload]] = defaultdict(list)
    numbered = _number_claims(index)
    for workload in workloads:
        _note_volumes(index, workload, numbered)
        for volume in dict.fromkeys((*workload.claims, *list_disks(index, workload.claims, workload.inline))):
            users[volume].append(workload)
        _decide_eligible_nodes(index, workload)
    return Usage(tuple(workloads), dict(users))


def list_disks(index: Index, claims: Iterable[str], inline: Iterable[Inline]) -> Iterator[str]:
    """The disks of volumes. An unbound claim is one by its own key."""
    for claim in claims:
        observed = index.claims.get(claim)
        volume = index.volumes.get(observed.volume) if observed is not None else None
        yield volume.source.disk if volume is not None and volume.source.handle else claim
    yield from (volume.source.disk for volume in inline)


def _find_workloads(index: Index) -> list[Workload]:
    workloads: dict[tuple[str, str, str], Workload] = {}
    templates = key_templates(index.snapshot.templates)
    for key, template in templates.items():
        if not template.owner and (_has_volumes(template.volumes) or template.claim_templates):
            workloads[key] = Workload(*key, template=template)
    for pod in index.snapshot.pods:
        if not _has_volumes(pod.volumes):
            continue
        key = find_root(pod, templates)
        workload = workloads.get(key)
        if workload is None:
            workload = workloads[key] = Workload(*key, template=templates.get(key))
        workload.pods.append(pod)
    for workload in workloads.values():
        workload.pods.sort(key=lambda pod: pod.name)
    return sorted(workloads.values(), key=lambda workload: workload.key)


def _has_volumes(volumes: Volumes) -> bool:
    return bool(volumes.claims or volumes.ephemeral or volumes.inline)


def _number_claims(index: Index) -> Mapping[str, list[int]]:
    """By what is before it, "namespace/stem", the numbers with which names of claims end, as StatefulSets name claims."""
    parts = (key.rpartition("-") for key in index.claims)
    return group_values((stem, int(number)) for stem, _dash, number in parts if number.isdigit())


def _note_volumes(index: Index, workload: Workload, numbered: Mapping[str, list[int]]) -> None:
    template = workload.template
    claims: list[str] = []
    inline: list[Inline] = []
    if template is not None:
        claims += [f"{workload.namespace}/{name}" for name in template.volumes.claims]
        inline += template.volumes.inline
        for claim_template in template.claim_templates:
            stem = f"{workload.namespace}/{claim_template.name}-{workload.name}"
            numbers = sorted(number for number in numbered.get(stem, ()) if number >= template.first)
            # A set of zero replicas is evaluated as if it had those whose claims exist.
            end = template.first + template.replicas if template.replicas else max(numbers, default=template.first) + 1
            claims += [key for number in numbers if number < end and (key := f"{stem}-{number}") in index.claims]
            workload.ordinals = range(template.first, max(workload.ordinals.stop, end))
    for pod in workload.pods:
        claims += [f"{pod.namespace}/{name}" for name in pod.volumes.claims]
        # A finished pod's claim of its own goes with it; one that was never made is none.
        claims += [
            key
            for ephemeral_claim in pod.volumes.ephemeral
            if (key := f"{pod.namespace}/{pod.name}-{ephemeral_claim.name}") in index.claims
        ]
        inline += pod.volumes.inline
    workload.claims = tuple(dict.fromkeys(claims))
    workload.inline = tuple(dict.fromkeys(inline))


def _decide_eligible_nodes(index: Index, workload: Workload) -> None:
    pods = [pod for pod in workload.pods if is_decisive(pod, workload.template)]
    windows = [pod for pod in pods if index.bit.get(pod.node, 0) & index.windows]
    linux = [pod for pod in pods if index.bit.get(pod.node, 0) & index.linux]
    workload.system, workload.because = _decide_system(index, workload, windows, linux)
    if not workload.on_windows:
        return
    placements = _list_placements(workload)
    for placement in placements:
        workload.eligible |= index.find_fitting(placement) & index.windows
    if workload.system == "windows" and placements and not index.windows and "nodes" not in index.unread:
        workload.nowhere = "there is no Windows node"
    for pod in windows:
        workload.eligible |= index.bit[pod.node]


def _list_placements(workload: Workload) -> Sequence[Placement]:
    """What decides where the next pod goes. A pod without a controller goes nowhere once it is on a node."""
    if workload.template is not None:
        return (workload.template.placement,)
    return tuple(dict.fromkeys(pod.placement for pod in workload.pods if workload.kind != "Pod" or not pod.node))


def _decide_system(
    index: Index, workload: Workload, windows: list[ObservedPod], linux: list[ObservedPod]
) -> tuple[System, str]:
    if windows and linux:
        return "mixed", f"pod {windows[0].key} is on {windows[0].node} and pod {linux[0].key} on {linux[0].node}"
    if windows:
        return "windows", f"pod {windows[0].key} is on Windows node {windows[0].node}"
    if linux:
        return "linux", f"pod {linux[0].key} is on Linux node {linux[0].node}"
    systems: dict[System, str] = {}
    for placement in _list_placements(workload):
        system, because = _decide_by_placement(index, workload, placement)
        systems.setdefault(system, because)
    if len(systems) > 1:
        return "mixed", "; ".join(systems.values())
    return next(iter(systems.items()), ("unknown", "its pods are on deleted nodes"))


def _decide_by_placement(index: Index, workload: Workload, placement: Placement) -> tuple[System, str]:
    if placement.os:
        return _SYSTEMS.get(placement.os, "unknown"), f"spec.os.name is {placement.os}"
    for key, value in placement.selector:
        if key in OS_LABELS:
            return _SYSTEMS.get(value, "unknown"), f"nodeSelector {key} is {value}"
        if key == BUILD_LABEL:
            return "windows", f"nodeSelector {key} is {value}"
    fitting = index.find_fitting(placement)
    places = [
        (
            "its node selector and affinity match",
            index.find_fitting(replace(placement, tolerations=_TOLERATIONS_OF_ALL)),
        ),
        ("its tolerations accept", fitting),
        *(
            (f"claim {claim} can be reached from", fitting & nodes)
            for claim, nodes in _find_volume_places(index, workload)
        ),
    ]
    for reason, nodes in places:
        if nodes and not nodes & index.linux:
            return "windows", f"{reason} Windows nodes only"
        if nodes and not nodes & index.windows:
            return "linux", f"{reason} Linux nodes only"
    if not fitting:
        return "unknown", "its node selector, affinity and tolerations match no node"
    return "mixed", "nothing restricts it to one operating system"


_TOLERATIONS_OF_ALL = (Toleration(operator="Exists"),)


def _find_volume_places(index: Index, workload: Workload) -> Iterator[tuple[str, int]]:
    for key in workload.claims:
        claim = index.claims.get(key)
        if claim is None:
            continue
        volume = index.volumes.get(claim.volume)
        if volume is not None and volume.terms is not None:
            yield key, index.find_matching(volume.terms)
        elif claim.selected_node in index.bit:
            yield key, index.bit[claim.selected_node]
