# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to Kubernetes: the only part of the cluster side that sends any.

Authentication and TLS come from kubernetes.core, so that its options, K8S_AUTH_* and in-cluster use work here too; the
requests go through the dynamic client's raw layer, which has had one shape since client 24.
"""

from __future__ import annotations

import copy
import email.utils
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import DecodeError, read_number
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import decode as decoded
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import (
    decode_controls,
    encode_json_controls,
    join_lines,
    mask_controls,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds, streams
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import (
    MODIFIED,
    UNTYPED,
    ClusterError,
    GoneError,
    UnreachableError,
    causes_of,
    describe,
    failure,
    status_message,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.faults import (
    body_of,
    brief,
    is_connection,
    retry_after,
    status_of,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.streams import Executed, Output

FIELD_MANAGER = "kubewin.csi"

# Pages keep the server's and our memory flat; the dynamic client itself never asks for them.
PAGE = 500

# Seconds of silence after which a request is given up and made again.
_SILENCE = 30.0

# Clients before 25 send this type as text only, later ones encode text once more; with a parameter all send it as it is.
_APPLY = "application/apply-patch+yaml; charset=utf-8"
# JSON is encoded by all of them.
_JSON_PATCH = "application/json-patch+json"
_MERGE = "application/merge-patch+json"

_METHODS = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}
_TRY_AGAIN = frozenset({429, 500, 502, 503, 504})

# While an API server starts, its RBAC rules are not loaded yet and it forbids what it will allow a second later. As long as
# its /readyz fails it starts; if /readyz does not answer, it counts as starting for this long. Credentials it may refuse
# then too, while it does not know yet whom an OIDC provider or a webhook vouches for; that passes sooner, and wrong ones are
# refused for /readyz as well, so they show nothing of it.
_STARTUP_DOUBT = {403: 15.0, 401: 5.0}

# What /readyz answers when a check fails (apiserver/pkg/server/healthz).
_NOT_READY = 500

# Seconds for which a server counts as ready after /readyz succeeded, so that an account with a small role, which is forbidden
# many things in a row, does not pay for the doubt each time.
_READY_FOR = 2.0
_NEVER = float("-inf")

# Seconds after which an API server's own watches have what it stored itself, with much to spare.
_HEARSAY = 10.0


@dataclass(frozen=True, slots=True)
class Listing:
    """A list's items, without their kind and apiVersion, and the resourceVersion to watch from."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An object as the server returned it, and what it warned of."""

    body: dict[str, Any]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Server:
    """State of the API server. ahead: its clock minus ours. was_ready: when it last reported ready, on our clock."""

    ahead: timedelta = timedelta()
    was_ready: float = _NEVER


class Dynamic(Protocol):
    """What is used of kubernetes.dynamic.DynamicClient."""

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """One request; with serialize=False the urllib3 response, unread."""


