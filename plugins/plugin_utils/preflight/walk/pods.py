# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that a workload starts next, equal ones together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..facts.admission import PodToAdmit
from ..facts.scheduling import NO_SHAPE, PodShape, sum_requests
from ..facts.sources import Volumes
from ..facts.workloads import ObservedPod, ObservedTemplate
from ..index import Index
from ..usage import Workload
from .steps import PodToStart

_NO_KEYS: Mapping[str, str] = MappingProxyType({})


def list_pods_to_start(index: Index, workload: Workload) -> tuple[PodToStart, ...]:
    """The pods of a workload that starts anew: of one that is scaled to zero those that it would have.

    Without a template they are its present pods: a static pod stays on its node, others are placed again.
    """
    template = workload.template
    if template is None:
        return tuple(_list_present(index, workload))
    claims = tuple(f"{workload.namespace}/{name}" for name in template.volumes.claims)
    leaving = tuple(list_resident_pods(index, workload.pods))
    admit = index.admit(template)
    pod = PodToStart(
        workload=workload.key,
        namespace=workload.namespace,
        name=workload.name,
        placement=template.placement,
        node=template.node,
        claims=claims,
        new_claims=template.volumes.ephemeral,
        inline=template.volumes.inline,
        devices=_list_devices(template.volumes, workload.namespace),
        shape=_admit_shape(index, template, admit).complete(shape for shape, _node in leaving),
        leaving=leaving,
        admit=admit,
        additional=max(0, max(1, template.replicas or 0, template.parallel) - len(leaving)),
    )
    if workload.ordinals or (workload.kind == "StatefulSet" and template.volumes.ephemeral):
        return tuple(_number_pods(index, workload, template, pod))
    count = template.replicas or template.parallel
    shared = claims if count > 1 or workload.kind == "DaemonSet" else ()
    return (replace(pod, count=count, shared=shared, surges=template.surges),)


def _admit_shape(index: Index, template: ObservedTemplate, admit: PodToAdmit) -> PodShape:
    """The shape of a template's pods with the priority and the requests that admission gives them."""
    priority = index.find_priority_class(admit.priority_class)
    return replace(
        template.shape,
        requests=sum_requests(admit.resources),
        priority=template.shape.priority if priority is None else priority.value,
    )


def list_resident_pods(index: Index, pods: Iterable[ObservedPod]) -> Iterator[tuple[PodShape, str]]:
    """The shapes and nodes of pods that take room."""
    return ((index.snapshot.shapes[pod.shape], pod.node) for pod in pods if pod.shape >= 0)


def _number_pods(index: Index, workload: Workload, template: ObservedTemplate, pod: PodToStart) -> Iterator[PodToStart]:
    """Ordinals with a claim or a volume that exists each by itself, all others together."""
    pod = replace(pod, shared=pod.claims if len(workload.ordinals) > 1 else ())
    equal_pods = 0
    for ordinal in workload.ordinals or range(template.first, template.first + (template.replicas or 1)):
        claim_keys = {
            claim_template.name: f"{workload.namespace}/{claim_template.name}-{workload.name}-{ordinal}"
            for claim_template in template.claim_templates
        }
        existing = tuple(key for key in claim_keys.values() if key in index.claims)
        ephemeral = (
            f"{workload.namespace}/{workload.name}-{ordinal}-{claim_template.name}"
            for claim_template in template.volumes.ephemeral
        )
        if (
            not existing
            and not any(key in index.claims for key in ephemeral)
            and not any(key in index.reserved for key in claim_keys.values())
        ):
            equal_pods += 1
            continue
        created = tuple(
            claim_template
            for claim_template in template.claim_templates
            if claim_keys[claim_template.name] not in index.claims
        )
        yield replace(
            pod,
            name=f"{workload.name}-{ordinal}",
            claims=pod.claims + existing,
            new_claims=created + pod.new_claims,
            devices=_list_devices(template.volumes, workload.namespace, claim_keys),
        )
    if equal_pods:
        yield replace(pod, count=equal_pods, new_claims=template.claim_templates + pod.new_claims)


def _list_present(index: Index, workload: Workload) -> Iterator[PodToStart]:
    pod_counts: Counter[PodToStart] = Counter()
    for pod in workload.pods:
        if workload.kind != "Pod" and pod.finished:
            continue
        pod_counts[_repeat(index, workload, pod)] += 1
    for pod_to_start, count in pod_counts.items():
        yield pod_to_start if count == 1 else replace(pod_to_start, name=workload.name, node="", count=count)


def _repeat(index: Index, workload: Workload, pod: ObservedPod) -> PodToStart:
    single, leaving = workload.kind == "Pod", tuple(list_resident_pods(index, workload.pods))
    claim_keys = {
        claim_template.name: f"{pod.namespace}/{pod.name}-{claim_template.name}"
        for claim_template in pod.volumes.ephemeral
    }
    # Only a pod that stays keeps the claims that were made with it.
    kept = tuple(key for key in claim_keys.values() if single and key in index.claims)
    return PodToStart(
        workload=workload.key,
        namespace=workload.namespace,
        name=pod.name if single else workload.name,
        placement=pod.placement,
        node=pod.node if single else "",
        claims=(*(f"{pod.namespace}/{name}" for name in pod.volumes.claims), *kept),
        new_claims=tuple(
            claim_template for claim_template in pod.volumes.ephemeral if claim_keys[claim_template.name] not in kept
        ),
        inline=pod.volumes.inline,
        devices=_list_devices(pod.volumes, pod.namespace, claim_keys),
        shape=index.snapshot.shapes[pod.shape] if pod.shape >= 0 else NO_SHAPE,
        leaving=leaving,
        additional=0 if leaving else 1,
    )


def _list_devices(volumes: Volumes, namespace: str, claim_keys: Mapping[str, str] = _NO_KEYS) -> tuple[str, ...]:
    """What answers call the volumes that containers take as raw devices. claim_keys: by what they are made from."""
    return tuple(
        key
        for name in volumes.devices
        for key in (f"{namespace}/{name}", f"new claim {namespace}/{name}", claim_keys.get(name, ""))
        if key
    )
