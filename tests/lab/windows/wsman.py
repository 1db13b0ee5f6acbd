# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The WS-Man endpoint of one host: what WinRM does with remote command shells, no more.

Modern Windows is the default: every command line goes through ``cmd.exe /C`` whatever WINRS_SKIP_CMD_SHELL says. An
unknown operation, resource or option that must be complied with is refused with a fault that names it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.windows import soap
from lab.windows.agent import AgentError, AsyncAgent
from lab.windows.auth import ENCRYPTED_TYPE, Challenge, ConnectionAuth, NotDecryptable
from lab.windows.faults import FaultTable, Rule
from lab.windows.httpd import DropConnection, Handler, HttpRequest, HttpResponse, HttpServer, Meter
from lab.windows.shells import Limits, RemoteCommand, Shell, ShellTable, streams

JOURNAL_SIZE = 20000

# What an answer needs besides base64 of the output: envelope, headers, states.
_ENVELOPE_OVERHEAD = 4096
_IGNORED_OPTIONS = frozenset({"WINRS_NOPROFILE", "WINRS_CODEPAGE", "WINRS_CONSOLEMODE_STDIN"})


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """One host's endpoint. Port 0 takes a free one, None does not listen.

    ``name``: name of the host on its agent and in the control interface. ``agent``: ``host:port``. ``address``: where
    to listen. ``basic_over_http``: Windows' AllowUnencrypted with Basic; without it Basic needs TLS, and NTLM over HTTP
    always needs message encryption. ``skip_cmd_shell``: behave as hosts before 2012 R2, which start a program without
    cmd.exe on request. ``oem_codepage``: of shells that ask for none, and of SSH sessions.
    """

    name: str
    agent: str
    address: str = "127.0.0.1"
    http: int | None = 0
    https: int | None = 0
    basic_over_http: bool = False
    skip_cmd_shell: bool = False
    oem_codepage: int = 437
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)
class Settings:
    """What may change while the endpoint runs: added latency of every request, and ``down``: no request is answered."""

    latency_ms: int = 0
    down: bool = False


