# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade that is cut in its swap, seen from ansible-playbook: lost requests, lost replies, a killed interpreter, a
task's timeout, Ctrl-C, a cancelled job. Every time the next run finishes; it waits only for a run of which it cannot know whether
it is alive, and no longer than a minute.

One simulated host with the old release, over NTLM with message encryption: the connection that forgives least.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration import playbooks
from lab import builds
from lab.handle import eventually, longer
from lab.hosts import simulated_program
from lab.windows.agent import Agent
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontControl, FrontProcess
from lab.windows.faults import Rule
from lab.windows.simulated import SimulatedServer
from lab.windows.wsman import EndpointConfig

OLD, NEW = "1.1.3", "1.3.0"
USER, PASSWORD = "Administrator", "not-a-secret"
STOP = r"sc\.exe stop"
TASK = "Keep csi-proxy"


@dataclass(frozen=True, slots=True)
class Rig:
    agent: Agent
    front: FrontControl
    folder: Path
    url: str

    def arguments(self, release: str, **task: Any) -> dict[str, Any]:
        """Playbook, inventory and variables of a run that keeps a release."""
        name = f"csi-proxy-{release}.exe"
        options = {
            "version": release,
            "source": f"{self.url}/{name}",
            "checksum": f"sha256:{builds.sha256(self.folder / 'artifacts' / name)}",
        }
        tasks = [{"name": TASK, "kubewin.csi.csi_proxy": options, **task}]
        path = self.folder / f"play-{release}-{'-'.join(task)}.yml"
        path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
        return {"playbook": str(path), "inventory": self.folder / "inventory.yml"}

    def keep(self, release: str, **task: Any) -> playbooks.Run:
        return playbooks.play(**self.arguments(release, **task))

    def finish(self) -> None:
        """The next run ends converged, at once."""
        run = self.keep(NEW)
        assert run.code == 0, run.screen
        found = run.results(TASK)[self.agent.host]["csi_proxy"]
        assert (found["executable"]["release"], found["serving"], found["drift"]) == (NEW, True, [])

    def ran(self, command: str) -> bool:
        """Whether a step with this text ran on the host, or is running."""
        journal = self.agent.control("journal")["journal"]
        return any(command in step for entry in journal for step in entry["steps"])

    def stopped(self) -> bool:
        """Whether the swap has begun: the old service was stopped."""
        return self.ran("sc.exe stop")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("cuts")
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    for release in (OLD, NEW):
        (artifacts / f"csi-proxy-{release}.exe").write_bytes(simulated_program(release))
    config = FrontConfig(
        ready_file=str(folder / "ready.json"), users={USER: PASSWORD}, artifacts=ArtifactsConfig(str(artifacts))
    )
    program = builds.build("winland-linux")["winland"]
    with SimulatedServer(program, folder / "hosts") as server, FrontProcess(config, folder) as front:
        agent = server.create_host("cut", "127.0.11.78")
        port = front.control.add_host(HostConfig(EndpointConfig("cut", agent.address, https=None)))["ports"]["http"]
        connection = {
            "ansible_connection": "winrm",
            "ansible_host": "127.0.0.1",
            "ansible_port": port,
            "ansible_user": USER,
            "ansible_password": PASSWORD,
            "ansible_winrm_transport": "ntlm",
            "ansible_winrm_scheme": "http",
        }
        (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"cut": connection}}}), encoding="utf-8")
        rig = Rig(agent, front.control, folder, f"http://127.0.0.1:{front.state['artifacts']['http']}")
        run = rig.keep(OLD)
        assert run.code == 0, run.screen
        agent.control("snapshot", id="old")
        yield rig


@pytest.fixture
def rig(installed: Rig) -> Iterator[Rig]:
    """The old release serves, nothing is changed or reported yet."""
    installed.agent.control("restore", id="old")
    installed.agent.control("journal", clear=True)
    yield installed
    installed.front.clear_faults("cut")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.turn(day, 4)) for day, kind in enumerate(("request_lost", "reply_lost"))],
)
def test_a_connection_lost_in_the_swap(rig: Rig, kind: str) -> None:
    rig.front.add_fault("cut", Rule(kind, STOP, for_good=True))
    run = rig.keep(NEW)
    assert run.code != 0, run.screen
    (failure,) = run.failures
    assert (failure["event"], failure["result"]["reason"]) == ("failed", "connection_lost")
    assert rig.stopped() is (kind == "reply_lost")
    rig.front.clear_faults("cut")
    rig.finish()


