# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts at every command of an installation and of an upgrade, on real service managers with the real csi-proxy.

Each point gets one kind of cut in turn, another fourth of the points each day, the others in the torture; all kinds at all points are
tested on simulated hosts. Whatever was cut, and while a command whose reply was lost still runs, the next run ends converged,
and csi-proxy's own client is served.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, model, plan, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.control import WaitLimits
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.lock import NodeLock, make_lock_owner
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import WindowsHost
from lab import builds
from lab.windows.agent import Agent, AgentError
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.channel import AgentChannel, Cut
from lab.windows.config import FrontConfig
from lab.windows.control import FrontProcess
from lab.windows.cuts import Sent, conversation
from lab.windows.wine import Wine, WineHost, base_prefix, find_wine, scratch

OLD, NEW = "1.1.3", "1.3.0"
AT_ONCE = 3
# Wine lets go of what a killed process had open when it comes to that; the pauses are what makes a story long.
QUICK = WaitLimits(linger=0.5, settle=0.5, poll=0.1, killed=180, pipes=120)


@dataclass(slots=True)
class Rig:
    """Hosts on Wine in states that were prepared once, and where they find csi-proxy."""

    wine: Wine
    base: Path
    winland: Path
    client: Path
    folder: Path
    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @contextlib.contextmanager
    def host(self, prefix: Path) -> Iterator[WineHost]:
        """A host that was switched off in the state of ``prefix`` and boots now."""
        number = next(self._numbers, 0)
        host = WineHost(self.wine, f"cut-{number}", f"127.0.11.{number % 250 + 1}", self.folder / f"cut-{number}")
        try:
            host.create(prefix, self.winland)
            shutil.copyfile(self.client, host.path(r"C:\k\csiclient.exe"))
            host.boot()
            yield host
        finally:
            host.remove()

    def wanted(self, release: str) -> model.Desired:
        program = self.programs()[release]
        values = {name: spec.get("default") for name, spec in desired.CSI_PROXY.items()}
        values |= {"version": release, "checksum": builds.sha256(program), "source": f"{self.url}/{program.name}"}
        return desired.build_desired(values)

    @staticmethod
    def programs() -> dict[str, Path]:
        return {release: next(iter(builds.build(f"csi-proxy-{release}").values())) for release in (OLD, NEW)}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    wine = find_wine()
    base = base_prefix(wine, builds.cache())
    with scratch(wine, builds.cache()) as folder:
        artifacts = folder / "artifacts"
        artifacts.mkdir()
        for program in Rig.programs().values():
            shutil.copyfile(program, artifacts / program.name)
        config = FrontConfig(ready_file=str(folder / "ready.json"), users={}, artifacts=ArtifactsConfig(str(artifacts)))
        with FrontProcess(config, folder) as front:
            yield Rig(
                wine=wine,
                base=base,
                winland=builds.build("winland-windows")["winland.exe"],
                client=builds.build("csiclient")["csiclient.exe"],
                folder=folder,
                url=f"http://127.0.0.1:{front.state['artifacts']['http']}",
            )


@pytest.fixture(scope="module")
def old_prefix(rig: Rig) -> Path:
    """The disk of a host on which the old release was installed, switched off."""
    with rig.host(rig.base) as host:
        converge(host.agent, rig.wanted(OLD))
        host.stop()
        kept = rig.folder / "with-old-release"
        return host.prefix.rename(kept)


def converge(agent: Agent, wanted: model.Desired, cut: Cut | None = None) -> prove.ConvergeResult:
    """One run of the action's core. Runs that came before count as dead."""
    node = WindowsHost(AgentChannel(agent, cut))
    lock = NodeLock(make_lock_owner(node.clock), node.clock, lambda owner: False)
    return prove.converge(node, wanted, limits=QUICK, lock=lock)


def whole_run(rig: Rig, prefix: Path, wanted: model.Desired) -> list[Sent]:
    """The commands of a run that nothing cuts."""
    with rig.host(prefix) as host:
        host.agent.control("journal", clear=True)
        converge(host.agent, wanted)
        return conversation(host.agent)


def points(sent: Sequence[Sent]) -> list[Cut]:
    """One cut a command: the kinds take turns, a kill comes half way through its line."""
    kinds: list[Callable[[int, Sent], Cut]] = [
        lambda at, command: Cut("killed", at, max(1, command.steps // 2)),
        lambda at, command: Cut("reply_lost", at),
        lambda at, command: Cut("request_lost", at),
    ]
    return [kinds[at % len(kinds)](at, command) for at, command in enumerate(sent)]


def usable(agent: Agent, release_before: str | None) -> str:
    """What a cut must leave: a service whose executable is there, or none at all. Returns what is wrong."""
    queried = agent.run(r"C:\Windows\System32\sc.exe queryex csi-proxy")
    if queried.rc == 1060:
        return "" if release_before is None else "the service is gone"
    config = agent.run(
        r"C:\Windows\System32\reg.exe query HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy /v ImagePath"
    )
    line = config.stdout.decode().strip().splitlines()[-1].split("    ")[-1]
    executable = line.split(".exe")[0].lstrip('"') + ".exe"
    return "" if agent.run(f'dir /b "{executable}"').rc == 0 else f"the service's {executable} is not there"


def story(rig: Rig, prefix: Path, wanted: model.Desired, cut: Cut, before: str | None) -> str:
    """Interrupt a run, read what is left, run again; the errors, empty without any."""
    with rig.host(prefix) as host:
        agent = host.agent
        with contextlib.suppress(NodeError):
            converge(agent, wanted, cut)
        wrong = usable(agent, before)
        if wrong:
            return f"{cut}: {wrong}"
        try:
            # At once: what runs on behind a lost reply is not waited for.
            outcome = converge(agent, wanted)
            if not plan.is_serving(wanted.required_pipes, outcome.snapshot):
                return f"{cut}: the next run ended without serving: {outcome.snapshot.service}"
            again = converge(agent, wanted)
        except (NodeError, AgentError) as error:
            return f"{cut}: the next run failed: {error}"
        if again.steps:
            return f"{cut}: the run after the next still finds work: {[step.kind for step in again.steps]}"
        if again.snapshot.executable_sha256 != wanted.sha256:
            return f"{cut}: the service runs {again.snapshot.executable_sha256}, not {wanted.sha256}"
        proof = agent.run(r"C:\k\csiclient.exe")
        if proof.rc != 0:
            return f"{cut}: csi-proxy's client failed ({proof.rc}): {proof.stdout.decode(errors='replace')}"
        return ""


def notify(rig: Rig, prefix: Path, wanted: model.Desired, before: str | None, quarter: int) -> list[str]:
    """The story of every fourth point from this one on, some at once; the stories that went wrong."""
    cuts = points(whole_run(rig, prefix, wanted))
    assert {cut.kind for cut in cuts} == {"killed", "reply_lost", "request_lost"}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reported = pool.map(lambda cut: story(rig, prefix, wanted, cut, before), cuts[quarter::4])
        return [problem for problem in reported if problem]


QUARTERS = pytest.mark.parametrize("quarter", [pytest.param(day, marks=pytest.mark.turn(day, 4)) for day in range(4)])


@QUARTERS
def test_installation(rig: Rig, quarter: int) -> None:
    assert notify(rig, rig.base, rig.wanted(NEW), None, quarter) == []


@QUARTERS
def test_upgrade(rig: Rig, old_prefix: Path, quarter: int) -> None:
    assert notify(rig, old_prefix, rig.wanted(NEW), OLD, quarter) == []
