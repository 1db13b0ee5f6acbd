# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""csi-proxy 1.1.3 to 1.3.0 in one play over ten simulated hosts and two on Wine whose canary fails: it alone is touched.

The new release does not start on the canary, once a real program on Wine and once a simulated one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.playbooks import Run, play
from lab import builds, handle
from lab.cluster.nodes import Node
from lab.handle import Lab
from lab.hosts import simulated_program
from lab.windows.agent import Agent
from lab.windows.config import HostConfig
from lab.windows.wine import WineHost, base_prefix, boot_all, find_wine
from lab.windows.wsman import EndpointConfig

pytestmark = pytest.mark.torture

OLD, NEW = "1.1.3", "1.3.0"
SIMULATED, WINE = 10, 2
# What changes a host: its service, its files.
CHANGES = ("sc.exe create", "sc.exe config", "sc.exe stop", "sc.exe start", "curl.exe", "md ", "taskkill")


@dataclass(frozen=True, slots=True)
class Fleet:
    """A lab with hosts of both kinds. ports: of the Wine hosts' WinRM."""

    lab: Lab
    wine: dict[str, WineHost]
    ports: dict[str, int]
    folder: Path

    def agents(self) -> dict[str, Agent]:
        found = {host.name: self.lab.agent(host.name) for host in self.lab.state.hosts}
        return {**found, **{name: host.agent for name, host in self.wine.items()}}

    def program(self, name: str) -> dict[str, str]:
        """Where hosts get a program that is in the artifacts' folder, and its checksum."""
        file = Path(self.lab.state.artifacts[0].path).with_name(name)
        url = self.lab.state.artifacts[0].http_url.rpartition("/")[0]
        return {"csi_proxy_source": f"{url}/{name}", "csi_proxy_checksum": f"sha256:{builds.sha256(file)}"}

    def bring(self, release: str, canary: str, *, failing: bool = False, **variables: Any) -> Run:
        """Run the play with a canary of this name, every host with the program of its kind."""
        found: dict[str, Any] = yaml.safe_load(Path(self.lab.state.inventories["ntlm-http"]).read_text("utf-8"))
        windows = found["all"]["children"]["windows"]
        for name, host in self.wine.items():
            windows["hosts"][name] = {"ansible_host": host.address, "ansible_port": self.ports[name]}
        for name, programs in windows["hosts"].items():
            programs.update(self.program(f"wine-{release}.exe" if name in self.wine else f"csi-proxy-{release}.exe"))
        if failing:
            bad = "csiclient.exe" if canary in self.wine else "broken.exe"
            windows["hosts"][canary].update(self.program(bad))
        order = sorted(windows["hosts"], key=lambda name: name != canary)
        windows["hosts"] = {name: windows["hosts"][name] for name in order}
        for name in ("csi_proxy_source", "csi_proxy_checksum"):
            del found["all"]["vars"][name]
        inventory = self.folder / "inventory.yml"
        inventory.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")
        asked = {"csi_proxy_version": release, **variables}
        return play("playbooks/enable-csi.yml", inventory, "--tags", "check,proxy", variables=asked, timeout=600)

    def services(self) -> dict[str, tuple[str, str]]:
        """The command line and the process of each host's service."""

        def answer(agent: Agent, verb: str) -> str:
            return agent.run(f"sc.exe {verb} csi-proxy").stdout.decode()

        return {name: (answer(agent, "qc"), answer(agent, "queryex")) for name, agent in self.agents().items()}

    def releases(self, release: str) -> set[str]:
        """The hosts whose service is of a release."""
        return {name for name, (command, dummy) in self.services().items() if rf"\{release}-" in command}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Twelve nodes that run the old release."""
    wine, folder = find_wine(), tmp_path_factory.mktemp("fleet")
    base = base_prefix(wine, builds.cache())
    with ExitStack() as ending:
        lab = handle.start(f"many-hosts-{os.getpid()}", nodes=SIMULATED + WINE, hosts=SIMULATED)
        ending.callback(lab.stop)
        artifacts = Path(lab.state.artifacts[0].path).parent
        for release in (OLD, NEW):
            (program,) = builds.build(f"csi-proxy-{release}").values()
            shutil.copyfile(program, artifacts / f"wine-{release}.exe")
        shutil.copyfile(builds.build("csiclient")["csiclient.exe"], artifacts / "csiclient.exe")
        (artifacts / "broken.exe").write_bytes(simulated_program(NEW, start="exit:2"))
        hosts = {}
        for number in range(SIMULATED + 1, SIMULATED + WINE + 1):
            node = Node.windows_node(number)
            host = WineHost(wine, node.name, node.address, builds.cache() / "wine" / f"fleet-{os.getpid()}-{number}")
            ending.callback(shutil.rmtree, host.folder, ignore_errors=True)
            ending.callback(host.remove)
            host.create(base, builds.build("winland-windows")["winland.exe"])
            hosts[node.name] = host
        boot_all(hosts.values())
        ports = {}
        for name, host in hosts.items():
            endpoint = EndpointConfig(name=name, agent=host.agent_address, address=host.address, https=None)
            ports[name] = lab.front.add_host(HostConfig(endpoint=endpoint))["ports"]["http"]
        made = Fleet(lab, hosts, ports, folder)
        run = made.bring(OLD, "win-1", kubewin_batches="1,100%")
        assert run.code == 0, run.screen
        yield made


@pytest.mark.parametrize("canary", ["win-11", "win-1"], ids=["on Wine", "simulated"])
def test_the_canary_is_rolled_back_and_nothing_beyond_it_is_touched(fleet: Fleet, canary: str) -> None:
    before = fleet.services()
    assert len(before) == SIMULATED + WINE
    for name, agent in fleet.agents().items():
        assert "RUNNING" in before[name][1], before[name]
        assert rf"\{OLD}-" in before[name][0]
        agent.control("journal", clear=True)
    run = fleet.bring(NEW, canary, failing=True)
    assert run.code != 0
    assert {failure["host"] for failure in run.failures} == {canary}
    assert f"csi-proxy {OLD} is restored and serving" in run.failures[0]["result"]["msg"]
    after = fleet.services()
    assert after[canary][0] == before[canary][0]
    assert "RUNNING" in after[canary][1]
    for name, agent in fleet.agents().items():
        if name == canary:
            continue
        # The very same process, and no line that would have changed anything.
        assert after[name] == before[name]
        sent = [entry["line"] for entry in agent.control("journal", clear=False)["journal"]]
        assert not [line for line in sent if any(word in line for word in CHANGES)]
    node = fleet.lab.api.get(f"/api/v1/nodes/{canary}")
    assert not node["spec"].get("unschedulable")
    assert node["metadata"]["labels"]["kubewin.io/csi-proxy"] == "serving"


def test_with_a_working_program_the_same_play_deploys_it_to_all_hosts_and_back(fleet: Fleet) -> None:
    run = fleet.bring(NEW, "win-11", kubewin_batches="1,100%")
    assert run.code == 0, run.screen
    assert fleet.releases(NEW) == set(fleet.agents())
    refused = fleet.bring(OLD, "win-11")
    assert refused.code != 0
    assert "allow_downgrade" in refused.failures[0]["result"]["msg"]
    run = fleet.bring(OLD, "win-11", kubewin_batches="1,100%", kubewin_allow_downgrade="yes")
    assert run.code == 0, run.screen
    assert fleet.releases(OLD) == set(fleet.agents())
