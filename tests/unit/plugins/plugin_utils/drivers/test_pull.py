# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pulling images with pods that do nothing else: their form, and what their status shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.pull import (
    ImagePull,
    PullProgress,
    evaluate_progress,
    evaluate_pulls,
    explain_failure,
    find_missing_images,
    list_images,
    list_missing_images,
    make_pod,
    make_selector,
    render_progress_lines,
)

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
    return make_pod(plugin, SMB.name, "win-1", ["driver:2", "registrar:1"], 600)


def test_every_image_once() -> None:
    assert list_images(PLUGIN["spec"]["template"]) == ("driver:2", "registrar:1")


def test_images_that_the_node_names_are_there() -> None:
    node = {"status": {"images": [{"names": ["registrar@sha256:1", "registrar:1"]}]}}
    assert list_missing_images(node, ["driver:2", "registrar:1"]) == ("driver:2",)
    assert list_missing_images({}, ["driver:2"]) == ("driver:2",)


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
    assert all(f"{key}={value}" in make_selector(SMB.name) for key, value in found["metadata"]["labels"].items())


def test_a_host_process_pod_is_one_too_for_its_image_may_run_in_no_other_way() -> None:
    options = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
    inner = made(securityContext=options, hostNetwork=True)["spec"]
    assert inner["hostNetwork"] is True
    assert inner["securityContext"]["windowsOptions"]["hostProcess"] is True
    assert inner["securityContext"]["windowsOptions"]["runAsUserName"] != "NT AUTHORITY\\SYSTEM"


def test_each_node_has_a_pod_of_its_own_name_and_the_same_next_time() -> None:
    names = [make_pod(PLUGIN, SMB.name, node, ["driver:2"], 1)["metadata"]["name"] for node in ("a", "b", "a")]
    assert names[0] == names[2] != names[1]


def observed(*states: dict[str, Any], phase: str = "Pending", **status: Any) -> ImagePull:
    """What is made of a pod whose two containers have these statuses."""
    found = {**made(), "status": {"phase": phase, "containerStatuses": list(states), **status}}
    return evaluate_pulls([found])[0]


def waits(reason: str, message: str = "", image: str = "driver:2") -> dict[str, Any]:
    return {"image": image, "imageID": "", "state": {"waiting": {"reason": reason, "message": message}}}


THERE = {"image": "registrar:1", "imageID": "sha256:1", "state": {"terminated": {"exitCode": 0}}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(observed(), "waiting", id="no kubelet has processed it"),
        pytest.param(observed(waits("ContainerCreating"), waits("ContainerCreating")), "waiting", id="it pulls"),
        pytest.param(observed(waits("ContainerCreating"), THERE), "waiting", id="one of two"),
        pytest.param(observed(THERE, THERE, phase="Succeeded"), "done", id="both have run"),
        pytest.param(observed(THERE, waits("CreateContainerError")), "done", id="the image is there and does not run"),
        pytest.param(observed(waits("ErrImagePull", "no such tag"), THERE), "troubled", id="the kubelet tries again"),
        pytest.param(observed(waits("ImagePullBackOff"), THERE), "troubled", id="and waits between"),
        pytest.param(observed(waits("InvalidImageName"), THERE), "failed", id="no retry can help"),
        pytest.param(
            observed(phase="Failed", reason="UnexpectedAdmissionError", message="no room"), "failed", id="the kubelet refused it"
        ),
    ],
)  # fmt: skip
def test_how_far_a_node_is(found: ImagePull, expected: str) -> None:
    assert (found.node, found.state) == ("win-1", expected)


def test_trouble_names_image_reason_and_the_registrys_words() -> None:
    assert observed(waits("ErrImagePull", "no such tag"), THERE).why == "driver:2: ErrImagePull no such tag"
    assert observed(phase="Failed", reason="Evicted", message="no room").why == "Evicted no room"


def windows(name: str, *, ready: str = "True", images: tuple[str, ...] = ()) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    status = {"conditions": conditions, "images": [{"names": list(images)}]}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/os": "windows"}}, "spec": {}, "status": status}


