# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every driver in every mode it has, all of a mode on the same nodes: enabled, stable, proven and removed without a rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.kube import also_holds
from integration.playbooks import Run, play
from integration.storage import volumes
from integration.test_remove import left
from lab import handle
from lab.cluster import vsphere
from lab.cluster.api import STRATEGIC
from lab.handle import Lab

NODES = ("win-1", "win-2")
ROLES = (
    "cluster-objects",
    "remove",
    "verify",
    "verify-pods",
    "verify-namespace",
    "aws-ebs",
    "azure-disk",
    "azure-file",
    "gce-pd",
    "smb",
)
CONTROLLER = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/deployments/vsphere-csi-controller"
HOST_PROCESS = "3.8.0"  # of vSphere: a release has one mode
# The lab has only vSphere's own installation; of the others this collection makes what belongs to the cluster.
COMMON: dict[str, Any] = {
    "kubewin_create_cluster_objects": "yes",
    "kubewin_verify_timeout": 300,
    "smb_csi_storage_class": {"create": True, "parameters": {"source": "//server/share"}},
}
MODES = {
    mode: [key for key, driver in sorted(DRIVERS.items()) if any(rule.mode == mode for rule in driver.modes)]
    for mode in ("csi_proxy", "host_process")
}
# Whole runs of six drivers take minutes. Every day three of them share nodes: SMB with vSphere and with Azure Disk;
# test_kube_drivers and test_changes have the other mode.
DAILY = ["azure_disk", "smb", "vsphere"]
PASS = pytest.mark.parametrize(
    ("mode", "drivers"),
    [
        pytest.param("csi_proxy", DAILY, id="some-csi_proxy"),
        *[
            pytest.param(mode, MODES[mode], id=f"all-{mode}", marks=pytest.mark.torture)
            for mode in ("csi_proxy", "host_process")
        ],
    ],
)


@pytest.fixture(scope="module")
def two() -> Iterator[Lab]:
    """A lab of two Windows nodes, whose account holds the shipped role of every driver."""
    made = handle.start(f"drivers-{os.getpid()}", nodes=len(NODES))
    with ExitStack() as held:
        for name in ROLES:
            held.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        yield made
    made.stop()


def given(mode: str, drivers: list[str]) -> dict[str, Any]:
    release = {"vsphere_csi_version": HOST_PROCESS} if mode == "host_process" else {}
    return {
        "kubewin_drivers": drivers,
        **{f"{key}_csi_mode": mode for key in drivers},
        **COMMON,
        **release,
    }


def run(lab: Lab, playbook: str, given: dict[str, Any], *arguments: str) -> Run:
    done = play(f"playbooks/{playbook}.yml", lab.state.inventories["ntlm-http"], *arguments, variables=given)
    assert done.code == 0, done.screen
    return done


def registered(lab: Lab, node: str) -> list[str]:
    found = lab.api.get(f"/apis/storage.k8s.io/v1/csinodes/{node}")["spec"]["drivers"] or []
    return sorted(entry["name"] for entry in found)


def pipes_mounted(lab: Lab) -> dict[str, bool]:
    """By our DaemonSets, whether they mount pipes of csi-proxy."""
    return {
        item["metadata"]["labels"]["app.kubernetes.io/name"]: any(
            "csi-proxy" in (volume.get("hostPath") or {}).get("path", "")
            for volume in item["spec"]["template"]["spec"].get("volumes") or []
        )
        for item in lab.api.items("/apis/apps/v1/daemonsets?labelSelector=app.kubernetes.io/managed-by=kubewin.csi")
    }


def services(lab: Lab) -> dict[str, bool]:
    """By host, whether it has a service csi-proxy."""
    return {
        host.node: "csi-proxy" in lab.agent(host.name).control("state")["state"]["services"] for host in lab.state.hosts
    }


