# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of this collection to Kubernetes; transport.py sends them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..base.background import begin
from ..base.decode import DecodeError, decode, read_number
from ..base.text import join_lines, mask_controls
from . import kinds
from .access import Need
from .errors import EVICT, MODIFIED, ApiCall, ClusterError, GoneError, describe_failure
from .kinds import Kind
from .labels import MANAGER
from .streams import CommandResult, Output, read_messages
from .transport import SILENCE, Answer, Transport, raise_cluster_errors

FIELD_MANAGER = MANAGER

# Pages keep the server's and our memory flat; the dynamic client itself never asks for them.
PAGE = 500

# The continue token of a page, which servers write before the items.
_CONTINUE = re.compile(rb'"continue": ?"([^"\\]+)"')

# Clients before 25 send this type as text only, later ones encode text once more; with a parameter all send it as it is.
_APPLY = "application/apply-patch+yaml; charset=utf-8"
_MERGE = "application/merge-patch+json"

# In the extra fields of an account: what its token is limited to (OpenShift's pkg/authorization/authorizer/scope).
_SCOPES = "scopes.authorization.openshift.io"

# Tries of a list whose page expired.
_LIST_TRIES = 3
# Seconds to wait for the next part of a container's log, since its kubelet may be gone, and for all of it.
_LOG_SILENCE = 5
_LOG_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Listing:
    """A list's items, without their kind and apiVersion, and the resourceVersion to watch from."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


class Client(Transport):
    def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        try:
            return self._request(ApiCall("get", kind, namespace, name), "GET").body
        except ClusterError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, kind: Kind, namespace: str | None = None, *,
        label_selector: str | None = None, field_selector: str | None = None,
    ) -> Listing:  # fmt: skip
        """All objects of a kind, in pages. A page that expired starts the list again, at most three times."""
        for tried in range(1, _LIST_TRIES + 1):
            try:
                pages = [*self.read_pages(
                    kind, json.loads, namespace, label_selector=label_selector, field_selector=field_selector
                )]  # fmt: skip
                break
            except GoneError:
                if tried == _LIST_TRIES:
                    raise
        version = (pages[-1].get("metadata") or {}).get("resourceVersion", "")
        return Listing(tuple(item for page in pages for item in page.get("items") or ()), str(version))

    def list_windows_nodes(self) -> tuple[dict[str, Any], ...]:
        return self.list(kinds.NODE, label_selector=kinds.WINDOWS).items

    def read_pages(
        self, kind: Kind, decoder: Callable[[bytes], Any], namespace: str | None = None, *,
        label_selector: str | None = None, field_selector: str | None = None, at: str = "",
    ) -> Iterator[Mapping[str, Any]]:  # fmt: skip
        """A list page by page, each as decoder makes it of the server's bytes (ValueError: that is no page).

        All pages show one state of the cluster: that of the resourceVersion `at`, or the newest. Raises GoneError when the server
        no longer has it; the pages that came before are then part of nothing. The next page is read while this one is decoded and
        while the caller has it.
        """
        call = ApiCall("list", kind, namespace)

        def request(**state: Any) -> tuple[bytes, Any]:
            return self._repeat(
                call, "GET", kind.path(namespace),
                label_selector=label_selector, field_selector=field_selector, limit=PAGE,
                # A server compresses pages to a tenth, and they come in far fewer pieces.
                header_params={"Accept-Encoding": "gzip"},
                # A page may take long; half the patience leaves time for a second try.
                _request_timeout=max(SILENCE, self.retry_for / 2), **state,
            )  # fmt: skip

        version = at
        response = request(resource_version=at, query_params=[("resourceVersionMatch", "Exact")]) if at else request()
        while True:
            early_token = _find_continue(response[0])
            wait_for_response = begin(partial(request, _continue=early_token)) if early_token else None
            page = self._read_answer(call, response, decoder).body
            # Here and below: a page takes megabytes, as bytes and decoded.
            del response
            metadata = page.get("metadata") or {}
            shown = str(metadata.get("resourceVersion") or "")
            if version and shown and shown != version:
                raise GoneError(
                    f"list {call.title}: a page has resourceVersion {shown}, expected "
                    f"{version}: the pages are of different lists",
                    "gone", 410,
                )  # fmt: skip
            version = version or shown
            if not metadata.get("continue"):
                yield page
                return
            # The token says which state; naming it twice is an error.
            if wait_for_response is None or early_token != metadata["continue"]:
                wait_for_response = begin(partial(request, _continue=metadata["continue"]))
            yield page
            del page
            response = wait_for_response()
            del wait_for_response

    def apply(self, definition: Mapping[str, Any], *, dry_run: bool, force: bool = False) -> Answer:
        """Server-side apply with our field manager.

        A dry run goes through admission and validation and stores nothing.
        """
        kind, metadata = kinds.find_kind(definition), definition["metadata"]
        # An apply makes what is missing, so 404 is about the role: it was written a moment ago, and the authorizer, which checks
        # whether we hold what it grants, does not have it yet.
        binds = not dry_run and kind in (kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING)

        def is_passing(status: int, body: str) -> bool:
            return (binds and status == 404) or ("resourceVersion" not in metadata and MODIFIED in body)

        return self._request(
            ApiCall("patch", kind, metadata.get("namespace"), metadata["name"]), "PATCH",
            dry_run=dry_run, body=json.dumps(dict(definition)), content_type=_APPLY, is_passing=is_passing,
            # Strict: a field the server does not know is an error, not silently dropped.
            query_params=[("fieldValidation", "Strict")],
            field_manager=FIELD_MANAGER, force_conflicts="true" if force else "false",
        )  # fmt: skip

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create an object; one of that name that is there already is no error, so that this is safe to repeat."""
        try:
            self.create_new(kinds.find_kind(definition), definition, dry_run=False)
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
            self._request(ApiCall("delete", kind, namespace, name), "DELETE", dry_run=dry_run, body=body)
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

    def list_granted_rules(self, namespaces: Iterable[str | None]) -> dict[str | None, Sequence[Mapping[str, Any]]]:
        """The rules of this account by namespace, None for everywhere; none where they are not all that decides what is allowed."""
        user = self._read_user()
        # OpenShift's scopes of a token limit what its rules allow, and are no part of them.
        if not user or not {"user:full"}.issuperset((user.get("extra") or {}).get(_SCOPES) or ()):
            return {}
        return {namespace: self._list_rules(namespace) for namespace in namespaces}

    def _list_rules(self, namespace: str | None) -> Sequence[Mapping[str, Any]]:
        review = {
            "apiVersion": kinds.RULES_REVIEW.api_version,
            "kind": kinds.RULES_REVIEW.kind,
            # What is allowed in a namespace that cannot exist is allowed in all of them.
            "spec": {"namespace": namespace or "-"},
        }
        try:
            status = self._request(ApiCall("create", kinds.RULES_REVIEW), "POST", body=review).body.get("status") or {}
        except ClusterError:
            return ()
        return () if status.get("incomplete", True) else status.get("resourceRules") or ()

    def is_allowed(self, need: Need) -> bool:
        """Whether this account may do that. A SelfSubjectAccessReview, which stores nothing."""
        return self._review(kinds.ACCESS_REVIEW, need, {})

    def is_allowed_for(self, user: str, need: Need) -> bool:
        """The same about a ServiceAccount of that namespace; ClusterError with status 403 where this account may not ask that."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{need.namespace}", "system:authenticated"]
        return self._review(kinds.SUBJECT_REVIEW, need, {"user": user, "groups": groups})

    def read_username(self) -> str:
        """The name of this account, empty where the API server does not tell it."""
        return join_lines(str(self._read_user().get("username") or ""))

    def _read_user(self) -> Mapping[str, Any]:
        review = {"apiVersion": kinds.USER_REVIEW.api_version, "kind": kinds.USER_REVIEW.kind}
        try:
            status = self._request(ApiCall("create", kinds.USER_REVIEW), "POST", body=review).body.get("status") or {}
        except ClusterError:
            return {}
        return status.get("userInfo") or {}

    def _review(self, kind: Kind, need: Need, subject: Mapping[str, Any]) -> bool:
        plural, dummy, subresource = need.resource.partition("/")
        attributes = {
            "verb": need.verb, "group": need.group, "resource": plural, "subresource": subresource, "name": need.name,
        }  # fmt: skip
        if need.namespace:
            attributes["namespace"] = need.namespace
        spec = {**subject, "resourceAttributes": attributes}
        review = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        answer = self._request(ApiCall("create", kind), "POST", body=review)
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
        return self._request(
            ApiCall("patch", kind, namespace, name), "PATCH",
            dry_run=dry_run, body=dict(body), content_type=_MERGE, field_manager=manager,
        ).body  # fmt: skip

    def create_new(self, kind: Kind, definition: Mapping[str, Any], *, dry_run: bool) -> dict[str, Any]:
        """Create an object that must not exist yet: ClusterError conflict when it does, also from a try before."""
        metadata = definition["metadata"]
        return self._request(
            ApiCall("create", kind, metadata.get("namespace"), metadata["name"]), "POST", dry_run=dry_run, body=dict(definition),
            field_manager=FIELD_MANAGER, query_params=[("fieldValidation", "Strict")],
        ).body  # fmt: skip

    def evict(self, name: str, namespace: str, uid: str, version: str) -> str:
        """Evict the pod that was read; return why that is refused now, empty once it is accepted.

        It is refused by a disruption budget, or by admission: a policy, a webhook, a namespace that is being deleted and whose
        pods are about to go by themselves. One that is gone already is no error. ClusterError conflict for one that was changed or
        made anew (pkg/registry/core/pod/storage/eviction.go compares its resourceVersion).
        """
        preconditions = {"uid": uid, "resourceVersion": version}
        metadata, options = {"name": name, "namespace": namespace}, {"preconditions": preconditions}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        path = f"{kinds.POD.path(namespace, name)}/eviction"
        try:
            self._request(ApiCall(EVICT, kinds.POD, namespace, name), "POST", path=path, body=body)
        except ClusterError as error:
            if error.status == 404:
                return ""
            if error.reason not in ("disruption_budget", "admission_refused", "invalid"):
                raise
            return str(error)
        return ""

    def read_version(self) -> str:
        """The server's gitVersion, for example v1.36.3."""
        answer = self._request(ApiCall("get", kinds.NODE, name="version"), "GET", path="/version")
        return str(answer.body.get("gitVersion", ""))

    def read_log(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> str:
        """The last ten lines of a container's log, empty if it cannot be read: a log only explains, it decides nothing."""
        try:
            log = self.read_log_bytes(namespace, pod, container, tail=10, previous=previous)
        except ClusterError:
            return ""
        return mask_controls(log.decode("utf-8", "replace"))

    def read_log_bytes(
        self, namespace: str, pod: str, container: str, *, tail: int, most: int = 1 << 20, previous: bool = False
    ) -> bytes:
        """The last lines of a container's log, at most so many bytes, as they are. Asked once: a kubelet may be gone.

        The API server passes on what the kubelet sends, which need not keep to limitBytes and may never end.
        """
        query = [
            ("container", container), ("tailLines", str(tail)), ("limitBytes", str(most)),
            ("previous", "true" if previous else "false"),
        ]  # fmt: skip
        path = f"{kinds.POD.path(namespace, pod)}/log"
        call = ApiCall("get the log of", kinds.POD, namespace, pod)
        with raise_cluster_errors(call, f"no answer for the log of pod {namespace}/{pod}"):
            response = self._send("GET", path, query_params=query, _request_timeout=_LOG_SILENCE)
            log, ends = bytearray(), self._clock() + _LOG_SECONDS
            for chunk in response.stream(amt=65536, decode_content=True):
                log += chunk
                if len(log) >= most or self._clock() > ends:
                    break
            response.close()
            return bytes(log[:most])

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float
    ) -> CommandResult:
        """Run a command in a container and wait for its end, at most timeout seconds.

        Raises StreamError when the connection ends before the command's exit code is known: it may have run, or still run. It is
        not repeated here, since only the caller knows what is safe to repeat.
        """
        return self.open_output(namespace, pod, container, command, timeout).read_all()

    def open_output(self, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float) -> Output:
        """Run a command in a container and read its output as it comes, however long it is."""
        return Output(read_messages(self._dynamic, namespace, pod, container, command, timeout))

    def watch(
        self, kind: Kind, resource_version: str, seconds: float, namespace: str | None = None, *,
        label_selector: str | None = None, field_selector: str | None = None,
    ) -> Iterator[tuple[str, dict[str, Any]]]:  # fmt: skip
        """Changes after resource_version as (type, object) until the server ends the stream.

        Raises GoneError when the start is no longer kept, and UnreachableError when the stream breaks; both mean: list again.
        """
        call = ApiCall("watch", kind, namespace)
        with raise_cluster_errors(call, f"the watch of {call.title} broke"):
            response = self._send(
                "GET", kind.path(namespace),
                label_selector=label_selector, field_selector=field_selector, resource_version=resource_version,
                watch="true", timeout_seconds=max(1, int(seconds)), allow_watch_bookmarks="true",
                _request_timeout=(5, seconds + 10),
            )  # fmt: skip
            unfinished = b""
            for chunk in response.stream(amt=65536, decode_content=True):
                *lines, unfinished = (unfinished + chunk).split(b"\n")
                yield from (_read_event(call, line) for line in lines if line.strip())


def _find_continue(page: bytes) -> str:
    """The continue token of a page that is not decoded yet; empty if there is none before its items."""
    match = _CONTINUE.search(page[:4096].partition(b'"items"')[0])
    return match[1].decode("utf-8", "replace") if match else ""


def _read_event(call: ApiCall, line: bytes) -> tuple[str, dict[str, Any]]:
    """Type and object of a watch's event. Raises DecodeError, and the ClusterError of an event that is an error."""
    event = decode(json.loads, line)
    body = event.get("object") if isinstance(event, dict) else None
    if not isinstance(event, dict) or not isinstance(body, dict):
        raise DecodeError("an event is no object")
    if event.get("type") == "ERROR":
        raise describe_failure(call, read_number(body.get("code")) or 500, json.dumps(body))
    return str(event.get("type")), body
