# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""remove.yml: nothing goes while a Windows node uses it, everything of ours goes otherwise, and only that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from integration.kube import ACCOUNT, VSPHERE, also_holds, applied, connect, label, remove_driver, writes
from integration.playbooks import Run, play
from lab.cluster import vsphere
from lab.handle import Lab, eventually

NAMED = {"kubewin_drivers": "vsphere"}
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def deployed(lab: Lab) -> Iterator[Lab]:
    """The lab with the vSphere node plugin on win-1, and an account that may remove it."""
    remove_driver(lab)
    label(lab, "win-1")
    applied(connect(lab.state.kubeconfigs["kubewin"]))
    plugin = f"/api/v1/namespaces/{vsphere.NAMESPACE}/pods?labelSelector=app={VSPHERE.app_label}"
    eventually(lambda: lab.api.items(plugin), "a plugin pod")
    with also_holds(lab, "kubewin-csi-remove"):
        yield lab
    remove_driver(lab)


def remove(lab: Lab, *arguments: str, **variables: Any) -> Run:
    given = {"kubewin_kubeconfig": lab.state.kubeconfigs["kubewin"], "kubewin_cluster_only": True, **variables}
    return play("playbooks/remove.yml", "localhost,", *arguments, variables=given)


def left(lab: Lab) -> list[str]:
    """Everything that carries our labels, of any kind that is applied for a driver."""
    rbac, storage = "/apis/rbac.authorization.k8s.io/v1", "/apis/storage.k8s.io/v1"
    found = []
    for path in (
        "/apis/apps/v1/daemonsets", "/api/v1/serviceaccounts", "/api/v1/configmaps", f"{storage}/storageclasses",
        f"{storage}/csidrivers", f"{rbac}/roles", f"{rbac}/rolebindings", f"{rbac}/clusterroles", f"{rbac}/clusterrolebindings",
    ):  # fmt: skip
        listed = lab.api.items(f"{path}?labelSelector=app.kubernetes.io/managed-by=kubewin.csi")
        found += [f"{path.rpartition('/')[2]} {item['metadata']['name']}" for item in listed]
    return found


def test_an_account_that_lacks_the_role_gets_the_command_that_binds_it(lab: Lab) -> None:
    refused = remove(lab, "--check", **NAMED)
    assert refused.code != 0
    role = "kubewin-csi-remove"
    bind = f"kubectl create clusterrolebinding {role} --clusterrole={role} --serviceaccount=kubewin:kubewin"
    assert refused.summary["failure"].endswith(bind)


def test_it_is_refused_while_a_pod_on_windows_uses_a_volume(deployed: Lab) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shop"},
        "spec": {
            "nodeName": "win-1",
            "containers": [{"name": "app", "image": "app:1"}],
            "volumes": [{"name": "data", "csi": {"driver": VSPHERE.name}}],
        },
    }
    deployed.api.post(PODS, pod)
    before, size = left(deployed), deployed.audit_size()
    refused = remove(deployed, **NAMED)
    deployed.api.gone(f"{PODS}/shop")
    eventually(lambda: not deployed.api.ok(f"{PODS}/shop"), "the pod is gone")
    assert refused.code != 0
    message = refused.failures[0]["result"]["msg"]
    assert "win-1: pod default/shop (inline volume data)" in message
    assert left(deployed) == before
    assert writes(deployed, size) == []


def test_check_mode_lists_what_would_be_removed_and_keeps_it(deployed: Lab) -> None:
    before, size = left(deployed), deployed.audit_size()
    run = remove(deployed, "--check", **NAMED)
    assert run.code == 0, run.screen
    assert f"would remove DaemonSet {VSPHERE.daemonset}" in run.screen
    assert left(deployed) == before
    assert [write for write in writes(deployed, size) if not write.startswith("delete")] == []


def test_our_objects_are_removed_and_the_drivers_own_installation_stays(deployed: Lab) -> None:
    controllers = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/deployments"
    stays = [item["metadata"]["uid"] for item in deployed.api.items(controllers)]
    assert stays
    # Of one driver alone this collection has objects.
    run = remove(deployed)
    assert run.code == 0, run.screen
    assert left(deployed) == []
    assert [item["metadata"]["uid"] for item in deployed.api.items(controllers)] == stays
    assert deployed.api.ok(f"/apis/storage.k8s.io/v1/csidrivers/{VSPHERE.name}")
    pods = deployed.api.items(f"/api/v1/namespaces/{vsphere.NAMESPACE}/pods?labelSelector=app={VSPHERE.app_label}")
    assert pods == []

    size = deployed.audit_size()
    again = remove(deployed)
    assert again.code == 0, again.screen
    assert again.changed == []
    assert "node plugins of this collection: no objects in the cluster" in again.screen
    assert deployed.audit(ACCOUNT, size)
    assert writes(deployed, size) == []