def test_csi_proxy_goes_only_where_a_driver_uses_it_and_status_reads_every_driver(two: Lab) -> None:
    """A HostProcess driver on both nodes, then SMB through csi-proxy on one of them."""
    blank = {"csi_proxy_checksum": "", "csi_proxy_source": ""}
    disk = {**COMMON, "kubewin_drivers": "azure_disk", "azure_disk_csi_mode": "host_process"}
    alone = run(two, "enable-csi", {**disk, **blank})
    assert {row["node"]: row["verdict"] for row in alone.summary["nodes"]} == dict.fromkeys(NODES, "green")
    assert services(two) == dict.fromkeys(NODES, False)

    two.api.patch("/api/v1/nodes/win-2", {"metadata": {"labels": {"example.com/shares": "yes"}}})
    smb = {"smb_csi_mode": "csi_proxy", "smb_csi_node_selector": {"example.com/shares": "yes"}}
    both = run(two, "enable-csi", {**disk, **smb, "kubewin_drivers": "azure_disk,smb"})
    assert {row["node"]: row["verdict"] for row in both.summary["nodes"]} == dict.fromkeys(NODES, "green"), both.screen
    assert services(two) == {"win-1": False, "win-2": True}

    two.set_service("win-2", running=False)
    status = run(two, "status", {})
    rows = {row["node"]: row for row in status.summary["nodes"]}
    assert {node: row["verdict"] for node, row in rows.items()} == {"win-1": "green", "win-2": "red"}
    assert "smb: " in rows["win-2"]["why"]
    assert "azure_disk registered" in rows["win-2"]["why"]
    assert "1 of 2 Windows nodes can take CSI volumes now" in status.screen
    access = {"kubewin_cluster_only": True, "kubewin_kubeconfig": two.state.kubeconfigs["kubewin"]}
    unread = play("playbooks/status.yml", "localhost,", variables=access)
    rows = {row["node"]: row for row in unread.summary["nodes"]}
    assert (rows["win-1"]["verdict"], "smb: " in rows["win-2"]["why"]) == ("green", True), rows
    assert "1 of 1 Windows nodes can take CSI volumes now; 1 Windows node was not read" in unread.screen

    run(two, "remove", {"kubewin_drivers": "azure_disk,smb"})


def test_every_driver_has_the_modes_that_are_tried_here() -> None:
    assert MODES["csi_proxy"] == sorted(DRIVERS)
    assert MODES["host_process"] == sorted(set(DRIVERS) - {"gce_pd"})


@PASS
def test_drivers_on_the_same_nodes_from_the_first_run_to_the_last(two: Lab, mode: str, drivers: list[str]) -> None:
    desired = given(mode, drivers)
    if mode == "host_process":
        images = [
            {"name": name, "image": f"registry.k8s.io/csi-vsphere/{kind}:v{HOST_PROCESS}"}
            for name, kind in (("vsphere-csi-controller", "driver"), ("vsphere-syncer", "syncer"))
        ]
        two.api.patch(CONTROLLER, {"spec": {"template": {"spec": {"containers": images}}}}, STRATEGIC)

    first = run(two, "enable-csi", desired)
    assert [(row["node"], row["verdict"]) for row in first.summary["nodes"]] == [(node, "green") for node in NODES]
    # Only vSphere's controller is there: the end repeats the plan's warnings.
    without = {f"{DRIVERS[key].title} controller" for key in drivers if key != "vsphere"}
    assert {one["object"] for one in first.summary["findings"] if one["id"] == "CSI-D30"} == without
    names = sorted(DRIVERS[key].name for key in drivers)
    assert {node: registered(two, node) for node in NODES} == dict.fromkeys(NODES, names)
    assert set(pipes_mounted(two).values()) == {mode == "csi_proxy"}

    # What writes for a driver is in these; a whole second run is tried with one driver (test_enable_csi).
    assert run(two, "enable-csi", desired, "--tags", "proxy,driver").changed == []

    proofs = next(
        e["result"]["proofs"] for e in run(two, "verify", desired).events if "proofs" in (e.get("result") or {})
    )
    proven = {(one["driver"], one["node"]) for one in proofs if one["verdict"] == "proven"}
    assert proven == {(key, node) for key in drivers for node in NODES}

    run(two, "remove", desired)
    # A CSIDriver stays for other installations of its driver.
    assert [name for name in left(two) if not name.startswith(("csidrivers", "namespaces"))] == []
    assert volumes(two) == []
