# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's volumes behave as volumes on Windows nodes do: made, attached, mounted, moved, refused and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from integration import storage
from integration.kube import connect
from integration.storage import ATTACHMENTS, CLAIMS, MOUNT, PODS, VOLUMES, claim, pod, reported, runs, storage_class
from integration.test_lab_cluster import PIPES, daemonset, install_csi_proxy, remove_daemonset, wait_for_pipes
from lab.cluster import vsphere
from lab.cluster.settings import Driver
from lab.handle import Lab, eventually

DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
DAEMONSETS = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets"
SMB = "smb.csi.k8s.io"


@pytest.fixture(scope="module")
def ground(lab: Lab) -> Iterator[Lab]:
    """vSphere's plugin on every node through csi-proxy, SMB's CSIDriver, and a namespace."""
    for host in lab.state.hosts:
        lab.agent(host.name).control("snapshot")
        install_csi_proxy(lab, host.name)
    lab.api.post(DAEMONSETS, daemonset())
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": SMB}}
    lab.api.ensure(DRIVERS, {**body, "spec": {"attachRequired": False}})
    eventually(lambda: all(lab.registered(host.node) for host in lab.state.hosts), "the driver in every CSINode")
    storage_class(lab, "disks", vsphere.DRIVER, {"csi.storage.k8s.io/fstype": "ntfs"})
    with storage.a_namespace(lab):
        yield lab
    for path in (f"{storage.CLASSES}/disks", f"{DRIVERS}/{SMB}"):
        lab.api.gone(path)
    remove_daemonset(lab)
    for host in lab.state.hosts:
        lab.agent(host.name).control("restore")


def test_a_volume_is_made_written_moved_and_deleted_with_its_directory(ground: Lab) -> None:
    # Volumes of stories before this one may still be there.
    before = set(storage.folders(ground))
    others = {one["metadata"]["name"] for one in storage.volumes(ground)}
    claim(ground, "data", "disks")
    assert set(storage.folders(ground)) == before
    pod(ground, "first", "data", "win-1")
    runs(ground, "first")
    (volume,) = (one for one in storage.volumes(ground) if one["metadata"]["name"] not in others)
    (folder,) = set(storage.folders(ground)) - before
    unique = f"kubernetes.io/csi/{vsphere.DRIVER}^{volume['spec']['csi']['volumeHandle']}"
    assert storage.status(ground, "win-1")["volumesInUse"] == [unique]
    eventually(lambda: storage.status(ground, "win-1").get("volumesAttached"), "the controller's word")
    (attachment,) = ground.api.items(ATTACHMENTS)
    assert attachment["status"]["attached"] is True
    assert f"external-attacher/{vsphere.DRIVER.replace('.', '-')}" in attachment["metadata"]["finalizers"]

    code, output, errors = storage.run(ground, "first", "cmd", "/c", f">{MOUNT}\\seen.txt", "echo", "it", "was", "me")
    assert (code, output, errors) == (0, "", "")
    assert (folder / "seen.txt").read_bytes() == b"it was me\r\n"

    storage.gone(ground, f"{PODS}/first")
    eventually(lambda: not ground.api.items(ATTACHMENTS), "detached")
    assert not storage.status(ground, "win-1").get("volumesInUse")
    pod(ground, "second", "data", "win-2")
    runs(ground, "second")
    assert storage.run(ground, "second", "cmd", "/c", "type", f"{MOUNT}\\SEEN.txt") == (0, "it was me\r\n", "")
    assert [one["spec"]["nodeName"] for one in ground.api.items(ATTACHMENTS)] == ["win-2"]

    storage.gone(ground, f"{PODS}/second")
    storage.gone(ground, f"{CLAIMS}/data")
    eventually(lambda: not ground.api.ok(f"{VOLUMES}/{volume['metadata']['name']}"), "the volume is gone")
    assert not folder.exists()


