# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vSphere CSI driver's own installation, as `gate` expects to find it: objects only, no driver runs.

Shapes follow kubernetes-sigs/vsphere-csi-driver v3.4.0, manifests/vanilla/vsphere-csi-driver.yaml, reduced to what something
reads. Tests remove or change single objects through the API.
"""

from __future__ import annotations

from lab.cluster.api import Api, ApiError, Object
from lab.cluster.nodes import LINUX

NAMESPACE = "vmware-system-csi"
DRIVER = "csi.vsphere.vmware.com"
RELEASE = "v3.4.0"
FEATURES = "internal-feature-states.csi.vsphere.vmware.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Of its controller; what the first and the third do is done by `storage.py`.
SIDECARS = {
    "csi-attacher": "v4.7.0",
    "csi-resizer": "v1.12.0",
    "csi-provisioner": "v4.0.1",
    "csi-snapshotter": "v8.2.0",
}
PLUGIN_FOLDER = f"/var/lib/kubelet/plugins/{DRIVER}"


def objects() -> list[tuple[str, Object]]:
    """(collection path, object) in the order in which they are made."""
    namespaced = f"namespaces/{NAMESPACE}"
    return [
        (
            "/api/v1/namespaces",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                # An administrator of a cluster with a stricter default labels it so; tests take the label away.
                "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
            },
        ),
        (CRDS, _crd("CSINodeTopology", "csinodetopologies")),
        (CRDS, _crd("CnsVSphereVolumeMigration", "cnsvspherevolumemigrations")),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": DRIVER},
                "spec": {"attachRequired": True, "podInfoOnMount": False},
            },
        ),
        (
            f"/api/v1/{namespaced}/configmaps",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": FEATURES, "namespace": NAMESPACE},
                "data": {"trigger-csi-fullsync": "false", "pv-to-backingdiskobjectid-mapping": "false"},
            },
        ),
        (f"/api/v1/{namespaced}/serviceaccounts", _account("vsphere-csi-controller")),
        (f"/api/v1/{namespaced}/serviceaccounts", _account("vsphere-csi-node")),
        (f"/apis/apps/v1/{namespaced}/deployments", _controller()),
        (f"/apis/apps/v1/{namespaced}/daemonsets", _linux_nodes()),
    ]


def install(api: Api) -> None:
    for path, thing in objects():
        api.ensure(path, thing)


def remove(api: Api, kind: str, name: str) -> None:
    """Delete one object of the installation by kind and name; nothing happens when it is absent."""
    for path, thing in objects():
        if (thing["kind"], thing["metadata"]["name"]) == (kind, name):
            try:
                api.delete(f"{path}/{name}")
            except ApiError as error:
                if error.status != 404:
                    raise
            return
    raise KeyError(f"the vSphere installation has no {kind} {name}")


def _account(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}


def _controller() -> Object:
    labels = {"app": "vsphere-csi-controller"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "vsphere-csi-controller", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels, "role": "vsphere-csi"}},
                "spec": {
                    "serviceAccountName": "vsphere-csi-controller",
                    "nodeSelector": {"kubernetes.io/hostname": LINUX},
                    "containers": [
                        *(
                            {"name": name, "image": f"registry.k8s.io/sig-storage/{name}:{release}"}
                            for name, release in SIDECARS.items()
                        ),
                        {
                            "name": "vsphere-csi-controller",
                            "image": f"registry.k8s.io/csi-vsphere/driver:{RELEASE}",
                            "args": [f"--fss-name={FEATURES}", "--fss-namespace=$(CSI_NAMESPACE)"],
                            "env": [{"name": "CSI_NAMESPACE", "value": NAMESPACE}],
                        },
                        {"name": "vsphere-syncer", "image": f"registry.k8s.io/csi-vsphere/syncer:{RELEASE}"},
                    ],
                },
            },
        },
    }


def _linux_nodes() -> Object:
    labels = {"app": "vsphere-csi-node"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "vsphere-csi-node", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels, "role": "vsphere-csi"}},
                "spec": {
                    "serviceAccountName": "vsphere-csi-node",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "containers": [
                        {
                            "name": "node-driver-registrar",
                            "image": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.12.0",
                            "args": [
                                "--v=5",
                                "--csi-address=$(ADDRESS)",
                                "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
                            ],
                            "env": [
                                {"name": "ADDRESS", "value": "/csi/csi.sock"},
                                {"name": "DRIVER_REG_SOCK_PATH", "value": f"{PLUGIN_FOLDER}/csi.sock"},
                            ],
                        },
                        {
                            "name": "vsphere-csi-node",
                            "image": f"registry.k8s.io/csi-vsphere/driver:{RELEASE}",
                            "env": [{"name": "MAX_VOLUMES_PER_NODE", "value": "59"}],
                        },
                        {"name": "liveness-probe", "image": "registry.k8s.io/sig-storage/livenessprobe:v2.14.0"},
                    ],
                    "volumes": [
                        {"name": "plugin-dir", "hostPath": {"path": PLUGIN_FOLDER, "type": "DirectoryOrCreate"}}
                    ],
                },
            },
        },
    }


def _crd(kind: str, plural: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cns.vmware.com"},
        "spec": {
            "group": "cns.vmware.com",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
