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
from dataclasses import dataclass
from typing import Any

from ..base.decode import DecodeError, read_object
from ..base.errors import TaskError
from ..base.text import join_lines
from .access import Need
from .kinds import Kind


class ClusterError(TaskError):
    """A request that failed for good. status: the HTTP status, 0 without an answer."""

    def __init__(self, message: str, reason: str, status: int = 0) -> None:
        super().__init__(message, reason)
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


@dataclass(frozen=True, slots=True)
class ApiCall:
    """What a request does to which object, for messages; without a name to all objects of the kind."""

    verb: str
    kind: Kind
    namespace: str | None = None
    name: str | None = None

    @property
    def title(self) -> str:
        """The object, as text: DaemonSet ns/name, all nodes, pods in ns."""
        kind, namespace = self.kind, self.namespace if self.kind.namespaced else None
        if self.name:
            return f"{kind.kind} {namespace}/{self.name}" if namespace else f"{kind.kind} {self.name}"
        return f"{kind.plural} in {namespace}" if namespace else f"all {kind.plural}"


def read_status(body: str) -> tuple[str, Mapping[str, Any]]:
    """Message, as one line, and whole Status object of an error's body; the text itself when it is no Status."""
    try:
        status = read_object(body)
    except DecodeError:
        return join_lines(body[:_SHOWN])[:500], {}
    return join_lines(str(status.get("message", ""))[:_SHOWN]), status


def list_causes(status: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The causes in a Status object's details; what a proxy answers in its place may have any form."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return tuple(cause for cause in causes if isinstance(cause, dict)) if isinstance(causes, list) else ()


# Characters of a message; a proxy may answer with a page.
_SHOWN = 4000

# Who in admission denies a request, by the message of the API server (apiserver, pkg/admission/plugin: policy, webhook/errors; plugin/pkg/admission:
# resourcequota, limitranger; pod-security-admission), and a command that shows its rules. Any status may come with them: a webhook
# chooses its own, and a policy answers 422 unless its rule has another reason.
_WEBHOOKS = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o "
    "custom-columns='NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"
)
_DENIERS = (
    (
        re.compile(r"ValidatingAdmissionPolicy '(?P<name>[^']+)'"),
        "ValidatingAdmissionPolicy {name}",
        "kubectl get validatingadmissionpolicy {name} -o yaml",
    ),
    (re.compile(r'\badmission webhook "(?P<name>[^"]+)" (?:denied|does not)'), "admission webhook {name}", _WEBHOOKS),
    (
        re.compile(r"violates PodSecurity"),
        "Pod Security of namespace {namespace}",
        "kubectl get namespace {namespace} --show-labels",
    ),
    (
        re.compile(r"(?:exceeded|failed) quota: (?P<name>[^,:\s]+)"),
        "ResourceQuota {namespace}/{name}",
        "kubectl -n {namespace} describe resourcequota {name}",
    ),
    (
        re.compile(r"(?:minimum|maximum) \S+ usage per |max limit to request ratio per "),
        "a LimitRange of namespace {namespace}",
        "kubectl -n {namespace} describe limitrange",
    ),
    (
        re.compile(r"unable to validate against any security context constraint"),
        "OpenShift's security context constraints",
        "oc get scc",
    ),
)
_UNREACHABLE_WEBHOOK = re.compile(r'failed calling webhook "(?P<name>[^"]+)"')

# The verb of an eviction. A budget's refusal is an answer, which the caller repeats.
EVICT = "evict"

# A concurrent write came first. An apply without a resourceVersion can be repeated unchanged.
MODIFIED = "the object has been modified"

# An apply of what no such object can hold is answered with 500, and never with anything else.
UNTYPED = "failed to create typed patch object"

# An account may not create a role with more than its own permissions.
_GRANT = "attempting to grant RBAC permissions"

# The user of a request without credentials. The client sends one when an exec plugin fails.
_NOBODY = "system:anonymous"

_CANNOT = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)


def find_denial(call: ApiCall, code: int, message: str) -> ClusterError | None:
    """The error of a request that admission denied, None if it did not: names who denied it, as far as the message tells."""
    for pattern, denier, command in _DENIERS:
        if match := pattern.search(message):
            names = {"namespace": call.namespace or "", **match.groupdict()}
            text = f"{denier.format(**names)} denied {call.verb} of {call.title}: {message.rstrip('.')}. Show its rules: {command.format(**names)}."
            return ClusterError(text, "admission_refused", code)
    if code == 403 and "is forbidden:" in message and 'User "' not in message and _GRANT not in message:
        return ClusterError(f"admission denied {call.verb} of {call.title}: {message}", "admission_refused", code)
    if match := _UNREACHABLE_WEBHOOK.search(message):
        return ClusterError(
            f"{call.verb} of {call.title} needs admission webhook {match['name']}, which does not answer: {code} {message.rstrip('.')}. "
            f"Check its Service and pods. Find its configuration: {_WEBHOOKS}.",
            "api_error",
            code,
        )
    return None


