# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node plugins for Windows that others bring, with the names, labels and annotations that theirs have.

OpenShift: enhancement 2072 (enhancements/windows-containers of https://github.com/openshift/enhancements) has the CSI
operators bring HostProcess DaemonSets; library-go's ApplyDaemonSet marks what it applied with operator.openshift.io/spec-hash.
The example of the Windows Machine Config Operator is hack/manifests/csi/vsphere/01-example-driver-daemonset.yaml there.
AKS: https://github.com/Azure/AKS/issues/2717 shows csi-azuredisk-node-win with its labels; the label managedby is on
https://learn.microsoft.com/azure/aks/use-labels. EKS: the chart of aws-ebs-csi-driver as the add-on applies it, with
app.kubernetes.io/managed-by=EKS. GKE: pdcsi-node-windows in kube-system, with the annotations components.gke.io/* that
its StorageClasses show too.
"""

from __future__ import annotations

from typing import Any

from lab.cluster.api import Api, Object

DIGEST = f"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:{'1' * 64}"
OPENSHIFT = "openshift-cluster-csi-drivers"
PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}


def plugin(
    namespace: str,
    name: str,
    driver: str,
    selector: dict[str, str],
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    image: str = DIGEST,
    pipes: tuple[str, ...] = (),
) -> Object:
    """A DaemonSet that serves a driver on Windows nodes: through csi-proxy with pipes, as HostProcess without."""
    folder = f"C:\\var\\lib\\kubelet\\plugins\\{driver}"
    reported = {"name": "DRIVER_REG_SOCK_PATH", "value": f"{folder}\\csi.sock"}
    volumes: list[dict[str, Any]] = [{"name": "plugin-dir", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}]
    volumes += [{"name": pipe, "hostPath": {"path": f"\\\\.\\pipe\\{pipe}"}} for pipe in pipes]
    host: dict[str, Any] = {}
    if not pipes:
        windows = {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}
        host = {"hostNetwork": True, "securityContext": {"windowsOptions": windows}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    **host,
                    "nodeSelector": {"kubernetes.io/os": "windows"},
                    "tolerations": [{"operator": "Exists"}],
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "csi-driver",
                            "image": image,
                            "volumeMounts": [{"name": pipe, "mountPath": f"\\\\.\\pipe\\{pipe}"} for pipe in pipes],
                        },
                        {
                            "name": "csi-node-driver-registrar",
                            "image": f"{image.partition('@')[0]}/csi-node-driver-registrar:v2",
                            "args": ["--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)"],
                            "env": [reported],
                        },
                        {"name": "csi-liveness-probe", "image": f"{image.partition('@')[0]}/livenessprobe:v2"},
                    ],
                    "volumes": volumes,
                },
            },
        },
    }


def operator(name: str, driver: str) -> Object:
    """What an OpenShift storage operator applies."""
    notes = {"operator.openshift.io/spec-hash": "5f3c0a", "deprecated.daemonset.template.generation": "1"}
    return plugin(OPENSHIFT, name, driver, {"app": name}, annotations=notes)


def aks(name: str, driver: str) -> Object:
    """AKS' node plugin."""
    labels = {
        "addonmanager.kubernetes.io/mode": "Reconcile",
        "kubernetes.azure.com/managedby": "aks",
        "kubernetes.io/cluster-service": "true",
    }
    image = "mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.33.5-windows-hp"
    return plugin("kube-system", name, driver, {"app": name}, labels=labels, image=image)


def eks(**labels: str) -> Object:
    """The node plugin of EKS' add-on; upstream's chart, whose release Helm keeps, with other labels."""
    both = {"app": "ebs-csi-node", "app.kubernetes.io/name": "aws-ebs-csi-driver"}
    known = {
        **both,
        "app.kubernetes.io/component": "csi-driver",
        "app.kubernetes.io/managed-by": "EKS",
        "app.kubernetes.io/version": "1.53.0",
        **labels,
    }
    pipes = ("csi-proxy-disk-v1", "csi-proxy-filesystem-v1", "csi-proxy-volume-v1")
    image = "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/aws-ebs-csi-driver:v1.53.0"
    return plugin(
        "kube-system", "ebs-csi-node-windows", "ebs.csi.aws.com", both, labels=known, image=image, pipes=pipes
    )


def gke() -> Object:
    """GKE's node plugin."""
    labels = {"addonmanager.kubernetes.io/mode": "Reconcile", "k8s-app": "gcp-compute-persistent-disk-csi-driver"}
    notes = {
        "components.gke.io/component-name": "pdcsi",
        "components.gke.io/component-version": "0.21.32",
        "components.gke.io/layer": "addon",
    }
    pipes = ("csi-proxy-disk-v1", "csi-proxy-filesystem-v1", "csi-proxy-volume-v1")
    image = "gke.gcr.io/gcp-compute-persistent-disk-csi-driver:v1.17.4-gke.0"
    selector = {"k8s-app": "gcp-compute-persistent-disk-csi-driver"}
    return plugin(
        "kube-system",
        "pdcsi-node-windows",
        "pd.csi.storage.gke.io",
        selector,
        labels=labels,
        annotations=notes,
        image=image,
        pipes=pipes,
    )


def upstream(release: str = "v3.4.0") -> Object:
    """vSphere's node plugin as `kubectl apply` of upstream's manifest makes it, which is called as ours is."""
    pipes = ("csi-proxy-volume-v1", "csi-proxy-filesystem-v1", "csi-proxy-disk-v1", "csi-proxy-system-v1alpha1")
    return plugin(
        "vmware-system-csi",
        "vsphere-csi-node-windows",
        "csi.vsphere.vmware.com",
        {"app": "vsphere-csi-node-windows"},
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        image=f"registry.k8s.io/csi-vsphere/driver:{release}",
        pipes=pipes,
    )


def helm() -> Object:
    """vSphere's node plugin as a chart makes it: another name, other labels."""
    made = upstream()
    selector = {"component": "rancher-vsphere-csi-node-windows"}
    made["metadata"] |= {
        "name": "rancher-vsphere-csi-node-windows",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {
            "meta.helm.sh/release-name": "vsphere-csi",
            "meta.helm.sh/release-namespace": "vmware-system-csi",
        },
    }
    made["spec"]["selector"]["matchLabels"] = selector
    made["spec"]["template"]["metadata"]["labels"] = selector
    return made


def plant(api: Api, thing: Object, manager: str = "") -> Object:
    """Create an object as its owner does, its namespace too."""
    namespace = thing["metadata"]["namespace"]
    if not api.ok(f"/api/v1/namespaces/{namespace}"):
        labels = {**PRIVILEGED, "security.openshift.io/scc.podSecurityLabelSync": "false"}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        api.ensure("/api/v1/namespaces", space)
    query = f"?fieldManager={manager}" if manager else ""
    return api.post(f"/apis/apps/v1/namespaces/{namespace}/daemonsets{query}", thing)


def path(thing: Object) -> str:
    """Where a DaemonSet is."""
    return f"/apis/apps/v1/namespaces/{thing['metadata']['namespace']}/daemonsets/{thing['metadata']['name']}"


def written(live: Object) -> Object:
    """All of an object but the status that its controller writes of its pods."""
    metadata = {
        key: value for key, value in live["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    managers = [one for one in live["metadata"]["managedFields"] if one.get("subresource") != "status"]
    return {**live, "metadata": {**metadata, "managedFields": managers}, "status": None}
