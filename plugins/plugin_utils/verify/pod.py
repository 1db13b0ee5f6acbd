# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An idle Windows pod with a volume, in which commands are run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .nodes import ProofNode

CONTAINER = "kubewin"
MOUNT = "C:\\kubewin"


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
