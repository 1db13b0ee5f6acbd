# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process in front of a lab's Windows hosts: ``python -m lab.windows.front --config front.json``.

Serves WS-Man and SSH of every host, the artifacts, and a control interface on loopback:

==================================  ==================================================================================
``GET /hosts``                      ports, settings, number of open shells, fault rules of every host
``POST /hosts``                     add a host (:class:`~lab.windows.config.HostConfig` as JSON)
``DELETE /hosts/<name>``            stop serving it
``GET|DELETE .../<name>/counters``  read; read and reset
``GET|DELETE .../<name>/journal``   command lines with exit code and bytes of standard input; read, read and clear
``GET|POST|DELETE .../faults``      list, add (:class:`~lab.windows.faults.Rule`), clear
``POST .../<name>/settings``        ``latency_ms``, ``down``
``DELETE .../<name>/shells``        what a reboot does
``GET|DELETE /artifacts/log``       requests for artifacts
==================================  ==================================================================================
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.windows.agent import AgentError
from lab.windows.artifacts import ArtifactServer
from lab.windows.auth import publish_users
from lab.windows.config import FrontConfig, HostConfig, from_json
from lab.windows.faults import Rule
from lab.windows.httpd import Handler, HttpRequest, HttpResponse, HttpServer
from lab.windows.ssh import SshEndpoint
from lab.windows.wsman import Endpoint


