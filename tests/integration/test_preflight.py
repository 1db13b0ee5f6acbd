# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight.yml on a real API server: its permissions, its report without them, and disturbances."""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import client
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from integration.kube import connect
from integration.playbooks import ROOT, Run, play
from lab.cluster.access import RBAC
from lab.cluster.api import ApiError, kubeconfig
from lab.faultproxy import Fault, FaultProxy
from lab.handle import PATIENCE, Lab, eventually

SHIPPED = ROOT / "roles" / "csi_driver" / "files" / "kubewin-preflight-rbac.yaml"
ROLE: dict[str, Any] = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
# One rule a resource, so that each can be taken away.
ROLE["rules"] = [{**rule, "resources": [one]} for rule in ROLE["rules"] for one in rule["resources"]]
PATH = f"{RBAC}/clusterroles/kubewin-preflight"
NAMESPACE = "preflight"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:reader"
# Only a cluster of OpenShift serves these; there a rule is missed in the same way.
OPENSHIFT = ("clusterversions", "clusterserviceversions")
# Asked only where it has to be, which a test of its own brings about.
REVISIONS = "controllerrevisions"
# A webhook that no pod asks. Its Service is read.
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WEBHOOK: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "preflight"},
    "webhooks": [
        {
            "name": "pods.preflight.example.com",
            "clientConfig": {"service": {"namespace": NAMESPACE, "name": "gone"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"example.com/asks": "true"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
RULES = [rule for rule in ROLE["rules"] if rule["resources"][0] not in (*OPENSHIFT, REVISIONS)]


@pytest.fixture(scope="module")
def token(lab: Lab) -> Iterator[str]:
    """An account that holds the shipped role and nothing else."""
    api = lab.api
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubewin-preflight"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubewin-preflight"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}],
    }
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    api.ensure(f"{RBAC}/clusterroles", ROLE)
    api.ensure(f"{RBAC}/clusterrolebindings", binding)
    api.ensure(WEBHOOKS, WEBHOOK)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    yield str(api.post(f"{accounts}/reader/token", request)["status"]["token"])
    api.gone(f"{WEBHOOKS}/preflight")
    api.gone(f"{RBAC}/clusterrolebindings/kubewin-preflight")
    api.gone(PATH)
    api.gone(f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture(scope="module")
def config(lab: Lab, token: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its kubeconfig."""
    path = tmp_path_factory.mktemp("preflight") / "reader.yaml"
    content = kubeconfig(lab.state.server, Path(lab.state.ca), "reader", {"token": token})
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@pytest.fixture
def lost(lab: Lab, token: str) -> Iterator[str]:
    """A Deployment that is to run on Windows, and names a claim that is not there."""
    spec = {
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "containers": [{"name": "main", "image": "registry.example.com/shop:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "lost"}}],
    }
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": spec}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "shop"}}, "template": template},
    }
    eventually(lambda: lab.api.ok(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), "the default account")
    lab.api.post(path, deployment)
    yield f"PersistentVolumeClaim {NAMESPACE}/lost"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    lab.api.gone(f"{path}/shop")
    eventually(lambda: not lab.api.get(pods)["items"], "its pods are gone")


def preflight(lab: Lab, config: str, *arguments: str, inventory: str = "", **variables: Any) -> Run:
    given = {"kubewin_kubeconfig": config, **variables}
    hosts = inventory or lab.state.inventories["basic-http"]
    return play("playbooks/preflight.yml", hosts, *arguments, variables=given)


def result(run: Run) -> dict[str, Any]:
    """What the evaluating task returned, failed or not."""
    for event in run.events:
        if event.get("action", "").endswith("preflight_info") and "result" in event and "verdict" in event["result"]:
            found: dict[str, Any] = event["result"]
            return found
    raise AssertionError(f"nothing was evaluated:\n{run.screen}")


def differing(one: Snapshot, other: Snapshot) -> dict[str, Any]:
    """Differences between two snapshots, except their time."""
    names = [field.name for field in fields(Snapshot) if field.name != "taken_at"]
    both = {name: (getattr(one, name), getattr(other, name)) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def at_rest(config: str) -> bool:
    """Whether nothing changes: a lab that has just come up is not done with its nodes."""
    before = take(connect(config))
    threading.Event().wait(1)
    return not differing(take(connect(config)), before)


def test_a_run_only_reads_and_the_shipped_role_is_enough(lab: Lab, config: str, tmp_path: Path) -> None:
    size = lab.audit_size()
    folder = tmp_path / "made" / "by it"
    # As one gives a path on a command line: of where the run is started, not of where the playbook is.
    given = {"kubewin_output_dir": os.path.relpath(folder, ROOT)}
    run = preflight(lab, os.path.relpath(config, ROOT), **given)
    assert run.code == 0, run.screen
    assert run.changed == []
    found = result(run)
    assert found["unread"] == []
    assert {path.name for path in folder.iterdir()} == {
        "readiness.json",
        "readiness.html",
        "snapshot.json",
    }
    report = json.loads((folder / "readiness.json").read_text(encoding="utf-8"))
    assert report["cluster"] == "lab"
    assert {node["node"] for node in report["nodes"]} == {name for name in lab.state.nodes if name.startswith("win-")}
    assert f"written to {folder / 'readiness.html'}" in run.screen
    sent = lab.audit(ACCOUNT, size)
    assert {entry["verb"] for entry in sent} <= {"get", "list", "watch"}
    lists = [entry["requestURI"] for entry in sent if entry["verb"] == "list"]
    assert any("/api/v1/pods?" in uri and "resourceVersionMatch=Exact" in uri for uri in lists)
    assert all("limit=500" in uri for uri in lists)
    assert not [entry["requestURI"] for entry in sent if "resourceVersion=0" in entry["requestURI"]]


def test_an_unreachable_host_is_unproven_and_stops_no_other(lab: Lab, config: str, tmp_path: Path) -> None:
    known = yaml.safe_load(Path(lab.state.inventories["basic-http"]).read_text(encoding="utf-8"))
    known["all"]["children"]["windows"]["hosts"]["win-2"]["ansible_port"] = 9
    broken = tmp_path / "inventory.yml"
    broken.write_text(yaml.safe_dump(known), encoding="utf-8")
    run = preflight(lab, config, inventory=str(broken), kubewin_output_dir=str(tmp_path / "out"))
    assert run.code == 0, run.screen
    saved = json.loads((tmp_path / "out" / "snapshot.json").read_text(encoding="utf-8"))
    observed = {host["node"]: host for host in saved["hosts"]}
    assert set(observed) == {name for name in lab.state.nodes if name.startswith("win-")}
    assert observed["win-2"]["serving"] is None
    assert "Nothing listens on" in observed["win-2"]["reason"]
    assert observed["win-1"]["serving"] is not None


def test_a_blocker_fails_the_run_and_what_was_written_can_be_evaluated_again(
    lab: Lab, config: str, lost: str, tmp_path: Path
) -> None:
    run = preflight(lab, config, kubewin_output_dir=str(tmp_path))
    assert run.code != 0
    [failure] = run.failures
    assert failure["result"]["reason"] == "not_ready"
    assert lost in [one["object"] for one in failure["result"]["blockers"]]
    assert (tmp_path / "readiness.html").exists()
    # The report is read once: its verdict opens and closes it, and what helps is in no other words on the screen.
    assert run.screen.count("NOT READY: ") == 2
    assert run.screen.count("DO   BECAUSE OF A") == 1
    assert '"remedy"' not in run.screen

    # Elsewhere, where no cluster is, with the blocker accepted.
    accepted = {"id": "CSI-V27", "object": lost, "reason": "made by the next job", "expires": "2099-01-01"}
    again = preflight(
        lab,
        "/nowhere/kubeconfig",
        kubewin_snapshot_from=os.path.relpath(tmp_path / "snapshot.json", ROOT),
        kubewin_suppressions=[accepted],
    )
    assert again.code == 0, again.screen
    assert result(again)["counts"]["blocker"] == 0
    assert result(again)["taken_at"] == failure["result"]["taken_at"]


def test_in_check_mode_it_evaluates_the_same_and_writes_nothing(
    lab: Lab, config: str, lost: str, tmp_path: Path
) -> None:
    run = preflight(
        lab,
        config,
        "--check",
        kubewin_output_dir=str(tmp_path / "none"),
        kubewin_fail_on="never",
    )
    assert run.code == 0, run.screen
    assert result(run)["verdict"] == "blocked"
    assert lost in [one["object"] for one in result(run)["blockers"]]
    assert not (tmp_path / "none").exists()
    assert result(run)["ansible_stats"]["data"]["kubewin_preflight"]["verdict"] == "blocked"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["resources"][0])
def test_a_missing_rule_is_named_and_what_depends_on_it_is_not_ready(
    lab: Lab, config: str, rule: dict[str, Any]
) -> None:
    [resource] = rule["resources"]
    [verb] = rule["verbs"]
    lab.api.patch(PATH, {"rules": [one for one in ROLE["rules"] if one is not rule]})
    try:
        found = eventually(lambda: _with_unread(config), f"{resource} may not be read")
        assert {one.resource for one in found.unread} == {resource}
        assert f'resources: ["{resource}"], verbs: ["{verb}"]' in found.unread[0].rule
        report = evaluate(found)
        assert report.verdict != "ready"
        assert resource in {one.object for one in report.findings if one.id == "CSI-C01"}
    finally:
        lab.api.patch(PATH, {"rules": ROLE["rules"]})
        eventually(lambda: not take(connect(config)).unread, "the rules are back")


def test_no_pod_is_sure_to_start_where_the_api_server_asks_a_webhook_without_its_service(
    lab: Lab, config: str, lost: str
) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}"
    pod = {"metadata": {"name": "asked"}, "spec": {"containers": [{"name": "main", "image": "example.com/shop:1"}]}}
    lab.api.patch(path, {"metadata": {"labels": {"example.com/asks": "true"}}})
    try:
        eventually(lambda: _is_refused(lab, f"{path}/pods", pod), "the API server asks the webhook")
        causes = [finding for finding in evaluate(take(connect(config))).findings if finding.id == "CSI-W21"]
        assert any("has to accept new pods, and its Service preflight/gone" in finding.message for finding in causes)
    finally:
        lab.api.patch(path, {"metadata": {"labels": {"example.com/asks": None}}})


def _is_refused(lab: Lab, path: str, pod: dict[str, Any]) -> bool:
    try:
        lab.api.post(f"{path}?dryRun=All", pod)
    except ApiError as error:
        return "pods.preflight.example.com" in str(error)
    return False


@pytest.fixture
def rolled_back(lab: Lab) -> Iterator[str]:
    """A node plugin whose template was changed and restored under OnDelete, its pods left alone; its key."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
    labels = {"app": "by-hand"}
    directory = {"path": "C:\\var\\lib\\kubelet\\plugins\\csi.vsphere.vmware.com\\"}
    spec = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.example.com/plugin:1"}],
        "volumes": [{"name": "plugin", "hostPath": directory}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"selector": {"matchLabels": labels}, "updateStrategy": {"type": "OnDelete"}, "template": template}
    lab.api.post(path, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "by-hand"}, "spec": body})
    eventually(lambda: lab.api.get(f"{path}/by-hand")["status"].get("numberReady"), "its pods run")
    for seconds in (60, None):
        changed = {"terminationGracePeriodSeconds": seconds}
        lab.api.patch(f"{path}/by-hand", {"spec": {"template": {"spec": changed}}})
        eventually(lambda: _observed(lab, f"{path}/by-hand"), "the change is observed")
    yield f"DaemonSet {NAMESPACE}/by-hand"
    lab.api.gone(f"{path}/by-hand")


def _observed(lab: Lab, path: str) -> bool:
    found = lab.api.get(path)
    return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])


