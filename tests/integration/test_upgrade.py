# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A csi-proxy release changes under a cluster that works: quiesced, swapped, plugin made again, cordons as they were."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import CORDONED, SERVING_LABEL, SERVING_VALUE
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.cluster_node import RUN
from integration.late_writes import Choice, HoldingProxy, accepted
from integration.playbooks import Run, family, finish, meanwhile, play, start
from lab import handle
from lab.faultproxy import Call
from lab.handle import Lab, eventually
from lab.windows.faults import Rule

PLAYBOOK = "playbooks/enable-csi.yml"
PLUGIN = "app=vsphere-csi-node-windows"
PODS = "/api/v1/namespaces/default/pods"
OLD, NEW = "1.1.3", "1.3.0"


@pytest.fixture(scope="module")
def old() -> Iterator[Lab]:
    """A lab that runs the old release."""
    made = handle.start(f"upgrade-{os.getpid()}", nodes=2)
    run = enable(made, OLD)
    assert run.code == 0, run.screen
    made.agent("win-1").control("snapshot", id="old")
    yield made
    made.stop()


def wanted(lab: Lab, release: str) -> dict[str, Any]:
    artifact = next(found for found in lab.state.artifacts if found.release == release)
    return {
        "csi_proxy_version": release,
        "csi_proxy_source": artifact.http_url,
        "csi_proxy_checksum": artifact.sha256,
    }


def enable(lab: Lab, release: str, *arguments: str, **variables: Any) -> Run:
    asked = {**wanted(lab, release), **variables}
    return play(PLAYBOOK, lab.state.inventories["ntlm-http"], *arguments, variables=asked)


def node(lab: Lab, name: str) -> dict[str, Any]:
    return lab.api.get(f"/api/v1/nodes/{name}")


def cordoned(lab: Lab) -> list[str]:
    return [host.node for host in lab.state.hosts if node(lab, host.node)["spec"].get("unschedulable")]


def releases(lab: Lab) -> set[str]:
    """The release that each host's process has."""
    found = set()
    for host in lab.state.hosts:
        state = lab.agent(host.name).control("state")["state"]
        found |= {process["release"] for process in state["processes"] if process["image"] == "csi-proxy.exe"}
    return found


def plugins(lab: Lab) -> set[str]:
    return {pod["metadata"]["uid"] for pod in lab.pods(PLUGIN)}


