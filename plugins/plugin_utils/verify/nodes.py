# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Windows nodes a volume can be proven on, with which image, and where a volume can go next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..drivers.rollout.scheduling import covers, matches_term
from ..kube.errors import ClusterError
from ..kube.node import ObservedNode, Taint

IMAGE = "mcr.microsoft.com/windows/nanoserver"
# https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility
TAGS = {"17763": "ltsc2019", "20348": "ltsc2022", "25398": "ltsc2022", "26100": "ltsc2025"}
# The taint of a cordon: pods that tolerate it may run on a cordoned node.
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# What says no more than that a node is Windows.
_WINDOWS_KEYS = frozenset({"os", "kubernetes.io/os", "node.kubernetes.io/os"})


@dataclass(frozen=True, slots=True)
class ProofNode:
    """A Windows Node. drivers: CSI names in its CSINode."""

    facts: ObservedNode
    drivers: frozenset[str]

    @property
    def name(self) -> str:
        return self.facts.name

    @classmethod
    def from_objects(cls, node: Mapping[str, Any], csi_node: Mapping[str, Any] | None) -> ProofNode:
        entries = ((csi_node or {}).get("spec") or {}).get("drivers") or []
        return cls(ObservedNode.from_object(node), frozenset(entry["name"] for entry in entries))

    def choose_image(self) -> str:
        """Return the smallest Windows image of this node's build, empty if none is known."""
        return f"{IMAGE}:{TAGS[self.facts.build]}" if self.facts.build in TAGS else ""

    def list_tolerations(self, additional: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the tolerations of a pod: for the node's taints that mark Windows, and those of the user."""
        tolerations = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            for taint in self.facts.taints
            if _is_windows_taint(taint)
        ]
        return [*tolerations, *(dict(toleration) for toleration in additional)]


def _is_windows_taint(taint: Taint) -> bool:
    return taint.key.lower() in _WINDOWS_KEYS and taint.value.lower() in ("windows", "win1809", "")


def explain_unschedulable(node: ProofNode, image: str, tolerations: Sequence[Mapping[str, Any]]) -> str:
    """Return why no pod can be scheduled to a node, with the remedy; empty if it can."""
    facts = node.facts
    if facts.cordoned and not any(covers(toleration, _CORDON) for toleration in tolerations):
        return f"it is cordoned; when it may run pods again: kubectl uncordon {node.name}"
    if not facts.ready:
        because = f": {facts.not_ready_because}" if facts.not_ready_because else ""
        return f"it is not Ready{because}; kubectl describe node {node.name}"
    for taint in facts.taints:
        if taint.effect == "PreferNoSchedule" or _is_windows_taint(taint):
            continue
        if not any(covers(toleration, taint) for toleration in tolerations):
            shown = f"{taint.key}={taint.value}" if taint.value else taint.key
            return f"taint {shown}:{taint.effect} keeps the pod away; allow it with tolerations"
    if not image and not node.choose_image():
        build = f"Windows build {facts.build}" if facts.build else "no Windows build in its labels"
        return f"{build}, for which no image is known; set image"
    return ""


def explain_unfit(node: ProofNode, driver: str, image: str, tolerations: Sequence[Mapping[str, Any]]) -> str:
    """Return why a driver cannot be verified on a node, with the remedy; empty if it can. driver: its CSI name, empty for in-tree."""
    why = explain_unschedulable(node, image, tolerations)
    if not why and driver and driver not in node.drivers:
        return f"{driver} is not in its CSINode; run enable_csi, whose gate reports the cause"
    return why


def can_reach(node: ProofNode, volume: Mapping[str, Any]) -> bool:
    """Whether a PersistentVolume can be used on a node, by its node affinity."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    if not required:
        return True
    return any(matches_term(term, node.facts) for term in required.get("nodeSelectorTerms") or [])


def choose_node(
    nodes: Iterable[ProofNode], claim: str, volume: Mapping[str, Any], driver: str, image: str,
    tolerations: Sequence[Mapping[str, Any]],
) -> ProofNode:  # fmt: skip
    """Return the first node for a pod that reads this claim's volume. Raises ClusterError no_node.

    driver: the CSI name that the node must have registered, empty for an in-tree volume.
    """
    reasons: list[str] = []
    for node in nodes:
        why = explain_unfit(node, driver, image, tolerations)
        if not why and not can_reach(node, volume):
            why = "the volume's node affinity"
        if not why:
            return node
        reasons.append(f"{node.name}: {why}")
    raise ClusterError(
        f"no Windows node accepts the pod that reads {claim}: {'; '.join(reasons) or 'there is none'}.", "no_node"
    )
