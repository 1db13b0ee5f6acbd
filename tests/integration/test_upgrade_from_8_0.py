# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""WMCO 8.0 has no csi-proxy, so nothing can be proven before WMCO 9: one node without volumes goes ahead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from integration.kube import VSPHERE, applied, connect
from integration.playbooks import finish, play, start
from integration.storage import make_namespace, storage_class
from integration.test_upgrade_nodes import DRIVER, IN_TREE, NINE, NODES
from integration.upgrade_kills import PLAYBOOK, given
from integration.upgrade_run import upgrade_call
from integration.upgrading import (
    JOURNALS,
    Witness,
    an_account,
    closed,
    databases,
    journal,
    kubelet,
    reported,
    running,
    step,
    volumes,
)
from lab import handle
from lab.cluster import openshift, vsphere
from lab.cluster.settings import Wmco
from lab.handle import Lab, eventually

pytestmark = pytest.mark.torture

DATABASES = {"db-b": ("win-2", "win-1"), "db-c": ("win-3", "win-1")}


@pytest.fixture(scope="module")
def eight() -> Iterator[Lab]:
    """Three nodes of WMCO 8.0 without csi-proxy, two of them with a database; the driver's plugin cannot start on them."""
    lab = handle.start(f"from80-{os.getpid()}", kubelets=dict.fromkeys(NODES, openshift.kubelet("8.0.1")))
    openshift.install(lab.api, "8.0.1")
    make_namespace(lab)
    with an_account(lab):
        databases(lab, DATABASES, storage_class(lab, "thin", IN_TREE, {"diskformat": "thin", "fstype": "ntfs"}))
        storage_class(lab, "fast", DRIVER)
        openshift.admit(lab.api, vsphere.NAMESPACE, VSPHERE.service_account)
        applied(connect(lab.state.kubeconfigs["admin"]), DriverRequest(csi_proxy_managed=False))
        yield lab
    lab.stop()


def test_a_node_without_volumes_is_first_and_the_others_follow_when_it_is_proven(eight: Lab, tmp_path: Path) -> None:
    refused = play(PLAYBOOK, "localhost,", variables=given(eight, "nine", NINE, tmp_path, kubewin_upgrade_hook="wmco"))
    (found,) = [event["result"]["msg"] for event in refused.failures]
    assert "CSI-U13" in found
    assert "upgrade to WMCO 8.1.0 or a later release of WMCO 8 first" in found
    with pytest.raises(TaskError, match="CSI-U14 all Windows nodes: each has a workload with a volume"):
        upgrade_call(
            eight.state.kubeconfigs["kubewin"],
            name="nine", hook="wmco", target=NINE, nodes=["win-2", "win-3"], unproven_canary=True,
        ).plan(check_mode=False)  # fmt: skip
    assert not eight.api.ok(f"{JOURNALS}/kubewin-upgrade-nine")

    before = volumes(eight, list(DATABASES))
    wanted = given(
        eight, "nine", NINE, tmp_path, kubewin_upgrade_hook="wmco", kubewin_upgrade_unproven_canary=True,
        kubewin_upgrade_wait_timeout=300, kubewin_upgrade_node_timeout=300,
    )  # fmt: skip
    record = tmp_path / "record.jsonl"
    with eight.settings(wmco=Wmco(step=0.1)), Witness(eight, list(DATABASES)) as witness:
        plan = openshift.offer(eight.api, "9.0.0")
        process = start(PLAYBOOK, "localhost,", record=record, variables=wanted)
        try:
            eventually(
                lambda: process.poll() is not None or reported(eight, "nine", "approve its InstallPlan now"),
                "it waits for WMCO 9",
                timeout=120,
            )
            openshift.approve(eight.api, plan)
            eventually(
                lambda: process.poll() is not None or step(eight, "nine", "win-1") == "verify",
                "the first node is proven",
                timeout=120,
            )
            assert {kubelet(eight, node) for node in NODES[1:]} == {openshift.kubelet("8.0.1")}
        finally:
            done = finish(process, record)
        assert done.code == 0, done.screen
        for name in DATABASES:
            running(eight, name)
    assert volumes(eight, list(DATABASES)) == before
    witness.nothing_is_missing()
    assert closed(eight) == {}
    assert {kubelet(eight, node) for node in NODES} == {openshift.kubelet("9.0.0")}
    assert [(entry["node"], entry["by_itself"]) for entry in journal(eight, "nine")["nodes"]] == [
        ("win-1", True),
        ("win-2", False),
        ("win-3", False),
    ]
    assert "2 of 2 volumes of Windows workloads are unchanged" in done.screen
