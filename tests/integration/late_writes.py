# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of a run that arrive after another run took over and finished, as a slow proxy or a stopped process makes them.

The run speaks to a proxy, which holds one of its writes and every later one. Then the run is killed, or stopped, another run takes
over and finishes without the proxy, and the held writes go on to the API server::

    late = late_writes(lab, nth(3), begin, follow)
    assert late is not None  # the run made three writes
    assert accepted(late) == []
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from integration.playbooks import PATIENCE, family
from lab.faultproxy import Call, FaultProxy, read_call
from lab.handle import Lab, eventually
from lab.state import LabState

# Whether a run's write is the one to hold. It gets the number of the write, from 1.
Choice = Callable[[int, Call], bool]
_READS = {"get", "list", "watch"}
# Seconds that a stopped run's lease lasts, in place of the product's 45.
_SHORT = 2


@dataclass(frozen=True, slots=True)
class LateWrite:
    """A write that was held, and the API server's answer to it."""

    call: Call
    status: int

    def __str__(self) -> str:
        call = self.call
        return f"{call.verb} {call.resource} {call.namespace}/{call.name}: {self.status}"


def nth(number: int) -> Choice:
    """Hold the n-th write, from 1."""
    return lambda count, _call: count == number


def first(verb: str, resource: str) -> Choice:
    """Hold the first write of that kind, in RBAC's words."""
    return lambda _count, call: (call.verb, call.resource) == (verb, resource)


def accepted(late: Sequence[LateWrite]) -> list[str]:
    """The late writes that the API server carried out."""
    return [str(write) for write in late if write.status < 400]


class HoldingProxy(FaultProxy):
    """Holds a write and all later ones until `release`. The writes of Leases are held too but not counted: they are the fence."""

    def __init__(self, lab: LabState, choice: Choice, *, short_lease: bool = False, **access: str) -> None:
        super().__init__(lab, **access)
        self._choice, self._short_lease = choice, short_lease
        self._released, self._count, self._pending = asyncio.Event(), 0, 0
        self.held = threading.Event()
        self.late: list[LateWrite] = []

    def release(self) -> list[LateWrite]:
        """Send the held writes on; returns them once each is answered."""
        self._loop.call_soon_threadsafe(self._released.set)
        eventually(lambda: not self._pending, "the API server answers the late writes")
        return self.late

    async def _answer(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        call, body = read_call(request.method, request.path_qs), await request.read()
        if call.verb in _READS or call.resource.endswith("reviews") or call.dry_run or b'"dryRun"' in body:
            return await super()._answer(session, request)
        is_lease = call.resource == "leases"
        if is_lease and self._short_lease and body:
            request._read_bytes = _shortened(body)
        if not is_lease:
            self._count += 1
            if self._choice(self._count, replace(call, body=body)):
                self.held.set()
        if not self.held.is_set() or self._released.is_set():
            return await super()._answer(session, request)
        self._pending += 1
        try:
            await self._released.wait()
            return await self._forward(session, request, _relay if is_lease else partial(_record, self.late, call))
        finally:
            self._pending -= 1


def _shortened(body: bytes) -> bytes:
    lease = json.loads(body)
    if "spec" in lease:
        lease["spec"]["leaseDurationSeconds"] = _SHORT
    return json.dumps(lease).encode()


async def _relay(_request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")


async def _record(
    late: list[LateWrite], call: Call, request: web.Request, answer: aiohttp.ClientResponse
) -> web.StreamResponse:
    late.append(LateWrite(call, answer.status))
    return await _relay(request, answer)


def late_writes(
    lab: Lab,
    choice: Choice,
    begin: Callable[[str], subprocess.Popen[str]],
    follow: Callable[[], Any],
    *,
    stop: bool = False,
) -> list[LateWrite] | None:
    """The late writes of a run, None if it ended before the chosen one.

    begin: starts the run with the proxy's kubeconfig, in a session of its own. follow: another run, from its beginning to its end.
    stop: the run is stopped and goes on after the other run, instead of being killed; its lease lasts two seconds.
    """
    with HoldingProxy(lab.state, choice, short_lease=stop) as proxy:
        process = begin(proxy.kubeconfig)
        try:
            eventually(
                lambda: proxy.held.is_set() or process.poll() is not None, "the run makes the write or ends", PATIENCE
            )
            if not proxy.held.is_set():
                screen, _nothing = process.communicate()
                assert process.returncode == 0, screen
                return None
            _signal(process, signal.SIGSTOP if stop else signal.SIGKILL)
            if not stop:
                process.communicate()
            follow()
            late = proxy.release()
            if stop:
                _signal(process, signal.SIGCONT)
                screen, _nothing = process.communicate(timeout=PATIENCE)
                assert process.returncode != 0, f"the run that lost its lease reports success:\n{screen}"
            return list(late)
        finally:
            if process.poll() is None:
                _signal(process, signal.SIGKILL)
                process.communicate()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    for member in family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, number)
