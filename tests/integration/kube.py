# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster side of the collection against the lab's API server, in this process: what the modules and roles do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.observe import read_snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan, plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import Evaluation, GateRules
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate import wait_for_gate
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.observe import RolloutTarget, RolloutView
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier, Outcome
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import create_client
from lab.cluster import vsphere
from lab.handle import PATIENCE, Lab, eventually
from unit.roles.rendering import render

VSPHERE = DRIVERS["vsphere"]
PROVEN = "kubewin.io/csi-proxy"
ACCOUNT = "system:serviceaccount:kubewin:kubewin"
PLUGIN = f"app={VSPHERE.app_label}"
PIPES = VSPHERE.modes[0].pipes
RULES = GateRules()


def connect(kubeconfig: str, retry_for: float = 20) -> Client:
    """A client as the modules make it."""
    return create_client(lambda: get_api_client(kubeconfig=kubeconfig), retry_for)


def planned(client: Client, wanted: DriverRequest | None = None, *, driver: Driver = VSPHERE) -> DriverPlan:
    """What driver_info returns."""
    desired = wanted or DriverRequest()
    return plan_driver(driver, desired, read_snapshot(client, driver, desired))


def applied(
    client: Client, wanted: DriverRequest | None = None, *, check: bool = False, driver: Driver = VSPHERE
) -> Outcome:
    """What the role's entry point apply does."""
    made = planned(client, wanted, driver=driver)
    assert made.deployable, made.refusal
    applier = Applier(client)
    return applier.plan(render(made)) if check else applier.apply(render(made))


def gate(
    client: Client, hosts: Iterable[dict[str, Any]] = (), seconds: float = PATIENCE, rules: GateRules = RULES
) -> Evaluation:
    """What gate does, until it is settled or the time is over."""
    target = RolloutTarget(VSPHERE, vsphere.NAMESPACE, VSPHERE.daemonset)
    facts = [ObservedHost.from_option(host) for host in hosts]
    return wait_for_gate(RolloutView(client, target, facts), rules, seconds, lambda _evaluation: None)


def text(evaluation: Evaluation, node: str) -> str:
    """All problems of a node, as one text."""
    found = next(one for one in evaluation.nodes if one.node == node)
    return "\n".join(f"{problem.message} -> {problem.remedy}" for problem in found.problems)


def pipes(lab: Lab, host: str) -> list[str]:
    """The pipes of csi-proxy that a host lists."""
    listed = lab.agent(host).run(r"dir \\.\pipe\\csi-proxy-* /b").stdout.decode()
    return sorted(line.strip() for line in listed.splitlines() if line.strip().startswith("csi-proxy-"))


def host_facts(lab: Lab, hosts: Iterable[str]) -> list[dict[str, Any]]:
    """What a play would make of csi_proxy_info for these hosts."""
    now = datetime.now(timezone.utc).isoformat()
    found = []
    for host in hosts:
        there = pipes(lab, host)
        serving = all(pipe in there for pipe in PIPES)
        state = "RUNNING" if serving else "STOPPED"
        found.append({"node": host, "observed_at": now, "serving": serving, "state": state, "pipes": there})
    return found


def install_csi_proxy(lab: Lab, host: str) -> None:
    """Put csi-proxy on a host with nothing but its own tools, and wait for its pipes."""
    agent = lab.agent(host)
    fetched = agent.run(rf"curl.exe -sf -o C:\csi-proxy.exe {lab.state.artifacts[-1].http_url}")
    assert fetched.rc == 0, fetched
    command = r'binPath= "C:\csi-proxy.exe -windows-service -log_file=C:\csi-proxy.log -logtostderr=false"'
    made = agent.run(f"sc.exe create csi-proxy {command} start= auto")
    assert made.rc == 0, made
    lab.set_service(host, running=True)
    eventually(lambda: all(pipe in pipes(lab, host) for pipe in PIPES), f"the pipes of {host}")


def writes(lab: Lab, since: int) -> list[str]:
    """What our account sent that could have changed something."""
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in lab.audit(ACCOUNT, since)
        if entry["verb"] not in ("get", "list", "watch")
        and "dryRun=All" not in entry["requestURI"]
        and "reviews" not in entry["requestURI"]
    ]


@contextmanager
def also_holds(lab: Lab, name: str, binding_name: str = "") -> Iterator[None]:
    """The account also holds another ClusterRole for the length of a block, through a binding of the same or another name."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": binding_name or name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "kubewin", "namespace": "kubewin"}],
    }
    lab.api.ensure(path, binding)
    try:
        yield
    finally:
        lab.api.gone(f"{path}/{binding_name or name}")


def cluster_objects(lab: Lab) -> AbstractContextManager[None]:
    """The account may make what usually belongs to the driver's own installation."""
    return also_holds(lab, "kubewin-csi-cluster-objects")


def label(lab: Lab, node: str, value: str | None = "serving") -> None:
    """Mark a node as the play does once its pipes were proven."""
    lab.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {PROVEN: value}}})


def remove_driver(lab: Lab) -> None:
    """Take away everything that the role applies, and the marks on nodes."""
    namespaced = f"namespaces/{vsphere.NAMESPACE}"
    rbac, account = "/apis/rbac.authorization.k8s.io/v1", VSPHERE.service_account
    for path in (
        f"/apis/apps/v1/{namespaced}/daemonsets/{VSPHERE.daemonset}",
        f"/api/v1/{namespaced}/serviceaccounts/{account}",
        f"{rbac}/{namespaced}/rolebindings/{account}",
        f"{rbac}/{namespaced}/roles/{account}",
        f"{rbac}/clusterrolebindings/{account}",
        f"{rbac}/clusterroles/{account}",
        f"/apis/storage.k8s.io/v1/storageclasses/{VSPHERE.storage_class.name}",
    ):
        lab.api.gone(path)
    for node in [name for name in lab.state.nodes if name.startswith("win-")]:
        label(lab, node, None)
    path = f"/api/v1/namespaces/{vsphere.NAMESPACE}/pods?labelSelector={PLUGIN}"
    eventually(lambda: not lab.api.items(path), "no plugin pod left")
