# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upgrade.yml takes nodes out of the in-tree era while their databases write, and survives whatever ends it.

One lab for all, whose nodes get newer from story to story.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import list_role_needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import load_roles
from integration.kube import VSPHERE, applied, connect, install_csi_proxy
from integration.late_writes import Choice, accepted, first, nth
from integration.playbooks import PATIENCE, play, start
from integration.storage import NAMESPACE, PODS, make_namespace, run, storage_class
from integration.upgrade_kills import (
    PLAYBOOK,
    Instant,
    at_random,
    given,
    inventory,
    killed_and_resumed,
    under_way,
)
from integration.upgrade_late import late_upgrade, late_upgrade_by_wmco, second_of_node, upgrade_of, wmco_release
from integration.upgrade_run import follow, upgrade_call, upgrade_nodes
from integration.upgrade_tasks import TaskFile
from integration.upgrading import (
    JOURNALS,
    LEASE,
    SETS,
    Witness,
    an_account,
    change_task,
    closed,
    databases,
    disk,
    journal,
    kubelet,
    reported,
    running,
    step,
    upgrade,
    volumes,
)
from lab import handle
from lab.cluster import era, openshift, vsphere
from lab.cluster.settings import Wmco
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually, longer

NODES = ("win-1", "win-2", "win-3")
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
DATABASES = {"db-a": ("win-1", "win-2"), "db-b": ("win-2", "win-1"), "db-c": ("win-3",)}
DRIVER = "csi.vsphere.vmware.com"
IN_TREE = "kubernetes.io/vsphere-volume"


@contextlib.contextmanager
def of_wmco_8(name: str) -> Iterator[Lab]:
    """Three nodes of WMCO 8.1 with csi-proxy, each with a database on an in-tree volume; no driver."""
    lab = handle.start(f"{name}-{os.getpid()}", kubelets=dict.fromkeys(NODES, openshift.kubelet("8.1.0")))
    openshift.install(lab.api, "8.1.0")
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
    make_namespace(lab)
    with an_account(lab):
        databases(lab, DATABASES, storage_class(lab, "thin", IN_TREE, {"diskformat": "thin", "fstype": "ntfs"}))
        storage_class(lab, "fast", DRIVER)
        yield lab
    lab.stop()


def install_driver(lab: Lab) -> Lab:
    """Give it the driver, which WMCO's csi-proxy serves."""
    openshift.admit(lab.api, vsphere.NAMESPACE, VSPHERE.service_account)
    applied(connect(lab.state.kubeconfigs["admin"]), DriverRequest(csi_proxy_managed=False))
    eventually(lambda: all(lab.registered(node) for node in NODES), "the driver on every node")
    return lab


@pytest.fixture(scope="module")
def old() -> Iterator[Lab]:
    with of_wmco_8("upgrade") as lab:
        yield lab


@pytest.fixture(scope="module")
def ready(old: Lab) -> Lab:
    return install_driver(old)


NINE = {"openshift": "4.14", "wmco": "9.0.0"}


@pytest.mark.turn(0, 4)
def test_without_its_driver_an_upgrade_by_wmco_ends_before_the_first_node(old: Lab, tmp_path: Path) -> None:
    wanted = given(old, "nine", NINE, tmp_path, kubewin_upgrade_hook="wmco")
    # --check reports the same.
    for arguments in (["--check"], []):
        refused = play(PLAYBOOK, "localhost,", *arguments, variables=wanted)
        assert refused.code != 0
        (evaluated,) = [event["result"] for event in refused.failures]
        blockers = {one["id"]: one["object"] for one in evaluated["blockers"]}
        assert blockers == {"CSI-G02": f"Driver {DRIVER}"}, refused.screen
        assert bool(list(tmp_path.iterdir())) != ("--check" in arguments)
    assert closed(old) == {}
    assert not old.api.ok(f"{JOURNALS}/kubewin-upgrade-nine")
    # The next run, in another container, need not wait for it.
    assert not old.api.ok(LEASE)
    assert {kubelet(old, node) for node in NODES} == {openshift.kubelet("8.1.0")}


@pytest.mark.turn(1, 4)
def test_wmco_8_to_9_with_in_tree_volumes_by_one_command_that_is_killed_and_given_again(
    ready: Lab, tmp_path: Path
) -> None:
    """From the proof to the comparison, killed while WMCO has the canary and while it has the second node."""
    away = ("allow", "wait_ready", "gate", "verify")
    from_8_to_9(ready, tmp_path, [under_way(ready, "nine", node, away) for node in ("win-1", "win-2")])