def test_pods_match_a_restored_template_and_without_the_rule_that_is_unknown(
    lab: Lab, config: str, rolled_back: str
) -> None:
    found = take(connect(config))
    [template] = [one for one in found.templates if one.key == rolled_back]
    pods = [pod.plugin for pod in found.pods if pod.owner == "DaemonSet/by-hand"]
    assert template.plugin is not None
    assert [pod.template_generation for pod in pods if pod is not None] == ["1"] * len(lab.state.hosts)
    assert template.plugin.template_generation == "3"
    assert all(pod is not None and template.plugin.is_current(pod) for pod in pods)
    [rule] = [one for one in ROLE["rules"] if one["resources"] == [REVISIONS]]
    lab.api.patch(PATH, {"rules": [one for one in ROLE["rules"] if one is not rule]})
    try:
        unread = eventually(lambda: _with_unread(config), "they may not be read").unread
        assert [one.resource for one in unread] == [REVISIONS]
        assert 'apiGroups: ["apps"], resources: ["controllerrevisions"], verbs: ["list"]' in unread[0].rule
    finally:
        lab.api.patch(PATH, {"rules": ROLE["rules"]})
        eventually(lambda: not take(connect(config)).unread, "the rules are back")


def _with_unread(config: str) -> Snapshot | None:
    found = take(connect(config))
    return found if found.unread else None


