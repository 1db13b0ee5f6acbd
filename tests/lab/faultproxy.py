# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy before the lab's API server that answers with faults, for tests.

It speaks TLS on both sides, so a client sees the API server's own certificate. Client certificates do not pass
through it, tokens do: its kubeconfigs carry the lab's `kubewin` account, or any token given. Faults are rules by verb
and resource as RBAC names them::

    with FaultProxy(lab) as proxy:
        proxy.add(Fault("forbidden", verbs=("create",), resources=("daemonsets",)))
        run(kubeconfig=proxy.kubeconfig)
        assert proxy.hits("daemonsets") == 1
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

import aiohttp
import yaml
from aiohttp import web

from lab.cluster.api import Object, kubeconfig
from lab.ports import Ports
from lab.state import LabState, write_atomic

if TYPE_CHECKING:
    from typing_extensions import Self

Kind = Literal["forbidden", "conflict", "throttled", "error", "timeout", "drop", "expired"]
_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length"}
_PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<subresource>.+))?)?$"
)


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks for, in RBAC's words. `resource` is "pods/log" for a subresource. `body`: of a write, where it was read."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    body: bytes = field(default=b"", compare=False, repr=False)


def read_call(method: str, target: str) -> Call:
    """The call behind a request line; a path outside the resource API gives its path as `resource`."""
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    match = _PATH.match(parts.path)
    if match is None:
        namespace = re.match(r"^/api/v1/namespaces/(?P<name>[^/]+)$", parts.path)
        if namespace is None and parts.path != "/api/v1/namespaces":
            return Call(method.lower(), parts.path)
        found: dict[str, str] = {"resource": "namespaces", "name": namespace["name"] if namespace else ""}
    else:
        found = {key: value or "" for key, value in match.groupdict().items()}
    resource = found["resource"]
    if found.get("subresource"):
        resource += f"/{found['subresource']}"
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, "get")
    if verb == "get" and not found["name"]:
        verb = "watch" if query.get("watch", ["false"])[0] in ("1", "true") else "list"
    if verb == "delete" and not found["name"]:
        verb = "deletecollection"
    dry_run = query.get("dryRun") == ["All"]
    return Call(verb, resource, found.get("group", ""), found.get("namespace", ""), found["name"], dry_run)


@dataclass(slots=True)
class Fault:
    """One rule. Empty `verbs`, `resources` or `name` match all; `times` None means for ever.

    `forbidden` 403, `conflict` 409, `throttled` 429 with `retry_after` seconds, `error` answers `status`, `expired`
    410, `timeout` never answers, `drop` closes the connection: before the API server saw the request, or with `after`
    once it has carried it out. `dry_run` limits the rule to requests with (True) or without (False) dryRun=All.
    """

    kind: Kind
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    name: str = ""
    times: int | None = None
    retry_after: int = 1
    status: int = 500
    after: bool = False
    dry_run: bool | None = None
    message: str = ""

    def matches(self, call: Call) -> bool:
        return (
            self.times != 0
            and (not self.verbs or call.verb in self.verbs)
            and (not self.resources or call.resource in self.resources)
            and (not self.name or call.name == self.name)
            and (self.dry_run is None or call.dry_run is self.dry_run)
        )


