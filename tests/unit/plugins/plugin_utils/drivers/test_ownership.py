# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whose an object is: read from the marks that platforms and tools put on theirs."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.ownership import (
    describe_owner,
    detect_platform,
    find_owner,
    find_providers,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from unit.plugins.plugin_utils.drivers.worlds import HOME, OURS, VSPHERE, observed, snapshot


@pytest.mark.parametrize(
    ("spoilt", "expected"),
    [
        ({}, ""),
        ({"kubernetes": "v1.33.1-eks-595af52"}, "eks"),
        ({"kubernetes": "v1.33.5-gke.1125000"}, "gke"),
        ({"kubernetes": "v1.32.4+rke2r1"}, "rke2"),
        ({"kubernetes": "v1.33.4+k3s1"}, ""),
        ({"openshift": "4.20.3"}, "openshift"),
        (
            {
                "nodes": (
                    ObservedNode("win-1", build="20348", labels={"windowsmachineconfig.openshift.io/byoh": "true"}),
                )
            },
            "openshift",
        ),
        ({"nodes": (ObservedNode("akswin", build="20348", labels={"kubernetes.azure.com/cluster": "MC_x"}),)}, "aks"),
    ],
)
def test_the_platform_shows_itself(spoilt: dict[str, Any], expected: str) -> None:
    assert detect_platform(snapshot(**spoilt)) == expected


def notes(key: str, value: str = "x") -> dict[str, Any]:
    return {"annotations": {key: value}}


RECONCILE = {"labels": {"addonmanager.kubernetes.io/mode": "Reconcile"}}
CONTROLLED = {"ownerReferences": [{"kind": "StorageCluster", "name": "main", "controller": True}]}


@pytest.mark.parametrize(
    ("driver", "running_on", "marks", "tool", "how"),
    [
        pytest.param("azure_file", "openshift", notes("operator.openshift.io/spec-hash"), "managed by OpenShift's storage operator",
                     "oc patch clustercsidriver file.csi.azure.com", id="OpenShift's operators"),
        pytest.param("vsphere", "", notes("csi.openshift.io/managed"), "managed by OpenShift's storage operator",
                     "oc patch clustercsidriver csi.vsphere.vmware.com", id="OpenShift, by the other mark"),
        pytest.param("aws_ebs", "eks", {"labels": {"app.kubernetes.io/managed-by": "EKS"}}, "installed by EKS",
                     '"enableWindows":false', id="EKS' add-on"),
        pytest.param("azure_disk", "aks", {"labels": {"kubernetes.azure.com/managedby": "aks"}}, "installed by AKS",
                     "--disable-disk-driver", id="AKS"),
        pytest.param("azure_file", "aks", notes("meta.helm.sh/release-name", "aks-managed-azurefile"), "installed by AKS",
                     "--disable-file-driver", id="AKS, by its Helm release"),
        pytest.param("gce_pd", "gke", notes("components.gke.io/component-name", "pdcsi"), "installed by GKE",
                     "GcePersistentDiskCsiDriver=DISABLED", id="GKE"),
        pytest.param("gce_pd", "gke", RECONCILE, "installed by GKE", "gcloud container", id="addon manager on GKE"),
        pytest.param("smb", "", RECONCILE, "managed by the addon manager", "disable it", id="addon manager elsewhere"),
        pytest.param("smb", "", CONTROLLED, "managed by StorageCluster main", "change StorageCluster main", id="a controller"),
        pytest.param("smb", "", {"labels": {"kustomize.toolkit.fluxcd.io/name": "storage"}}, "managed by Flux",
                     "Kustomization storage", id="Flux, Kustomization"),
        pytest.param("smb", "", {"labels": {"helm.toolkit.fluxcd.io/name": "smb"}}, "managed by Flux", "HelmRelease smb",
                     id="Flux, HelmRelease"),
        pytest.param("smb", "", notes("argocd.argoproj.io/tracking-id", "storage:apps/DaemonSet:x/y"), "managed by Argo CD",
                     "Application storage", id="Argo CD"),
        pytest.param("smb", "", {"labels": {"argocd.argoproj.io/instance": "storage"}}, "managed by Argo CD",
                     "Application storage", id="Argo CD, by its label"),
        pytest.param("smb", "", {"labels": {"olm.owner": "csi.v1"}}, "managed by the Operator Lifecycle Manager",
                     "operator csi.v1", id="OLM"),
    ],
)  # fmt: skip
def test_the_owner_that_would_recreate_it_is_named_by_its_labels(
    driver: str, running_on: str, marks: dict[str, Any], tool: str, how: str
) -> None:
    found = find_owner(DRIVERS[driver], running_on, observed("theirs", **marks))
    assert found is not None
    assert (found.manager, found.recreates) == (tool, True)
    assert how in found.how
    assert found.mark in describe_owner(found)


