# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upgrade.yml takes nodes with running workloads through the upgrade that their owner makes, and survives whatever ends it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.kube import also_holds, applied, connect, install_csi_proxy, label
from integration.playbooks import ROOT, Run, play, start
from integration.storage import NAMESPACE, a_namespace, claim, phase, run, storage_class
from integration.upgrading import kubelet
from lab import handle
from lab.handle import Lab, eventually

PLAYBOOK = "playbooks/upgrade.yml"
NODES = ("win-1", "win-2", "win-3")
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
JOURNALS = "/api/v1/namespaces/kubewin/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
DATABASES = ("db-a", "db-b")
DRIVER = "csi.vsphere.vmware.com"


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Three nodes with the vSphere driver, two databases with a volume each, and an account for upgrades."""
    lab = handle.start(f"upgrade-{os.getpid()}")
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
        label(lab, host.node)
    applied(connect(lab.state.kubeconfigs["admin"]))
    eventually(lambda: all(lab.registered(node) for node in NODES), "the driver on every node")
    with contextlib.ExitStack() as stack:
        stack.enter_context(also_holds(lab, "kubewin-csi-proof"))
        stack.enter_context(also_holds(lab, "kubewin-csi-upgrade"))
        stack.enter_context(a_namespace(lab))
        fast = storage_class(lab, "fast", DRIVER)
        for name in DATABASES:
            claim(lab, name, fast)
            lab.api.post(SETS, database(name))
        eventually(lambda: all(phase_of(lab, name) == "Running" for name in DATABASES), "the databases run")
        for name in DATABASES:
            assert run(lab, f"{name}-0", "cmd", "/c", f">C:\\data\\kept.txt echo {name} was here")[0] == 0
        yield lab
        for name in DATABASES:
            lab.api.gone(f"{SETS}/{name}")
    lab.stop()


def database(name: str) -> dict[str, Any]:
    """One pod that keeps its volume wherever it goes."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "os": {"name": "windows"},
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "tolerations": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "app",
                    "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                    "volumeMounts": [{"name": "data", "mountPath": "C:\\data"}],
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def phase_of(lab: Lab, name: str) -> str:
    pods = lab.pods(f"app={name}", NAMESPACE)
    return phase(lab, pods[0]["metadata"]["name"]) if pods else ""


@pytest.fixture
def tasks(ready: Lab, tmp_path: Path) -> Path:
    """The owner's own tasks for one node."""
    path = tmp_path / "upgrade-one-node.yml"
    words = [
        sys.executable,
        "-m",
        "integration.upgrading",
        ready.name,
        "{{ node_upgrade_node }}",
        "{{ wanted_kubelet }}",
    ]
    task = {
        "name": "Change the machine",
        "ansible.builtin.command": {"argv": words, "chdir": str(ROOT / "tests")},
        "environment": {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / '.collections'}"},
        "changed_when": True,
    }
    path.write_text(json.dumps([task]), encoding="utf-8")
    return path


def given(lab: Lab, name: str, version: str, tasks: Path | None, output: Path | None, **more: Any) -> dict[str, Any]:
    return {
        "kubewin_kubeconfig": lab.state.kubeconfigs["kubewin"],
        "kubewin_drivers": ["vsphere"],
        "kubewin_upgrade_name": name,
        "kubewin_upgrade_target": {"kubelet": version},
        "kubewin_verify_namespace": "kubewin",
        "kubewin_verify_step_timeout": 30,
        "kubewin_verify_parallel": 3,
        "wanted_kubelet": f"v{version}.0",
        **({"kubewin_upgrade_hook": "tasks", "kubewin_upgrade_tasks": str(tasks)} if tasks else {}),
        **({"kubewin_output_dir": str(output)} if output else {}),
        **more,
    }


def journal(lab: Lab, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.api.get(f"{JOURNALS}/kubewin-upgrade-{name}")["data"]["journal.json"])
    return found


def cordoned(lab: Lab) -> dict[str, str]:
    """Why each cordoned node is, by the mark of whoever closed it."""
    found = {node: lab.api.get(f"/api/v1/nodes/{node}") for node in NODES}
    return {
        name: (node["metadata"].get("annotations") or {}).get("kubewin.io/cordoned", "")
        for name, node in found.items()
        if node["spec"].get("unschedulable")
    }


def well(lab: Lab, version: str) -> None:
    """Every node has the kubelet and is open, the databases run, and each has what it wrote."""
    assert {kubelet(lab, node) for node in NODES} == {f"v{version}.0"}
    assert cordoned(lab) == {}
    assert not lab.api.ok(LEASE)
    for name in DATABASES:
        eventually(lambda name=name: phase_of(lab, name) == "Running", f"{name} runs")  # type: ignore[misc]  # bound at once
        code, text, errors = run(lab, f"{name}-0", "cmd", "/c", "type", "C:\\data\\kept.txt")
        assert (code, text.strip()) == (0, f"{name} was here"), errors


def result(run: Run) -> dict[str, Any]:
    """Of the last call."""
    found = [event["result"] for event in run.events if event["action"].endswith("node_upgrade") and "result" in event]
    answer: dict[str, Any] = found[-1]
    return answer


def test_nodes_are_upgraded_by_their_owners_tasks_one_by_one(ready: Lab, tasks: Path, tmp_path: Path) -> None:
    wanted = given(ready, "first", "1.37", tasks, tmp_path / "kept")
    look = play(PLAYBOOK, "localhost,", "--check", variables=wanted)
    assert look.code == 0, look.screen
    assert (
        "each: closed for workloads, then emptied, then changed by the tasks, then awaited back, then gated"
        in look.screen
    )
    assert not ready.api.ok(f"{JOURNALS}/kubewin-upgrade-first")

    begun = time.monotonic()
    done = play(PLAYBOOK, "localhost,", variables=wanted)
    print(f"whole upgrade: {time.monotonic() - begun:.0f} s")
    assert done.code == 0, done.screen
    well(ready, "1.37")
    kept = journal(ready, "first")
    assert kept["state"] == "finished"
    assert [entry["tries"] for entry in kept["nodes"]] == [1, 1, 1]
    assert "2 of 2 volumes of Windows workloads are the same as before" in done.screen
    assert "win-1: kubelet v1.36.3 -> v1.37.0" in done.screen
    for which in ("json", "txt"):
        copy = (tmp_path / "kept" / f"upgrade-first.{which}").read_text(encoding="utf-8")
        assert copy == ready.api.get(f"{JOURNALS}/kubewin-upgrade-first")["data"][f"journal.{which}"]
    told = ready.api.get(f"{JOURNALS}/kubewin-upgrade-first")["data"]["journal.txt"]
    assert "win-3 (batch" in told
    assert "Z win-1: canary" in told

    again = play(PLAYBOOK, "localhost,", variables=wanted)
    assert again.code == 0, again.screen
    assert again.changed == []
