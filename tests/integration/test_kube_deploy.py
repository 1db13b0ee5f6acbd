# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning and applying a driver on a real API server: writes, refusals and errors of faults."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease import upgrade_lease
from integration.kube import VSPHERE, applied, cluster_objects, connect, planned, remove_driver, writes
from integration.late_writes import HoldingProxy, LateWrite, accepted, nth
from integration.playbooks import play
from lab.cluster import vsphere
from lab.cluster.api import APPLY, Object
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually
from unit.roles.rendering import render

DAEMON_SET = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets/{VSPHERE.daemonset}"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture
def clean(lab: Lab) -> Iterator[Lab]:
    """The lab without our driver, before and after."""
    remove_driver(lab)
    yield lab
    remove_driver(lab)


@pytest.fixture
def may_create(lab: Lab) -> Iterator[None]:
    with cluster_objects(lab):
        yield


@pytest.fixture
def proxy(lab: Lab) -> Iterator[FaultProxy]:
    with FaultProxy(lab.state) as made:
        yield made


def kubewin(lab: Lab) -> str:
    return lab.state.kubeconfigs["kubewin"]


ROLE_PLAY = """
- hosts: localhost
  gather_facts: false
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  module_defaults:
    group/kubewin.csi.cluster: {kubeconfig: "{{ inline | default(omit) }}"}
  tasks:
    - ansible.builtin.include_role: {name: kubewin.csi.csi_driver, tasks_from: apply}
      vars: {csi_driver_name: vsphere}
"""


def test_the_role_plans_what_it_does_and_a_second_run_writes_nothing(clean: Lab, tmp_path: Path) -> None:
    playbook = tmp_path / "role.yml"
    playbook.write_text(ROLE_PLAY, encoding="utf-8")
    env = {"K8S_AUTH_KUBECONFIG": kubewin(clean)}

    def run(*arguments: str) -> tuple[list[Object], list[str]]:
        size = clean.audit_size()
        done = play(str(playbook), "localhost,", *arguments, env=env)
        assert done.code == 0, done.screen
        objects = done.results("Apply the differences")["localhost"]["objects"]
        return objects, writes(clean, size)

    foreseen, written = run("--check", "--diff")
    assert written == []
    made, written = run()
    assert made == foreseen
    assert len(written) == len([one for one in made if one["action"] == "create"]) == 7
    again, written = run()
    assert written == []
    assert {one["action"] for one in again} == {"none"}
    # A kubeconfig given as what it holds renders the same objects: none of its texts is hidden in what is applied.
    inline = json.dumps({"inline": yaml.safe_load(Path(kubewin(clean)).read_text(encoding="utf-8"))})
    env.clear()
    again, written = run("-e", inline)
    assert written == []
    assert {one["action"] for one in again} == {"none"}


@pytest.mark.usefixtures("may_create")
def test_a_namespace_of_our_own_is_planned_unseen_and_then_made(clean: Lab) -> None:
    wanted = DriverRequest(namespace="kubewin-fresh", create_cluster_objects=True)
    client = connect(kubewin(clean))
    # Rules that write name their objects, so that another name is refused before anything is tried.
    refusal = planned(client, wanted).refusal
    assert "if the name is mistyped, correct it (the driver's namespace is vmware-system-csi)" in refusal
    # Everything else is allowed, so no role is to be bound.
    assert refusal.endswith("otherwise: kubectl create namespace kubewin-fresh")
    fresh = {
        "apiGroups": [""],
        "resources": ["namespaces"],
        "resourceNames": ["kubewin-fresh"],
        "verbs": ["create", "patch"],
    }
    with changed(clean, "kubewin-csi-vsphere", lambda rules: [*rules, fresh]):
        _planned_unseen_and_then_made(clean, client, wanted)


