# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the templates render: upstream's manifest, apart from what is meant, and valid for every Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from unit.plugins.plugin_utils.drivers.worlds import HOME, VSPHERE, controller, snapshot
from unit.roles import schemas
from unit.roles.rendering import only, render
from unit.roles.upstream import differences, different, facts

KUBELET = r"C:\var\lib\kubelet"
SOCKET = r"C:\\var\\lib\\kubelet\\plugins\\csi.vsphere.vmware.com\\csi.sock"
PIPES = ("disk-v1", "volume-v1", "filesystem-v1", "system-v1alpha1")

# vSphere v3.4.0, manifests/vanilla/vsphere-csi-driver.yaml, DaemonSet vsphere-csi-node-windows. Lists whose elements
# have names are keyed by them, since their order means nothing.
UPSTREAM: dict[str, Any] = {
    "metadata.name": "vsphere-csi-node-windows",
    "metadata.namespace": "vmware-system-csi",
    "spec.selector.matchLabels.app": "vsphere-csi-node-windows",
    "spec.updateStrategy.type": "RollingUpdate",
    "spec.updateStrategy.rollingUpdate.maxUnavailable": 1,
    "spec.template.metadata.labels.app": "vsphere-csi-node-windows",
    "spec.template.metadata.labels.role": "vsphere-csi-windows",
    "spec.template.spec.priorityClassName": "system-node-critical",
    "spec.template.spec.nodeSelector.kubernetes.io/os": "windows",
    "spec.template.spec.serviceAccountName": "vsphere-csi-node",
    "spec.template.spec.tolerations": [
        {"effect": "NoExecute", "operator": "Exists"},
        {"effect": "NoSchedule", "operator": "Exists"},
    ],
    "registrar.name": "node-driver-registrar",
    "registrar.image": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.12.0",
    "registrar.args": [
        "--v=5",
        "--csi-address=$(ADDRESS)",
        "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
    ],
    "registrar.env.ADDRESS": r"unix://C:\\csi\\csi.sock",
    "registrar.env.DRIVER_REG_SOCK_PATH": SOCKET,
    "registrar.mount.plugin-dir.mountPath": "/csi",
    "registrar.mount.registration-dir.mountPath": "/registration",
    "registrar.livenessProbe.exec.command": [
        "/csi-node-driver-registrar.exe",
        f"--kubelet-registration-path={SOCKET}",
        "--mode=kubelet-registration-probe",
    ],
    "registrar.livenessProbe.initialDelaySeconds": 3,
    "driver.name": "vsphere-csi-node",
    "driver.image": "registry.k8s.io/csi-vsphere/driver:v3.4.0",
    "driver.imagePullPolicy": "Always",
    "driver.args": [
        "--fss-name=internal-feature-states.csi.vsphere.vmware.com",
        "--fss-namespace=$(CSI_NAMESPACE)",
    ],
    "driver.env.NODE_NAME": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
    "driver.env.CSI_ENDPOINT": r"unix://C:\\csi\\csi.sock",
    "driver.env.MAX_VOLUMES_PER_NODE": "59",
    "driver.env.X_CSI_MODE": "node",
    "driver.env.X_CSI_SPEC_REQ_VALIDATION": "false",
    "driver.env.X_CSI_SPEC_DISABLE_LEN_CHECK": "true",
    "driver.env.LOGGER_LEVEL": "PRODUCTION",
    "driver.env.X_CSI_LOG_LEVEL": "DEBUG",
    "driver.env.CSI_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    "driver.env.NODEGETINFO_WATCH_TIMEOUT_MINUTES": "1",
    "driver.mount.plugin-dir.mountPath": r"C:\csi",
    "driver.mount.pods-mount-dir.mountPath": KUBELET,
    **{f"driver.mount.csi-proxy-{pipe}.mountPath": rf"\\.\pipe\csi-proxy-{pipe}" for pipe in PIPES},
    "driver.port.healthz": 9808,
    "driver.livenessProbe.httpGet.path": "/healthz",
    "driver.livenessProbe.httpGet.port": "healthz",
    "driver.livenessProbe.initialDelaySeconds": 10,
    "driver.livenessProbe.timeoutSeconds": 5,
    "driver.livenessProbe.periodSeconds": 5,
    "driver.livenessProbe.failureThreshold": 3,
    "liveness.name": "liveness-probe",
    "liveness.image": "registry.k8s.io/sig-storage/livenessprobe:v2.14.0",
    "liveness.args": ["--v=4", "--csi-address=/csi/csi.sock"],
    "liveness.mount.plugin-dir.mountPath": "/csi",
    "volume.registration-dir": {"path": KUBELET + "\\plugins_registry\\", "type": "Directory"},
    "volume.plugin-dir": {"path": KUBELET + "\\plugins\\csi.vsphere.vmware.com\\", "type": "DirectoryOrCreate"},
    "volume.pods-mount-dir": {"path": r"\var\lib\kubelet", "type": "Directory"},
    **{f"volume.csi-proxy-{pipe}": {"path": rf"\\.\pipe\csi-proxy-{pipe}", "type": ""} for pipe in PIPES},
}


def test_the_daemon_set_is_upstreams_apart_from_what_is_meant() -> None:
    ours = facts(only(render(plan_driver(VSPHERE, DriverRequest(), snapshot())), "DaemonSet"))
    meant = [one for one in differences() if not one.only or {"vsphere", "vsphere-csi_proxy"} & set(one.only)]
    unexplained = {
        path
        for path in different(ours, UPSTREAM)
        if not any(one.explains(path, "vsphere", "csi_proxy") for one in meant)
    }
    assert unexplained == set(), (
        "correct the template, or add each path with its reason to tests/unit/manifests/differences.yaml"
    )


