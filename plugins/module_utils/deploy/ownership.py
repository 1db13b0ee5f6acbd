# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs the cluster, as far as it shows, and what therefore is not ours to install. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.findings import Finding
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import (
    MANAGER,
    DaemonSetSeen,
    NodeSeen,
    Snapshot,
    Wanted,
)

PLATFORMS = {
    "openshift": "OpenShift",
    "aks": "AKS",
    "eks": "EKS",
    "gke": "GKE",
    "rke2": "RKE2",
}

# What the version that the API server tells says about who built it.
_BUILDS = (("-eks-", "eks"), ("-gke.", "gke"), ("+rke2", "rke2"))

# Put on every node of an AKS cluster: https://learn.microsoft.com/azure/aks/use-labels
_AKS_LABEL = "kubernetes.azure.com/cluster"

_OPENSHIFT_DRIVERS = "openshift-cluster-csi-drivers"

# Whose service csi-proxy is where the platform prepares its Windows nodes.
_CSI_PROXY = {
    "openshift": "the Windows Machine Config Operator",
    "aks": "the node image",
    "eks": "the node image",
    "gke": "the node image",
    "rke2": "rancher-wins",
}


# Platforms that run the controllers of their own drivers where the cluster does not show them.
_HIDDEN = ("aks", "gke")


def platform(snapshot: Snapshot) -> str:
    """A key of PLATFORMS, or an empty text where nothing shows one."""
    return "openshift" if snapshot.openshift else platform_of(snapshot.kubernetes, snapshot.nodes)


def platform_of(kubernetes: str, nodes: Iterable[NodeSeen]) -> str:
    """The same from the API server's gitVersion and the Windows Nodes alone."""
    seen = list(nodes)
    if any(node.wmco for node in seen):
        return "openshift"
    for mark, name in _BUILDS:
        if mark in kubernetes:
            return name
    if any(_AKS_LABEL in node.labels for node in seen):
        return "aks"
    return ""


def hides_controller(driver: Driver, snapshot: Snapshot) -> bool:
    """Whether the platform brings this driver and shows nobody its controller."""
    name = platform(snapshot)
    return name in _HIDDEN and name in driver.platform_daemonsets


def owner(driver: Driver, snapshot: Snapshot, seen: DaemonSetSeen) -> str:
    """Who brought a DaemonSet that provides this driver, as far as name and place tell; empty otherwise."""
    if seen.managed_by == MANAGER:
        return ""
    name = platform(snapshot)
    if name and seen.name == driver.platform_daemonsets.get(name):
        return f"brought by {PLATFORMS[name]}"
    if seen.namespace == _OPENSHIFT_DRIVERS:
        return "in the namespace of OpenShift's storage operators"
    return ""


def findings(wanted: Wanted, rule: ModeRule, snapshot: Snapshot) -> Iterator[Finding]:
    """csi-proxy belongs to platforms that prepare their Windows nodes: it is verified there and never written."""
    name = platform(snapshot)
    if rule.mode == "csi_proxy" and wanted.csi_proxy_managed and name in _CSI_PROXY:
        message = f"on {PLATFORMS[name]} the service csi-proxy belongs to {_CSI_PROXY[name]}"
        remedy = "set csi_proxy_managed to false where the service is there; it is then looked at and never changed"
        yield Finding("CSI-D59", "warning", "csi-proxy", message, remedy)
