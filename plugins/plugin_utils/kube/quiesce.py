# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons of Nodes with their owner, and the wait for volume operations in flight.

csi-proxy serves one call after another with no memory of its own, so it may be stopped whenever no pod's volumes are
being mounted, unmounted or resized. Running pods keep their mounts while it is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..base.waiting import wait_until_clear
from . import kinds
from .client import Client
from .labels import CORDONED, read_cordon_reason
from .pod import PodFacts, list_claims

Object = dict[str, Any]

# Seconds between two checks, each of which lists pods.
_LOOK_AGAIN = 5.0
# A claim in one of these conditions still has work to do on the node that holds the volume
# (https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims).
_RESIZING = frozenset({"Resizing", "FileSystemResizePending"})


def plan_cordon(node: Object, reason: str) -> Object:
    """The patch that cordons a Node, empty where it is cordoned. Cordon and reason are one patch: no cordon is without an owner."""
    if (node.get("spec") or {}).get("unschedulable"):
        return {}
    return {"metadata": {"annotations": {CORDONED: reason}}, "spec": {"unschedulable": True}}


def plan_uncordon(node: Object, reason: str) -> Object:
    """The patch that lifts the cordon of this reason, empty where it is another one or none. A cordon of another client only loses our reason."""
    if (node["metadata"].get("annotations") or {}).get(CORDONED) != reason:
        return {}
    patch: Object = {"metadata": {"annotations": {CORDONED: None}}}
    return {**patch, "spec": {"unschedulable": False}} if read_cordon_reason(node) else patch


def explain_volume_operations(pods: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why the Node's volumes are not at rest, empty when they are. pods: all of this Node; claims: those they use."""
    reasons = []
    for pod in map(PodFacts.from_object, pods):
        if not pod.volumes or pod.finished:
            continue
        if pod.deleting:
            reasons.append(f"{pod.title} is terminating and its volumes are being unmounted")
        elif pod.phase == "Pending":
            reasons.append(f"{pod.title} is starting and its volumes are being mounted")
    for claim in claims:
        metadata = claim["metadata"]
        conditions = (claim.get("status") or {}).get("conditions") or []
        if any(entry.get("type") in _RESIZING and entry.get("status") == "True" for entry in conditions):
            reasons.append(f"claim {metadata['namespace']}/{metadata['name']} is being resized")
    return reasons


def find_volume_operations(client: Client, node: str) -> list[str]:
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
) -> Sequence[str]:
    """What is in flight on a Node, once nothing is or the time is over."""

    def report(line: str) -> None:
        notify(f"{node}: waiting, {line}")

    return wait_until_clear(lambda: find_volume_operations(client, node), timeout, report, _LOOK_AGAIN, clock, sleep)
