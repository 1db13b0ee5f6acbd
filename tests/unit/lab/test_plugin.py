# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods the kubelet stand-in runs, and their status."""

from __future__ import annotations

from typing import Any

import pytest
from lab.cluster import plugin
from lab.cluster.plugin import Phase, Standing

DRIVER = "csi.vsphere.vmware.com"


def pod(
    *, pipes: tuple[str, ...] = (), registrar: bool = True, path: str = "", image: str = "driver:v1"
) -> dict[str, Any]:
    """A pod with these pipes mounted into its driver container."""
    mounts = [{"name": name, "mountPath": rf"\\.\pipe\{name}"} for name in pipes]
    containers: list[dict[str, Any]] = [{"name": "probe", "image": "x/livenessprobe:v2"}]
    if registrar:
        path = path or rf"C:\var\lib\kubelet\plugins\{DRIVER}\csi.sock"
        containers.append(
            {
                "name": "reg",
                "image": "x/csi-node-driver-registrar:v2",
                "args": ["--kubelet-registration-path=$(REG)"],
                "env": [{"name": "REG", "value": path}, {"name": "NODE", "valueFrom": {}}],
            }
        )
    containers.append({"name": "driver", "image": image, "volumeMounts": mounts})
    volumes = [{"name": name, "hostPath": {"path": rf"\\.\pipe\{name}"}} for name in pipes]
    return {
        "metadata": {"uid": "u", "namespace": "ns", "name": "p"},
        "spec": {"nodeName": "win-1", "containers": containers, "volumes": [*volumes, {"name": "e", "emptyDir": {}}]},
    }


def read(**options: Any) -> plugin.Plugin:
    found = plugin.read(pod(**options))
    assert found is not None
    return found


def test_reads_driver_and_pipes() -> None:
    found = read(pipes=("csi-proxy-disk-v1", "csi-proxy-system-v1alpha1"))
    assert (found.driver_name, found.registrar, found.driver) == (DRIVER, "reg", "driver")
    assert found.pipes == {"csi-proxy-disk-v1", "csi-proxy-system-v1alpha1"}


@pytest.mark.parametrize(
    "path", [rf"C:\\var\\lib\\kubelet\\plugins\\{DRIVER}\\csi.sock", f"/var/lib/kubelet/plugins/{DRIVER}/csi.sock"]
)
def test_driver_name_from_any_spelling_of_the_path(path: str) -> None:
    assert read(path=path).driver_name == DRIVER


def test_driver_container_without_pipes_is_neither_registrar_nor_probe() -> None:
    assert read().driver == "driver"


def test_leaves_other_pods_to_kwok() -> None:
    assert plugin.read(pod(registrar=False)) is None


def test_takes_a_pod_that_only_mounts_pipes() -> None:
    assert read(registrar=False, pipes=("csi-proxy-smb-v1",)).driver_name == ""


def standing(phase: Phase, **options: Any) -> Standing:
    return Standing(phase, options.pop("restarts", 0), "s", "n", "t", "b", **options)


def ready(status: dict[str, Any]) -> str:
    return str(next(item["status"] for item in status["conditions"] if item["type"] == "Ready"))


def test_running_status_is_ready() -> None:
    status = plugin.status(read(), standing(Phase.RUNNING), "127.0.11.1")
    assert (status["phase"], ready(status)) == ("Running", "True")
    assert all(item["ready"] for item in status["containerStatuses"])


def test_crash_takes_only_the_driver_container_down() -> None:
    status = plugin.status(read(), standing(Phase.CRASHED, restarts=4, crashed_before=True, backoff=2.0), "a")
    assert ready(status) == "False"
    down = [item for item in status["containerStatuses"] if not item["ready"]]
    assert [(item["name"], item["restartCount"]) for item in down] == [("driver", 4)]
    assert down[0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert down[0]["lastState"]["terminated"]["exitCode"] == 1


def test_reboot_counts_for_every_container() -> None:
    status = plugin.status(read(), standing(Phase.RUNNING, restarts=2, reboots=1), "a")
    assert {item["name"]: item["restartCount"] for item in status["containerStatuses"]} == {
        "probe": 1,
        "reg": 1,
        "driver": 3,
    }


def test_pull_error_names_the_image_and_holds_the_rest() -> None:
    found = read(image="driver:nosuchtag")
    status = plugin.status(found, standing(Phase.PULL_FAILED, bad_images=frozenset({"driver:nosuchtag"})), "a")
    waiting = {item["name"]: item["state"]["waiting"]["reason"] for item in status["containerStatuses"]}
    assert waiting == {"probe": "ContainerCreating", "reg": "ContainerCreating", "driver": "ImagePullBackOff"}
    assert status["phase"] == "Pending"


def test_driver_log_names_each_missing_pipe() -> None:
    lines = "\n".join(plugin.driver_log(read(), frozenset({"csi-proxy-disk-v1"})))
    assert r"\\\\.\\pipe\\csi-proxy-disk-v1: The system cannot find the file specified." in lines
    assert "Serving requests" not in lines
