# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs the cluster, as far as it shows, and what therefore is not ours to write. Pure.

What marks an object of whom:
OpenShift's operators: library-go pkg/operator/resource/resourceapply/apps.go writes a hash of what it applied, and
enhancements/windows-containers of https://github.com/openshift/enhancements (pull request 2072) has them bring node
plugins for Windows. Amazon EKS: add-ons carry app.kubernetes.io/managed-by=EKS; node.enableWindows is a setting of the
add-on since v1.32.0-eksbuild.1 (https://github.com/aws/containers-roadmap/issues/2221). AKS:
https://learn.microsoft.com/azure/aks/use-labels, and https://github.com/Azure/AKS/issues/2717 shows a DaemonSet. GKE:
components.gke.io annotations beside the addon manager's label
(https://cloud.google.com/kubernetes-engine/docs/how-to/persistent-volumes/gce-pd-csi-driver).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..base.findings import Finding, warning
from ..catalog.base import Driver, ModeRule
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.labels import HELM, MANAGED_BY, MANAGER, OPENSHIFT_OPERATOR, Marks
from ..kube.node import ObservedNode
from .plan_inputs import DriverRequest, DriverSnapshot

PLATFORMS = {
    "openshift": "OpenShift",
    "aks": "AKS",
    "eks": "EKS",
    "gke": "GKE",
    "rke2": "RKE2",
}

# Builder of Kubernetes by the version of the API server.
_BUILDS = (("-eks-", "eks"), ("-gke.", "gke"), ("+rke2", "rke2"))

# Put on every node of an AKS cluster: https://learn.microsoft.com/azure/aks/use-labels
_AKS_LABEL = "kubernetes.azure.com/cluster"

_AKS_MANAGED = "kubernetes.azure.com/managedby"
_ADDON_MODE = "addonmanager.kubernetes.io/mode"
_GKE_COMPONENT = "components.gke.io/component-name"

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


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an object is that is not ours.

    manager: as text, "installed by EKS". mark: evidence, empty if only name and namespace show it. recreates: the owner
    would create it again, so deleting it does not help. how: how to disable it at its owner.
    """

    manager: str
    mark: str
    recreates: bool
    how: str


@dataclass(frozen=True, slots=True)
class Provider:
    """A DaemonSet of another owner that provides a driver on Windows nodes.

    serving: False when it only claims to: none of its pods is Ready, and no Windows node has registered the driver.
    """

    namespace: str
    name: str
    owner: Owner
    serving: bool = True

    @property
    def title(self) -> str:
        return f"DaemonSet {self.namespace}/{self.name}"


def describe_owner(owner: Owner) -> str:
    return f"{owner.manager} ({owner.mark})" if owner.mark else owner.manager


def detect_platform(snapshot: DriverSnapshot) -> str:
    """A key of PLATFORMS, or an empty text where nothing shows one."""
    return "openshift" if snapshot.openshift else detect_platform_of_nodes(snapshot.kubernetes, snapshot.nodes)


def detect_platform_of_nodes(kubernetes: str, nodes: Iterable[ObservedNode]) -> str:
    """The same from the API server's gitVersion and the Windows Nodes alone."""
    observed = list(nodes)
    if any(node.of_operator for node in observed):
        return "openshift"
    for mark, name in _BUILDS:
        if mark in kubernetes:
            return name
    if any(_AKS_LABEL in node.labels for node in observed):
        return "aks"
    return ""


def may_hide_controller(driver: Driver, snapshot: DriverSnapshot) -> bool:
    """Whether the platform installs this driver, as its own DaemonSet shows, and hides its controller."""
    name = detect_platform(snapshot)
    daemonset_name = driver.platform_daemonsets.get(name, "")
    return name in _HIDDEN and any(
        observed.name == daemonset_name and find_owner(driver, name, observed) is not None
        for observed in snapshot.daemon_sets
    )


def find_providers(driver: Driver, snapshot: DriverSnapshot, namespace: str) -> tuple[Provider, ...]:
    """The DaemonSets of others that serve the driver on Windows, or have the name that ours would have."""
    providers, running_on = [], detect_platform(snapshot)
    for observed in snapshot.daemon_sets:
        same_name = (observed.namespace, observed.name) == (namespace, driver.daemonset)
        owner = find_owner(driver, running_on, observed)
        if owner is not None and (same_name or observed.is_node_plugin_of(driver.name)):
            serving = observed.ready > 0 or _is_registered(driver, snapshot)
            providers.append(Provider(observed.namespace, observed.name, owner, serving=serving))
    return tuple(providers)


def _is_registered(driver: Driver, snapshot: DriverSnapshot) -> bool:
    """Whether a Windows node has registered the driver by a plugin that is not ours."""
    has_own_plugin = any(
        daemon_set.managed_by == MANAGER and daemon_set.is_node_plugin_of(driver.name)
        for daemon_set in snapshot.daemon_sets
    )
    return bool(snapshot.registered) and not has_own_plugin


def find_owner(driver: Driver, running_on: str, observed: ObservedDaemonSet) -> Owner | None:
    """Who brought a DaemonSet that provides this driver; None when it is ours. running_on: a key of PLATFORMS."""
    if observed.managed_by == MANAGER:
        return None
    keeper = find_keeper(driver, running_on, observed.marks)
    if keeper is not None:
        return keeper
    platforms = observed.name == driver.platform_daemonsets.get(running_on)
    if running_on and platforms and not _is_of_helm(observed.marks):
        title = PLATFORMS[running_on]
        return Owner(f"installed by {title}", "", True, _describe_switch(running_on, driver, title))
    return _find_installer(observed.marks)


def find_keeper(driver: Driver, running_on: str, marks: Marks) -> Owner | None:
    """The manager that restores a changed or deleted object, None when no mark shows one."""
    labels, notes = marks.labels, marks.annotations
    operator = next((key for key in OPENSHIFT_OPERATOR if key in notes), "")
    release, component = notes.get(HELM, ""), notes.get(_GKE_COMPONENT)
    evidence = (
        ("openshift", bool(operator), f"annotation {operator}"),
        ("eks", labels.get(MANAGED_BY, "").upper() == "EKS", f"label {MANAGED_BY}=EKS"),
        ("aks", labels.get(_AKS_MANAGED) == "aks", f"label {_AKS_MANAGED}=aks"),
        ("aks", release.startswith("aks-managed"), f"annotation {HELM}={release}"),
        ("gke", component is not None, f"annotation {_GKE_COMPONENT}={component}"),
    )
    for platform, is_marked, mark in evidence:
        if is_marked:
            is_operator = platform == "openshift"
            manager = (
                "managed by OpenShift's storage operator" if is_operator else f"installed by {PLATFORMS[platform]}"
            )
            return Owner(manager, mark, True, _describe_switch(platform, driver, ""))
    if labels.get(_ADDON_MODE) == "Reconcile":
        manager = f"installed by {PLATFORMS[running_on]}" if running_on else "managed by the addon manager"
        how = _describe_switch(running_on, driver, "the addon manager")
        return Owner(manager, f"label {_ADDON_MODE}=Reconcile", True, how)
    if marks.owner:
        return Owner(f"managed by {marks.owner}", "its controller", True, f"change {marks.owner}")
    tools = (
        Owner(f"managed by {manager}", mark, True, f"remove it from {source}")
        for manager, mark, source in marks.list_tools()
    )
    return next(tools, None)


def _find_installer(marks: Marks) -> Owner:
    """Installed once; nothing restores it automatically."""
    managed = marks.labels.get(MANAGED_BY, "")
    release = marks.annotations.get(HELM, "")
    if _is_of_helm(marks):
        how = f"disable Windows in the values of Helm release {release or '?'}, or its next upgrade reinstalls it"
        return Owner("installed with Helm", f"release {release}" if release else "", False, how)
    how = "remove it from the manifests that you apply, or the next apply recreates it"
    return Owner(f"managed by {managed}" if managed else "not created by this collection", "", False, how)


def _is_of_helm(marks: Marks) -> bool:
    return HELM in marks.annotations or marks.labels.get(MANAGED_BY) == "Helm"


def _describe_switch(platform: str, driver: Driver, source: str) -> str:
    """How to disable the driver at its owner. source: its owner, for a platform without a known command."""
    also_linux = "which also removes the driver from Linux nodes"
    commands = {
        "openshift": f'oc patch clustercsidriver {driver.name} --type=merge -p \'{{"spec":{{"managementState":"Unmanaged"}}}}\' '
        "(its operator then manages none of its objects, including those for Linux)",
        "eks": "aws eks update-addon --cluster-name CLUSTER --addon-name aws-ebs-csi-driver --configuration-values "
        '\'{"node":{"enableWindows":false}}\'',
        "aks": f"{_switch_aks(driver, 'disable')} ({also_linux})",
        "gke": f"{_switch_gke('DISABLED')} ({also_linux})",
    }
    return commands.get(platform, f"disable it in the source that {source} reads")


def _switch_aks(driver: Driver, action: str) -> str:
    kind = "file" if driver.key == "azure_file" else "disk"
    return f"az aks update --resource-group GROUP --name CLUSTER --{action}-{kind}-driver"


def _switch_gke(state: str) -> str:
    return f"gcloud container clusters update CLUSTER --update-addons=GcePersistentDiskCsiDriver={state}"


def build_enabling_command(driver: Driver, running_on: str) -> str:
    """The command that installs a driver whose controller the platform hides, so that nobody else can; empty elsewhere."""
    if running_on not in _HIDDEN or running_on not in driver.platform_daemonsets:
        return ""
    return _switch_aks(driver, "enable") if running_on == "aks" else _switch_gke("ENABLED")


def check_ownership(desired: DriverRequest, rule: ModeRule, snapshot: DriverSnapshot) -> Iterator[Finding]:
    """The csi-proxy that platforms prepare themselves is verified there and never written."""
    name = detect_platform(snapshot)
    if rule.mode == "csi_proxy" and desired.csi_proxy_managed and name in _CSI_PROXY:
        message = f"on {PLATFORMS[name]} the service csi-proxy belongs to {_CSI_PROXY[name]}"
        remedy = "set csi_proxy_managed to false if the service exists; it is then verified and never changed"
        yield warning("CSI-D59", "csi-proxy", message, remedy)
