# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's exec and log endpoints.

Exec speaks the web socket sub-protocols v4 and v5 (`remotecommand` in kubernetes/kubernetes,
staging/src/k8s.io/apimachinery): binary frames whose first byte is the channel: 0 stdin, 1 stdout, 2 stderr, 3 the
final status as JSON, and in v5 255 followed by the number of a channel that the client closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aiohttp import WSMsgType, web

from lab.cluster import nanoserver, plugin
from lab.cluster.api import Object
from lab.cluster.bsdtar import Archive
from lab.cluster.hostlink import Hosts
from lab.cluster.settings import Source
from lab.windows.agent import EXIT, STDERR, AgentError, AsyncAgent, AsyncCommand, Request

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN_CHANNEL, STDOUT_CHANNEL, STDERR_CHANNEL, STATUS_CHANNEL, CLOSE_CHANNEL = 0, 1, 2, 3, 255


def final_status(rc: int | None, message: str = "") -> Object:
    """What ends an exec: `rc` is the command's exit code, None when it could not be started."""
    if rc == 0:
        return {"metadata": {}, "status": "Success"}
    if rc is None:
        return {
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        }
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {rc}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(rc)}]},
    }


class Running(Protocol):
    """A command under way in a container."""

    async def feed(self, data: bytes) -> None:
        """Write to its standard input."""

    async def end_input(self) -> None:
        """Close its standard input."""

    def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        """(channel, data) until (STATUS_CHANNEL, exit code in decimal)."""

    def stop(self) -> None:
        """End it: its client has gone."""


class OnHost:
    """A command that the node's Windows host runs."""

    def __init__(self, command: AsyncCommand) -> None:
        self._command = command

    async def feed(self, data: bytes) -> None:
        await self._command.send(data)

    async def end_input(self) -> None:
        await self._command.end_input()

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            kind, data = await self._command.read()
            if kind == EXIT:
                yield STATUS_CHANNEL, str(int.from_bytes(data, "big")).encode()
                return
            yield (STDERR_CHANNEL if kind == STDERR else STDOUT_CHANNEL), data

    def stop(self) -> None:
        self._command.terminate()
        self._command.close()


class Scripted:
    """A command with a known end; with `echo` its output is its standard input."""

    def __init__(self, rc: int, stdout: bytes = b"", stderr: bytes = b"", echo: bool = False) -> None:
        self._rc, self._stdout, self._stderr, self._echo = rc, stdout, stderr, echo
        self._input: asyncio.Queue[bytes] = asyncio.Queue()

    async def feed(self, data: bytes) -> None:
        if data:
            await self._input.put(data)

    async def end_input(self) -> None:
        await self._input.put(b"")

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        if self._stdout:
            yield STDOUT_CHANNEL, self._stdout
        if self._stderr:
            yield STDERR_CHANNEL, self._stderr
        while self._echo and (data := await self._input.get()):
            yield STDOUT_CHANNEL, data
        yield STATUS_CHANNEL, str(self._rc).encode()

    def stop(self) -> None:
        self._input.put_nowait(b"")


