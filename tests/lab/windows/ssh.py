# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SSH server of one host, as Win32-OpenSSH behaves: commands only, no terminal, no file transfer.

With the default shell a command runs as ``cmd.exe /c "<command>"`` without any escaping; exit codes travel as 32 bits
and the client of the other side cuts them to 8. A client that leaves does not end its command: the job object that ends
all its children is held by the command itself (PowerShell/openssh-portable, w32-doexec.c; PowerShell/Win32-OpenSSH#1751). Its pipes are
broken from then on. Output is in the OEM code page.

With ``shell="powershell"`` the server behaves like a host whose DefaultShell is Windows PowerShell, see ``powershell``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import asyncssh

from lab.windows import powershell
from lab.windows.agent import EXIT, STDOUT, AgentError, AsyncAgent, AsyncCommand, Request

DefaultShell = Literal["cmd", "powershell"]
_CHUNK = 64 * 1024


class _Login(asyncssh.SSHServer):
    """Password login; public keys are checked by asyncssh against the authorized keys of the listener.

    ``connections``: of the whole endpoint, each while it is open.
    """

    def __init__(self, users: Mapping[str, str], connections: set[asyncssh.SSHServerConnection]) -> None:
        self._users = users
        self._connections = connections
        self._own: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._own = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._own is not None:
            self._connections.discard(self._own)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return self._users.get(username) == password


class SshEndpoint:
    """SSH before one host's agent. ``journal`` is shared with the host's other endpoints."""

    def __init__(
        self,
        agent: AsyncAgent,
        users: Mapping[str, str],
        *,
        host_key: Path,
        authorized_keys: Path | None,
        oem_codepage: int,
        shell: DefaultShell,
        journal: deque[dict[str, Any]],
    ) -> None:
        self._agent = agent
        self._users = users
        self._host_key = host_key
        self._authorized_keys = authorized_keys
        self._codepage = oem_codepage
        self._shell = shell
        self._journal = journal
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()

    async def start(self, address: str, port: int) -> int:
        self._acceptor = await asyncssh.listen(
            address,
            port,
            server_factory=lambda: _Login(self._users, self._connections),
            server_host_keys=[str(self._host_key)],
            authorized_client_keys=None if self._authorized_keys is None else str(self._authorized_keys),
            process_factory=self._session,
            encoding=None,
            allow_pty=False,
            server_version="OpenSSH_for_Windows_8.1",
        )
        return self._acceptor.get_port()

    async def stop(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            # A client that keeps its connection for later (ControlPersist) would be waited for.
            for connection in tuple(self._connections):
                connection.abort()
            await self._acceptor.wait_closed()
            self._acceptor = None

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command
        if command is None:
            process.stderr.write(b"the lab's SSH server runs commands, it has no interactive shell\r\n")
            process.exit(1)
            return
        line = f'"{command}"'
        if self._shell == "powershell":
            done = powershell.outcome(command)
            if isinstance(done, powershell.Printed):
                process.stdout.write(done.stdout.encode(f"cp{self._codepage}", "replace"))
                process.stderr.write(done.stderr.encode(f"cp{self._codepage}", "replace"))
                process.exit(done.code)
                return
            line = done.line
        record: dict[str, Any] = {"shell": "ssh", "line": command, "stdin": 0, "rc": None}
        self._journal.append(record)
        try:
            running = await self._agent.start(Request(line, codepage=self._codepage))
            feeder = asyncio.create_task(self._feed(process, running, record))
            try:
                record["rc"] = await self._drain(process, running)
                process.exit(record["rc"])
            finally:
                feeder.cancel()
                running.hang_up()
                running.close()
        except AgentError as error:
            process.stderr.write(f"{error}\r\n".encode())
            process.close()

    async def _drain(self, process: asyncssh.SSHServerProcess[bytes], running: AsyncCommand) -> int:
        closed = asyncio.create_task(process.channel.wait_closed())
        try:
            while True:
                frame = asyncio.create_task(running.read())
                await asyncio.wait({frame, closed}, return_when=asyncio.FIRST_COMPLETED)
                if not frame.done():
                    frame.cancel()
                    raise AgentError("the client closed the session")
                kind, data = frame.result()
                if kind == EXIT:
                    return int.from_bytes(data, "big")
                stream = process.stdout if kind == STDOUT else process.stderr
                stream.write(data)
                await stream.drain()
        finally:
            closed.cancel()

    async def _feed(
        self, process: asyncssh.SSHServerProcess[bytes], running: AsyncCommand, record: dict[str, Any]
    ) -> None:
        try:
            while data := await process.stdin.read(_CHUNK):
                record["stdin"] += len(data)
                await running.send(data)
            await running.end_input()
        except (ConnectionError, asyncssh.Error):
            # The command ended before its input, or the client left: both end the session elsewhere.
            pass
