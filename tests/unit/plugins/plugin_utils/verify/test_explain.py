# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An error has the cluster's own text, with a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.explain import (
    choose_remedy,
    explain_waiting,
    select_warnings,
)


def event(reason: str, message: str, when: str = "08:00:00", kind: str = "Warning") -> dict[str, Any]:
    return {"type": kind, "reason": reason, "message": message, "lastTimestamp": f"2026-11-21T{when}Z"}


def test_the_newest_warning_of_each_reason_counts_and_provisioning_comes_first() -> None:
    reported = select_warnings(
        [
            event("FailedMount", "new", "08:00:05"),
            event("FailedMount", "old", "08:00:01"),
            event("ProvisioningFailed", "why"),
            event("Scheduled", "fine", kind="Normal"),
            event("NodeNotReady", "noise"),
        ]
    )
    assert reported == (("ProvisioningFailed", "why"), ("FailedMount", "new"))
    assert explain_waiting(None, reported) == "ProvisioningFailed: why; FailedMount: new"


def test_without_events_the_pods_status_counts() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}
    unscheduled = {"status": "False", "reason": "Unschedulable", "message": "0/4 nodes are available"}
    assert (
        explain_waiting({"metadata": {"name": "p"}, "status": {"containerStatuses": [waiting]}}, ())
        == "ImagePullBackOff: Back-off pulling image"
    )
    assert (
        explain_waiting({"metadata": {"name": "p"}, "status": {"conditions": [unscheduled]}}, ())
        == "Unschedulable: 0/4 nodes are available"
    )
    assert explain_waiting({"metadata": {"name": "p"}, "status": {}}, ()) == "it is Pending, without a reason"
    assert explain_waiting(None, ()) == "there is no pod"


@pytest.mark.parametrize(
    ("why", "helps"),
    [
        (
            'FailedMount: desc = "transport: Error while dialing open \\\\.\\pipe\\csi-proxy-smb-v1: The system cannot find '
            'the file specified."',
            "csi-proxy does not serve that pipe on win-1: run enable_csi",
        ),
        (
            "FailedMount: driver name x not found in the list of registered CSI drivers",
            "the driver is not registered with the kubelet of win-1",
        ),
        (
            "FailedAttachVolume: CSINode win-1 does not contain driver x",
            "the driver is not registered with the kubelet of win-1",
        ),
        (
            "FailedMount: connect: the target machine actively refused it",
            "the driver's plugin pod on win-1 does not run",
        ),
        ("FailedAttachVolume: Multi-Attach error for volume", "the volume is still attached elsewhere"),
        ("FailedAttachVolume: rpc error: quota", "the driver's controller does not attach the volume to win-1"),
        ("ProvisioningFailed: source is a required parameter", "correct the StorageClass"),
        ("FailedScheduling: 0/4 nodes are available", "the scheduler does not place the pod on win-1"),
        ("Failed: Failed to pull image", "win-1 cannot pull the image"),
        (
            "Failed: container operating system does not match the host operating system",
            "set image to one for its build",
        ),
        ("something else", "kubectl describe pod -n a b"),
    ],
)
def test_each_trouble_has_its_remedy(why: str, helps: str) -> None:
    assert helps in choose_remedy(why, "win-1", "-n a b")
