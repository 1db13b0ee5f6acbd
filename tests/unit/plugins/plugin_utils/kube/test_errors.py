# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Refusals: who refused, and the command that shows why."""

from __future__ import annotations

import json

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ApiCall, ClusterError, describe_failure
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Script

FORBIDDEN = {
    "message": 'daemonsets.apps "x" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "daemonsets" '
    'in API group "apps" in the namespace "n"'
}


def refused(error: ApiError) -> Client:
    clock = Clock()
    return Client(Script(error), retry_for=60, clock=clock, sleep=clock.sleep)


def test_forbidden_names_verb_resource_and_the_rule_to_add() -> None:
    with pytest.raises(ClusterError) as raised:
        refused(ApiError(403, FORBIDDEN)).get(kinds.DAEMON_SET, "x", "n")
    assert "system:serviceaccount:a:b cannot patch daemonsets (in namespace n" in str(raised.value)
    assert '{apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["patch"]}' in str(raised.value)


def test_a_request_without_credentials_asks_for_no_rule() -> None:
    """The client sends one when the kubeconfig's exec plugin fails. Nobody should grant system:anonymous anything."""
    message = (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    with pytest.raises(ClusterError, match=r"received no credentials .* Check the user of the kubeconfig") as raised:
        refused(ApiError(403, {"message": message})).list(kinds.NODE)
    assert "rule" not in str(raised.value)
    assert (raised.value.reason, raised.value.status) == ("unauthorized", 401)


@pytest.mark.parametrize(
    ("message", "reason", "expected"),
    [
        ("pods x is forbidden: violates PodSecurity", "admission_refused", "violates PodSecurity"),
        ('admission webhook "w" denied the request: no', "admission_refused", "denied the request"),
        ('admission webhook "w" denied the request: pods cannot leave', "admission_refused", "pods cannot leave"),
        (
            'clusterroles "x" is forbidden: user "u" is attempting to grant RBAC permissions not currently held',
            "forbidden",
            "escalate",
        ),
        ("Forbidden", "forbidden", 'resources: ["nodes"], verbs: ["get"]'),
    ],
)
def test_other_kinds_of_forbidden(message: str, reason: str, expected: str) -> None:
    with pytest.raises(ClusterError) as raised:
        refused(ApiError(403, {"message": message})).get(kinds.NODE, "win-1")
    assert raised.value.reason == reason
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (
            422,
            "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'no-csi' with binding 'b' denied request: no csi here",
            "ValidatingAdmissionPolicy no-csi denied create of Pod n/x: pods \"x\" is forbidden: ValidatingAdmissionPolicy 'no-csi' with "
            "binding 'b' denied request: no csi here. Show its rules: kubectl get validatingadmissionpolicy no-csi -o yaml.",
        ),
        (
            400,
            'admission webhook "policy.example.com" denied the request: User "a" may not.',
            'admission webhook policy.example.com denied create of Pod n/x: admission webhook "policy.example.com" denied the '
            'request: User "a" may not. Show its rules: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o ',
        ),
        (403, 'admission webhook "w" denied the request: User "a" may not', "admission webhook w denied create of Pod n/x"),
        (409, 'admission webhook "w" denied the request without explanation', "admission webhook w denied create of Pod n/x"),
        (400, 'admission webhook "w" does not support dry run', "admission webhook w denied create of Pod n/x"),
        (
            403,
            'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged',
            "Pod Security of namespace n denied create of Pod n/x: pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": "
            "privileged. Show its rules: kubectl get namespace n --show-labels.",
        ),
        (
            403,
            'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5',
            "Show its rules: kubectl -n n describe resourcequota small.",
        ),
        (403, 'pods "x" is forbidden: failed quota: q: must specify limits.cpu', "ResourceQuota n/q denied create of Pod n/x"),
        (
            403,
            'pods "x" is forbidden: [maximum cpu usage per Container is 1, but limit is 2]',
            "a LimitRange of namespace n denied create of Pod n/x",
        ),
        (
            403,
            'pods "x" is forbidden: unable to validate against any security context constraint: []',
            "OpenShift's security context constraints denied create",
        ),
        (
            403,
            'pods "x" is forbidden: unable to create new content in namespace n because it is being terminated',
            "admission denied create of Pod n/x: ",
        ),
    ],
)  # fmt: skip
def test_a_denial_names_who_denied_it_and_how_to_see_the_rules(status: int, message: str, expected: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "n", "name": "x"}}
    with pytest.raises(ClusterError) as raised:
        refused(ApiError(status, {"message": message})).create_new(kinds.POD, pod, dry_run=False)
    assert expected in str(raised.value)
    assert "as invalid" not in str(raised.value)
    assert (raised.value.reason, raised.value.status) == ("admission_refused", status)


def test_a_webhook_that_does_not_answer_is_named() -> None:
    message = 'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.x.svc"'
    error = describe_failure(ApiCall("create", kinds.POD, "n", "x"), 500, json.dumps({"message": message}))
    assert str(error).startswith(
        "create of Pod n/x needs admission webhook w.example.com, which does not answer: 500 Internal"
    )
    assert (error.reason, error.status) == ("api_error", 500)