def _planned_unseen_and_then_made(clean: Lab, client: Client, wanted: DriverRequest) -> None:
    foreseen = applied(client, wanted, check=True)
    assert clean.api.ok("/api/v1/namespaces/kubewin-fresh") is False
    unseen = {change.kind for change in foreseen.changes if not change.validated}
    assert unseen == {"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "DaemonSet"}
    try:
        made = applied(client, wanted)
        assert [change.action for change in made.changes] == [change.action for change in foreseen.changes]
        assert all(change.validated for change in made.changes)
        labels = clean.api.get("/api/v1/namespaces/kubewin-fresh")["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
        size = clean.audit_size()
        assert not applied(client, wanted).changed
        assert writes(clean, size) == []
    finally:
        clean.api.gone("/api/v1/namespaces/kubewin-fresh")
        eventually(lambda: not clean.api.ok("/api/v1/namespaces/kubewin-fresh"), "the namespace gone")


def test_only_the_object_that_differs_is_written(clean: Lab) -> None:
    client = connect(kubewin(clean))
    applied(client)
    size = clean.audit_size()
    outcome = applied(client, DriverRequest(resources={"driver": {"limits": {"memory": "600Mi"}}}))
    assert [(one.kind, one.action) for one in outcome.changes if one.action != "none"] == [("DaemonSet", "update")]
    assert len(writes(clean, size)) == 1
    assert "600Mi" in str(outcome.changes[-1].diff()["after"])


def test_a_removed_object_is_created_again(clean: Lab) -> None:
    client = connect(kubewin(clean))
    applied(client)
    clean.api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{VSPHERE.service_account}")
    outcome = applied(client)
    assert [(one.kind, one.action) for one in outcome.changes if one.action != "none"] == [("ClusterRole", "create")]


def late_deployment(lab: Lab, number: int) -> list[LateWrite] | None:
    """That write of a deployment, sent on after another run deployed; None if there are fewer."""
    others = DriverRequest(resources={"driver": {"limits": {"memory": "600Mi"}}})
    with HoldingProxy(lab.state, nth(number)) as proxy, ThreadPoolExecutor() as pool:
        first = pool.submit(applied, connect(proxy.kubeconfig))
        eventually(lambda: proxy.held.is_set() or first.done(), "it makes the write or ends")
        if not proxy.held.is_set():
            return None
        applied(connect(kubewin(lab)), others)
        late = list(proxy.release())
        first.result()
        return late


def test_no_write_of_a_first_deployment_is_accepted_after_another_run_deployed(clean: Lab) -> None:
    refused: list[LateWrite] = []
    while late := late_deployment(clean, len(refused) + 1):
        assert accepted(late) == []
        refused += late
        remove_driver(clean)
    assert len(refused) == 7


@contextlib.contextmanager
def changed(lab: Lab, role: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Iterator[None]:
    """One of the shipped roles has other rules."""
    path = f"{CLUSTER_ROLES}/{role}"
    before = lab.api.get(path)["rules"]
    lab.api.patch(path, {"rules": change(before)})
    try:
        yield
    finally:
        lab.api.patch(path, {"rules": before})


def without(verb: str, resource: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Rules that no longer allow something."""
    return lambda rules: [
        {**rule, "verbs": [one for one in rule["verbs"] if one != verb or resource not in rule["resources"]]}
        for rule in rules
    ]


def test_missing_permissions_are_all_named_before_anything_is_tried(clean: Lab) -> None:
    with (
        changed(clean, "kubewin-csi-deploy", without("create", "daemonsets")),
        changed(
            clean, "kubewin-csi-vsphere", lambda rules: [one for one in rules if one["resources"] != ["storageclasses"]]
        ),
    ):
        made = planned(connect(kubewin(clean)))
        assert not made.deployable
        for resource, verbs in (("daemonsets", '"create"'), ("storageclasses", '"create", "patch"')):
            assert re.search(
                rf'resources: \["{resource}"\], resourceNames: \["[^"]*"\], verbs: \[{verbs}\]', made.refusal
            )
        assert made.refusal.count("apiGroups") == 2


def test_the_shipped_rules_are_enough_and_name_no_more_than_is_needed(lab: Lab) -> None:
    made = planned(connect(kubewin(lab)))
    assert made.deployable, made.refusal
    shipped = Path(__file__).parents[2] / "roles" / "csi_driver" / "files" / "kubewin-rbac.yaml"
    for role in yaml.safe_load(shipped.read_text(encoding="utf-8"))["items"]:
        assert not [rule for rule in role["rules"] if "*" in str(rule) or "escalate" in rule["verbs"]]


def test_a_conflict_names_the_other_manager_and_leaves_everything_as_it_was(clean: Lab) -> None:
    client = connect(kubewin(clean))
    objects = render(planned(client))
    other = next(item for item in objects if item["kind"] == "StorageClass")
    path = f"/apis/storage.k8s.io/v1/storageclasses/{other['metadata']['name']}"
    theirs = {**other, "allowVolumeExpansion": False, "metadata": {"name": other["metadata"]["name"]}}
    clean.api.patch(f"{path}?fieldManager=helm", theirs, APPLY)
    size = clean.audit_size()
    with pytest.raises(ClusterError) as raised:
        Applier(client).apply(objects)
    assert raised.value.reason == "conflict"
    assert '"helm" owns .allowVolumeExpansion' in str(raised.value)
    assert writes(clean, size) == []
    forced = Applier(client, force=True).apply(objects)
    assert ("StorageClass", "update") in [(one.kind, one.action) for one in forced.changes]


def test_429_is_retried_after_the_servers_delay(clean: Lab, proxy: FaultProxy) -> None:
    proxy.add(Fault("throttled", verbs=("patch",), resources=("daemonsets",), times=1, retry_after=2))
    client = connect(proxy.kubeconfig)
    started = time.monotonic()
    assert applied(client).changed
    assert time.monotonic() - started >= 2
    assert proxy.hits("daemonsets") == 1


def test_429_with_a_delay_beyond_the_timeout_fails_at_once(clean: Lab, proxy: FaultProxy) -> None:
    proxy.add(Fault("throttled", verbs=("list",), resources=("nodes",), retry_after=3600))
    with pytest.raises(ClusterError, match="throttled requests until the timeout") as raised:
        planned(connect(proxy.kubeconfig, retry_for=5))
    assert raised.value.reason == "too_many_requests"
    assert proxy.hits("nodes") == 1


@pytest.mark.parametrize(
    "fault", [Fault("error", status=503, times=2), Fault("drop", times=2), Fault("drop", after=True, times=1)]
)
def test_a_request_to_a_failing_server_is_retried(clean: Lab, proxy: FaultProxy, fault: Fault) -> None:
    fault.resources = ("daemonsets",)
    proxy.add(fault)
    assert applied(connect(proxy.kubeconfig)).changed
    assert not applied(connect(kubewin(clean))).changed


def test_a_controller_that_is_not_there_is_refused_with_where_to_get_it(lab: Lab) -> None:
    with lab.without("Deployment", "vsphere-csi-controller"):
        made = planned(connect(kubewin(lab)))
        assert not made.deployable
        assert "found no Deployment vsphere-csi-controller" in made.refusal
        assert "docs.vmware.com" in made.refusal


PLAN_PLAY = """
- hosts: localhost
  gather_facts: false
  vars: {vsphere_csi_node_selector: {pool: storage}}
  tasks:
    - name: Plan
      kubewin.csi.driver_info:
"""


def test_a_plan_without_a_driver_is_for_the_only_one_that_is_installed_and_else_asks(lab: Lab, tmp_path: Path) -> None:
    playbook = tmp_path / "plan.yml"
    playbook.write_text(PLAN_PLAY, encoding="utf-8")
    env = {"K8S_AUTH_KUBECONFIG": kubewin(lab)}
    run = play(str(playbook), "localhost,", env=env)
    assert run.code == 0, run.screen
    driver_plan = run.results("Plan")["localhost"]["driver_plan"]
    assert (driver_plan["driver"], driver_plan["settings"]["node_selector"]["pool"]) == ("vsphere", "storage")
    with lab.without("Deployment", "vsphere-csi-controller"):
        run = play(str(playbook), "localhost,", env=env)
    assert run.code != 0
    assert "driver is not set: the cluster has no controller of a known driver" in run.screen


@pytest.mark.usefixtures("may_create")
@pytest.mark.parametrize("kind", ["CSIDriver", "ConfigMap"])
def test_missing_objects_of_the_installation_are_refused_or_created_on_request(clean: Lab, kind: str) -> None:
    name = VSPHERE.name if kind == "CSIDriver" else vsphere.FEATURES
    with clean.without(kind, name):
        client = connect(kubewin(clean))
        assert name in planned(client).refusal
        outcome = applied(client, DriverRequest(create_cluster_objects=True))
        assert (kind, "create") in [(one.kind, one.action) for one in outcome.changes]
        assert not applied(client, DriverRequest(create_cluster_objects=True)).changed
        path = {
            "CSIDriver": f"/apis/storage.k8s.io/v1/csidrivers/{name}",
            "ConfigMap": f"/api/v1/namespaces/{vsphere.NAMESPACE}/configmaps/{name}",
        }[kind]
        clean.api.gone(path)


def test_a_namespace_that_refuses_privileged_pods_is_refused_with_the_command(lab: Lab) -> None:
    path = f"/api/v1/namespaces/{vsphere.NAMESPACE}"
    level = "pod-security.kubernetes.io/enforce"
    lab.api.patch(path, {"metadata": {"labels": {level: "baseline"}}})
    try:
        made = planned(connect(kubewin(lab)))
        assert f"kubectl label namespace {vsphere.NAMESPACE} {level}=privileged --overwrite" in made.refusal
    finally:
        lab.api.patch(path, {"metadata": {"labels": {level: "privileged"}}})


def test_an_upstream_daemon_set_under_our_name_is_never_touched(clean: Lab) -> None:
    client = connect(kubewin(clean))
    theirs = next(item for item in render(planned(client)) if item["kind"] == "DaemonSet")
    theirs["metadata"]["labels"] = {}
    theirs["spec"]["template"]["metadata"]["labels"].pop("app.kubernetes.io/managed-by")
    made = clean.api.post(DAEMON_SET.rsplit("/", 1)[0], theirs)
    refused = planned(client)
    assert not refused.deployable
    assert "is not created by this collection" in refused.refusal
    assert clean.api.get(DAEMON_SET)["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_namespace_that_is_being_deleted_is_refused_before_anything_is_to_be_kept_there(lab: Lab) -> None:
    """With the Lease of upgrade.yml and convert_volumes.yml in the namespaces of their journals and records."""
    client = connect(lab.state.kubeconfigs["admin"])
    name, path = "leaving", "/api/v1/namespaces/leaving"
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    lab.api.ensure(f"{path}/configmaps", held)
    try:
        lab.api.delete(path)
        with pytest.raises(ClusterError, match="namespace leaving because it is being terminated"):
            upgrade_lease(client, name, "me").take()
    finally:
        lab.api.patch(f"{path}/configmaps/held", {"metadata": {"finalizers": None}})
    eventually(lambda: not lab.api.ok(path), "it is gone")
