# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""enable_csi.yml asks what it would do to volumes: it stops before its first change, and at its end says who comes back.

One lab of two nodes; the tests follow one another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from integration.kube import also_holds, writes
from integration.playbooks import Run, play
from integration.storage import a_namespace, claim, storage_class
from integration.test_enable_csi import machines
from integration.test_preflight import ROLE
from lab import handle
from lab.cluster import vsphere
from lab.cluster.access import RBAC
from lab.handle import Lab, eventually

DEPLOYMENTS = "/apis/apps/v1/namespaces/stories/deployments"
ON_WIN_1 = {"vsphere_csi_node_selector": {"pool": "gold"}}
LOST = "Node win-2, driver csi.vsphere.vmware.com"


@pytest.fixture(scope="module")
def judged() -> Iterator[Lab]:
    made = handle.start(f"judged-{os.getpid()}", nodes=2)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def enabled(judged: Lab) -> Run:
    return enable(judged)


@pytest.fixture(scope="module")
def used(judged: Lab, enabled: Run) -> Iterator[None]:
    """A Deployment whose pod has a volume on win-2; win-1 alone is of the pool gold."""
    judged.api.patch("/api/v1/nodes/win-1", {"metadata": {"labels": {"pool": "gold"}}})
    with a_namespace(judged):
        claim(judged, "data", storage_class(judged, "judged", vsphere.DRIVER))
        labels = {"app": "shop"}
        spec = {
            "os": {"name": "windows"},
            "nodeSelector": {"kubernetes.io/os": "windows", "kubernetes.io/hostname": "win-2"},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "app", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "shop"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        judged.api.post(DEPLOYMENTS, body)
        eventually(lambda: judged.api.get(f"{DEPLOYMENTS}/shop")["status"].get("readyReplicas"), "the shop is open")
        yield
        judged.api.gone(f"{DEPLOYMENTS}/shop")


@pytest.fixture
def sees_all(judged: Lab) -> Iterator[None]:
    """The account of the play also holds the role of preflight.yml."""
    judged.api.ensure(f"{RBAC}/clusterroles", ROLE)
    with also_holds(judged, "kubewin-preflight"):
        yield


def enable(lab: Lab, *arguments: str, **variables: Any) -> Run:
    return play("playbooks/enable_csi.yml", lab.state.inventories["ntlm-http"], *arguments, variables=variables)


def said(run: Run) -> str:
    return "\n".join(run.summary["readiness"]["table"])


def test_an_account_with_the_small_role_enables_and_gets_what_was_not_checked(enabled: Run) -> None:
    assert enabled.code == 0, enabled.screen
    assert "could not be read: statefulsets, " in said(enabled)
    assert "ClusterRole kubewin-preflight" in said(enabled)
    assert said(enabled).splitlines()[0] in enabled.screen
    assert sorted(one["resource"] for one in enabled.summary["readiness"]["unread"]) == [
        "cronjobs",
        "csidrivers",
        "jobs",
        "namespaces",
        "replicasets",
        "replicationcontrollers",
        "runtimeclasses",
        "statefulsets",
        "storageclasses",
    ]


def test_the_summary_says_how_many_volumes_and_workloads_come_back(judged: Lab, used: None, sees_all: None) -> None:
    size = judged.audit_size()
    run = enable(judged)
    assert run.code == 0, run.screen
    assert run.changed == []
    assert said(run).splitlines() == [
        "1 of 1 volume on Windows will be served, and 1 of 1 workload there will start again after a restart",
        "the full report: ansible-playbook kubewin.csi.preflight",
    ]
    # However many plays there are, the cluster is read once.
    listed = [entry["requestURI"] for entry in judged.audit("system:serviceaccount:kubewin:kubewin", size)]
    assert len([uri for uri in listed if uri.startswith("/api/v1/persistentvolumeclaims?")]) == 1


def test_a_run_that_takes_a_volume_its_driver_away_is_refused_before_its_first_change(
    judged: Lab, used: None, sees_all: None
) -> None:
    size, before = judged.audit_size(), machines(judged)
    judged.set_service("win-1", running=False)
    stopped = machines(judged)
    run = enable(judged, **ON_WIN_1)
    assert run.code != 0
    [failure] = run.failures
    assert failure["result"]["reason"] == "not_ready"
    assert [(one["id"], one["object"]) for one in failure["result"]["blockers"]] == [("CSI-G03", LOST)]
    assert "label pool is missing, expected gold" in failure["result"]["msg"]
    assert run.plays() == ["Check the inputs", "Read hosts, Nodes and drivers and plan the changes"]
    assert writes(judged, size) == []
    # Not even csi-proxy, which it would have repaired first.
    assert machines(judged) == stopped != before


def test_what_is_accepted_or_not_asked_refuses_nothing(judged: Lab, used: None, sees_all: None) -> None:
    accepted = {"id": "CSI-G03", "object": LOST, "reason": "the shop moves tonight", "expires": "2099-01-01"}
    run = enable(judged, "--tags", "check", **ON_WIN_1, kubewin_suppressions=[accepted])
    assert run.code == 0, run.screen
    judgement = run.results("Create the readiness report")["win-1"]
    assert judgement["verdict"] == "ready"
    assert "1 finding suppressed by kubewin_suppressions" in judgement["table"]
    run = enable(judged, "--tags", "check", **ON_WIN_1, kubewin_readiness_gate="no")
    assert run.code == 0, run.screen
    assert run.results("Create the readiness report") == {}


def test_without_hosts_in_the_inventory_it_is_asked_too(judged: Lab, used: None, sees_all: None) -> None:
    config = str(judged.state.kubeconfigs["kubewin"])
    alone = {"kubewin_cluster_only": True, "kubewin_kubeconfig": config, **ON_WIN_1}
    run = play("playbooks/enable_csi.yml", "localhost,", "--tags", "check", variables=alone)
    assert run.code != 0
    assert [(one["id"], one["object"]) for one in run.failures[0]["result"]["blockers"]] == [("CSI-G03", LOST)]