def describe_forbidden(call: ApiCall, message: str) -> ClusterError:
    """403: names verb and resource, and the rule that is missing."""
    match = _CANNOT.search(message)
    verb, resource, group, user = call.verb, call.kind.plural, call.kind.group, "this account"
    if match is not None:
        verb, resource, group, user = match["verb"], match["resource"], match["group"], match["user"]
    if match is None and _GRANT in message:
        return ClusterError(
            f"not allowed to {verb} {call.title}: Kubernetes lets an account grant only "
            f"permissions that it has. Server: {message}. Grant the account those permissions, or the verb "
            f"'escalate' on {call.kind.plural} and 'bind' on the roles.",
            "forbidden",
            403,
        )
    scope = f"in namespace {call.namespace}" if call.kind.namespaced and call.namespace else "cluster-wide"
    return ClusterError(
        f"not allowed: {user} cannot {verb} {resource} ({scope}; for {call.title}). Add this "
        f"rule to a role of that account: {Need(verb, group, resource).rule()}. The roles in "
        "roles/csi_driver/files/kubewin-rbac.yaml have all required rules.",
        "forbidden",
        403,
    )


_OTHER_MANAGER = re.compile(r'conflict with "(?P<manager>[^"]+)"')


def describe_conflict(call: ApiCall, message: str, status: Mapping[str, Any]) -> ClusterError:
    """409: a server-side apply conflict names the other managers and their fields."""
    owners: dict[str, list[str]] = {}
    for cause in list_causes(status):
        if cause.get("reason") == "FieldManagerConflict":
            match = _OTHER_MANAGER.search(str(cause.get("message", "")))
            owners.setdefault(match["manager"] if match else "another manager", []).append(str(cause.get("field", "?")))
    if not owners:
        return ClusterError(
            f"{call.verb} of {call.title} conflicts with a concurrent change: {message}. Run again.", "conflict", 409
        )
    text = "; ".join(f'"{manager}" owns {", ".join(fields)}' for manager, fields in owners.items())
    remedy = "Remove these fields from that manager's manifest, or set them there as --check --diff shows them."
    if all(manager.startswith("kubectl-") and manager != "kubectl-client-side-apply" for manager in owners):
        where = f"-n {call.namespace} " if call.namespace else ""
        # A change by hand has no manifest.
        remedy = f"Undo that change by hand: kubectl {where}edit {call.kind.plural} {call.name}"
    return ClusterError(
        f"{call.title} has another field manager and was not changed: {text}, expected this collection or none. {remedy}",
        "conflict",
        409,
    )


def find_budget_refusal(body: str) -> str:
    """Why a PodDisruptionBudget refuses an eviction, empty if none does (pkg/registry/core/pod/storage/eviction.go)."""
    message, status = read_status(body)
    budgets = [
        str(cause.get("message") or "") for cause in list_causes(status) if cause.get("reason") == "DisruptionBudget"
    ]
    if budgets or "more than one PodDisruptionBudget" in message:
        return join_lines("".join(budgets[:1]) or message)
    return ""


def describe_failure(call: ApiCall, code: int, body: str) -> ClusterError:
    """The error for an HTTP status that is not worth another try."""
    message, status = read_status(body)
    if call.verb == EVICT and code in (429, 500) and (refusal := find_budget_refusal(body)):
        return ClusterError(refusal, "disruption_budget", code)
    # A missing rule or another value is not what would help.
    if denial := find_denial(call, code, message):
        return denial
    if code == 403 and f'User "{_NOBODY}" cannot' in message:
        # As 401, which a cluster without anonymous requests answers: no rule that is granted to it would help.
        return ClusterError(
            f"the API server received no credentials ({call.verb} {call.title}: 403 for {_NOBODY}), expected those of an account. "
            "Check the user of the kubeconfig's context: its token or certificate, or its exec plugin, which may have failed.",
            "unauthorized",
            401,
        )
    if code == 403:
        return describe_forbidden(call, message)
    if code == 409:
        return describe_conflict(call, message, status)
    if code == 410:
        return GoneError(f"{call.verb} {call.title}: {message} Run again.", "gone", 410)
    if code == 401:
        return ClusterError(
            f"the API server rejects these credentials ({call.verb} {call.title}: 401 {message or 'Unauthorized'}). "
            "Check token or certificate, its expiry and the context of the kubeconfig.",
            "unauthorized",
            401,
        )
    if code in (400, 422) or UNTYPED in message:
        return ClusterError(
            f"the API server rejected {call.title} as invalid ({call.verb}: {code}): {message}", "invalid", code
        )
    if code == 429:
        return ClusterError(
            f"the API server throttled requests until the timeout ({call.verb} {call.title}: 429 {message}). Run again "
            "later, or raise api_timeout.",
            "too_many_requests",
            429,
        )
    return ClusterError(f"{call.verb} {call.title} failed: {code} {message}", "api_error", code)
