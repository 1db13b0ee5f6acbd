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
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC, Upgrade
from integration.kube import also_holds, applied, connect, install_csi_proxy, label
from integration.playbooks import ROOT, Run, family, finish, play, read, start
from integration.storage import NAMESPACE, a_namespace, claim, phase, run, storage_class
from integration.upgrading import kubelet, upgrade
from lab import handle
from lab.cluster import access
from lab.handle import Lab, eventually

PLAYBOOK = "playbooks/upgrade.yml"
PREFLIGHT = ROOT / "roles" / "csi_driver" / "files" / "kubewin-preflight-rbac.yaml"
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
        for role in yaml.safe_load_all(PREFLIGHT.read_text(encoding="utf-8")):
            lab.api.ensure(f"{access.RBAC}/clusterroles", role)
        stack.enter_context(also_holds(lab, "kubewin-preflight"))
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


def killed(lab: Lab, wanted: dict[str, Any], events: int, record: Path) -> bool:
    """A run that is killed, with all that came of it, once it has said so much; False when it ended before."""
    process = start(PLAYBOOK, "localhost,", record=record, variables=wanted)
    eventually(lambda: len(read(record)) >= events or process.poll() is not None, f"{events} events", timeout=120)
    ended = process.poll() is not None
    for member in family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    screen, _nothing = process.communicate()
    assert not ended or process.returncode == 0, screen
    return not ended


def nothing_is_closed_unsaid(lab: Lab, name: str) -> None:
    """Whatever a dead run left: each cordon is ours, is in the journal, and is the only one."""
    closed = cordoned(lab)
    assert set(closed.values()) <= {f"upgrade {name}"}
    assert len(closed) <= 1
    if closed:
        steps = {entry["node"]: entry["step"] for entry in journal(lab, name)["nodes"]}
        assert not {steps[node] for node in closed} & {"waiting", "done"}


def killed_and_resumed(lab: Lab, tasks: Path, folder: Path, version: str, kills: int, seed: int) -> Run:
    """An upgrade whose runs are killed at random until it was often enough, and the run that ends it."""
    print(f"seed {seed}")
    chance, name = random.Random(seed), f"killed-{version}"
    wanted = given(lab, name, version, tasks, folder / "kept")
    for number in range(kills):
        events = chance.randrange(4, 40)
        was = killed(lab, wanted, events, folder / f"{number}.jsonl")
        nothing_is_closed_unsaid(lab, name)
        print(f"kill {number + 1} after event {events}: {'killed' if was else 'it had ended'}")
    done = play(PLAYBOOK, "localhost,", variables=wanted)
    assert done.code == 0, done.screen
    well(lab, version)
    assert journal(lab, name)["state"] == "finished"
    return done


def test_an_upgrade_by_its_owners_tasks_survives_runs_that_are_killed(ready: Lab, tasks: Path, tmp_path: Path) -> None:
    looked = upgrade_of(ready, name="killed-1.37", hook="tasks", target={"kubelet": "1.37"}).plan()
    assert looked["plan"][-1].startswith(
        "each: closed for workloads, then emptied, then changed by the tasks, then awaited back"
    )
    assert not ready.api.ok(f"{JOURNALS}/kubewin-upgrade-killed-1.37")

    done = killed_and_resumed(ready, tasks, tmp_path, "1.37", kills=5, seed=random.SystemRandom().randrange(10**6))
    assert "2 of 2 volumes of Windows workloads are the same as before" in done.screen
    assert "win-1: kubelet v1.36.3 -> v1.37.0" in done.screen
    kept = ready.api.get(f"{JOURNALS}/kubewin-upgrade-killed-1.37")["data"]
    for which in ("json", "txt"):
        assert (tmp_path / "kept" / f"upgrade-killed-1.37.{which}").read_text(encoding="utf-8") == kept[
            f"journal.{which}"
        ]
    assert "): is done since" in kept["journal.txt"]
    assert "Z win-1: canary" in kept["journal.txt"]

    again = upgrade_of(ready, name="killed-1.37", hook="tasks", target={"kubelet": "1.37"})
    assert again.go_on()[0]["outcome"] == "finished"
    assert not again.pages.written