@pytest.mark.torture
def test_wmco_8_to_9_with_in_tree_volumes_by_one_command_that_is_killed_five_times(tmp_path: Path) -> None:
    """The same killed at instants of a seed, which are those of nodes under way; in a lab of its own, since WMCO leaves 8 once."""
    with of_wmco_8("five-kills") as lab:
        from_8_to_9(install_driver(lab), tmp_path, at_random(lab, 5, 581))


def from_8_to_9(lab: Lab, folder: Path, kills: Sequence[Instant]) -> None:
    before = volumes(lab, list(DATABASES))
    assert all("vsphereVolume" in source for _uid, _name, _volume, source, _policy in before.values())
    wanted = given(
        lab, "nine", NINE, folder / "kept", kubewin_upgrade_hook="wmco", kubewin_upgrade_wait_timeout=1800,
        kubewin_upgrade_node_timeout=1800,
    )  # fmt: skip
    with (
        lab.settings(wmco=Wmco(step=0.1)),
        Witness(lab, list(DATABASES)) as witness,
        ThreadPoolExecutor(1) as beside,
    ):
        owner = beside.submit(meanwhile, lab, openshift.offer(lab.api, "9.0.0"))
        done = killed_and_resumed(lab, "nine", wanted, folder, kills)
        owner.result(60)
        for name in DATABASES:
            running(lab, name)

    assert volumes(lab, list(DATABASES)) == before
    witness.nothing_is_missing()
    for name in DATABASES:
        assert (disk(lab, name) / "kept.txt").read_text(encoding="utf-8").strip() == f"{name} was here"
    assert [witness.places(name) for name in DATABASES] == [
        ["win-1", "win-2", "win-1"],
        ["win-2", "win-1"],
        ["win-3", "win-3"],
    ]
    for node in NODES:
        observed = lab.api.get(f"/api/v1/nodes/{node}")
        assert observed["metadata"]["annotations"][openshift.VERSION] == "9.0.0"
        assert observed["metadata"]["annotations"][era.MANAGED] == "true"
        assert openshift.ALLOW not in observed["metadata"]["labels"]
    assert closed(lab) == {}
    assert not lab.api.ok(LEASE)
    assert {entry["node"]: entry["by_itself"] for entry in journal(lab, "nine")["nodes"]} == {
        "win-1": False,
        "win-2": False,
        "win-3": True,
    }
    kept = lab.api.get(f"{JOURNALS}/kubewin-upgrade-nine")["data"]
    assert "win-3 (batch 2): is done since" in kept["journal.txt"]
    assert "Z win-1: is verified with a volume" in kept["journal.txt"]
    assert "Verified and compared after the last node: 20" in kept["journal.txt"]
    assert "is unknown" not in kept["journal.txt"]
    shown = done.screen
    assert "Upgrade nine, begun" in shown
    assert "3 of 3 volumes of Windows workloads are unchanged" in shown
    assert "win-1: kubelet v1.26.9 -> v1.27.11, WMCO 8.1.0 -> 9.0.0" in done.screen
    assert "stories/db-a: no difference in what was compared; some content was not compared" in done.screen

    again = upgrade_call(lab.state.kubeconfigs["kubewin"], name="nine", hook="wmco", target=NINE)
    assert follow(again).state == "finished"
    assert not again.journal_store.written


def meanwhile(lab: Lab, plan: str) -> None:
    """What others do: the InstallPlan is approved when that is asked for; a database is stopped while WMCO has the first node.

    WMCO then begins the third node by itself. The database is started again when our run has seen that.
    """
    eventually(lambda: reported(lab, "nine", "approve its InstallPlan now"), "everything is proven", PATIENCE)
    openshift.approve(lab.api, plan)
    before = ("", "waiting", "cordon", "allow")
    eventually(lambda: step(lab, "nine", "win-1") not in before, "WMCO has the canary", PATIENCE)
    lab.api.patch(f"{SETS}/db-c", {"spec": {"replicas": 0}})
    eventually(lambda: step(lab, "nine", "win-3") not in before, "WMCO began the third node", PATIENCE)
    lab.api.patch(f"{SETS}/db-c", {"spec": {"replicas": 1}})


