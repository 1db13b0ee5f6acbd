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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import render_progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import DaemonSetFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.scheduling import explain_exclusion
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import (
    MANAGED_BY,
    MANAGER,
    PART_OF,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import is_host_process

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
# No retry of the kubelet resolves these.
_FOR_GOOD = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NOT_YET = frozenset({"", "ContainerCreating", "PodInitializing"})

# Nodes that pull at a time: a registry and the line to it are shared.
_AT_ONCE = 10
# Seconds for which a pull may fail before it counts as failed; the kubelet retries meanwhile.
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class ImagePull:
    """How far one node is. state: done, failed (for good), troubled (the kubelet tries again) or waiting. why: of trouble."""

    node: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far all nodes are. done, waiting, start: nodes that have their images, that lack some, and whose pull starts now.

    why: of nodes in trouble. failures: of nodes whose pull failed for good.
    """

    done: tuple[str, ...]
    waiting: tuple[str, ...]
    start: tuple[str, ...]
    why: Mapping[str, str]
    failures: Mapping[str, str]


def list_images(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Every image of a pod or a pod template, each once."""
    parts = [*(pod["spec"].get("initContainers") or []), *(pod["spec"].get("containers") or [])]
    return tuple(dict.fromkeys(str(part["image"]) for part in parts))


def find_missing_images(
    plugin: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    nodes: Iterable[Mapping[str, Any]],
    only: Sequence[str],
) -> dict[str, tuple[str, ...]]:
    """The images to pull, by Node; empty where no plugin runs yet, or what runs has these images.

    plugin: the DaemonSet as requested. pods: those of the DaemonSet as it is. nodes: the Windows Nodes. only: those of this run, in order;
    empty takes all.
    """
    required, after = list_images(plugin["spec"]["template"]), DaemonSetFacts.from_object(plugin)
    changing = {str(pod["spec"].get("nodeName", "")) for pod in pods if not set(required) <= set(list_images(pod))}
    there = {}
    for node in nodes:
        facts = ObservedNode.from_object(node)
        if facts.ready and facts.name in changing and explain_exclusion(after, facts) is None:
            there[facts.name] = list_missing_images(node, required)
    return {name: there[name] for name in only or sorted(there) if there.get(name)}


def evaluate_progress(
    pods: Iterable[Mapping[str, Any]], nodes: Iterable[str], done: Sequence[str], trouble: Mapping[str, float]
) -> PullProgress:
    """What comes next. done: nodes that had their images before. trouble: for how many seconds a node has had some."""
    evaluated = {one.node: one for one in evaluate_pulls(pods)}
    there = (*done, *(name for name, one in evaluated.items() if one.state == "done" and name not in done))
    waiting = tuple(name for name in nodes if name not in there)
    coming = [name for name in waiting if name not in evaluated]
    under_way = sum(one.state != "done" for one in evaluated.values())
    why = {name: one.why for name, one in evaluated.items() if one.state in ("troubled", "failed")}
    return PullProgress(
        done=there,
        waiting=waiting,
        start=tuple(coming[: max(0, _AT_ONCE - under_way)]),
        why=why,
        failures={
            name: text
            for name, text in why.items()
            if evaluated[name].state == "failed" or trouble.get(name, 0.0) >= _PATIENCE
        },
    )


def render_progress_lines(found: PullProgress, waited: float, limit: float) -> Iterator[str]:
    """A line for the whole and one for each node that has trouble."""
    nodes = len(found.done) + len(found.waiting)
    yield f"{render_progress(waited, limit)}: {len(found.done)} of {nodes} nodes have the images"
    for node, why in found.why.items():
        yield f"  {node}: {why}"


def explain_failure(found: PullProgress, left: float) -> ClusterError | None:
    """Why pulling ends before every node has its images, None while it continues. left: seconds."""
    if found.failures:
        listed = "; ".join(f"{node}: {why}" for node, why in found.failures.items())
        return ClusterError(
            f"images of the changed plugin cannot be pulled: {listed}. No plugin pod was replaced. Check "
            "registry, tag and pull secret (the image options and image_mirror set them), then run again.",
            "pull_failed",
        )
    if found.waiting and left <= 0:
        listed = "; ".join(f"{node}: {found.why.get(node, 'not pulled yet')}" for node in found.waiting)
        return ClusterError(
            f"images of the changed plugin were not pulled in time: {listed}. No plugin pod was replaced. Pulled "
            "images are kept. Run again, with a higher kubewin_prepull_timeout if the registry is only slow.",
            "timeout",
        )
    return None


def list_missing_images(node: Mapping[str, Any], required: Sequence[str]) -> tuple[str, ...]:
    """Images that a Node does not report. It reports only its largest images, so a missing one may exist."""
    there = {name for image in (node.get("status") or {}).get("images") or [] for name in image.get("names") or []}
    return tuple(image for image in required if image not in there)


def make_selector(driver: str) -> str:
    """Label selector of a driver's pods of this kind, also those that a killed run left."""
    return f"{MANAGED_BY}={MANAGER},{PART_OF}={driver},{COMPONENT}={PULL}"


def make_pod(
    daemon_set: Mapping[str, Any], driver: str, node: str, required: Sequence[str], seconds: int
) -> dict[str, Any]:
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
            for number, image in enumerate(required, 1)
        ],
    }
    spec.update({key: template[key] for key in ("os", "imagePullSecrets", "hostNetwork") if key in template})
    if is_host_process(template):
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


def evaluate_pulls(pods: Iterable[Mapping[str, Any]]) -> tuple[ImagePull, ...]:
    """How far the nodes of these pods are."""
    return tuple(_evaluate_pull(one) for one in pods)


def _evaluate_pull(one: Mapping[str, Any]) -> ImagePull:
    node, status = str(one["spec"].get("nodeName", "")), one.get("status") or {}
    containers = status.get("containerStatuses") or []
    states = [_describe_container(container) for container in containers]
    if containers and len(containers) == len(one["spec"]["containers"]) and all(state is None for state in states):
        return ImagePull(node, "done")
    if status.get("phase") == "Failed":
        detail = join_lines(" ".join(str(part) for part in (status.get("reason"), status.get("message")) if part))
        return ImagePull(node, "failed", detail or "the kubelet refused the pod")
    trouble = [state for state in states if state]
    if any(word in _FOR_GOOD for state in trouble for word in state.split()):
        return ImagePull(node, "failed", "; ".join(dict.fromkeys(trouble)))
    return ImagePull(node, "troubled", "; ".join(dict.fromkeys(trouble))) if trouble else ImagePull(node, "waiting")


def _describe_container(status: Mapping[str, Any]) -> str | None:
    """None when its image is there, empty while it is waited for, else what keeps it away."""
    waiting = (status.get("state") or {}).get("waiting")
    if waiting is None or status.get("imageID"):
        return None if status.get("state") else ""
    reason = str(waiting.get("reason", ""))
    if reason in _NO_IMAGE:
        return f"{status.get('image')}: {reason} {waiting.get('message', '')}".strip()
    return "" if reason in _NOT_YET else None