@pytest.mark.torture
def test_forty_runs_that_are_killed_at_random(ready: Lab, tasks: Path, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed_and_resumed(ready, tasks, folder, f"1.{40 + number}", kills=5, seed=seed + number)


def test_a_node_is_waited_for_and_a_second_run_and_a_stubborn_budget_are_named(
    ready: Lab, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With hook none its owner upgrades the node once it is empty, here while the run waits."""
    name = DATABASES[0]
    (pod,) = ready.pods(f"app={name}", NAMESPACE)
    node = pod["spec"]["nodeName"]
    wanted = given(ready, "by-hand", "1.60", None, None, kubewin_upgrade_nodes=[node])
    record = tmp_path / "record.jsonl"
    with never_evicted(ready, name):
        process = start(PLAYBOOK, "localhost,", record=record, variables=wanted)
        request.addfinalizer(process.kill)
        eventually(lambda: told(ready, "by-hand", f"{name}-0 may not be evicted"), "the budget is named", timeout=90)
        second = play(PLAYBOOK, "localhost,", variables={**wanted, "kubewin_upgrade_name": "another"})
    assert second.code != 0
    (refused,) = [event["result"] for event in second.failures]
    assert f"another run is at an upgrade of this cluster: {os.uname().nodename}/" in refused["msg"]
    assert "gave its last sign of life" in refused["msg"]
    eventually(lambda: told(ready, "by-hand", "its kubelet is v1."), "it waits for the node", timeout=60)
    upgrade(ready, node, "v1.60.0")
    done = finish(process, record)
    assert done.code == 0, done.screen
    assert kubelet(ready, node) == "v1.60.0"
    assert cordoned(ready) == {}
    assert not ready.api.ok(LEASE)


@contextlib.contextmanager
def never_evicted(lab: Lab, name: str) -> Iterator[None]:
    """A budget of somebody who did not think of upgrades."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{name}-stays"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    }
    path = f"{BUDGETS}/{name}-stays"
    lab.api.ensure(BUDGETS, body)
    eventually(lambda: (lab.api.get(path).get("status") or {}).get("currentHealthy") == 1, "the budget counts")
    try:
        yield
    finally:
        lab.api.gone(path)


def told(lab: Lab, name: str, words: str) -> bool:
    """Whether the journal says so to people."""
    path = f"{JOURNALS}/kubewin-upgrade-{name}"
    return lab.api.ok(path) and words in lab.api.get(path)["data"]["journal.txt"]


def test_a_node_that_cannot_be_emptied_is_given_back_and_the_budget_named(ready: Lab) -> None:
    name = DATABASES[1]
    (pod,) = ready.pods(f"app={name}", NAMESPACE)
    node = pod["spec"]["nodeName"]
    options = {"name": "stuck", "target": {"kubelet": "1.70"}, "nodes": [node], "node_timeout": 3}
    with never_evicted(ready, name):
        looked = upgrade_of(ready, **options).plan()
        stopped, journal_of = upgrade_of(ready, **options).go_on()
    refusal = f"pod {NAMESPACE}/{name}-0 may not be evicted"
    assert any(
        line.startswith(f"{node}: {refusal} now: The disruption budget {name}-stays needs 1") for line in looked["plan"]
    )
    assert stopped["outcome"] == "stopped"
    assert journal_of.stopping is not None
    assert journal_of.stopping.id == "CSI-U03"
    assert f"{refusal}: The disruption budget {name}-stays needs 1 healthy pods" in journal_of.stopping.message
    assert cordoned(ready) == {}
    assert not ready.api.ok(LEASE)


def upgrade_of(lab: Lab, **options: Any) -> Upgrade:
    """The module's work in this process, as the lab's account."""
    defaults = {key: option.get("default") for key, option in ARGUMENT_SPEC.items()}
    params = {**defaults, "holder": holder_of(os.getpid()), **options}
    return Upgrade(connect(lab.state.kubeconfigs["kubewin"]), params, threading.Event())
