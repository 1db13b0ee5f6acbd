# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations of this collection, and what an object's metadata says about its manager. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .pod import find_controller

SERVING_LABEL = "kubewin.io/csi-proxy"
SERVING_VALUE = "serving"
PART_OF = "app.kubernetes.io/part-of"
MANAGED_BY = "app.kubernetes.io/managed-by"
# Also the field manager of this collection.
MANAGER = "kubewin.csi"
MODE = "kubewin.io/mode"
# On a Node: the reason of a cordon of ours.
CORDONED = "kubewin.io/cordoned"
# On a claim: run and generation of its conversion. On a volume: the run and the side, old or new.
CONVERSION = "kubewin.io/convert"
# On our DaemonSet: a hand-over to the platform is under way.
HANDOVER = "kubewin.io/handover"
HELM = "meta.helm.sh/release-name"
# Tools that put back what they keep, by the label or annotation that they leave on it, and what of them keeps it ({}: its name).
TOOLS = {
    "argocd.argoproj.io/tracking-id": ("Argo CD", "the Application {}"),
    "argocd.argoproj.io/instance": ("Argo CD", "the Application {}"),
    "kustomize.toolkit.fluxcd.io/name": ("Flux", "the source of Flux's Kustomization {}"),
    "helm.toolkit.fluxcd.io/name": ("Flux", "the source of Flux's HelmRelease {}"),
    "olm.owner": ("the Operator Lifecycle Manager", "the operator {}"),
}


def read_cordon_reason(node: Mapping[str, Any]) -> str:
    """The reason of this collection's cordon, also after another client lifted it; empty for a cordon of another client.

    The annotation outlives kubectl uncordon, so the next cordon may be another user's. The API server keeps who set each field.
    """
    metadata = node["metadata"]
    managers = {
        entry.get("manager")
        for entry in metadata.get("managedFields") or ()
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    }
    # The API server sums up older entries under these names.
    managers -= {"ancient-changes", "before-first-apply"}
    is_foreign = bool((node.get("spec") or {}).get("unschedulable") and managers and MANAGER not in managers)
    return "" if is_foreign else str((metadata.get("annotations") or {}).get(CORDONED) or "")


def is_absent_or_ours(live: Mapping[str, Any] | None) -> bool:
    """Whether an object is ours to write: it does not exist, or has our label."""
    return live is None or (live["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER


def is_of_run(live: Mapping[str, Any]) -> bool:
    """Whether a run of this collection created an object for itself, such as a pod that reads a volume: nothing recreates it."""
    metadata = live["metadata"]
    return (metadata.get("labels") or {}).get(MANAGED_BY) == MANAGER and not find_controller(metadata)[0]


# Labels and annotations that show the owner of an object, see drivers/ownership.py. Nothing else of its labels and annotations is kept: the
# others may be long or private.
_OWNERSHIP = frozenset({
    MANAGED_BY, HANDOVER, HELM, *TOOLS, "addonmanager.kubernetes.io/mode", "components.gke.io/component-name",
    "csi.openshift.io/managed", "kubernetes.azure.com/managedby", "operator.openshift.io/spec-hash",
})  # fmt: skip


def build_selector(workload: Mapping[str, Any]) -> str:
    labels = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


# Annotations by which OpenShift's storage operators mark what they apply: library-go pkg/operator/resource/resourceapply/apps.go.
OPENSHIFT_OPERATOR = ("operator.openshift.io/spec-hash", "csi.openshift.io/managed")


@dataclass(frozen=True, slots=True)
class Marks:
    """Ownership in an object's metadata. owner: its controller, "ClusterCSIDriver file.csi.azure.com"."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""

    @classmethod
    def from_object(cls, live: Mapping[str, Any]) -> Marks:
        metadata = live.get("metadata") or {}
        return cls(
            labels={key: str(text) for key, text in (metadata.get("labels") or {}).items() if key in _OWNERSHIP},
            annotations={
                key: str(text) for key, text in (metadata.get("annotations") or {}).items() if key in _OWNERSHIP
            },
            owner=" ".join(find_controller(metadata)).strip(),
        )

    def list_tools(self) -> Iterator[tuple[str, str, str]]:
        """Each tool that would put the object back: its name, its mark, and where the object is to be taken out."""
        for key, (tool, source) in TOOLS.items():
            value = self.labels.get(key) or self.annotations.get(key)
            if value:
                mark = f"label {key}={value}" if key in self.labels else f"annotation {key}"
                yield tool, mark, source.format(value.partition(":")[0])