@pytest.fixture
def tasks(ready: Lab, tmp_path: Path) -> Path:
    """The owner's own tasks for one node."""
    path = tmp_path / "upgrade-one-node.yml"
    path.write_text(json.dumps([change_task(ready, "{{ wanted_kubelet }}")]), encoding="utf-8")
    return path


def well(lab: Lab, nodes: Sequence[str], version: str) -> None:
    """Each of these nodes has the kubelet, every node is open, the databases run, and each has what it wrote."""
    assert {kubelet(lab, node) for node in nodes} == {f"v{version}"}
    assert closed(lab) == {}
    assert not lab.api.ok(LEASE)
    for name in DATABASES:
        running(lab, name)
        code, text, errors = run(lab, f"{name}-0", "cmd", "/c", "type", "C:\\data\\kept.txt")
        assert (code, text.strip()) == (0, f"{name} was here"), errors


@pytest.mark.torture
def test_forty_runs_that_are_killed_at_random(ready: Lab, tasks: Path, tmp_path: Path) -> None:
    for seed in range(8):
        version, name, folder = f"1.{28 + seed}.9", f"killed-{seed}", tmp_path / str(seed)
        folder.mkdir()
        wanted = given(
            ready, name, {"kubelet": version}, folder / "kept", kubewin_upgrade_hook="tasks",
            kubewin_upgrade_tasks=str(tasks), wanted_kubelet=f"v{version}",
        )  # fmt: skip
        before = volumes(ready, list(DATABASES))
        with Witness(ready, list(DATABASES)) as witness:
            killed_and_resumed(ready, name, wanted, folder, at_random(ready, 5, seed))
            well(ready, NODES, version)
        witness.nothing_is_missing()
        assert volumes(ready, list(DATABASES)) == before
        assert journal(ready, name)["state"] == "finished"


def test_tasks_change_a_node_and_missing_files_are_reported(ready: Lab, tasks: Path, tmp_path: Path) -> None:
    """A user deletes a file while the node is upgraded. Before, a task file cannot be loaded."""
    broken = tmp_path / "broken.yml"
    victim = disk(ready, "db-c") / "orders.txt"
    victim.write_text("years of orders\r\n", encoding="utf-8")
    deletes = {
        "name": "Delete a file",
        "ansible.builtin.file": {"path": str(victim), "state": "absent"},
        "delegate_to": "localhost",
    }
    tasks.write_text(json.dumps([*json.loads(tasks.read_text(encoding="utf-8")), deletes]), encoding="utf-8")
    broken.write_text("- no.such.module: {}\n", encoding="utf-8")
    wanted = given(
        ready, "by-tasks", {"kubelet": "1.36"}, tmp_path / "kept", kubewin_upgrade_hook="tasks",
        kubewin_upgrade_tasks=str(tasks), kubewin_upgrade_nodes=["win-1"], wanted_kubelet="v1.36.0", kubewin_fail_on="never",
    )  # fmt: skip
    checked = play(PLAYBOOK, inventory(ready), "--check", variables={**wanted, "kubewin_upgrade_tasks": str(broken)})
    assert checked.code != 0
    assert "no.such.module" in checked.screen
    assert not ready.api.ok(f"{JOURNALS}/kubewin-upgrade-by-tasks")
    done = play(PLAYBOOK, inventory(ready), variables=wanted)
    well(ready, ["win-1"], "1.36.0")
    assert step(ready, "by-tasks", "win-1") == "done"
    assert journal(ready, "by-tasks")["nodes"][0]["tries"] == 1
    assert done.code == 2
    assert "stories/db-c: missing: orders.txt: the file is missing" in done.summary["failure"], done.screen
    assert "times.txt" not in done.summary["failure"]
    assert len(done.ends) == 1
    assert f"{NAMESPACE}/db-a: no difference in what was compared" in done.screen


def baselines(lab: Lab) -> set[str]:
    found = lab.api.items(f"{JOURNALS}?labelSelector=app.kubernetes.io/part-of=workload-data")
    return {one["metadata"]["name"] for one in found}


