# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small HTTP/1.1 server on asyncio for the lab's servers.

Written out because the lab must do what web frameworks hide: keep authentication with the TCP connection, drop a
connection before or after the work was done, send less than was announced, and count every byte of both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024


class DropConnection(Exception):
    """Raised by a handler: abort the TCP connection instead of answering."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """``headers`` has lower-case names; ``wire`` is the size of head and body in bytes.

    ``certificate``: the common name of the client's certificate, where it showed one that the server trusts.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    wire: int
    certificate: str = ""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """``stream`` replaces ``body`` for what is sent in pieces; its ``length`` is announced, whatever then comes.

    ``drop`` aborts the connection after what was sent.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/soap+xml;charset=UTF-8"
    stream: AsyncIterator[bytes] | None = None
    length: int = 0
    drop: bool = False


@dataclass(slots=True)
class Meter:
    """Bytes of HTTP (before TLS) of both directions, and connections."""

    connections: int = 0
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(slots=True)
class HttpServer:
    """One listening socket. ``connect`` gets a new connection's client address and gives its handler."""

    connect: Callable[[str], Handler]
    meter: Meter = field(default_factory=Meter)
    tls: ssl.SSLContext | None = None
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self, address: str, port: int) -> int:
        """Listen and return the port."""
        self._server = await asyncio.start_server(
            self._serve, address, port, ssl=self.tls, limit=1024 * 1024, backlog=256, reuse_address=True
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.meter.connections += 1
        self._writers.add(writer)
        try:
            handler = self.connect(str(writer.get_extra_info("peername")[0]))
            certificate = _common_name(writer.get_extra_info("peercert") or {})
            while (request := await _read(reader, certificate)) is not None:
                self.meter.requests += 1
                self.meter.bytes_in += request.wire
                response = await self._ask(handler, request)
                if not await self._write(writer, request, response):
                    return
        except _InvalidVerb:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()
        except (DropConnection, asyncio.CancelledError):
            # Cancelled when the server stops: nothing waits for this task's result.
            pass
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            # The client disconnected; what it had started continues.
            pass
        finally:
            self._writers.discard(writer)
            if not writer.is_closing():
                writer.transport.abort()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _ask(self, handler: Handler, request: HttpRequest) -> HttpResponse:
        try:
            return await handler(request)
        except DropConnection:
            raise
        except Exception:
            # A defect of the lab must be reported as one, not as a broken connection.
            traceback.print_exc()
            return HttpResponse(500, b"the lab's server failed, see its log\n", content_type="text/plain")

    async def _write(self, writer: asyncio.StreamWriter, request: HttpRequest, response: HttpResponse) -> bool:
        """Send the answer; False when the connection must not be used again."""
        length = response.length if response.stream is not None else len(response.body)
        lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in response.headers]
        if length:
            lines.append(f"Content-Type: {response.content_type}")
        lines.append(f"Content-Length: {length}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        body = b"" if request.method == "HEAD" else response.body
        writer.write(head + body)
        self.meter.bytes_out += len(head) + len(body)
        if response.stream is not None and request.method != "HEAD":
            async for piece in response.stream:
                writer.write(piece)
                self.meter.bytes_out += len(piece)
                await writer.drain()
        await writer.drain()
        if response.drop:
            writer.close()
            return False
        if request.headers.get("connection", "").lower() == "close":
            writer.close()
            return False
        return True


class _InvalidVerb(Exception):
    """The client does not speak HTTP: HTTP.sys answers at once with 400 ("Invalid Verb"), which a client of TLS gets."""


def _common_name(certificate: Mapping[str, Any]) -> str:
    names = (value for part in certificate.get("subject", ()) for name, value in part if name == "commonName")
    return next(names, "")


async def _read(reader: asyncio.StreamReader, certificate: str) -> HttpRequest | None:
    """The next request; None when the client has hung up between requests."""
    begun = await reader.read(1)
    if not begun:
        return None
    if not begun.isalpha():
        raise _InvalidVerb
    head = begun + await reader.readuntil(b"\r\n\r\n")
    if len(head) > MAX_HEAD:
        raise DropConnection
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise DropConnection
    headers = {}
    for line in rest:
        name, _colon, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers:
        # None of the clients that the lab serves sends chunks.
        raise DropConnection
    size = int(headers.get("content-length") or 0)
    if size > MAX_BODY:
        raise DropConnection
    body = await reader.readexactly(size) if size else b""
    return HttpRequest(parts[0], parts[1], headers, body, len(head) + size, certificate)
