# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which image a Windows host can run, and what a node's runtime tells."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.fit import containerd, image_for
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.ownership import platform
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import ControllerSeen, NodeSeen
from unit.plugins.module_utils.deploy.worlds import snapshot


@pytest.mark.parametrize(
    ("build", "images", "expected"),
    [
        ("20348", ("17763", "20348"), "yes"),
        ("26100", ("17763", "20348"), "maybe"),
        ("26100", ("17763",), "no"),
        ("20348", ("17763",), "no"),
        ("19042", ("17763", "20348"), "no"),
        ("17763", ("20348",), "no"),
        ("12345", None, "yes"),
    ],
)
def test_an_older_image_runs_only_from_windows_server_2022_on(
    build: str, images: tuple[str, ...] | None, expected: str
) -> None:
    assert image_for(build, images) == expected


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("containerd://1.7.27", "1.7.27"),
        ("containerd://2.0.0-rc.1", "2.0.0-rc.1"),
        ("containerd://1.6.8+azure", "1.6.8"),
        ("containerd://Unknown", None),
        ("docker://20.10.21", None),
        ("", None),
    ],
)
def test_a_runtime_tells_its_release(runtime: str, expected: str | None) -> None:
    found = containerd(NodeSeen("win-1", "20348", {}, runtime=runtime))
    assert (str(found) if found else None) == expected


@pytest.mark.parametrize(
    ("spoilt", "expected"),
    [
        ({}, ""),
        ({"kubernetes": "v1.33.1-eks-595af52"}, "eks"),
        ({"kubernetes": "v1.33.5-gke.1125000"}, "gke"),
        ({"kubernetes": "v1.32.4+rke2r1"}, "rke2"),
        ({"kubernetes": "v1.33.4+k3s1"}, ""),
        ({"openshift": "4.20.3"}, "openshift"),
        ({"nodes": (NodeSeen("win-1", "20348", {}, wmco=True),)}, "openshift"),
        ({"nodes": (NodeSeen("akswin", "20348", {"kubernetes.azure.com/cluster": "MC_x"}),)}, "aks"),
    ],
)
def test_the_platform_shows_itself(spoilt: dict[str, Any], expected: str) -> None:
    assert platform(snapshot(**spoilt)) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"annotations": {"windowsmachineconfig.openshift.io/version": "10.20.0"}}, True),
        ({"labels": {"windowsmachineconfig.openshift.io/byoh": "true"}}, True),
        ({"labels": {"kubernetes.io/os": "windows"}, "annotations": {"other/version": "1"}}, False),
        ({}, False),
    ],
)
def test_a_node_shows_who_prepared_it_and_what_it_runs(metadata: dict[str, Any], expected: bool) -> None:
    info = {"containerRuntimeVersion": "containerd://1.7.27", "kernelVersion": "10.0.20348.2700"}
    seen = NodeSeen.from_object({"metadata": {"name": "win-1", **metadata}, "status": {"nodeInfo": info}})
    assert (seen.wmco, seen.runtime, seen.build) == (expected, "containerd://1.7.27", "20348")


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
    assert ControllerSeen.from_object(deployment, "vsphere-csi-controller").image == f"x/{expected}"