# With the story of WMCO before it, which ends the in-tree era of these nodes.
@pytest.mark.turn(1, 4)
def test_jobs_in_three_containers_carry_one_upgrade_out(ready: Lab, tmp_path: Path) -> None:
    """The first is killed in its owner's tasks, the second ends where a person has to look, the third compares the data.

    None has anything of the one before: another folder, another home, another process table, an empty output folder.
    """
    begun, go, hook = tmp_path / "begun", tmp_path / "go", tmp_path / "hook.yml"
    tasks_of = [
        {"name": "Begin", "ansible.builtin.file": {"path": str(begun), "state": "touch"}, "delegate_to": "localhost"},
        {
            "name": "Change the machine",
            "ansible.builtin.wait_for": {"path": str(go), "timeout": 1200},
            "delegate_to": "localhost",
        },
    ]
    hook.write_text(json.dumps(tasks_of), encoding="utf-8")
    wanted = given(
        ready, "apart", {}, None, kubewin_upgrade_hook="tasks", kubewin_upgrade_tasks=str(hook), kubewin_upgrade_pause="canary",
        kubewin_upgrade_nodes=["win-1", "win-2"],
    )  # fmt: skip

    def job(name: str, **more: Any) -> dict[str, Any]:
        folder = tmp_path / name
        return {"apart": folder, "variables": {**wanted, "kubewin_output_dir": str(folder / "kept"), **more}}

    # The upgrade before found a file missing, so its baselines stay.
    others = baselines(ready)
    before = volumes(ready, list(DATABASES))
    with Witness(ready, list(DATABASES)) as witness:
        first = start(PLAYBOOK, inventory(ready), record=tmp_path / "first.jsonl", **job("first"))
        eventually(lambda: begun.exists() or first.poll() is not None, "its tasks work", PATIENCE)
        renewed = ready.api.get(LEASE)["spec"]
        assert renewed["leaseDurationSeconds"] == 45
        # While a task works the lease is renewed.
        eventually(lambda: ready.api.get(LEASE)["spec"]["renewTime"] != renewed["renewTime"], "it is renewed", PATIENCE)
        first.kill()
        screen, _nothing = first.communicate()
        assert first.returncode == -signal.SIGKILL, screen
        go.touch()
        second = play(PLAYBOOK, inventory(ready), **job("second"))
        assert second.code == 0, second.screen
        assert "waiting up to " in second.screen
        # What continues it is ready to paste.
        assert second.summary["next"][0].endswith(" -e kubewin_upgrade_confirmed=canary"), second.screen
        assert second.summary["outcome"] == "paused"
        assert journal(ready, "apart")["state"] == "paused"
        third = play(PLAYBOOK, inventory(ready), **job("third", kubewin_upgrade_confirmed="canary"))
        assert third.code == 0, third.screen
        assert third.summary["outcome"] == "done"
        for name in DATABASES:
            running(ready, name)
    witness.nothing_is_missing()
    assert volumes(ready, list(DATABASES)) == before
    assert closed(ready) == {}
    assert not ready.api.ok(LEASE)
    found = journal(ready, "apart")
    assert (found["state"], bool(found["ended"]), [one["step"] for one in found["nodes"]]) == (
        "finished",
        True,
        ["done"] * 2,
    )
    for name in DATABASES:
        assert f"{NAMESPACE}/{name}: no difference in what was compared" in third.screen
    assert "no baseline" not in third.screen
    assert "3 of 3 volumes of Windows workloads are unchanged" in third.screen
    # Baselines are no longer needed.
    assert baselines(ready) == others


def another_run_is_refused(lab: Lab, folder: Path) -> None:
    """One upgrade of a cluster at a time, whatever it is called: the run that is at it is named, and nothing is done."""
    another = upgrade_of(lab, name="another", target={"kubelet": "1.36.9"}, holder=identify_process(os.getppid()))
    words = f"another run works on an upgrade of this cluster: {os.uname().nodename}/.* renewed its lease .* wait for it to end, then run again"
    assert re.search(words, another.lease.find_other_run())
    with pytest.raises(ClusterError, match=words):
        another.take_lease()
    refused = play(PLAYBOOK, "localhost,", variables=given(lab, "another", {"kubelet": "1.36.9"}, folder))
    (failure,) = refused.failures
    assert re.search(words, failure["result"]["msg"]), refused.screen
    assert refused.code == 2
    assert lab.api.items(PODS.replace(NAMESPACE, "kubewin")) == []
    assert not list(folder.iterdir())
    assert not lab.api.ok(f"{JOURNALS}/kubewin-upgrade-another")


@pytest.fixture
def listening(ready: Lab) -> Iterator[FaultProxy]:
    """Between a run and the API server, so that we know what it asks for."""
    with FaultProxy(ready.state) as proxy:
        yield proxy


