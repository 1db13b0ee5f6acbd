# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pulling images with pods that do nothing else: what they are, and what their status tells."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.pull import Pull, images, judge, missing, pod, selector

SMB = DRIVERS["smb"]
PLUGIN: dict[str, Any] = {
    "metadata": {"name": "csi-smb-node-win", "namespace": "kube-system"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "csi-smb-node-win"}},
            "spec": {
                "os": {"name": "windows"},
                "serviceAccountName": "kubewin-smb",
                "imagePullSecrets": [{"name": "registry"}],
                "initContainers": [{"name": "init", "image": "driver:2"}],
                "containers": [
                    {"name": "driver", "image": "driver:2", "imagePullPolicy": "Always"},
                    {"name": "registrar", "image": "registrar:1"},
                ],
                "volumes": [{"name": "v", "hostPath": {"path": r"\\.\pipe\csi-proxy-smb-v1"}}],
            },
        }
    },
}


def made(**template: Any) -> dict[str, Any]:
    inner = {**PLUGIN["spec"]["template"]["spec"], **template}
    plugin = {**PLUGIN, "spec": {"template": {**PLUGIN["spec"]["template"], "spec": inner}}}
    return pod(plugin, SMB.name, "win-1", ["driver:2", "registrar:1"], 600)


def test_every_image_once() -> None:
    assert images(PLUGIN) == ("driver:2", "registrar:1")


def test_images_that_the_node_names_are_there() -> None:
    node = {"status": {"images": [{"names": ["registrar@sha256:1", "registrar:1"]}]}}
    assert missing(node, ["driver:2", "registrar:1"]) == ("driver:2",)
    assert missing({}, ["driver:2"]) == ("driver:2",)


def test_the_pod_has_nothing_of_the_plugin_but_its_images_and_how_they_are_pulled() -> None:
    found = made()
    inner = found["spec"]
    assert [one["image"] for one in inner["containers"]] == ["driver:2", "registrar:1"]
    assert [one.get("imagePullPolicy") for one in inner["containers"]] == ["Always", None]
    assert inner["imagePullSecrets"] == [{"name": "registry"}]
    assert inner["os"] == {"name": "windows"}
    assert (inner["nodeName"], inner["restartPolicy"], inner["activeDeadlineSeconds"]) == ("win-1", "Never", 600)
    assert "volumes" not in inner
    # A DaemonSet adopts pods with its labels, and would count it as a plugin.
    assert "app" not in found["metadata"]["labels"]
    assert all(f"{key}={value}" in selector(SMB.name) for key, value in found["metadata"]["labels"].items())


def test_a_host_process_pod_is_one_too_for_its_image_may_run_in_no_other_way() -> None:
    options = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
    inner = made(securityContext=options, hostNetwork=True)["spec"]
    assert inner["hostNetwork"] is True
    assert inner["securityContext"]["windowsOptions"]["hostProcess"] is True
    assert inner["securityContext"]["windowsOptions"]["runAsUserName"] != "NT AUTHORITY\\SYSTEM"


def test_each_node_has_a_pod_of_its_own_name_and_the_same_next_time() -> None:
    names = [pod(PLUGIN, SMB.name, node, ["driver:2"], 1)["metadata"]["name"] for node in ("a", "b", "a")]
    assert names[0] == names[2] != names[1]


def seen(*states: dict[str, Any], phase: str = "Pending", **status: Any) -> Pull:
    """What is made of a pod whose two containers have these statuses."""
    found = {**made(), "status": {"phase": phase, "containerStatuses": list(states), **status}}
    return judge([found])[0]


def waits(reason: str, message: str = "", image: str = "driver:2") -> dict[str, Any]:
    return {"image": image, "imageID": "", "state": {"waiting": {"reason": reason, "message": message}}}


THERE = {"image": "registrar:1", "imageID": "sha256:1", "state": {"terminated": {"exitCode": 0}}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(seen(), "waiting", id="nobody has looked at it"),
        pytest.param(seen(waits("ContainerCreating"), waits("ContainerCreating")), "waiting", id="it pulls"),
        pytest.param(seen(waits("ContainerCreating"), THERE), "waiting", id="one of two"),
        pytest.param(seen(THERE, THERE, phase="Succeeded"), "done", id="both have run"),
        pytest.param(seen(THERE, waits("CreateContainerError")), "done", id="the image is there and does not run"),
        pytest.param(seen(waits("ErrImagePull", "no such tag"), THERE), "troubled", id="the kubelet tries again"),
        pytest.param(seen(waits("ImagePullBackOff"), THERE), "troubled", id="and waits between"),
        pytest.param(seen(waits("InvalidImageName"), THERE), "failed", id="no try mends that"),
        pytest.param(
            seen(phase="Failed", reason="UnexpectedAdmissionError", message="no room"), "failed", id="the kubelet refused it"
        ),
    ],
)  # fmt: skip
def test_how_far_a_node_is(found: Pull, expected: str) -> None:
    assert (found.node, found.state) == ("win-1", expected)


def test_trouble_names_image_reason_and_the_registrys_words() -> None:
    assert seen(waits("ErrImagePull", "no such tag"), THERE).why == "driver:2: ErrImagePull no such tag"
    assert seen(phase="Failed", reason="Evicted", message="no room").why == "Evicted no room"
