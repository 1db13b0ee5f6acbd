# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether LimitRanges and ResourceQuotas of a namespace leave room for the next pod and its claims. Pure.

As https://github.com/kubernetes/kubernetes, plugin/pkg/admission/limitranger and pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .facts.resources import LimitRange, LimitRangePart, PodResources, ResourceQuota, format_amount
from .facts.sources import ObservedClaim

# By resource, in thousandths.
ResourceUsage = Mapping[str, int]

_OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")
# A quota of these refuses a pod of which a container says nothing.
_REQUIRED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"


def counts_pods(name: str) -> bool:
    """Whether a quota of this resource counts pods, so that it may refuse one."""
    if name in ("pods", "count/pods", *_OVERCOMMITTED):
        return True
    return name.startswith(("requests.", "limits.", "hugepages-")) and name != "requests.storage"


def find_excess(limit_range: LimitRange, pod: PodResources, claims: Iterable[ObservedClaim]) -> str:
    """What of a pod or of its claims a LimitRange does not allow, empty for nothing."""
    excesses = (
        excess
        for part in limit_range.parts
        for requests, limits in _list_holders(part.kind, pod, claims)
        for excess in _compare(part, requests, limits)
    )
    return next(excesses, "")


def find_contested_default(limit_ranges: Iterable[LimitRange]) -> str:
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


def find_missing(quota: ResourceQuota, resources: PodResources) -> str:
    """What a container has to say because a quota counts it, empty for nothing."""
    if resources.whole.requests or resources.whole.limits:
        return ""
    required = [name for name, _hard in quota.hard if name in _REQUIRED]
    for holder in resources.containers:
        usage = _name_usage(dict(holder.requests), dict(holder.limits))
        if missing := [name for name in required if name not in usage]:
            return missing[0]
    return ""


def sum_up_pod(resources: PodResources) -> ResourceUsage:
    """What a pod counts for in a quota."""
    usage = _name_usage(resources.sum_up("requests"), resources.sum_up("limits"))
    return {**usage, "pods": 1000, "count/pods": 1000}


def _name_usage(requests: ResourceUsage, limits: ResourceUsage) -> dict[str, int]:
    usage = {f"requests.{name}": amount for name, amount in requests.items()}
    usage |= {name: requests[name] for name in requests if name in _OVERCOMMITTED or name.startswith("hugepages-")}
    return usage | {f"limits.{name}": limits[name] for name in limits if name in _OVERCOMMITTED}


def sum_up_claims(claims: Sequence[tuple[ObservedClaim, str]]) -> ResourceUsage:
    """What claims count for in a quota, each with its class."""
    usage: Counter[str] = Counter()
    for claim, storage_class in claims:
        prefixes = ("", *((f"{storage_class}{_CLASS_SUFFIX}",) if storage_class else ()))
        for prefix in prefixes:
            usage.update({f"{prefix}requests.storage": claim.size * 1000, f"{prefix}persistentvolumeclaims": 1000})
        usage["count/persistentvolumeclaims"] += 1000
    return usage


def find_quota_excess(quota: ResourceQuota, usage: ResourceUsage, more_pods: int) -> str:
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
