# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is read of nodes, DaemonSets and other objects, and what is not mistaken for something else."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverController
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import Marks
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from unit.plugins.plugin_utils.drivers.worlds import VSPHERE, observed


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"annotations": {"windowsmachineconfig.openshift.io/version": "10.20.0"}}, True),
        ({"labels": {"windowsmachineconfig.openshift.io/byoh": "true"}}, True),
        ({"labels": {"kubernetes.io/os": "windows"}, "annotations": {"other/version": "1"}}, False),
        ({}, False),
    ],
)
def test_a_node_shows_its_owner_and_its_releases(metadata: dict[str, Any], expected: bool) -> None:
    info = {"containerRuntimeVersion": "containerd://1.7.27", "kernelVersion": "10.0.20348.2700"}
    observed = ObservedNode.from_object({"metadata": {"name": "win-1", **metadata}, "status": {"nodeInfo": info}})
    assert (observed.of_operator, observed.runtime, observed.build) == (expected, "containerd://1.7.27", "20348")


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        (["side", "csi-driver", "vsphere-csi-controller"], "vsphere-csi-controller"),
        (["side", "csi-driver"], "csi-driver"),
        (["first", "second"], "first"),
    ],
)
def test_the_controllers_image_is_found_by_name_then_as_openshift_calls_it(
    containers: list[str], expected: str
) -> None:
    deployment = {
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [{"name": one, "image": f"x/{one}"} for one in containers]}}},
    }
    assert DriverController.from_object(deployment, "vsphere-csi-controller").image == f"x/{expected}"


def test_the_controller_of_an_object_is_distinguished_from_its_other_owners() -> None:
    owners = [
        {"kind": "Namespace", "name": "n"},
        {"kind": "ClusterCSIDriver", "name": "file.csi.azure.com", "controller": True},
    ]
    assert Marks.from_object({"metadata": {"ownerReferences": owners}}).owner == "ClusterCSIDriver file.csi.azure.com"
    assert Marks.from_object({"metadata": {"ownerReferences": owners[:1]}}) == Marks()


@pytest.mark.parametrize(
    ("path", "windows", "serves"),
    [
        pytest.param("C:\\var\\lib\\kubelet\\plugins\\csi.vsphere.vmware.com\\", True, True, id="ours"),
        pytest.param("C:/var/lib/kubelet/plugins/csi.vsphere.vmware.com", True, True, id="slashes"),
        pytest.param(
            "C:\\\\VAR\\\\lib\\\\kubelet\\\\plugins\\\\csi.vsphere.vmware.com", True, True, id="doubled, any case"
        ),
        pytest.param("C:\\var\\log", True, False, id="no plugin"),
        pytest.param("/var/lib/kubelet/plugins/csi.vsphere.vmware.com", False, False, id="Linux"),
    ],
)
def test_a_node_plugin_for_windows_is_known_by_its_paths(path: str, windows: bool, serves: bool) -> None:
    found = observed("plugin", path=path)
    assert (found.on_windows, found.is_node_plugin_of(VSPHERE.name)) == (windows, serves)
