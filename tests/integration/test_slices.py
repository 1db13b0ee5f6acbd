# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that AWX slices: jobs over parts of the inventory side by side on two execution nodes, against one cluster.

The tests follow one another on one lab.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import is_absent_or_ours
from integration.changes import at_rest, daemon_set, mode, plugins, recorded
from integration.kube import ACCOUNT, also_holds, connect, writes
from integration.mesh import NODES, Credential, Mesh, inventory_of, sliced
from lab import handle
from lab.handle import Lab

# Hosts, and slices of them.
SMALL, LARGE = (6, 3), (200, 4)
DISK = DRIVERS["azure_disk"]
ENABLE = {
    "kubewin_drivers": ["azure_disk"],
    "kubewin_create_cluster_objects": "yes",
    "kubewin_batches": "1,100%",
    "azure_disk_csi_mode": "csi_proxy",
    "azure_disk_csi_max_unavailable": "10%",
}
# Kinds of objects that only a run writes.
WRITTEN = (
    *(kinds.CLUSTER_ROLE, kinds.CLUSTER_ROLE_BINDING, kinds.CONFIG_MAP, kinds.CSI_DRIVER, kinds.ROLE),
    *(kinds.ROLE_BINDING, kinds.SERVICE_ACCOUNT, kinds.STORAGE_CLASS),
)


@dataclass(slots=True)
class Controller:
    """A lab, and a mesh with its credentials."""

    lab: Lab
    mesh: Mesh
    slices: int
    inventory: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.inventory = inventory_of(self.lab)

    def slice(self, number: int, count: int) -> dict[str, Any]:
        return sliced(self.inventory, number, count)

    def launch(self, slices: int, **answers: Any) -> list[dict[str, Any]]:
        """Run enable_csi in so many slices, which take turns on the execution nodes. Returns the summary of each."""
        credential = Credential.of(self.lab)
        running = [
            self.mesh.launch(
                "enable_csi.yml",
                self.slice(number, slices),
                credential,
                {**ENABLE, **answers},
                node=NODES[number % len(NODES)],
            )
            for number in range(1, slices + 1)
        ]
        jobs = [one.finish() for one in running]
        for job in jobs:
            assert job.code == 0, f"{job.explanation}\n{job.screen}"
        return [job.statistics["kubewin_summary"] for job in jobs]


@pytest.fixture(
    scope="module",
    params=[pytest.param(SMALL, marks=pytest.mark.turn(3, 4)), pytest.param(LARGE, marks=pytest.mark.torture)],
    ids=lambda size: f"{size[0]} hosts in {size[1]} slices",
)
def controller(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    hosts, slices = request.param
    lab = handle.start(f"slices-{hosts}-{os.getpid()}", nodes=hosts, vsphere=False)
    with ExitStack() as ending:
        ending.callback(lab.stop)
        mesh = Mesh(tmp_path_factory.mktemp("mesh"))
        ending.callback(mesh.stop)
        for name in ("cluster-objects", "roll", "azure-disk"):
            ending.enter_context(also_holds(lab, f"kubewin-csi-{name}"))
        yield Controller(lab, mesh, slices)


def versions(lab: Lab) -> dict[Kind, str]:
    """From where `stored` looks on."""
    client = connect(str(lab.state.kubeconfigs["admin"]))
    return {kind: client.list(kind).resource_version for kind in WRITTEN}


def stored(lab: Lab, since: Mapping[Kind, str]) -> Counter[str]:
    """How often the API server stored each object of the collection. An apply that changes nothing is not stored."""

    def of_kind(kind: Kind) -> list[str]:
        client = connect(str(lab.state.kubeconfigs["admin"]))
        found = client.watch(kind, since[kind], 1.0)
        return [
            f"{kind.kind} {item['metadata']['name']}"
            for change, item in found
            if change != "BOOKMARK" and is_absent_or_ours(item)
        ]

    with ThreadPoolExecutor(len(since)) as pool:
        return Counter(name for names in pool.map(of_kind, since) for name in names)


def test_slices_side_by_side_bring_new_hosts_to_the_state_of_one_job(controller: Controller) -> None:
    lab, size, since = controller.lab, controller.lab.audit_size(), versions(controller.lab)
    summaries = controller.launch(controller.slices)
    for number, summary in enumerate(summaries, 1):
        own = controller.slice(number, controller.slices)["windows"]["hosts"]
        assert {row["host"]: row["verdict"] for row in summary["nodes"] if row["host"]} == dict.fromkeys(own, "green")
        assert {one["object"] for one in summary["changes"]} - {"azure_disk"} == set(own)
    found = stored(lab, since)
    assert {name.split()[0] for name in found} >= {
        "ClusterRole",
        "ClusterRoleBinding",
        "ServiceAccount",
        "StorageClass",
    }
    assert set(found.values()) == {1}, found
    assert daemon_set(lab, DISK)["metadata"]["generation"] == 1
    nodes = Counter(line.partition("?")[0] for line in writes(lab, size) if "/api/v1/nodes/" in line)
    # The action names its run on the Node before it changes csi-proxy, and labels the Node when the pipes serve.
    assert nodes == {f"patch /api/v1/nodes/{host.name}": 2 for host in lab.state.hosts}
    assert set(plugins(lab, DISK)) == {host.name for host in lab.state.hosts}


def test_one_job_over_all_hosts_finds_nothing_to_do_after_them(controller: Controller) -> None:
    size = controller.lab.audit_size()
    (summary,) = controller.launch(1)
    assert summary["verdict"] == "green"
    assert summary["changes"] == []
    assert controller.lab.audit(ACCOUNT, size)
    assert writes(controller.lab, size) == []


@pytest.mark.torture
def test_slices_that_change_the_mode_leave_no_more_nodes_without_a_plugin_than_may_be(controller: Controller) -> None:
    lab = controller.lab
    before = plugins(lab, DISK)
    with recorded(lab, DISK) as record:
        controller.launch(controller.slices, azure_disk_csi_mode="host_process")
    assert mode(lab, DISK) == "host_process"
    assert record.away <= max(1, len(before) // 10)
    assert sorted(record.order) == sorted(before)
    assert at_rest(lab, DISK)
