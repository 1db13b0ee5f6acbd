# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on a real API server, with hosts behind the nodes: what it reads, what it reports, and what it survives."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules
from integration.kube import (
    PLUGIN,
    VSPHERE,
    applied,
    connect,
    gate,
    host_facts,
    install_csi_proxy,
    label,
    planned,
    remove_driver,
    text,
)
from integration.playbooks import finish, meanwhile, play, start
from lab.cluster import vsphere
from lab.cluster.api import Object
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually, ready, waiting_reason
from unit.roles.rendering import render

HOSTS = ("win-1", "win-2")
NAMESPACE = f"/api/v1/namespaces/{vsphere.NAMESPACE}"
LEVEL = "pod-security.kubernetes.io/enforce"
DAEMON_SET = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets/{VSPHERE.daemonset}"

GATE_PLAY = """
- hosts: localhost
  gather_facts: false
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - name: Gate
      kubewin.csi.gate:
        driver: vsphere
        hosts: "{{ observed_hosts }}"
        timeout: "{{ patience | default(60) | int }}"
        api_timeout: "{{ api_patience | default(60) | int }}"
"""


@pytest.fixture
def deployed(lab: Lab) -> Iterator[Lab]:
    """csi-proxy serves on two of three hosts, their nodes are marked, and the driver is applied; removed afterwards."""
    remove_driver(lab)
    for host in HOSTS:
        lab.agent(host).control("snapshot")
        install_csi_proxy(lab, host)
        label(lab, host)
    applied(connect(kubewin(lab)))
    yield lab
    remove_driver(lab)
    for host in HOSTS:
        lab.agent(host).control("restore")


@pytest.fixture
def gated(deployed: Lab) -> Lab:
    """The same, and the gate is green."""
    evaluation = gate(connect(kubewin(deployed)), host_facts(deployed, HOSTS))
    assert evaluation.verdict == "green", evaluation
    return deployed


@pytest.fixture
def gate_play(tmp_path: Path) -> str:
    playbook = tmp_path / "gate.yml"
    playbook.write_text(GATE_PLAY, encoding="utf-8")
    return str(playbook)


def kubewin(lab: Lab) -> str:
    return lab.state.kubeconfigs["kubewin"]


def variables(lab: Lab, **more: object) -> list[str]:
    return ["-e", json.dumps({"observed_hosts": host_facts(lab, HOSTS), **more})]


def pod_of(lab: Lab, node: str) -> Object:
    return eventually(
        lambda: next((pod for pod in lab.pods(PLUGIN) if pod["spec"].get("nodeName") == node), None), f"a pod on {node}"
    )


@contextmanager
def waited_for(lab: Lab, meanwhile: Callable[[], object]) -> Iterator[None]:
    """The pod of win-1 is on its way out, and its successor can come only when that was done meanwhile."""
    pod = pod_of(lab, "win-1")
    deleted = threading.Event()

    def hold() -> None:
        with lab.held(pod):
            lab.delete_pod(pod)
            deleted.set()
            meanwhile()

    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(hold)
        assert deleted.wait(60)
        yield
        done.result()


def test_the_action_waits_and_reports_changes(deployed: Lab, gate_play: str) -> None:
    size = deployed.audit_size()

    def reported() -> bool:
        """It reads what explains the first result, which it then reports."""
        ours = deployed.audit("system:serviceaccount:kubewin:kubewin", size)
        return any(entry["verb"] == "list" and "/events" in entry["requestURI"] for entry in ours)

    with waited_for(deployed, lambda: eventually(reported, "the action waits")):
        run = play(gate_play, "localhost,", *variables(deployed), env={"K8S_AUTH_KUBECONFIG": kubewin(deployed)})
    assert run.code == 0, run.screen
    gate = run.results("Gate")["localhost"]["gate"]
    assert {node["node"]: node["verdict"] for node in gate["nodes"]} == dict.fromkeys(HOSTS, "green")
    assert gate["skipped_nodes"] == [
        {"node": "win-3", "reason": "no plugin pod: label kubewin.io/csi-proxy is missing, expected serving"}
    ]
    assert "2 of 2 nodes green" in run.screen
    assert "    win-1: green" in run.screen
    ours = deployed.audit("system:serviceaccount:kubewin:kubewin", size)
    assert {entry["verb"] for entry in ours} <= {"get", "list", "watch"}


