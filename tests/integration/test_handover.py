# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""handover.yml: nodes go over one by one, from ours to an operator's plugin and from an installed one to ours."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.run import HandoverRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER
from integration import foreign, playbooks
from integration.kube import ACCOUNT, VSPHERE, also_holds, applied, connect, planned, remove_driver, writes
from integration.late_writes import Choice, LateWrite, accepted, first, late_writes, nth
from integration.playbooks import Run, finish, meanwhile, play, start
from integration.test_kube_deploy import changed
from integration.test_remove import left
from lab import handle
from lab.cluster import vsphere
from lab.handle import PATIENCE, Lab, eventually, longer, ready
from unit.roles.rendering import render

NODES = ("win-1", "win-2")
# No host is read here: the pipes of nodes without one count as served.
CLUSTER_ONLY = DriverRequest(csi_proxy_managed=False)
THEIRS = foreign.operator("vmware-vsphere-csi-driver-node-windows", vsphere.DRIVER)
OURS = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets/{VSPHERE.daemonset}"


@pytest.fixture(scope="module")
def two() -> Iterator[Lab]:
    """A lab of two Windows nodes without hosts, whose account may hand over."""
    made = handle.start(f"handover-{os.getpid()}", nodes=2, windows="none")
    with ExitStack() as held:
        for name in ("remove", "handover"):
            held.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        yield made
    made.stop()


def variables(lab: Lab, direction: str, **more: Any) -> dict[str, Any]:
    return {
        "kubewin_drivers": "vsphere",
        "kubewin_kubeconfig": lab.state.kubeconfigs["kubewin"],
        "kubewin_handover": direction,
        "vsphere_csi_csi_proxy_managed": False,
        **more,
    }


def hand_over(lab: Lab, direction: str, *arguments: str, **more: Any) -> Run:
    return play("playbooks/handover.yml", "localhost,", *arguments, variables=variables(lab, direction, **more))


def registered(lab: Lab) -> bool:
    return all(lab.registered(node) for node in NODES)


def pods_of(lab: Lab, daemon_set: dict[str, Any]) -> list[dict[str, Any]]:
    metadata = daemon_set["metadata"]
    found = lab.api.items(f"/api/v1/namespaces/{metadata['namespace']}/pods")
    return [
        pod for pod in found
        if any(one["uid"] == metadata["uid"] for one in pod["metadata"].get("ownerReferences") or [])
    ]  # fmt: skip


@contextmanager
def watched(lab: Lab) -> Iterator[set[int]]:
    """How many nodes were without the driver in their CSINode at once, after every change of one of these."""
    client = connect(str(lab.state.kubeconfigs["admin"]))
    listed = client.list(kinds.CSI_NODE)
    there = {item["metadata"]["name"]: _registered(item) for item in listed.items}
    observed = {sum(not there[node] for node in NODES)}
    over = threading.Event()

    def follow() -> None:
        version = listed.resource_version
        while not over.is_set():
            for _change, item in client.watch(kinds.CSI_NODE, version, 1.0):
                version = item["metadata"]["resourceVersion"]
                if "name" in item["metadata"]:
                    there[item["metadata"]["name"]] = _registered(item)
                    observed.add(sum(not there[node] for node in NODES))

    with ThreadPoolExecutor(1) as beside:
        following = beside.submit(follow)
        try:
            yield observed
        finally:
            over.set()
        following.result()


def _registered(csi_node: dict[str, Any]) -> bool:
    drivers = (csi_node.get("spec") or {}).get("drivers") or []
    return any(entry["name"] == vsphere.DRIVER for entry in drivers)


@pytest.fixture
def taken_over(two: Lab) -> Lab:
    """Ours is on both nodes, and an OpenShift operator has begun to bring its own."""
    begin_beside_theirs(two)
    return two


def begin_beside_theirs(two: Lab) -> None:
    """Ours on both nodes, then theirs beside it, unless that is so."""
    if not two.api.ok(OURS):
        two.api.gone(foreign.path(THEIRS))
        applied(connect(two.state.kubeconfigs["kubewin"]), CLUSTER_ONLY)
        eventually(lambda: registered(two), "ours on both nodes")
        live = foreign.plant(two.api, THEIRS, "vmware-vsphere-csi-driver-operator")
        eventually(lambda: sum(map(ready, pods_of(two, live))) == 2, "theirs beside ours on both nodes")


