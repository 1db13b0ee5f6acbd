# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the agent that runs commands on a lab host.

One TCP connection is one command or one control call. The client sends a JSON line, then frames of
``[type u8][length u32 big endian][data]``; the agent answers frames and closes after the exit frame. A connection that
is dropped without a terminate frame leaves the command running, as a lost WinRM client does on Windows.

:class:`Agent` is the blocking client for tests and fixtures, :class:`AsyncAgent` the same for the servers of the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, BinaryIO

STDIN, STDIN_END, TERMINATE, HANG_UP = 0, 1, 2, 3
STDOUT, STDERR, EXIT = 1, 2, 3

# What Windows reports for a process that was killed from outside (STATUS_CONTROL_C_EXIT).
KILLED = 0xC000013A

_CHUNK = 64 * 1024
_HEADER = struct.Struct(">BI")


class AgentError(Exception):
    """The agent could not be reached, broke the connection, or refused a control call."""


@dataclass(frozen=True, slots=True)
class Request:
    """One command for a host.

    ``line`` is the command line in Unicode. With ``shell`` it is what follows ``cmd.exe /C``, otherwise what
    CreateProcess would get. ``codepage`` is the encoding of the output (65001 or an OEM page). ``stop_after`` kills the
    interpreter after that many simple commands of the line; ``hang_up_after`` breaks its output pipes. With ``user`` it runs
    for a user without administrator rights.
    """

    line: str
    shell: bool = True
    dir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    codepage: int = 65001
    stop_after: int | None = None
    hang_up_after: int | None = None
    user: bool = False

    def encode(self, host: str) -> bytes:
        message = {
            "host": host,
            "line": self.line,
            "shell": self.shell,
            "dir": self.dir,
            "env": dict(self.env),
            "codepage": self.codepage,
            "stop_after": self.stop_after,
            "hang_up_after": self.hang_up_after,
            "user": self.user,
        }
        return json.dumps(message).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left: exit code as unsigned 32 bit, and the bytes of both streams."""

    rc: int
    stdout: bytes
    stderr: bytes


def frame(kind: int, data: bytes = b"") -> bytes:
    """One frame of the protocol."""
    return _HEADER.pack(kind, len(data)) + data


def parse_address(address: str) -> tuple[str, int]:
    """Split ``host:port``."""
    host, _colon, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"agent address {address!r} is not of the form host:port")
    return host, int(port)


def _control_message(host: str, verb: str, args: Mapping[str, Any]) -> bytes:
    return json.dumps({"host": host, "control": verb, "args": dict(args)}).encode() + b"\n"


def _control_reply(address: str, host: str, verb: str, raw: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(raw)
    except ValueError:
        raise AgentError(
            f"agent {address}: {verb!r} for host {host!r} was answered by {raw[:200]!r}, not by JSON"
        ) from None
    if not isinstance(reply, dict) or reply.get("ok") is not True:
        error = reply.get("error") if isinstance(reply, dict) else reply
        raise AgentError(f"agent {address} refused {verb!r} for host {host!r}: {error}")
    return reply


class Command:
    """A command that runs on a host (blocking client)."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self._sock = sock
        self._address = address
        self._reader = sock.makefile("rb")

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.detach()

    def send(self, data: bytes) -> None:
        """Write to the command's standard input; silently lost when the command has ended."""
        for start in range(0, len(data), _CHUNK):
            self._write(frame(STDIN, data[start : start + _CHUNK]))

    def end_input(self) -> None:
        self._write(frame(STDIN_END))

    def terminate(self) -> None:
        """Kill the command; its exit frame still follows."""
        self._write(frame(TERMINATE))

    def detach(self) -> None:
        """Drop the connection; the command runs on."""
        self._reader.close()
        self._sock.close()

    def read(self) -> tuple[int, bytes]:
        """The next frame as (type, data); :class:`AgentError` when the agent hangs up before the exit frame."""
        try:
            header = self._reader.read(_HEADER.size)
            if len(header) == _HEADER.size:
                kind, length = _HEADER.unpack(header)
                data = self._reader.read(length)
                if len(data) == length:
                    return kind, data
        except TimeoutError:
            raise
        except OSError as error:
            raise AgentError(f"agent {self._address}: connection lost ({error})") from error
        raise AgentError(f"agent {self._address} closed the connection before the command's exit code")

    def wait(self) -> Result:
        """Read both streams to the end."""
        streams: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        while True:
            kind, data = self.read()
            if kind == EXIT:
                return Result(int.from_bytes(data, "big"), b"".join(streams[STDOUT]), b"".join(streams[STDERR]))
            streams[kind].append(data)

    def _write(self, data: bytes) -> None:
        # The command may end without reading all its input: its output must still be read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._sock.sendall(data)


