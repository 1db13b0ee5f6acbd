# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stand-ins for kubernetes.dynamic.DynamicClient's raw layer: one answers from a script, one keeps objects."""

from __future__ import annotations

import email.utils
import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client


class Headers(dict[str, str]):
    """Headers with urllib3's way to several values."""

    def getlist(self, name: str) -> list[str]:
        return [self[name]] if name in self else []


class Response:
    """An answer, unread."""

    def __init__(self, body: Any = None, headers: dict[str, str] | None = None, lines: list[Any] | None = None) -> None:
        self.data = json.dumps(body if body is not None else {}).encode()
        self.headers = Headers(headers or {})
        self._lines = lines or []

    def stream(self, amt: int, decode_content: bool) -> Iterator[bytes]:
        # Cut in the middle of lines, as a network does.
        whole = b"".join(json.dumps(line).encode() + b"\n" for line in self._lines) or self.data
        for start in range(0, len(whole), 7):
            yield whole[start : start + 7]

    def close(self) -> None:
        """Read no more of it."""


class Compressed(Response):
    """An answer that a server has compressed. damaged: its last bytes are others."""

    def __init__(self, body: Any, *, damaged: bool = False) -> None:
        super().__init__(body, {"Content-Encoding": "gzip"})
        packed = gzip.compress(self.data)
        self._packed = packed[:-8] + bytes(8) if damaged else packed

    def read(self, *, decode_content: bool) -> bytes:
        return self.data if decode_content else self._packed


class ApiError(Exception):
    """What the client raises for a status of 400 and more."""

    def __init__(self, status: int, body: Any = None, headers: dict[str, str] | None = None, reason: str = "") -> None:
        super().__init__(str(status))
        self.status, self.reason = status, reason
        self.body = json.dumps(body if body is not None else {"message": f"status {status}"})
        self.headers = Headers(headers or {})


class Script:
    """Answers in order; the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        self.asked.append((method, path, {**params, "body": body}))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class ObjectStore:
    """Objects by path, as an API server keeps them: versions that are compared, names that are taken, uids that must fit.

    now: its clock, which is in every answer.
    """

    def __init__(self) -> None:
        self.now: datetime | None = None
        self.things: dict[str, dict[str, Any]] = {}
        self.serial = 0

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "GET" and "limit" in params:
            return self._listed(path, str(params.get("label_selector") or ""))
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.things:
                raise ApiError(409, {"message": "already exists"})
            made = {} if self.now is None else {"creationTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
            return self._put(path, {**body, "metadata": {**body["metadata"], "uid": f"u{self.serial}", **made}})
        live = self.things.get(path)
        if live is None:
            raise ApiError(404)
        if method == "PATCH":
            expected = body["metadata"].get("resourceVersion")
            if expected not in (None, live["metadata"]["resourceVersion"]):
                raise ApiError(409, {"message": "the object has been modified"})
            return self._put(path, _merged(live, body))
        if method == "DELETE":
            if any(live["metadata"][what] != observed for what, observed in body["preconditions"].items()):
                raise ApiError(409)
            del self.things[path]
        return self._answer(live)

    def _listed(self, path: str, selector: str) -> Response:
        labels = {tuple(one.split("=", 1)) for one in selector.split(",") if one}
        items = [
            thing
            for where, thing in self.things.items()
            if where.rpartition("/")[0] == path and labels <= set((thing["metadata"].get("labels") or {}).items())
        ]
        return self._answer({"items": items, "metadata": {"resourceVersion": str(self.serial)}})

    def _put(self, path: str, thing: dict[str, Any]) -> Response:
        self.serial += 1
        self.things[path] = {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(self.serial)}}
        return self._answer(self.things[path])

    def _answer(self, thing: dict[str, Any]) -> Response:
        return Response(thing, {} if self.now is None else {"Date": email.utils.format_datetime(self.now, usegmt=True)})


def _merged(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A merge patch, as RFC 7386 has it."""
    made = {key: value for key, value in live.items() if patch.get(key, "") is not None}
    for key, value in patch.items():
        if value is not None:
            made[key] = _merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return made


def client_of(store: ObjectStore) -> Client:
    """One that asks it, in a time that passes only by sleeping."""
    clock = Clock()
    return Client(store, retry_for=1, clock=clock, sleep=clock.sleep)
