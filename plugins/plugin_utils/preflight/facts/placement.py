# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a pod may run: what its spec, a node affinity or a RuntimeClass says of it. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.cached import share


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node affinity. field: it is about metadata.name, not about a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


Term = tuple[Requirement, ...]


def read_terms(selector: Mapping[str, Any] | None) -> tuple[Term, ...] | None:
    """Read a core/v1 NodeSelector; None where there is none, which lets every node pass."""
    if selector is None:
        return None
    return tuple(
        tuple(
            Requirement(
                str(requirement.get("key", "")),
                str(requirement.get("operator", "")),
                tuple(requirement.get("values") or ()),
                by == "matchFields",
            )
            for by in ("matchExpressions", "matchFields")
            for requirement in term.get(by) or ()
        )
        for term in selector.get("nodeSelectorTerms") or ()
    )


def write_terms(terms: tuple[Term, ...] | None) -> dict[str, Any] | None:
    """Write the NodeSelector that read_terms reads."""

    def write_expressions(term: Term, field: bool) -> list[dict[str, Any]]:
        return [
            {"key": requirement.key, "operator": requirement.operator, "values": [*requirement.values]}
            for requirement in term
            if requirement.field == field
        ]

    if terms is None:
        return None
    by_term = ((write_expressions(term, False), write_expressions(term, True)) for term in terms)
    return {"nodeSelectorTerms": [{"matchExpressions": labels, "matchFields": names} for labels, names in by_term]}


_NAMED_VALUES = 3


def describe_terms(terms: tuple[Term, ...]) -> str:
    """Terms as kubectl writes selectors: "zone in (a, b),disk or !gpu"."""
    return " or ".join(",".join(map(_describe_requirement, term)) for term in terms)


def _describe_requirement(requirement: Requirement) -> str:
    values = ", ".join(requirement.values[:_NAMED_VALUES])
    values += f" and {len(requirement.values) - _NAMED_VALUES} more" if len(requirement.values) > _NAMED_VALUES else ""
    if requirement.operator in ("In", "NotIn"):
        return f"{requirement.key} {requirement.operator.lower()} ({values})"
    if requirement.operator in ("Exists", "DoesNotExist"):
        return f"{'!' if requirement.operator == 'DoesNotExist' else ''}{requirement.key}"
    return f"{requirement.key} {requirement.operator} {values}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that a pod accepts."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """What says where a pod may run.

    os: spec.os.name. selector: spec.nodeSelector, sorted. terms: required node affinity. runtime_class: whose scheduling
    is merged into pods at admission and does not show in templates. scheduler:
    spec.schedulerName, empty for the default one. gated: it has schedulingGates.
    """

    os: str = ""
    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str = ""
    scheduler: str = ""
    gated: bool = False

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Placement:
        """Read a core/v1 PodSpec."""
        scheduler = str(spec.get("schedulerName") or "")
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        placement = cls(
            os=str((spec.get("os") or {}).get("name", "")),
            selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=read_terms(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")),
            tolerations=tuple(
                Toleration(
                    str(toleration.get("key") or ""),
                    str(toleration.get("operator") or "Equal"),
                    str(toleration.get("value") or ""),
                    str(toleration.get("effect") or ""),
                )
                for toleration in spec.get("tolerations") or ()
                # One with a time only puts the eviction off. Every pod gets these two at admission, so they do not matter.
                if toleration.get("tolerationSeconds") is None
                and (
                    toleration.get("key") not in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
                    or (toleration.get("operator"), toleration.get("effect")) != ("Exists", "NoExecute")
                )
            ),
            runtime_class=str(spec.get("runtimeClassName") or ""),
            scheduler="" if scheduler == "default-scheduler" else sys.intern(scheduler),
            gated=bool(spec.get("schedulingGates")),
        )
        # Most pods of a cluster have the same placement.
        return share(placement)

    @property
    def named_system(self) -> str:
        """The operating system that it names, empty for none."""
        return self.os or dict(self.selector).get("kubernetes.io/os", "")


# Of a pod that says nothing.
ANYWHERE = Placement()
