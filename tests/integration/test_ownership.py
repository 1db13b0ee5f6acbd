# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What platforms bring is found, named and left as it is; and which release a controller runs is read from any image."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from integration import foreign
from integration.kube import ACCOUNT, PIPES, also_holds, connect, pipes, planned, writes
from integration.playbooks import play
from integration.test_enable_csi import machines
from lab import handle
from lab.cluster import vsphere
from lab.handle import Lab, eventually

# By driver: what its platform deploys, and what a plan reports of it.
BROUGHT = {
    "azure_file": (
        foreign.operator("azure-file-csi-driver-node-windows", "file.csi.azure.com"),
        "managed by OpenShift's storage operator (annotation operator.openshift.io/spec-hash)",
        "oc patch clustercsidriver file.csi.azure.com",
    ),
    "azure_disk": (
        foreign.aks("csi-azuredisk-node-win", "disk.csi.azure.com"),
        "installed by AKS (label kubernetes.azure.com/managedby=aks)",
        "az aks update",
    ),
    "aws_ebs": (foreign.eks(), "installed by EKS (label app.kubernetes.io/managed-by=EKS)", "aws eks update-addon"),
    "gce_pd": (
        foreign.gke(),
        "installed by GKE (annotation components.gke.io/component-name=pdcsi)",
        "gcloud container",
    ),
}

WICD = r'binPath= "C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy.log -logtostderr=false -windows-service --v=2"'
WINS = r'binPath= "C:\etc\rancher\wins\csi-proxy.exe -windows-service -log_file=C:\etc\rancher\wins\csi-proxy.log -logtostderr=false"'


@pytest.fixture(scope="module")
def prepared() -> Iterator[Lab]:
    """A lab of two hosts: WICD runs csi-proxy on the first, rancher-wins on the second. Platforms bring four plugins."""
    made = handle.start(f"owned-{os.getpid()}", nodes=2)
    a_user_installs(made, "win-1", "csi-proxy", r"C:\k", WICD)
    made.agent("win-1").run('sc.exe description csi-proxy "OpenShift managed csi-proxy"')
    a_user_installs(made, "win-2", "csiproxy", r"C:\etc\rancher\wins", WINS)
    for thing, *_rest in BROUGHT.values():
        foreign.plant(made.api, thing, "their-own-manager")
    eventually(lambda: settled(made), "the planted plugins run")
    yield made
    made.stop()


def a_user_installs(lab: Lab, host: str, service: str, folder: str, command: str) -> None:
    agent = lab.agent(host)
    url = lab.state.artifacts[-1].http_url
    assert agent.run(rf"cmd /c mkdir {folder} & curl.exe -sf -o {folder}\csi-proxy.exe {url}").rc == 0
    assert agent.run(f"sc.exe create {service} {command} start= demand").rc == 0
    lab.set_service(host, running=True, service=service)
    eventually(lambda: all(pipe in pipes(lab, host) for pipe in PIPES), f"the pipes of {host}")
    eventually(lambda: b"4  RUNNING" in agent.run(f"sc.exe query {service}").stdout, f"{service} on {host}")


def brought(lab: Lab) -> dict[str, Any]:
    """Everything that has another owner:  the planted DaemonSets whole, the vSphere installation's objects likewise."""
    found = {driver: lab.api.get(foreign.path(thing)) for driver, (thing, *_rest) in BROUGHT.items()}
    for path, thing in vsphere.objects():
        name = thing["metadata"]["name"]
        if thing["kind"] != "Namespace":
            found[f"{thing['kind']} {name}"] = lab.api.get(f"{path}/{name}")
    return found