def test_a_pod_holds_its_volume_against_one_on_another_node(ground: Lab) -> None:
    claim(ground, "held", "disks")
    pod(ground, "holder", "held", "win-1")
    runs(ground, "holder")
    pod(ground, "waiter", "held", "win-2")
    reported(ground, "waiter FailedAttachVolume", "Multi-Attach error for volume")
    assert storage.phase(ground, "waiter") == "Pending"
    # Preflight's verdict matches the attach controller.
    report = evaluate(take(connect(ground.state.kubeconfigs["admin"])))
    [waiter] = [one for one in report.workloads if one.workload.endswith("/waiter")]
    assert waiter.starts_again == "no", waiter
    assert any("holder" in one.message for one in report.findings if one.id == "CSI-V53"), report.findings
    storage.gone(ground, f"{PODS}/holder")
    runs(ground, "waiter")
    storage.gone(ground, f"{PODS}/waiter")


def test_a_volume_stays_in_the_zone_it_was_made_in(ground: Lab) -> None:
    key = "topology.csi.vmware.com/k8s-zone"
    with ground.settings(drivers={vsphere.DRIVER: Driver(topology={key: "zone-a"})}):
        uids = {one["metadata"]["uid"] for one in ground.pods("app=story")}
        for one in ground.pods("app=story"):
            ground.delete_pod(one)

        def renewed() -> bool:
            entry = ground.registered("win-1")
            fresh = {one["metadata"]["uid"] for one in ground.pods("app=story")}
            return bool(entry and entry.get("topologyKeys") == [key] and not fresh & uids)

        eventually(renewed, "the plugin registers with its topology")
        claim(ground, "zoned", "disks")
        pod(ground, "zoned", "zoned", "win-1")
        runs(ground, "zoned")
    name = ground.api.get(f"{CLAIMS}/zoned")["spec"]["volumeName"]
    terms = ground.api.get(f"{VOLUMES}/{name}")["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": key, "operator": "In", "values": ["zone-a"]}]}]
    storage.gone(ground, f"{PODS}/zoned")


REFUSED = {
    "unknown-vsphere": (vsphere.DRIVER, {"colour": "blue"}, 'invalid param: "colour" and value: "blue"'),
    "unknown-ebs": ("ebs.csi.aws.com", {"colour": "blue"}, "Invalid parameter key colour for CreateVolume"),
    "unknown-azure-disk": ("disk.csi.azure.com", {"colour": "blue"}, "invalid parameter colour in storage class"),
    "unknown-azure-file": ("file.csi.azure.com", {"colour": "blue"}, 'invalid parameter "colour" in storage class'),
    "unknown-gce": ("pd.csi.storage.gke.io", {"colour": "blue"}, 'parameters contains invalid option "colour"'),
    "no-share": (SMB, {}, "source is a required parameter"),
    "no-secret": (
        SMB,
        {
            "source": "//server/share",
            "csi.storage.k8s.io/provisioner-secret-name": "share",
            "csi.storage.k8s.io/provisioner-secret-namespace": storage.NAMESPACE,
        },
        f"error getting secret share in namespace {storage.NAMESPACE}",
    ),
    "reserved": (vsphere.DRIVER, {"csi.storage.k8s.io/colour": "blue"}, "found unknown parameter key"),
}


def test_bad_parameters_are_refused_as_the_drivers_refuse_them(ground: Lab) -> None:
    for name, (driver, parameters, _words) in REFUSED.items():
        storage_class(ground, name, driver, parameters, waits=False)
        claim(ground, name, name, "ReadWriteMany" if driver == SMB else "ReadWriteOnce")
    for name, (_driver, _parameters, words) in REFUSED.items():
        reported(ground, f"{name} ProvisioningFailed", words)
        assert ground.api.get(f"{CLAIMS}/{name}")["status"]["phase"] == "Pending"
        storage.gone(ground, f"{CLAIMS}/{name}")
        storage.gone(ground, f"{storage.CLASSES}/{name}")


def test_a_mount_fails_without_pipes_while_the_plugin_stays_ready(ground: Lab) -> None:
    ground.set_service("win-3", running=False)
    wait_for_pipes(ground, "win-3", present=False)
    claim(ground, "piped", "disks")
    pod(ground, "piped", "piped", "win-3")
    text = reported(
        ground, "piped FailedMount", "MountVolume.MountDevice failed", "The system cannot find the file specified"
    )
    assert f"csi-proxy-{min(PIPES)}" in text
    assert storage.phase(ground, "piped") == "Pending"
    ground.set_service("win-3", running=True)
    runs(ground, "piped")
    storage.gone(ground, f"{PODS}/piped")