@pytest.mark.turn(3, 4)
def test_an_interpreter_killed_in_the_swap(rig: Rig) -> None:
    rig.front.add_fault("cut", Rule("killed", STOP, after_steps=3))
    run = rig.keep(NEW)
    # The connection works, so the run itself rolls back, and reports that it was interrupted.
    assert run.code != 0, run.screen
    assert run.failures[0]["result"]["reason"] == "interrupted", run.screen
    assert rig.front.faults("cut")[0]["hits"] == 1
    rig.finish()


@pytest.mark.turn(2, 4)
def test_the_tasks_timeout_strikes_in_the_swap(rig: Rig) -> None:
    for seconds in longer(3):
        # The answer to the stop comes too late for the task.
        rig.front.add_fault("cut", Rule("delay", STOP, operation="Receive", delay_ms=int(seconds * 7000)))
        run = rig.keep(NEW, timeout=int(seconds))
        assert run.code != 0, run.screen
        # Otherwise its time was over before the swap, and the old release is still there.
        if rig.stopped():
            break
        rig.front.clear_faults("cut")
    # Older lines of ansible-core word it differently.
    assert re.search(r"timed out|exceeded", run.failures[0]["result"]["msg"].lower()), run.screen
    assert rig.stopped()
    rig.front.clear_faults("cut")
    rig.finish()


@pytest.mark.turn(1, 4)
def test_ctrl_c_in_the_swap(rig: Rig) -> None:
    rig.front.add_fault("cut", Rule("delay", STOP, operation="Receive", delay_ms=20000))
    record = rig.folder / "interrupted.jsonl"
    process = playbooks.start(**rig.arguments(NEW), record=record)
    eventually(rig.stopped, "the swap begins")
    os.killpg(process.pid, signal.SIGINT)
    run = playbooks.finish(process, record)
    assert run.code != 0, run.screen
    rig.front.clear_faults("cut")
    rig.finish()


@dataclass(frozen=True, slots=True)
class Cancel:
    """A run that is cancelled. at: what it does then on the host. apart: both runs are in containers of their own, as on AWX."""

    at: str
    number: signal.Signals
    everyone: bool
    apart: bool


TORTURE = (pytest.mark.torture,)
CONTAINERS = [
    pytest.param(
        Cancel("sc.exe stop", signal.SIGKILL, everyone=True, apart=True),
        id="stop-container",
        marks=pytest.mark.turn(0, 4),
    ),
    pytest.param(
        Cancel("sc.exe start", signal.SIGKILL, everyone=True, apart=True), id="start-container", marks=TORTURE
    ),
    pytest.param(Cancel("certutil", signal.SIGKILL, everyone=True, apart=True), id="stage-container", marks=TORTURE),
]
PROCESSES = [
    pytest.param(Cancel(at, number, everyone, apart=False), id=f"{at}-{number.name}-{everyone}", marks=TORTURE)
    for at in ("certutil", "sc.exe stop", "sc.exe start")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
    for everyone in (False, True)
]


@pytest.mark.parametrize("cancel", [*CONTAINERS, *PROCESSES])
def test_a_cancelled_run_and_one_that_is_started_at_once(rig: Rig, cancel: Cancel) -> None:
    # Slow enough that the run is cancelled while it works.
    rig.front.add_fault("cut", Rule("delay", cancel.at.replace(".", r"\."), operation="Receive", delay_ms=3000))

    def how() -> dict[str, Any]:
        return {"apart": rig.folder / f"{uuid.uuid4().hex}"} if cancel.apart else {}

    record = rig.folder / "cancelled.jsonl"
    process = playbooks.start(**rig.arguments(NEW), record=record, **how())
    playbooks.meanwhile(process, lambda: rig.ran(cancel.at), f"the run comes to {cancel.at}")
    for pid in reversed(playbooks.family(process.pid)) if cancel.everyone else [process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, cancel.number)
    began = time.monotonic()
    run = playbooks.play(**rig.arguments(NEW), **how())
    waited = time.monotonic() - began
    process.wait()
    assert run.code == 0, run.screen
    assert run.results(TASK)[rig.agent.host]["csi_proxy"]["serving"], run.screen
    assert waited < 120, run.screen
    rig.finish()
