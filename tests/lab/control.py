# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the command line and tests talk to a lab's supervisor: a Unix socket in the lab's folder.

One connection is one call: the client sends `{"verb": ..., "args": {...}}` as a line and gets `{"ok": true, "result":
...}` or `{"ok": false, "error": "..."}`.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.state import LabError, paths

Verb = Callable[..., Any]


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name for the socket that fits into its 108 bytes however deep the folder is."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class Server:
    """Serves verbs; each call in a thread of its own."""

    def __init__(self, path: Path, verbs: dict[str, Verb]) -> None:
        self._verbs = verbs
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        with _short(path) as name:
            self._socket.bind(name)
        path.chmod(0o600)
        self._socket.listen()
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection = self._socket.accept()[0]
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            try:
                call = json.loads(stream.readline())
                verb = self._verbs.get(call["verb"])
                if verb is None:
                    raise LabError(f"the supervisor has no verb {call['verb']!r}; it knows {', '.join(self._verbs)}")
                answer: dict[str, Any] = {"ok": True, "result": verb(**call.get("args", {}))}
            except Exception as error:  # whatever goes wrong belongs to the caller, not to the supervisor
                text = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
                answer = {"ok": False, "error": text}
            try:
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()
            except BrokenPipeError:
                pass


def call(lab: str, verb: str, timeout: float = 300.0, **args: Any) -> Any:
    """Call a verb of a running lab's supervisor, which may have to wait for a component that it starts.

    Raises LabError with the supervisor's text, or without an answer.
    """
    path = paths(lab).control
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            with _short(path) as name:
                connection.connect(name)
            connection.sendall(json.dumps({"verb": verb, "args": args}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
    except OSError as error:
        raise LabError(
            f"lab {lab!r} does not answer at {path} ({error}); `python -m lab status --name {lab}` says why"
        ) from None
    if not line:
        raise LabError(f"the supervisor of lab {lab!r} ended during {verb!r}")
    answer = json.loads(line)
    if not answer["ok"]:
        raise LabError(answer["error"])
    return answer["result"]