@pytest.fixture(scope="module")
def cleared(two: Lab) -> Lab:
    """Nobody's plugin is there any more."""
    two.api.gone(foreign.path(THEIRS))
    remove_driver(two)
    eventually(lambda: not any(two.registered(node) for node in NODES), "no plugin on any node")
    return two


def steps(lab: Lab, direction: str, name: str = "", **more: Any) -> HandoverRun:
    """A hand-over, in this process."""
    client = connect(lab.state.kubeconfigs["kubewin"])
    given: dict[str, Any] = {
        "direction": direction,
        "replace": name,
        "timeout": PATIENCE,
        "restart_pod": False,
    }
    definitions: list[dict[str, Any]] = []
    if direction == "to_kubewin":
        definitions = render(planned(client, dataclasses.replace(CLUSTER_ONLY, replace=name)))
    return HandoverRun(client, VSPHERE, definitions, {**given, **more}, print)


@contextmanager
def asked_for(lab: Lab, node: str) -> Iterator[None]:
    """Our pod stays on a node until the account has checked whether it left."""
    (pod,) = [one for one in pods_of(lab, lab.api.get(OURS)) if one["spec"]["nodeName"] == node]
    size, over = lab.audit_size(), threading.Event()

    def asked() -> bool:
        return any(
            entry["verb"] == "get" and f"/pods/{pod['metadata']['name']}" in entry["requestURI"]
            for entry in lab.audit(ACCOUNT, size)
        )

    def hold() -> None:
        with lab.held(pod):
            eventually(lambda: over.is_set() or asked(), f"a look at {node}", playbooks.PATIENCE)

    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(hold)
        try:
            yield
        finally:
            over.set()
        done.result()


def killed(lab: Lab, tmp_path: Path, direction: str, when: Callable[[], bool], **more: Any) -> None:
    """Start a hand-over, and kill it in the middle."""
    record = tmp_path / "record.jsonl"
    process = start("playbooks/handover.yml", "localhost,", record=record, variables=variables(lab, direction, **more))
    meanwhile(process, when, "the first node is under way")
    os.killpg(process.pid, signal.SIGKILL)
    finish(process, record)


# Whole plays take their time; the steps that they make are cheap.
whole = pytest.mark.parametrize("as_play", [False, pytest.param(True, marks=pytest.mark.torture)])


def test_deploying_beside_them_is_refused_with_the_handover_command(taken_over: Lab) -> None:
    refusal = planned(connect(taken_over.state.kubeconfigs["kubewin"]), CLUSTER_ONLY).refusal
    assert "managed by OpenShift's storage operator" in refusal
    assert "kubewin_handover=to_platform" in refusal


@pytest.mark.torture
def test_check_mode_names_the_nodes_and_writes_nothing(taken_over: Lab) -> None:
    size = taken_over.audit_size()
    run = hand_over(taken_over, "to_platform", "--check")
    assert run.code == 0, run.screen
    assert "would hand over win-1, win-2" in run.screen
    assert writes(taken_over, size) == []


@whole
def test_a_plugin_of_theirs_that_does_not_start_gives_the_node_back_to_ours(taken_over: Lab, as_play: bool) -> None:
    before = foreign.written(taken_over.api.get(foreign.path(THEIRS)))
    others = {
        pod["metadata"]["uid"]
        for pod in pods_of(taken_over, taken_over.api.get(OURS))
        if pod["spec"]["nodeName"] == "win-2"
    }
    # Their pod on the canary is stuck: it never starts anew, once ours has gone.
    with taken_over.settings(liveness_delay=600.0):
        if as_play:
            run = hand_over(taken_over, "to_platform", kubewin_gate_timeout=3)
            assert run.code != 0
            message = run.failures[-1]["result"]["msg"]
            assert "Node win-1" in message, run.screen
        else:
            for seconds in longer(2):
                made = steps(taken_over, "to_platform", timeout=seconds)
                with pytest.raises(ClusterError) as failed:
                    made.hand_over_node("win-1")
                message = str(failed.value)
                # Otherwise the time was over before ours had left.
                if "is still on win-1" not in message:
                    break
    assert "kubewin_handover_restart_pods" in message
    ours = taken_over.api.get(OURS)
    assert sorted(pod["spec"]["nodeName"] for pod in pods_of(taken_over, ours)) == list(NODES)
    assert others <= {pod["metadata"]["uid"] for pod in pods_of(taken_over, ours)}
    assert not taken_over.api.get("/api/v1/nodes/win-1")["spec"].get("unschedulable")
    assert foreign.written(taken_over.api.get(foreign.path(THEIRS))) == before


