# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may stand between a controller and its hosts: an HTTP proxy (``CONNECT`` only) and an ssh jump host."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh


@dataclass(slots=True)
class Passage:
    """``port`` on 127.0.0.1; ``passed``: what it connected to."""

    port: int = 0
    passed: list[tuple[str, int]] = field(default_factory=list)
    clients: list[asyncssh.SSHServerConnection] = field(default_factory=list)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _proxy(passage: Passage) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, target, _version = head.split("\r\n")[0].split(" ")
        host, _colon, port = target.rpartition(":")
        if method != "CONNECT" or not port.isdigit():
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        passage.passed.append((host, int(port)))
        to_host, from_us = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, from_us), _copy(to_host, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    passage.port = server.sockets[0].getsockname()[1]
    return server


async def _jump(passage: Passage, host_key: Path, authorized: Path) -> asyncssh.SSHAcceptor:
    class Jump(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            passage.clients.append(conn)

        def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
            passage.passed.append((dest_host, dest_port))
            return True

    acceptor = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Jump, server_host_keys=[str(host_key)], authorized_client_keys=str(authorized)
    )
    passage.port = acceptor.get_port()
    return acceptor


@contextlib.contextmanager
def passages(host_key: Path, authorized: Path) -> Iterator[tuple[Passage, Passage]]:
    """A proxy and a jump host while the ``with`` block lasts."""
    proxy, jump = Passage(), Passage()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[asyncio.Server, asyncssh.SSHAcceptor]:
        return await _proxy(proxy), await _jump(jump, host_key, authorized)

    servers = asyncio.run_coroutine_threadsafe(start(), loop).result(60)

    async def stop() -> None:
        for server in servers:
            server.close()
        # ssh keeps its connection for later commands.
        for client in jump.clients:
            client.abort()

    try:
        yield proxy, jump
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
