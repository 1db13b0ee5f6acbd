# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends requests to the API server: what is repeated and for how long, the check before a write, the server's clock.

The requests go through the raw layer of kubernetes' dynamic client, which has had one shape since client 24. They are repeated here and
not by urllib3: the check of a write precedes each of its tries, a body may break after its headers, which urllib3 does not see, and
urllib3 counts tries, where a user sets seconds.
"""

from __future__ import annotations

import copy
import email.utils
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from ..base.decode import SIZE, DecodeError, decode
from ..base.text import join_lines
from .errors import EVICT, UNTYPED, ApiCall, ClusterError, UnreachableError, describe_failure, find_budget_refusal
from .faults import find_cause, is_connection, read_body, read_retry_after, read_status_code

# Seconds of silence after which a request is given up and made again.
SILENCE = 30.0

_TEMPORARY = frozenset({429, 500, 502, 503, 504})

# Seconds in which a server that forbids even /readyz may be starting; an administrator may forbid it for good.
_STARTS_WITHIN = 5.0

# Seconds in which an API server that was ready cannot have been started anew.
_READY_FOR = 1.0

# Seconds after which an API server's own watches have what it stored itself, with much to spare.
_WATCH_LAG = 10.0

# Seconds between two tries at most.
_LONGEST_PAUSE = 3.0


_Self = TypeVar("_Self", bound="Transport")


def _rules_out(status: int | None, *, earlier: bool) -> bool:
    """Whether this answer shows that no try of a write can still take effect. earlier: whether an earlier try has no answer.

    A proxy answers 502 or 504 for a request that may still arrive. A conflict shows that the precondition of every try fails.
    """
    return status in (404, 409, 422) or (status is not None and status < 500 and not earlier)


@dataclass(frozen=True, slots=True)
class Answer:
    """An object as the server returned it, and what it warned of."""

    body: dict[str, Any]
    warnings: tuple[str, ...]


class Transport:
    """Sends requests, and repeats what is safe to repeat until retry_for seconds have passed.

    Every request made here is safe to repeat: reads, watches, reviews, dry runs, server-side applies, creations of an object
    under its name, and deletions bound to a uid.
    """

    def __init__(
        self,
        dynamic: Any,
        *,
        retry_for: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._dynamic = dynamic
        # URL of the API server, without credentials; empty if it is not known.
        self.server = ""
        self.retry_for = retry_for
        self._clock = clock
        self._sleep = sleep
        # How far the API server's clock is ahead of ours; copies of this client share it.
        self._clock_skew = [timedelta()]
        # When the API server last reported that it is ready; shared in the same way.
        self._ready_at = [-math.inf]
        self._check: Callable[[], None] = lambda: None
        self._write_silence: float | None = None
        self._conditional = False
        # Paths of lasting writes of which no answer came.
        self._unanswered: set[str] = set()

    @property
    def has_unanswered_writes(self) -> bool:
        """Whether a write of this client may still arrive at the API server."""
        return bool(self._unanswered)

    def now(self) -> datetime:
        """The API server's clock, as its answers showed it; ages of its objects must not be counted with ours."""
        return datetime.now(timezone.utc) + self._clock_skew[0]

    def guard_writes(
        self: _Self,
        check: Callable[[], None],
        silence: float,
        retry_for: float | None = None,
        *,
        conditional: bool = False,
    ) -> _Self:
        """The same server for a run that may lose the right to write.

        check: raises when it may write no more; called right before each try of a write. silence: seconds after which a write
        without an answer is given up and tried again. conditional: TypeError for a write that names no version of its object.
        """
        guarded = copy.copy(self)
        guarded._check, guarded._write_silence, guarded._conditional = check, silence, conditional
        guarded._unanswered = set()
        guarded.retry_for = self.retry_for if retry_for is None else min(self.retry_for, retry_for)
        return guarded

    def _request(
        self, call: ApiCall, method: str, *, path: str = "", dry_run: bool = False, **params: Any
    ) -> Answer:  # fmt: skip
        """The object that the server answers with."""
        path = path or call.kind.path(call.namespace, None if method == "POST" else call.name)
        if dry_run:
            params["dry_run"] = "All"
        return self._read_answer(call, self._repeat(call, method, path, **params), json.loads)

    def _read_answer(self, call: ApiCall, response: tuple[bytes, Any], decoder: Callable[[bytes], Any]) -> Answer:
        """The object in a whole body."""
        data, headers = response
        self._note_clock(headers)
        try:
            body = decode(decoder, data)
        except DecodeError as error:
            raise ClusterError(
                f"{call.verb} {call.title}: the response is not of an API server ({error}). Check host and proxy.",
                "api_error",
            ) from error
        if not isinstance(body, dict) or not (
            isinstance(body.get("metadata") or {}, dict) and isinstance(body.get("items") or [], list)
        ):
            raise ClusterError(f"{call.verb} {call.title}: the response is not an object of Kubernetes", "api_error")
        return Answer(body=body, warnings=_read_warnings(headers))

    def _repeat(
        self, call: ApiCall, method: str, path: str,
        is_passing: Callable[[int, str], bool] = lambda _status, _body: False, **params: Any,
    ) -> tuple[bytes, Any]:  # fmt: skip
        """The whole body, and the headers. is_passing: whether a status with this body passes by itself within a few seconds."""
        started, pause, forbidden_after = self._clock(), 0.2, math.inf
        while True:
            was_ready = self._clock() - self._ready_at[0] < _READY_FOR
            try:
                response = self._send(method, path, **params)
                # Here, because a connection can also break in the middle of the body.
                return _read_content(response), response.headers
            except ClusterError:
                # Of the check before a write.
                raise
            except Exception as error:
                status, body = read_status_code(error), read_body(error)
                if status is None and not is_connection(error):
                    raise
                elapsed = self._clock() - started
                wait = read_retry_after(error) or pause
                # An API server that starts forbids everything until it has read its RBAC rules.
                is_doubted = status == 403 and elapsed - forbidden_after <= _STARTS_WITHIN
                if is_doubted:
                    forbidden_after = min(forbidden_after, elapsed)
                    if self._is_ready():
                        # There may be several of which one starts: ready before and after the answer, it is no such one.
                        is_doubted, wait = not was_ready, 0.0
                passes = (
                    status is None
                    or is_doubted
                    or (status in _TEMPORARY and not _is_answer(call, body))
                    or (elapsed < _WATCH_LAG and is_passing(status, body))
                )
                if passes and elapsed + wait <= self.retry_for:
                    self._sleep(wait)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                    continue
                if status is not None:
                    raise describe_failure(call, status, body) from error
                raise UnreachableError(
                    f"no response from the API server for {elapsed:.0f} s ({call.verb} {call.title}): "
                    f"{find_cause(error)}. Check that it runs and that host, proxy and CA certificate are correct. "
                    "If it is only slow, raise api_timeout.",
                    "unreachable",
                ) from error

    def _is_ready(self) -> bool:
        try:
            self._send("GET", "/readyz", _request_timeout=5)
        except Exception:
            return False
        self._ready_at[0] = self._clock()
        return True

    def _send(self, method: str, path: str, **params: Any) -> Any:
        """One request; its response, unread."""
        body = params.pop("body", None)
        writes = method != "GET"
        lasts = writes and _is_lasting_write(path, body, params)
        if lasts:
            if self._conditional and not _has_precondition(method, body):
                raise TypeError(f"{method} {path}: a write of a run that holds a lease names no version of its object")
            self._check()
        params.setdefault("_request_timeout", (self._write_silence if writes else None) or SILENCE)
        # A list of its own: the dynamic client appends to the one it is given.
        params["query_params"] = list(params.get("query_params", []))
        earlier = path in self._unanswered
        if lasts:
            self._unanswered.add(path)
        try:
            response = self._dynamic.request(method, path, body=body, serialize=False, **params)
        except Exception as error:
            if _rules_out(read_status_code(error), earlier=earlier):
                self._unanswered.discard(path)
            raise
        self._unanswered.discard(path)
        return response

    def _note_clock(self, headers: Any) -> None:
        date = headers.get("Date") if hasattr(headers, "get") else None
        try:
            server_time = email.utils.parsedate_to_datetime(date) if date else None
        except (TypeError, ValueError, OverflowError):
            server_time = None
        if server_time is not None and server_time.tzinfo is not None:
            difference = server_time - datetime.now(timezone.utc)
            # The header has whole seconds: less than that is no difference.
            self._clock_skew[0] = difference if abs(difference) > timedelta(seconds=2) else timedelta()


