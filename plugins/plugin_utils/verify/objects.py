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

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import Target
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.pod import idle_pod

PART = "storage-proof"
RUN = "kubewin.io/proof-run"
OURS = f"{MANAGED_BY}={MANAGER},{PART_OF}={PART}"
MOUNT = "C:\\kubewin"
FILE = f"{MOUNT}\\proof.txt"
CONTAINER = "proof"
PREFIX = "kubewin-proof"


def of_run(run: str) -> str:
    """Label selector of everything of one run."""
    return f"{OURS},{RUN}={run}"


@dataclass(frozen=True, slots=True)
class Room:
    """Where a run puts its objects. own: the namespace is the run's and goes with it."""

    run: str
    namespace: str
    own: bool

    def labels(self) -> dict[str, str]:
        """On everything that a run makes."""
        return {MANAGED_BY: MANAGER, PART_OF: PART, RUN: self.run}

    def space(self) -> dict[str, Any]:
        """The run's own namespace. Its pods need nothing that "baseline" forbids; "restricted" wants a non-root user."""
        level = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in ("enforce", "audit", "warn")}
        labels = {**self.labels(), **level}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}

    def claim(self, target: Target) -> dict[str, Any]:
        """The claim that a target's pods share."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": self._metadata(self.name(target)),
            "spec": {
                "accessModes": [target.access_mode],
                "storageClassName": target.storage_class,
                "resources": {"requests": {"storage": target.size}},
            },
        }

    def pod(
        self, target: Target, number: int, node: str, image: str, tolerations: Sequence[Mapping[str, Any]], seconds: int
    ) -> dict[str, Any]:
        """The number-th pod of a target, on that node and no other. seconds: after which it ends by itself."""
        metadata = self._metadata(f"{self.name(target)}-{number}")
        return idle_pod(
            metadata, node, image, tolerations, self.name(target), container=CONTAINER, mount=MOUNT,
            activeDeadlineSeconds=seconds,
        )  # fmt: skip

    @staticmethod
    def name(target: Target) -> str:
        """Short, and valid whatever the node is called."""
        digest = hashlib.sha256(target.node.encode()).hexdigest()[:8]
        return f"{target.driver.replace('_', '-')}-{digest}"

    def _metadata(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self.namespace, "labels": self.labels()}


def attachment(provisioner: str, handle: str, node: str) -> str:
    """What the VolumeAttachment of a volume on a node is called (kubernetes/kubernetes, pkg/volume/csi/csi_util.go)."""
    return "csi-" + hashlib.sha256(f"{handle}{provisioner}{node}".encode()).hexdigest()


def content(target: Target, token: str, now: datetime) -> str:
    """What is written: no character that cmd reads as its own."""
    return f"{now.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ} {token} {target.driver} {target.node}"


def write(text: str) -> list[str]:
    """Write the file. The redirection stands first: a digit before ">" would be taken for a stream's number."""
    return ["cmd", "/c", f">{FILE}", "echo", *text.split(" ")]


def read() -> list[str]:
    """Print the file."""
    return ["cmd", "/c", "type", FILE]
