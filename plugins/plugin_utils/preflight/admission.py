# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The creation of the next pod, as far as the API server's admission decides it. Pure.

Each check bears the name of the admission plugin (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
Limits and quotas as https://github.com/kubernetes/kubernetes, plugin/pkg/admission/limitranger and pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..catalog.kubernetes import EXEMPTS_WINDOWS_PODS
from .facts.cluster import ENFORCED_LEVEL, NODE_SELECTOR
from .facts.resources import LimitRange, LimitRangePart, PodResources, ResourceQuota, format_amount
from .facts.sources import ObservedClaim
from .index import Index, version_of
from .walk.steps import NodeToStatus, PodToStart, StepAnswer

# By resource, in thousandths.
ResourceUsage = Mapping[str, int]

_OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")
# A quota of these refuses a pod of which a container says nothing.
_REQUIRED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"


class Admission:
    def __init__(self, index: Index) -> None:
        self._index = index

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Whether the pod is created, wherever it goes."""
        statuses = NodeToStatus("bind", nodes, pod.workload, f"{pod.workload}: pod template")
        self._check_controller(pod, statuses)
        self._check_namespace_lifecycle(pod, statuses)
        self._check_service_account(pod, statuses)
        self._check_priority(pod, statuses)
        self._check_runtime_class(pod, statuses)
        self._check_pod_security(pod, statuses)
        self._check_limit_ranger(pod, statuses)
        self._check_resource_quota(pod, statuses)
        self._check_node_selector(pod, statuses)
        self._check_webhooks(pod, statuses)
        return statuses.list_stops()

    def _check_controller(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        if pod.admit.deleting:
            message = "it is being deleted, and its controller creates no more pods"
            remedy = "find what holds its deletion in metadata.finalizers, then create it again"
            statuses.block(statuses.nodes, "CSI-W20", message, remedy)

    def _check_namespace_lifecycle(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        namespace = self._index.namespaces.get(pod.namespace)
        if namespace is not None and namespace.phase == "Terminating":
            message = f"namespace {pod.namespace} is being deleted and accepts no new pod"
            remedy = "wait for the deletion, then recreate the namespace and its workloads"
            statuses.block(statuses.nodes, "CSI-W20", message, remedy)

    def _check_service_account(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        name = f"{pod.namespace}/{pod.admit.service_account}"
        if "serviceaccounts" in self._index.unread or name in self._index.service_accounts:
            return
        if pod.admit.service_account == "default":
            # A controller makes it.
            return
        message = f"ServiceAccount {name} does not exist, so its pods are rejected"
        remedy = f"kubectl -n {pod.namespace} create serviceaccount {pod.admit.service_account}"
        statuses.block(statuses.nodes, "CSI-W20", message, remedy)

    def _check_priority(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        admit = pod.admit
        if "priorityclasses" in self._index.unread:
            return
        priority = self._index.find_priority_class(admit.priority_class)
        if priority is None:
            message = f"PriorityClass {admit.priority_class} does not exist, so its pods are rejected"
            statuses.block(statuses.nodes, "CSI-W20", message, "create the PriorityClass, or correct the workload")
            return
        if admit.priority not in (None, priority.value):
            message = f"its spec.priority is {admit.priority}, and its PriorityClass has {priority.value}"
            statuses.block(statuses.nodes, "CSI-W20", message, "remove spec.priority from the pod template")
        if admit.preemption not in ("", priority.preemption):
            message = (
                f"its spec.preemptionPolicy is {admit.preemption}, and its PriorityClass has {priority.preemption}"
            )
            statuses.block(statuses.nodes, "CSI-W20", message, "remove spec.preemptionPolicy from the pod template")

    def _check_runtime_class(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        name, overhead = pod.placement.runtime_class, pod.admit.overhead
        if "runtimeclasses" in self._index.unread:
            return
        if name and name not in self._index.runtime_classes:
            message = f"RuntimeClass {name} does not exist, so its pods are rejected"
            statuses.block(statuses.nodes, "CSI-W20", message, "create the RuntimeClass, or correct the workload")
        elif overhead and overhead != self._index.overheads.get(name, ()):
            message = "its spec.overhead is not that of its RuntimeClass"
            statuses.block(statuses.nodes, "CSI-W20", message, "remove spec.overhead from the pod template")

    def _check_pod_security(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        namespace = self._index.namespaces.get(pod.namespace)
        level = namespace.labels.get(ENFORCED_LEVEL, "") if namespace is not None else ""
        if namespace is None or level not in ("baseline", "restricted"):
            return
        violations = pod.admit.violations
        violation = violations.baseline if level == "baseline" else violations.restricted
        policy = namespace.labels.get(f"{ENFORCED_LEVEL}-version", "latest")
        version = self._index.kubernetes if policy == "latest" else version_of(f"{policy}.0")
        if violation:
            message = f"namespace {pod.namespace} enforces Pod Security {level}, which forbids {violation}"
            remedy = f"change the pod template, or: kubectl label namespace {pod.namespace} {ENFORCED_LEVEL}=privileged --overwrite"
            statuses.block(statuses.nodes, "CSI-W20", message, remedy)
        elif violations.by_release:
            message = f"some releases of Pod Security {level}, which namespace {pod.namespace} enforces, forbid {violations.by_release}"
            statuses.doubt(statuses.nodes, "CSI-W21", message, "change the pod template")
        elif version is None or version.minor < EXEMPTS_WINDOWS_PODS:
            message = f"namespace {pod.namespace} enforces Pod Security {level} of {policy}, which is not known"
            remedy = f"kubectl label namespace {pod.namespace} {ENFORCED_LEVEL}-version=latest --overwrite"
            statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)

    def _check_limit_ranger(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        limit_ranges = self._index.limit_ranges.get(pod.namespace, ())
        if resource := _find_contested_default(limit_ranges):
            message = f"LimitRanges of namespace {pod.namespace} have different defaults for {resource}, and any of them may apply"
            statuses.doubt(statuses.nodes, "CSI-W21", message, "leave the defaults to one LimitRange")
            return
        for limit_range in limit_ranges:
            if excess := _find_excess(limit_range, pod.admit.resources, pod.new_claims):
                message = f"LimitRange {pod.namespace}/{limit_range.name} refuses its pods: {excess}"
                remedy = "change the requests and limits of the pod template, or the LimitRange"
                statuses.block(statuses.nodes, "CSI-W20", message, remedy)

    def _check_resource_quota(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Its pods of today go before, and what they count for is free then. Whether a quota with scopes counts its pods is not evaluated."""
        quotas, resources = self._index.quotas.get(pod.namespace), pod.admit.resources
        if not quotas:
            return
        default = self._index.default_class
        classes = (
            (default.name if default is not None else "") if claim.storage_class is None else claim.storage_class
            for claim in pod.new_claims
        )
        usage = {
            **_sum_up_claims(list(zip(pod.new_claims, classes, strict=True))),
            **_name_usage(resources.sum_up("requests"), resources.sum_up("limits")),
            "pods": 1000,
            "count/pods": 1000,
        }
        for quota in quotas:
            quota_name = f"ResourceQuota {pod.namespace}/{quota.name}"
            excess = _find_quota_excess(quota, usage, pod.additional)
            if pod.kind == "CronJob":
                # Finished Jobs count too.
                excess = excess or _find_quota_excess(quota, {"count/jobs.batch": 1000}, 1)
            remedy = f"raise the quota: kubectl -n {pod.namespace} edit resourcequota {quota.name}"
            if missing := _find_missing(quota, resources):
                excess = f"it counts {missing}, and a container sets none"
                remedy = "set it in the pod template, or add a LimitRange"
            if quota.used is None:
                statuses.doubt(statuses.nodes, "CSI-W21", f"{quota_name} is not counted yet", "run preflight again")
            elif excess and quota.has_scopes:
                message = f"{quota_name} refuses its pods if its scopes select them: {excess}"
                statuses.doubt(statuses.nodes, "CSI-W21", message, remedy)
            elif excess:
                statuses.block(statuses.nodes, "CSI-W20", f"{quota_name} refuses its pods: {excess}", remedy)

    def _check_node_selector(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """OpenShift adds the namespace's selector to each pod (scheduling.openshift.io/OriginPodNodeEnvironment)."""
        namespace = self._index.namespaces.get(pod.namespace)
        if namespace is None or not namespace.selector or not self._index.snapshot.cluster.openshift:
            return
        nodes = statuses.nodes
        for requirement in namespace.selector.split(","):
            key, _equals, value = requirement.partition("=")
            nodes &= self._index.find_labelled(key.strip(), value.strip())
        message = f"{NODE_SELECTOR} of namespace {pod.namespace} is {namespace.selector}, which the node does not match"
        remedy = f"kubectl annotate namespace {pod.namespace} {NODE_SELECTOR}= --overwrite"
        statuses.block(statuses.nodes & ~nodes, "CSI-W20", message, remedy)

    def _check_webhooks(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        if (webhook := self._index.find_missing_webhook(pod.namespace)) is not None:
            statuses.doubt(statuses.nodes, "CSI-W21", *webhook.explain())


# What LimitRanges and ResourceQuotas leave


def counts_pods(name: str) -> bool:
    """Whether a quota of this resource counts pods, so that it may refuse one."""
    if name in ("pods", "count/pods", *_OVERCOMMITTED):
        return True
    return name.startswith(("requests.", "limits.", "hugepages-")) and name != "requests.storage"


def _find_excess(limit_range: LimitRange, pod: PodResources, claims: Iterable[ObservedClaim]) -> str:
    """What of a pod or of its claims a LimitRange does not allow, empty for nothing."""
    excesses = (
        excess
        for part in limit_range.parts
        for requests, limits in _list_holders(part.kind, pod, claims)
        for excess in _compare(part, requests, limits)
    )
    return next(excesses, "")


def _find_contested_default(limit_ranges: Iterable[LimitRange]) -> str:
    """A resource for which LimitRanges have different defaults, empty for none; the API server applies them in no order."""
    parts = [part for limit_range in limit_ranges for part in limit_range.parts if part.kind == "Container"]
    for defaults in ([part.default for part in parts], [part.default_request for part in parts]):
        amounts: dict[str, int] = {}
        for name, amount in (pair for default in defaults for pair in default):
            if amounts.setdefault(name, amount) != amount:
                return name
    return ""


def _list_holders(
    kind: str, pod: PodResources, claims: Iterable[ObservedClaim]
) -> Iterator[tuple[ResourceUsage, ResourceUsage]]:
    if kind == "Container":
        yield from ((dict(holder.requests), dict(holder.limits)) for holder in pod.containers)
    elif kind == "Pod":
        yield pod.sum_up("requests", overhead=False), pod.sum_up("limits", overhead=False)
    elif kind == "PersistentVolumeClaim":
        # What a claim requests is compared with both ends.
        yield from (({"storage": claim.size * 1000}, {"storage": claim.size * 1000}) for claim in claims)


def _compare(part: LimitRangePart, requests: ResourceUsage, limits: ResourceUsage) -> Iterator[str]:
    shown = part.kind if part.kind == "PersistentVolumeClaim" else part.kind.lower()
    for name, _default in part.default:
        if requests.get(name, 0) > limits[name]:
            yield f"its default limit of {name} is less than a {shown} requests"
    for name, minimum in part.least:
        if min(requests.get(name, -1), limits.get(name, minimum)) < minimum:
            yield f"the least {name} of a {shown} is {format_amount(name, minimum)}"
    for name, maximum in part.most:
        if name not in limits or max(limits[name], requests.get(name, 0)) > maximum:
            yield f"the most {name} of a {shown} is {format_amount(name, maximum)}"
    for name, ratio in part.ratio:
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if not request or not limit or limit * 1000 > ratio * request:
            yield f"the limit of {name} of a {shown} is at most {ratio / 1000:g} times the request"


def _find_missing(quota: ResourceQuota, resources: PodResources) -> str:
    """What a container has to say because a quota counts it, empty for nothing."""
    if resources.whole.requests or resources.whole.limits:
        return ""
    required = [name for name, _hard in quota.hard if name in _REQUIRED]
    for holder in resources.containers:
        usage = _name_usage(dict(holder.requests), dict(holder.limits))
        if missing := [name for name in required if name not in usage]:
            return missing[0]
    return ""


def _name_usage(requests: ResourceUsage, limits: ResourceUsage) -> dict[str, int]:
    usage = {f"requests.{name}": amount for name, amount in requests.items()}
    usage |= {name: requests[name] for name in requests if name in _OVERCOMMITTED or name.startswith("hugepages-")}
    return usage | {f"limits.{name}": limits[name] for name in limits if name in _OVERCOMMITTED}


def _sum_up_claims(claims: Sequence[tuple[ObservedClaim, str]]) -> ResourceUsage:
    """What claims count for in a quota, each with its class."""
    usage: Counter[str] = Counter()
    for claim, storage_class in claims:
        prefixes = ("", *((f"{storage_class}{_CLASS_SUFFIX}",) if storage_class else ()))
        for prefix in prefixes:
            usage.update({f"{prefix}requests.storage": claim.size * 1000, f"{prefix}persistentvolumeclaims": 1000})
        usage["count/persistentvolumeclaims"] += 1000
    return usage


def _find_quota_excess(quota: ResourceQuota, usage: ResourceUsage, more_pods: int) -> str:
    """What of a quota is used up before the next pods are created, empty for nothing.

    more_pods: how many exist beside those of today.
    """
    hard, used = dict(quota.hard), dict(quota.used or ())
    for name, amount in usage.items():
        if amount and name in hard and used.get(name, 0) + more_pods * amount > hard[name]:
            addition = f", and its pods need {format_amount(name, more_pods * amount)} more" if more_pods else ""
            allowed, in_use = format_amount(name, hard[name]), format_amount(name, used.get(name, 0))
            return f"it allows {allowed} of {name}, {in_use} are used{addition}"
    return ""
