# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod that reads an unused volume. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..kube.labels import MANAGED_BY, MANAGER, PART_OF
from ..kube.pod import PodFacts
from ..verify.nodes import ProofNode
from ..verify.objects import define_reading_pod

LABELS = {MANAGED_BY: MANAGER, PART_OF: "workload-data"}
# Longer than reading may take, so that the pod of a run that died ends by itself.
_GRACE = 1800


def name_helper(claim_uid: str) -> str:
    return f"kubewin-data-{hashlib.sha256(claim_uid.encode()).hexdigest()[:16]}"


def is_ours(pod: Mapping[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in LABELS.items())


def define_helper(
    claim: Mapping[str, Any], node: ProofNode, image: str, tolerations: Sequence[Mapping[str, Any]], seconds: float
) -> dict[str, Any]:
    """Define the helper pod on that node. image: empty for the one of the node's build."""
    of = claim["metadata"]
    metadata = {"name": name_helper(of["uid"]), "namespace": of["namespace"], "labels": dict(LABELS)}
    return define_reading_pod(metadata, node, image, tolerations, of["name"], int(seconds) + _GRACE)


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A pod that uses a claim. mounts: (container, folder in it) of the whole volume. image: of the first of them."""

    pod: str
    running: bool
    mounts: tuple[tuple[str, str], ...]
    image: str


def find_uses(pods: Sequence[Mapping[str, Any]], claim: str) -> Iterator[ClaimUse]:
    """Find all pods that may write to a claim's volume, except finished ones and our own."""
    for pod in pods:
        spec, facts = pod["spec"], PodFacts.from_object(pod)
        names = {
            volume["name"]
            for volume in spec.get("volumes") or []
            if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim
        }
        if not names or is_ours(pod) or facts.ended:
            continue
        containers = spec.get("containers") or []
        mounts = [
            (container, to_windows_path(mount["mountPath"]))
            for container in containers
            for mount in container.get("volumeMounts") or []
            if mount["name"] in names and not mount.get("subPath") and not mount.get("subPathExpr")
        ]
        yield ClaimUse(
            pod=pod["metadata"]["name"],
            running=facts.phase == "Running" and not facts.deleting,
            mounts=tuple((container["name"], mount_path) for container, mount_path in mounts),
            image=mounts[0][0]["image"] if mounts else "",
        )


def to_windows_path(mount: str) -> str:
    """Convert a mountPath to a Windows path: "/data/" is C:\\data there."""
    path = mount.replace("/", "\\")
    path = path if re.match("[A-Za-z]:", path) else f"C:{path}"
    return path.rstrip("\\") if len(path) > 3 else path