@pytest.mark.turn(2, 4)
def test_a_node_is_waited_for_until_its_owner_has_upgraded_it_and_a_stubborn_budget_is_named(
    ready: Lab, listening: FaultProxy, tmp_path: Path
) -> None:
    """With hook none its owner upgrades the node once it is drained. The external steps in between report success.

    Every API access is checked before, so that no missing rule stops it half way.
    """
    name, node = "db-c", "win-3"
    lines, checks, other = list[str](), list[str](), tmp_path / "other"
    other.mkdir()
    options = {
        "name": "by-hand",
        "kubeconfig": listening.kubeconfig,
        "target": {"kubelet": "1.36.5"},
        "nodes": [node],
        "node_timeout": 1800,
    }

    def check(kind: str) -> None:
        checks.append(kind)
        assert closed(ready) == {node: ["upgrade by-hand"]}

    with ThreadPoolExecutor(1) as beside:
        with never_evicted(ready, name):
            waits = beside.submit(follow, upgrade_of(ready, notify=lines.append, check=check, **options))
            eventually(
                lambda: waits.done() or reported(ready, "by-hand", f"{name}-0 may not be evicted"), "it is named"
            )
        eventually(lambda: waits.done() or reported(ready, "by-hand", "its kubelet is v1."), "it waits for the node")
        another_run_is_refused(ready, other)
        upgrade(ready, node, "v1.36.5")
        assert waits.result(PATIENCE).state == "finished"
    awaited = [line for line in lines if line.startswith("waiting: ")]
    assert [
        line
        for line in awaited
        if re.fullmatch(rf"waiting: {node}: its kubelet is v1\S+ expected 1.36.5 \(.+ of 30 min\)", line)
    ]
    # Once a look would be thirty times.
    assert len(awaited) < 15, awaited
    assert checks == ["gate", "verify"]
    assert closed(ready) == {}
    assert not ready.api.ok(LEASE)
    # What a run wrote late is taken back by the next one, and an administrator's cordon is not.
    late = {"metadata": {"annotations": {"kubewin.io/cordoned": "upgrade by-hand"}}, "spec": {"unschedulable": True}}
    ready.api.patch(f"/api/v1/nodes/{node}?fieldManager=kubewin.csi", late)
    ready.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": True}})
    assert follow(upgrade_of(ready, **options)).state == "finished"
    assert closed(ready) == {"win-1": [""]}
    ready.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": False}})
    asked = {(call.verb, call.group, call.resource) for call in listening.calls if not call.resource.startswith("/")}
    looked_up = {
        (need.verb, need.group, need.resource)
        for name in ("upgrade", "records")
        for need in list_role_needs(load_roles()[f"kubewin-csi-{name}"])
    }
    assert asked <= looked_up


@contextlib.contextmanager
def never_evicted(lab: Lab, name: str) -> Iterator[None]:
    """A disruption budget that blocks every drain."""
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


def test_a_node_that_cannot_be_drained_is_uncordoned_and_the_budget_named(ready: Lab, tmp_path: Path) -> None:
    """Also after a run that was interrupted by an overloaded server: that is no budget, and the journal has the step."""
    name, node = "db-c", "win-3"
    options = {"name": "stuck", "hook": "tasks", "target": {"kubelet": "1.36.7"}, "nodes": [node], "node_timeout": 3}
    playbook, refusal = tmp_path / "busy.yml", f"pod {NAMESPACE}/{name}-0 may not be evicted"
    with never_evicted(ready, name):
        with FaultProxy(ready.state) as proxy:
            proxy.add(Fault("throttled", resources=("pods/eviction",), retry_after=3600))
            asked = {"step": "begin", "batch": [node], **options, "node_timeout": 1800, "kubeconfig": proxy.kubeconfig}
            task = {"kubewin.csi.upgrade": asked}
            here = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
            python = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
            playbook.write_text(json.dumps([{**here, "vars": python}]), encoding="utf-8")
            (busy,) = [event["result"] for event in play(str(playbook), "localhost,").failures]
        assert busy["reason"] == "too_many_requests"
        assert "The state of each node is in ConfigMap kubewin/kubewin-upgrade-stuck. Run again" in busy["msg"]
        assert closed(ready) == {node: ["upgrade stuck"]}
        for seconds in longer(3):
            stopped = follow(upgrade_of(ready, **{**options, "node_timeout": int(seconds)}))
            # Otherwise the node timed out before the eviction was refused.
            stopping = stopped.stopping
            if stopping is not None and refusal in stopping.message:
                break
    assert stopped.state == "stopped"
    assert stopping is not None
    assert stopping.id == "CSI-U03"
    assert f"{refusal}: The disruption budget {name}-stays needs 1 healthy pods" in stopping.message
    assert closed(ready) == {}
    assert not ready.api.ok(LEASE)
    beside = upgrade_of(ready, name="beside", target={"kubelet": "1.36.7"})
    beside.plan(check_mode=False)
    (left,) = [text for text in beside.journal_store.warnings if text.startswith("upgrade stuck began")]
    assert f"is not finished (stopped; {node} failed (CSI-U03))" in left
    assert "kubewin_upgrade_name=stuck" in left