class Endpoint:
    """Serves one host on one HTTP and one HTTPS port, which share shells, counters and faults."""

    def __init__(self, config: EndpointConfig, users: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        self.config = config
        self.agent = AsyncAgent(config.agent, config.name)
        self.meter = Meter()
        self.counts: Counter[str] = Counter()
        self.journal: deque[dict[str, Any]] = deque(maxlen=JOURNAL_SIZE)
        self.faults = FaultTable()
        self.settings = Settings()
        self.shells = ShellTable(self.agent, config.limits, config.oem_codepage, self.journal)
        self._users = users
        self._http = HttpServer(lambda client: self._connection(client, secure=False), self.meter)
        self._https = None if tls is None else HttpServer(lambda c: self._connection(c, secure=True), self.meter, tls)
        self.ports: dict[str, int] = {}

    async def start(self) -> None:
        if self.config.http is not None:
            self.ports["http"] = await self._http.start(self.config.address, self.config.http)
        if self.config.https is not None and self._https is not None:
            self.ports["https"] = await self._https.start(self.config.address, self.config.https)

    async def stop(self) -> None:
        self.shells.clear()
        await self._http.stop()
        if self._https is not None:
            await self._https.stop()

    def counters(self, *, reset: bool = False) -> dict[str, int]:
        """Everything counted since the last reset: requests and bytes of HTTP (heads and bodies, before TLS), 401
        answers, shells, commands, Send, Receive, faults, bytes of standard input."""
        names = (
            "unauthorized",
            "shells",
            "commands",
            "sends",
            "receives",
            "signals",
            "deletes",
            "faults",
            "stdin_bytes",
        )
        result = {name: self.counts[name] for name in names}
        meter = self.meter
        result |= {"requests": meter.requests, "bytes_in": meter.bytes_in, "bytes_out": meter.bytes_out}
        result["connections"] = meter.connections
        if reset:
            self.counts.clear()
            meter.requests = meter.bytes_in = meter.bytes_out = meter.connections = 0
        return result

    def _connection(self, client: str, *, secure: bool) -> Handler:
        auth = ConnectionAuth(self._users, basic=secure or self.config.basic_over_http)

        async def handle(request: HttpRequest) -> HttpResponse:
            return await self._handle(request, auth, client, secure)

        return handle

    async def _handle(self, request: HttpRequest, auth: ConnectionAuth, client: str, secure: bool) -> HttpResponse:
        if self.settings.down or self.faults.cut_off:
            raise DropConnection
        if request.method != "POST" or request.target.partition("?")[0] != "/wsman":
            return HttpResponse(405 if request.target == "/wsman" else 404)
        if self.settings.latency_ms:
            await asyncio.sleep(self.settings.latency_ms / 1000)
        verdict = auth.check(
            request.headers.get("authorization", ""), request.certificate, locked_out=self.faults.locked_out
        )
        if isinstance(verdict, Challenge):
            self.counts["unauthorized"] += 1
            return HttpResponse(401, headers=verdict.headers)
        if not request.body:
            # Clients that encrypt establish the security context with an empty request first.
            return HttpResponse(200, headers=verdict.headers)
        sealed = "multipart/encrypted" in request.headers.get("content-type", "")
        data = request.body
        if sealed:
            try:
                data = auth.decrypt(data)
            except NotDecryptable:
                return HttpResponse(400)
        elif not secure and not request.headers.get("authorization", "").startswith("Basic "):
            # AllowUnencrypted=false: NTLM without message encryption is refused on plain HTTP.
            return HttpResponse(500, headers=verdict.headers)
        if len(data) > soap.MAX_ENVELOPE:
            return HttpResponse(413, headers=verdict.headers)
        status, answer = await self._answer(data, verdict.user, client)
        if status == 401:
            self.counts["unauthorized"] += 1
            return HttpResponse(401, headers=(("WWW-Authenticate", "Negotiate"),))
        if sealed and answer:
            return HttpResponse(status, auth.encrypt(answer), verdict.headers, ENCRYPTED_TYPE)
        return HttpResponse(status, answer, verdict.headers)

    async def _answer(self, data: bytes, user: str, client: str) -> tuple[int, bytes]:
        """Carry out one envelope: HTTP status and the answer's envelope."""
        try:
            message = soap.parse(data)
        except ValueError:
            return 400, b""
        rule = self.faults.hit(message.operation, self._line_of(message))
        try:
            if rule is not None:
                status = await self._apply_before(rule)
                if status is not None:
                    return status, b""
            answer = await self._carry_out(message, user, client, rule)
        except soap.Fault as fault:
            self.counts["faults"] += 1
            return 500, soap.fault(fault, self.config.name, message.message_id)
        except AgentError:
            # The host is down (reboot, killed): its WinRM service is gone with it.
            raise DropConnection from None
        if rule is not None and rule.effect == "reply_lost":
            raise DropConnection
        return 200, answer

    async def _apply_before(self, rule: Rule) -> int | None:
        """Effects that come before, or instead of, the work; an HTTP status ends the request."""
        match rule.effect:
            case "request_lost":
                raise DropConnection
            case "unauthorized":
                return 401
            case "http_500":
                return 500
            case "quota":
                raise soap.too_many_operations(self.config.limits.operations)
            case "shells_refused":
                raise soap.shells_refused()
            case "operation_timeout":
                raise soap.timed_out()
            case "busy":
                raise soap.Fault(soap.BUSY, "The requested resource is in use. ")
            case "delay":
                await asyncio.sleep(rule.delay_ms / 1000)
        return None

    def _line_of(self, message: soap.Message) -> str:
        """The command line that a request is about."""
        if message.operation == "Command":
            return _command_line(message)
        try:
            return self.shells.command(message.shell_id, _command_id(message)).line
        except soap.Fault:
            return ""

    async def _carry_out(self, message: soap.Message, user: str, client: str, rule: Rule | None) -> bytes:
        if message.resource_uri != soap.CMD_RESOURCE:
            raise soap.Fault(
                soap.INVALID_RESOURCE_URI,
                f"The WS-Management service cannot process the request. The resource URI ({message.resource_uri}) was"
                f" not found in the WS-Management catalog: this host serves {soap.CMD_RESOURCE} alone, it has no"
                " PowerShell. ",
                "a:DestinationUnreachable",
                sender=True,
            )
        refused = message.must_comply - _IGNORED_OPTIONS
        if refused:
            text = f"The WS-Management service cannot comply with the options {', '.join(sorted(refused))}. "
            raise soap.Fault(soap.INVALID_PARAMETER, text, "w:InvalidOptions", sender=True)
        match message.operation:
            case "Create":
                shell = self.shells.create(message, user)
                self.counts["shells"] += 1
                return soap.created(
                    message, shell.id, user, client, shell.idle_seconds, shell.environment, shell.directory
                )
            case "Command":
                return await self._command(message, rule)
            case "Send":
                return await self._send(message)
            case "Receive":
                return await self._receive(message)
            case "Signal":
                self.counts["signals"] += 1
                self.shells.forget(message.shell_id, _command_id(message))
                return soap.answer(message, "<rsp:SignalResponse/>")
            case "Delete":
                self.counts["deletes"] += 1
                self.shells.delete(message.shell_id)
                return soap.answer(message)
        text = f"The action {message.action} is not supported by the service. "
        raise soap.Fault(soap.ACTION_NOT_SUPPORTED, text, "a:ActionNotSupported", sender=True)

    async def _command(self, message: soap.Message, rule: Rule | None) -> bytes:
        shell: Shell = self.shells.find(message.shell_id)
        element = message.body.find("rsp:CommandLine", soap.NAMESPACES)
        command_id = "" if element is None else element.get("CommandId", "")
        through_cmd = not (self.config.skip_cmd_shell and _is_true(message.options.get("WINRS_SKIP_CMD_SHELL")))
        command: RemoteCommand = await self.shells.start(
            shell,
            command_id or str(uuid.uuid4()).upper(),
            _command_line(message),
            through_cmd=through_cmd,
            console=_is_true(message.options.get("WINRS_CONSOLEMODE_STDIN")),
            stop_after=rule.after_steps if rule is not None and rule.effect == "killed" else None,
        )
        self.counts["commands"] += 1
        if not through_cmd and await command.not_found():
            raise soap.program_not_found()
        return soap.answer(
            message, f"<rsp:CommandResponse><rsp:CommandId>{command.id}</rsp:CommandId></rsp:CommandResponse>"
        )

    async def _send(self, message: soap.Message) -> bytes:
        self.counts["sends"] += 1
        stream = message.body.find("rsp:Send/rsp:Stream", soap.NAMESPACES)
        if stream is None:
            raise soap.Fault(soap.INVALID_PARAMETER, "Send without a Stream", "w:SchemaValidationError", sender=True)
        try:
            data = base64.b64decode(stream.text or "", validate=True)
        except binascii.Error:
            raise soap.Fault(soap.INVALID_PARAMETER, "The stream's content is not base64. ", sender=True) from None
        self.counts["stdin_bytes"] += len(data)
        command = self.shells.command(message.shell_id, _command_id(message))
        await command.send(data, end=_is_true(stream.get("End")))
        return soap.answer(message, "<rsp:SendResponse/>")

    async def _receive(self, message: soap.Message) -> bytes:
        self.counts["receives"] += 1
        command = self.shells.command(message.shell_id, _command_id(message))
        size = (message.max_envelope - _ENVELOPE_OVERHEAD) * 3 // 4
        pieces, done = await command.receive(message.timeout, size)
        if command.lost:
            raise DropConnection
        return soap.answer(message, streams(command.id, pieces, command.rc if done else None))


def _is_true(text: str | None) -> bool:
    return (text or "").lower() == "true"


def _command_line(message: soap.Message) -> str:
    """Command and arguments as the service joins them: with blanks, without a quote."""
    words = [message.body.find("rsp:CommandLine/rsp:Command", soap.NAMESPACES)]
    words += message.body.findall("rsp:CommandLine/rsp:Arguments", soap.NAMESPACES)
    return " ".join(word.text or "" for word in words if word is not None).strip()


def _command_id(message: soap.Message) -> str:
    for path in ("rsp:Receive/rsp:DesiredStream", "rsp:Send/rsp:Stream", "rsp:Signal"):
        found = message.body.find(path, soap.NAMESPACES)
        if found is not None:
            return found.get("CommandId", "")
    return ""
