# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes of the supervisor: the table of a lab's components."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster.processes import Component
from lab.state import LabError

IN_USE = ("address already in use", "Address already in use")


class PortTaken(Exception):
    """A component ended because another process holds a port of it."""


@dataclass(slots=True)
class Child:
    """A component that was started."""

    component: Component
    log: Path
    started: float
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def rc(self) -> int | None:
        """None while it runs, then its exit code; negative for a signal."""
        return self.process.poll()

    def tail(self, lines: int = 15) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""


class Children:
    """Starts components, waits for them and ends them."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs, self._environment = logs, dict(environment)
        self.table: dict[str, Child] = {}

    def spawn(self, component: Component) -> Child:
        """Start a component; its output goes to logs/<name>.log."""
        log = self._logs / f"{component.name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                component.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**self._environment, **component.environment},
                cwd=self._logs.parent,
            )
        child = Child(component, log, time.monotonic(), process)
        self.table[component.name] = child
        return child

    def wait_ready(self, child: Child, ready: Callable[[], bool], limit: float) -> None:
        """Wait until `ready` is true.

        Raises PortTaken when the component ended for want of a port, LabError when it ended otherwise or is too slow.
        """
        name, deadline = child.component.name, time.monotonic() + limit
        while not ready():
            if child.rc is not None:
                tail = child.tail()
                if any(word in tail for word in IN_USE):
                    raise PortTaken(name)
                raise LabError(f"{name} ended with {child.rc} before it was ready; {child.log} ends with:\n{tail}")
            if time.monotonic() > deadline:
                raise LabError(f"{name} was not ready within {limit:g} s; {child.log} ends with:\n{child.tail()}")
            time.sleep(0.03)

    def stop(self, name: str, number: signal.Signals = signal.SIGKILL, limit: float = 60.0) -> None:
        """End a component and wait for its end."""
        child = self.table.get(name)
        if child is None or child.rc is not None:
            return
        os.kill(child.pid, number)
        try:
            child.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise LabError(f"{name} (pid {child.pid}) did not end within {limit:g} s of {number.name}") from None

    def end(self) -> None:
        """End all of them. The CPU time of a lab, as the process that waits for it reads it, lacks those that nobody waits for."""
        left = list(self.table.values())
        for child in left:
            child.process.kill()
        for child in left:
            child.process.wait()

    def forget(self, name: str) -> None:
        self.table.pop(name, None)


def init() -> None:
    """Become process 1 of a PID namespace: reap every orphan, and go when the supervisor goes.

    Returns in the child, which is the supervisor. The parent never returns: when it ends, the kernel ends the whole
    namespace.
    """
    supervisor = os.fork()
    if supervisor == 0:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == supervisor:
            os._exit(abs(os.waitstatus_to_exitcode(status)))