def running(image: str) -> list[dict[str, Any]]:
    """The plugin's pods as they run, with another driver image."""
    parts = [{"name": "driver", "image": image}, {"name": "registrar", "image": "registrar:1"}]
    return [{"spec": {"nodeName": f"win-{number}", "containers": parts}} for number in (1, 2, 3)]


NODES = [windows("win-2"), windows("win-1", images=("registrar:1",)), windows("win-3", ready="False")]


def test_missing_images_are_pulled_where_a_running_plugin_changes_its_images() -> None:
    found = find_missing_images(PLUGIN, running("driver:1"), NODES, ())
    assert found == {"win-1": ("driver:2",), "win-2": ("driver:2", "registrar:1")}
    assert list(find_missing_images(PLUGIN, running("driver:1"), NODES, ("win-2", "win-1", "win-3"))) == [
        "win-2",
        "win-1",
    ]
    assert (
        find_missing_images(PLUGIN, running("driver:1"), [windows("win-1", images=("driver:2", "registrar:1"))], ())
        == {}
    )


def test_nothing_is_pulled_where_no_plugin_runs_or_it_keeps_its_images() -> None:
    assert find_missing_images(PLUGIN, (), NODES, ()) == {}
    assert find_missing_images(PLUGIN, running("driver:2"), NODES, ()) == {}
    # An interrupted change: some pods have the new template.
    some = [running("driver:2")[0], running("driver:1")[1]]
    assert set(find_missing_images(PLUGIN, some, NODES, ())) == {"win-2"}


def of(node: str, *states: dict[str, Any], phase: str = "Pending") -> dict[str, Any]:
    found = made()
    return {
        **found,
        "spec": {**found["spec"], "nodeName": node},
        "status": {"phase": phase, "containerStatuses": list(states)},
    }


def test_ten_nodes_pull_at_a_time_and_one_that_is_done_makes_room() -> None:
    names = [f"win-{number}" for number in range(15)]
    assert evaluate_progress([], names, (), {}).start == tuple(names[:10])
    pods = [of("win-0", THERE, THERE, phase="Succeeded"), *(of(name) for name in names[1:10])]
    found = evaluate_progress(pods, names, (), {})
    assert (found.done, found.start) == (("win-0",), ("win-10",))
    assert found.waiting == tuple(names[1:])
    assert evaluate_progress([], names, tuple(names), {}).waiting == ()


def test_a_failing_pull_fails_after_a_while_and_at_once_if_no_retry_can_help() -> None:
    pods = [of("win-1", waits("ErrImagePull", "no such tag"), THERE), of("win-2", waits("InvalidImageName"), THERE)]
    early = evaluate_progress(pods, ["win-1", "win-2"], (), {"win-1": 119.0})
    assert set(early.why) == {"win-1", "win-2"}
    assert set(early.failures) == {"win-2"}
    assert set(evaluate_progress(pods, ["win-1", "win-2"], (), {"win-1": 120.0}).failures) == {"win-1", "win-2"}


OBSERVED = PullProgress(("win-1",), ("win-2", "win-3"), (), {"win-2": "driver:2: ErrImagePull"}, {})


def test_progress_counts_nodes_and_names_those_in_trouble() -> None:
    assert list(render_progress_lines(OBSERVED, 40, 1800)) == [
        "40 s of 30 min: 1 of 3 nodes have the images",
        "  win-2: driver:2: ErrImagePull",
    ]


def test_it_continues_while_there_is_time_and_succeeds_with_the_last_node() -> None:
    assert explain_failure(OBSERVED, 5.0) is None
    assert explain_failure(replace(OBSERVED, waiting=(), why={}), -1.0) is None


def test_when_time_is_up_every_node_that_waits_is_named() -> None:
    error = explain_failure(OBSERVED, 0.0)
    assert error is not None
    assert error.reason == "timeout"
    assert "win-2: driver:2: ErrImagePull; win-3: not pulled yet" in str(error)
    assert "No plugin pod was replaced" in str(error)


def test_an_image_that_cannot_be_pulled_ends_it_at_once() -> None:
    error = explain_failure(replace(OBSERVED, failures=OBSERVED.why), 5.0)
    assert error is not None
    assert error.reason == "pull_failed"
    assert "win-2: driver:2: ErrImagePull" in str(error)
