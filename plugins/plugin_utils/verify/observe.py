# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a verification is planned from, and refuses before the first write."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.needs import needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import Room
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import Plan, Request, plan


def read_plan(client: Client, request: Request) -> Plan:
    """The plan by the nodes and classes of the cluster. Raises ClusterError."""
    csi_nodes = {item["metadata"]["name"]: item for item in client.list(kinds.CSI_NODE).items}
    nodes = [
        ProofNode.from_objects(item, csi_nodes.get(item["metadata"]["name"])) for item in client.list_windows_nodes()
    ]
    attach = {}
    for driver in request.drivers:
        csi_driver = client.get(kinds.CSI_DRIVER, driver.name) or {}
        attach[driver.name] = bool((csi_driver.get("spec") or {}).get("attachRequired", True))
    return plan(request, nodes, client.list(kinds.STORAGE_CLASS).items, attach)


def refuse(client: Client, decided: Plan, room: Room) -> None:
    """Raise ClusterError for everything that would fail after the first object is created."""
    refusals = list(decided.refusals)
    if not room.own:
        live = client.get(kinds.NAMESPACE, room.namespace)
        if live is not None and "deletionTimestamp" in live["metadata"]:
            refusals.append(f"Namespace {room.namespace} is being deleted. Wait for that, or set another one.")
    attaches = any(target.attaches for target in decided.targets)
    needed = needs(room.namespace, own=room.own, attaches=attaches)
    require(client, needed, "a verification", "kubewin-csi-proof, kubewin-csi-proof-pods, kubewin-csi-proof-namespace")
    if refusals:
        raise ClusterError("\n".join(refusals), "refused")
