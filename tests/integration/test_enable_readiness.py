# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""enable_csi.yml evaluates its effect on volumes: it stops before its first change, and reports at its end what will start again.

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
def evaluated() -> Iterator[Lab]:
    made = handle.start(f"evaluated-{os.getpid()}", nodes=2)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def enabled(evaluated: Lab) -> Run:
    return enable(evaluated)


@pytest.fixture(scope="module")
def used(evaluated: Lab, enabled: Run) -> Iterator[None]:
    """A Deployment whose pod has a volume on win-2; win-1 alone is of the pool gold."""
    evaluated.api.patch("/api/v1/nodes/win-1", {"metadata": {"labels": {"pool": "gold"}}})
    with a_namespace(evaluated):
        claim(evaluated, "data", storage_class(evaluated, "evaluated", vsphere.DRIVER))
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
        evaluated.api.post(DEPLOYMENTS, body)
        eventually(lambda: evaluated.api.get(f"{DEPLOYMENTS}/shop")["status"].get("readyReplicas"), "the shop is open")
        yield
        evaluated.api.gone(f"{DEPLOYMENTS}/shop")


@pytest.fixture
def sees_all(evaluated: Lab) -> Iterator[None]:
    """The account of the play also holds the role of preflight.yml."""
    evaluated.api.ensure(f"{RBAC}/clusterroles", ROLE)
    with also_holds(evaluated, "kubewin-preflight"):
        yield


def enable(lab: Lab, *arguments: str, **variables: Any) -> Run:
    return play("playbooks/enable_csi.yml", lab.state.inventories["ntlm-http"], *arguments, variables=variables)


def summary_of(run: Run) -> str:
    return "\n".join(run.summary["readiness"]["table"])


def test_an_account_with_the_small_role_enables_and_gets_what_was_not_checked(enabled: Run) -> None:
    assert enabled.code == 0, enabled.screen
    assert "could not be read: statefulsets, " in summary_of(enabled)
    assert "ClusterRole kubewin-preflight" in summary_of(enabled)
    assert summary_of(enabled).splitlines()[0] in enabled.screen
    assert sorted(one["resource"] for one in enabled.summary["readiness"]["unread"]) == [
        "cronjobs",
        "csidrivers",
        "jobs",
        "limitranges",
        "mutatingwebhookconfigurations",
        "namespaces",
        "poddisruptionbudgets",
        "priorityclasses",
        "replicasets",
        "replicationcontrollers",
        "resourcequotas",
        "runtimeclasses",
        "serviceaccounts",
        "statefulsets",
        "storageclasses",
        "validatingwebhookconfigurations",
    ]


def test_the_summary_counts_volumes_and_workloads_that_will_start_again(
    evaluated: Lab, used: None, sees_all: None
) -> None:
    size = evaluated.audit_size()
    run = enable(evaluated)
    assert run.code == 0, run.screen
    assert run.changed == []
    assert summary_of(run).splitlines() == [
        "Ready, if 3 assumptions hold: The only workload will start again.",
        "the full report: run the playbook kubewin.csi.preflight with the same inventory",
    ]
    # However many plays there are, the cluster is read once.
    listed = [entry["requestURI"] for entry in evaluated.audit("system:serviceaccount:kubewin:kubewin", size)]
    assert len([uri for uri in listed if uri.startswith("/api/v1/persistentvolumeclaims?")]) == 1


def test_a_run_that_leaves_a_volume_without_its_driver_is_refused_before_its_first_change(
    evaluated: Lab, used: None, sees_all: None
) -> None:
    size, before = evaluated.audit_size(), machines(evaluated)
    evaluated.set_service("win-1", running=False)
    stopped = machines(evaluated)
    run = enable(evaluated, **ON_WIN_1)
    assert run.code != 0
    [failure] = run.failures
    assert failure["result"]["reason"] == "not_ready"
    assert [(one["id"], one["object"]) for one in failure["result"]["blockers"]] == [("CSI-G03", LOST)]
    assert "label pool is missing, expected gold" in failure["result"]["msg"]
    assert run.plays() == ["Check the inputs", "Read hosts, Nodes and drivers and plan the changes"]
    assert writes(evaluated, size) == []
    # Not even csi-proxy, which it would have repaired first.
    assert machines(evaluated) == stopped != before


def test_an_accepted_finding_or_a_run_that_only_reports_refuses_nothing(
    evaluated: Lab, used: None, sees_all: None
) -> None:
    accepted = {"id": "CSI-G03", "object": LOST, "reason": "the shop moves tonight", "expires": "2099-01-01"}
    run = enable(evaluated, "--tags", "check", **ON_WIN_1, kubewin_suppressions=[accepted])
    assert run.code == 0, run.screen
    evaluation = run.results("Fail if volumes would lose their driver")["win-1"]
    assert evaluation["verdict"] == "ready"
    assert "1 finding suppressed by kubewin_suppressions" in evaluation["table"]
    run = enable(evaluated, "--tags", "check", **ON_WIN_1, kubewin_fail_on="never")
    assert run.code == 0, run.screen
    [blocker] = run.results("Fail if volumes would lose their driver")["win-1"]["blockers"]
    assert blocker["id"] == "CSI-G03"


def test_the_readiness_gate_also_runs_without_hosts(evaluated: Lab, used: None, sees_all: None) -> None:
    config = str(evaluated.state.kubeconfigs["kubewin"])
    alone = {"kubewin_cluster_only": True, "kubewin_kubeconfig": config, **ON_WIN_1}
    run = play("playbooks/enable_csi.yml", "localhost,", "--tags", "check", variables=alone)
    assert run.code != 0
    assert [(one["id"], one["object"]) for one in run.failures[0]["result"]["blockers"]] == [("CSI-G03", LOST)]
