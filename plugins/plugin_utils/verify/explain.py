# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a pod does not run, by the cluster's events, and the remedy. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.text import join_lines
from ..kube.pod import PodFacts
from ..kube.times import read_event_time

# What stops a pod, from what says most to what says least. An older event of a reason gives way to its newest.
_REASONS = (
    "ProvisioningFailed", "FailedAttachVolume", "FailedMount", "FailedMapVolume", "Failed", "FailedCreatePodSandBox",
    "FailedScheduling",
)  # fmt: skip

_UNKNOWN_DRIVER = "the driver is not registered with the kubelet of {node}: run enable_csi; its gate reports what the plugin pod lacks"
_REMEDIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("csi-proxy", "cannot find the file"),
        "csi-proxy does not serve that pipe on {node}: run enable_csi for its host, or delete the plugin pod of "
        "that node after you start the service there: sc.exe start csi-proxy",
    ),
    (("list of registered csi drivers",), _UNKNOWN_DRIVER),
    (("does not contain driver",), _UNKNOWN_DRIVER),
    (("actively refused",), "the driver's plugin pod on {node} does not run: check the pod and its log"),
    (
        ("multi-attach",),
        "the volume is still attached elsewhere: kubectl get volumeattachments; the driver's controller detaches",
    ),
    (
        ("host operating system",),
        "the image is for another Windows build than {node}: set image to one for its build",
    ),
    (("pull",), "{node} cannot pull the image: set image to one that it can reach"),
    (
        ("failedscheduling",),
        "the scheduler does not place the pod on {node}: check the volume's zone, its attach limit and its resources",
    ),
    (
        ("provisioningfailed",),
        "the driver's controller does not provision the volume: correct the StorageClass, or check the log of its provisioner",
    ),
    (
        ("failedattachvolume",),
        "the driver's controller does not attach the volume to {node}: check the log of its attacher",
    ),
)


def select_warnings(events: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return (reason, message) of the newest warning of each relevant reason, the most specific ones first."""
    newest: dict[str, Mapping[str, Any]] = {}
    for event in events:
        reason = str(event.get("reason"))
        if event.get("type") == "Warning" and reason in _REASONS:
            former = newest.get(reason)
            if former is None or read_event_time(former) <= read_event_time(event):
                newest[reason] = event
    return tuple(
        (reason, join_lines(str(newest[reason].get("message", "")))) for reason in _REASONS if reason in newest
    )


def explain_waiting(pod: Mapping[str, Any] | None, events: Sequence[tuple[str, str]]) -> str:
    """Return what a pod that does not run waits for."""
    if events:
        return "; ".join(f"{reason}: {message}" for reason, message in events)
    if pod is None:
        return "there is no pod"
    status = pod.get("status") or {}
    for container in PodFacts.from_object(pod).containers:
        if container.waiting_message:
            return join_lines(f"{container.waiting}: {container.waiting_message}")
    for condition in status.get("conditions") or []:
        if condition.get("status") == "False" and condition.get("message"):
            return join_lines(f"{condition.get('reason')}: {condition['message']}")
    return f"it is {status.get('phase', 'Pending')}, without a reason"


def choose_remedy(why: str, node: str, pod: str) -> str:
    text = why.lower()
    for words, text_of_remedy in _REMEDIES:
        if all(word in text for word in words):
            return text_of_remedy.format(node=node)
    return f"kubectl describe pod {pod} while it runs (raise kubewin_verify_timeout for more time), and the node plugin's log on {node}"
