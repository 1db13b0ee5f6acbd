# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab comes up, is left alone, goes away without a trace, and others run beside it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import control, handle, state
from lab.handle import Lab, eventually
from lab.state import LabError

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(handle.__file__).resolve().parents[1])}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """The lab's command line, as a user runs it."""
    line = [sys.executable, "-m", "lab", *words]
    return subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=False)


def processes(directory: str) -> list[str]:
    """Command lines of every process that names the lab's folder, asked of the kernel."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(directory in word for word in words):
            found.append(" ".join(words))
    return found


def listening(ports: list[int]) -> list[int]:
    open_ports = []
    for port in ports:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                open_ports.append(port)
    return open_ports


COMPONENTS = ("etcd", "api", "controller-manager", "scheduler", "kwok", "kubelet")


@pytest.fixture
def small() -> Iterator[Lab]:
    """A lab of its own, as small as labs are, for tests that end it."""
    made = handle.start(f"small-{os.getpid()}", nodes=1)
    yield made
    made.stop()


def test_a_second_lab_lives_beside_the_first_and_leaves_nothing(lab: Lab, small: Lab) -> None:
    first, second = lab.state, small.state
    ports = [second.ports[name] for name in COMPONENTS]
    assert not set(first.ports.values()) & set(ports)
    assert len(small.api.items("/api/v1/nodes")) == 2
    assert len(lab.api.items("/api/v1/nodes")) == len(first.nodes)
    assert control.call(lab.name, "status")["healthy"]
    assert len(processes(second.directory)) > len(COMPONENTS)
    assert listening(ports) == ports
    # Nothing in the machine's own temporary folder either.
    assert list(Path(second.directory, "tmp").glob("kubewin-front-*"))

    small.call("stop", name="scheduler")
    status = command("status", "--name", small.name)
    assert (status.returncode, status.stdout.splitlines()[-1]) == (1, "NOT healthy")

    assert command("down", "--name", small.name).returncode == 0
    assert processes(second.directory) == []
    assert listening(ports) == []
    assert not Path(second.directory).exists()
    assert control.call(lab.name, "status")["healthy"]


@pytest.mark.turn(0, 2)
def test_the_cpu_time_of_a_lab_counts_as_that_of_the_test(small: Lab) -> None:
    before = os.times().children_user
    small.stop()
    # The API server alone takes more to start.
    assert os.times().children_user - before > 0.5


@pytest.mark.turn(1, 2)
def test_nothing_survives_its_supervisor(small: Lab) -> None:
    found = small.state
    ports = [found.ports[name] for name in COMPONENTS]
    assert listening(ports) == ports
    supervisors = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if f"lab.supervisor\0{found.directory}/".encode() in line and b"unshare" not in line:
            supervisors.append(int(path.parent.name))
    # The younger of the two; the other is the namespace's process 1, which waits for it.
    os.kill(max(supervisors), signal.SIGKILL)
    eventually(lambda: not processes(found.directory), "every process of the lab gone")
    assert listening(ports) == []
    status = command("status", "--name", small.name)
    assert status.returncode == 3
    assert "left its folder behind" in status.stdout


def test_a_lab_for_tests_ends_with_its_process() -> None:
    name = f"orphan-{os.getpid()}"
    script = (
        f"import sys; from lab import handle; handle.start({name!r}, nodes=0, windows='none'); "
        "print('up', flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", script]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert state.alive(name)
        process.kill()
        process.communicate()
        eventually(lambda: not state.alive(name), "the lab gone with its process")
    finally:
        process.kill()
        command("down", "--name", name)


def test_up_again_changes_nothing(lab: Lab) -> None:
    before, text = lab.state, lab.state.paths.state.read_bytes()
    start = lab.audit_size()
    again = command("up", "--name", lab.name, "--windows", "simulated")
    assert again.returncode == 0
    assert "reused, nothing changed" in again.stdout
    assert before.paths.state.read_bytes() == text
    # The lab's own account; controllers may still be busy with their start.
    writes = [entry for entry in lab.audit("lab-admin", start) if entry["verb"] not in ("get", "list", "watch")]
    assert writes == []


def test_status_as_text_and_as_json(lab: Lab) -> None:
    table = command("status", "--name", lab.name)
    assert table.returncode == 0
    assert table.stdout.splitlines()[-1] == "healthy"
    for part in ("etcd", "apiserver", "controller-manager", "scheduler", "kwok", "kubelet", "hosts", "front", "win-3"):
        assert part in table.stdout
    found = json.loads(command("status", "--name", lab.name, "--json").stdout)
    assert found["healthy"] is True
    assert found["state"]["hosts"][0]["node"] == "win-1"


def test_logs_can_be_read(lab: Lab) -> None:
    names = command("logs", "--name", lab.name).stdout.split()
    assert {"apiserver", "etcd", "kubelet", "kwok", "audit", "supervisor"} <= set(names)
    assert "Serving securely" in command("logs", "--name", lab.name, "scheduler").stdout
    wrong = command("logs", "--name", lab.name, "nothing")
    assert wrong.returncode == 1
    assert "there are" in wrong.stderr


def test_a_stopped_lab_reports_that_it_is_not_up() -> None:
    name = f"absent-{os.getpid()}"
    assert command("status", "--name", name).returncode == 3
    with pytest.raises(LabError, match="is not up"):
        state.load(name)
    assert command("down", "--name", name).stdout.strip() == f"lab {name} was not up"
    assert [path for path in state.root().iterdir() if name in path.name] == []
