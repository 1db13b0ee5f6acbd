# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remote shells of one host and the commands that run in them."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.windows import soap
from lab.windows.agent import EXIT, STDOUT, AgentError, AsyncAgent, AsyncCommand, Request

# Windows gathers what a program writes within a moment into one answer.
GATHER_SECONDS = 0.05

# How long a host without cmd.exe in between may take to report a missing program.
START_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Limits:
    """Quotas of a default Windows host: shells per user, and operations per user that finished commands never give
    back (counted per shell here, since closing the shell is what returns them)."""

    shells: int = 30
    operations: int = 1500
    idle_seconds: float = 7200.0


class RemoteCommand:
    """One command: pumps its output from the agent, whether or not anybody asks for it."""

    def __init__(
        self, command_id: str, line: str, process: AsyncCommand, *, console: bool, record: dict[str, Any]
    ) -> None:
        self.id = command_id
        self.line = line
        self.console = console
        self.record = record
        self.rc: int | None = None
        self.lost = False
        self._process = process
        self._input_ended = console
        self._pieces: deque[tuple[str, bytes]] = deque()
        self._changed = asyncio.Event()
        self._pump_task = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        try:
            while self.rc is None:
                kind, data = await self._process.read()
                if kind == EXIT:
                    self.rc = int.from_bytes(data, "big")
                    self.record["rc"] = self.rc
                else:
                    self._pieces.append(("stdout" if kind == STDOUT else "stderr", data))
                self._changed.set()
        except AgentError:
            # The host went down under its command.
            self.lost = True
            self._changed.set()
        finally:
            self._process.close()

    async def send(self, data: bytes, *, end: bool) -> None:
        """Write to standard input; Fault 232 when the process has ended or its input was closed."""
        if self.console:
            raise soap.Fault(
                soap.INVALID_PARAMETER,
                "The lab does not type into consoles: this command was started with WINRS_CONSOLEMODE_STDIN=TRUE, start"
                " it with FALSE to send bytes to its standard input",
            )
        if self._input_ended or self.rc is not None:
            raise soap.Fault(soap.BROKEN_PIPE, "The pipe is being closed. ")
        self.record["stdin"] += len(data)
        try:
            if data:
                await self._process.send(data)
            if end:
                self._input_ended = True
                await self._process.end_input()
        except ConnectionError:
            raise soap.Fault(soap.BROKEN_PIPE, "The pipe is being closed. ") from None

    async def receive(self, timeout: float, size: int) -> tuple[list[tuple[str, bytes]], bool]:
        """Output of at most ``size`` bytes, and whether the command is done. Fault after ``timeout`` silent seconds."""
        if not await self._wait(lambda: bool(self._pieces), timeout):
            raise soap.timed_out()
        if self.rc is None:
            await self._wait(lambda: False, GATHER_SECONDS)
        taken: list[tuple[str, bytes]] = []
        left = size
        while self._pieces and left > 0:
            name, data = self._pieces.popleft()
            if len(data) > left:
                self._pieces.appendleft((name, data[left:]))
                data = data[:left]
            left -= len(data)
            if taken and taken[-1][0] == name:
                taken[-1] = (name, taken[-1][1] + data)
            else:
                taken.append((name, data))
        return taken, self.rc is not None and not self._pieces

    async def _wait(self, ready: Any, timeout: float) -> bool:
        """Until ``ready()`` or the end of the command; False on timeout."""
        deadline = time.monotonic() + timeout
        while not (ready() or self.rc is not None or self.lost):
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), deadline - time.monotonic())
            except TimeoutError:
                return False
        return True

    async def not_found(self) -> bool:
        """Whether the host had no such program: without cmd.exe that is known at once, and is no exit code."""
        await self._wait(lambda: bool(self._pieces), START_SECONDS)
        return self.rc == soap.PROGRAM_NOT_FOUND

    def kill(self) -> None:
        """Terminate the process; its exit still arrives from the agent."""
        if self.rc is None and not self.lost:
            self._process.terminate()


@dataclass(slots=True)
class Shell:
    id: str
    owner: str
    codepage: int
    directory: str
    environment: Mapping[str, str]
    idle_seconds: float
    used: float = field(default_factory=time.monotonic)
    operations: int = 0
    commands: dict[str, RemoteCommand] = field(default_factory=dict)

    def close(self) -> None:
        """A shell takes its commands along."""
        for command in self.commands.values():
            command.kill()
        self.commands.clear()