def _status(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    found = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return {**found, "reason": reason, "code": code, **({"details": details} if details else {})}


def refusal(fault: Fault, call: Call, user: str) -> tuple[int, dict[str, str], Object]:
    """Status, headers and body as the API server words them."""
    full = f"{call.resource}.{call.group}" if call.group else call.resource
    details: Object = {"name": call.name, "group": call.group, "kind": call.resource}
    where = f' in the namespace "{call.namespace}"' if call.namespace else " at the cluster scope"
    match fault.kind:
        case "forbidden":
            text = (
                f'{full} "{call.name}" is forbidden: User "{user}" cannot {call.verb} resource "{call.resource}" in '
                f'API group "{call.group}"{where}'
            )
            if not call.name:
                text = text.replace(' ""', "", 1)
            return 403, {}, _status(403, "Forbidden", fault.message or text, details)
        case "conflict":
            text = (
                f'Operation cannot be fulfilled on {full} "{call.name}": the object has been modified; please apply '
                "your changes to the latest version and try again"
            )
            return 409, {}, _status(409, "Conflict", fault.message or text, details)
        case "throttled":
            text = fault.message or "Too many requests, please try again later."
            body = _status(429, "TooManyRequests", text, {"retryAfterSeconds": fault.retry_after})
            return 429, {"Retry-After": str(fault.retry_after)}, body
        case "expired":
            text = fault.message or "The resourceVersion for the provided list is too old."
            return 410, {}, _status(410, "Expired", text)
        case _:
            text = fault.message or "Internal error occurred: made by the lab"
            return fault.status, {}, _status(fault.status, "InternalError", text)


@dataclass(slots=True)
class _Observation:
    calls: list[Call] = field(default_factory=list)
    hits: list[Call] = field(default_factory=list)


class FaultProxy:
    """The proxy, in a thread of its own while the `with` block lasts."""

    def __init__(self, lab: LabState, token: str = "", user: str = "system:serviceaccount:kubewin:kubewin") -> None:
        self._lab, self._user = lab, user
        self._faults: list[Fault] = []
        self._observed = _Observation()
        self._guard = threading.Lock()
        self._ports = Ports()
        self._token = token
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="faultproxy", daemon=True)
        self._trouble: BaseException | None = None
        self.port = 0
        self.kubeconfig = ""

    def __enter__(self) -> Self:
        self.port = self._ports.take("proxy")
        self.kubeconfig = str(self._write_kubeconfig())
        self._thread.start()
        self._ready.wait(60)
        if self._trouble is not None:
            raise self._trouble
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._ports.close()
        Path(self.kubeconfig).unlink(missing_ok=True)

    def add(self, fault: Fault) -> None:
        """Put a rule before those that are there."""
        with self._guard:
            self._faults.insert(0, fault)

    def clear(self) -> None:
        with self._guard:
            self._faults.clear()

    @property
    def calls(self) -> list[Call]:
        """Every request so far, in order."""
        with self._guard:
            return list(self._observed.calls)

    def hits(self, resource: str = "") -> int:
        """How many requests a rule has answered, of one resource or of all."""
        with self._guard:
            return sum(not resource or call.resource == resource for call in self._observed.hits)

    def _write_kubeconfig(self) -> Path:
        folder = Path(self._lab.directory) / "kubeconfig"
        if not self._token:
            own = yaml.safe_load(Path(self._lab.kubeconfigs["kubewin"]).read_text(encoding="utf-8"))
            self._token = own["users"][0]["user"]["token"]
        path = folder / f"proxy-{self.port}.yaml"
        server = f"https://127.0.0.1:{self.port}"
        content = kubeconfig(server, Path(self._lab.ca), "kubewin", {"token": self._token})
        write_atomic(path, yaml.safe_dump(content))
        return path

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # handed to the thread that waits in __enter__
            self._trouble = error
            self._ready.set()

    async def _serve(self) -> None:
        pki = self._lab.paths.pki
        inside = ssl.create_default_context(cafile=self._lab.ca)
        outside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        outside.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=inside, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
            app = web.Application(client_max_size=0)

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self._answer(session, request)

            app.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=outside).start()
            self._ready.set()
            await self._stop.wait()
            await runner.cleanup()

    def _evaluate(self, call: Call) -> Fault | None:
        with self._guard:
            self._observed.calls.append(call)
            for fault in self._faults:
                if fault.matches(call):
                    if fault.times is not None:
                        fault.times -= 1
                    self._observed.hits.append(call)
                    return fault
        return None

    async def _answer(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        call = read_call(request.method, request.path_qs)
        fault = self._evaluate(call)
        if fault is not None and fault.kind == "timeout":
            await self._stop.wait()
        if fault is not None and fault.kind == "drop":
            if fault.after:
                await self._forward(session, request, _discard)
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault is not None:
            await request.read()
            status, headers, body = refusal(fault, call, self._user)
            return web.Response(status=status, headers=headers, body=json.dumps(body), content_type="application/json")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._converse(session, request)
        return await self._forward(session, request, _pass_on)

    async def _converse(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        """A command in a pod: both directions, until one side ends."""
        asked = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        headers = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        url = self._lab.server + request.raw_path
        try:
            async with session.ws_connect(url, protocols=asked, headers=headers, max_msg_size=0) as inside:
                outside = web.WebSocketResponse(protocols=[inside.protocol or ""], max_msg_size=0)
                await outside.prepare(request)
                await asyncio.gather(_relay(outside, inside), _relay(inside, outside))
                return outside
        except aiohttp.WSServerHandshakeError as error:
            return web.json_response(_status(error.status, "Refused", error.message), status=error.status)

    async def _forward(self, session: aiohttp.ClientSession, request: web.Request, relay: Any) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        body = await request.read()
        url = self._lab.server + request.raw_path
        try:
            # A client may leave out the content type, and aiohttp would make one up.
            unasked = ("Content-Type", "User-Agent")
            async with session.request(
                request.method, url, headers=headers, data=body or None, skip_auto_headers=unasked
            ) as answer:
                found: web.StreamResponse = await relay(request, answer)
                return found
        except aiohttp.ClientError as error:
            body_text = json.dumps(_status(502, "BadGateway", f"the API server does not answer: {error}"))
            return web.Response(status=502, text=body_text, content_type="application/json")


async def _relay(
    source: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
    sink: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
) -> None:
    async for message in source:
        if message.type is aiohttp.WSMsgType.BINARY:
            await sink.send_bytes(message.data)
        elif message.type is aiohttp.WSMsgType.TEXT:
            await sink.send_str(message.data)
    await sink.close()


async def _discard(_request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    await answer.read()
    return web.Response()


async def _pass_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    return response
