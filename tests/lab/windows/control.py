# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the front's control interface, and the front as a child process of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from lab.windows.config import FrontConfig, HostConfig, to_json
from lab.windows.faults import Rule


class ControlError(Exception):
    """The control interface refused a call or does not answer."""


class FrontControl:
    """Calls of the control interface at ``url``; see :mod:`lab.windows.front` for what each returns."""

    def __init__(self, url: str) -> None:
        self.url = url
        # Loopback only: a proxy from the environment must not see these calls.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def hosts(self) -> dict[str, dict[str, Any]]:
        return cast("dict[str, dict[str, Any]]", self._call("GET", "/hosts"))

    def add_host(self, host: HostConfig) -> dict[str, Any]:
        return cast("dict[str, Any]", self._call("POST", "/hosts", to_json(host)))

    def remove_host(self, name: str) -> None:
        self._call("DELETE", f"/hosts/{name}")

    def counters(self, name: str, *, reset: bool = False) -> dict[str, int]:
        return cast("dict[str, int]", self._call("DELETE" if reset else "GET", f"/hosts/{name}/counters"))

    def journal(self, name: str, *, clear: bool = False) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._call("DELETE" if clear else "GET", f"/hosts/{name}/journal"))

    def add_fault(self, name: str, rule: Rule) -> None:
        self._call("POST", f"/hosts/{name}/faults", asdict(rule))

    def faults(self, name: str) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._call("GET", f"/hosts/{name}/faults"))

    def clear_faults(self, name: str) -> None:
        self._call("DELETE", f"/hosts/{name}/faults")

    def settings(self, name: str, **values: int | bool) -> None:
        self._call("POST", f"/hosts/{name}/settings", values)

    def drop_shells(self, name: str) -> None:
        self._call("DELETE", f"/hosts/{name}/shells")

    def artifact_log(self, *, clear: bool = False) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._call("DELETE" if clear else "GET", "/artifacts/log"))

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        try:
            with self._opener.open(request, timeout=60) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise ControlError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None
        except OSError as error:
            raise ControlError(f"{method} {self.url}{path}: {error}") from error


class FrontProcess:
    """A front that runs as a child; leaves with the ``with`` block.

    ``state`` is what the front wrote to its ready file.
    """

    def __init__(self, config: FrontConfig, folder: Path, timeout: float = 90.0) -> None:
        self.state: dict[str, Any] = {}
        path = folder / "front-config.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(to_json(config)), encoding="utf-8")
        self.log = folder / "front.log"
        log = self.log.open("ab")
        command = [sys.executable, "-m", "lab.windows.front", "--config", str(path)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        ready = Path(config.ready_file)
        deadline = time.monotonic() + timeout
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                text = self.log.read_text(encoding="utf-8", errors="replace")
                raise ControlError(f"the front did not come up within {timeout:g} s:\n{text}")
            time.sleep(0.02)
        self.state = json.loads(ready.read_text(encoding="utf-8"))
        self.control = FrontControl(self.state["control"])

    def __enter__(self) -> FrontProcess:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=10)