class Agent:
    """Blocking client for one host behind an agent.

    ``address`` is ``host:port``; ``host`` the name of the host on an agent that serves several.
    """

    def __init__(self, address: str, host: str = "", connect_timeout: float = 30.0) -> None:
        self.address = address
        self.host = host
        self._target = parse_address(address)
        self._connect_timeout = connect_timeout

    def _connect(self, timeout: float | None) -> socket.socket:
        try:
            sock = socket.create_connection(self._target, timeout=self._connect_timeout)
        except OSError as error:
            raise AgentError(f"agent {self.address} of host {self.host!r} does not answer: {error}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(timeout)
        return sock

    def start(self, request: Request, timeout: float | None = None) -> Command:
        """Start a command; ``timeout`` (seconds) bounds each later read."""
        sock = self._connect(timeout)
        sock.sendall(request.encode(self.host))
        return Command(sock, self.address)

    def run(
        self,
        line: str,
        *,
        stdin: bytes | BinaryIO = b"",
        timeout: float = 60.0,
        shell: bool = True,
        codepage: int = 65001,
        stop_after: int | None = None,
        user: bool = False,
    ) -> Result:
        """Run a command to its end. TimeoutError when no frame arrives within ``timeout`` seconds."""
        request = Request(line, shell=shell, codepage=codepage, stop_after=stop_after, user=user)
        with self.start(request, timeout) as command:
            if isinstance(stdin, bytes):
                command.send(stdin)
            else:
                while chunk := stdin.read(_CHUNK):
                    command.send(chunk)
            command.end_input()
            return command.wait()

    def control(self, verb: str, **args: Any) -> dict[str, Any]:
        """Call a control verb and return its reply unchecked; AgentError when it is refused."""
        sock = self._connect(60.0)
        with sock, sock.makefile("rb") as reader:
            sock.sendall(_control_message(self.host, verb, args))
            return _control_reply(self.address, self.host, verb, reader.readline())


class AsyncCommand:
    """A command that runs on a host (asyncio client)."""

    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write to standard input. ConnectionError when the agent has hung up."""
        for start in range(0, len(data), _CHUNK):
            self._writer.write(frame(STDIN, data[start : start + _CHUNK]))
            await self._writer.drain()

    async def end_input(self) -> None:
        self._writer.write(frame(STDIN_END))
        await self._writer.drain()

    def terminate(self) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(TERMINATE))

    def hang_up(self) -> None:
        """The client stopped reading; the command continues."""
        if not self._writer.is_closing():
            self._writer.write(frame(STDIN_END) + frame(HANG_UP))

    async def read(self) -> tuple[int, bytes]:
        """The next frame as (type, data); :class:`AgentError` when the agent hangs up before the exit frame."""
        try:
            kind, length = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
            return kind, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise AgentError(f"agent {self._address}: connection lost before the exit code ({error})") from error

    def close(self) -> None:
        self._writer.close()


class AsyncAgent:
    """asyncio client for one host behind an agent."""

    def __init__(self, address: str, host: str = "") -> None:
        self.address = address
        self.host = host
        self._target = parse_address(address)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await asyncio.open_connection(*self._target, limit=4 * 1024 * 1024)
        except OSError as error:
            raise AgentError(f"agent {self.address} of host {self.host!r} does not answer: {error}") from error
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return reader, writer

    async def start(self, request: Request) -> AsyncCommand:
        reader, writer = await self._connect()
        writer.write(request.encode(self.host))
        return AsyncCommand(self.address, reader, writer)

    async def control(self, verb: str, **args: Any) -> dict[str, Any]:
        """Call a control verb; AgentError when it is refused."""
        reader, writer = await self._connect()
        try:
            writer.write(_control_message(self.host, verb, args))
            return _control_reply(self.address, self.host, verb, await reader.readline())
        finally:
            writer.close()
