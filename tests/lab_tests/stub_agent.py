# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An agent whose commands do what their line names, for tests of the servers in front of agents.

What is left of a line without its cmd.exe wrapper decides: ``exit <n>``, ``cat`` (standard input to standard output),
``hang``, ``say <words>``, ``bytes <n>``, ``env``, or a key of ``scripts``.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from lab.windows import agent as protocol


@dataclass(frozen=True, slots=True)
class Script:
    """Pieces as (seconds to wait, stream, bytes), then the exit code; ``reads_input``: after the end of its input."""

    pieces: tuple[tuple[float, int, bytes], ...] = ()
    rc: int = 0
    reads_input: bool = False


@dataclass(slots=True)
class StubAgent:
    """Serves on a free port while its ``with`` block lasts; ``requests`` are the JSON lines it got."""

    scripts: dict[str, Script] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    terminated: list[str] = field(default_factory=list)
    hung_up: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    address: str = ""
    _listener: socket.socket | None = None

    def __enter__(self) -> StubAgent:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def wait_until(self, what: str, condition: Any, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
            time.sleep(0.005)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _peer = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            request = json.loads(reader.readline())
            self.requests.append(request)
            if "control" in request:
                refused = request["control"] == "refuse"
                reply = {"ok": False, "error": "as asked"} if refused else {"ok": True, "args": request["args"]}
                connection.sendall(json.dumps(reply).encode() + b"\n")
                return
            inbox = _Inbox(reader)
            rc = self._run(request, connection, inbox)
            if inbox.hung_up.is_set():
                self.hung_up.append(request["line"])
            if inbox.terminated.is_set():
                self.terminated.append(request["line"])
                rc = protocol.KILLED
            self.finished.append(request["line"])
            try:
                connection.sendall(protocol.frame(protocol.EXIT, rc.to_bytes(4, "big")))
                connection.shutdown(socket.SHUT_WR)
                inbox.gone.wait(5)
            except OSError:
                pass

    def _run(self, request: dict[str, Any], connection: socket.socket, inbox: _Inbox) -> int:
        def notify(stream: int, data: bytes) -> None:
            connection.sendall(protocol.frame(stream, data))

        line = request["line"]
        if line not in self.scripts:
            line = _inner(line)
        word, _blank, rest = line.partition(" ")
        if request["stop_after"] is not None:
            return protocol.KILLED
        if word == "exit":
            return int(rest)
        if word == "say":
            notify(protocol.STDOUT, rest.encode(f"cp{request['codepage']}") + b"\r\n")
        elif word == "bytes":
            left = int(rest)
            while left > 0:
                notify(protocol.STDOUT, b"x" * min(left, 50000))
                left -= 50000
        elif word == "env":
            notify(protocol.STDOUT, json.dumps([request["dir"], request["env"]]).encode())
        elif word == "cat":
            for data in inbox.input():
                notify(protocol.STDOUT, data)
        elif word == "hang":
            inbox.over.wait(30)
        elif line in self.scripts:
            if self.scripts[line].reads_input:
                list(inbox.input())
            for pause, stream, data in self.scripts[line].pieces:
                inbox.terminated.wait(pause)
                notify(stream, data)
            return self.scripts[line].rc
        else:
            notify(protocol.STDERR, f"the stub has no line {line!r}\r\n".encode())
            return 1
        return 0


class _Inbox:
    """Reads the client's frames in the background."""

    def __init__(self, reader: Any) -> None:
        self.terminated = threading.Event()
        self.hung_up = threading.Event()
        self.over = threading.Event()
        self.gone = threading.Event()
        self._condition = threading.Condition()
        self._data: list[bytes] = []
        self._ended = False
        threading.Thread(target=self._read, args=(reader,), daemon=True).start()

    def _read(self, reader: Any) -> None:
        try:
            while len(header := reader.read(5)) == 5:
                data = reader.read(int.from_bytes(header[1:], "big"))
                with self._condition:
                    if header[0] == protocol.STDIN:
                        self._data.append(data)
                    else:
                        self._ended = True
                    self._condition.notify()
                if header[0] == protocol.TERMINATE:
                    self.terminated.set()
                if header[0] == protocol.HANG_UP:
                    self.hung_up.set()
                if header[0] in (protocol.TERMINATE, protocol.HANG_UP):
                    self.over.set()
        except (OSError, ValueError):
            pass
        with self._condition:
            self._ended = True
            self._condition.notify()
        self.gone.set()

    def input(self) -> Iterable[bytes]:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._data or self._ended, 30)
                if not self._data:
                    return
                data = self._data.pop(0)
            yield data


def _inner(line: str) -> str:
    """What a cmd.exe wrapper of the collection, of ssh or of a client would run."""
    if line.startswith('"') and line.endswith('"'):
        line = line[1:-1]
    head, separator, rest = line.partition(' /s /c "')
    if separator and "cmd.exe" in head:
        return rest.removesuffix('"')
    return line.removeprefix("cmd.exe /c ")
