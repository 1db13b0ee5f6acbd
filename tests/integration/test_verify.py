# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""verify.yml proves volumes on nodes, reports what a failing volume lacks, and leaves nothing behind, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from integration.kube import applied, connect, install_csi_proxy, label, pipes
from integration.playbooks import PATIENCE, Run, family, meanwhile, play, start
from integration.storage import ATTACHMENTS, CLASSES, VOLUMES, folders, storage_class, volumes
from lab import handle
from lab.cluster import access
from lab.cluster.api import kubeconfig
from lab.handle import PID, Lab, eventually, longer

PLAYBOOK = "playbooks/verify.yml"
NODES = ("win-1", "win-2", "win-3")
NAMESPACES = "/api/v1/namespaces"
OURS = "labelSelector=app.kubernetes.io/part-of=kubewin-verify"
ACCOUNT = "verifier"
# A namespace that runs are given where it matters not: Kubernetes waits 5 seconds before it begins to delete one.
GIVEN = "given"
SMB = DRIVERS["smb"]


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Three nodes with vSphere's and SMB's plugins, and an account that holds the ClusterRoles of a proof and nothing else."""
    lab = handle.start(f"verify-{os.getpid()}")
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
        label(lab, host.node)
    deploy(lab, "vsphere", "smb")
    lab.api.ensure(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GIVEN}})
    _account(lab)
    yield lab
    lab.stop()


def deploy(lab: Lab, *keys: str) -> None:
    """Node plugins on every node, and what belongs to their controllers."""
    admin = connect(lab.state.kubeconfigs["admin"])
    for key in keys:
        applied(admin, DriverRequest(create_cluster_objects=True), driver=DRIVERS[key])
    names = {DRIVERS[key].name for key in keys}

    def registered() -> bool:
        found = [lab.api.get(f"/apis/storage.k8s.io/v1/csinodes/{node}")["spec"]["drivers"] or [] for node in NODES]
        return all(names <= {entry["name"] for entry in drivers} for drivers in found)

    eventually(registered, f"{', '.join(keys)} on every node")


def _account(lab: Lab) -> None:
    accounts = f"{NAMESPACES}/{access.NAMESPACE}/serviceaccounts"
    lab.api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
    for role in ("kubewin-csi-verify", "kubewin-csi-verify-pods", "kubewin-csi-verify-namespace"):
        access.bind(lab.api, role, ACCOUNT)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = lab.api.post(f"{accounts}/{ACCOUNT}/token", request)["status"]["token"]
    content = kubeconfig(lab.state.server, Path(lab.state.ca), ACCOUNT, {"token": token})
    _kubeconfig(lab).write_text(yaml.safe_dump(content), encoding="utf-8")


def _kubeconfig(lab: Lab) -> Path:
    return lab.state.paths.kubeconfigs / f"{ACCOUNT}.yaml"


def given(lab: Lab, *drivers: str, **variables: Any) -> dict[str, Any]:
    numbers = {"kubewin_verify_timeout": 300}
    access = {"kubewin_kubeconfig": str(_kubeconfig(lab)), "kubewin_cluster_only": True}
    return {"kubewin_drivers": drivers, **access, **numbers, **variables}


def verify(lab: Lab, *drivers: str, arguments: tuple[str, ...] = (), **variables: Any) -> Run:
    """Without Windows hosts in the inventory."""
    return play(PLAYBOOK, "localhost,", *arguments, variables=given(lab, *drivers, **variables))


def result(run: Run) -> dict[str, Any]:
    for event in run.events:
        if event["event"] in ("ok", "failed") and event["action"].endswith("verify"):
            found: dict[str, Any] = event["result"]
            return found
    raise AssertionError(f"nothing was proven:\n{run.screen}")


def by_node(run: Run) -> dict[str, dict[str, Any]]:
    return {proof["node"]: proof for proof in result(run)["proofs"]}


def nothing_is_left(lab: Lab) -> bool:
    """Also in the storage: a volume that is gone has left its node and its directory before."""
    return (
        lab.api.items(f"{NAMESPACES}?{OURS}") == []
        and lab.api.items(f"/api/v1/pods?{OURS}") == []
        and lab.api.items(f"/api/v1/persistentvolumeclaims?{OURS}") == []
        and lab.api.items(f"/apis/coordination.k8s.io/v1/leases?{OURS}") == []
        and volumes(lab) == []
        and lab.api.items(ATTACHMENTS) == []
        and folders(lab) == []
    )


def test_volumes_are_proven_despite_broken_connections_and_retained_ones_stay(ready: Lab, tmp_path: Path) -> None:
    """Although one host cannot be read, and on another one csi-proxy was stopped and only its old process serves."""
    known = yaml.safe_load(Path(ready.state.inventories["ntlm-http"]).read_text(encoding="utf-8"))
    windows = known["all"]["children"]["windows"]["hosts"]
    windows["win-9"] = {**windows["win-2"], "ansible_port": 9}
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(yaml.safe_dump(known), encoding="utf-8")
    stopped = ready.agent("win-2")
    stopped.control("set", linger_ms=3_600_000)
    old = PID.search(stopped.run("sc.exe queryex csi-proxy").stdout)
    assert old is not None
    assert stopped.run("sc.exe stop csi-proxy").rc == 0
    kept = storage_class(ready, "kept", SMB.name, {"source": "//server/share"}, waits=False, reclaim="Retain")
    chosen = {
        "kubewin_verify_storage_classes": {"smb": kept},
        "kubewin_verify_namespace": GIVEN,
        "kubewin_cluster_only": False,
    }
    with ready.settings(exec_cuts=("echo",)):
        run = play(PLAYBOOK, str(inventory), variables=given(ready, "vsphere", "smb", **chosen))
    assert stopped.run(f"taskkill.exe /f /pid {int(old[1])}").rc == 0
    ready.set_service("win-2", running=True)
    eventually(lambda: pipes(ready, "win-2"), "the pipes of win-2 are back")
    failed = [failure["task"].rpartition(" : ")[2] for failure in run.failures]
    assert failed == ["Write a volume on every node and read it back"], run.screen
    assert "win-9: Nothing listens on " in run.failures[0]["result"]["msg"]
    assert "win-9: Nothing listens on " in run.summary["failure"]
    *proven, warned = run.summary["lines"]
    assert sorted(proven) == [f"{driver} proven on {', '.join(NODES)}" for driver in ("smb", "vsphere")]
    assert warned.startswith("win-2: csi-proxy is stopped and does not serve.")
    proofs = result(run)["proofs"]
    expected = {(driver, node) for driver in ("vsphere", "smb") for node in NODES}
    assert {(proof["driver"], proof["node"]) for proof in proofs} == expected
    for proof in proofs:
        assert proof["verdict"] == "proven"
        same, another = proof["read_on"]
        assert same == proof["node"]
        assert another != proof["node"]
        (wrote,) = [step for step in proof["steps"] if step["step"] == "write"]
        assert wrote["detail"].startswith("run again after 1 lost connection")
    assert result(run)["proven"] == {driver: list(NODES) for driver in ("vsphere", "smb")}
    assert "written on win-1, read back on win-1 by its next pod, read back on win-" in run.screen
    assert "6 of 6 volumes kept their data" in run.screen
    assert f"vsphere on win-1: restart, pod {GIVEN}/vsphere-" in run.screen

    there = {volume["metadata"]["name"]: volume for volume in volumes(ready)}
    assert {proof["volume"] for proof in proofs if proof["driver"] == "smb"} == set(there)
    assert {(left["kind"], left["name"], left["kept"]) for left in result(run)["left"]} == {
        ("PersistentVolume", name, True) for name in there
    }
    for left in result(run)["left"]:
        advice = f"retains its volumes. To delete it: kubectl delete pv {left['name']}"
        assert left["why"].startswith(f"StorageClass kept {advice}")
        assert left["why"] in run.screen
    for name, volume in there.items():
        assert volume["status"]["phase"] == "Released"
        ready.api.patch(f"{VOLUMES}/{name}", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    eventually(lambda: nothing_is_left(ready), "the kept volumes go, and there was nothing else")
    ready.api.gone(f"{CLASSES}/{kept}")


def test_a_node_without_csi_proxy_and_one_with_outdated_volumes_fail_and_another_passes(ready: Lab) -> None:
    ready.set_service("win-2", running=False)
    eventually(lambda: not pipes(ready, "win-2"), "the pipes of win-2 are gone")
    try:
        with ready.settings(rolled_back=("win-3",)):
            for seconds in longer(6):
                run = verify(ready, "vsphere", kubewin_verify_namespace=GIVEN, kubewin_verify_timeout=int(seconds))
                # Otherwise also nodes on which nothing is wrong had too little time.
                if not any("(waited " in by_node(run)[node].get("error", "") for node in ("win-1", "win-3")):
                    break
    finally:
        ready.set_service("win-2", running=True)
        eventually(lambda: pipes(ready, "win-2"), "the pipes of win-2 are back")
    assert run.code != 0
    proofs = by_node(run)
    assert {node: proof["verdict"] for node, proof in proofs.items()} == {
        "win-1": "proven",
        "win-2": "failed",
        "win-3": "failed",
    }
    dead, older = proofs["win-2"], proofs["win-3"]
    assert "FailedMount: MountVolume.MountDevice failed" in dead["error"]
    assert "csi-proxy-disk-v1: The system cannot find the file specified." in dead["error"]
    assert "csi-proxy does not serve that pipe on win-2: run enable_csi for its host" in dead["remedy"]
    assert older["error"].startswith('the file differs: written "20')
    assert older["error"].endswith('read "an older state"')
    assert [step["step"] for step in older["steps"] if not step["ok"]] == ["read"]
    assert all(proof["error"] in result(run)["msg"] for proof in (dead, older))
    assert result(run)["reason"] == "verify_failed"
    assert result(run)["proven"] == {"vsphere": ["win-1"]}
    assert "kubewin.csi.diagnose" in run.summary["next"][0]
    assert nothing_is_left(ready)


def test_a_missing_right_is_named_before_the_first_write(ready: Lab) -> None:
    path = f"{access.RBAC}/clusterroles/kubewin-csi-verify-pods"
    rules = ready.api.get(path)["rules"]
    ready.api.patch(path, {"rules": [rule for rule in rules if "pods/exec" not in rule["resources"]]})
    size = ready.audit_size()
    try:
        run, mistyped = verify(ready, "vsphere"), verify(ready, "vsphere", kubewin_verify_namespace="kubewin-verfiy")
    finally:
        ready.api.patch(path, {"rules": rules})
    assert result(mistyped)["msg"].startswith("Namespace kubewin-verfiy: it does not exist")
    assert run.code != 0
    refused = result(run)
    assert refused["reason"] == "forbidden"
    assert '{apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"]}' in refused["msg"]
    # The role that should have it was changed in the cluster.
    assert "kubectl create clusterrolebinding kubewin-csi-verify-pods " in refused["msg"]
    assert f"--serviceaccount={access.NAMESPACE}:{ACCOUNT}" in refused["msg"]
    assert sent(ready, size) == []


def sent(lab: Lab, since: int) -> list[str]:
    """What our account sent that could have changed something."""
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in lab.audit(f":{ACCOUNT}", since)
        if entry["verb"] not in ("get", "list", "watch") and "reviews" not in entry["requestURI"]
    ]


def begin(lab: Lab, record: Path, **variables: str) -> subprocess.Popen[str]:
    """A run in the background, as far as a pod of it that runs."""
    wanted = given(lab, "vsphere", **variables)
    process = start(PLAYBOOK, "localhost,", record=record, variables=wanted)
    running = f"/api/v1/pods?{OURS}&fieldSelector=status.phase=Running"
    meanwhile(process, lambda: lab.api.items(running), "a pod of the proof runs")
    return process


def test_an_interrupted_run_cleans_up_despite_further_interrupts(ready: Lab, tmp_path: Path) -> None:
    process = begin(ready, tmp_path / "record.jsonl", kubewin_verify_namespace=GIVEN)
    members = family(process.pid)
    # Its claim is held, so that the second signal comes while things are taken away.
    claim = ready.api.items(f"/api/v1/persistentvolumeclaims?{OURS}")[0]
    path = f"/api/v1/namespaces/{GIVEN}/persistentvolumeclaims/{claim['metadata']['name']}"
    ready.api.patch(path, {"metadata": {"finalizers": [*claim["metadata"]["finalizers"], "test/hold"]}})
    process.send_signal(signal.SIGINT)
    eventually(lambda: "deletionTimestamp" in ready.api.get(path)["metadata"], "its claim is being deleted")
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGINT)
    ready.api.patch(path, {"metadata": {"finalizers": None}})
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    eventually(lambda: nothing_is_left(ready), "all of it is gone")
    assert ready.api.ok(f"{NAMESPACES}/{GIVEN}")


def test_the_next_run_removes_leftovers_of_a_killed_run_and_never_those_of_a_live_run(
    ready: Lab, tmp_path: Path
) -> None:
    process = begin(ready, tmp_path / "record.jsonl")
    for member in family(process.pid):
        os.kill(member, signal.SIGKILL)
    process.communicate()
    (space,) = ready.api.items(f"{NAMESPACES}?{OURS}")
    name, killed = space["metadata"]["name"], space["metadata"]["labels"]["kubewin.io/verify-run"]

    # As if it were on another machine: its lease is fresh, so for all that can be known here it lives.
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/kubewin-verify-{killed}"
    ready.api.patch(lease, {"spec": {"leaseDurationSeconds": 3600, "holderIdentity": "elsewhere/1-1/1-1"}})
    size = ready.audit_size()
    simulated = verify(ready, "vsphere", arguments=("--check",))
    assert simulated.code == 0, simulated.screen
    (earlier,) = result(simulated)["earlier"]
    assert earlier["run"] == killed
    assert "renewed its lease" in earlier["lives"]
    assert (
        "vsphere on win-3: a claim of 10Gi (vsphere-csi-windows, ReadWriteOnce), written by one pod" in simulated.screen
    )
    assert sent(ready, size) == []

    ready.api.patch(lease, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 2}})
    run = verify(ready, "vsphere")
    assert run.code == 0, run.screen
    assert by_node(run)["win-1"]["verdict"] == "proven"
    assert result(run)["left"] == []
    assert result(run)["earlier"] == [{"run": killed, "namespace": name, "lives": ""}]
    assert result(run)["changed"] is True
    assert nothing_is_left(ready)


@pytest.mark.torture
def test_six_drivers_are_proven_on_every_node(ready: Lab) -> None:
    deploy(ready, *DRIVERS)
    storage_class(ready, "share", SMB.name, {"source": "//server/share"}, waits=False)
    run = verify(ready, *DRIVERS)
    assert run.code == 0, run.screen
    proofs = result(run)["proofs"]
    assert {(proof["driver"], proof["node"]) for proof in proofs} == {(key, node) for key in DRIVERS for node in NODES}
    assert {proof["verdict"] for proof in proofs} == {"proven"}
    assert nothing_is_left(ready)