def _read_content(response: Any) -> bytes:
    """The whole body. urllib3 would copy one that is compressed twice more, and megabytes each time."""
    if response.headers.get("Content-Encoding") != "gzip":
        return bytes(response.data)
    packed = response.read(decode_content=False)
    try:
        # The last bytes say how large it was.
        return zlib.decompress(packed, zlib.MAX_WBITS | 16, min(SIZE, int.from_bytes(packed[-4:], "little")))
    except zlib.error as error:
        raise OSError(f"the compressed response is damaged: {error}") from error


@contextmanager
def raise_cluster_errors(call: ApiCall, lost: str) -> Iterator[None]:
    """What a request that is made once ends with, as a ClusterError. lost: that there was no answer, or no whole one."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        status = read_status_code(error)
        if status is not None:
            raise describe_failure(call, status, read_body(error)) from error
        if not is_connection(error) and not isinstance(error, DecodeError):
            raise
        raise UnreachableError(f"{lost}: {find_cause(error)}", "unreachable") from error


def _is_answer(call: ApiCall, body: str) -> bool:
    """Whether a body tells that another try of the same request does not help, although the status says that the server is busy."""
    return UNTYPED in body or (call.verb == EVICT and bool(find_budget_refusal(body)))


def _is_lasting_write(path: str, body: Any, params: Mapping[str, Any]) -> bool:
    """Whether a write is meant to last: no dry run, and no question about the account."""
    options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
    return not (params.get("dry_run") or options.get("dryRun") or path.endswith("reviews"))


def _has_precondition(method: str, body: Any) -> bool:
    """Whether a write fails if its object was changed since it was read; a creation fails if the object exists."""
    body = json.loads(body) if isinstance(body, str) else body
    if method == "PATCH":
        return bool((body.get("metadata") or {}).get("resourceVersion"))
    if method == "POST" and body.get("kind") != "Eviction":
        return True
    preconditions = body.get("deleteOptions", body).get("preconditions") or {}
    return bool(preconditions.get("uid") and preconditions.get("resourceVersion"))


def _read_warnings(headers: Any) -> tuple[str, ...]:
    """Texts of Warning headers (RFC 7234: 299 - "text")."""
    listed = headers.getlist("Warning") if hasattr(headers, "getlist") else []
    return tuple(join_lines(str(entry).split('"', 1)[-1].rstrip('"')) for entry in listed)