def test_a_hand_over_that_is_ended_from_outside_gives_the_node_back_to_ours(taken_over: Lab, tmp_path: Path) -> None:
    options = {"driver": "vsphere", "direction": "to_platform", "timeout": 600}
    task = {"kubewin.csi.handover": {**options, "kubeconfig": taken_over.state.kubeconfigs["kubewin"]}}
    python = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    playbook, record = tmp_path / "node.yml", tmp_path / "record.jsonl"
    here = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    playbook.write_text(json.dumps([{**here, "vars": python, "tasks": [task]}]), encoding="utf-8")

    def where() -> list[str]:
        return sorted(pod["spec"].get("nodeName", "") for pod in pods_of(taken_over, taken_over.api.get(OURS)))

    # Their pod does not notice that ours took its sockets along, so that it is waited for.
    with taken_over.settings(liveness_delay=600.0):
        process = start(str(playbook), "localhost,", record=record)
        meanwhile(process, lambda: where() == ["win-2"], "ours has left the canary", 90)
        os.killpg(process.pid, signal.SIGTERM)
        finish(process, record)
        eventually(lambda: where() == list(NODES), "ours is back on the canary")
        eventually(lambda: all(map(ready, pods_of(taken_over, taken_over.api.get(OURS)))), "and Ready")
    lease = "/apis/coordination.k8s.io/v1/namespaces/vmware-system-csi/leases/kubewin-handover-vsphere"
    eventually(lambda: not taken_over.api.ok(lease), "the ended run gave its Lease back")


@whole
def test_interrupted_after_the_first_node_it_continues_and_removes_ours(
    taken_over: Lab, tmp_path: Path, as_play: bool
) -> None:
    before = foreign.written(taken_over.api.get(foreign.path(THEIRS)))
    size = taken_over.audit_size()
    with watched(taken_over) as without:
        if as_play:
            killed(taken_over, tmp_path, "to_platform", lambda: len(pods_of(taken_over, taken_over.api.get(OURS))) == 1)
        else:
            # Their pod here would never notice that ours took its sockets along.
            made = steps(taken_over, "to_platform", restart_pod=True)
            with taken_over.settings(liveness_delay=600.0):
                made.hand_over_node("win-1")
            cordon = {"metadata": {"annotations": {"kubewin.io/cordoned": "its node plugin is handed over"}}}
            taken_over.api.patch(
                "/api/v1/nodes/win-1?fieldManager=kubewin.csi", {**cordon, "spec": {"unschedulable": True}}
            )
        with asked_for(taken_over, "win-2"):
            run = hand_over(taken_over, "to_platform")
    assert run.code == 0, run.screen
    assert re.search(r"waiting until this collection's pod \S+ on win-2 ends \(\d+ s of ", run.screen)
    assert max(without) == 1
    assert not taken_over.api.ok(OURS)
    theirs = taken_over.api.get(foreign.path(THEIRS))
    assert foreign.written(theirs) == before
    eventually(lambda: registered(taken_over), "theirs on both nodes")
    assert sorted(pod["spec"]["nodeName"] for pod in pods_of(taken_over, theirs) if ready(pod)) == list(NODES)
    assert not any(taken_over.api.get(f"/api/v1/nodes/{node}")["spec"].get("unschedulable") for node in NODES)
    # What claims refer to stays, and what the driver's own installation brought.
    assert left(taken_over) == [f"storageclasses {VSPHERE.storage_class.name}"]
    assert taken_over.api.ok(f"/apis/storage.k8s.io/v1/csidrivers/{vsphere.DRIVER}")
    mine = [write for write in writes(taken_over, size) if foreign.OPENSHIFT in write]
    pods = f"delete /api/v1/namespaces/{foreign.OPENSHIFT}/pods/{THEIRS['metadata']['name']}-"
    assert all(write.startswith(pods) for write in mine)
    assert len(mine) == (0 if as_play else 1)

    size, again = taken_over.audit_size(), steps(taken_over, "to_platform")
    assert again.read_plan().nodes == ()
    assert again.finish(again.read_plan())[0] is False
    assert taken_over.audit(ACCOUNT, size)
    assert writes(taken_over, size) == []


def late(
    lab: Lab, tmp_path: Path, choice: Choice, direction: str, *, stop: bool, **more: Any
) -> list[LateWrite] | None:
    """A hand-over whose writes are held from the chosen one on, until another hand-over has finished."""

    def begin(kubeconfig: str) -> Popen[str]:
        options = variables(lab, direction, **more) | {"kubewin_kubeconfig": kubeconfig}
        return start("playbooks/handover.yml", "localhost,", record=tmp_path / "late.jsonl", variables=options)

    def follow() -> None:
        run = hand_over(lab, direction, **more)
        assert run.code == 0, run.screen

    return late_writes(lab, choice, begin, follow, stop=stop)


