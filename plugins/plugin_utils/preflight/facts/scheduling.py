# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the scheduler compares of pods besides their volumes: labels, requests, ports, spreading and affinity. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ...base.decode import decode_raw
from ...base.text import share_text
from ...kube.labels import is_of_run
from ...kube.pod import ENDED, MIRROR, find_controller
from .placement import ANYWHERE, Placement, Requirement, Term
from .resources import PodResources
from .sources import read_quantity

# Labels that differ between the pods of one workload, and that are not kept; no selector of a workload names them.
_OF_ONE_POD = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/controller-uid",
        "controller-uid",
    }
)
# Labels that a controller adds to the pods that it creates.
ADDED_LABELS = ("pod-template-hash", "controller-revision-hash", "pod-template-generation")


def read_selector(selector: Mapping[str, Any] | None) -> Term | None:
    """A LabelSelector; None, which selects nothing, where there is none."""
    if selector is None:
        return None
    labels = sorted((selector.get("matchLabels") or {}).items())
    return (
        *(Requirement(key, "In", (str(value),)) for key, value in labels),
        *(
            Requirement(
                str(expression.get("key")), str(expression.get("operator")), tuple(expression.get("values") or ())
            )
            for expression in selector.get("matchExpressions") or ()
        ),
    )


def matches_labels(selector: Term | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(_is_met(requirement, labels.get(requirement.key)) for requirement in selector)


def _is_met(requirement: Requirement, value: str | None) -> bool:
    if requirement.operator in ("In", "NotIn"):
        return (value in requirement.values) == (requirement.operator == "In")
    return (value is not None) == (requirement.operator == "Exists")


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The pods that a constraint counts, or more. match_keys, mismatch_keys: labels that a pod compares with its own value.

    is_known: it compares no label that is not kept.
    """

    selector: Term | None
    match_keys: tuple[str, ...] = ()
    mismatch_keys: tuple[str, ...] = ()
    is_known: bool = True

    def select(self, own_labels: Mapping[str, str]) -> Term | None:
        """The whole selector for a pod with these labels; keys that it lacks are passed over."""
        if self.selector is None:
            return None
        pairs = [("In", key) for key in self.match_keys] + [("NotIn", key) for key in self.mismatch_keys]
        return (
            *self.selector,
            *(Requirement(key, operator, (own_labels[key],)) for operator, key in pairs if key in own_labels),
        )

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> PodSelector:
        """Read a TopologySpreadConstraint or a PodAffinityTerm: labelSelector, matchLabelKeys, mismatchLabelKeys."""
        match_keys, mismatch_keys = (tuple(entry.get(name) or ()) for name in ("matchLabelKeys", "mismatchLabelKeys"))
        selector = read_selector(entry.get("labelSelector"))
        kept = selector and tuple(requirement for requirement in selector if requirement.key not in _OF_ONE_POD)
        is_known = kept == selector and _OF_ONE_POD.isdisjoint(match_keys + mismatch_keys)
        return cls(kept, match_keys, mismatch_keys, is_known)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint with DoNotSchedule."""

    pods: PodSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """A required term of affinity or anti-affinity between pods. namespaces: None for all. is_known: its namespaces are."""

    pods: PodSelector
    topology_key: str
    namespaces: tuple[str, ...] | None
    is_known: bool = True

    def includes(self, namespace: str) -> bool:
        """Whether pods of a namespace count, or may."""
        return not self.is_known or self.namespaces is None or namespace in self.namespaces


@dataclass(frozen=True, slots=True)
class PodShape:
    """What the scheduler compares of a pod; one for all equal pods.

    owner: "Kind/name" of its controller. labels: without those of one pod only. requests: by resource, cpu in thousandths, the rest
    in units, always one of "pods". ports: (protocol, address, number) on the node. priority: None if a class decides it that was
    not read. stays: no drain evicts it, because it belongs to a DaemonSet or a file of its node. gone_by: when one that is being
    deleted should have been gone.
    """

    namespace: str = ""
    owner: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    placement: Placement = ANYWHERE
    requests: tuple[tuple[str, int], ...] = (("pods", 1),)
    ports: tuple[tuple[str, str, int], ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    priority: int | None = 0
    stays: bool = False
    gone_by: str = ""

    @classmethod
    def from_object(cls, item: Mapping[str, Any], namespace: str) -> PodShape:
        """Read a core/v1 Pod or a PodTemplateSpec."""
        metadata, spec = item.get("metadata") or {}, item.get("spec") or {}
        affinity = spec.get("affinity") or {}
        owner = "/".join(filter(None, find_controller(metadata)))
        priority = spec.get("priority")
        return cls(
            namespace=share_text(namespace),
            owner=owner,
            labels=tuple(
                (share_text(key), share_text(value))
                for key, value in sorted((metadata.get("labels") or {}).items())
                if key not in _OF_ONE_POD
            ),
            placement=Placement.from_spec(spec),
            requests=sum_requests(PodResources.from_spec(spec)),
            ports=tuple(sorted(set(_find_ports(spec)))),
            spread=tuple(_read_spread(spec)),
            affinity=tuple(_read_terms(affinity.get("podAffinity"), namespace)),
            anti_affinity=tuple(_read_terms(affinity.get("podAntiAffinity"), namespace)),
            priority=int(priority) if priority is not None else None if spec.get("priorityClassName") else 0,
            stays=owner.startswith(("DaemonSet/", "Node/")) or MIRROR in (metadata.get("annotations") or {}),
            gone_by=str(metadata.get("deletionTimestamp") or ""),
        )

    def complete(self, pods: Iterable[PodShape]) -> PodShape:
        """Of a template: with what admission and the controller gave its pods of today, where all of them agree."""
        shapes = set(pods)
        labels, requests = dict(self.labels), dict(self.requests)
        for key in ADDED_LABELS:
            values = {dict(shape.labels).get(key, "") for shape in shapes}
            if key not in labels and len(values) == 1 and (value := values.pop()):
                labels[key] = value
        for shape in shapes:
            requests = {**dict(shape.requests), **requests}
        priorities = {shape.priority for shape in shapes}
        priority = priorities.pop() if self.priority is None and len(priorities) == 1 else self.priority
        return replace(
            self, labels=tuple(sorted(labels.items())), requests=tuple(sorted(requests.items())), priority=priority
        )


NO_SHAPE = PodShape()


# Most pods of a cluster request the same.
@lru_cache(maxsize=4096)
def sum_requests(resources: PodResources) -> tuple[tuple[str, int], ...]:
    """What a pod requests: cpu in thousandths, the rest in units, and one of "pods"."""
    amounts = resources.sum_up("requests")
    units = {name: amount if name == "cpu" else -(-amount // 1000) for name, amount in amounts.items()}
    return tuple(sorted((name, amount) for name, amount in {**units, "pods": 1}.items() if amount > 0))


def read_amount(resource: str, text: str) -> int:
    """An amount of a resource: cpu in thousandths, the rest in units."""
    return read_quantity(text, 1000 if resource == "cpu" else 1)


def _find_ports(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    sidecars = (
        init_container
        for init_container in spec.get("initContainers") or ()
        if init_container.get("restartPolicy") == "Always"
    )
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            if number := port.get("hostPort") or (spec.get("hostNetwork") and port.get("containerPort")):
                yield str(port.get("protocol") or "TCP"), str(port.get("hostIP") or "0.0.0.0"), int(number)


def _read_spread(spec: Mapping[str, Any]) -> Iterator[SpreadConstraint]:
    for entry in spec.get("topologySpreadConstraints") or ():
        if entry.get("whenUnsatisfiable") != "ScheduleAnyway":
            yield SpreadConstraint(
                PodSelector.from_entry(entry),
                str(entry.get("topologyKey")),
                int(entry.get("maxSkew") or 1),
                int(entry.get("minDomains") or 1),
                entry.get("nodeAffinityPolicy") != "Ignore",
                entry.get("nodeTaintsPolicy") == "Honor",
            )


def _read_terms(affinity: Mapping[str, Any] | None, namespace: str) -> Iterator[PodAffinityTerm]:
    for entry in (affinity or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        selector = read_selector(entry.get("namespaceSelector"))
        namespaces = tuple(entry.get("namespaces") or (() if selector is not None else (namespace,)))
        yield PodAffinityTerm(
            PodSelector.from_entry(entry),
            str(entry.get("topologyKey")),
            None if selector == () else namespaces,
            # Labels of namespaces are not kept.
            not selector,
        )


@dataclass(frozen=True, slots=True)
class ObservedBudget:
    """A PodDisruptionBudget. healthy, desired, expected: numbers of pods; it allows what is healthy beyond what is desired.

    If expected is 0, the pods that it selects are not known.
    """

    namespace: str
    name: str
    selector: Term | None
    healthy: int
    desired: int
    expected: int

    @classmethod
    def from_object(cls, budget: Mapping[str, Any]) -> ObservedBudget:
        """Read a policy/v1 PodDisruptionBudget: metadata (namespace, name), spec.selector, status (currentHealthy, desiredHealthy, expectedPods,
        disruptionsAllowed)."""
        metadata, status = budget["metadata"], budget.get("status") or {}
        names = ("currentHealthy", "desiredHealthy", "expectedPods")
        healthy, desired, expected = (int(status.get(name) or 0) for name in names)
        if status.get("disruptionsAllowed") == 0 and healthy > desired:
            # Its controller could not count its pods, and the other numbers are former ones (pkg/controller/disruption, failSafe).
            healthy, expected = desired, 0
        pods = PodSelector.from_entry({"labelSelector": (budget.get("spec") or {}).get("selector")})
        expected = expected if pods.is_known else 0
        return cls(str(metadata["namespace"]), str(metadata["name"]), pods.selector, healthy, desired, expected)


def takes_room(pod: Mapping[str, Any]) -> bool:
    """Whether a core/v1 Pod takes room on a node, or waits for some; a pod of a run of this collection ends by itself."""
    return (pod.get("status") or {}).get("phase") not in ENDED and not is_of_run(pod)


@dataclass(slots=True)
class PodTable:
    """The shapes of pods, and by node the numbers of those there, as they are read."""

    shapes: dict[PodShape, int] = field(default_factory=dict)
    by_node: dict[str, list[int]] = field(default_factory=dict)
    _last: tuple[Any, PodShape, int] = ((), NO_SHAPE, 0)

    def add(self, pod: Mapping[str, Any]) -> tuple[PodShape, int]:
        """Note a core/v1 Pod, below "" if it waits for a node; returns its shape with its number, -1 if it takes no room on a node."""
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        if not takes_room(pod):
            return PodShape.from_object(decode_raw(pod), str(metadata["namespace"])), -1
        labels = metadata.get("labels") or {}
        if not _OF_ONE_POD.isdisjoint(labels):
            labels = {key: text for key, text in labels.items() if key not in _OF_ONE_POD}
        other_fields = map(metadata.get, ("namespace", "ownerReferences", "annotations", "deletionTimestamp"))
        compared = (labels, *other_fields, {**spec, "nodeName": None, "volumes": None})
        # Most consecutive pods of a list are alike.
        if compared != self._last[0]:
            shape = PodShape.from_object(decode_raw(pod), str(metadata["namespace"]))
            self._last = (compared, shape, self.shapes.setdefault(shape, len(self.shapes)))
        dummy, shape, number = self._last
        node = share_text(spec.get("nodeName"))
        self.by_node.setdefault(node, []).append(number)
        return shape, number if node else -1

    def close(self, windows: Container[str], templates: Iterable[PodShape]) -> tuple[PodShape, ...]:
        """The shapes by number. Of pods on other nodes that no pod of Windows counts, only what they request is kept."""
        of_windows = {
            number for node, numbers in self.by_node.items() if not node or node in windows for number in numbers
        }
        shapes, self.shapes = list(self.shapes), {}
        by_namespace: dict[str, set[PodSelector]] = defaultdict(set)
        cluster_selectors: set[PodSelector] = set()
        for shape in {*(shapes[number] for number in of_windows), *templates}:
            by_namespace[shape.namespace].update(constraint.pods for constraint in shape.spread)
            for term in (*shape.affinity, *shape.anti_affinity):
                for namespace in term.namespaces or ():
                    by_namespace[namespace].add(term.pods)
                if term.namespaces is None or not term.is_known:
                    cluster_selectors.add(term.pods)
        kept: dict[PodShape, PodShape] = {}
        for number, shape in enumerate(shapes):
            selectors, labels = by_namespace[shape.namespace] | cluster_selectors, dict(shape.labels)
            if (
                number in of_windows
                or shape.anti_affinity
                or any(matches_labels(pod_selector.selector, labels) for pod_selector in selectors)
            ):
                continue
            reduced_shape = PodShape(requests=shape.requests, ports=shape.ports, priority=shape.priority)
            shapes[number] = kept.setdefault(reduced_shape, reduced_shape)
        return tuple(shapes)
