# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File server for the programs that lab hosts download, with the mishaps that downloads meet.

The path says what happens, so that a test needs no set-up:

``/<name>``                    the file, with Range and ETag
``/flaky/<n>/<name>``          500 for the first n requests of this path, then the file
``/slow/<bytes-per-s>/<name>`` the file at that speed
``/truncated/<bytes>/<name>``  the full length is announced, the connection ends after so many bytes
``/status/<code>/<name>``      that status
``/hang/<name>``               no answer

A request with an absolute URL, as clients send to a proxy, is served like any other and logged as ``proxied``.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lab.windows.httpd import Handler, HttpRequest, HttpResponse, HttpServer

_RANGE = re.compile(r"bytes=(\d+)-(\d*)$")
_PIECE = 64 * 1024
_LOG_SIZE = 10000


@dataclass(frozen=True, slots=True)
class ArtifactsConfig:
    """``root``: the folder that is served. Port 0 takes a free one, None does not listen. ``https_untrusted`` serves a
    certificate that no host trusts (``untrusted_cert``, ``untrusted_key``)."""

    root: str
    address: str = "127.0.0.1"
    http: int | None = 0
    https: int | None = None
    https_untrusted: int | None = None
    untrusted_cert: str = ""
    untrusted_key: str = ""


class ArtifactServer:
    """Serves files below a folder; ``log`` has one entry a request."""

    def __init__(self, config: ArtifactsConfig, tls: ssl.SSLContext | None, untrusted: ssl.SSLContext | None) -> None:
        self.config = config
        self.log: deque[dict[str, Any]] = deque(maxlen=_LOG_SIZE)
        self.ports: dict[str, int] = {}
        self._root = Path(config.root)
        self._failed: Counter[str] = Counter()
        self._servers: dict[str, tuple[HttpServer, int]] = {}
        if config.http is not None:
            self._servers["http"] = (HttpServer(self._connection("http")), config.http)
        if config.https is not None and tls is not None:
            self._servers["https"] = (HttpServer(self._connection("https"), tls=tls), config.https)
        if config.https_untrusted is not None and untrusted is not None:
            server = HttpServer(self._connection("https_untrusted"), tls=untrusted)
            self._servers["https_untrusted"] = (server, config.https_untrusted)

    async def start(self) -> None:
        for name, (server, port) in self._servers.items():
            self.ports[name] = await server.start(self.config.address, port)

    async def stop(self) -> None:
        for server, _port in self._servers.values():
            await server.stop()

    def _connection(self, listener: str) -> Any:
        def connect(client: str) -> Handler:
            async def handle(request: HttpRequest) -> HttpResponse:
                response = await self._respond(request)
                self.log.append(
                    {
                        "time": time.time(),
                        "listener": listener,
                        "client": client,
                        "method": request.method,
                        "target": request.target,
                        "proxied": "://" in request.target,
                        "range": request.headers.get("range", ""),
                        "status": response.status,
                    }
                )
                return response

            return handle

        return connect

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return _plain(405, f"{request.method} is not served here, only GET and HEAD")
        path = unquote(urlsplit(request.target).path).lstrip("/")
        kind, _slash, rest = path.partition("/")
        if kind in ("flaky", "slow", "truncated", "status") and "/" in rest:
            number, _slash, name = rest.partition("/")
            if number.isdigit():
                return self._mishap(kind, int(number), path, name, request)
        if kind == "hang" and rest:
            await asyncio.sleep(3600)
        return self._file(path, request)

    def _mishap(self, kind: str, number: int, path: str, name: str, request: HttpRequest) -> HttpResponse:
        if kind == "status":
            return _plain(number, f"asked for: {number}")
        if kind == "flaky" and self._failed[path] < number:
            self._failed[path] += 1
            return _plain(500, f"failure {self._failed[path]} of {number}")
        response = self._file(name, request)
        if response.status not in (200, 206):
            return response
        if kind == "slow":
            return HttpResponse(
                response.status,
                headers=response.headers,
                content_type=response.content_type,
                stream=_slowly(response.body, number),
                length=len(response.body),
            )
        if kind == "truncated":
            return HttpResponse(
                response.status,
                headers=response.headers,
                content_type=response.content_type,
                stream=_at_once(response.body[:number]),
                length=len(response.body),
                drop=True,
            )
        return response

    def _file(self, name: str, request: HttpRequest) -> HttpResponse:
        file = (self._root / name).resolve()
        if not file.is_relative_to(self._root.resolve()) or not file.is_file():
            return _plain(404, f"there is no {name} here")
        content = file.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = (("Accept-Ranges", "bytes"), ("ETag", tag))
        kind = "application/octet-stream"
        match = _RANGE.match(request.headers.get("range", ""))
        if match is None:
            return HttpResponse(200, content, headers, kind)
        first = int(match.group(1))
        last = min(int(match.group(2) or len(content) - 1), len(content) - 1)
        if first > last:
            return HttpResponse(416, b"", (("Content-Range", f"bytes */{len(content)}"),))
        span = ("Content-Range", f"bytes {first}-{last}/{len(content)}")
        return HttpResponse(206, content[first : last + 1], (*headers, span), kind)


def _plain(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, text.encode() + b"\n", content_type="text/plain; charset=utf-8")


async def _slowly(content: bytes, speed: int) -> AsyncIterator[bytes]:
    """Ten pieces a second that add up to ``speed`` bytes."""
    size = max(1, speed // 10)
    for start in range(0, len(content), size):
        yield content[start : start + size]
        await asyncio.sleep(0.1)


async def _at_once(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _PIECE):
        yield content[start : start + _PIECE]
