# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which DaemonSet the gate reads of a driver, and which drivers a cluster has: those of this collection and of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.installed import find_node_plugins
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.observe import find_target

VSPHERE, SMB = DRIVERS["vsphere"], DRIVERS["smb"]
OPENSHIFT = "openshift-cluster-csi-drivers"


def daemon_set(name: str, namespace: str, driver: str, *, ours: bool = False, system: str = "windows") -> Any:
    separator = "\\" if system == "windows" else "/"
    folder = separator.join(["C:" if system == "windows" else "", "var", "lib", "kubelet", "plugins", driver])
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "kubewin.csi"} if ours else {},
        },
        "spec": {
            "selector": {"matchLabels": {"app": name, "tier": "node"}},
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": system},
                    "containers": [
                        {"name": "registrar", "args": [f"--kubelet-registration-path={folder}{separator}csi.sock"]}
                    ],
                }
            },
        },
    }


def cluster(*daemon_sets: Any) -> Any:
    return SimpleNamespace(list=lambda kind: SimpleNamespace(items=list(daemon_sets)))


LINUX = daemon_set("csi-smb-node", "kube-system", SMB.name, system="linux")
OPERATORS = daemon_set("vmware-vsphere-csi-driver-node-windows", OPENSHIFT, VSPHERE.name)
OURS = daemon_set(VSPHERE.daemonset, "storage", VSPHERE.name, ours=True)


def test_our_daemon_set_is_read_wherever_it_is() -> None:
    target = find_target(cluster(OPERATORS, OURS), VSPHERE)
    assert (target.namespace, target.daemon_set, target.selector) == ("storage", VSPHERE.daemonset, "")


def test_another_owners_daemon_set_is_read_with_its_own_name_and_pods() -> None:
    target = find_target(cluster(LINUX, OPERATORS), VSPHERE)
    assert (target.namespace, target.daemon_set) == (OPENSHIFT, "vmware-vsphere-csi-driver-node-windows")
    assert target.selector == "app=vmware-vsphere-csi-driver-node-windows,tier=node"


def test_without_any_the_catalog_says_where_ours_would_be() -> None:
    target = find_target(cluster(LINUX), SMB)
    assert (target.namespace, target.daemon_set) == (SMB.namespace, SMB.daemonset)
    named = find_target(cluster(OPERATORS), VSPHERE, namespace="here")
    assert (named.namespace, named.daemon_set) == ("here", VSPHERE.daemonset)


def test_a_driver_is_installed_if_a_node_plugin_for_windows_is_there_of_whichever_owner() -> None:
    theirs = (f"DaemonSet {OPENSHIFT}/{OPERATORS['metadata']['name']}",)
    assert find_node_plugins(cluster(LINUX, OPERATORS)) == {"vsphere": theirs}
    assert find_node_plugins(cluster(LINUX, OPERATORS), own_only=True) == {}
    going = {**OPERATORS, "metadata": {**OPERATORS["metadata"], "deletionTimestamp": "2026-11-23T20:00:00Z"}}
    ours = daemon_set(SMB.daemonset, SMB.namespace, SMB.name, ours=True)
    mine = {"smb": (f"DaemonSet {SMB.namespace}/{SMB.daemonset}",)}
    assert find_node_plugins(cluster(going, ours)) == find_node_plugins(cluster(going, ours), own_only=True) == mine
