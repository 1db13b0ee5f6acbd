# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's cluster behaves like a cluster with Windows nodes in everything that the collection reads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.stream import stream
from lab.cluster import nodes, syncer, vsphere
from lab.cluster.api import ApiError, Object
from lab.cluster.settings import Answer, Driver
from lab.handle import PODS, Lab, eventually, ready, waiting_reason
from lab.state import LabError

PIPES = ("disk-v1", "volume-v1", "filesystem-v1", "system-v1alpha1")
LABEL = "app=story"
DRIVER_CONTAINER = "vsphere-csi-node"
REGISTRAR = "node-driver-registrar"
DAEMONSETS = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets"
SERVICE = "csi-proxy"


def daemonset(image: str = "registry.k8s.io/csi-vsphere/driver:v3.4.0") -> Object:
    """A node plugin in csi-proxy form, cut to what decides its life."""
    socket = rf"C:\var\lib\kubelet\plugins\{vsphere.DRIVER}\csi.sock"
    registrar = {
        "name": REGISTRAR,
        "image": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.12.0",
        "args": ["--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)"],
        "env": [{"name": "DRIVER_REG_SOCK_PATH", "value": socket}],
    }
    driver = {
        "name": DRIVER_CONTAINER,
        "image": image,
        "env": [{"name": "MAX_VOLUMES_PER_NODE", "value": "59"}],
        "volumeMounts": [{"name": pipe, "mountPath": rf"\\.\pipe\csi-proxy-{pipe}"} for pipe in PIPES],
    }
    volumes = [{"name": pipe, "hostPath": {"path": rf"\\.\pipe\csi-proxy-{pipe}", "type": ""}} for pipe in PIPES]
    labels = {"app": "story"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "story", "namespace": vsphere.NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "windows"},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [registrar, driver],
                    "volumes": volumes,
                },
            },
        },
    }


def install_csi_proxy(lab: Lab, host: str) -> None:
    """Put csi-proxy on a host with nothing but its own tools, and wait for its pipes."""
    agent = lab.agent(host)
    artifact = lab.state.artifacts[-1]
    fetched = agent.run(rf"curl.exe -sf -o C:\csi-proxy.exe {artifact.http_url}")
    assert fetched.rc == 0, fetched
    command = r'binPath= "C:\csi-proxy.exe -windows-service -log_file=C:\csi-proxy.log -logtostderr=false"'
    made = agent.run(f"sc.exe create {SERVICE} {command} start= auto")
    assert made.rc == 0, made
    lab.set_service(host, running=True)
    wait_for_pipes(lab, host, present=True)


def wait_for_pipes(lab: Lab, host: str, *, present: bool) -> None:
    def as_wanted() -> bool:
        listed = lab.agent(host).run(r"dir \\.\pipe\\csi-proxy-* /b").stdout
        return (b"csi-proxy-disk-v1" in listed) is present

    eventually(as_wanted, f"pipes of {host} {'there' if present else 'gone'}")


@pytest.fixture
def plugin(lab: Lab) -> Iterator[Lab]:
    """csi-proxy serves on every host and the plugin runs on every node; both are gone afterwards."""
    hosts = [host.name for host in lab.state.hosts]
    for host in hosts:
        lab.agent(host).control("snapshot")
        install_csi_proxy(lab, host)
    lab.api.post(DAEMONSETS, daemonset())
    eventually(lambda: sum(map(ready, lab.pods(LABEL))) == len(hosts), "a ready plugin pod on every node")
    eventually(lambda: all(lab.registered(host) for host in hosts), "the driver in every CSINode")
    yield lab
    remove_daemonset(lab)
    for host in hosts:
        lab.agent(host).control("restore")


def remove_daemonset(lab: Lab) -> None:
    lab.api.gone(f"{DAEMONSETS}/story")
    eventually(lambda: not lab.api.items(f"{PODS}?labelSelector={LABEL}"), "no plugin pod left")
    windows = [name for name in lab.state.nodes if name != nodes.LINUX]
    eventually(lambda: not any(lab.registered(name) for name in windows), "no registration left")


def pod_on(lab: Lab, node: str) -> Object:
    return eventually(
        lambda: next((pod for pod in lab.pods(LABEL) if pod["spec"].get("nodeName") == node), None), f"a pod on {node}"
    )


