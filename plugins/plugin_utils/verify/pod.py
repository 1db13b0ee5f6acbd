# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An idle Windows pod with a volume, in which commands are run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def define_idle_pod(
    metadata: Mapping[str, Any], node: str, image: str, tolerations: Sequence[Mapping[str, Any]], claim: str, *,
    container: str, mount: str, read_only: bool = False, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """Define a pod on that node, with the claim's volume at mount. fields: of its spec.

    The scheduler places it, since volumes that wait for their first consumer are made where it says.
    """
    node_term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    spec = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term]}}
        },
        "tolerations": [dict(toleration) for toleration in tolerations],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        # What a volume's root allows an ordinary user is the driver's and the share's business.
        "securityContext": {"windowsOptions": {"runAsUserName": "ContainerAdministrator"}},
        "containers": [
            {
                "name": container,
                "image": image,
                "command": ["cmd", "/c", "ping -t 127.0.0.1 > NUL"],
                "resources": {
                    "requests": {"cpu": "10m", "memory": "64Mi"},
                    "limits": {"cpu": "500m", "memory": "256Mi"},
                },
                "volumeMounts": [{"name": "data", "mountPath": mount, **({"readOnly": True} if read_only else {})}],
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        **fields,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": dict(metadata), "spec": spec}
