# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play stops at the first doubt: what is lost stays alone, whatever Ansible itself thinks of unreachable hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from integration.playbooks import lines, play
from lab import handle
from lab.handle import Lab
from lab.windows.faults import Rule

PLAYBOOK = "playbooks/enable-csi.yml"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    made = handle.start(f"fleet-{os.getpid()}", nodes=3)
    yield made
    made.stop()


def changing(lab: Lab, host: str) -> list[str]:
    """Command lines that reached a host and change something there."""
    lines = [entry["line"] for entry in lab.agent(host).control("journal", clear=False)["journal"]]
    return [line for line in lines if any(word in line for word in ("sc.exe create", "curl.exe", "/inheritance"))]


@pytest.mark.parametrize(
    ("cut", "untouched", "cores"),
    [
        # What Ansible itself thinks of a lost host differs from line to line.
        pytest.param("win-1", ("win-2", "win-3"), lines(), id="the canary"),
        pytest.param("win-2", ("win-3",), lines()[:1], id="a host of the second batch"),
        pytest.param(
            "win-2", ("win-3",), lines()[1:], id="a host of the second batch, older lines", marks=pytest.mark.torture
        ),
    ],
)
def test_a_host_that_loses_its_connection_stops_the_run(
    fleet: Lab, cut: str, untouched: tuple[str, ...], cores: list[str]
) -> None:
    for core in cores:
        for host in fleet.state.hosts:
            agent = fleet.agent(host.name)
            agent.control("journal", clear=True)
            # The node as new: what an earlier line installed is gone.
            agent.control("restore", id="new")
            fleet.front.clear_faults(host.name)
        fleet.front.add_fault(cut, Rule("request_lost", match="sc\\.exe create", for_good=True))
        run = play(PLAYBOOK, fleet.state.inventories["ntlm-http"], core=core, variables={"kubewin_batches": "1,1"})
        fleet.front.clear_faults(cut)
        assert run.code != 0, f"ansible-core {core}:\n{run.screen}"
        assert {failure["event"] for failure in run.failures} == {"failed"}, run.screen
        assert run.failures[0]["host"] == cut
        assert run.failures[0]["result"]["reason"] == "connection_lost"
        for host_name in untouched:
            assert changing(fleet, host_name) == [], f"ansible-core {core}"
        assert run.plays()[-1].startswith("Run csi-proxy"), f"ansible-core {core}:\n{run.screen}"


@pytest.fixture(autouse=True, scope="module")
def new_machines(fleet: Lab) -> None:
    """Keep every simulated machine as it was before the first run."""
    for host in fleet.state.hosts:
        fleet.agent(host.name).control("snapshot", id="new")


def test_the_next_run_finishes(fleet: Lab) -> None:
    run = play(PLAYBOOK, fleet.state.inventories["ntlm-http"], variables={"kubewin_batches": "1,100%"})
    assert run.code == 0, run.screen
    assert {row["verdict"] for row in run.summary["nodes"]} == {"green"}


def test_an_unreachable_host_fails_the_check_unless_it_is_to_be_left_out(fleet: Lab) -> None:
    fleet.front.add_fault("win-3", Rule("request_lost", operation="", for_good=True))
    refused = play(PLAYBOOK, fleet.state.inventories["ntlm-http"])
    assert refused.code != 0
    assert "win-3" in refused.failures[0]["result"]["msg"]
    assert refused.changed == []
    run = play(PLAYBOOK, fleet.state.inventories["ntlm-http"], variables={"kubewin_skip_unreachable": "yes"})
    fleet.front.clear_faults("win-3")
    assert run.code == 0, run.screen
    rows = {row["node"] or row["host"]: row for row in run.summary["nodes"]}
    assert {name for name, row in rows.items() if row["verdict"] == "green"} == {"win-1", "win-2"}
    assert "unreachable" in rows["win-3"]["why"]


def test_a_run_that_can_read_no_host_fails_although_hosts_may_be_left_out(fleet: Lab) -> None:
    for host in fleet.state.hosts:
        fleet.front.add_fault(host.name, Rule("request_lost", operation="", for_good=True))
    inventory, skip = fleet.state.inventories["ntlm-http"], {"kubewin_skip_unreachable": "yes"}
    status = play("playbooks/status.yml", inventory)
    deploy = play(PLAYBOOK, inventory, "--tags", "driver", variables=skip)
    removal = play("playbooks/remove.yml", inventory, variables={**skip, "kubewin_remove_csi_proxy": "yes"})
    for host in fleet.state.hosts:
        fleet.front.clear_faults(host.name)
    assert status.code != 0, status.screen
    assert "win-1, win-2, win-3: not read, expected at least one Windows host that can be read." in status.screen
    for run in (deploy, removal):
        assert run.code != 0, run.screen
        (message,) = {failure["result"]["msg"] for failure in run.failures} - {
            "The run failed, for the reason printed above."
        }
        assert "win-1, win-2, win-3: left out because they are unreachable, expected at least one host" in message
        assert run.changed == []
