# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods request, and the limits of it that a namespace has. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...base.cached import share
from ...base.text import share_text
from .sources import read_quantity

# By resource, in thousandths, so that an amount of 0 is not an absent one.
Amounts = tuple[tuple[str, int], ...]
ContainerKind = Literal["container", "init", "sidecar"]


def read_amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    if not quantities:
        return ()
    return tuple(sorted((share_text(name), read_quantity(str(text), 1000)) for name, text in quantities.items()))


def format_amount(name: str, amount: int) -> str:
    """Thousandths of a resource as people write a quantity: 12Gi of memory, 0.5 of CPU."""
    if name.endswith(("memory", "storage")) or "hugepages-" in name:
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount >= size * 1000:
                return f"{amount / size / 1000:g}{unit}"
    return f"{amount / 1000:g}"


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """What a container requests and its limits; a limit stands for a request that is not there, as the API sets it."""

    kind: ContainerKind = "container"
    requests: Amounts = ()
    limits: Amounts = ()

    @classmethod
    def from_object(cls, holder: Mapping[str, Any], kind: ContainerKind = "container") -> ContainerResources:
        """Read resources (limits, requests) of a container, or of a pod as a whole."""
        resources = holder.get("resources") or {}
        limits = resources.get("limits") or {}
        return cls(kind, read_amounts({**limits, **(resources.get("requests") or {})}), read_amounts(limits))


@dataclass(frozen=True, slots=True)
class PodResources:
    """What the containers of a pod request, and the pod as a whole, which comes before its containers. overhead: of its RuntimeClass."""

    containers: tuple[ContainerResources, ...] = ()
    whole: ContainerResources = ContainerResources()
    overhead: Amounts = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> PodResources:
        """Read a core/v1 PodSpec: overhead, resources, of containers and initContainers resources and restartPolicy."""
        containers = [ContainerResources.from_object(entry) for entry in spec.get("containers") or ()]
        for entry in spec.get("initContainers") or ():
            is_sidecar = entry.get("restartPolicy") == "Always"
            containers.append(ContainerResources.from_object(entry, "sidecar" if is_sidecar else "init"))
        return share(cls(tuple(containers), ContainerResources.from_object(spec), read_amounts(spec.get("overhead"))))

    def sum_up(self, field: Literal["requests", "limits"], overhead: bool = True) -> dict[str, int]:
        """As PodRequests and PodLimits of https://github.com/kubernetes/kubernetes, staging/src/k8s.io/component-helpers/resource."""
        total, sidecars, most = Counter[str](), Counter[str](), Counter[str]()
        names = {name for holder in (*self.containers, self.whole) for name, _amount in getattr(holder, field)}
        for holder in self.containers:
            amounts = Counter(dict(getattr(holder, field)))
            if holder.kind == "container":
                total.update(amounts)
            elif holder.kind == "sidecar":
                sidecars.update(amounts)
                most |= sidecars
            else:
                most |= sidecars + amounts
        total.update(sidecars)
        summed = Counter({**dict.fromkeys(names, 0), **(total | most), **dict(getattr(self.whole, field))})
        if overhead:
            # A pod without a limit has none with the overhead either.
            summed.update(dict(pair for pair in self.overhead if field == "requests" or summed[pair[0]]))
        return dict(summed)

    def add_defaults(self, ranges: Iterable[LimitRange]) -> PodResources:
        """With what LimitRanger sets where a container says nothing."""
        defaults = [part for limit_range in ranges for part in limit_range.parts if part.kind == "Container"]
        if not defaults:
            return self
        return replace(self, containers=tuple(_add_defaults(holder, defaults) for holder in self.containers))


def _add_defaults(holder: ContainerResources, defaults: Iterable[LimitRangePart]) -> ContainerResources:
    requests, limits = dict(holder.requests), dict(holder.limits)
    for part in defaults:
        limits = {**dict(part.default), **limits}
        requests = {**dict(part.default_request), **requests}
    return replace(holder, requests=tuple(sorted(requests.items())), limits=tuple(sorted(limits.items())))


@dataclass(frozen=True, slots=True)
class LimitRangePart:
    """An item of a LimitRange. kind: Container, Pod or PersistentVolumeClaim. ratio: of limit to request, at most."""

    kind: str
    default: Amounts = ()
    default_request: Amounts = ()
    least: Amounts = ()
    most: Amounts = ()
    ratio: Amounts = ()


@dataclass(frozen=True, slots=True)
class LimitRange:
    namespace: str
    name: str
    parts: tuple[LimitRangePart, ...] = ()

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> LimitRange:
        """Read a core/v1 LimitRange: metadata (namespace, name), spec.limits."""
        fields = ("default", "defaultRequest", "min", "max", "maxLimitRequestRatio")
        parts = (
            LimitRangePart(str(entry.get("type")), *(read_amounts(entry.get(field)) for field in fields))
            for entry in (item.get("spec") or {}).get("limits") or ()
        )
        return cls(str(item["metadata"]["namespace"]), str(item["metadata"]["name"]), tuple(parts))


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """A ResourceQuota. used: None until it is counted. has_scopes: it counts some pods only."""

    namespace: str
    name: str
    hard: Amounts = ()
    used: Amounts | None = None
    has_scopes: bool = False

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> ResourceQuota:
        """Read a core/v1 ResourceQuota: metadata (namespace, name), spec (hard, scopes, scopeSelector), status.used."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        return cls(
            str(metadata["namespace"]),
            str(metadata["name"]),
            read_amounts(spec.get("hard")),
            read_amounts(status.get("used")) if status.get("used") or not spec.get("hard") else None,
            bool(spec.get("scopes") or spec.get("scopeSelector")),
        )
