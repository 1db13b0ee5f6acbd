# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a DaemonSet puts pods, and why not somewhere else: node selector, required node affinity and taints. Pure.

The rules are the scheduler's and the DaemonSet controller's:
https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.decode import read_number
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.node import ObservedNode, Taint

# What the DaemonSet controller lets every one of its pods tolerate.
_ALWAYS_TOLERATED = {
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
}
_HOST_NETWORK_TOLERATED = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def explain_exclusion(daemon_set: ObservedDaemonSet, node: ObservedNode) -> str | None:
    """Why a DaemonSet puts no pod on a node, None when it does."""
    spec = daemon_set.pod_spec
    for key, value in (spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            label_state = f"is {node.labels[key]}" if key in node.labels else "is missing"
            return f"label {key} {label_state}, expected {value}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not any(matches_term(term, node) for term in terms):
            return "the DaemonSet's node affinity does not match its labels"
    for taint in node.taints:
        if not _is_tolerated(taint, daemon_set):
            shown = f"{taint.key}={taint.value}" if taint.value else taint.key
            return f"taint {shown}:{taint.effect} is not tolerated"
    return None


def matches_term(term: Mapping[str, Any], node: ObservedNode) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    by_field = {"metadata.name": node.name}
    return all(matches_expression(expression, node.labels) for expression in expressions) and all(
        matches_expression(expression, by_field) for expression in fields
    )


def matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether one expression of a node selector holds for labels."""
    key, operator, values = str(expression.get("key")), expression.get("operator"), expression.get("values") or []
    value = labels.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt") and value is not None and len(values) == 1:
        number, limit = read_number(value), read_number(values[0])
        if number is None or limit is None:
            return False
        return number > limit if operator == "Gt" else number < limit
    return False


def _is_tolerated(taint: Taint, daemon_set: ObservedDaemonSet) -> bool:
    if taint.effect == "PreferNoSchedule" or (taint.key, taint.effect) in _ALWAYS_TOLERATED:
        return True
    if daemon_set.pod_spec.get("hostNetwork") and (taint.key, taint.effect) == _HOST_NETWORK_TOLERATED:
        return True
    return any(covers(toleration, taint) for toleration in daemon_set.pod_spec.get("tolerations") or [])


def covers(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """Whether a toleration of a pod, as the API has it, accepts a taint."""
    return tolerates(
        taint,
        key=toleration.get("key") or "",
        operator=toleration.get("operator") or "Equal",
        value=toleration.get("value") or "",
        effect=toleration.get("effect") or "",
    )


def tolerates(taint: Taint, *, key: str, operator: str, value: str, effect: str) -> bool:
    """Whether a toleration with these fields, empty where it has none, accepts a taint."""
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    return operator == "Exists" or (bool(key) and value == taint.value)
