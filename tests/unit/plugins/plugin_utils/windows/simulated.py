# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated Windows host, artifacts that it can download, and runs of the collection's own code against it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, model, observe, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.control import WaitLimits
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.lock import Alive, NodeLock, make_lock_owner
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Clock, WindowsHost
from lab.windows.agent import Agent
from lab.windows.channel import AgentChannel, Cut

OLD, NEW = "1.1.3", "1.3.0"


@dataclass(frozen=True, slots=True)
class Artifact:
    """An executable for the simulated host: its first line has what it does when it is started."""

    url: str
    path: Path
    sha256: str
    version: str


class Artifacts:
    """Executables in a folder, served over HTTP on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder)))
        self.base = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def csi_proxy(self, version: str, **behaviour: str) -> Artifact:
        program = {"kind": "csi-proxy", "release": version, **behaviour}
        return self.file(f"csi-proxy-{version}{''.join(behaviour)}.exe", program, version)

    def file(self, name: str, program: Mapping[str, str], version: str = NEW) -> Artifact:
        content = b"WINLAND-EXE " + json.dumps(program).encode() + b"\n" + b"\0" * 2000
        path = self.folder / name
        path.write_bytes(content)
        return Artifact(self.base + name, path, hashlib.sha256(content).hexdigest(), version)


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the simulated host's own journal has the requests."""


class HostClock(Clock):
    """A clock that moves the host's clock along: waiting costs no time."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._ahead = 0.0

    def now(self) -> float:
        return time.time() + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        self._ahead += seconds
        self._agent.control("clock", advance_ms=int(seconds * 1000))


@dataclass(slots=True)
class Host:
    """One simulated host, and what the collection does to it."""

    agent: Agent
    lines: list[str] = field(default_factory=list)
    """what the last run sent"""
    notes: list[str] = field(default_factory=list)
    """what the last run reported while it worked"""

    def node(self, cut: Cut | None = None, clock: HostClock | None = None) -> WindowsHost:
        channel = AgentChannel(self.agent, cut)
        self.lines = channel.lines
        return WindowsHost(channel, clock or HostClock(self.agent))

    def run(
        self,
        wanted: model.Desired,
        *,
        cut: Cut | None = None,
        check: bool = False,
        probe: bool = False,
        is_alive: Alive = lambda owner: False,
        limits: WaitLimits | None = None,
        clock: HostClock | None = None,
        lock: NodeLock | None = None,
    ) -> prove.ConvergeResult:
        """Converge as the action does. Earlier runs count as ended unless ``is_alive`` is true. lock: of a task that converges twice."""
        self.notes = []
        node = self.node(cut, clock)
        return prove.converge(
            node,
            wanted,
            check=check,
            probe=probe,
            limits=limits,
            report=self.notes.append,
            lock=lock or NodeLock(make_lock_owner(node.clock), node.clock, is_alive),
        )

    def observe(self, wanted: model.Desired) -> model.HostSnapshot:
        return observe.observe(self.node(), wanted)

    def plant(self, **things: Any) -> None:
        self.agent.control("plant", **things)

    def fault(self, **rule: Any) -> None:
        self.agent.control("fault", rule=rule)

    def clear_faults(self) -> None:
        self.agent.control("clear_faults")

    def journal(self) -> list[dict[str, Any]]:
        entries = self.agent.control("journal")["journal"]
        assert isinstance(entries, list)
        return entries

    def steps(self) -> list[str]:
        """Every simple command that ran since the journal was last cleared."""
        return [step for entry in self.journal() for step in entry["steps"]]

    def forget(self) -> None:
        self.agent.control("journal", clear=True)

    def quiet(self) -> None:
        """Wait until no command runs on the host any more."""
        deadline = time.monotonic() + 120
        while any(entry.get("rc") is None for entry in self.journal()):
            assert time.monotonic() < deadline, (
                f"commands still run: {[e for e in self.journal() if e.get('rc') is None]}"
            )
            time.sleep(0.002)


class RenewingClock(HostClock):
    """Another run renews its lock while this one sleeps, for so many seconds."""

    def __init__(self, host: Host, seconds: float) -> None:
        super().__init__(host.agent)
        self._host, self._left = host, seconds

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._left -= seconds
        if self._left > 0:
            self._host.agent.run(rf"echo .>>{model.LOCK_DIR}\owner")


@contextmanager
def simulated_host(address: str, name: str, **settings: Any) -> Iterator[Host]:
    agent = Agent(address, name)
    agent.control("create_host", name=name, addresses=["127.0.11.1"], skip_pauses=True, **settings)
    try:
        yield Host(agent)
    finally:
        agent.control("delete_host")


def wanted(artifact: Artifact | None, **given: Any) -> model.Desired:
    """What a task with these options wants; options that are not given have the action's defaults."""
    values = {name: spec.get("default") for name, spec in desired.CSI_PROXY.items()}
    if artifact is not None:
        values |= {"version": artifact.version, "checksum": artifact.sha256, "source": artifact.url}
    return desired.build_desired(values | given)


def winland() -> Path:
    """The simulated host's program: KUBEWIN_WINLAND, or the lab's own build."""
    given = os.environ.get("KUBEWIN_WINLAND")
    if given:
        return Path(given)
    from lab import builds

    return builds.build("winland-linux")["winland"]


def failed(host: Host, desired: model.Desired, *, probe: bool = False) -> NodeError:
    """The error of a run. probe: of one with --check."""
    with pytest.raises(NodeError) as caught:
        host.run(desired, check=probe, probe=probe)
    return caught.value


def nothing_half_done(host: Host, desired: model.Desired) -> None:
    """No service, no lock and no staging directory stay after a first installation that failed."""
    snapshot = host.observe(desired)
    assert (snapshot.service, snapshot.lock, snapshot.lock_leftovers) == (None, None, ())
    assert not [name for name in snapshot.install_dir_entries if name.startswith("stage-")]


def still_serves(host: Host, old: model.Desired) -> None:
    """The old release is configured, runs and serves; nothing of the attempt stays in its way."""
    snapshot = host.observe(old)
    assert snapshot.service is not None
    assert snapshot.service.command_line == old.command_line
    assert snapshot.service.state == model.RUNNING
    assert snapshot.service.record.previous == ""
    assert set(snapshot.pipes) == set(old.required_pipes)
    assert (snapshot.lock, snapshot.lock_leftovers) == (None, ())


def commands_like(host: Host, pattern: str) -> int:
    return len([step for step in host.steps() if re.search(pattern, step)])
