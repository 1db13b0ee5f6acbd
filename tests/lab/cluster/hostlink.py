# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet stand-in's way to the Windows host that a node stands for: the lab's state file and the agents."""

from __future__ import annotations

import asyncio

from lab.state import Host, LabState, Paths
from lab.windows.agent import EXIT, STDOUT, AgentError, AsyncAgent, Request

LIST_PIPES = r"dir \\.\pipe\\csi-proxy-* /b"
TIMEOUT = 20.0


class HostUnreachable(Exception):
    """The host behind a node does not answer, as while it reboots."""


class Hosts:
    """Hosts by node, kept in step with `lab.json`."""

    def __init__(self, place: Paths) -> None:
        self._place = place
        self._observed = (0, 0)
        self._hosts: dict[str, Host] = {}

    def find(self, node: str) -> Host | None:
        try:
            found = self._place.state.stat()
        except FileNotFoundError:
            return None
        if self._observed != (found.st_mtime_ns, found.st_ino):
            state = LabState.from_json(self._place.state.read_text(encoding="utf-8"))
            self._hosts = {host.node: host for host in state.hosts}
            self._observed = (found.st_mtime_ns, found.st_ino)
        return self._hosts.get(node)

    async def pipes(self, host: Host) -> frozenset[str]:
        """The csi-proxy pipes that the host serves now, bare and in lower case.

        Raises HostUnreachable.
        """
        output = await self.run(host, LIST_PIPES)
        return frozenset(
            line.strip().lower() for line in output.splitlines() if line.strip().lower().startswith("csi-proxy-")
        )

    async def run(self, host: Host, line: str) -> str:
        """What a command line puts out on the host, whatever its exit code.

        Raises HostUnreachable.
        """
        try:
            return await asyncio.wait_for(_output(host, line), TIMEOUT)
        except (AgentError, OSError, TimeoutError, asyncio.TimeoutError) as error:
            raise HostUnreachable(f"{host.name}: {error}") from error


async def _output(host: Host, line: str) -> str:
    command = await AsyncAgent(host.agent, host.name).start(Request(line))
    try:
        await command.end_input()
        collected: list[bytes] = []
        while True:
            kind, data = await command.read()
            if kind == EXIT:
                return b"".join(collected).decode("utf-8", "replace")
            if kind == STDOUT:
                collected.append(data)
    finally:
        command.close()
