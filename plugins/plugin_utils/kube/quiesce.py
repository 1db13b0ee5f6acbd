# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons of Nodes with their owner, and the wait for volume operations in flight."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import Awaited, Waits
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.activity import explain_volume_operations
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import CORDONED
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import list_claims

Object = dict[str, Any]

# Seconds between two checks, each of which lists pods.
_LOOK_AGAIN = 5.0


def plan_cordon(node: Object, reason: str) -> Object:
    """The patch that cordons a Node, empty where it is cordoned. Cordon and reason are one patch: no cordon is without an owner."""
    if (node.get("spec") or {}).get("unschedulable"):
        return {}
    return {"metadata": {"annotations": {CORDONED: reason}}, "spec": {"unschedulable": True}}


def plan_uncordon(node: Object, reason: str) -> Object:
    """The patch that lifts the cordon of this reason, empty where it is another one or none."""
    if (node["metadata"].get("annotations") or {}).get(CORDONED) != reason:
        return {}
    return {"metadata": {"annotations": {CORDONED: None}}, "spec": {"unschedulable": False}}


def find_volume_operations(client: Client, node: str) -> list[str]:
    """Volume operations in flight on a Node."""
    pods = client.list(kinds.POD, field_selector=f"spec.nodeName={node}").items
    used = sorted({(pod["metadata"]["namespace"], claim) for pod in pods for claim in list_claims(pod)})
    claims = [client.get(kinds.PERSISTENT_VOLUME_CLAIM, claim, namespace) for namespace, claim in used]
    return explain_volume_operations(pods, [claim for claim in claims if claim is not None])


def wait_until_idle(
    client: Client,
    node: str,
    timeout: float,
    notify: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """What is in flight on a Node, once nothing is or the time is over."""
    waits, began = Waits(notify), clock()
    while True:
        busy, waited = find_volume_operations(client, node), clock() - began
        if waited >= timeout or not busy:
            return busy
        waits.report(*(Awaited(f"{node}: waiting, {why}", waited, timeout) for why in busy))
        # Operations in flight belong to others; their time limit is checked above.
        sleep(min(_LOOK_AGAIN, timeout - waited))