class ShellTable:
    """All shells of one host. ``journal`` records every command that was started."""

    def __init__(self, agent: AsyncAgent, limits: Limits, oem_codepage: int, journal: deque[dict[str, Any]]) -> None:
        self._agent = agent
        self._limits = limits
        self._oem_codepage = oem_codepage
        self._journal = journal
        self._shells: dict[str, Shell] = {}

    def __len__(self) -> int:
        return len(self._shells)

    def clear(self) -> None:
        """What a reboot of the host does to its shells."""
        for shell in self._shells.values():
            shell.close()
        self._shells.clear()

    def create(self, message: soap.Message, owner: str) -> Shell:
        now = time.monotonic()
        for shell_id in [s.id for s in self._shells.values() if now - s.used > s.idle_seconds]:
            self.delete(shell_id)
        if len(self._shells) >= self._limits.shells:
            raise soap.too_many_shells(self._limits.shells)
        wanted = message.body.find("rsp:Shell", soap.NAMESPACES)
        if wanted is None:
            raise soap.Fault(
                soap.INVALID_PARAMETER, "Create without a Shell element", "w:SchemaValidationError", sender=True
            )
        codepage = message.options.get("WINRS_CODEPAGE", "")
        directory = wanted.find("rsp:WorkingDirectory", soap.NAMESPACES)
        idle = wanted.find("rsp:IdleTimeOut", soap.NAMESPACES)
        variables = wanted.findall("rsp:Environment/rsp:Variable", soap.NAMESPACES)
        shell = Shell(
            id=wanted.get("ShellId") or str(uuid.uuid4()).upper(),
            owner=owner,
            codepage=int(codepage) if codepage.isdigit() else self._oem_codepage,
            directory="" if directory is None else directory.text or "",
            environment={v.get("Name", ""): v.text or "" for v in variables},
            idle_seconds=soap.parse_duration(None if idle is None else idle.text, self._limits.idle_seconds),
        )
        self._shells[shell.id] = shell
        return shell

    def find(self, shell_id: str) -> Shell:
        shell = self._shells.get(shell_id)
        if shell is None:
            raise soap.shell_gone(shell_id)
        shell.used = time.monotonic()
        return shell

    def command(self, shell_id: str, command_id: str) -> RemoteCommand:
        shell = self.find(shell_id)
        if not command_id:
            raise soap.invalid_parameter()
        command = shell.commands.get(command_id)
        if command is None:
            raise soap.command_gone()
        return command

    async def start(
        self, shell: Shell, command_id: str, line: str, *, through_cmd: bool, console: bool, stop_after: int | None
    ) -> RemoteCommand:
        """Start a command on the host; AgentError when the host is down."""
        shell.operations += 1
        if shell.operations > self._limits.operations:
            raise soap.too_many_operations(self._limits.operations)
        process = await self._agent.start(
            Request(
                line,
                shell=through_cmd,
                dir=shell.directory,
                env=shell.environment,
                codepage=shell.codepage,
                stop_after=stop_after,
            )
        )
        if console:
            # Nobody sits at this console, so a program that reads from it finds the end at once.
            try:
                await process.end_input()
            except ConnectionError as error:
                raise AgentError(f"the host went down as a command was started: {error}") from error
        record: dict[str, Any] = {"time": time.time(), "shell": shell.id, "line": line, "stdin": 0, "rc": None}
        self._journal.append(record)
        command = RemoteCommand(command_id, line, process, console=console, record=record)
        shell.commands[command.id] = command
        return command

    def forget(self, shell_id: str, command_id: str) -> None:
        """What a Signal does: the process is killed and the command identifier is gone."""
        command = self.command(shell_id, command_id)
        command.kill()
        del self.find(shell_id).commands[command_id]

    def delete(self, shell_id: str) -> None:
        self.find(shell_id).close()
        del self._shells[shell_id]


def streams(command_id: str, pieces: list[tuple[str, bytes]], rc: int | None) -> str:
    """Body of a ReceiveResponse; ``rc`` when the command is done."""
    parts = [
        f'<rsp:Stream Name="{name}" CommandId="{command_id}">{base64.b64encode(data).decode()}</rsp:Stream>'
        for name, data in pieces
    ]
    state = f"{soap.SHELL}/CommandState"
    if rc is None:
        parts.append(f'<rsp:CommandState CommandId="{command_id}" State="{state}/Running"/>')
    else:
        parts += [
            f'<rsp:Stream Name="{n}" CommandId="{command_id}" End="true"></rsp:Stream>' for n in ("stdout", "stderr")
        ]
        parts.append(
            f'<rsp:CommandState CommandId="{command_id}" State="{state}/Done">'
            f"<rsp:ExitCode>{rc}</rsp:ExitCode></rsp:CommandState>"
        )
    return f"<rsp:ReceiveResponse>{''.join(parts)}</rsp:ReceiveResponse>"
