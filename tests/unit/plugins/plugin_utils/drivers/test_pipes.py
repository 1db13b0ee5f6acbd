# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who still needs csi-proxy."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.uses import (
    VolumeUse,
    explain_csi_proxy_refusal,
    is_served_without_pipes,
    list_csi_proxy_pipes,
    list_pipe_users,
)

SMB, GCE, VSPHERE = DRIVERS["smb"], DRIVERS["gce_pd"], DRIVERS["vsphere"]
PIPE = r"\\.\pipe\csi-proxy-smb-v1"


def spec(*paths: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "hostPath": {"path": path}} for path in paths], "containers": []}


def daemon_set(*paths: str, ours: str = "", uid: str = "d1") -> dict[str, Any]:
    """A DaemonSet in kube-system; ours: of this driver, put there by this collection."""
    managed = {"app.kubernetes.io/managed-by": "kubewin.csi", "app.kubernetes.io/part-of": ours}
    metadata = {"namespace": "kube-system", "name": "plugin", "uid": uid, "labels": managed if ours else {}}
    return {"metadata": metadata, "spec": {"template": {"spec": spec(*paths)}}}


def pod(*paths: str, owner: str = "d1", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    owners = [{"uid": owner}]
    return {
        "metadata": {"namespace": "kube-system", "name": "plugin-x", "ownerReferences": owners, **metadata},
        "spec": {**spec(*paths), "nodeName": "win-1"},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PIPE, ("csi-proxy-smb-v1",)),
        (r"\\.\\pipe\\csi-proxy-smb-v1", ("csi-proxy-smb-v1",)),
        ("//./pipe/CSI-PROXY-disk-v1beta2", ("csi-proxy-disk-v1beta2",)),
        (r"\\.\pipe\docker_engine", ()),
        (r"C:\csi-proxy-smb-v1", ()),
        ("", ()),
    ],
)
def test_a_pipe_is_known_however_it_is_written(path: str, expected: tuple[str, ...]) -> None:
    assert list_csi_proxy_pipes(spec(path)) == expected


def test_every_pod_that_mounts_a_pipe_is_named() -> None:
    assert list_pipe_users([daemon_set(PIPE)], [pod(PIPE, owner="another")], ()) == (
        "DaemonSet kube-system/plugin mounts csi-proxy-smb-v1",
        "pod kube-system/plugin-x on win-1 mounts csi-proxy-smb-v1",
    )


def test_a_daemonset_that_is_removed_anyway_does_not_count_nor_do_its_pods() -> None:
    assert list_pipe_users([daemon_set(PIPE, ours=SMB.name)], [pod(PIPE)], {SMB.name}) == ()
    assert len(list_pipe_users([daemon_set(PIPE, ours=SMB.name)], [pod(PIPE)], ())) == 2
    # One of that driver with another owner is not removed.
    assert len(list_pipe_users([daemon_set(PIPE)], [pod(PIPE)], {SMB.name})) == 2


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        pytest.param(pod(PIPE, phase="Succeeded"), False, id="finished"),
        pytest.param(pod(PIPE, phase="Failed", deletionTimestamp="x"), True, id="failed, its end not confirmed"),
        pytest.param(pod(PIPE, phase="Pending"), True, id="that starts"),
        pytest.param(pod(r"C:\data"), False, id="without a pipe"),
    ],
)
def test_a_pod(one: dict[str, Any], counts: bool) -> None:
    assert bool(list_pipe_users([], [one], ())) is counts


def test_volumes_depend_on_csi_proxy_unless_the_driver_is_known_not_to_use_it() -> None:
    host_process = {
        "metadata": {"namespace": "d", "name": "csi-smb-node-win", "uid": "u"},
        "spec": {
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "windows"},
                    "containers": [
                        {
                            "name": "smb",
                            "image": "smb",
                            "args": [rf"--x=C:\var\lib\kubelet\plugins\{SMB.name}\csi.sock"],
                        }
                    ],
                }
            }
        },
    }
    assert not is_served_without_pipes(SMB, [host_process])
    host_process["status"] = {"numberReady": 1}
    assert is_served_without_pipes(SMB, [host_process])
    assert not is_served_without_pipes(SMB, [])
    host_process["spec"]["template"]["spec"].update(spec(PIPE))  # type: ignore[index]  # a test's own nested dictionary
    assert not is_served_without_pipes(SMB, [host_process])
    assert not is_served_without_pipes(GCE, [])


def test_the_host_process_plugin_of_openshifts_operator_uses_csi_proxy_without_mounting_a_pipe() -> None:
    plugin: dict[str, Any] = {
        "metadata": {
            "namespace": "openshift-cluster-csi-drivers",
            "name": "vmware-vsphere-csi-driver-node-windows",
            "uid": "u",
            "annotations": {"operator.openshift.io/spec-hash": "1"},
        },
        "spec": {
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "windows"},
                    "securityContext": {"windowsOptions": {"hostProcess": True}},
                    "containers": [
                        {
                            "name": "registrar",
                            "args": [
                                rf"--kubelet-registration-path=C:\var\lib\kubelet\plugins\{VSPHERE.name}\csi.sock"
                            ],
                        }
                    ],
                }
            }
        },
        "status": {"numberReady": 1},
    }
    name = "DaemonSet openshift-cluster-csi-drivers/vmware-vsphere-csi-driver-node-windows"
    assert list_pipe_users([plugin], [], ()) == (f"{name} of OpenShift's storage operator uses csi-proxy",)
    assert not is_served_without_pipes(VSPHERE, [plugin])
    # A HostProcess plugin of another owner is upstream's, which does not use csi-proxy.
    plugin["metadata"]["annotations"] = {}
    assert list_pipe_users([plugin], [], ()) == ()
    assert is_served_without_pipes(VSPHERE, [plugin])


def test_the_refusal_names_everything_up_to_a_length_and_the_remedy() -> None:
    assert explain_csi_proxy_refusal((), ()) == ""
    users = tuple(f"DaemonSet d/plugin-{number} mounts csi-proxy-smb-v1" for number in range(30))
    message = explain_csi_proxy_refusal(users, [(SMB, [VolumeUse("win-1", "pod shop/db-0 (claim data)")])])
    assert "plugin-19" in message
    assert "plugin-20" not in message
    assert "and 11 more" in message
    assert "host_process" in message
    one = explain_csi_proxy_refusal((), [(SMB, [VolumeUse("win-1", "pod shop/db-0 (claim data)")])])
    assert f"win-1: {SMB.title} ({SMB.name}): pod shop/db-0 (claim data), mounted through csi-proxy" in one