@pytest.mark.parametrize("compacted", [False, True], ids=["restarted", "restarted, and its history is gone"])
def test_an_api_server_that_dies_in_the_middle_is_waited_for(
    lab: Lab, token: str, config: str, monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    """Killed after the pods were read and before the volumes; compaction takes away the moment that was being read."""
    eventually(lambda: at_rest(config), "two equal snapshots a second apart")
    monkeypatch.setattr(client, "PAGE", 2)
    with FaultProxy(lab.state, token, ACCOUNT) as proxy:
        before = take(connect(proxy.kubeconfig))
        proxy.add(Fault("throttled", resources=("persistentvolumes",), retry_after=1))
        found: list[Snapshot] = []
        reader = threading.Thread(target=lambda: found.append(take(connect(proxy.kubeconfig, retry_for=PATIENCE))))
        reader.start()
        eventually(lambda: proxy.hits("persistentvolumes"), "the pass waits before the volumes")
        lab.call("stop", name="apiserver")
        proxy.clear()
        if compacted:
            compact(lab)
        lab.call("start", name="apiserver")
        reader.join(PATIENCE)
        listed = [call.resource for call in proxy.calls].count("nodes")
    assert found
    assert differing(found[0], before) == {}
    pages = -(-len(lab.state.nodes) // 2)
    assert listed == pages * (3 if compacted else 2)


def compact(lab: Lab) -> None:
    """Forget all of etcd's history."""
    endpoint = f"http://127.0.0.1:{lab.state.ports['etcd']}"

    def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{endpoint}{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            output: dict[str, Any] = json.load(answer)
            return output

    # A write of ours, so that the moment which is being read is no longer the newest.
    revision = ask("/v3/kv/put", {"key": "a3ViZXdpbg==", "value": "eA=="})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})