@pytest.mark.parametrize(
    ("running_on", "name", "marks", "tool", "recreates"),
    [
        pytest.param("eks", "ebs-csi-node-windows", {}, "installed by EKS", True, id="the add-on's name on its platform"),
        pytest.param("", "ebs-csi-node-windows", {}, "not created by this collection", False, id="that name elsewhere"),
        pytest.param("eks", "ebs-csi-node-windows", notes("meta.helm.sh/release-name", "ebs"), "installed with Helm", False,
                     id="the chart on EKS"),
        pytest.param("", "other", {"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "installed with Helm", False,
                     id="Helm without its annotation"),
        pytest.param("", "other", {"labels": {"app.kubernetes.io/managed-by": "ops"}}, "managed by ops", False, id="a tool"),
    ],
)  # fmt: skip
def test_a_plugin_that_a_user_installed_is_not_recreated(
    running_on: str, name: str, marks: dict[str, Any], tool: str, recreates: bool
) -> None:
    found = find_owner(DRIVERS["aws_ebs"], running_on, observed(name, **marks))
    assert found is not None
    assert (found.manager, found.recreates) == (tool, recreates)


def test_ours_has_no_other_owner() -> None:
    assert find_owner(VSPHERE, "", observed(VSPHERE.daemonset, labels=OURS)) is None


def test_providers_serve_the_driver_on_windows_or_have_our_name() -> None:
    there = (
        observed(VSPHERE.daemonset, path="/somewhere/else"),
        observed(VSPHERE.daemonset, "another", path="/somewhere/else"),
        observed("theirs"),
        observed("ours", labels=OURS),
    )
    found = find_providers(VSPHERE, snapshot(daemon_sets=there), HOME)
    assert [one.title for one in found] == [f"DaemonSet {HOME}/{VSPHERE.daemonset}", f"DaemonSet {HOME}/theirs"]


def test_a_csidriver_of_an_operator_is_never_written() -> None:
    kept = {"metadata": {"annotations": {"csi.openshift.io/managed": "true"}}, "spec": {"attachRequired": True}}
    made = plan_driver(VSPHERE, DriverRequest(create_cluster_objects=True), snapshot(csi_driver=kept))
    assert made.settings["create_csi_driver"] is False


CLAIM: dict[str, Any] = {"ready": 0}


@pytest.mark.parametrize(
    "ours", [(), (observed(VSPHERE.daemonset, labels=OURS),)], ids=["first deployment", "ours runs"]
)
def test_a_daemon_set_that_only_claims_a_driver_is_named_and_blocks_nothing(ours: tuple[Any, ...]) -> None:
    there = (observed("mine", "tenant", **CLAIM), *ours)
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(daemon_sets=there, registered=("win-1",) if ours else ()))
    assert made.deployable
    (found,) = [one for one in made.findings if one.object == "DaemonSet tenant/mine"]
    assert (found.id, found.severity) == ("CSI-D39", "warning")
    assert "kubectl -n tenant delete daemonset mine" in found.remedy


@pytest.mark.parametrize(
    ("spoilt", "registered"),
    [
        pytest.param({"ready": 1}, (), id="a pod of it is Ready"),
        pytest.param({}, ("win-1",), id="a node has registered the driver"),
    ],
)
def test_one_that_works_or_worked_still_blocks(spoilt: dict[str, Any], registered: tuple[str, ...]) -> None:
    there = (observed("theirs", "tenant", **{**CLAIM, **spoilt}),)
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(daemon_sets=there, registered=registered))
    assert [one.id for one in made.findings if one.severity == "blocker"] == ["CSI-D40"]


@pytest.mark.parametrize(
    "forged", [{"deletionTimestamp": "2026-11-02T09:30:00Z"}, notes("kubewin.io/handover", "to_platform")]
)
def test_our_label_on_an_object_that_does_not_run_blocks_nothing(forged: dict[str, Any]) -> None:
    there = (observed("mine", "tenant", labels=OURS, ready=0, **forged),)
    assert plan_driver(VSPHERE, DriverRequest(), snapshot(daemon_sets=there)).deployable
