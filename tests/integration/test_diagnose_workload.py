# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""diagnose.yml with kubewin_workload: the first thing to fix is what keeps the pod from its volume, whatever else is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration import storage
from integration.kube import also_holds
from integration.playbooks import play
from integration.storage import CLAIMS, NAMESPACE, PODS, claim, pod, reported, runs, storage_class
from integration.test_lab_cluster import daemonset, install_csi_proxy, remove_daemonset, wait_for_pipes
from lab.cluster import vsphere
from lab.handle import Lab, eventually


@pytest.fixture(scope="module")
def ground(lab: Lab) -> Iterator[Lab]:
    """vSphere's plugin on every node through csi-proxy, and a pod on win-1 with a volume."""
    for host in lab.state.hosts:
        lab.agent(host.name).control("snapshot")
        install_csi_proxy(lab, host.name)
    lab.api.post(f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets", daemonset())
    eventually(lambda: all(lab.registered(host.node) for host in lab.state.hosts), "the driver in every CSINode")
    storage_class(lab, "disks", vsphere.DRIVER, {"csi.storage.k8s.io/fstype": "ntfs"})
    with storage.a_namespace(lab), also_holds(lab, "cluster-admin", "diagnose"):
        claim(lab, "held", "disks")
        pod(lab, "holder", "held", "win-1")
        runs(lab, "holder")
        yield lab
    lab.api.gone(f"{storage.CLASSES}/disks")
    remove_daemonset(lab)
    for host in lab.state.hosts:
        lab.agent(host.name).control("restore")


def diagnosed(lab: Lab, folder: Path, name: str) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """(id, object) of what to fix, and the written file."""
    variables = {"kubewin_workload": f"{NAMESPACE}/{name}", "kubewin_output_dir": str(folder)}
    run = play("playbooks/diagnose.yml", lab.state.inventories["basic-http"], variables=variables)
    written = json.loads((folder / "diagnose.json").read_text(encoding="utf-8"))
    assert bool(run.code) == bool(written["failure"]), run.screen
    return [(entry["id"], entry["object"]) for entry in written["diagnosis"]], written


def test_a_stopped_csi_proxy_on_its_node_alone(ground: Lab, tmp_path: Path) -> None:
    for host in ("win-2", "win-3"):
        ground.set_service(host, running=False)
        wait_for_pipes(ground, host, present=False)
    claim(ground, "piped", "disks")
    pod(ground, "piped", "piped", "win-3")
    reported(ground, "piped FailedMount", "The system cannot find the file specified")
    found, written = diagnosed(ground, tmp_path, "piped")
    assert found[0] == ("CSI-X15", "host win-3")
    assert "host win-2" not in {about for _id, about in found}
    assert written["lines"][0] == f"Pod {NAMESPACE}/piped does not run on win-3"
    assert "The system cannot find the file specified" in written["lines"][1]
    # Two stopped hosts keep no running pod from its volume.
    assert diagnosed(ground, tmp_path, "holder")[1]["lines"][0] == f"Pod {NAMESPACE}/holder runs on win-1"
    for host in ("win-2", "win-3"):
        ground.set_service(host, running=True)
    runs(ground, "piped")
    storage.gone(ground, f"{PODS}/piped")


def test_a_claim_whose_class_does_not_exist(ground: Lab, tmp_path: Path) -> None:
    claim(ground, "lost", "nowhere")
    pod(ground, "lost", "lost", "win-2")
    reported(ground, "lost FailedScheduling")
    found, _written = diagnosed(ground, tmp_path, "lost")
    assert found[0] == ("CSI-V26", f"PersistentVolumeClaim {NAMESPACE}/lost")
    storage.gone(ground, f"{PODS}/lost")
    storage.gone(ground, f"{CLAIMS}/lost")


def test_a_volume_that_a_pod_on_another_node_holds(ground: Lab, tmp_path: Path) -> None:
    pod(ground, "waiter", "held", "win-2")
    reported(ground, "waiter FailedAttachVolume", "Multi-Attach error for volume")
    found, written = diagnosed(ground, tmp_path, "waiter")
    assert found[0][0] == "CSI-V53"
    assert f"pod {NAMESPACE}/holder uses the volume on node win-1" in written["diagnosis"][0]["found"]
    storage.gone(ground, f"{PODS}/waiter")


def test_a_disk_that_the_platform_does_not_detach(ground: Lab, tmp_path: Path) -> None:
    """https://github.com/kubernetes-sigs/aws-ebs-csi-driver/issues/2100"""
    claim(ground, "kept", "disks")
    pod(ground, "leaver", "kept", "win-2")
    runs(ground, "leaver")
    with ground.settings(busy_disks=("win-2",)):
        storage.gone(ground, f"{PODS}/leaver")
        pod(ground, "comer", "kept", "win-3")
        reported(ground, "comer FailedAttachVolume", "Multi-Attach error for volume")
        found, written = diagnosed(ground, tmp_path, "comer")
    assert found[0][0] == "CSI-N34"
    assert "which the kubelet of win-2 does not have mounted, could not be detached" in written["diagnosis"][0]["found"]
    assert "kubectl drain win-2 --ignore-daemonsets" in written["diagnosis"][0]["remedy"]
    runs(ground, "comer")
    storage.gone(ground, f"{PODS}/comer")
    storage.gone(ground, f"{CLAIMS}/kept")


def test_a_name_that_is_not_there(ground: Lab, tmp_path: Path) -> None:
    found, written = diagnosed(ground, tmp_path, "holders")
    assert found == [("CSI-X22", f"workload {NAMESPACE}/holders")]
    assert f"{NAMESPACE}/holder" in written["failure"]