def test_without_host_facts_a_node_is_unproven_and_never_green(gated: Lab, gate_play: str) -> None:
    run = play(gate_play, "localhost,", "-e", '{"observed_hosts": []}', env={"K8S_AUTH_KUBECONFIG": kubewin(gated)})
    assert run.code != 0
    result = run.results("Gate", "failed")["localhost"]
    assert result["reason"] == "gate_unproven"
    assert "registered, unproven" in result["msg"]


def test_a_stopped_service_below_a_ready_pod_is_red_and_after_a_restart_of_the_pod_all_is_named(gated: Lab) -> None:
    client = connect(kubewin(gated))
    pod = pod_of(gated, "win-2")
    gated.set_service("win-2", running=False)
    # The running pod has its pipes open and stays Ready: only the host knows.
    red = gate(client, host_facts(gated, HOSTS))
    assert ready(gated.api.get(f"{NAMESPACE}/pods/{pod['metadata']['name']}"))
    assert red.verdict == "red"
    assert [(one.node, one.verdict) for one in red.nodes] == [("win-1", "green"), ("win-2", "red")]
    assert "host win-2 does not serve pipe csi-proxy-volume-v1" in text(red, "win-2")
    assert "csi-proxy-disk-v1" in text(red, "win-2")
    gated.delete_pod(pod)
    eventually(
        lambda: any(
            status["restartCount"] > 0
            for one in gated.pods(PLUGIN)
            if one["spec"].get("nodeName") == "win-2"
            for status in one["status"].get("containerStatuses") or []
        ),
        "a crash loop",
    )
    crashing = text(gate(client, host_facts(gated, HOSTS), seconds=20), "win-2")
    assert "CrashLoopBackOff" in crashing
    assert r"failed to connect to csi-proxy: open \\\\.\\pipe\\csi-proxy-" in crashing
    assert "The system cannot find the file specified." in crashing
    assert "csi-proxy-disk-v1" in crashing.split("; pipe ", 1)[1]
    assert "is missing on win-2 -> ansible-playbook -i inventory.yml kubewin.csi.enable_csi" in crashing
    gated.set_service("win-2", running=True)
    eventually(lambda: len(host_facts(gated, ["win-2"])[0]["pipes"]) > 0, "the pipes again")
    assert gate(client, host_facts(gated, HOSTS)).verdict == "green"


def test_an_api_server_that_restarts_is_waited_for(deployed: Lab, gate_play: str, tmp_path: Path) -> None:
    label(deployed, "win-2", None)
    # Controllers reconnect to a restarted API server after their own timeout.
    arguments = variables(deployed, patience=600, api_patience=300)
    record = tmp_path / "record.jsonl"
    with deployed.settings(start_delay=6.0):
        gone = pod_of(deployed, "win-1")
        deployed.delete_pod(gone)
        process = start(
            gate_play, "localhost,", *arguments, record=record, env={"K8S_AUTH_KUBECONFIG": kubewin(deployed)}
        )
        meanwhile(process, lambda: '"event": "start"' in _read(record), "the gate at work")
        deployed.call("stop", name="apiserver")
        deployed.call("start", name="apiserver")
        run = finish(process, record)
    assert run.code == 0, run.screen
    label(deployed, "win-2")


def _read(record: Path) -> str:
    return record.read_text(encoding="utf-8") if record.exists() else ""