@pytest.mark.turn(0, 4)
def test_a_hand_over_that_stood_still_brings_no_plugin_back_after_another_one(taken_over: Lab, tmp_path: Path) -> None:
    found = late(taken_over, tmp_path, first("patch", "daemonsets"), "to_platform", stop=True)
    assert found
    assert accepted(found) == []
    assert not taken_over.api.ok(OURS)
    eventually(lambda: registered(taken_over), "theirs on both nodes")
    assert not any(taken_over.api.get(f"/api/v1/nodes/{node}")["spec"].get("unschedulable") for node in NODES)


@pytest.mark.torture
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_no_write_of_a_hand_over_to_the_platform_is_accepted_late(two: Lab, tmp_path: Path, stop: bool) -> None:
    for number in itertools.count(1):
        begin_beside_theirs(two)
        found = late(two, tmp_path, nth(number), "to_platform", stop=stop)
        if found is None:
            break
        assert accepted(found) == [], f"write {number}"
        assert not two.api.ok(OURS)
    assert number > 6


@contextmanager
def installed(lab: Lab, theirs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Another owner's plugin on both nodes, ours on none."""
    live = foreign.plant(lab.api, theirs, "helm")
    eventually(lambda: sum(map(ready, pods_of(lab, live))) == 2 and registered(lab), "theirs on both nodes")
    try:
        yield live
    finally:
        lab.api.gone(foreign.path(theirs))
        remove_driver(lab)
        lab.api.gone(f"/api/v1/namespaces/{vsphere.NAMESPACE}/configmaps/kubewin-replaced-vsphere")


def replaced_by_ours(lab: Lab, theirs: dict[str, Any]) -> None:
    """Ours has both nodes, nothing of theirs is left but the copy, and enable_csi has nothing to change."""
    ours = lab.api.get(OURS)
    pods = pods_of(lab, ours)
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == list(NODES)
    assert all(pod["spec"]["serviceAccountName"] == VSPHERE.service_account for pod in pods)
    assert ours["spec"]["updateStrategy"]["type"] == "OnDelete"
    assert registered(lab)
    copy = lab.api.get(f"/api/v1/namespaces/{vsphere.NAMESPACE}/configmaps/kubewin-replaced-vsphere")["data"]
    assert copy["schema"] == "1"
    assert copy["state"] == "finished"
    assert json.loads(copy["daemonset.json"])["spec"]["selector"] == theirs["spec"]["selector"]
    outcome = applied(connect(lab.state.kubeconfigs["kubewin"]), CLUSTER_ONLY)
    assert not outcome.changed


def test_what_an_operator_manages_is_not_replaced_and_the_refusal_names_the_operator(taken_over: Lab) -> None:
    size = taken_over.audit_size()
    with pytest.raises(ClusterError, match=r"oc patch clustercsidriver csi\.vsphere\.vmware\.com"):
        steps(taken_over, "to_kubewin", f"{foreign.OPENSHIFT}/{THEIRS['metadata']['name']}").read_plan()
    assert taken_over.audit(ACCOUNT, size)
    assert writes(taken_over, size) == []


@whole
def test_upstreams_own_is_replaced_only_by_name_and_an_interrupted_run_continues(
    cleared: Lab, tmp_path: Path, as_play: bool
) -> None:
    theirs, name = foreign.upstream(), "vmware-system-csi/vsphere-csi-node-windows"
    with installed(cleared, theirs), watched(cleared) as without:
        refusal = planned(connect(cleared.state.kubeconfigs["kubewin"]), CLUSTER_ONLY).refusal
        assert f"kubewin_replace={name}" in refusal
        with pytest.raises(ClusterError, match="no DaemonSet to replace is named"):
            steps(cleared, "to_kubewin").read_plan()

        if as_play:
            pods = f"/api/v1/namespaces/{vsphere.NAMESPACE}/pods?labelSelector=app={VSPHERE.app_label}"
            ours = VSPHERE.service_account
            killed(
                cleared, tmp_path, "to_kubewin",
                lambda: any(pod["spec"]["serviceAccountName"] == ours for pod in cleared.api.items(pods)),
                kubewin_replace=name,
            )  # fmt: skip
        else:
            made = steps(cleared, "to_kubewin", name)
            made.adopt_pods()
            for node in NODES:
                made.hand_over_node(node)
        assert "is not finished" in planned(connect(cleared.state.kubeconfigs["kubewin"]), CLUSTER_ONLY).refusal

        run = hand_over(cleared, "to_kubewin", kubewin_replace=name)
        assert run.code == 0, run.screen
        replaced_by_ours(cleared, theirs)
    assert max(without) == 1


def test_the_commands_of_the_guide_return_to_the_replaced_plugin(cleared: Lab) -> None:
    """Section "Return to the replaced plugin", where ours cannot start on the first node."""
    theirs, name = foreign.upstream(), "vmware-system-csi/vsphere-csi-node-windows"
    space = f"/api/v1/namespaces/{vsphere.NAMESPACE}"
    record, ours = f"{space}/configmaps/kubewin-replaced-vsphere", f"app={VSPHERE.app_label},{MANAGED_BY}={MANAGER}"
    with installed(cleared, theirs) as live, cleared.settings(bad_images=("bad.example.com/*",)):
        broken = {"vsphere_csi_image_mirror": "bad.example.com", "kubewin_gate_timeout": 20}
        run = hand_over(cleared, "to_kubewin", kubewin_replace=name, **broken)
        assert run.code != 0
        assert "was changed. It stays cordoned" in run.failures[-1]["result"]["msg"], run.screen
        kept = [pod["metadata"]["name"] for pod in pods_of(cleared, cleared.api.get(OURS)) if ready(pod)]
        assert len(kept) == 1
        # What kubectl does; it also waits for the end of what it deletes.
        copy = json.loads(cleared.api.get(record)["data"]["daemonset.json"])
        admin, uid = connect(cleared.state.kubeconfigs["admin"]), cleared.api.get(OURS)["metadata"]["uid"]
        admin.delete(kinds.DAEMON_SET, VSPHERE.daemonset, vsphere.NAMESPACE, uid, dry_run=False, policy="Orphan")
        eventually(lambda: not cleared.api.ok(OURS), "ours is gone, its pods are not")
        for pod in cleared.api.items(f"{space}/pods?labelSelector={ours}"):
            cleared.api.gone(f"{space}/pods/{pod['metadata']['name']}")
        again = cleared.api.post(OURS.rpartition("/")[0], copy)
        cleared.api.gone(record)
        cleared.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": None}})
        eventually(
            lambda: sum(map(ready, pods_of(cleared, again))) == 2 and registered(cleared), "theirs on both nodes"
        )
        assert again["spec"]["template"] == live["spec"]["template"]
        assert kept[0] in {pod["metadata"]["name"] for pod in pods_of(cleared, again)}
        # Nothing of the hand-over is left that would refuse another one.
        assert steps(cleared, "to_kubewin", name).read_plan().nodes == NODES


@pytest.mark.torture
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_no_write_of_a_hand_over_to_ours_is_accepted_late(cleared: Lab, tmp_path: Path, stop: bool) -> None:
    theirs, name = foreign.upstream(), "vmware-system-csi/vsphere-csi-node-windows"
    for number in itertools.count(1):
        with installed(cleared, theirs):
            found = late(cleared, tmp_path, nth(number), "to_kubewin", stop=stop, kubewin_replace=name)
            if found is None:
                break
            assert accepted(found) == [], f"write {number}"
            replaced_by_ours(cleared, theirs)
    assert number > 6


def test_a_charts_plugin_with_labels_of_its_own_is_replaced_too(cleared: Lab) -> None:
    theirs = foreign.helm()
    # The shipped role names upstream's DaemonSets; the guide adds that of a chart.
    name = "rancher-vsphere-csi-node-windows"
    own_name = {
        "apiGroups": ["apps"],
        "resources": ["daemonsets"],
        "resourceNames": [name],
        "verbs": ["patch", "delete"],
    }
    with installed(cleared, theirs), watched(cleared) as without:
        made = steps(cleared, "to_kubewin", f"vmware-system-csi/{name}")
        made.require_permissions(made.read_plan())
        with pytest.raises(ClusterError, match="cannot delete daemonsets"):
            made.adopt_pods()
        with changed(cleared, "kubewin-csi-handover", lambda rules: [*rules, own_name]):
            made.adopt_pods()
            # Killed here, the next run would find the same two nodes.
            assert made.read_plan().nodes == NODES
            for node in NODES:
                made.hand_over_node(node)
            made.finish(made.read_plan())
        replaced_by_ours(cleared, theirs)
        assert made.read_plan().nodes == ()
    assert max(without) == 1
