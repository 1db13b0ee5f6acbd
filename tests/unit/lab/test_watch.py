# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet stand-in outlives a restart of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from lab.cluster import watch
from lab.cluster.watch import Cluster, Refused

NOT_READY = 'pods "web-0" is forbidden: not yet ready to handle request'


def asked(answers: Iterator[tuple[int, str]]) -> str:
    """The version that a call gets in the end, of a server that answers in this order."""

    async def answer(_request: web.Request) -> web.Response:
        status, text = next(answers)
        return web.Response(status=status, text=text)

    async def talk() -> str:
        server = web.Application()
        server.router.add_patch("/pod", answer)
        runner = web.AppRunner(server)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            async with aiohttp.ClientSession() as session:
                port = runner.addresses[0][1]
                found = await Cluster(session, f"http://127.0.0.1:{port}").call("PATCH", "/pod", {})
                return str(found["version"])
        finally:
            await runner.cleanup()

    return asyncio.run(talk())


def test_a_write_that_a_starting_server_refuses_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RETRY", 0)
    assert asked(iter([(403, NOT_READY), (503, ""), (200, '{"version": "2"}')])) == "2"


def test_a_refusal_is_final() -> None:
    with pytest.raises(Refused, match="403"):
        asked(iter([(403, "namespace shop is being terminated")]))
