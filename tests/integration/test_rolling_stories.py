# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong while a node plugin changes, and how many nodes lose it: never more than maxUnavailable.

Five nodes without hosts; the driver runs as a HostProcess container. Each test ends with the same plugin on every node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.changes import APPLY, at_rest, images, killed, memory, plugins, recorded
from integration.kube import also_holds
from integration.late_writes import accepted, late_writes, nth
from integration.playbooks import Run, play, start
from lab import handle
from lab.handle import Lab, eventually, ready

DISK = DRIVERS["azure_disk"]
NODES = [f"win-{number}" for number in range(1, 6)]
NOTREADY = "lab/notready"
OPTIONS = {
    "kubewin_drivers": "azure_disk",
    "kubewin_create_cluster_objects": "yes",
    "kubewin_batches": "1,2",
    "azure_disk_csi_node_timeout": 8,
    "azure_disk_csi_mode": "host_process",
    "azure_disk_csi_max_unavailable": "2",
}


class Cluster:
    """A lab, and the driver's role with a release."""

    def __init__(self, lab: Lab, role: Path) -> None:
        self.lab, self.role, self.number = lab, role, 0

    def newer(self) -> dict[str, Any]:
        """Options with which every pod changes."""
        self.number += 1
        return {"azure_disk_csi_resources": memory(300 + self.number), "azure_disk_csi_version": "1.34.3"}

    def options(self, **variables: Any) -> dict[str, Any]:
        return {**OPTIONS, "kubewin_kubeconfig": self.lab.state.kubeconfigs["kubewin"], **variables}

    def apply(self, **variables: Any) -> Run:
        return play(str(self.role), "localhost,", variables=self.options(**variables))

    @contextmanager
    def down(self, name: str) -> Iterator[None]:
        """A node whose kubelet does not answer for the length of a block."""
        self.mark(name, "x")
        eventually(lambda: not self.is_ready(name), f"{name} is down")
        yield
        self.mark(name, None)
        eventually(lambda: self.is_ready(name) and name in plugins(self.lab, DISK), f"{name} is back")

    def mark(self, name: str, value: str | None) -> None:
        self.lab.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {NOTREADY: value}}})

    def is_ready(self, name: str) -> bool:
        return ready(self.lab.api.get(f"/api/v1/nodes/{name}"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    role = tmp_path_factory.mktemp("play") / "apply.yml"
    role.write_text(APPLY, encoding="utf-8")
    lab = handle.start(f"rolls-{os.getpid()}", nodes=len(NODES), windows="none", vsphere=False)
    with ExitStack() as roles:
        for name in ("cluster-objects", "roll", "azure-disk"):
            roles.enter_context(also_holds(lab, f"kubewin-csi-{name}"))
        made = Cluster(lab, role)
        run = made.apply(**made.newer())
        assert run.code == 0, run.screen
        eventually(lambda: set(plugins(lab, DISK)) == set(NODES), "a plugin on every node")
        yield made
    lab.stop()


def refused(run: Run, reason: str) -> str:
    """Why a run failed."""
    assert run.code != 0, run.screen
    result = run.failures[0]["result"]
    assert result["reason"] == reason, run.screen
    return str(result["msg"])


def test_a_plugin_that_is_ready_and_never_registers_is_taken_back_and_the_next_slice_stops_at_once(
    cluster: Cluster,
) -> None:
    lab = cluster.lab
    newer = {
        **cluster.newer(),
        "azure_disk_csi_images": {"registrar": "registry.k8s.io/sig-storage/csi-node-driver-registrar:silent"},
    }
    before, was = plugins(lab, DISK), images(lab, DISK)
    with recorded(lab, DISK) as record:
        message = refused(cluster.apply(**newer, roll_nodes="win-2,win-3"), "canary_failed")
        assert "is not in the CSINode's spec.drivers" in message
        assert "Rolled back" in message
        assert set(record.order) == {"win-2"}
        assert images(lab, DISK) == was
        assert at_rest(lab, DISK)
        after = plugins(lab, DISK)
        message = refused(cluster.apply(**newer, roll_nodes="win-4,win-5"), "canary_failed")
        assert "failed on the canary win-2" in message
        assert plugins(lab, DISK) == after
        # The cause is repaired: the run with that node tries it again, and then the others do.
        with lab.settings(silent_images=()):
            for nodes in ("win-3,win-2", "win-1,win-4,win-5"):
                run = cluster.apply(**newer, roll_nodes=nodes)
                assert run.code == 0, run.screen
    assert record.order == ["win-2", "win-2", "win-2", "win-3", "win-1", "win-4", "win-5"]
    assert record.away <= 2
    assert set(plugins(lab, DISK).values()).isdisjoint(before.values())
    assert at_rest(lab, DISK)


def test_a_driver_that_hangs_on_a_later_node_stops_the_change_there(cluster: Cluster) -> None:
    lab, newer = cluster.lab, cluster.newer()
    with recorded(lab, DISK) as record:
        with lab.settings(node_delays={"win-3": 600.0}):
            message = refused(cluster.apply(**newer), "roll_stopped")
            assert "stopped at win-3" in message
            assert "untouched: win-4, win-5" in message
        run = cluster.apply(**newer)
        assert run.code == 0, run.screen
    assert sorted(record.order) == NODES
    assert record.away <= 2
    assert at_rest(lab, DISK)


def test_a_node_that_is_down_is_named_and_keeps_no_other_waiting(cluster: Cluster) -> None:
    lab, newer = cluster.lab, cluster.newer()
    with recorded(lab, DISK) as record:
        with cluster.down("win-1"):
            run = cluster.apply(**newer)
            assert run.code == 0, run.screen
            assert "win-1: not Ready, so the plugin pod was not replaced" in run.screen
            assert sorted(record.order) == NODES[1:]
        run = cluster.apply(**newer)
        assert run.code == 0, run.screen
    assert record.order[-1] == "win-1"
    # Beside the node that is down.
    assert record.away <= 3
    assert at_rest(lab, DISK)


@pytest.mark.torture
def test_a_node_that_goes_down_with_its_pod_replaced_keeps_no_other_waiting(cluster: Cluster, tmp_path: Path) -> None:
    lab, newer = cluster.lab, cluster.newer()
    options = cluster.options(**newer, azure_disk_csi_node_timeout=60)
    with recorded(lab, DISK) as record:
        with ExitStack() as hanging:
            hanging.enter_context(lab.settings(node_delays={"win-3": 600.0}))
            process = start(str(cluster.role), "localhost,", record=tmp_path / "1", variables=options)
            eventually(lambda: "win-3" in record.order, "the pod of win-3 is replaced")
            cluster.mark("win-3", "x")
            screen, _nothing = process.communicate(timeout=120)
            assert process.returncode == 0, screen
            assert "win-3: not Ready" in screen
        cluster.mark("win-3", None)
        eventually(lambda: cluster.is_ready("win-3") and "win-3" in plugins(lab, DISK), "win-3 is back")
    run = cluster.apply(**newer)
    assert run.code == 0, run.screen
    assert sorted(record.order) == NODES
    assert record.away <= 3
    assert at_rest(lab, DISK)


def test_two_changes_in_a_row_take_no_more_nodes_than_one(cluster: Cluster, tmp_path: Path) -> None:
    lab, first, second = cluster.lab, cluster.newer(), cluster.newer()
    before = plugins(lab, DISK)

    def changed() -> int:
        return sum(uid != before[node] for node, uid in plugins(lab, DISK).items())

    with recorded(lab, DISK) as record:
        killed(cluster.role, tmp_path / "1", lambda: changed() >= 2, "two nodes", **cluster.options(**first))
        run = cluster.apply(**second)
    assert run.code == 0, run.screen
    assert record.away <= 2
    assert at_rest(lab, DISK)


def test_a_run_that_was_stopped_and_goes_on_after_the_next_one_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    lab, newer = cluster.lab, cluster.newer()
    options = cluster.options(**newer)

    def begin(kubeconfig: str) -> Popen[str]:
        variables = {**options, "kubewin_kubeconfig": kubeconfig}
        return start(str(cluster.role), "localhost,", record=tmp_path / "late.jsonl", variables=variables)

    def follow() -> None:
        run = cluster.apply(**newer)
        assert run.code == 0, run.screen

    with recorded(lab, DISK) as record:
        late = late_writes(lab, nth(3), begin, follow, stop=True)
    assert late is not None
    assert accepted(late) == []
    assert record.away <= 2
    assert sorted(record.order) == NODES
    assert at_rest(lab, DISK)


@pytest.mark.torture
def test_slices_of_two_users_with_other_settings_each_change_their_own_nodes(cluster: Cluster, tmp_path: Path) -> None:
    lab = cluster.lab
    users = {"win-1,win-2": cluster.newer(), "win-3,win-4,win-5": cluster.newer()}
    with recorded(lab, DISK) as record:
        running = [
            start(
                str(cluster.role), "localhost,", record=tmp_path / f"{number}.jsonl",
                variables=cluster.options(**options, roll_nodes=nodes, azure_disk_csi_node_timeout=60),
            )
            for number, (nodes, options) in enumerate(users.items())
        ]  # fmt: skip
        for process in running:
            screen, _nothing = process.communicate(timeout=240)
            assert process.returncode == 0, screen
        assert sorted(record.order) == NODES
        run = cluster.apply(**cluster.newer())
    assert run.code == 0, run.screen
    assert record.away <= 2
    assert at_rest(lab, DISK)
