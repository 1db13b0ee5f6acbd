# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a verification is planned from, and refuses before the first write."""

from __future__ import annotations

from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.permissions import require_roles
from .nodes import ProofNode
from .objects import RunScope
from .plan import VerifyPlan, VerifyRequest, plan_verification


def read_nodes(client: Client) -> list[ProofNode]:
    csi_nodes = {item["metadata"]["name"]: item for item in client.list(kinds.CSI_NODE).items}
    return [
        ProofNode.from_objects(item, csi_nodes.get(item["metadata"]["name"])) for item in client.list_windows_nodes()
    ]


def read_plan(client: Client, request: VerifyRequest) -> VerifyPlan:
    """Plan the verification by the nodes and classes of the cluster. Raises ClusterError."""
    attach = {}
    for driver in request.drivers:
        csi_driver = client.get(kinds.CSI_DRIVER, driver.name) or {}
        attach[driver.name] = bool((csi_driver.get("spec") or {}).get("attachRequired", True))
    return plan_verification(request, read_nodes(client), client.list(kinds.STORAGE_CLASS).items, attach)


def refuse(client: Client, decided: VerifyPlan, scope: RunScope) -> None:
    """Raise ClusterError for everything that would fail after the first object is created."""
    pods_namespace = None if scope.owns_namespace else scope.namespace
    bindings = [("kubewin-csi-verify", None), ("kubewin-csi-verify-pods", pods_namespace)]
    bindings += [("kubewin-csi-verify-namespace", None)] if scope.owns_namespace else []
    require_roles(client, bindings, "a verification")
    if decided.refusals:
        raise ClusterError("\n".join(decided.refusals), "refused")