def test_nodes_look_like_windows_nodes(lab: Lab) -> None:
    node = lab.api.get(f"{nodes.NODES}/win-1")
    assert node["metadata"]["labels"]["kubernetes.io/os"] == "windows"
    assert node["metadata"]["labels"]["node.kubernetes.io/windows-build"] == "10.0.20348"
    assert {"key": "os", "value": "Windows", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["status"]["nodeInfo"]["bootID"]
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": lab.state.host("win-1").address}
    eventually(
        lambda: not lab.api.get(f"{nodes.CSI_NODES}/win-1")["spec"].get("drivers"), "no driver without a plugin pod"
    )


def test_version_is_that_of_a_release(lab: Lab) -> None:
    version = lab.api.get("/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.36.3", "1", "36")


def test_vsphere_controller_and_linux_plugin_are_there(lab: Lab) -> None:
    entry = eventually(lambda: lab.registered(nodes.LINUX), "the driver on the Linux node")
    assert entry["allocatable"] == {"count": 59}
    deployment = lab.api.get(f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/deployments/vsphere-csi-controller")
    assert deployment["status"]["availableReplicas"] == 1


def test_pod_without_pipes_crash_loops_and_logs_why(lab: Lab) -> None:
    lab.api.post(DAEMONSETS, daemonset())
    try:
        pod = eventually(
            lambda: next(
                (p for p in lab.pods(LABEL) if waiting_reason(p, DRIVER_CONTAINER) == "CrashLoopBackOff"), None
            ),
            "a pod that crash-loops",
        )
        assert not ready(pod)
        node = pod["spec"]["nodeName"]
        path = f"{PODS}/{pod['metadata']['name']}"
        eventually(
            lambda: any(
                item["restartCount"] >= 1 and item.get("lastState", {}).get("terminated", {}).get("exitCode") == 1
                for item in lab.api.get(path)["status"]["containerStatuses"]
                if item["name"] == DRIVER_CONTAINER
            ),
            "a restart in the container's status",
        )
        missing = r"open \\\\.\\pipe\\csi-proxy-disk-v1: The system cannot find the file specified."
        assert missing in lab.log(pod, DRIVER_CONTAINER)
        assert missing in lab.log(pod, DRIVER_CONTAINER, "&previous=true")
        assert "Still connecting to" in lab.log(pod, REGISTRAR)
        events = lab.api.items(f"/api/v1/namespaces/{vsphere.NAMESPACE}/events?fieldSelector=reason=BackOff")
        assert any(event["involvedObject"]["uid"] == pod["metadata"]["uid"] for event in events)
        assert lab.registered(node) is None

        # Backoff picks up pipes that come later.
        lab.agent(node).control("snapshot")
        try:
            install_csi_proxy(lab, node)
            eventually(lambda: ready(lab.api.get(path)), "the pod ready once the pipes are there")
            eventually(lambda: lab.registered(node), "the driver registered then")
        finally:
            lab.agent(node).control("restore")
    finally:
        remove_daemonset(lab)


def test_registration_is_what_a_kubelet_writes(plugin: Lab) -> None:
    entry = plugin.registered("win-2")
    assert entry is not None
    node = plugin.api.get(f"{nodes.NODES}/win-2")
    ids = json.loads(node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"])
    assert ids == {vsphere.DRIVER: entry["nodeID"]}
    assert entry["nodeID"] == node["status"]["nodeInfo"]["systemUUID"]
    assert entry["allocatable"] == {"count": 59}


def test_running_pod_does_not_notice_that_the_service_stopped(plugin: Lab) -> None:
    before = pod_on(plugin, "win-1")
    plugin.set_service("win-1", running=False)
    wait_for_pipes(plugin, "win-1", present=False)
    # Another pod's whole life is the time in which this one could have noticed.
    plugin.delete_pod(pod_on(plugin, "win-2"))
    eventually(lambda: ready(pod_on(plugin, "win-2")), "the other node's pod")
    after = pod_on(plugin, "win-1")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert ready(after)
    assert plugin.registered("win-1") is not None


def test_deleted_pod_crash_loops_when_the_service_is_stopped(plugin: Lab) -> None:
    plugin.set_service("win-1", running=False)
    wait_for_pipes(plugin, "win-1", present=False)
    plugin.delete_pod(pod_on(plugin, "win-1"))
    eventually(
        lambda: waiting_reason(pod_on(plugin, "win-1"), DRIVER_CONTAINER) == "CrashLoopBackOff", "a crash loop on win-1"
    )
    eventually(lambda: plugin.registered("win-1") is None, "the driver gone from the CSINode")
    assert plugin.registered("win-2") is not None
    plugin.set_service("win-1", running=True)
    eventually(lambda: ready(pod_on(plugin, "win-1")), "the pod ready again")
    eventually(lambda: plugin.registered("win-1"), "the driver registered again")


def test_registration_can_outlive_its_pod(plugin: Lab) -> None:
    with plugin.settings(stale=("win-1",)):
        plugin.set_service("win-1", running=False)
        wait_for_pipes(plugin, "win-1", present=False)
        plugin.delete_pod(pod_on(plugin, "win-1"))
        eventually(
            lambda: waiting_reason(pod_on(plugin, "win-1"), DRIVER_CONTAINER) == "CrashLoopBackOff", "a crash loop"
        )
        assert plugin.registered("win-1") is not None
    plugin.set_service("win-1", running=True)
    # The entry existed all the time: the registrar's log shows that the new pod took it over.
    eventually(lambda: "PluginRegistered:true" in plugin.log(pod_on(plugin, "win-1"), REGISTRAR), "a new registration")


def test_reboot_restarts_containers_in_place(plugin: Lab) -> None:
    before = pod_on(plugin, "win-3")
    old = plugin.api.get(f"{nodes.NODES}/win-3")["status"]["nodeInfo"]["bootID"]
    new = plugin.call("reboot", name="win-3")
    assert new != old
    eventually(
        lambda: all(item["restartCount"] == 1 for item in pod_on(plugin, "win-3")["status"]["containerStatuses"]),
        "one restart of every container",
    )
    eventually(lambda: ready(pod_on(plugin, "win-3")), "the pod ready after the reboot")
    assert pod_on(plugin, "win-3")["metadata"]["uid"] == before["metadata"]["uid"]
    assert plugin.api.get(f"{nodes.NODES}/win-3")["status"]["nodeInfo"]["bootID"] == new


def test_topology_of_the_driver_becomes_labels(lab: Lab, plugin: Lab) -> None:
    key = "topology.csi.vmware.com/k8s-zone"
    try:
        with plugin.settings(drivers={vsphere.DRIVER: Driver(topology={key: "zone-a"})}):
            plugin.delete_pod(pod_on(plugin, "win-1"))
            eventually(lambda: (plugin.registered("win-1") or {}).get("topologyKeys") == [key], "the topology key")
        assert plugin.api.get(f"{nodes.NODES}/win-1")["metadata"]["labels"][key] == "zone-a"
    finally:
        lab.api.patch(f"{nodes.NODES}/win-1", {"metadata": {"labels": {key: None}}})


def test_image_that_cannot_be_pulled(lab: Lab) -> None:
    lab.api.post(DAEMONSETS, daemonset("registry.k8s.io/csi-vsphere/driver:nosuchtag"))
    try:

        def stuck() -> Object | None:
            pods = lab.pods(LABEL)
            return next((pod for pod in pods if waiting_reason(pod, DRIVER_CONTAINER) == "ImagePullBackOff"), None)

        pod = eventually(stuck, "an image pull error")
        assert pod["status"]["phase"] == "Pending"
        with pytest.raises(ApiError, match="is waiting to start: trying and failing to pull image"):
            lab.log(pod, DRIVER_CONTAINER)
    finally:
        remove_daemonset(lab)


def core_client(lab: Lab, account: str) -> client.CoreV1Api:
    # The client's configuration module carries no types.
    load: Any = config.new_client_from_config
    return client.CoreV1Api(load(lab.state.kubeconfigs[account]))


def execute(lab: Lab, pod: Object, command: list[str], stdin: str = "") -> tuple[int, str, str]:
    """Run a command in the driver's container; (exit code, stdout, stderr)."""
    core = core_client(lab, "admin")
    session = stream(
        core.connect_get_namespaced_pod_exec,
        pod["metadata"]["name"],
        pod["metadata"]["namespace"],
        container=DRIVER_CONTAINER,
        command=command,
        stdin=bool(stdin),
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    if stdin:
        session.write_stdin(stdin)
    session.run_forever(timeout=120)
    return session.returncode, session.read_stdout(timeout=0), session.read_stderr(timeout=0)


def test_exec_gives_exit_codes_and_streams(plugin: Lab) -> None:
    pod = pod_on(plugin, "win-1")
    assert execute(plugin, pod, ["cmd", "/c", "exit 3"])[0] == 3
    code, out, err = execute(plugin, pod, ["cmd", "/c", "echo out& echo err 1>&2"])
    assert (code, out.strip(), err.strip()) == (0, "out", "err")
    # It runs on the very host that the node stands for.
    assert execute(plugin, pod, ["hostname.exe"])[1].strip() == "win-1"


def test_exec_can_be_scripted(plugin: Lab) -> None:
    answer = Answer(pattern=r"fsutil", rc=5, stdout="scripted\n", stderr="denied\n")
    with plugin.settings(exec_answers=(answer,)):
        assert execute(plugin, pod_on(plugin, "win-2"), ["fsutil", "x"]) == (5, "scripted\n", "denied\n")


def test_logs_follow_and_tail(plugin: Lab) -> None:
    pod = pod_on(plugin, "win-1")
    whole = plugin.log(pod, REGISTRAR).splitlines()
    assert "PluginRegistered:true" in whole[-1]
    assert plugin.log(pod, REGISTRAR, "&tailLines=1").splitlines() == whole[-1:]
    with pytest.raises(ApiError, match="previous terminated container"):
        plugin.log(pod, DRIVER_CONTAINER, "&previous=true")
    observed: list[str] = []
    follower = threading.Thread(
        target=lambda: observed.append(plugin.log(pod, DRIVER_CONTAINER, "&follow=true")), daemon=True
    )
    follower.start()
    eventually(
        lambda: any("follow=true" in entry["requestURI"] for entry in plugin.audit("lab-admin")),
        "the request to follow",
    )
    assert follower.is_alive()
    plugin.delete_pod(pod)
    follower.join(120)
    assert not follower.is_alive()
    assert "Serving requests" in observed[0]


def test_idle_cluster_is_silent(lab: Lab) -> None:
    """Nothing beats: once it has come to rest, only the API server and the syncer renew their leases."""
    own = f"/leases/{syncer.LEASE}"

    def versions() -> dict[str, str]:
        return {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in lab.api.items(nodes.NODES)}

    def silent() -> bool:
        start, before = lab.audit_size(), versions()
        threading.Event().wait(3)
        written = [
            (entry["user"]["username"], entry["verb"], entry["requestURI"])
            for entry in lab.audit(since=start)
            if entry["verb"] not in ("get", "list", "watch")
            and not any(lease in entry["requestURI"] for lease in ("/leases/apiserver-", own))
        ]
        print(written)
        return not written and versions() == before

    eventually(silent, "3 s without a write")


def test_audit_log_distinguishes_dry_runs(lab: Lab) -> None:
    start = lab.audit_size()
    thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dry"}}
    lab.api.post("/api/v1/namespaces/default/configmaps?dryRun=All", thing)
    entries = [entry for entry in lab.audit("lab-admin", start) if entry["verb"] == "create"]
    assert [entry["requestURI"] for entry in entries] == ["/api/v1/namespaces/default/configmaps?dryRun=All"]


def test_api_server_restart(plugin: Lab) -> None:
    plugin.call("stop", name="apiserver")
    assert not plugin.api.ok("/readyz")
    assert plugin.call("status")["healthy"] is False
    plugin.call("start", name="apiserver")
    # The kubelet stand-in and the controllers find their way back by themselves.
    old = pod_on(plugin, "win-1")
    plugin.delete_pod(old)
    eventually(
        lambda: ready(pod := pod_on(plugin, "win-1")) and pod["metadata"]["uid"] != old["metadata"]["uid"],
        "a new pod after the restart",
    )
    eventually(lambda: plugin.call("status")["healthy"], "the lab healthy")


def test_a_node_is_ready_only_while_its_host_runs(lab: Lab) -> None:
    name = lab.call("node-add")
    try:
        with pytest.raises(LabError, match=f"has a node {name} already"):
            lab.call("node-add", number=int(name.removeprefix("win-")))
        host = lab.state.host(name)
        assert lab.agent(name).run("hostname.exe").stdout.strip().decode() == name
        addresses = lab.api.get(f"{nodes.NODES}/{name}")["status"]["addresses"]
        assert addresses[0]["address"] == host.address
    finally:
        lab.call("node-remove", name=name)
    assert name not in lab.state.nodes
    with pytest.raises(LabError, match=f"has no node '{name}'; its nodes are linux-1, win-1"):
        lab.call("node-remove", name=name)
    assert all(host.name != name for host in lab.state.hosts)
    with pytest.raises(ApiError, match="NotFound"):
        lab.api.get(f"{nodes.NODES}/{name}")


def test_two_nodes_may_claim_one_address(lab: Lab) -> None:
    """Nobody stops them on a real cluster either; exec keeps working, also after the second one has ended."""
    port = lab.api.get(f"{nodes.NODES}/win-1")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    nodes.add(lab.api, nodes.Node("twin", lab.state.host("win-1").address, windows=True), port)
    nodes.remove(lab.api, "twin")
    lab.api.post(DAEMONSETS, daemonset())
    try:
        pod = pod_on(lab, "win-1")
        eventually(lambda: waiting_reason(pod_on(lab, "win-1"), DRIVER_CONTAINER), "the pod known to the kubelet")
        assert "cannot find the file" in lab.log(pod, DRIVER_CONTAINER)
    finally:
        remove_daemonset(lab)


def test_controller_can_be_removed(lab: Lab) -> None:
    path = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/deployments/vsphere-csi-controller"
    with lab.without("Deployment", "vsphere-csi-controller"), pytest.raises(ApiError, match="NotFound"):
        lab.api.get(path)
    eventually(lambda: lab.api.get(path)["status"].get("availableReplicas") == 1, "the controller back")


def test_least_privilege_account_is_not_admin(lab: Lab) -> None:
    core = core_client(lab, "kubewin")
    assert len(core.list_node().items) == len(lab.state.nodes)
    with pytest.raises(client.ApiException) as caught:
        core.list_secret_for_all_namespaces()
    assert caught.value.status == 403
