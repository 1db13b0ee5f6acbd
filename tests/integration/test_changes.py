# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node plugin changes under running workloads: mode switched and back, a canary that fails, runs that are killed.

One lab of two Windows nodes, each with a pod whose volume is attached. The tests follow one another.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.changes import (
    APPLY,
    PODS,
    at_rest,
    attached,
    held,
    images,
    killed,
    memory,
    mode,
    plugins,
    recorded,
    workload,
)
from integration.kube import ACCOUNT, also_holds, install_csi_proxy, label, writes
from integration.late_writes import Choice, LateWrite, accepted, first, late_writes, nth
from integration.playbooks import Run, finish, meanwhile, play, read, start
from lab import handle
from lab.handle import Lab, eventually, ready

PLAYBOOK = "playbooks/enable-csi.yml"
DISK = DRIVERS["azure_disk"]
ROLES = ("cluster-objects", "roll", "azure-disk")
NODES = ["win-1", "win-2"]
VARIABLES = {
    "kubewin_drivers": "azure_disk",
    "kubewin_create_cluster_objects": "yes",
    "azure_disk_csi_node_timeout": 300,
}


@pytest.fixture(scope="module")
def role(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The playbook that applies one driver's role."""
    path = tmp_path_factory.mktemp("play") / "apply.yml"
    path.write_text(APPLY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def cluster(role: Path) -> Iterator[Lab]:
    """Azure Disk through csi-proxy, in use on every node."""
    made = handle.start(f"changes-{os.getpid()}", nodes=len(NODES))
    with ExitStack() as roles:
        for name in ROLES:
            roles.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        for node in NODES:
            install_csi_proxy(made, node)
            label(made, node)
        run = apply(made, role, azure_disk_csi_mode="csi_proxy")
        assert run.code == 0, run.screen
        eventually(lambda: set(plugins(made, DISK)) == set(NODES), "a plugin on every node")
        for node in NODES:
            workload(made.api, DISK, node)
        attached(made.api, NODES)
        eventually(lambda: all(ready(pod) for pod in made.api.items(PODS)), "the workloads run")
        yield made
    made.stop()


def reported(lab: Lab, **variables: Any) -> dict[str, Any]:
    """The variables of the playbook with the role alone."""
    return {**VARIABLES, "kubewin_kubeconfig": lab.state.kubeconfigs["kubewin"], **variables}


def apply(lab: Lab, role: Path, *arguments: str, **variables: Any) -> Run:
    return play(str(role), "localhost,", *arguments, variables=reported(lab, **variables))


def slice_of(lab: Lab, node: str, folder: Path) -> Path:
    """An inventory with one host, as a job of AWX that is sliced has it: no --limit, the others are not there."""
    known = yaml.safe_load(Path(lab.state.inventories["ntlm-http"]).read_text(encoding="utf-8"))
    hosts = known["all"]["children"]["windows"]["hosts"]
    known["all"]["children"]["windows"]["hosts"] = {node: hosts[node]}
    path = folder / f"{node}.yml"
    path.write_text(yaml.safe_dump(known), encoding="utf-8")
    return path


def test_a_mode_is_switched_by_two_slices_at_once_and_nothing_in_use_is_lost(cluster: Lab, tmp_path: Path) -> None:
    before, pods = held(cluster.api), plugins(cluster, DISK)
    options = {**VARIABLES, "azure_disk_csi_mode": "host_process"}
    with recorded(cluster, DISK) as record:
        records = {node: tmp_path / f"{node}.jsonl" for node in NODES}
        running = {
            node: start(
                PLAYBOOK, slice_of(cluster, node, tmp_path), "--tags", "driver,gate", record=at, variables=options
            )
            for node, at in records.items()
        }
        runs = {node: finish(process, records[node]) for node, process in running.items()}
    for node, run in runs.items():
        assert run.code == 0, run.screen
        # Its own node, and csi-proxy stays: it does not matter here.
        assert run.changed == [("Apply the differences", node)]
        assert run.results("Apply the differences")[node]["results"][0]["roll"]["replaced"] == [node]
    assert mode(cluster, DISK) == "host_process"
    assert set(pods.values()).isdisjoint(plugins(cluster, DISK).values())
    assert record.away == 1
    assert sorted(record.order) == NODES
    assert held(cluster.api) == before
    assert at_rest(cluster, DISK)


def test_a_failed_canary_gets_its_former_plugin_and_no_other_node_changes(cluster: Lab, role: Path) -> None:
    pods, was = plugins(cluster, DISK), images(cluster, DISK)
    bad = {
        "azure_disk_csi_images": {"driver": "mcr.microsoft.com/azuredisk-csi:nosuchtag"},
        "azure_disk_csi_node_timeout": 10,
    }
    with recorded(cluster, DISK) as record:
        run = apply(cluster, role, azure_disk_csi_mode="host_process", **bad)
    assert run.code != 0
    result = run.failures[0]["result"]
    assert result["reason"] == "canary_failed"
    assert "win-1" in result["msg"]
    assert "azuredisk-csi:nosuchtag" in result["msg"]
    assert "Rolled back" in result["msg"]
    assert images(cluster, DISK) == was
    after = plugins(cluster, DISK)
    assert {node for node in NODES if after[node] != pods[node]} == {"win-1"}
    assert set(record.order) == {"win-1"}
    assert record.away == 1
    assert at_rest(cluster, DISK)


def test_a_run_with_the_former_options_moves_no_pod_and_writes_nothing(cluster: Lab, role: Path) -> None:
    pods, size = plugins(cluster, DISK), cluster.audit_size()
    run = apply(cluster, role, azure_disk_csi_mode="host_process")
    assert run.code == 0, run.screen
    assert run.changed == []
    assert plugins(cluster, DISK) == pods
    assert cluster.audit(ACCOUNT, size)
    assert writes(cluster, size) == []


def test_a_run_whose_daemon_set_another_run_changed_fails_in_its_gate(cluster: Lab, role: Path, tmp_path: Path) -> None:
    mine, others = ({"azure_disk_csi_resources": memory(size)} for size in (303, 304))
    # The user's play has a task between the deployment and the gate, which gives another run the time.
    (play_of_role,) = yaml.safe_load(APPLY)
    meanwhile_file, gate = tmp_path / "meanwhile", {"name": "kubewin.csi.csi_driver", "tasks_from": "gate"}
    play_of_role["tasks"] += [
        {"ansible.builtin.wait_for": {"path": str(meanwhile_file)}},
        {"ansible.builtin.include_role": gate, "vars": {"csi_driver_name": "azure_disk"}},
    ]
    playbook, record = tmp_path / "play.yml", tmp_path / "record.jsonl"
    playbook.write_text(yaml.safe_dump([play_of_role]), encoding="utf-8")
    options = reported(
        cluster, azure_disk_csi_mode="host_process", azure_disk_csi_accept_unproven=True, azure_disk_csi_gate_timeout=60
    )
    process = start(str(playbook), "localhost,", record=record, variables={**options, **mine})
    applied_here = "Apply the differences"
    meanwhile(process, lambda: any(applied_here in one.get("task", "") for one in read(record)), "the run applied it")
    other = apply(cluster, role, azure_disk_csi_mode="host_process", **others)
    assert other.code == 0, other.screen
    meanwhile_file.touch()
    run = finish(process, record)
    assert run.code != 0, run.screen
    message = run.failures[0]["result"]["msg"]
    assert "has pod template" in message, run.screen
    assert "which this run applied: another run or user changed it meanwhile" in message
    assert "compare the settings of both runs" in message


def test_a_run_killed_at_several_points_succeeds_when_run_again(cluster: Lab, role: Path, tmp_path: Path) -> None:
    if mode(cluster, DISK) == "csi_proxy":
        run = apply(cluster, role, azure_disk_csi_mode="host_process")
        assert run.code == 0, run.screen
    before, pods = held(cluster.api), plugins(cluster, DISK)
    options = reported(cluster, azure_disk_csi_mode="csi_proxy")

    def moved() -> set[str]:
        now = plugins(cluster, DISK)
        return {node for node in NODES if now.get(node) != pods[node]}

    (second,) = [
        pod for pod in cluster.pods(f"app={DISK.app_label}", DISK.namespace) if pod["spec"].get("nodeName") == "win-2"
    ]
    with recorded(cluster, DISK) as record:
        # Its pod ends only after both runs were killed, however late the test sees what they did.
        with cluster.held(second):
            killed(
                role, tmp_path / "1", lambda: mode(cluster, DISK) == "csi_proxy", "the new template is there", **options
            )
            eventually(lambda: not at_rest(cluster, DISK), "the DaemonSet controller reads the new template")
            killed(role, tmp_path / "2", lambda: "win-2" in moved(), "the second node's turn", **options)
            assert not at_rest(cluster, DISK)
        run = play(str(role), "localhost,", variables=options)
    assert run.code == 0, run.screen
    assert record.away == 1
    # None was replaced twice: what had its new pod when a run was killed was left alone by the next.
    assert sorted(record.order) == NODES
    assert mode(cluster, DISK) == "csi_proxy"
    assert held(cluster.api) == before
    assert at_rest(cluster, DISK)


def late(lab: Lab, role: Path, tmp_path: Path, choice: Choice, size: int, **of_next_run: Any) -> list[LateWrite] | None:
    """A change that is killed with its writes held, until the next run has made it. of_next_run: options of that run alone."""
    options = reported(lab, azure_disk_csi_mode="host_process", azure_disk_csi_resources=memory(size))

    def begin(kubeconfig: str) -> Popen[str]:
        variables = {**options, "kubewin_kubeconfig": kubeconfig}
        return start(str(role), "localhost,", record=tmp_path / "late.jsonl", variables=variables)

    def follow() -> None:
        run = play(str(role), "localhost,", variables={**options, **of_next_run})
        assert run.code == 0, run.screen

    return late_writes(lab, choice, begin, follow)


def test_a_held_change_of_the_daemon_set_is_refused_after_the_next_run(
    cluster: Lab, role: Path, tmp_path: Path
) -> None:
    found = late(cluster, role, tmp_path, first("patch", "daemonsets"), 306)
    assert found
    assert accepted(found) == []
    assert at_rest(cluster, DISK)


def test_a_held_deletion_is_refused_after_a_run_that_left_its_pod_to_others(
    cluster: Lab, role: Path, tmp_path: Path
) -> None:
    pods = plugins(cluster, DISK)
    found = late(cluster, role, tmp_path, first("delete", "pods"), 307, roll_nodes=["win-2"])
    assert found
    assert accepted(found) == []
    after = plugins(cluster, DISK)
    assert {node for node in NODES if after.get(node) != pods[node]} == {"win-2"}


@pytest.mark.torture
def test_no_write_of_a_change_is_accepted_after_the_next_run(cluster: Lab, role: Path, tmp_path: Path) -> None:
    for number in itertools.count(1):
        found = late(cluster, role, tmp_path, nth(number), 308 + number % 2)
        if found is None:
            break
        assert accepted(found) == [], f"write {number}"
        assert at_rest(cluster, DISK)
    assert number > 3
