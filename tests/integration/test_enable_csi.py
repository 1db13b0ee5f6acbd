# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job, as an administrator lives it: plan, enable, run again, lose a service, find out, repair.

One lab: three Windows hosts, and a fourth Windows node that the inventory does not know. The tests follow one another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration import shipped
from integration.playbooks import ROOT, Run, finish, meanwhile, play, read, start
from lab import handle
from lab.handle import Lab, eventually

PLAYBOOK = "playbooks/enable-csi.yml"
PLUGIN = "app=vsphere-csi-node-windows"
READS = ("get", "list", "watch")


@pytest.fixture(scope="module")
def first() -> Iterator[Lab]:
    made = handle.start(f"first-{os.getpid()}", nodes=4, hosts=3)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def planned(first: Lab) -> Run:
    """The first run of all, in check mode; nothing in the cluster or on a host is other after it."""
    size, before = first.audit_size(), machines(first)
    run = enable(first, "--check", "--diff")
    assert writes(first, size) == []
    assert machines(first) == before
    return run


@pytest.fixture(scope="module")
def enabled(first: Lab, planned: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The first real run, after the planned one: of the tarball, in an environment that holds nothing else."""
    user = shipped.install(tmp_path_factory.mktemp("user"))
    return user.play("kubewin.csi.enable_csi", first.state.inventories["ntlm-http"])


def enable(lab: Lab, *arguments: str, transport: str = "ntlm-http", **how: Any) -> Run:
    return play(PLAYBOOK, lab.state.inventories[transport], *arguments, **how)


def writes(lab: Lab, since: int) -> list[str]:
    """Requests of the play's account that could have changed something in the cluster."""
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in lab.audit("system:serviceaccount:kubewin:kubewin", since)
        if entry["verb"] not in READS
        and "dryRun=All" not in entry["requestURI"]
        and "reviews" not in entry["requestURI"]
    ]


def machines(lab: Lab) -> dict[str, Any]:
    """Files, registry, services and processes of every simulated host, without csi-proxy's own log."""
    found = {}
    for host in lab.state.hosts:
        state = lab.agent(host.name).control("state")["state"]
        files = {path: file for path, file in state["files"].items() if not path.endswith("csi-proxy.log")}
        found[host.name] = {
            "files": files,
            **{part: state[part] for part in ("registry", "services", "processes")},
        }
    return found


def journal(lab: Lab, host: str) -> list[str]:
    return [entry["line"] for entry in lab.agent(host).control("journal")["journal"]]


def bare(line: str) -> str:
    """A line without what differs from run to run: widths of columns, seconds, and how playbook and inventory are called."""
    line = re.sub(r"^  \d+ s of ", "  SECONDS of ", line.rstrip())
    line = re.sub(r"ansible-playbook -i \S+ kubewin\.csi\.(verify)$", r"ansible-playbook \1", line)
    return re.sub(r"(?<=\S) {2,}", "  ", line)


def readme() -> list[str]:
    """What README promises of the end of a run."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (screen,) = re.findall(r"Both the demo and your run end like this[^\n]*:\n\n```text\n(.*?)```", text, re.DOTALL)
    return [bare(line) for line in screen.splitlines()]


def test_a_check_refuses_a_source_that_the_host_cannot_download(first: Lab, planned: Run) -> None:
    run = enable(first, "--check", variables={"csi_proxy_source": "http://127.0.0.1:1/csi-proxy.exe"})
    assert run.code != 0
    assert "win-1" in run.screen
    assert "could not download http://127.0.0.1:1/csi-proxy.exe: it was not transferred (curl 7)" in run.screen
    assert planned.code == 0


def test_check_mode_on_a_fresh_cluster_announces_changes_and_makes_none(planned: Run) -> None:
    assert planned.code == 0, planned.screen
    assert planned.changed


def test_the_real_run_makes_the_changes_that_check_mode_announced(planned: Run, enabled: Run) -> None:
    """The plan is the checkout's, the run that of an installed tarball."""
    assert enabled.code == 0, enabled.screen
    assert sorted(enabled.changed) == sorted(planned.changed)


