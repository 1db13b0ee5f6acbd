# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves the agent protocol for hosts whose only command is PowerShell: ``python -m benchmark.powershell.server``.

Prints ``LISTEN <host:port>``. Control verbs: ``start_seconds`` (args ``value``: how long a PowerShell takes to start),
``counters`` (args ``reset``; answers PowerShell starts and modules run of the host), ``clone`` (args ``source``: the
host becomes a copy of that one).
"""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
import re
import struct
import sys
from typing import Any

from lab.windows.agent import EXIT, KILLED, STDERR, STDIN, STDIN_END, STDOUT, TERMINATE, frame

from benchmark.powershell import modules
from benchmark.powershell.host import Host, Node, key, parent
from benchmark.powershell.protocol import Call, ModuleCall, NotUnderstood, RawCall, ScriptCall, decode

_HEADER = struct.Struct(">BI")
_REMOVE = re.compile(r"^Remove-Item '(?P<path>(?:[^']|'')+)' -Force -Recurse;$", re.MULTILINE)
PROFILE = "C:\\Users\\Administrator"


class PowerShells:
    """All hosts, and the time that a PowerShell takes to start on each of them."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.start_seconds = 0.0

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a control call or a command."""
        try:
            message = json.loads(await reader.readline())
            if "control" in message:
                writer.write(json.dumps(self._control(message)).encode() + b"\n")
            else:
                await self._command(message, reader, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the controller has disconnected
        finally:
            writer.close()

    def _host(self, name: str) -> Host:
        return self.hosts.setdefault(name, Host())

    def _control(self, message: dict[str, Any]) -> dict[str, Any]:
        args = message.get("args", {})
        match message["control"]:
            case "start_seconds":
                self.start_seconds = float(args["value"])
                return {"ok": True}
            case "counters":
                host = self._host(message["host"])
                answer = {"ok": True, "starts": host.starts, "modules": list(host.modules)}
                if args.get("reset"):
                    host.starts = 0
                    host.modules.clear()
                return answer
            case "clone":
                self.hosts[message["host"]] = copy.deepcopy(self._host(args["source"]))
                return {"ok": True}
        return {"ok": False, "error": f"unknown verb {message['control']!r}"}

    async def _command(
        self, message: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        stdin = bytearray()
        started = asyncio.get_running_loop().time()
        while True:
            kind, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            data = await reader.readexactly(length)
            if kind == STDIN:
                stdin += data
            elif kind == STDIN_END:
                break
            elif kind == TERMINATE:
                writer.write(frame(EXIT, KILLED.to_bytes(4, "big")))
                return
        host = self._host(message["host"])
        host.starts += 1
        # A PowerShell that is still starting reads nothing: input that took longer to arrive has been waited for.
        await asyncio.sleep(max(0.0, self.start_seconds - (asyncio.get_running_loop().time() - started)))
        try:
            output, rc = answer(host, decode(message["line"], bytes(stdin))).encode() + b"\r\n", 0
            writer.write(frame(STDOUT, output))
        except NotUnderstood as error:
            rc = 1
            writer.write(frame(STDERR, f"PowerShell stand-in: not modelled: {error}\r\n".encode()))
        writer.write(frame(EXIT, rc.to_bytes(4, "big")))


def answer(host: Host, call: Call) -> str:
    """Standard output of one call."""
    if isinstance(call, ModuleCall):
        return json.dumps(modules.run(host, call))
    if isinstance(call, ScriptCall):
        return _script(host, call)
    return _raw(host, call)


def _script(host: Host, call: ScriptCall) -> str:
    match call.name:
        case "powershell_expand_user.ps1":
            return str(call.parameters["Path"]).replace("~", PROFILE, 1)
        case "powershell_mkdtemp.ps1":
            folder = str(call.parameters["Directory"]).replace("%TEMP%", f"{PROFILE}\\AppData\\Local\\Temp")
            path = f"{folder}\\{call.parameters['Name']}"
            host.nodes[key(path)] = Node()
            return path
        case "winrm_put_file.ps1":
            path = key(str(call.parameters["Path"]))
            if parent(path) not in host.nodes:
                raise NotUnderstood(f"put_file into {path}, whose folder does not exist")
            content = b"".join(base64.b64decode(line) for line in call.data.split(b"\r\n") if line.strip())
            host.nodes[path] = Node(content)
            return json.dumps({"sha1": hashlib.sha1(content).hexdigest()})
    raise NotUnderstood(f"script {call.name}")


def _raw(host: Host, call: RawCall) -> str:
    match = _REMOVE.search(call.script)
    if match is None:
        raise NotUnderstood(f"raw script: {call.script[:200]}")
    gone = key(match.group("path").replace("''", "'"))
    for path in [path for path in host.nodes if path == gone or path.startswith(gone + "\\")]:
        del host.nodes[path]
    return ""


async def _serve() -> None:
    server = await asyncio.start_server(PowerShells().connection, "127.0.0.1", 0, limit=16 * 1024 * 1024)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"LISTEN {host}:{port}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(_serve())
    except KeyboardInterrupt:
        sys.exit(130)