def test_the_roles_hold_upstreams_rules_and_nothing_else() -> None:
    objects = render(plan_driver(VSPHERE, DriverRequest(), snapshot()))
    assert only(objects, "ClusterRole")["rules"] == [
        {
            "apiGroups": ["cns.vmware.com"],
            "resources": ["csinodetopologies"],
            "verbs": ["create", "watch", "get", "patch"],
        },
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]
    assert only(objects, "Role")["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    ]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = only(objects, kind)
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "kubewin-vsphere-csi-node", "namespace": HOME}
        ]
        assert binding["roleRef"]["name"] == "kubewin-vsphere-csi-node"


def test_objects_of_the_driver_s_installation_are_not_rendered() -> None:
    kinds = {item["kind"] for item in render(plan_driver(VSPHERE, DriverRequest(), snapshot()))}
    assert kinds == {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "StorageClass", "DaemonSet",
    }  # fmt: skip


def test_they_are_rendered_on_request_if_absent() -> None:
    world = snapshot(controllers=(), csi_driver=None, feature_states={HOME: None}, namespaces={HOME: None})
    objects = render(plan_driver(VSPHERE, DriverRequest(create_cluster_objects=True), world))
    assert objects[0]["kind"] == "Namespace"
    assert objects[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert only(objects, "CSIDriver")["spec"] == {"attachRequired": True, "podInfoOnMount": False}
    assert only(objects, "ConfigMap")["data"]["trigger-csi-fullsync"] == "false"


@pytest.mark.parametrize("version", ["3.0.3", "3.1.2", "3.2.0", "3.3.1", "3.4.0"])
def test_every_release_renders_its_own_images(version: str) -> None:
    world = snapshot(controllers=(controller(f"v{version}"),), feature_states={HOME: {"csi-windows-support": "true"}})
    spec = only(render(plan_driver(VSPHERE, DriverRequest(version=version), world)), "DaemonSet")["spec"]["template"][
        "spec"
    ]
    assert f"registry.k8s.io/csi-vsphere/driver:v{version}" in [one["image"] for one in spec["containers"]]


@pytest.mark.parametrize("minor", schemas.MINORS)
def test_it_is_valid_for_every_kubernetes_with_a_schema(minor: int) -> None:
    world = snapshot(
        kubernetes=f"v1.{minor}.0",
        controllers=(),
        csi_driver=None,
        feature_states={HOME: None},
        namespaces={HOME: None},
    )
    wanted = DriverRequest(
        create_cluster_objects=True,
        image_pull_secrets=("mirror",),
        resources={"driver": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "10m"}}},
    )
    for item in render(plan_driver(VSPHERE, wanted, world)):
        schemas.validate(item, minor)


def test_old_kubernetes_gets_no_field_it_does_not_know() -> None:
    spec = only(render(plan_driver(VSPHERE, DriverRequest(), snapshot(kubernetes="v1.23.17"))), "DaemonSet")["spec"]
    assert "os" not in spec["template"]["spec"]


def test_options_reach_the_manifest() -> None:
    wanted = DriverRequest(
        namespace="storage",
        image_mirror="mirror.example:5000/k8s/",
        images={"registrar": "elsewhere/registrar:1"},
        image_digests={"driver": "sha256:" + "a" * 64},
        image_pull_secrets=("pull",),
        kubelet_dir="D:\\kube let\\",
        tolerations=({"key": "os", "operator": "Exists"},),
        node_selector={"pool": "storage"},
        priority_class="storage-critical",
        resources={"driver": {"limits": {"memory": "1Gi"}}},
        csi_proxy_managed=False,
        storage_class={"name": "fast", "parameters": {"storagepolicyname": "vSAN"}},
    )
    world = snapshot(namespaces={"storage": {"metadata": {"name": "storage"}}}, feature_states={"storage": {}})
    objects = render(plan_driver(VSPHERE, wanted, world))
    daemon_set = only(objects, "DaemonSet")
    pod = daemon_set["spec"]["template"]["spec"]
    by_name = {one["name"]: one for one in pod["containers"]}
    assert daemon_set["metadata"]["namespace"] == "storage"
    assert (
        by_name["vsphere-csi-node"]["image"] == "mirror.example:5000/k8s/csi-vsphere/driver:v3.4.0@sha256:" + "a" * 64
    )
    assert by_name["node-driver-registrar"]["image"] == "elsewhere/registrar:1"
    assert by_name["liveness-probe"]["image"] == "mirror.example:5000/k8s/sig-storage/livenessprobe:v2.14.0"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["tolerations"] == [{"key": "os", "operator": "Exists"}]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "windows", "pool": "storage"}
    assert pod["priorityClassName"] == "storage-critical"
    assert by_name["vsphere-csi-node"]["resources"] == {"limits": {"memory": "1Gi"}}
    assert daemon_set["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}["plugin-dir"] == (
        "D:\\kube let\\plugins\\csi.vsphere.vmware.com\\"
    )
    storage_class = only(objects, "StorageClass")
    assert storage_class["metadata"]["name"] == "fast"
    assert storage_class["parameters"] == {"csi.storage.k8s.io/fstype": "ntfs", "storagepolicyname": "vSAN"}


def test_no_storage_class_when_not_wanted() -> None:
    kinds = [
        item["kind"]
        for item in render(plan_driver(VSPHERE, DriverRequest(storage_class={"create": False}), snapshot()))
    ]
    assert "StorageClass" not in kinds