def settled(lab: Lab) -> bool:
    """Whether the planted plugins' pods run on both nodes, and vSphere's own too, so that their status no longer changes."""
    for own in lab.api.items(f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets"):
        if own["status"].get("numberAvailable") != own["status"]["desiredNumberScheduled"]:
            return False
    for thing, *_rest in BROUGHT.values():
        status = lab.api.get(foreign.path(thing))["status"]
        if status.get("numberReady") != 2 or status.get("numberAvailable") != 2:
            return False
    return True


def test_each_platforms_plugin_is_named_and_left_as_it_is(prepared: Lab) -> None:
    before, size = brought(prepared), prepared.audit_size()
    client = connect(prepared.state.kubeconfigs["kubewin"])
    for key, (thing, expected, how) in BROUGHT.items():
        made = planned(client, driver=DRIVERS[key])
        name = f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"
        assert not made.deployable
        assert f"DaemonSet {name}: " in made.refusal
        assert expected in made.refusal
        assert f"to hand over, first disable it at its source: {how}" in made.refusal
    assert prepared.audit(ACCOUNT, size)
    assert writes(prepared, size) == []
    assert brought(prepared) == before


@pytest.mark.parametrize("tags", [("--tags", "proxy,summary"), pytest.param((), marks=pytest.mark.torture)])
def test_csi_proxy_of_wicd_and_of_rancher_is_verified_named_and_never_written(
    prepared: Lab, tags: tuple[str, ...]
) -> None:
    before, objects = machines(prepared), brought(prepared)
    for host in ("win-1", "win-2"):
        prepared.agent(host).control("journal", clear=True)
    inventory, given = prepared.state.inventories["ntlm-http"], {"kubewin_batches": "2"}
    run = play("playbooks/enable-csi.yml", inventory, *tags, variables=given)
    assert run.code == 0, run.screen
    rows = {row["node"]: row for row in run.summary["nodes"]}
    assert tags or {row["verdict"] for row in rows.values()} == {"green"}
    assert "(managed by wicd)" in rows["win-1"]["csi_proxy"]
    assert "(managed by rancher-wins)" in rows["win-2"]["csi_proxy"]
    for host in ("win-1", "win-2"):
        lines = [entry["line"] for entry in prepared.agent(host).control("journal")["journal"]]
        assert lines
        changing = ("create", "config ", "stop", "start ", "delete", "curl", "icacls", "reg.exe add", "mkdir", "move")
        assert not [
            line for line in lines if any(f"sc.exe {word}" in line or f"{word} C:" in line for word in changing)
        ]
    assert machines(prepared) == before
    assert brought(prepared) == objects


def test_csi_proxy_of_rancher_is_taken_over_on_request(prepared: Lab) -> None:
    before = machines(prepared)
    given = {"kubewin_batches": "2", "csi_proxy_take_over": "rancher-wins"}
    inventory = prepared.state.inventories["ntlm-http"]
    run = play("playbooks/enable-csi.yml", inventory, "--tags", "proxy,summary", variables=given)
    assert run.code == 0, run.screen
    rows = {row["node"]: row["csi_proxy"] for row in run.summary["nodes"]}
    assert "(managed by wicd)" in rows["win-1"]
    assert rows["win-2"] == "1.3.0 running, serving"
    assert machines(prepared)["win-1"] == before["win-1"]
    agent = prepared.agent("win-2")
    assert rb"C:\csi-proxy\1.3.0-" in agent.run("sc.exe qc csiproxy").stdout
    assert agent.run("sc.exe query csi-proxy").rc == 1060
    assert not prepared.api.get("/api/v1/nodes/win-2")["spec"].get("unschedulable")


def controller(namespace: str, name: str, container: str, image: str) -> dict[str, Any]:
    """A driver's Linux controller, scaled to nothing: only what it would run is of interest."""
    labels = {"app": name}
    pod = {"containers": [{"name": container, "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


EBS = "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/aws-ebs-csi-driver"
# What, the driver, its controller's Deployment, container and image, options; release, mode, and ids beginning CSI-D3.
TAGS: list[tuple[str, str, str, str, str, dict[str, Any], str, str, set[str]]] = [
    ("upstream", "vsphere", "vsphere-csi-controller", "vsphere-csi-controller", "registry.k8s.io/csi-vsphere/driver:v3.3.1",
     {}, "3.3.1", "csi_proxy", set()),
    ("mirror-port", "vsphere", "vsphere-csi-controller", "vsphere-csi-controller",
     "registry.corp:5000/mirror/csi-vsphere/driver:v3.7.3", {}, "3.7.3", "host_process", set()),
    ("tag-digest", "vsphere", "vsphere-csi-controller", "vsphere-csi-controller",
     f"registry.corp/driver:v3.4.0@sha256:{'2' * 64}", {}, "3.4.0", "csi_proxy", set()),
    ("mirror", "smb", "csi-smb-controller", "smb", "registry.corp/mirror/sig-storage/smbplugin:v1.20.1", {}, "1.20.1",
     "host_process", set()),
    ("windows-hp", "azure_disk", "csi-azuredisk-controller", "azuredisk",
     "registry.corp/mirror/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.3-windows-hp", {}, "1.34.3", "host_process", set()),
    ("eksbuild", "aws_ebs", "ebs-csi-controller", "ebs-plugin", f"{EBS}:v1.63.0-eksbuild.2", {}, "1.63.0", "csi_proxy", set()),
    ("gke", "gce_pd", "csi-gce-pd-controller", "gce-pd-driver", "gke.gcr.io/gcp-compute-persistent-disk-csi-driver:v1.26.0-gke.3",
     {}, "1.26.0", "csi_proxy", set()),
    ("skew", "vsphere", "vsphere-csi-controller", "vsphere-csi-controller",
     "registry.corp/mirror/csi-vsphere/driver:v3.4.0", {"version": "3.7.3"}, "3.7.3", "host_process", {"CSI-D33"}),
]  # fmt: skip

# Table of OpenShift 4.20, and of it alone: a digest has no release.
OCP = "4.20.3"
DIGESTS: list[tuple[str, str, str, str, str, dict[str, Any], str, str, set[str]]] = [
    ("ocp-vsphere", "vsphere", "vmware-vsphere-csi-driver-controller", "csi-driver", foreign.DIGEST, {}, "3.5.0",
     "host_process", {"CSI-D34"}),
    ("ocp-ebs", "aws_ebs", "aws-ebs-csi-driver-controller", "csi-driver", foreign.DIGEST, {}, "1.45.0", "csi_proxy",
     {"CSI-D34"}),
    ("ocp-file", "azure_file", "azure-file-csi-driver-controller", "csi-driver", foreign.DIGEST, {}, "1.33.3",
     "host_process", {"CSI-D34"}),
    ("ocp-skew", "vsphere", "vmware-vsphere-csi-driver-controller", "csi-driver", foreign.DIGEST, {"version": "3.4.0"},
     "3.4.0", "csi_proxy", {"CSI-D33", "CSI-D34"}),
    ("ocp-tag", "vsphere", "vmware-vsphere-csi-driver-controller", "csi-driver",
     "registry.corp/mirror/csi-vsphere/driver:v3.4.0", {}, "3.4.0", "csi_proxy", set()),
]  # fmt: skip


def verdicts(lab: Lab, table: list[Any]) -> None:
    """Plant each row's controller in a namespace of its own, and compare what is planned for it."""
    client = connect(lab.state.kubeconfigs["kubewin"])
    for name, driver, deployment, container, image, options, version, mode, ids in table:
        space = f"skew-{name}"
        lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        path = f"/apis/apps/v1/namespaces/{space}/deployments"
        lab.api.ensure(path, controller(space, deployment, container, image))
        wanted = DriverRequest(namespace=space, **options)
        made = planned(client, wanted, driver=DRIVERS[driver])
        ids_found = {one.id for one in made.findings if one.id in ("CSI-D32", "CSI-D33", "CSI-D34")}
        assert made.rule is not None
        assert (name, str(made.version), made.rule.mode, ids_found) == (name, version, mode, ids)
        assert ("the controller runs" in made.refusal) == ("CSI-D33" in ids)


def test_the_release_is_read_from_tags_with_prefixes_and_suffixes(prepared: Lab) -> None:
    verdicts(prepared, TAGS)


@pytest.fixture
def openshift(prepared: Lab) -> Iterator[Lab]:
    """Make the cluster OpenShift, by the object that identifies OpenShift."""
    prepared.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", cluster_version_crd())
    versions = "/apis/config.openshift.io/v1/clusterversions"
    eventually(lambda: prepared.api.ok(versions), "ClusterVersion is served")
    body = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "status": {
            "desired": {"version": "4.21.0"},
            "history": [{"state": "Partial", "version": "4.21.0"}, {"state": "Completed", "version": OCP}],
        },
    }
    prepared.api.post(versions, body)
    yield prepared
    prepared.api.gone("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterversions.config.openshift.io")


def cluster_version_crd() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "ClusterVersion", "plural": "clusterversions", "singular": "clusterversion"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "clusterversions.config.openshift.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, the lab's own"},
        },
        "spec": {"group": "config.openshift.io", "scope": "Cluster", "names": names, "versions": [version]},
    }


