# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes become native CSI ones on the same disk, whatever happens meanwhile, and no byte of them is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import Wanted
from integration.kube import applied, connect, install_csi_proxy, label
from integration.rebind import CLAIMS, FILES, VOLUMES, Conversion, Story, convert, disk, plant, prepare, remove, runs
from lab import handle
from lab.cluster import access, in_tree
from lab.cluster.api import kubeconfig
from lab.handle import Lab, eventually

NODES = ("win-1", "win-2")
ACCOUNT = "converter"


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Two nodes with vSphere's plugin, and an account that holds kubewin-csi-rebind and nothing else."""
    lab = handle.start(f"rebind-{os.getpid()}", nodes=2)
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
        label(lab, host.node)
    deploy(lab, "vsphere")
    prepare(lab)
    account(lab)
    yield lab
    lab.stop()


def deploy(lab: Lab, *keys: str) -> None:
    admin = connect(lab.state.kubeconfigs["admin"])
    for key in keys:
        applied(admin, Wanted(create_cluster_objects=True), driver=DRIVERS[key])
        eventually(
            lambda key=key: all(lab.registered(node, DRIVERS[key].name) for node in NODES),  # type: ignore[misc]  # bound now
            f"{key} on every node",
        )


def account(lab: Lab) -> None:
    accounts = f"/api/v1/namespaces/{access.NAMESPACE}/serviceaccounts"
    lab.api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubewin-csi-rebind"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": access.NAMESPACE}],
    }
    lab.api.ensure(f"{access.RBAC}/clusterrolebindings", body)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = lab.api.post(f"{accounts}/{ACCOUNT}/token", request)["status"]["token"]
    content = kubeconfig(lab.state.server, Path(lab.state.ca), ACCOUNT, {"token": token})
    _kubeconfig(lab).write_text(yaml.safe_dump(content), encoding="utf-8")


def _kubeconfig(lab: Lab) -> Path:
    return lab.state.paths.kubeconfigs / f"{ACCOUNT}.yaml"


def conversion(lab: Lab, story: Story, folder: Path, **how: Any) -> Conversion:
    return Conversion(story, folder, str(_kubeconfig(lab)), **how)


def untouched(lab: Lab, story: Story) -> None:
    """Every byte is where it was."""
    folder = disk(lab, lab.api.get(f"{VOLUMES}/{story.volume}"))
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES


def converted(lab: Lab, story: Story, uid: str) -> None:
    """Native, bound to the same claim, with its policy back, in use by its new handle."""
    claim, volume = lab.api.get(f"{CLAIMS}/{story.claim}"), lab.api.get(f"{VOLUMES}/{story.volume}")
    assert claim["metadata"]["uid"] == uid
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    assert volume["spec"]["csi"]["driver"] == DRIVERS[story.kind].name
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert not set(story.source()) & set(volume["spec"])
    assert not [name for name in claim["metadata"].get("annotations", {}) if "rebind" in name]
    assert not [name for name in claim["metadata"]["finalizers"] if "rebind" in name]
    runs(lab, story)
    untouched(lab, story)


def test_a_vsphere_volume_becomes_native_in_place(ready: Lab, tmp_path: Path) -> None:
    story = Story("db")
    plant(ready, story)
    uid = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(ready, story, tmp_path))
    assert result["status"] == "converted", result
    converted(ready, story, uid)
    volume = ready.api.get(f"{VOLUMES}/{story.volume}")
    assert volume["spec"]["csi"]["volumeHandle"] == in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    remove(ready, story)