class Client:
    """Reads and writes with patience: what is safe to repeat is repeated until retry_for seconds have passed.

    Every request made here is safe to repeat: reads, watches, reviews, dry runs, server-side applies, creations of an object
    under its name, and deletions bound to a uid.
    """

    def __init__(
        self,
        dynamic: Dynamic,
        *,
        retry_for: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._dynamic = dynamic
        self.retry_for = retry_for
        self._clock = clock
        self._sleep = sleep
        self._server = _Server()
        self._check: Callable[[], None] = lambda: None
        self._write_silence: float | None = None
        self._conditional = False
        # Paths of lasting writes of which no answer came.
        self._unanswered: set[str] = set()

    @property
    def has_unanswered_writes(self) -> bool:
        """Whether a write of this client may still arrive at the API server."""
        return bool(self._unanswered)

    def guard_writes(
        self, check: Callable[[], None], silence: float, retry_for: float | None = None, *, conditional: bool = False
    ) -> Client:
        """The same server for a run that may lose the right to write.

        check: raises when it may write no more; called right before each try of a write. silence: seconds after which a write
        without an answer is given up and tried again. conditional: TypeError for a write that names no version of its object.
        """
        made = copy.copy(self)
        made._check, made._write_silence, made._conditional = check, silence, conditional
        made._unanswered = set()
        made.retry_for = self.retry_for if retry_for is None else min(self.retry_for, retry_for)
        return made

    def now(self) -> datetime:
        """The API server's clock, as its answers showed it; ages of its objects must not be counted with ours."""
        return datetime.now(timezone.utc) + self._server.ahead

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """One object, None when it does not exist."""
        try:
            return self._json("get", kind, namespace, name).body
        except ClusterError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Listing:
        """All objects of a kind, in pages. A page that expired starts the list again, at most three times."""
        for left in (2, 1, 0):
            try:
                pages = list(
                    self.read_pages(
                        kind, json.loads, namespace, label_selector=label_selector, field_selector=field_selector
                    )
                )
                break
            except GoneError:
                if not left:
                    raise
        version = (pages[-1].get("metadata") or {}).get("resourceVersion", "")
        return Listing(tuple(item for page in pages for item in page.get("items") or ()), str(version))

    def list_windows_nodes(self) -> tuple[dict[str, Any], ...]:
        """All Nodes of Windows."""
        return self.list(kinds.NODE, label_selector=kinds.WINDOWS).items

    def read_pages(
        self, kind: Kind, decode: Callable[[bytes], Any], namespace: str | None = None, *,
        label_selector: str | None = None, field_selector: str | None = None, at: str = "",
    ) -> Iterator[Mapping[str, Any]]:  # fmt: skip
        """A list page by page, each as decode makes it of the server's bytes (ValueError: that is no page).

        All pages show one state of the cluster: that of the resourceVersion `at`, or the newest. Raises GoneError when the
        server no longer has it; the pages that came before are then part of nothing.
        """
        query: dict[str, Any] = {"resource_version": at, "query_params": [("resourceVersionMatch", "Exact")]}
        query = query if at else {}
        version = at
        while True:
            page = self._json(
                "list", kind, namespace, None, decode=decode,
                label_selector=label_selector, field_selector=field_selector, limit=PAGE,
                # A page may take long; half the patience leaves time for a second try.
                _request_timeout=max(_SILENCE, self.retry_for / 2), **query,
            ).body  # fmt: skip
            metadata = page.get("metadata") or {}
            shown = str(metadata.get("resourceVersion") or "")
            if version and shown and shown != version:
                raise GoneError(
                    f"list {describe(kind, namespace, None)}: a page has resourceVersion {shown}, expected "
                    f"{version}: the pages are of different lists",
                    "gone", 410,
                )  # fmt: skip
            version = version or shown
            yield page
            if not metadata.get("continue"):
                return
            # The token says which state; naming it twice is an error.
            query = {"_continue": metadata["continue"]}

    def apply(self, definition: Mapping[str, Any], *, dry_run: bool, force: bool = False) -> Answer:
        """Server-side apply with our field manager.

        A dry run goes through admission and validation and stores nothing.
        """
        kind = kinds.find_kind(definition)
        metadata = definition["metadata"]
        namespace = metadata.get("namespace")
        # Strict: a field the server does not know is an error, not silently dropped.
        query: dict[str, Any] = {
            "query_params": [("fieldValidation", "Strict")],
            "field_manager": FIELD_MANAGER,
            "force_conflicts": "true" if force else "false",
        }
        if not dry_run and kind in (kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING):
            # An apply makes what is missing, so this is about the role: it was written a moment ago, and the authorizer,
            # which checks whether we hold what it grants, does not have it yet.
            query["unheard"] = 404
        return self._json(
            "patch", kind, namespace, metadata["name"], dry_run=dry_run,
            body=json.dumps(decode_controls(dict(definition))), content_type=_APPLY, **query,
        )  # fmt: skip

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create an object; one of that name that is there already is no error, so that this is safe to repeat."""
        kind, metadata = kinds.find_kind(definition), definition["metadata"]
        try:
            self._json("create", kind, metadata.get("namespace"), metadata["name"], body=dict(definition))
        except ClusterError as error:
            if error.status != 409:
                raise

    def delete(
        self, kind: Kind, name: str, namespace: str | None, uid: str, *, dry_run: bool, policy: str = "Foreground",
        version: str = "",
    ) -> None:  # fmt: skip
        """Delete the object that was read; a missing one is no error. policy: what becomes of its dependents.

        Bound to its uid, so that a recreated object of this name is kept: ClusterError conflict.
        The same for one that was changed, when its resourceVersion is given.
        """
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, **({"resourceVersion": version} if version else {})},
            "propagationPolicy": policy,
            **({"dryRun": ["All"]} if dry_run else {}),
        }
        try:
            self._json("delete", kind, namespace, name, dry_run=dry_run, body=body)
        except ClusterError as error:
            if error.status != 404:
                raise

    def discard(self, kind: Kind, live: Mapping[str, Any]) -> None:
        """Delete the object that was read, its dependents later; one created again under its name is kept.

        With a lease, one that changed since it was read is kept too.
        """
        metadata = live["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        version = metadata["resourceVersion"] if self._conditional else ""
        try:
            self.delete(kind, name, namespace, metadata["uid"], dry_run=False, policy="Background", version=version)
        except ClusterError as error:
            if error.status != 409:
                raise

    def is_allowed(self, need: Need) -> bool:
        """Whether this account may do that. A SelfSubjectAccessReview, which stores nothing."""
        return self._reviewed(kinds.ACCESS_REVIEW, need, {})

    def is_allowed_for(self, user: str, need: Need) -> bool:
        """The same about a ServiceAccount of that namespace; ClusterError with status 403 where this account may not ask that."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{need.namespace}", "system:authenticated"]
        return self._reviewed(kinds.SUBJECT_REVIEW, need, {"user": user, "groups": groups})

    def read_username(self) -> str:
        """The name of this account, empty where the API server does not tell it."""
        review = {"apiVersion": kinds.USER_REVIEW.api_version, "kind": kinds.USER_REVIEW.kind}
        try:
            status = self._json("create", kinds.USER_REVIEW, None, None, body=review).body.get("status") or {}
        except ClusterError:
            return ""
        return join_lines(str((status.get("userInfo") or {}).get("username") or ""))

    def _reviewed(self, kind: Kind, need: Need, of: Mapping[str, Any]) -> bool:
        plural, dummy, subresource = need.resource.partition("/")
        attributes = {
            "verb": need.verb,
            "group": need.group,
            "resource": plural,
            "subresource": subresource,
            "name": need.name,
        }
        if need.namespace:
            attributes["namespace"] = need.namespace
        review = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "spec": {**of, "resourceAttributes": attributes},
        }
        answer = self._json("create", kind, None, None, body=review)
        return bool((answer.body.get("status") or {}).get("allowed"))

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Mapping[str, Any],
        manager: str,
        *,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """A merge patch. Safe to repeat only with metadata.resourceVersion or uid in it: ClusterError conflict."""
        return self._json(
            "patch", kind, namespace, name, dry_run=dry_run, body=dict(body), content_type=_MERGE, field_manager=manager
        ).body

    def json_patch(
        self, kind: Kind, name: str, namespace: str | None, operations: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """A JSON patch. Safe to repeat only when it tests what it changes: ClusterError invalid when a test fails."""
        body = [dict(one) for one in operations]
        return self._json(
            "patch", kind, namespace, name, body=body, content_type=_JSON_PATCH, field_manager=FIELD_MANAGER
        ).body

    def create_new(self, kind: Kind, definition: Mapping[str, Any], *, dry_run: bool) -> dict[str, Any]:
        """Create an object that must not exist yet: ClusterError conflict when it does, also from a try before."""
        metadata = definition["metadata"]
        return self._json(
            "create", kind, metadata.get("namespace"), metadata["name"], dry_run=dry_run, body=dict(definition),
            field_manager=FIELD_MANAGER, query_params=[("fieldValidation", "Strict")],
        ).body  # fmt: skip

    def evict(self, name: str, namespace: str, uid: str, *, dry_run: bool, version: str = "") -> str:
        """Evict the pod that was read; return why that is refused now, empty once it is accepted.

        It is refused by a disruption budget, or by admission: a policy, a webhook, a namespace that is being deleted and whose
        pods are about to go by themselves. One that is gone already, or was made anew, is no error. ClusterError conflict for one
        that was changed or made anew, when its resourceVersion is given (pkg/registry/core/pod/storage/eviction.go compares it).
        """
        preconditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
        options = {"preconditions": preconditions, **({"dryRun": ["All"]} if dry_run else {})}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        path = f"{kinds.POD.path(namespace, name)}/eviction"
        try:
            self._patiently("evict", kinds.POD, namespace, name, "POST", path, body=body, refused=_by_budget)
        except ClusterError as error:
            if error.status == 404 or (error.status == 409 and not version):
                return ""
            if error.reason not in ("disruption_budget", "admission_refused", "invalid"):
                raise
            return str(error)
        return ""

    def read_version(self) -> str:
        """The server's gitVersion, for example v1.36.3."""
        return str(self._json("get", kinds.NODE, None, "version", path="/version").body.get("gitVersion", ""))

    def read_log(self, namespace: str, pod: str, container: str, *, tail: int = 10, previous: bool = False) -> str:
        """The last lines of a container's log.

        Empty when there is none to be had: a log only explains, it decides nothing.
        """
        try:
            return mask_controls(
                self.read_log_bytes(namespace, pod, container, tail=tail, previous=previous).decode("utf-8", "replace")
            )
        except ClusterError:
            return ""

    def read_log_bytes(
        self, namespace: str, pod: str, container: str, *, tail: int, most: int = 1 << 20, previous: bool = False
    ) -> bytes:
        """The last lines of a container's log, at most so many bytes, as they are. Asked once: a kubelet may be gone."""
        query = [
            ("container", container),
            ("tailLines", str(tail)),
            ("limitBytes", str(most)),
            ("previous", "true" if previous else "false"),
        ]
        path = f"{kinds.POD.path(namespace, pod)}/log"
        with _told("get the log of", kinds.POD, namespace, pod, f"no answer for the log of pod {namespace}/{pod}"):
            return bytes(self._once("GET", path, query_params=query, _request_timeout=5).data)

    def execute(self, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float) -> Executed:
        """Run a command in a container and wait for its end, at most timeout seconds.

        Raises StreamError when the connection ends before the command's exit code is known: it may have run, or still run. It is
        not repeated here, since only the caller knows what is safe to repeat.
        """
        return streams.executed(streams.messages(self._dynamic, namespace, pod, container, command, timeout))

    def open_output(self, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float) -> Output:
        """Run a command in a container and read its output as it comes, however long it is."""
        return Output(streams.messages(self._dynamic, namespace, pod, container, command, timeout))

    def watch(
        self, kind: Kind, resource_version: str, seconds: float, namespace: str | None = None, *,
        label_selector: str | None = None, field_selector: str | None = None,
    ) -> Iterator[tuple[str, dict[str, Any]]]:  # fmt: skip
        """Changes after resource_version as (type, object) until the server ends the stream.

        Raises GoneError when the start is no longer kept, and UnreachableError when the stream breaks; both mean: list again.
        """
        with _told("watch", kind, namespace, None, f"the watch of {describe(kind, namespace, None)} broke"):
            response = self._once(
                "GET", kind.path(namespace),
                label_selector=label_selector, field_selector=field_selector, resource_version=resource_version,
                watch="true", timeout_seconds=max(1, int(seconds)), allow_watch_bookmarks="true",
                _request_timeout=(5, seconds + 10),
            )  # fmt: skip
            rest = b""
            for chunk in response.stream(amt=65536, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if not line.strip():
                        continue
                    event = decoded(json.loads, encode_json_controls(line))
                    body = event.get("object") if isinstance(event, dict) else None
                    if not isinstance(event, dict) or not isinstance(body, dict):
                        raise DecodeError("an event is no object")
                    if event.get("type") == "ERROR":
                        code = read_number(body.get("code")) or 500
                        raise failure("watch", kind, namespace, None, code, json.dumps(body))
                    yield str(event.get("type")), body

    def _json(
        self, verb: str, kind: Kind, namespace: str | None, name: str | None, *, path: str = "", dry_run: bool = False,
        decode: Callable[[bytes], Any] = json.loads, **params: Any
    ) -> Answer:  # fmt: skip
        path = path or kind.path(namespace, None if verb == "create" else name)
        if dry_run:
            params["dry_run"] = "All"
        data, headers = self._patiently(verb, kind, namespace, name, _METHODS[verb], path, **params)
        self._note_clock(headers)
        try:
            body = decoded(decode, encode_json_controls(data))
        except DecodeError as error:
            raise ClusterError(
                f"{verb} {describe(kind, namespace, name)}: the response is not of an API server ({error}). Check "
                "host and proxy.",
                "api_error",
            ) from error
        if not isinstance(body, dict) or not (
            isinstance(body.get("metadata") or {}, dict) and isinstance(body.get("items") or [], list)
        ):
            raise ClusterError(
                f"{verb} {describe(kind, namespace, name)}: the response is not an object of Kubernetes", "api_error"
            )
        return Answer(body=body, warnings=_warnings(headers))

    def _patiently(
        self, verb: str, kind: Kind, namespace: str | None, name: str | None, method: str, path: str,
        unheard: int = 0, refused: Callable[[str], str] | None = None, **params: Any
    ) -> tuple[bytes, Any]:  # fmt: skip
        """The whole body, and the headers.

        unheard: a status that passes by itself within a few seconds. refused: why a 429 or 500 is for the caller to repeat.
        """
        started = self._clock()
        # When it was first refused since the server could be reached: an outage before that is no doubt of it.
        refused_at: float | None = None
        pause = 0.2
        while True:
            asked = self._clock()
            try:
                response = self._once(method, path, **params)
                # Here, because a connection can also break in the middle of the body.
                return response.data, response.headers
            except ClusterError:
                # Of the check before a write.
                raise
            except Exception as error:
                status = status_of(error)
                now = self._clock()
                left = started + self.retry_for - now
                if status not in (401, 403):
                    self._server.was_ready = _NEVER
                    refused_at = None
                if status is None:
                    if not is_connection(error):
                        raise
                    if left <= 0:
                        raise UnreachableError(
                            f"no response from the API server for {self.retry_for:.0f} s ({verb} "
                            f"{describe(kind, namespace, name)}): {brief(error)}. Check that it runs and that host, "
                            "proxy and CA certificate are correct. If it is only slow, raise api_timeout.",
                            "unreachable",
                        ) from error
                elif status in (401, 403):
                    refused_at = asked if refused_at is None else refused_at
                    believed = asked - self._server.was_ready < _READY_FOR or left <= 0
                    # What it forbade before it was ready it may allow now, also when it became so this very moment.
                    ready = None if believed else self._ready()
                    if ready:
                        continue
                    if ready is not None:
                        refused_at = None
                    elif believed or now - refused_at > _STARTUP_DOUBT[status]:
                        raise failure(verb, kind, namespace, name, status, body_of(error)) from error
                elif now - started < _HEARSAY and (
                    status == unheard or (_names_no_version(params) and MODIFIED in body_of(error))
                ):
                    pass
                elif refused is not None and status in (429, 500) and (why := refused(body_of(error))):
                    raise ClusterError(why, "disruption_budget", status) from error
                elif status not in _TRY_AGAIN or left <= 0 or UNTYPED in body_of(error):
                    raise failure(verb, kind, namespace, name, status, body_of(error)) from error
                wait = retry_after(error)
                if wait is not None and wait > left:
                    raise failure(verb, kind, namespace, name, status or 0, body_of(error)) from error
                self._sleep(min(wait if wait is not None else pause, max(left, 0.05)))
                pause = min(pause * 2, 3.0)

    def _note_clock(self, headers: Any) -> None:
        date = headers.get("Date") if hasattr(headers, "get") else None
        try:
            server_time = email.utils.parsedate_to_datetime(date) if date else None
        except (TypeError, ValueError, OverflowError):
            server_time = None
        if server_time is not None and server_time.tzinfo is not None:
            difference = server_time - datetime.now(timezone.utc)
            # The header has whole seconds: less than that is no difference.
            self._server.ahead = difference if abs(difference) > timedelta(seconds=2) else timedelta()

    def _ready(self) -> bool | None:
        """Whether the API server has finished starting; None if it does not answer. No account needs a permission for that."""
        try:
            self._once("GET", "/readyz", _request_timeout=5)
        except Exception as error:
            if status_of(error) is None and not is_connection(error):
                raise
            return False if status_of(error) == _NOT_READY else None
        self._server.was_ready = self._clock()
        return True

    def _once(self, method: str, path: str, **params: Any) -> Any:
        body = decode_controls(params.pop("body", None))
        writes = method != "GET"
        lasts = writes and _is_lasting_write(path, body, params)
        if lasts:
            if self._conditional and not _names_version(method, body):
                raise TypeError(f"{method} {path}: a write of a run that holds a lease names no version of its object")
            self._check()
        params.setdefault("_request_timeout", (self._write_silence if writes else None) or _SILENCE)
        # A list of its own: the dynamic client appends to the one it is given.
        params["query_params"] = list(params.get("query_params", []))
        if lasts:
            self._unanswered.add(path)
        try:
            response = self._dynamic.request(method, path, body=body, serialize=False, **params)
        except Exception as error:
            if status_of(error) is not None:
                self._unanswered.discard(path)
            raise
        self._unanswered.discard(path)
        return response


@contextmanager
def _told(verb: str, kind: Kind, namespace: str | None, name: str | None, lost: str) -> Iterator[None]:
    """What a request that is made once ends with, as a ClusterError. lost: that there was no answer, or no whole one."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        status = status_of(error)
        if status is not None:
            raise failure(verb, kind, namespace, name, status, body_of(error)) from error
        if not is_connection(error) and not isinstance(error, DecodeError):
            raise
        raise UnreachableError(f"{lost}: {brief(error)}", "unreachable") from error


def _by_budget(body: str) -> str:
    """Why an eviction was refused, empty when it was not a PodDisruptionBudget that did (pkg/registry/core/pod/storage/eviction.go)."""
    message, status = status_message(body)
    for cause in causes_of(status):
        if cause.get("reason") == "DisruptionBudget":
            return join_lines(str(cause.get("message") or message))
    return message if "more than one PodDisruptionBudget" in message else ""


def _is_lasting_write(path: str, body: Any, params: Mapping[str, Any]) -> bool:
    """Whether a write is meant to last: no dry run, and no question about the account."""
    options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
    return not (params.get("dry_run") or options.get("dryRun") or path.endswith("reviews"))


def _names_version(method: str, body: Any) -> bool:
    """Whether a write fails if its object was changed since it was read; a creation fails if the object exists."""
    if isinstance(body, list):
        return any((step.get("op"), step.get("path")) == ("test", "/metadata/resourceVersion") for step in body)
    body = json.loads(body) if isinstance(body, str) else body
    if method == "PATCH":
        return bool((body.get("metadata") or {}).get("resourceVersion"))
    if method == "POST" and body.get("kind") != "Eviction":
        return True
    preconditions = body.get("deleteOptions", body).get("preconditions") or {}
    return bool(preconditions.get("uid") and preconditions.get("resourceVersion"))


def _names_no_version(params: Mapping[str, Any]) -> bool:
    """Whether a request is an apply that is bound to no version of its object."""
    return params.get("content_type") == _APPLY and "resourceVersion" not in json.loads(params["body"])["metadata"]


def _warnings(headers: Any) -> tuple[str, ...]:
    """Texts of Warning headers (RFC 7234: 299 - "text")."""
    listed = headers.getlist("Warning") if hasattr(headers, "getlist") else []
    return tuple(join_lines(str(entry).split('"', 1)[-1].rstrip('"')) for entry in listed)