def test_a_digest_has_the_release_of_its_openshift_and_the_scc_is_checked(openshift: Lab) -> None:
    verdicts(openshift, DIGESTS)

    client = connect(openshift.state.kubeconfigs["kubewin"])
    space = "skew-ocp-vsphere"
    wanted = DriverRequest(namespace=space, csi_proxy_managed=False)
    command = f"oc adm policy add-scc-to-user privileged -z kubewin-vsphere-csi-node -n {space}"

    def scc() -> str:
        found = [one for one in planned(client, wanted).findings if one.id == "CSI-D12"]
        return f"{found[0].severity} {found[0].remedy}" if found else ""

    # The account may not ask; then it may, and the plugin's has it not; then it has.
    assert scc() == f"warning {command}"
    with also_holds(openshift, "kubewin-csi-openshift"):
        eventually(lambda: scc() == f"blocker {command}", "the answer that it has it not")
        grant: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:openshift:scc:privileged"},
            "rules": [
                {
                    "apiGroups": ["security.openshift.io"],
                    "resources": ["securitycontextconstraints"],
                    "resourceNames": ["privileged"],
                    "verbs": ["use"],
                }
            ],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        openshift.api.ensure(f"{rbac}/clusterroles", grant)
        bound = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "scc", "namespace": space},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": grant["metadata"]["name"],
            },
            "subjects": [{"kind": "ServiceAccount", "name": "kubewin-vsphere-csi-node", "namespace": space}],
        }
        openshift.api.ensure(f"{rbac}/namespaces/{space}/rolebindings", bound)
        eventually(lambda: scc() == "", "no finding of the SCC")
    sync = [one for one in planned(client, wanted).findings if one.id == "CSI-D13"]
    assert "security.openshift.io/scc.podSecurityLabelSync=false" in sync[0].remedy


def test_a_namespace_that_cannot_be_is_refused_for_its_name(prepared: Lab) -> None:
    client = connect(prepared.state.kubeconfigs["kubewin"])
    refusal = planned(client, DriverRequest(namespace="Kube_System")).refusal
    assert refusal.startswith("CSI-D08 namespace Kube_System: expected a namespace name")
    assert "ConfigMap" not in refusal
