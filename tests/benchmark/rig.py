# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the comparisons run on: modelled hosts behind one WS-Man server, and ``ansible-playbook`` measured from outside.

Both sides pass through the same server, which counts requests and bytes. Hosts named ``ours-N`` lead to the lab's
simulated Windows userland, hosts named ``peer-N`` to the PowerShell stand-in.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

from lab.builds import build
from lab.state import REPOSITORY, LabError
from lab.windows.agent import Agent
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontProcess
from lab.windows.simulated import SimulatedServer
from lab.windows.wsman import EndpointConfig

Side = Literal["ours", "peer"]
PLAYBOOKS = Path(__file__).resolve().parent / "playbooks"
USER = "Administrator"
_LISTEN = re.compile(r"^LISTEN (\S+)$")
_RECAP = re.compile(r"^(?P<host>\S+)\s+: ok=\d+\s+changed=(?P<changed>\d+)\s+unreachable=0\s+failed=0\s", re.MULTILINE)
_PLAY_SECONDS = 3600


class BenchmarkError(Exception):
    """A run that was to be measured did not do what it should."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, all hosts together. ``sent`` is what the controller sent, ``cpu`` the controller's seconds of CPU."""

    hosts: int
    requests: int
    sent: int
    received: int
    starts: int
    seconds: float
    cpu: float
    changed: int
    waits: int
    """requests that only asked again for output"""

    @property
    def bytes(self) -> int:
        return self.sent + self.received

    def per_host(self, value: float) -> float:
        return value / self.hosts


class Rig:
    """Servers and hosts of one benchmark run; leaves with the ``with`` block."""

    def __init__(self, folder: Path, artifacts: Path) -> None:
        self.folder = folder
        self._artifacts = artifacts
        self._stack = contextlib.ExitStack()
        self._password = secrets.token_urlsafe(16)
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Rig:
        with contextlib.ExitStack() as stack:
            self.standin = stack.enter_context(_standin(self.folder))
            program = build("winland-linux")["winland"]
            self.simulated = stack.enter_context(SimulatedServer(program, self.folder))
            config = FrontConfig(
                ready_file=str(self.folder / "front.json"),
                users={USER: self._password},
                artifacts=ArtifactsConfig(root=str(self._artifacts)),
            )
            self.front = stack.enter_context(FrontProcess(config, self.folder))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def url(self, name: str) -> str:
        """Where hosts download an artifact."""
        return f"http://127.0.0.1:{self.front.state['artifacts']['http']}/{name}"

    def start_seconds(self, value: float) -> None:
        """How long a PowerShell takes to start from now on."""
        Agent(self.standin).control("start_seconds", value=value)

    def add_hosts(self, side: Side, first: int, count: int) -> list[str]:
        """Make hosts ``<side>-<first>`` and on; answers their names."""
        names = [f"{side}-{number}" for number in range(first, first + count)]
        for number, name in enumerate(names, first):
            agent = self.standin
            if side == "ours":
                agent = self.simulated.address
                self.simulated.create_host(name, f"127.1.{number // 250}.{number % 250 + 1}")
            endpoint = EndpointConfig(name=name, agent=agent, basic_over_http=True, https=None)
            self._ports[name] = self.front.control.add_host(HostConfig(endpoint=endpoint))["ports"]["http"]
        return names

    def clone_peers(self, source: str, names: list[str]) -> None:
        """Give peer hosts the state of another."""
        for name in names:
            Agent(self.standin, name).control("clone", source=source)

    def play(
        self, side: Side, names: list[str], variables: Mapping[str, object], *, forks: int = 5, playbook: str = ""
    ) -> Figures:
        """Run one side's playbook on hosts and measure it. BenchmarkError with the output when it fails."""
        inventory = self.folder / f"{side}.json"
        inventory.write_text(json.dumps(self._inventory(names, variables)), encoding="utf-8")
        for name in names:
            self.front.control.counters(name, reset=True)
            self.front.control.journal(name, clear=True)
            if side == "peer":
                Agent(self.standin, name).control("counters", reset=True)
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), "--forks", str(forks)]
        log = self.folder / f"{side}.log"
        with log.open("wb") as output:
            begin = time.monotonic()
            process = subprocess.Popen(
                [*command, str(PLAYBOOKS / (playbook or f"{side}.yml"))],
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            _pid, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        text = log.read_text(encoding="utf-8", errors="replace")
        recap = {match["host"]: int(match["changed"]) for match in _RECAP.finditer(text)}
        if process.returncode != 0 or set(recap) != set(names):
            raise BenchmarkError(f"ansible-playbook of {side} ended with {process.returncode}:\n{text[-6000:]}")
        counters = [self.front.control.counters(name) for name in names]
        starts = 0
        if side == "peer":
            starts = sum(Agent(self.standin, name).control("counters")["starts"] for name in names)
        return Figures(
            hosts=len(names),
            requests=sum(map(requests_sent, counters)),
            sent=sum(counter["bytes_in"] for counter in counters),
            received=sum(counter["bytes_out"] for counter in counters),
            starts=starts,
            seconds=seconds,
            cpu=usage.ru_utime + usage.ru_stime,
            changed=sum(recap.values()),
            waits=sum(counter["requests"] - requests_sent(counter) for counter in counters),
        )

    def parts(self, name: str, figures: Figures) -> str:
        """What the bytes of a run of ours consist of, in words. Its lines are sent once more: they must only read."""
        lines = [str(entry["line"]) for entry in self.front.control.journal(name)]
        agent = Agent(self.simulated.address, name)
        answers = sum(4 * len(agent.run(line).stdout) // 3 for line in lines)
        sent = sum(len(escape(line)) for line in lines)
        envelopes = figures.bytes - sent - answers
        return (
            f"{envelopes / 1000:.1f} kB are {figures.requests} WS-Man requests without content, {sent / 1000:.1f} kB"
            f" {len(lines)} command lines, {answers / 1000:.1f} kB their output in base64"
        )

    def _inventory(self, names: list[str], variables: Mapping[str, object]) -> dict[str, Any]:
        connection = {
            "ansible_connection": "winrm",
            "ansible_host": "127.0.0.1",
            "ansible_user": USER,
            "ansible_password": self._password,
            "ansible_winrm_transport": "basic",
            "ansible_winrm_scheme": "http",
            "ansible_shell_type": "powershell",
        }
        hosts = {name: {"ansible_port": self._ports[name]} for name in names}
        return {"windows": {"hosts": hosts, "vars": {**connection, **variables}}}


def requests_sent(counters: Mapping[str, int]) -> int:
    """Requests without those that only ask again for output: the server's time decides how many of these there are."""
    return counters["requests"] - max(0, counters["receives"] - counters["commands"])


def environment() -> dict[str, str]:
    """What ansible-playbook runs under: the link tree, quiet output."""
    collections = str(REPOSITORY / ".collections")
    return {
        "ANSIBLE_COLLECTIONS_PATH": collections,
        **os.environ,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DISPLAY_OK_HOSTS": "0",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "0",
        "NO_PROXY": "127.0.0.1",
    }


@contextlib.contextmanager
def _standin(folder: Path) -> Any:
    """The PowerShell stand-in as a child; gives its address."""
    with (folder / "powershell.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmark.powershell.server"],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        listening = _LISTEN.match(process.stdout.readline() if process.stdout else "")
        if listening is None:
            answer = (folder / "powershell.log").read_text(encoding="utf-8", errors="replace")
            raise LabError(f"the PowerShell stand-in did not start:\n{answer}")
        yield listening.group(1)
    finally:
        process.terminate()
        process.wait(timeout=10)
