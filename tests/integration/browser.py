# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium without a window, driven over its DevTools pipe (https://chromedevtools.github.io/devtools-protocol/).

The pipe is two file descriptors with one JSON object per NUL: no port, no WebSocket, nothing to install beside the browser.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ci import machine

PACKAGE, COMMANDS = next(iter(machine.FOR_TESTS.items()))
SECONDS = 180
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # Its sandbox refuses root and most containers; the only page it ever opens is one that we wrote.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    # Requests that would leave the machine resolve no name, and are still recorded.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


class Page:
    """One tab.

    requests: every address that it asked for; refused: those among them that the page's own policy stopped. complaints:
    everything on the console.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self._loaded = 0
        self._asked: dict[str, str] = {}
        self.requests: list[str] = []
        self.refused: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its result; what happens meanwhile is taken down."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, file: Path) -> None:
        """Opens a file and waits until it is loaded."""
        before = self._loaded
        self.call("Page.navigate", url=file.as_uri())
        deadline = time.monotonic() + SECONDS
        while self._loaded == before:
            self._read(deadline, f"loading {file}")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def emulate(self, *, scheme: str = "light", width: int = 1200, height: int = 900) -> None:
        """What the reader prefers: light or dark, and how large the window is."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def press(self, key: str) -> None:
        """A key as the keyboard sends it."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def picture(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def _read(self, deadline: float, doing: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _write, _errors = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._in, 1 << 20) if ready else b""
            if not chunk:
                raise AssertionError(f"{doing}: the browser {'ended' if ready else 'gave no answer in time'}")
            self._buffer += chunk
        raw, _nul, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded += 1
        elif event == "Network.requestWillBeSent":
            self._asked[about["requestId"]] = about["request"]["url"]
            self.requests.append(about["request"]["url"])
        elif event == "Network.loadingFailed" and about.get("blockedReason") == "csp":
            self.refused.append(self._asked[about["requestId"]])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(about["args"]))
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser with an empty profile and one tab; it is gone afterwards."""
    command = next((path for name in COMMANDS for path in [shutil.which(name)] if path), None)
    assert command, f"none of {', '.join(COMMANDS)} is on PATH: apt install {PACKAGE}"
    (theirs_in, ours_out), (ours_in, theirs_out) = (_pipe(), _pipe())
    actions = [(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4)]
    log = os.open(profile / "browser.log", os.O_WRONLY | os.O_CREAT, 0o600)
    actions += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    words = [command, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    pid = os.posix_spawn(command, words, {**os.environ, "HOME": str(profile)}, file_actions=actions, setsid=True)
    for descriptor in (theirs_in, theirs_out, log):
        os.close(descriptor)
    try:
        yield Page(ours_out, ours_in)
    finally:
        # It is the leader of a session of its own, so its children go with it.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours_out)
        os.close(ours_in)


def _pipe() -> tuple[int, int]:
    """A pipe above the descriptors that the browser is to find it at."""
    ends = os.pipe()
    raised = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return raised[0], raised[1]
