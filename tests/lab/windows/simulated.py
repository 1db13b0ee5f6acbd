# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated Windows hosts: one process that holds hundreds of them in memory, behind one agent address."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from lab.state import LabError
from lab.windows.agent import Agent
from lab.windows.wine_registry import SERVER_2022

_LISTEN = re.compile(r"^LISTEN (\S+)", re.MULTILINE)


@dataclass(slots=True)
class SimulatedServer:
    """The process. ``program`` is winland built for Linux; ``folder`` takes its log."""

    program: Path
    folder: Path
    address: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        return self.folder / "simulated.log"

    def start(self, timeout: float = 60.0) -> None:
        """Start and wait until it listens. LabError with the log when it does not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(self.program), "serve", "--listen", self.address or "127.0.0.1:0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._process.poll() is None:
            listening = _LISTEN.search(self.log.read_text(encoding="utf-8", errors="replace"))
            if listening is not None:
                self.address = listening.group(1)
                return
            time.sleep(0.01)
        self.stop()
        output = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise LabError(f"{self.program} did not listen within {timeout:g} s; {self.log}:\n{output or '(nothing)'}")

    def stop(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def __enter__(self) -> SimulatedServer:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()

    def create_host(self, name: str, address: str, *, build: str = SERVER_2022, **more: Any) -> Agent:
        """Make a host and return the client for it. ``build`` as ``10.0.<build>.<update>``; ``more`` goes to the
        control verb ``create_host`` (``lang``, ``installation_type``, ...)."""
        agent = Agent(self.address, name)
        agent.control("create_host", name=name, addresses=[address], os_build=build.removeprefix("10.0."), **more)
        return agent

    def delete_host(self, name: str) -> None:
        Agent(self.address, name).control("delete_host", name=name)