class Streamed:
    """A tar, put out as it is made."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def feed(self, data: bytes) -> None:
        """It reads nothing."""

    async def end_input(self) -> None:
        """It reads nothing."""

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        for chunk in self._archive.chunks():
            if chunk:
                yield STDOUT_CHANNEL, chunk
        if self._archive.errors:
            yield STDERR_CHANNEL, self._archive.errors.encode()
        yield STATUS_CHANNEL, str(self._archive.code).encode()

    def stop(self) -> None:
        """Without a listener, the next frame reports it."""


def builtin(words: list[str]) -> Scripted:
    """What a container without a host behind it can do: exit with a code, echo, copy its input."""
    text = " ".join(words)
    if match := re.search(r"\bexit (?:/b )?(\d+)\s*$", text):
        return Scripted(int(match.group(1)))
    if match := re.match(r"(?:cmd(?:\.exe)? /c |sh -c )?echo (.*)$", text):
        return Scripted(0, f"{match.group(1)}\n".encode())
    if words == ["cat"]:
        return Scripted(0, echo=True)
    return Scripted(127, stderr=f"{words[0]}: not found\n".encode())


def command_line(words: list[str]) -> Request:
    """The host's command for a container's: `cmd /c ...` goes to the interpreter, anything else starts as a program."""
    name = words[0].lower().rpartition("\\")[2]
    if name in ("cmd", "cmd.exe"):
        for index, word in enumerate(words[1:], 1):
            if word.lower() == "/c":
                return Request(" ".join(words[index + 1 :]))
    return Request(subprocess.list2cmdline(words), shell=False)


class Exec:
    """Handler of /exec."""

    def __init__(
        self,
        hosts: Hosts,
        settings: Source,
        node_of: Callable[[str, str], str | None],
        files_of: Callable[[str, str, str], dict[str, Path] | None],
    ) -> None:
        self._hosts, self._settings, self._node_of, self._files_of = hosts, settings, node_of, files_of
        self._cut: set[tuple[str, ...]] = set()

    async def _start(self, namespace: str, pod: str, container: str, words: list[str]) -> Running:
        answer = self._settings.get().answer(container, words)
        if answer is not None:
            return Scripted(answer.rc, answer.stdout.encode(), answer.stderr.encode())
        node = self._node_of(namespace, pod)
        files = self._files_of(namespace, pod, container)
        if files is not None:
            if not files:
                raise nanoserver.CannotStart(f"container not found ({json.dumps(container)})")
            done = nanoserver.run(words, files)
            if isinstance(done, Archive):
                return Streamed(done)
            return Scripted(done.code, done.output, done.errors)
        host = self._hosts.find(node) if node else None
        if host is None:
            return builtin(words)
        return OnHost(await AsyncAgent(host.agent, host.name).start(command_line(words)))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(status=400, text="exec is served by web socket only, not by SPDY\n")
        socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=64 << 20, compress=False)
        await socket.prepare(request)
        part, words = request.match_info, request.query.getall("command", [])
        try:
            running = await self._start(part["namespace"], part["pod"], part["container"], words)
        except (AgentError, OSError, nanoserver.CannotStart) as error:
            await _send(socket, STATUS_CHANNEL, json.dumps(final_status(None, str(error))).encode())
            await socket.close()
            return socket
        interactive = request.query.get("input") == "1"
        if not interactive:
            await running.end_input()
        receiver = asyncio.create_task(_receive(socket, running, interactive))
        try:
            # A kubelet opens the output channels with empty frames.
            await _send(socket, STDOUT_CHANNEL)
            await _send(socket, STDERR_CHANNEL)
            async for channel, data in running.frames():
                ended = channel == STATUS_CHANNEL
                if ended and self._settings.get().cuts(words) and (part["pod"], *words) not in self._cut:
                    self._cut.add((part["pod"], *words))
                    if request.transport is not None:
                        request.transport.abort()
                    return socket
                await _send(socket, channel, json.dumps(final_status(int(data))).encode() if ended else data)
        except AgentError as error:
            await _send(socket, STATUS_CHANNEL, json.dumps(final_status(None, str(error))).encode())
        except ConnectionError:
            running.stop()
        finally:
            # The answer to the closing handshake is read by `receiver`, so it has to end first.
            receiver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await receiver
            await socket.close()
        return socket


async def _send(socket: web.WebSocketResponse, channel: int, data: bytes = b"") -> None:
    await socket.send_bytes(bytes([channel]) + data)


async def _receive(socket: web.WebSocketResponse, running: Running, interactive: bool) -> None:
    async for message in socket:
        if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
            continue
        data = message.data.encode() if isinstance(message.data, str) else message.data
        if not data or not interactive:
            continue
        with contextlib.suppress(ConnectionError):
            if data[0] == STDIN_CHANNEL:
                await running.feed(data[1:])
            elif data[0] == CLOSE_CHANNEL and data[1:2] == b"\0":
                await running.end_input()
    running.stop()


@dataclass(slots=True)
class Log:
    """Lines of one container, with their times; `previous` those of the run before."""

    current: list[tuple[str, str]] = field(default_factory=list)
    previous: list[tuple[str, str]] | None = None
    waiting: str = ""
    grown: asyncio.Event = field(default_factory=asyncio.Event)


class Logs:
    """Container logs, and the handler of /containerLogs."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str, str], Log] = {}

    def of(self, namespace: str, pod: str, container: str) -> Log:
        return self._logs.setdefault((namespace, pod, container), Log())

    def start(self, namespace: str, pod: str, container: str, lines: list[str]) -> None:
        """A new run of a container begins with these lines; what was current becomes previous."""
        log = self.of(namespace, pod, container)
        if log.current:
            log.previous = log.current
        log.current, log.waiting = [], ""
        self.append(namespace, pod, container, lines)

    def append(self, namespace: str, pod: str, container: str, lines: list[str]) -> None:
        log = self.of(namespace, pod, container)
        log.current = [*log.current, *((plugin.stamp(), line) for line in lines)]
        log.grown.set()
        log.grown = asyncio.Event()

    def forget(self, namespace: str, pod: str) -> None:
        for key in [key for key in self._logs if key[:2] == (namespace, pod)]:
            self._logs.pop(key).grown.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        part, query = request.match_info, request.query
        log = self.of(part["namespace"], part["pod"], part["container"])
        lines = log.current
        if query.get("previous") == "true":
            if log.previous is None:
                text = f'previous terminated container "{part["container"]}" in pod "{part["pod"]}" not found\n'
                return web.Response(status=400, text=text)
            lines = log.previous
        elif log.waiting:
            text = f'container "{part["container"]}" in pod "{part["pod"]}" is waiting to start: {log.waiting}\n'
            return web.Response(status=400, text=text)
        shown = lines
        if "tailLines" in query:
            count = int(query["tailLines"])
            shown = lines[-count:] if count else []
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)

        async def write(entries: list[tuple[str, str]]) -> None:
            prefix = query.get("timestamps") == "true"
            text = "".join(f"{when} {line}\n" if prefix else f"{line}\n" for when, line in entries)
            await answer.write(text.encode())

        await write(shown)
        while query.get("follow") == "true" and lines is not log.previous:
            grown = log.grown
            if log.current is lines:
                await grown.wait()
            if log is not self._logs.get((part["namespace"], part["pod"], part["container"])):
                break
            if log.previous is lines:
                # The container ended: so does the stream, as a kubelet's does.
                break
            await write(log.current[len(lines) :])
            lines = log.current
        return answer
