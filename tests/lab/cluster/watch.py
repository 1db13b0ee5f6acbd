# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""asyncio client of the lab's API server for the kubelet stand-in: calls, and collections followed for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp

from lab.cluster import plugin
from lab.cluster.api import Object

RETRY = 0.2
# Refusals of admission in a server that has just started, also to accounts that may do everything.
# https://github.com/kubernetes/kubernetes/blob/v1.36.0/staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
STARTING = "not yet ready to handle request"


def notify(text: str) -> None:
    print(f"{plugin.stamp()} {text}", flush=True)


class Refused(Exception):
    """The API server answered with an error."""

    def __init__(self, method: str, path: str, status: int, text: str) -> None:
        super().__init__(f"{method} {path}: {status} {text[:300]}")
        self.status = status


class Cluster:
    """asyncio client of the API server. Every call here may be repeated, and is until the API server has decided it."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session, self._server = session, server

    async def call(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        headers = {"Content-Type": content_type} if body is not None else {}
        content = json.dumps(body).encode() if body is not None else None
        while True:
            try:
                async with self._session.request(method, self._server + path, data=content, headers=headers) as answer:
                    text = await answer.text()
                    if answer.status < 300:
                        found: Object = json.loads(text)
                        return found
                    if answer.status < 500 and answer.status != 429 and STARTING not in text:
                        raise Refused(method, path, answer.status, text)
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError):
                pass
            # The API server is away, restarting or busy: a kubelet waits for it.
            await asyncio.sleep(RETRY)

    async def follow(self, path: str) -> AsyncIterator[tuple[str, Object]]:
        """Events of a collection for ever: RESET before each fresh list, then ADDED, MODIFIED, DELETED."""
        while True:
            try:
                listed = await self.call("GET", path)
                yield "RESET", listed
                for item in listed["items"]:
                    yield "ADDED", item
                version = listed["metadata"]["resourceVersion"]
                url = f"{self._server}{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
                timeout = aiohttp.ClientTimeout(total=None, sock_read=600)
                async with self._session.get(url, timeout=timeout) as answer:
                    buffer = b""
                    async for chunk in answer.content.iter_any():
                        *lines, buffer = (buffer + chunk).split(b"\n")
                        for line in lines:
                            event = json.loads(line)
                            if event["type"] == "ERROR":
                                raise aiohttp.ClientPayloadError(str(event["object"]))
                            if event["type"] != "BOOKMARK":
                                yield event["type"], event["object"]
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError, Refused, ValueError) as error:
                notify(f"watch {path}: {type(error).__name__}: {error}")
            await asyncio.sleep(RETRY)