@pytest.mark.parametrize(
    ("choice", "stop"),
    [(first("patch", "nodes"), True), (first("create", "pods/eviction"), False)],
    ids=["cordon-stopped", "eviction-killed"],
)
def test_a_write_that_arrives_after_another_run_finished_the_node_is_refused(
    ready: Lab, choice: Choice, stop: bool, request: pytest.FixtureRequest
) -> None:
    name = re.sub("[^a-z]+", "-", request.node.callspec.id)
    late = late_upgrade(ready, f"late-{name}", choice, stop=stop)
    assert late
    assert accepted(late) == []


@pytest.mark.torture
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_each_write_of_an_upgrade_that_arrives_after_another_run_finished_it_is_refused(ready: Lab, stop: bool) -> None:
    refused = []
    for number in itertools.count(1):
        late = late_upgrade(ready, f"each-{'stopped' if stop else 'killed'}-{number}", nth(number), stop=stop)
        if late is None:
            break
        assert accepted(late) == [], f"write {number}"
        refused += late
    kinds = {(write.call.verb, write.call.resource) for write in refused}
    assert kinds == {("create", "configmaps"), ("patch", "configmaps"), ("patch", "nodes"), ("create", "pods/eviction")}


@pytest.mark.torture
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_each_write_of_an_upgrade_by_wmco_that_arrives_after_another_run_finished_it_is_refused(
    ready: Lab, stop: bool
) -> None:
    refused = []
    with ready.settings(wmco=Wmco(step=0.1)):
        if wmco_release(ready)[0] == 8:
            # WMCO 9 waits for a label of the run, which is its second write of the Node.
            late = late_upgrade_by_wmco(ready, second_of_node(), stop=stop)
            assert late is not None
            assert accepted(late) == []
        for number in itertools.count(1):
            late = late_upgrade_by_wmco(ready, nth(number), stop=stop)
            if late is None:
                break
            assert accepted(late) == [], f"write {number}"
            refused += late
    kinds = {(write.call.verb, write.call.resource) for write in refused}
    assert kinds == {("create", "configmaps"), ("patch", "configmaps"), ("patch", "nodes")}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(1, marks=pytest.mark.turn(1, 4)),
        pytest.param(2, marks=pytest.mark.torture),
        pytest.param(3, marks=pytest.mark.torture),
    ],
)
def test_tasks_after_the_one_in_which_the_controller_slept_do_not_run(ready: Lab, tmp_path: Path, number: int) -> None:
    """Meanwhile another run took over, finished the node and uncordoned it."""
    tasks = TaskFile(ready, f"slept-{number}", tmp_path)
    tasks.until_in_task(number)
    tasks.signal(signal.SIGSTOP)
    upgrade_nodes(ready.state.kubeconfigs["kubewin"], **tasks.options)
    found = ready.api.get(f"{JOURNALS}/kubewin-upgrade-slept-{number}")
    tasks.let_end(1, 2, 3)
    tasks.signal(signal.SIGCONT)
    tasks.end()
    assert tasks.began() == [str(done + 1) for done in range(number)]
    assert closed(ready) == {}
    assert ready.api.get(f"{JOURNALS}/kubewin-upgrade-slept-{number}") == found
    assert not ready.api.ok(LEASE)


@pytest.mark.turn(0, 4)
def test_no_task_begins_after_the_process_that_keeps_the_lease_was_killed(ready: Lab, tmp_path: Path) -> None:
    tasks = TaskFile(ready, "unkept", tmp_path)
    tasks.until_in_task(1)
    tasks.kill_keeper()
    tasks.let_end(1, 2, 3)
    assert "The lease of this run was not renewed in time" in tasks.end()
    assert tasks.began() == ["1"]
    upgrade_nodes(ready.state.kubeconfigs["kubewin"], **tasks.options)
    assert closed(ready) == {}
