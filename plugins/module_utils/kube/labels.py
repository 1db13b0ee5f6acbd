# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations of this collection, and what an object's metadata says about its manager. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROVEN_LABEL = "kubewin.io/csi-proxy"
PROVEN_VALUE = "proven"
PART_OF = "app.kubernetes.io/part-of"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "kubewin.csi"
MODE = "kubewin.io/mode"
# On our DaemonSet: a hand-over to the platform is under way.
HANDOVER = "kubewin.io/handover"


def absent_or_ours(live: Mapping[str, Any] | None) -> bool:
    """Whether an object is ours to write: it does not exist, or has our label."""
    return live is None or (live["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER


# What tells of who keeps an object (drivers/ownership.py says how). Nothing else of its labels and annotations is kept: the
# others may be long, and hold what is nobody's business.
_TELLING = frozenset({
    MANAGED_BY, HANDOVER, "addonmanager.kubernetes.io/mode", "argocd.argoproj.io/tracking-id",
    "components.gke.io/component-name", "csi.openshift.io/managed", "helm.toolkit.fluxcd.io/name",
    "kubernetes.azure.com/managedby", "kustomize.toolkit.fluxcd.io/name", "meta.helm.sh/release-name",
    "operator.openshift.io/spec-hash",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Marks:
    """What an object's metadata tells of who keeps it. owner: its controller, "ClusterCSIDriver file.csi.azure.com"."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""

    @classmethod
    def from_object(cls, live: Mapping[str, Any]) -> Marks:
        """Read any object."""
        metadata = live.get("metadata") or {}
        owners = [
            f"{one.get('kind')} {one.get('name')}"
            for one in metadata.get("ownerReferences") or []
            if one.get("controller")
        ]
        return cls(
            labels={key: str(text) for key, text in (metadata.get("labels") or {}).items() if key in _TELLING},
            annotations={
                key: str(text) for key, text in (metadata.get("annotations") or {}).items() if key in _TELLING
            },
            owner=owners[0] if owners else "",
        )


def made_by(live: Mapping[str, Any]) -> str:
    """When an object was created and with which program: Kubernetes keeps no user, only what a client calls itself."""
    metadata = live["metadata"]
    writers = [one for one in metadata.get("managedFields") or [] if not one.get("subresource")]
    first: Mapping[str, Any] = min(writers, key=lambda one: str(one.get("time", "")), default={})
    by = f" with {first['manager']}" if first.get("manager") else ""
    return f"{metadata['creationTimestamp']}{by}" if metadata.get("creationTimestamp") else ""
