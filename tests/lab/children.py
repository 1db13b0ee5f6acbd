# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes of the supervisor, which is process 1 of the lab: it reaps whatever ends, its own children and orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster.processes import Component
from lab.state import LabError

IN_USE = ("address already in use", "Address already in use", "bind: ")


class PortTaken(Exception):
    """A component ended because somebody else holds a port of it."""


@dataclass(slots=True)
class Child:
    """A component that was started. `rc` is None while it runs; negative for a signal."""

    component: Component
    log: Path
    pid: int
    started: float
    process: subprocess.Popen[bytes] = field(repr=False)
    rc: int | None = None

    def tail(self, lines: int = 15) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""


class Children:
    """The table of components, fed by one thread that waits for every child."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs, self._environment = logs, dict(environment)
        self._changed = threading.Condition()
        self._exits: dict[int, int] = {}
        self.table: dict[str, Child] = {}
        threading.Thread(target=self._reap, name="reaper", daemon=True).start()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                with self._changed:
                    self._changed.wait(0.1)
                continue
            with self._changed:
                self._exits[pid] = os.waitstatus_to_exitcode(status)
                self._settle()
                self._changed.notify_all()

    def _settle(self) -> None:
        for child in self.table.values():
            if child.rc is None and child.pid in self._exits:
                child.rc = child.process.returncode = self._exits.pop(child.pid)

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
        child = Child(component, log, process.pid, time.monotonic(), process)
        with self._changed:
            self.table[component.name] = child
            self._settle()
            self._changed.notify_all()
        return child

    def wait_ready(self, child: Child, ready: Callable[[], bool], limit: float) -> None:
        """Wait until `ready` says so.

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
            with self._changed:
                self._changed.wait(0.05)

    def stop(self, name: str, number: signal.Signals = signal.SIGKILL, limit: float = 10.0) -> None:
        """End a component and wait for its end."""
        child = self.table.get(name)
        if child is None or child.rc is not None:
            return
        os.kill(child.pid, number)
        with self._changed:
            if not self._changed.wait_for(lambda: child.rc is not None, limit):
                raise LabError(f"{name} (pid {child.pid}) did not end within {limit:g} s of {number.name}")

    def forget(self, name: str) -> None:
        self.table.pop(name, None)

    @contextmanager
    def watching(self) -> Iterator[threading.Condition]:
        """The condition that is notified when any child ends."""
        with self._changed:
            yield self._changed