def test_a_node_that_joins_and_one_that_leaves_during_the_gate(deployed: Lab) -> None:
    client = connect(kubewin(deployed))
    facts = host_facts(deployed, HOSTS)

    def change() -> None:
        deployed.call("node-add", number=9, host=False)
        label(deployed, "win-9")
        eventually(lambda: deployed.registered("win-9"), "the driver on win-9")

    with deployed.settings(pipes_without_host=True):
        with waited_for(deployed, change):
            evaluation = gate(client, facts)
        assert {one.node: one.verdict for one in evaluation.nodes} == {
            "win-1": "green", "win-2": "green", "win-9": "unproven",
        }  # fmt: skip
        only = gate(client, facts, rules=GateRules(only=frozenset(HOSTS)))
        assert only.verdict == "green"
        assert [name for name, reason in only.skipped_nodes if "not in this run; unproven" in reason] == ["win-9"]
        left = pod_of(deployed, "win-9")
        deployed.call("node-remove", name="win-9")
        # Nobody is left there to end the pod; the collector of such pods would take most of a minute.
        deployed.api.delete(f"{NAMESPACE}/pods/{left['metadata']['name']}", {"gracePeriodSeconds": 0})
        after = gate(client, facts, rules=GateRules(only=frozenset((*HOSTS, "win-9"))))
    assert after.verdict == "green"
    assert ("win-9", "the Node does not exist") in after.skipped_nodes


def test_no_windows_node_is_a_failure_with_its_own_reason(lab: Lab, gate_play: str) -> None:
    remove_driver(lab)
    applied(connect(kubewin(lab)))
    try:
        run = play(gate_play, "localhost,", "-e", '{"observed_hosts": []}', env={"K8S_AUTH_KUBECONFIG": kubewin(lab)})
        result = run.results("Gate", "failed")["localhost"]
        assert result["reason"] == "no_nodes"
        assert "label kubewin.io/csi-proxy is missing" in result["msg"]
        assert gate(connect(kubewin(lab)), rules=GateRules(allow_zero_nodes=True)).verdict == "green"
    finally:
        remove_driver(lab)


def test_an_image_that_cannot_be_pulled_times_out_with_a_table(gated: Lab, gate_play: str) -> None:
    client = connect(kubewin(gated))
    image = "registry.k8s.io/csi-vsphere/driver:nosuchtag"
    applied(client, DriverRequest(images={"driver": image}))
    gated.delete_pod(pod_of(gated, "win-1"))

    def pulling() -> bool:
        return any(waiting_reason(pod, "vsphere-csi-node") == "ImagePullBackOff" for pod in gated.pods(PLUGIN))

    eventually(pulling, "its new pod cannot get the image")
    arguments = variables(gated, patience=8)
    run = play(gate_play, "localhost,", *arguments, env={"K8S_AUTH_KUBECONFIG": kubewin(gated)})
    result = run.results("Gate", "failed")["localhost"]
    assert result["reason"] == "gate_timeout"
    assert "container vsphere-csi-node has no image" in result["msg"]
    assert "still runs an older template" in result["msg"], "the pods of the other nodes stay"


def test_a_cordoned_node_has_its_plugin_and_is_reported_as_cordoned(gated: Lab) -> None:
    gated.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": True}})
    try:
        gated.delete_pod(pod_of(gated, "win-1"))
        evaluation = gate(connect(kubewin(gated)), host_facts(gated, HOSTS))
        assert evaluation.verdict == "green"
        assert "cordoned" in evaluation.nodes[0].notes[0]
    finally:
        gated.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": None}})


