# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pulling a changed plugin's images before its pods are replaced: pods that do nothing but have these images. Pure.

Windows images are gigabytes, and a node is without its plugin while they come. The pods run ``cmd.exe /c exit 0``: images built
on Nano Server or Server Core have it, and a HostProcess container finds the host's, whatever its image holds. Whether it
runs does not matter: the kubelet pulls before it makes a container, so every later state, also an error, says that the
image is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.deploy.removal import PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import MANAGED_BY, MANAGER

COMPONENT = "app.kubernetes.io/component"
PULL = "image-pull"

# The kubelet's words for a container whose image is not there; every other state comes after the pull
# (pkg/kubelet/images/types.go of Kubernetes).
_NO_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
# No further try of the kubelet mends these.
_FOR_GOOD = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NOT_YET = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class Pull:
    """How far one node is. state: done, failed (for good), troubled (the kubelet tries again) or waiting. why: of trouble."""

    node: str
    state: str
    why: str = ""


def images(daemon_set: Mapping[str, Any]) -> tuple[str, ...]:
    """Every image of a DaemonSet's template, each once."""
    pod = daemon_set["spec"]["template"]["spec"]
    parts = [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]
    return tuple(dict.fromkeys(str(part["image"]) for part in parts))


def missing(node: Mapping[str, Any], wanted: Sequence[str]) -> tuple[str, ...]:
    """What a Node does not say it has. It names only its largest images, so one that is not named may be there."""
    there = {name for image in (node.get("status") or {}).get("images") or [] for name in image.get("names") or []}
    return tuple(image for image in wanted if image not in there)


def selector(driver: str) -> str:
    """Label selector of a driver's pods of this kind, also those that a killed run left."""
    return f"{MANAGED_BY}={MANAGER},{PART_OF}={driver},{COMPONENT}={PULL}"


def pod(daemon_set: Mapping[str, Any], driver: str, node: str, wanted: Sequence[str], seconds: int) -> dict[str, Any]:
    """The pod that pulls images on a node: in the form of the plugin, without anything of the host.

    It has none of the DaemonSet's labels, whose controller would adopt it. seconds: after which the kubelet ends it.
    """
    template = daemon_set["spec"]["template"]["spec"]
    metadata = daemon_set["metadata"]
    policies = {part["image"]: part.get("imagePullPolicy") for part in template["containers"]}
    spec: dict[str, Any] = {
        "nodeName": node,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "serviceAccountName": template.get("serviceAccountName", "default"),
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": f"image-{number}",
                "image": image,
                "command": ["cmd.exe"],
                "args": ["/c", "exit", "0"],
                **({"imagePullPolicy": policies[image]} if policies.get(image) else {}),
            }
            for number, image in enumerate(wanted, 1)
        ],
    }
    spec.update({key: template[key] for key in ("os", "imagePullSecrets", "hostNetwork") if key in template})
    if ((template.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess"):
        options = {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\LOCAL SERVICE"}
        spec["securityContext"] = {"windowsOptions": options}
    suffix = hashlib.sha256(node.encode()).hexdigest()[:10]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-pull-{suffix}",
            "namespace": metadata["namespace"],
            "labels": {MANAGED_BY: MANAGER, PART_OF: driver, COMPONENT: PULL},
        },
        "spec": spec,
    }


def judge(pods: Iterable[Mapping[str, Any]]) -> tuple[Pull, ...]:
    """How far the nodes of these pods are."""
    return tuple(_judge(one) for one in pods)


def _judge(one: Mapping[str, Any]) -> Pull:
    node, status = str(one["spec"].get("nodeName", "")), one.get("status") or {}
    containers = status.get("containerStatuses") or []
    states = [_container(container) for container in containers]
    if containers and len(containers) == len(one["spec"]["containers"]) and all(state is None for state in states):
        return Pull(node, "done")
    if status.get("phase") == "Failed":
        said = " ".join(str(part) for part in (status.get("reason"), status.get("message")) if part)
        return Pull(node, "failed", said or "the kubelet refused the pod")
    trouble = [state for state in states if state]
    if any(word in _FOR_GOOD for state in trouble for word in state.split()):
        return Pull(node, "failed", "; ".join(dict.fromkeys(trouble)))
    return Pull(node, "troubled", "; ".join(dict.fromkeys(trouble))) if trouble else Pull(node, "waiting")


def _container(status: Mapping[str, Any]) -> str | None:
    """None when its image is there, empty while it is waited for, else what keeps it away."""
    waiting = (status.get("state") or {}).get("waiting")
    if waiting is None or status.get("imageID"):
        return None if status.get("state") else ""
    reason = str(waiting.get("reason", ""))
    if reason in _NO_IMAGE:
        return f"{status.get('image')}: {reason} {waiting.get('message', '')}".strip()
    return "" if reason in _NOT_YET else None
