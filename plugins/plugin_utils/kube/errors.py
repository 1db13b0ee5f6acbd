# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong between us and the Kubernetes API, in words that help.

Every error carries a stable reason word for playbooks; the text says what was asked, what the server answered and
what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import DecodeError, read_object
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import encode_json_controls, join_lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind


class ClusterError(Exception):
    """A request that failed for good. reason: one stable word; status: the HTTP status, 0 without an answer."""

    def __init__(self, message: str, reason: str, status: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


def is_stale_write(error: ClusterError) -> bool:
    """Whether a write that names a resourceVersion came too late, rather than that another field manager has its fields."""
    return error.status == 409 and MODIFIED in str(error)


class GoneError(ClusterError):
    """A list's page or a watch's start is no longer kept by the server (410): start again."""


class UnreachableError(ClusterError):
    """No answer from the API server within the time given."""


class StreamError(ClusterError):
    """The connection ended before a command's exit code was known."""


def describe(kind: Kind, namespace: str | None, name: str | None) -> str:
    """Words for a request's object: DaemonSet ns/name, all nodes, pods in ns."""
    if name:
        return f"{kind.kind} {namespace}/{name}" if kind.namespaced and namespace else f"{kind.kind} {name}"
    return f"{kind.plural} in {namespace}" if kind.namespaced and namespace else f"all {kind.plural}"


def status_message(body: str) -> tuple[str, Mapping[str, Any]]:
    """Message, as one line, and whole Status object of an error's body; the text itself when it is no Status."""
    try:
        status = read_object(encode_json_controls(body.encode("utf-8", "replace")))
    except DecodeError:
        return join_lines(body[:_SHOWN])[:500], {}
    return join_lines(str(status.get("message", ""))[:_SHOWN]), status


def causes_of(status: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The causes in a Status object's details; what a proxy answers in its place may have any form."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return tuple(cause for cause in causes if isinstance(cause, dict)) if isinstance(causes, list) else ()


# Characters of a message; a proxy may answer with a page.
_SHOWN = 4000

# Messages of admission; a missing permission has another message.
_ADMISSION = ("is forbidden:", "violates PodSecurity", "admission webhook")

# A concurrent write came first. An apply without a resourceVersion can be repeated unchanged.
MODIFIED = "the object has been modified"

# An apply of what no such object can hold is answered with 500, and never with anything else.
UNTYPED = "failed to create typed patch object"

_CANNOT = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)


def forbidden(verb: str, kind: Kind, namespace: str | None, name: str | None, message: str) -> ClusterError:
    """403: names verb and resource, and the rule that is missing."""
    match = _CANNOT.search(message)
    resource, group, user = kind.plural, kind.group, "this account"
    if match is not None:
        verb, resource, group, user = match["verb"], match["resource"], match["group"], match["user"]
    if match is None and "attempting to grant RBAC permissions" in message:
        return ClusterError(
            f"not allowed to {verb} {describe(kind, namespace, name)}: Kubernetes lets an account grant only "
            f"permissions that it has. Server: {message}. Grant the account those permissions, or the verb "
            f"'escalate' on {kind.plural} and 'bind' on the roles.",
            "forbidden",
            403,
        )
    if match is None and any(words in message for words in _ADMISSION) and 'User "' not in message:
        # Admission answers 403 too; a missing rule is not what would help.
        return ClusterError(f"refused {verb} of {describe(kind, namespace, name)}: {message}", "admission_refused", 403)
    where = f"in namespace {namespace}" if kind.namespaced and namespace else "cluster-wide"
    return ClusterError(
        f"not allowed: {user} cannot {verb} {resource} ({where}; for {describe(kind, namespace, name)}). Add this "
        f"rule to a role of that account: {Need(verb, group, resource).rule()}. The roles in "
        "roles/csi_driver/files/kubewin-rbac.yaml have all required rules.",
        "forbidden",
        403,
    )


_OTHER_MANAGER = re.compile(r'conflict with "(?P<manager>[^"]+)"')


def conflict(
    verb: str, kind: Kind, namespace: str | None, name: str | None, message: str, status: Mapping[str, Any]
) -> ClusterError:
    """409: a server-side apply conflict names the other managers and their fields."""
    owners: dict[str, list[str]] = {}
    for cause in causes_of(status):
        if cause.get("reason") == "FieldManagerConflict":
            found = _OTHER_MANAGER.search(str(cause.get("message", "")))
            owners.setdefault(found["manager"] if found else "another manager", []).append(str(cause.get("field", "?")))
    what = describe(kind, namespace, name)
    if not owners:
        return ClusterError(
            f"{verb} of {what} conflicts with a concurrent change: {message}. Run again.", "conflict", 409
        )
    text = "; ".join(f'"{manager}" owns {", ".join(fields)}' for manager, fields in owners.items())
    return ClusterError(
        f"{what} has another field manager and was not changed: {text}, expected this collection or none. Remove "
        "these fields from that manager's manifest, or set force_conflicts to take them over.",
        "conflict",
        409,
    )


def failure(verb: str, kind: Kind, namespace: str | None, name: str | None, code: int, body: str) -> ClusterError:
    """The error for an HTTP status that is not worth another try."""
    message, status = status_message(body)
    what = describe(kind, namespace, name)
    if code == 403:
        return forbidden(verb, kind, namespace, name, message)
    if code == 409:
        return conflict(verb, kind, namespace, name, message, status)
    if code == 410:
        return GoneError(f"{verb} {what}: {message} Run again.", "gone", 410)
    if code == 401:
        return ClusterError(
            f"the API server rejects these credentials ({verb} {what}: 401 {message or 'Unauthorized'}). Check token "
            "or certificate, its expiry and the context of the kubeconfig.",
            "unauthorized",
            401,
        )
    if code in (400, 422) or UNTYPED in message:
        return ClusterError(f"the API server rejected {what} as invalid ({verb}: {code}): {message}", "invalid", code)
    if code == 429:
        return ClusterError(
            f"the API server throttled requests until the timeout ({verb} {what}: 429 {message}). Run again later, "
            "or raise api_timeout.",
            "too_many_requests",
            429,
        )
    return ClusterError(f"{verb} {what} failed: {code} {message}", "api_error", code)