@pytest.mark.parametrize("by_the_administrator", [False, True], ids=["free", "cordoned by the administrator"])
def test_a_node_whose_volumes_move_is_left_alone_and_as_it_was(old: Lab, by_the_administrator: bool) -> None:
    starting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "starting"},
        "spec": {
            "nodeName": "win-1",
            "containers": [{"name": "app", "image": "app:nosuchtag"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }
    old.api.post(PODS, starting)
    old.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": by_the_administrator or None}})
    before = plugins(old)
    run = enable(old, NEW, "--tags", "proxy", csi_proxy_quiesce_timeout=5)
    assert run.code != 0
    assert "pod default/starting is starting" in run.failures[-1]["result"]["msg"]
    assert re.search(
        r"win-1: waiting, pod default/starting is starting and its volumes are being mounted \(\d+ s of 5 s\)",
        run.screen,
    )
    assert "RETRYING" not in run.screen
    assert releases(old) == {OLD}
    assert plugins(old) == before
    assert cordoned(old) == (["win-1"] if by_the_administrator else [])
    old.api.gone(f"{PODS}/starting")
    eventually(lambda: not old.api.ok(f"{PODS}/starting"), "the pod is gone")
    old.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": None}})


TORTURE = pytest.mark.torture


def sets(part: str, name: str, value: Any) -> Choice:
    """Hold the first write of win-1 that sets this; `object` stands for any value. One that met a conflict is sent again."""

    def is_held(_count: int, call: Call) -> bool:
        if (call.resource, call.name) != ("nodes", "win-1"):
            return False
        patch = json.loads(call.body)
        fields = {**patch.get("metadata", {}), "spec": patch.get("spec", {})}.get(part) or {}
        return name in fields and (fields[name] == value or (value is object and fields[name] is not None))

    return is_held


@pytest.mark.parametrize(
    ("held", "following"),
    [
        pytest.param(sets("annotations", RUN, object), NEW, id="name", marks=pytest.mark.turn(0, 4)),
        pytest.param(sets("spec", "unschedulable", True), NEW, id="cordon", marks=pytest.mark.turn(1, 4)),
        pytest.param(sets("labels", SERVING_LABEL, None), NEW, id="label removed", marks=pytest.mark.turn(2, 4)),
        pytest.param(sets("annotations", RUN, None), OLD, id="restored", marks=pytest.mark.turn(3, 4)),
    ],
)
def test_a_node_write_that_arrives_while_the_next_run_changes_csi_proxy_is_refused(
    old: Lab, tmp_path: Path, held: Choice, following: str
) -> None:
    lift_cordon_and_label(old)
    inventory, proxy_only = old.state.inventories["ntlm-http"], ("--tags", "proxy", "--limit", "win-1")
    with HoldingProxy(old.state, held) as proxy:
        options = {**wanted(old, NEW), "kubewin_kubeconfig": proxy.kubeconfig}
        killed = start(PLAYBOOK, inventory, *proxy_only, record=tmp_path / "killed.jsonl", variables=options)
        meanwhile(killed, proxy.held.is_set, "the run writes the Node")
        for pid in family(killed.pid):
            os.kill(pid, signal.SIGKILL)
        killed.communicate()
        old.front.add_fault("win-1", Rule("delay", r"sc\.exe stop", operation="Receive", delay_ms=3000))
        options = {**wanted(old, following), "kubewin_allow_downgrade": "yes"}
        record = tmp_path / "next.jsonl"
        process = start(PLAYBOOK, inventory, *proxy_only, record=record, variables=options)
        meanwhile(process, lambda: old.front.faults("win-1")[0]["hits"], "the next run stops csi-proxy")
        late = proxy.release()
        run = finish(process, record)
    old.front.clear_faults("win-1")
    assert run.code == 0, run.screen
    assert late
    assert accepted(late) == []
    assert cordoned(old) == []
    metadata = node(old, "win-1")["metadata"]
    assert metadata["labels"][SERVING_LABEL] == SERVING_VALUE
    assert not [name for name in metadata["annotations"] if name.startswith("kubewin.io/")]


def lift_cordon_and_label(lab: Lab) -> None:
    """The old release serves on win-1, and its Node says so."""
    lab.agent("win-1").control("restore", id="old")
    whole = {"metadata": {"annotations": {CORDONED: None}, "labels": {SERVING_LABEL: SERVING_VALUE}}}
    lab.api.patch("/api/v1/nodes/win-1", {**whole, "spec": {"unschedulable": None}})


@pytest.mark.parametrize(
    "killed", ["the run", pytest.param("the worker", marks=TORTURE), pytest.param("everything", marks=TORTURE)]
)
def test_a_run_killed_while_csi_proxy_is_stopped_leaves_a_cordon_with_its_owner(
    old: Lab, tmp_path: Path, killed: str
) -> None:
    record = tmp_path / "record.jsonl"
    lift_cordon_and_label(old)
    old.front.add_fault("win-1", Rule("delay", r"sc\.exe stop", operation="Receive", delay_ms=3000))
    process = start(PLAYBOOK, old.state.inventories["ntlm-http"], record=record, variables=wanted(old, NEW))
    meanwhile(process, lambda: old.front.faults("win-1")[0]["hits"], "csi-proxy stops on the canary")
    run, *workers = family(process.pid)
    assert workers
    for pid in {"the run": [run], "the worker": workers, "everything": [*workers, run]}[killed]:
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    # A worker that outlives its run finishes what it does on the host, and writes nothing more to the cluster.
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "every worker has ended")
    old.front.clear_faults("win-1")
    assert cordoned(old) == ["win-1"]
    metadata = node(old, "win-1")["metadata"]
    assert metadata["annotations"][CORDONED] == "csi-proxy is being replaced"
    assert SERVING_LABEL not in metadata["labels"]


def test_the_next_run_finishes_with_new_plugin_pods_and_an_upgrade_keeps_its_cordon(old: Lab) -> None:
    """upgrade.yml has not proven it yet, and its tasks may be what runs this."""
    before = plugins(old)
    mark = {"metadata": {"annotations": {"kubewin.io/cordoned": "upgrade x"}}}
    old.api.patch("/api/v1/nodes/win-2", {**mark, "spec": {"unschedulable": True}})
    run = enable(old, NEW)
    assert run.code == 0, run.screen
    assert releases(old) == {NEW}
    assert plugins(old).isdisjoint(before)
    assert cordoned(old) == ["win-2"]
    assert node(old, "win-2")["metadata"]["annotations"]["kubewin.io/cordoned"] == "upgrade x"
    assert {row["verdict"] for row in run.summary["nodes"]} == {"green"}
    none = {"metadata": {"annotations": {"kubewin.io/cordoned": None}}}
    old.api.patch("/api/v1/nodes/win-2", {**none, "spec": {"unschedulable": None}})


def test_a_lower_release_is_refused_before_anything_is_touched_unless_it_is_allowed(old: Lab) -> None:
    refused = enable(old, OLD)
    assert refused.code != 0
    assert "allow_downgrade" in refused.failures[0]["result"]["msg"]
    assert refused.changed == []
    assert releases(old) == {NEW}
    run = enable(old, OLD, "--tags", "proxy", kubewin_allow_downgrade="yes")
    assert run.code == 0, run.screen
    assert releases(old) == {OLD}