class _Refused(Exception):
    """A control request that cannot be carried out: status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Host:
    def __init__(self, config: HostConfig, endpoint: Endpoint, ssh: SshEndpoint | None) -> None:
        self.config = config
        self.endpoint = endpoint
        self.ssh = ssh
        self.ports: dict[str, int] = {}

    async def start(self) -> None:
        await self.endpoint.start()
        self.ports = dict(self.endpoint.ports)
        if self.ssh is not None and self.config.ssh is not None:
            self.ports["ssh"] = await self.ssh.start(self.config.endpoint.address, self.config.ssh)

    async def stop(self) -> None:
        await self.endpoint.stop()
        if self.ssh is not None:
            await self.ssh.stop()

    def describe(self) -> dict[str, Any]:
        endpoint = self.endpoint
        return {
            "ports": self.ports,
            "agent": self.config.endpoint.agent,
            "shells": len(endpoint.shells),
            "latency_ms": endpoint.settings.latency_ms,
            "down": endpoint.settings.down,
            "faults": endpoint.faults.describe(),
        }


class Front:
    """All servers of one lab in one event loop."""

    def __init__(self, config: FrontConfig) -> None:
        self.config = config
        self._hosts: dict[str, _Host] = {}
        self._tls = _tls(config.tls_cert, config.tls_key, config.tls_client_ca)
        self._control = HttpServer(self._control_connection)
        self._artifacts: ArtifactServer | None = None
        if config.artifacts is not None:
            untrusted = _tls(config.artifacts.untrusted_cert, config.artifacts.untrusted_key)
            self._artifacts = ArtifactServer(config.artifacts, self._tls, untrusted)

    async def start(self) -> dict[str, Any]:
        """Listen everywhere and return the ports, as they are written to the ready file."""
        for host in self.config.hosts:
            await self._add(host)
        if self._artifacts is not None:
            await self._artifacts.start()
        port = await self._control.start("127.0.0.1", self.config.control_port)
        return {
            "pid": os.getpid(),
            "control": f"http://127.0.0.1:{port}",
            "hosts": {name: host.ports for name, host in self._hosts.items()},
            "artifacts": {} if self._artifacts is None else self._artifacts.ports,
        }

    async def stop(self) -> None:
        await self._control.stop()
        if self._artifacts is not None:
            await self._artifacts.stop()
        for host in self._hosts.values():
            await host.stop()

    async def _add(self, config: HostConfig) -> _Host:
        name = config.endpoint.name
        if name in self._hosts:
            raise _Refused(409, f"host {name} is served already")
        endpoint = Endpoint(config.endpoint, self.config.users, self._tls)
        ssh = None
        if config.ssh is not None and self.config.ssh_host_key:
            authorized = self.config.ssh_authorized_keys
            ssh = SshEndpoint(
                endpoint.agent,
                self.config.users,
                host_key=Path(self.config.ssh_host_key),
                authorized_keys=Path(authorized) if authorized else None,
                oem_codepage=config.endpoint.oem_codepage,
                shell=config.ssh_shell,
                journal=endpoint.journal,
            )
        host = _Host(config, endpoint, ssh)
        await host.start()
        self._hosts[name] = host
        return host

    def _control_connection(self, _client: str) -> Handler:
        async def handle(request: HttpRequest) -> HttpResponse:
            try:
                result = await self._call(request)
                status = 200
            except _Refused as error:
                status, result = error.status, {"error": str(error)}
            except (ValueError, TypeError, OSError, AgentError) as error:
                status, result = 400, {"error": str(error)}
            return HttpResponse(status, json.dumps(result).encode(), content_type="application/json")

        return handle

    async def _call(self, request: HttpRequest) -> Any:
        parts = request.target.strip("/").split("/")
        body = json.loads(request.body) if request.body else {}
        match (request.method, parts):
            case ("GET", ["hosts"]):
                return {name: host.describe() for name, host in self._hosts.items()}
            case ("POST", ["hosts"]):
                return (await self._add(from_json(HostConfig, body))).describe()
            case ("DELETE", ["hosts", name]):
                host = self._host(name)
                del self._hosts[name]
                await host.stop()
                return {}
            case (method, ["hosts", name, part]):
                return _call_host(self._host(name), method, part, body)
            case (("GET" | "DELETE") as method, ["artifacts", "log"]) if self._artifacts is not None:
                log = list(self._artifacts.log)
                if method == "DELETE":
                    self._artifacts.log.clear()
                return log
        raise _Refused(404, f"{request.method} {request.target} is no call of the control interface")

    def _host(self, name: str) -> _Host:
        if name not in self._hosts:
            raise _Refused(404, f"host {name!r} is not served here; there are {', '.join(self._hosts) or 'none'}")
        return self._hosts[name]


def _call_host(host: _Host, method: str, part: str, body: Mapping[str, Any]) -> Any:
    endpoint = host.endpoint
    match (method, part):
        case (("GET" | "DELETE"), "counters"):
            return endpoint.counters(reset=method == "DELETE")
        case (("GET" | "DELETE"), "journal"):
            entries = list(endpoint.journal)
            if method == "DELETE":
                endpoint.journal.clear()
            return entries
        case ("GET", "faults"):
            return endpoint.faults.describe()
        case ("POST", "faults"):
            endpoint.faults.add(Rule.from_json(body))
            return endpoint.faults.describe()
        case ("DELETE", "faults"):
            endpoint.faults.clear()
            return []
        case ("POST", "settings"):
            unknown = set(body) - {"latency_ms", "down"}
            if unknown:
                raise ValueError(f"unknown settings {sorted(unknown)}; known are latency_ms and down")
            endpoint.settings.latency_ms = int(body.get("latency_ms", endpoint.settings.latency_ms))
            endpoint.settings.down = bool(body.get("down", endpoint.settings.down))
            return host.describe()
        case ("DELETE", "shells"):
            endpoint.shells.clear()
            return {}
    raise _Refused(404, f"{method} of {part!r} is no call of the control interface")


def _tls(cert: str, key: str, client_ca: str = "") -> ssl.SSLContext | None:
    if not cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert, key or None)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def write_ready(path: Path, state: Mapping[str, Any]) -> None:
    """Write a file in one step, so that a reader never gets half of it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(file.name, path)


async def _serve(config: FrontConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="kubewin-front-") as folder:
        publish_users(config.users, Path(folder, "ntlm_users"))
        front = Front(config)
        state = await front.start()
        write_ready(Path(config.ready_file), state)
        await stop.wait()
        await front.stop()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lab.windows.front", description="WS-Man, SSH and artifacts of a lab")
    parser.add_argument("--config", required=True, type=Path, help="FrontConfig as JSON")
    options = parser.parse_args(arguments)
    try:
        config = from_json(FrontConfig, json.loads(options.config.read_text(encoding="utf-8")), str(options.config))
    except (OSError, ValueError) as error:
        print(f"front: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