def test_a_share_is_not_attached_and_not_mounted_without_its_plugin(ground: Lab) -> None:
    storage_class(ground, "shares", SMB, {"source": "//server/share"}, waits=False)
    claim(ground, "share", "shares", "ReadWriteMany")
    eventually(lambda: ground.api.get(f"{CLAIMS}/share")["status"]["phase"] == "Bound", "bound before any pod")
    pod(ground, "sharer", "share", "win-1")
    reported(ground, "sharer FailedMount", f"driver name {SMB} not found in the list of registered CSI drivers")
    assert not [one for one in ground.api.items(ATTACHMENTS) if one["spec"]["attacher"] == SMB]
    storage.gone(ground, f"{PODS}/sharer")
    storage.gone(ground, f"{CLAIMS}/share")
    storage.gone(ground, f"{storage.CLASSES}/shares")


def test_what_is_not_registered_is_not_attached(ground: Lab) -> None:
    storage_class(ground, "gp3", "ebs.csi.aws.com", {"csi.storage.k8s.io/fstype": "ntfs"}, waits=False)
    claim(ground, "gp3", "gp3")
    pod(ground, "gp3", "gp3", "win-1")
    reported(ground, "gp3 FailedAttachVolume", "CSINode win-1 does not contain driver ebs.csi.aws.com")
    storage.gone(ground, f"{PODS}/gp3")
    storage.gone(ground, f"{CLAIMS}/gp3")
    storage.gone(ground, f"{storage.CLASSES}/gp3")


def test_a_kept_volume_outlives_its_claim(ground: Lab) -> None:
    storage_class(ground, "kept", vsphere.DRIVER, {"csi.storage.k8s.io/fstype": "ntfs"}, waits=False, reclaim="Retain")
    claim(ground, "kept", "kept")
    name = eventually(lambda: ground.api.get(f"{CLAIMS}/kept")["spec"].get("volumeName"), "bound")
    folder = _folder(ground, name)
    assert folder.is_dir()
    storage.gone(ground, f"{CLAIMS}/kept")
    eventually(lambda: ground.api.get(f"{VOLUMES}/{name}")["status"]["phase"] == "Released", "released")
    assert folder.is_dir()
    storage.gone(ground, f"{storage.CLASSES}/kept")


def _folder(lab: Lab, volume: str) -> Path:
    source: dict[str, str] = lab.api.get(f"{VOLUMES}/{volume}")["spec"]["csi"]
    return lab.state.paths.volumes / source["driver"] / source["volumeHandle"]


def test_a_container_has_cmd_and_its_volume_and_nothing_else(ground: Lab) -> None:
    claim(ground, "cmd", "disks")
    pod(ground, "cmd", "cmd", "win-1")
    runs(ground, "cmd")

    def cmd(*words: str) -> tuple[int | str, str, str]:
        return storage.run(ground, "cmd", "cmd", "/c", *words)

    assert cmd("exit", "3") == (3, "", "")
    assert cmd(f"echo one>{MOUNT}\\a.txt") == (0, "", "")
    assert cmd(f">>{MOUNT}\\A.TXT", "echo", "two") == (0, "", "")
    assert cmd("type", f"{MOUNT}\\a.txt") == (0, "one\r\ntwo\r\n", "")
    assert cmd("type", f"{MOUNT}\\none.txt") == (1, "", "The system cannot find the file specified.\r\n")
    assert cmd(f">{MOUNT}\\no\\such.txt", "echo", "x")[0] == 1
    code, output, errors = cmd("powershell", "-c", "1")
    assert (code, output) == (1, "")
    assert errors.startswith("'powershell' is not recognized as an internal or external command,")
    started = storage.run(ground, "cmd", "powershell.exe", "-c", "1")
    assert "CreateProcess powershell.exe -c 1: The system cannot find the file specified" in str(started[0])
    storage.gone(ground, f"{PODS}/cmd")
