# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reading side of an API server over objects in memory: lists in pages, single objects, and its refusals.

A list is served as a real one since 1.34 serves it: streamed object by object, its metadata before its items, and
compressed for who accepts that. A continue token belongs to one resourceVersion, whose state is kept until `compact`; after that it is answered with 410. With
`resourceVersion=0` limits are ignored, as they are there.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind

_FIRST = 1000
_BUFFER = 2048
# Lists of more bytes are compressed, at this level (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go).
_COMPRESSED_FROM, _LEVEL = 128 * 1024, 1
# Writes of an encoder, and headers.
Content = tuple[Sequence[bytes], Mapping[str, str]]
KINDS = [one for one in vars(kinds).values() if isinstance(one, Kind)]


@dataclass(frozen=True, slots=True)
class Shelf:
    """A collection: how many objects it has, and each one's JSON by its number."""

    count: int
    item: Callable[[int], bytes]

    @classmethod
    def of(cls, objects: Sequence[Mapping[str, Any]]) -> Shelf:
        made = [json.dumps(one).encode() for one in objects]
        return cls(len(made), made.__getitem__)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `number` counts those for the same path, from 0."""

    path: str
    query: Mapping[str, str]
    number: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """What goes wrong with one request: it waits `delay` seconds, is refused, or breaks off in the middle (`cut`)."""

    status: int = 0
    message: str = "made by the peer"
    retry_after: int | None = None
    delay: float = 0
    cut: bool = False


class ApiPeer:
    """The server, in threads of its own while the `with` block lasts.

    `shelves` are the collections by path, and paths that are not there answer 404. `trouble` decides about each request
    before it is served.
    """

    def __init__(
        self, shelves: Mapping[str, Shelf], *,
        objects: Mapping[str, Any] | None = None, trouble: Callable[[Asked], Trouble | None] = lambda asked: None,
        version: str = "v1.36.3",
    ) -> None:  # fmt: skip
        self._states: dict[int, Mapping[str, Shelf]] = {_FIRST: dict(shelves)}
        self._made: dict[tuple[int, str, int, int], Content] = {}
        self._objects = dict(objects or {})
        self._trouble = trouble
        self._release = {"gitVersion": version, "platform": "linux/amd64"}
        self._guard = threading.Lock()
        self.asked: list[Asked] = []
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                try:
                    peer._serve(self)
                except ConnectionError:
                    # Who asked has gone, which is what a client does that waited long enough.
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet: `asked` has the requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ApiPeer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        return max(self._states)

    def change(self, path: str, shelf: Shelf) -> None:
        """One collection is another from now on; what it was stays readable until `compact`."""
        with self._guard:
            self._states[self.version + 1] = {**self._states[self.version], path: shelf}

    def prepare(self, limit: int) -> None:
        """Make every page of that many objects for readers that accept compressed ones, so that they wait for none."""
        for path, shelf in self._states[self.version].items():
            for start in range(0, max(shelf.count, 1), limit):
                end = min(start + limit, shelf.count)
                self._made[self.version, path, start, end] = _compressed(self._page(self.version, path, start, end))

    def compact(self) -> None:
        """Forget every state but the newest."""
        with self._guard:
            newest = self.version
            self._states = {newest + 1: self._states[newest]}

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = dict(parse_qsl(parts.query))
        with self._guard:
            number = sum(one.path == parts.path for one in self.asked)
            self.asked.append(Asked(parts.path, query, number))
        trouble = self._trouble(self.asked[-1]) or Trouble()
        time.sleep(trouble.delay)
        if trouble.status:
            _refuse(handler, trouble.status, trouble.message, trouble.retry_after)
            return
        if parts.path == "/readyz":
            _send(handler, 200, [b"ok"])
        elif parts.path == "/version":
            _send(handler, 200, [json.dumps(self._release).encode()])
        elif (found := self._discovery(parts.path)) is not None:
            _send(handler, 200, [json.dumps(found).encode()])
        elif parts.path in self._objects:
            _send(handler, 200, [json.dumps(self._objects[parts.path]).encode()])
        elif parts.path in self._states[self.version]:
            self._list(handler, parts.path, query, trouble.cut)
        else:
            _refuse(handler, 404, "the server could not find the requested resource")

    def _discovery(self, path: str) -> dict[str, Any] | None:
        """What clients ask first: which groups there are, and which resources; None for any other path."""
        served = [kind for kind in KINDS if kind.path() in self._states[self.version]]
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            groups = []
            for group in {kind.group: kind.api_version for kind in served if kind.group}.values():
                version = {"groupVersion": group, "version": group.partition("/")[2]}
                groups.append({"name": group.partition("/")[0], "versions": [version], "preferredVersion": version})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        of_version = path.removeprefix("/apis/").removeprefix("/api/")
        resources = [
            {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind,
             "verbs": ["get", "list"]}
            for kind in served
            if kind.api_version == of_version
        ]  # fmt: skip
        if not resources:
            return None
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of_version, "resources": resources}

    def _list(self, handler: BaseHTTPRequestHandler, path: str, query: Mapping[str, str], cut: bool) -> None:
        start, version = 0, self.version
        if "continue" in query:
            if query.get("resourceVersion") or query.get("resourceVersionMatch"):
                _refuse(handler, 400, "specifying resource version is not allowed when using continue")
                return
            version, start = json.loads(base64.b64decode(query["continue"]))
        elif query.get("resourceVersionMatch") == "Exact":
            version = int(query["resourceVersion"])
        state = self._states.get(version)
        if state is None:
            _refuse(handler, 410, "The provided continue parameter is too old" if start else "too old resource version")
            return
        shelf = state[path]
        limit = int(query.get("limit") or 0)
        if not limit or query.get("resourceVersion") == "0":
            limit = shelf.count
        end = min(start + limit, shelf.count)
        if "gzip" not in handler.headers.get("Accept-Encoding", ""):
            _send(handler, 200, self._page(version, path, start, end), cut=cut)
            return
        made = self._made.get((version, path, start, end)) or _compressed(self._page(version, path, start, end))
        _send(handler, 200, made[0], headers=made[1], cut=cut)

    def _page(self, version: int, path: str, start: int, end: int) -> Sequence[bytes]:
        """The objects of a list from one number to another, as a server writes them."""
        shelf = self._states[version][path]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end < shelf.count:
            metadata["continue"] = base64.b64encode(json.dumps([version, end]).encode()).decode()
            metadata["remainingItemCount"] = shelf.count - end
        kind = next((one for one in KINDS if one.path() == path), None)
        named = {"kind": f"{kind.kind if kind else ''}List", "apiVersion": kind.api_version if kind else "v1"}
        head = (json.dumps({**named, "metadata": metadata})[:-1] + ', "items": [').encode()
        items = [(b"," if number > start else b"") + shelf.item(number) for number in range(start, end)]
        return [head, *items, b"]}\n"]


def _send(
    handler: BaseHTTPRequestHandler, status: int, content: Sequence[bytes], *,
    headers: Mapping[str, str] | None = None, cut: bool = False,
) -> None:  # fmt: skip
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in _as_go_does(content))
    if cut:
        handler.wfile.write(framed[: len(framed) // 2])
        handler.close_connection = True
        return
    handler.wfile.write(framed)
    handler.wfile.write(b"0\r\n\r\n")


def _compressed(writes: Sequence[bytes]) -> Content:
    """What a reader gets that accepts compressed lists: a small one as it is."""
    if sum(map(len, writes)) <= _COMPRESSED_FROM:
        return writes, {}
    stream = zlib.compressobj(_LEVEL, wbits=zlib.MAX_WBITS | 16)
    packed = b"".join((*map(stream.compress, writes), stream.flush()))
    # A compressor in Go writes less than a buffer at a time.
    pieces = [packed[start : start + _BUFFER] for start in range(0, len(packed), _BUFFER)]
    return pieces, {"Content-Encoding": "gzip"}


def _as_go_does(writes: Sequence[bytes]) -> Iterator[bytes]:
    """The chunks that a server in Go makes of an encoder's writes: 2048 bytes, and what is longer in one piece."""
    held = b""
    for written in writes:
        rest = written
        while len(held) + len(rest) > _BUFFER and held:
            room = _BUFFER - len(held)
            yield held + rest[:room]
            held, rest = b"", rest[room:]
        if len(rest) > _BUFFER:
            yield rest
        else:
            held += rest
    if held:
        yield held


def _refuse(handler: BaseHTTPRequestHandler, status: int, message: str, retry_after: int | None = None) -> None:
    reasons = {403: "Forbidden", 404: "NotFound", 410: "Expired", 429: "TooManyRequests"}
    body = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reasons.get(status, "InternalError"), "code": status,
    }  # fmt: skip
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    _send(handler, status, [json.dumps(body).encode()], headers=headers)
