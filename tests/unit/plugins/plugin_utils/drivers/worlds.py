# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster that is ready for the vSphere node plugin, to be spoilt by tests in one place each."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverController, DriverSnapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode

VSPHERE = DRIVERS["vsphere"]
HOME = "vmware-system-csi"
OURS = {"app.kubernetes.io/managed-by": "kubewin.csi"}
PLUGIN_DIR = "C:\\var\\lib\\kubelet\\plugins\\csi.vsphere.vmware.com\\"


def node(name: str = "win-1", build: str = "20348", **labels: str) -> ObservedNode:
    """A Windows node whose csi-proxy was proven."""
    return ObservedNode(
        name=name,
        build=build,
        labels={"kubernetes.io/os": "windows", "kubewin.io/csi-proxy": "serving", **labels},
    )


def controller(tag: str = "v3.4.0", namespace: str = HOME, available: int = 1) -> DriverController:
    """The Linux controller."""
    image = tag if "/" in tag else f"registry.k8s.io/csi-vsphere/driver:{tag}"
    return DriverController(
        namespace=namespace, name="vsphere-csi-controller", image=image, desired=1, available=available
    )


def daemon_set(name: str, home: str = HOME, path: str = PLUGIN_DIR, **more: Any) -> dict[str, Any]:
    """A DaemonSet that mounts a path of its hosts, on Windows where that has a drive. more: metadata, or ready."""
    system = "windows" if "C:" in path else "linux"
    ready = more.pop("ready", 1)
    return {
        "metadata": {"name": name, "namespace": home, **more},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": system},
                    "containers": [{"name": "c"}],
                    "volumes": [{"name": "p", "hostPath": {"path": path}}],
                }
            },
        },
        "status": {"numberReady": ready},
    }


def observed(name: str, home: str = HOME, path: str = PLUGIN_DIR, **more: Any) -> ObservedDaemonSet:
    """The same, in the form of a plan's facts."""
    live = daemon_set(name, home, path, **more)
    return ObservedDaemonSet.from_object(live)


def snapshot(**spoilt: Any) -> DriverSnapshot:
    """A snapshot with some fields replaced."""
    fields: dict[str, Any] = {
        "kubernetes": "v1.36.3",
        "nodes": (node("win-1"), node("win-2")),
        "controllers": (controller(),),
        "daemon_sets": (),
        "namespaces": {
            HOME: {"metadata": {"name": HOME, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
        },
        "csi_driver": {
            "metadata": {"name": VSPHERE.name},
            "spec": {"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "ReadWriteOnceWithFSType"},
        },
        "feature_states": {HOME: {"trigger-csi-fullsync": "false"}},
        "storage_class": None,
    }
    return DriverSnapshot(**{**fields, **spoilt})
