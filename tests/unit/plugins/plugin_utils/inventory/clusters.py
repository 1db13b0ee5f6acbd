# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters as their API servers show them, as far as an inventory reads them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.listing import InventoryHost, list_hosts
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.observation import Observation

SERVER = "https://api.example.com:6443"
BYOH = {"windowsmachineconfig.openshift.io/byoh": "true"}
OPERATOR = {
    "windowsmachineconfig.openshift.io/version": "10.22.0-abc",
    "windowsmachineconfig.openshift.io/username": "wcBMA-encrypted",
}


def node(
    name: str,
    *addresses: tuple[str, str],
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A core/v1 Node of Windows Server 2022, Ready."""
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/os": "windows",
                "node.kubernetes.io/windows-build": "10.0.20348",
                **(labels or {}),
            },
            "annotations": annotations or {},
        },
        "spec": {},
        "status": {
            "addresses": [{"type": kind, "address": value} for kind, value in addresses],
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Windows Server 2022 Datacenter"},
        },
    }


def csi_node(name: str, *drivers: str) -> dict[str, Any]:
    """A storage.k8s.io/v1 CSINode."""
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": one, "nodeID": name} for one in drivers]}}


def cluster(
    *nodes: dict[str, Any],
    csi_nodes: tuple[dict[str, Any], ...] = (),
    instances: dict[str, str] | None = None,
    kubernetes: str = "v1.36.3",
    annotations: tuple[str, ...] = (),
) -> Observation:
    """What is read of a cluster; instances are the data of WMCO's ConfigMap."""
    return Observation.from_objects(
        server=SERVER,
        read_at="2026-11-20T12:00:00+00:00",
        kubernetes=kubernetes,
        nodes=nodes,
        csi_nodes=csi_nodes,
        instances=None if instances is None else {"data": instances},
        annotations=annotations,
    )


def listed(observed: Observation, connection: str = "auto") -> dict[str, InventoryHost]:
    """The inventory of it, by host."""
    return {one.name: one for one in list_hosts(observed, connection)}