def test_pods_that_the_namespace_refuses_are_shown_with_the_servers_words(gated: Lab) -> None:
    deployed = gated
    client = connect(kubewin(deployed))
    deployed.api.patch(NAMESPACE, {"metadata": {"labels": {LEVEL: "baseline"}}})
    try:
        for node in HOSTS:
            deployed.delete_pod(pod_of(deployed, node))
        eventually(lambda: deployed.api.get(DAEMON_SET)["status"]["currentNumberScheduled"] == 0, "no pod")
        shown = eventually(
            lambda: found if "FailedCreate" in (found := text(gate(client, seconds=0), "win-1")) else None,
            "the reason in the gate",
        )
        assert "0 of 2 pods exist" in shown
        assert "violates PodSecurity" in shown
        assert f"kubectl label namespace {vsphere.NAMESPACE} {LEVEL}=privileged --overwrite" in shown
        assert "CSI-D10" in {one.id for one in planned(client).findings}
    finally:
        deployed.api.patch(NAMESPACE, {"metadata": {"labels": {LEVEL: "privileged"}}})


def test_a_second_provider_is_red_on_the_nodes_it_reaches(gated: Lab) -> None:
    other = next(item for item in render(planned(connect(kubewin(gated)))) if item["kind"] == "DaemonSet")
    other["metadata"].update(name="second", labels={})
    other["spec"]["selector"] = {"matchLabels": {"app": "second"}}
    other["spec"]["template"]["metadata"] = {"labels": {"app": "second"}}
    other["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "win-2"
    second = DAEMON_SET.rsplit("/", 1)[0] + "/second"
    gated.api.post(DAEMON_SET.rsplit("/", 1)[0], other)
    try:
        # Without a Ready pod it would only claim to provide it.
        eventually(lambda: gated.api.get(second)["status"].get("numberReady"), "the second provider")
        evaluation = gate(connect(kubewin(gated)), host_facts(gated, HOSTS))
        assert [(one.node, one.verdict) for one in evaluation.nodes] == [("win-1", "green"), ("win-2", "red")]
        assert f"DaemonSet {vsphere.NAMESPACE}/second also provides csi.vsphere.vmware.com here" in text(
            evaluation, "win-2"
        )
    finally:
        gated.api.gone(second)
        eventually(lambda: not gated.pods("app=second"), "the second provider gone")


def test_watches_that_expire_or_break_are_started_again(deployed: Lab) -> None:
    watched = ("pods", "csinodes", "nodes", "daemonsets")
    with FaultProxy(deployed.state) as proxy:
        for resource in watched:
            proxy.add(Fault("expired", verbs=("watch",), resources=(resource,), times=1))
        proxy.add(Fault("drop", verbs=("watch",), resources=("pods",), times=1))

        def met() -> bool:
            listed = [call for call in proxy.calls if call.verb == "list" and call.resource == "csinodes"]
            return len(listed) >= 2 and all(proxy.hits(resource) for resource in watched)

        with waited_for(deployed, lambda: eventually(met, "every watch was disturbed")):
            assert gate(connect(proxy.kubeconfig), host_facts(deployed, HOSTS)).verdict == "green"
        assert met()


def test_the_gate_ends_with_the_last_node_and_not_with_its_time(deployed: Lab) -> None:
    """Against polling every 5 s: the verdict follows the last write by the watch."""
    client = connect(kubewin(deployed))
    facts = host_facts(deployed, HOSTS)
    # More than any machine needs between that write and the verdict.
    rules = GateRules(stable_for=60)
    assert gate(client, facts).verdict == "green"
    with deployed.settings(start_delay=2.0):
        deployed.delete_pod(pod_of(deployed, "win-1"))
        done: list[float] = []

        def registered() -> bool:
            pods = [one for one in deployed.pods(PLUGIN) if one["spec"].get("nodeName") == "win-1"]
            return bool(pods) and ready(pods[0]) and deployed.registered("win-1") is not None

        thread = threading.Thread(
            target=lambda: done.append((eventually(registered, "win-1 registered"), time.monotonic())[1])
        )
        thread.start()
        assert gate(client, facts, rules=rules).verdict == "green"
        ended = time.monotonic()
        thread.join()
    # A pod whose registration is its own need not last stable_for; less than that means that the watch decided.
    assert ended - done[0] < rules.stable_for
