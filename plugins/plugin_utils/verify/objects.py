# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a proof, and the commands that are run in its pods. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..kube.labels import MANAGED_BY, MANAGER, PART_OF
from .nodes import ProofNode
from .plan import SIZE, VerifyRequest, VerifyTarget

PREFIX = "kubewin-verify"
RUN = "kubewin.io/verify-run"
SELECTOR = f"{MANAGED_BY}={MANAGER},{PART_OF}={PREFIX}"
CONTAINER = "kubewin"
MOUNT = "C:\\kubewin"
FILE = f"{MOUNT}\\proof.txt"


def select_run(run: str) -> str:
    return f"{SELECTOR},{RUN}={run}"


@dataclass(frozen=True, slots=True)
class RunScope:
    """The namespace of a run's objects. owns_namespace: the namespace is the run's and goes with it."""

    run: str
    namespace: str
    owns_namespace: bool

    def build_labels(self) -> dict[str, str]:
        return {MANAGED_BY: MANAGER, PART_OF: PREFIX, RUN: self.run}

    def define_namespace(self) -> dict[str, Any]:
        """Define the run's own namespace. Its pods need nothing that "baseline" forbids; "restricted" wants a non-root user."""
        level = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in ("enforce", "audit", "warn")}
        labels = {**self.build_labels(), **level}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}

    def define_claim(self, target: VerifyTarget) -> dict[str, Any]:
        """Define the claim that a target's pods share."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": self._build_metadata(self.name(target)),
            "spec": {
                "accessModes": [target.access_mode],
                "storageClassName": target.storage_class,
                "resources": {"requests": {"storage": SIZE}},
            },
        }

    def define_pod(
        self, target: VerifyTarget, number: int, node: ProofNode, desired: VerifyRequest, seconds: int
    ) -> dict[str, Any]:
        """Define the number-th pod of a target, on that node and no other. seconds: after which it ends by itself."""
        metadata = self._build_metadata(f"{self.name(target)}-{number}")
        return define_idle_pod(
            metadata, node, desired.image, desired.tolerations, self.name(target), activeDeadlineSeconds=seconds
        )

    def name(self, target: VerifyTarget) -> str:
        """Return a short name that is valid for any node name. Runs in one namespace do not share it: one may have been killed."""
        digest = hashlib.sha256(f"{self.run} {target.node}".encode()).hexdigest()[:8]
        return f"{target.driver.replace('_', '-')}-{digest}"

    def _build_metadata(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self.namespace, "labels": self.build_labels()}


def name_attachment(provisioner: str, handle: str, node: str) -> str:
    """Name the VolumeAttachment of a volume on a node (kubernetes/kubernetes, pkg/volume/csi/csi_util.go)."""
    return "csi-" + hashlib.sha256(f"{handle}{provisioner}{node}".encode()).hexdigest()


def format_content(target: VerifyTarget, token: str, current_time: datetime) -> str:
    """Format the content of the file, without characters that cmd interprets."""
    return f"{current_time.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ} {token} {target.driver} {target.node}"


def render_write(text: str) -> list[str]:
    """Render the command that writes the file. The redirection stands first: a digit before ">" would be taken for a stream's number."""
    return ["cmd", "/c", f">{FILE}", "echo", *text.split(" ")]


def render_read() -> list[str]:
    return ["cmd", "/c", "type", FILE]


def define_reading_pod(
    metadata: Mapping[str, Any], node: ProofNode, image: str, tolerations: Sequence[Mapping[str, Any]], claim: str,
    seconds: int,
) -> dict[str, Any]:  # fmt: skip
    """Define a pod that cannot write to the volume, for so many seconds."""
    return define_idle_pod(
        metadata, node, image, tolerations, claim,
        read_only=True, restartPolicy="Never", activeDeadlineSeconds=seconds,
    )  # fmt: skip


def define_idle_pod(
    metadata: Mapping[str, Any], node: ProofNode, image: str, tolerations: Sequence[Mapping[str, Any]], claim: str, *,
    read_only: bool = False, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """Define a pod on that node, with the claim's volume at MOUNT. image: empty for the one of the node's build. fields: of its spec.

    The scheduler places it, since volumes that wait for their first consumer are made where it says.
    """
    node_term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
    spec = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term]}}
        },
        "tolerations": node.list_tolerations(tolerations),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        # What a volume's root allows an ordinary user is the driver's and the share's business.
        "securityContext": {"windowsOptions": {"runAsUserName": "ContainerAdministrator"}},
        "containers": [
            {
                "name": CONTAINER,
                "image": image or node.choose_image(),
                "command": ["cmd", "/c", "ping -t 127.0.0.1 > NUL"],
                "resources": {
                    "requests": {"cpu": "10m", "memory": "64Mi"},
                    "limits": {"cpu": "500m", "memory": "256Mi"},
                },
                "volumeMounts": [{"name": "data", "mountPath": MOUNT, **({"readOnly": True} if read_only else {})}],
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        **fields,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": dict(metadata), "spec": spec}