def test_every_node_with_a_host_is_green_and_the_other_one_is_listed_and_left_alone(first: Lab, enabled: Run) -> None:
    rows = {row["node"]: row for row in enabled.summary["nodes"]}
    assert {name for name, row in rows.items() if row["verdict"] == "green"} == {"win-1", "win-2", "win-3"}
    assert "none of the hosts read" in rows["win-4"]["why"]
    assert {pod["spec"]["nodeName"] for pod in first.pods(PLUGIN)} == {"win-1", "win-2", "win-3"}
    assert all(first.registered(node) for node in ("win-1", "win-2", "win-3"))
    assert first.registered("win-4") is None


def test_a_second_run_writes_nothing_anywhere_and_is_short(
    first: Lab, enabled: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    size, before = first.audit_size(), machines(first)
    for host in first.state.hosts:
        first.front.counters(host.name, reset=True)
    run = enable(first)
    assert run.code == 0, run.screen
    assert run.changed == []
    assert writes(first, size) == []
    assert machines(first) == before
    # A node is read once; the play that changes csi-proxy reads it again only if the first read found a change.
    assert {first.front.counters(host.name)["shells"] for host in first.state.hosts} == {1}
    assert "Nothing was changed." in run.lines
    with capsys.disabled():
        print(f"\nlines on the screen: first install {len(enabled.lines)}, converged {len(run.lines)}")
    assert len(run.lines) <= 82, run.screen
    shown = {bare(line) for line in run.lines}
    # Here is a fourth node, which the inventory does not know, and of which volumes are evaluated, too.
    others = ("3 of 3 Windows nodes can take CSI volumes now", "Volumes, checked before the first change: ")
    promised = readme()
    assert [line for line in promised if line not in shown and not line.startswith(others)] == [], run.screen
    for other in others:
        assert any(line.startswith(other) for line in promised)
        assert any(line.startswith(other) for line in shown), run.screen


def test_a_wrong_checksum_leaves_a_serving_node_exactly_as_it_was(first: Lab, enabled: Run) -> None:
    size, before = first.audit_size(), machines(first)
    pods = {pod["metadata"]["uid"] for pod in first.pods(PLUGIN)}
    run = enable(first, variables={"csi_proxy_checksum": "0" * 64})
    assert run.code != 0, run.screen
    assert "SHA-256" in run.failures[0]["result"]["msg"], run.screen
    assert any(line for line in journal(first, "win-1") if "curl.exe" in line), (
        "it was downloaded and found to be wrong"
    )
    assert writes(first, size) == []
    assert machines(first) == before
    assert {pod["metadata"]["uid"] for pod in first.pods(PLUGIN)} == pods


# The other tags run alone elsewhere: gate below, check in test_enable_readiness, proxy in test_upgrade, driver in
# test_new_driver.
OTHERS = [pytest.param(tag, marks=pytest.mark.torture) for tag in ("check", "proxy", "driver", "gate")]


@pytest.mark.parametrize("tag", ["summary", *OTHERS])
def test_each_tag_runs_alone(first: Lab, enabled: Run, tag: str) -> None:
    run = enable(first, "--tags", tag)
    assert run.code == 0, run.screen
    assert run.changed == []


def test_limit_leaves_the_other_hosts_alone_and_lists_them(first: Lab, enabled: Run) -> None:
    run = enable(first, "--limit", "win-1")
    assert run.code == 0, run.screen
    rows = {row["node"]: row["verdict"] for row in run.summary["nodes"]}
    assert rows["win-1"] == "green"
    assert set(rows) == {"win-1", "win-2", "win-3", "win-4"}
    assert "green" not in (rows["win-2"], rows["win-3"], rows["win-4"])


def test_a_stopped_service_makes_the_gate_red_although_its_pod_stays_ready(
    first: Lab, enabled: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    first.set_service("win-2", running=False)
    run = enable(first, "--tags", "gate", variables={"kubewin_gate_timeout": 5})
    assert run.code != 0
    (pod,) = [pod for pod in first.pods(PLUGIN) if pod["spec"]["nodeName"] == "win-2"]
    assert handle.ready(pod)
    failure = run.ends[-1]["failure"]
    assert "win-2" in failure
    assert "csi-proxy" in failure
    assert {row["node"]: row["verdict"] for row in run.summary["nodes"]}["win-2"] == "red"
    # The end of the output, before what Ansible prints of the last task: the cause and the next command, and no result longer than a screen is wide and high.
    end = "\n".join(run.lines[-30:])
    assert "csi-proxy" in end
    assert "win-2" in end
    assert "kubewin.csi.enable_csi" in run.screen
    assert max(map(len, run.lines)) < 2000
    with capsys.disabled():
        print(f"\nlines on the screen: a gate that fails {len(run.lines)}")


def test_its_pod_once_deleted_crash_loops_and_the_gate_names_node_pipe_and_remedy(first: Lab, enabled: Run) -> None:
    (pod,) = [pod for pod in first.pods(PLUGIN) if pod["spec"]["nodeName"] == "win-2"]
    first.delete_pod(pod)

    def crash_loops() -> bool:
        found = [pod for pod in first.pods(PLUGIN) if pod["spec"].get("nodeName") == "win-2"]
        return any(handle.waiting_reason(pod, "vsphere-csi-node") == "CrashLoopBackOff" for pod in found)

    eventually(crash_loops, "the plugin pod on win-2 crash-loops")
    run = enable(first, "--tags", "gate", variables={"kubewin_gate_timeout": 5})
    assert run.code != 0
    (gated,) = run.failures[0]["result"]["results"]
    message = gated["msg"]
    assert "win-2" in message
    assert "csi-proxy-" in message
    remedies = [
        problem["remedy"] for node in gated["gate"]["nodes"] if node["node"] == "win-2" for problem in node["problems"]
    ]
    assert all(remedies)
    assert remedies


def test_running_again_repairs_it(first: Lab, enabled: Run) -> None:
    run = enable(first)
    assert run.code == 0, run.screen
    assert {row["node"] for row in run.summary["nodes"] if row["verdict"] == "green"} == {"win-1", "win-2", "win-3"}


def test_a_run_whose_csi_proxy_another_run_changed_fails(first: Lab, enabled: Run, tmp_path: Path) -> None:
    agent, record = first.agent("win-1"), tmp_path / "record.jsonl"
    stop = r"C:\Windows\System32\sc.exe stop csi-proxy"
    agent.run(stop)
    process = start(PLAYBOOK, first.state.inventories["ntlm-http"], record=record)
    applied = "Apply the differences"
    meanwhile(process, lambda: any(applied in one.get("task", "") for one in read(record)), "the driver is applied")
    agent.run(stop)
    run = finish(process, record)
    assert run.code != 0, run.screen
    assert "win-1: csi-proxy 1.3.0 (" in run.screen
    assert "which this run installed: another run or user changed it meanwhile" in run.screen
    again = enable(first)
    assert again.code == 0, again.screen


@pytest.mark.torture
def test_running_again_makes_a_plugin_that_stayed_ready_open_the_new_pipes(first: Lab, enabled: Run) -> None:
    before = {pod["metadata"]["uid"] for pod in first.pods(PLUGIN) if pod["spec"]["nodeName"] == "win-2"}
    first.set_service("win-2", running=False)
    run = enable(first)
    assert run.code == 0, run.screen
    after = {pod["metadata"]["uid"] for pod in first.pods(PLUGIN) if pod["spec"].get("nodeName") == "win-2"}
    assert after
    assert after.isdisjoint(before)
