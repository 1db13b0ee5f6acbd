# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Healthy clusters of platforms that bring drivers themselves: AKS, EKS, GKE, and OpenShift's built-in operators.

What each platform shows is upstream's manifest under the platform's own names, marks and StorageClasses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import openshift as openshift_releases
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from unit.roles.manifests import Case

from situations.base import openshift
from situations.deployed import deployed
from situations.world import Object, World

OPERATORS = "openshift-cluster-csi-drivers"
_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
# What the API server fills into a CSIDriver.
_FILLED = {
    "requiresRepublish": False,
    "storageCapacity": False,
    "volumeLifecycleModes": ["Persistent"],
    "fsGroupPolicy": "File",
}
_MARKS: dict[str, Object] = {
    "aks": {"labels": {"kubernetes.azure.com/managedby": "aks", "addonmanager.kubernetes.io/mode": "Reconcile"}},
    "eks": {"labels": {"app.kubernetes.io/managed-by": "EKS"}},
    "gke": {
        "labels": {"addonmanager.kubernetes.io/mode": "Reconcile"},
        "annotations": {"components.gke.io/component-name": "pdcsi"},
    },
}
_VERSIONS = {"aks": "v1.33.3", "eks": "v1.33.4-eks-99d6cc0", "gke": "v1.33.5-gke.1162000"}
_CLASSES: dict[str, tuple[tuple[str, str, dict[str, str], bool], ...]] = {
    "aks": (
        ("default", "disk.csi.azure.com", {"skuname": "StandardSSD_LRS"}, True),
        ("managed-csi", "disk.csi.azure.com", {"skuname": "StandardSSD_LRS"}, False),
        ("azurefile-csi", "file.csi.azure.com", {"skuName": "Standard_LRS"}, False),
    ),
    "eks": (("gp2", "kubernetes.io/aws-ebs", {"type": "gp2", "fsType": "ext4"}, False),),
    "gke": (
        ("standard", "kubernetes.io/gce-pd", {"type": "pd-standard"}, False),
        ("standard-rwo", "pd.csi.storage.gke.io", {"type": "pd-balanced"}, True),
    ),
}


def managed(case: Case, platform: str) -> World:
    """A driver that a cloud's managed Kubernetes brings; AKS and GKE show no controller of it."""
    driver, made = case.driver, deployed(case)
    name = driver.platform_daemonsets[platform]
    world = _renamed(made, driver.daemonset, name, driver.namespace, "kube-system")
    world.kubernetes = _VERSIONS[platform]
    for one in world.of("Node"):
        one["status"]["nodeInfo"].update(kubeletVersion=world.kubernetes, kubeProxyVersion=world.kubernetes)
        if platform == "aks":
            one["metadata"]["labels"]["kubernetes.azure.com/cluster"] = "MC_group_cluster_westeurope"
    plugin = world.get("DaemonSet", name, "kube-system")
    plugin["metadata"].update(labels=dict(_MARKS[platform].get("labels", {})))
    plugin["metadata"].setdefault("annotations", {}).clear()
    plugin["metadata"]["annotations"].update(_MARKS[platform].get("annotations", {}))
    if platform in ("aks", "gke"):
        world.remove("Deployment", driver.controller.deployments[0], "kube-system")
    shown = world.get("CSIDriver", driver.name)
    shown["metadata"].update(labels=dict(_MARKS[platform].get("labels", {})))
    shown["spec"] = {**_FILLED, **driver.csi_driver}
    for class_name, provisioner, parameters, default in _CLASSES[platform]:
        world.add(
            "StorageClass", class_name, metadata={"annotations": _DEFAULT if default else {}}, provisioner=provisioner,
            parameters=parameters, reclaimPolicy="Delete", volumeBindingMode="WaitForFirstConsumer",
        )  # fmt: skip
    return world


# What OpenShift's operators write where it differs from upstream:
# https://github.com/openshift/csi-operator assets/overlays/*/generated/standalone/csidriver.yaml
_OPENSHIFT_SPECS: dict[str, dict[str, Any]] = {
    "file.csi.azure.com": {
        "fsGroupPolicy": "None", "requiresRepublish": False,
        "tokenRequests": [{"audience": "api://AzureADTokenExchange"}],
    },
    "disk.csi.azure.com": {"fsGroupPolicy": "File", "seLinuxMount": True},
    "ebs.csi.aws.com": {"fsGroupPolicy": "File", "seLinuxMount": True},
    "csi.vsphere.vmware.com": {"fsGroupPolicy": "File", "seLinuxMount": True},
}  # fmt: skip
# Releases of OpenShift, with the Kubernetes that each has.
OPENSHIFTS = {"4.16.9": "v1.29.14", "4.18.9": "v1.31.10", "4.20.3": "v1.33.5", "4.21.0": "v1.34.2"}
OF_OPERATORS = ("file.csi.azure.com", "disk.csi.azure.com", "ebs.csi.aws.com", "csi.vsphere.vmware.com")


def shipped() -> Iterator[tuple[Case, str]]:
    """For each OpenShift and driver of its operators, the release of the node plugin that follows the controller."""
    for version in OPENSHIFTS:
        for driver in DRIVERS.values():
            lines = [one.minor for one in openshift_releases.list_shipped_releases(version, driver.key)]
            for one in driver.releases if driver.name in OF_OPERATORS else ():
                known = parse(one.version)
                rule = next((rule for rule in driver.modes if rule.supports(known) and rule.template is not None), None)
                if known.minor in lines and rule is not None:
                    yield Case(driver, rule, one.version), version
                    break


def built_in(case: Case, version: str) -> World:
    """OpenShift's own operator runs the Linux half, and this collection's plugin is beside it."""
    driver = case.driver
    world = _renamed(deployed(case), "", "", driver.namespace, OPERATORS)
    world.kubernetes = OPENSHIFTS[version]
    for one in world.of("Node"):
        one["status"]["nodeInfo"].update(kubeletVersion=world.kubernetes, kubeProxyVersion=world.kubernetes)
    controller = world.get("Deployment", driver.controller.deployments[0], OPERATORS)
    controller["metadata"]["name"] = driver.controller.deployments[-1]
    controller["metadata"]["annotations"] = {"operator.openshift.io/spec-hash": "0" * 64}
    names = {0: "csi-driver"}
    for number, one in enumerate(controller["spec"]["template"]["spec"]["containers"]):
        one["name"] = names.get(number, one["name"])
        one["image"] = f"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:{number:064d}"
    shown = world.get("CSIDriver", driver.name)
    shown["metadata"].update(
        labels={}, annotations={"csi.openshift.io/managed": "true", "operator.openshift.io/spec-hash": "0" * 64}
    )
    shown["spec"] = {**_FILLED, **driver.csi_driver, **_OPENSHIFT_SPECS[driver.name]}
    openshift(world, version)
    return world


def _renamed(world: World, old: str, new: str, old_namespace: str, new_namespace: str) -> World:
    """The same cluster with the plugin under another name, and everything of its namespace in another one."""
    text = json.dumps(world.objects)
    if old:
        text = text.replace(f'"{old}', f'"{new}')
    text = text.replace(f'"namespace": "{old_namespace}"', f'"namespace": "{new_namespace}"')
    text = text.replace(f'"name": "{old_namespace}"', f'"name": "{new_namespace}"')
    world.objects = json.loads(text)
    return world
