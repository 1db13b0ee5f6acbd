# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests: what is retried, for how long, and the errors."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import (
    ClusterError,
    GoneError,
    UnreachableError,
)
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Compressed, Response, Script

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-1"}}
FORBIDDEN = {
    "message": 'daemonsets.apps "x" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "daemonsets" '
    'in API group "apps" in the namespace "n"'
}


def client(*answers: Any, clock: Clock | None = None) -> tuple[Client, Script, Clock]:
    script, time = Script(*answers), clock or Clock()
    return Client(script, retry_for=60, clock=time, sleep=time.sleep), script, time


def test_a_missing_object_is_none() -> None:
    assert client(ApiError(404))[0].get(kinds.NODE, "win-1") is None


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_request_to_a_failing_server_is_retried(status: int) -> None:
    made, script, clock = client(ApiError(status), ApiError(status), Response(NODE))
    assert made.get(kinds.NODE, "win-1") == NODE
    assert len(script.asked) == 3
    assert clock.slept


def test_a_lost_connection_is_tried_again() -> None:
    made, script, dummy = client(ConnectionRefusedError("refused"), Response(NODE))
    assert made.get(kinds.NODE, "win-1") == NODE
    assert len(script.asked) == 2
    assert dummy.slept


def test_retry_after_is_kept() -> None:
    made, dummy, clock = client(ApiError(429, headers={"Retry-After": "7"}), Response(NODE))
    made.get(kinds.NODE, "win-1")
    assert clock.slept == [7.0]
    assert dummy.asked


def test_a_retry_after_beyond_the_patience_ends_at_once() -> None:
    made, script, clock = client(ApiError(429, headers={"Retry-After": "3600"}))
    with pytest.raises(ClusterError, match="throttled") as raised:
        made.get(kinds.NODE, "win-1")
    assert raised.value.reason == "too_many_requests"
    assert clock.slept == []
    assert len(script.asked) == 1


def test_patience_ends() -> None:
    made, dummy, clock = client(ConnectionRefusedError("refused"))
    with pytest.raises(UnreachableError, match="refused") as raised:
        made.get(kinds.NODE, "win-1")
    assert raised.value.reason == "unreachable"
    assert 55 < clock.now <= 60
    assert dummy.asked


def test_a_failed_handshake_is_no_answer() -> None:
    """The client raises it as an API error without a status, once API discovery is in kubernetes.core's cache."""
    failure = ApiError(0, reason="SSLError\n[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    made, dummy, _clock = client(failure)
    with pytest.raises(UnreachableError, match=r"SSLError \[SSL: CERTIFICATE_VERIFY_FAILED\] .* CA certificate"):
        made.get(kinds.NODE, "win-1")
    assert dummy.asked


def test_an_error_of_our_own_is_not_taken_for_the_network() -> None:
    made, script, dummy = client(KeyError("ours"))
    with pytest.raises(KeyError):
        made.get(kinds.NODE, "win-1")
    assert len(script.asked) == 1
    assert dummy.slept == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "invalid"), (409, "conflict"), (422, "invalid")],
)
def test_a_final_error_is_not_retried(status: int, reason: str) -> None:
    made, script, dummy = client(ApiError(status))
    with pytest.raises(ClusterError) as raised:
        made.get(kinds.NODE, "win-1")
    assert raised.value.reason == reason
    assert len(script.asked) == 1
    assert dummy.slept == []


def test_an_apply_with_a_conflict_is_repeated_and_a_bound_patch_is_not() -> None:
    quicker = ApiError(
        409, {"message": 'Operation cannot be fulfilled on pods "a": the object has been modified; please try again'}
    )
    made, script, dummy = client(quicker, quicker, Response(POD))
    assert made.apply(POD, dry_run=False).body == POD
    assert len(script.asked) == 3
    made, script, dummy = client(quicker)
    with pytest.raises(ClusterError, match="Run again"):
        made.patch(kinds.NODE, "win-1", None, {"metadata": {"resourceVersion": "5"}}, "tests")
    assert len(script.asked) == 1


def test_a_field_that_no_object_has_is_not_repeated_although_the_server_calls_it_its_own_error() -> None:
    made, script, dummy = client(
        ApiError(500, {"message": "failed to create typed patch object (a/b): .spec.foo: no field"})
    )
    with pytest.raises(ClusterError, match=r"as invalid .*\.spec\.foo"):
        made.apply(POD, dry_run=False)
    assert len(script.asked) == 1
    assert dummy.slept == []


@pytest.mark.parametrize("trouble", [ConnectionResetError("down"), ApiError(503)], ids=["down", "unavailable"])
def test_a_server_that_was_away_may_forbid_until_its_rules_are_loaded(trouble: Exception) -> None:
    refused = ApiError(403, FORBIDDEN)
    made, script, dummy = client(*[trouble] * 10, refused, refused, refused, Response(), Response(NODE))
    assert made.get(kinds.NODE, "win-1") == NODE
    assert len(script.asked) == 15


def test_a_server_that_came_back_between_two_requests_may_forbid_until_it_is_ready() -> None:
    refused = ApiError(403, FORBIDDEN)
    made, script, dummy = client(refused, ApiError(500), refused, refused, refused, Response(), Response(NODE))
    assert made.get(kinds.NODE, "win-1") == NODE
    assert len(script.asked) == 7


def test_a_server_that_forbids_its_readiness_for_good_is_doubted_for_a_moment() -> None:
    made, dummy, clock = client(*[ConnectionResetError("down")] * 8, *[ApiError(403, FORBIDDEN)] * 40)
    with pytest.raises(ClusterError, match="not allowed"):
        made.get(kinds.NODE, "win-1")
    away = sum(clock.slept[:8])
    assert 5 <= clock.now - away < 12


def test_a_server_that_has_just_reported_that_it_is_ready_is_not_doubted_again() -> None:
    refused = ApiError(403, FORBIDDEN)
    made, script, clock = client(*[refused, Response()] * 8, refused)

    def ask() -> int:
        before = len(script.asked)
        with pytest.raises(ClusterError, match="not allowed"):
            made.get(kinds.NODE, "win-1")
        return len(script.asked) - before

    # Asked, ready, asked again, still ready; then it was ready before.
    assert (ask(), ask(), clock.slept) == (4, 2, [0.0])
    # It may have been started anew since.
    clock.sleep(2)
    assert ask() == 4


def test_another_server_at_the_address_that_starts_is_waited_for_although_one_was_ready() -> None:
    refused = ApiError(403, FORBIDDEN)
    made, _script, _clock = client(
        *[refused, Response()] * 2, refused, ApiError(403, FORBIDDEN), refused, ApiError(500), Response(NODE)
    )
    with pytest.raises(ClusterError, match="not allowed"):
        made.get(kinds.NODE, "win-1")
    assert made.get(kinds.NODE, "win-1") == NODE


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([ApiError(401)], "unauthorized"),
        ([ApiError(403, FORBIDDEN), Response()] * 2, "forbidden"),
    ],
    ids=["wrong credentials", "no permission"],
)
def test_a_refusal_of_a_server_that_is_ready_is_final(answers: list[Any], reason: str) -> None:
    made, script, clock = client(*answers)
    with pytest.raises(ClusterError) as raised:
        made.get(kinds.NODE, "win-1")
    assert raised.value.reason == reason
    assert len(script.asked) == len(answers)
    assert clock.now < 1


def test_lists_are_paged() -> None:
    pages = (
        Response({"items": [{"n": 1}], "metadata": {"continue": "t", "resourceVersion": "5"}}),
        Response({"items": [{"n": 2}], "metadata": {"resourceVersion": "5"}}),
    )
    made, script, dummy = client(*pages)
    listing = made.list(kinds.NODE, label_selector="a=b")
    assert listing.items == ({"n": 1}, {"n": 2})
    assert listing.resource_version == "5"
    assert [asked[2].get("_continue") for asked in script.asked] == [None, "t"]
    assert all(asked[2]["limit"] == 500 and asked[2]["label_selector"] == "a=b" for asked in script.asked)
    assert dummy.slept == []


def test_a_compressed_page_is_read_and_a_damaged_one_is_read_again() -> None:
    page = {"items": [{"n": 1}], "metadata": {"resourceVersion": "5"}}
    made, script, clock = client(Compressed(page, damaged=True), Compressed(page))
    assert made.list(kinds.NODE).items == ({"n": 1},)
    assert len(script.asked) == 2
    assert clock.slept


class SignallingScript(Script):
    """Answers in order. asked_for: released with each request."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.asked_for = threading.Semaphore(0)

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        self.asked_for.release()
        return super().request(method, path, body, **params)


def test_the_next_page_is_read_while_the_caller_has_one() -> None:
    script = SignallingScript(
        Response({"items": [{"n": 1}], "metadata": {"continue": "t", "resourceVersion": "5"}}),
        Response({"items": [{"n": 2}], "metadata": {"resourceVersion": "5"}}),
    )
    pages = Client(script).read_pages(kinds.NODE, json.loads)
    assert next(pages)["items"] == [{"n": 1}]
    assert script.asked_for.acquire(timeout=10)
    assert script.asked_for.acquire(timeout=10)
    assert [page["items"] for page in pages] == [[{"n": 2}]]


def test_the_next_page_is_asked_for_before_this_one_is_decoded() -> None:
    script = SignallingScript(
        Response({"metadata": {"resourceVersion": "5", "continue": "t"}, "items": [{"continue": "of an item"}]}),
        Response({"metadata": {"resourceVersion": "5"}, "items": [{"continue": "of an item"}]}),
    )
    tokens: list[list[str | None]] = []

    def decode(page: bytes) -> Any:
        if not tokens:
            assert script.asked_for.acquire(timeout=10)
            assert script.asked_for.acquire(timeout=10)
        tokens.append([params.get("_continue") for _method, _path, params in script.asked])
        return json.loads(page)

    assert len([*Client(script).read_pages(kinds.NODE, decode)]) == 2
    assert tokens == [[None, "t"], [None, "t"]]


class HangingScript(Script):
    """Answers the first request, and others once `over` is set."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.over, self.answered = threading.Event(), threading.Event()

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        if self.asked:
            self.over.wait(60)
        answer = super().request(method, path, body, **params)
        if len(self.asked) > 1:
            self.answered.set()
        return answer


def test_a_run_that_is_terminated_does_not_wait_for_the_next_page() -> None:
    script = HangingScript(
        Response({"items": [{"n": 1}], "metadata": {"continue": "t", "resourceVersion": "5"}}),
        Response({"items": [{"n": 2}], "metadata": {"resourceVersion": "5"}}),
    )
    pages: Any = Client(script).read_pages(kinds.NODE, json.loads)
    next(pages)
    with pytest.raises(KeyboardInterrupt):
        pages.throw(KeyboardInterrupt())
    assert not script.answered.is_set()
    script.over.set()
    assert script.answered.wait(10)


def test_a_page_that_expired_starts_the_list_again() -> None:
    first = Response({"items": [{"n": 1}], "metadata": {"continue": "t"}})
    last = Response({"items": [{"n": 1}], "metadata": {"resourceVersion": "9"}})
    made, script, dummy = client(first, ApiError(410), last)
    assert made.list(kinds.NODE).items == ({"n": 1},)
    assert len(script.asked) == 3
    assert dummy.slept == []


def test_pages_that_always_expire_are_given_up() -> None:
    made, script, dummy = client(ApiError(410))
    with pytest.raises(GoneError):
        made.list(kinds.NODE)
    assert len(script.asked) == 3
    assert dummy.slept == []


def test_apply_is_ours_strict_and_without_force() -> None:
    made, script, dummy = client(Response(NODE, {"Warning": '299 - "would violate PodSecurity"'}))
    answer = made.apply({**NODE}, dry_run=True)
    method, path, params = script.asked[0]
    assert (method, path) == ("PATCH", "/api/v1/nodes/win-1")
    assert params["field_manager"] == "kubewin.csi"
    assert params["force_conflicts"] == "false"
    assert params["dry_run"] == "All"
    assert ("fieldValidation", "Strict") in params["query_params"]
    assert params["content_type"].startswith("application/apply-patch+yaml")
    assert answer.warnings == ("would violate PodSecurity",)
    made.apply({**NODE}, dry_run=False)
    assert "dry_run" not in script.asked[1][2]
    assert dummy.slept == []


def test_a_deletion_has_the_uid_that_was_read_and_pods_may_stay() -> None:
    made, script, dummy = client(Response(NODE))
    made.delete(kinds.DAEMON_SET, "plugin", "n", "uid-1", dry_run=False)
    made.delete(kinds.DAEMON_SET, "plugin", "n", "uid-1", dry_run=False, policy="Orphan")
    bodies = [asked["body"] for dummy_method, dummy_path, asked in script.asked]
    assert [body["preconditions"] for body in bodies] == [{"uid": "uid-1"}] * 2
    assert [body["propagationPolicy"] for body in bodies] == ["Foreground", "Orphan"]


def test_a_merge_patch_is_one_and_names_its_manager() -> None:
    made, script, dummy = client(Response(NODE))
    body = {"metadata": {"resourceVersion": "7"}}
    assert made.patch(kinds.NODE, "win-1", None, body, "kubewin.csi.handover") == NODE
    method, path, asked = script.asked[0]
    assert (method, path, asked["body"]) == ("PATCH", "/api/v1/nodes/win-1", body)
    assert (asked["content_type"], asked["field_manager"]) == ("application/merge-patch+json", "kubewin.csi.handover")


@pytest.mark.parametrize("allowed", [True, False])
def test_another_account_is_checked_with_its_groups(allowed: bool) -> None:
    made, script, dummy = client(Response({"status": {"allowed": allowed}}))
    user = "system:serviceaccount:n:plugin"
    assert made.is_allowed_for(user, Need("use", "g", "r", "n", "privileged")) is allowed
    spec = script.asked[0][2]["body"]["spec"]
    assert spec["user"] == user
    assert set(spec["groups"]) >= {"system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"}
    assert spec["resourceAttributes"]["name"] == "privileged"


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pull", "namespace": "d"}}


def test_creating_an_existing_object_is_no_error_so_a_lost_answer_is_retried() -> None:
    made, script, dummy = client(ApiError(503), ApiError(409), Response(POD))
    made.create(POD)
    assert [(method, path) for method, path, dummy in script.asked] == [("POST", "/api/v1/namespaces/d/pods")] * 2
    made.create(POD)
    with pytest.raises(ClusterError):
        client(ApiError(422))[0].create(POD)


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "plugin"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plugin"},
}


def test_a_role_is_bound_once_the_servers_cache_has_it() -> None:
    made, script, dummy = client(ApiError(404), ApiError(404), Response(BINDING))
    assert made.apply(BINDING, dry_run=False).body == BINDING
    assert len(script.asked) == 3
    assert dummy.slept


def test_a_role_that_never_appears_is_an_error_after_the_timeout() -> None:
    made, dummy, clock = client(*[ApiError(404)] * 20)
    with pytest.raises(ClusterError, match="ClusterRoleBinding plugin"):
        made.apply(BINDING, dry_run=False)
    assert sum(clock.slept) < 20
    assert dummy.asked


def test_watch_reads_lines_across_chunks() -> None:
    lines = [{"type": "ADDED", "object": {"metadata": {"name": str(number)}}} for number in range(3)]
    made = client(Response(lines=lines))[0]
    assert [(kind, item["metadata"]["name"]) for kind, item in made.watch(kinds.POD, "1", 5)] == [
        ("ADDED", "0"), ("ADDED", "1"), ("ADDED", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        Response(lines=[{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}]),
        ApiError(410),
    ],
)
def test_a_watch_from_an_expired_version_reports_it(answer: Any) -> None:
    with pytest.raises(GoneError):
        list(client(answer)[0].watch(kinds.POD, "1", 5))


def test_a_broken_watch_is_reported() -> None:
    with pytest.raises(UnreachableError):
        list(client(ConnectionResetError("reset"))[0].watch(kinds.POD, "1", 5))


def test_a_log_that_cannot_be_read_explains_nothing() -> None:
    assert client(ApiError(500))[0].read_log("n", "p", "c") == ""


@pytest.mark.parametrize(("pause", "length"), [(0.0, 123), (4.0, 80)], ids=["large", "slow"])
def test_a_log_without_end_is_cut(pause: float, length: int) -> None:
    """An attacker's node need not keep to limitBytes, and the API server passes on what the kubelet sends."""

    class EndlessLog(Response):
        def stream(self, amt: int, decode_content: bool) -> Iterator[bytes]:
            for _chunk in range(1000):
                clock.sleep(pause)
                yield b"chunk"

    made, script, clock = client(EndlessLog())
    log = made.read_log_bytes("n", "p", "c", tail=1, most=123)
    assert log == (b"chunk" * 25)[:length]
    assert clock.now <= 65
    assert dict(script.asked[0][2]["query_params"])["limitBytes"] == "123"


def test_the_servers_clock_counts() -> None:
    ahead = datetime.now(timezone.utc) + timedelta(hours=1)
    made = client(Response(NODE, {"Date": format_datetime(ahead, usegmt=True)}))[0]
    made.get(kinds.NODE, "win-1")
    assert abs(made.now() - ahead) < timedelta(seconds=5)


def test_a_conflict_names_the_other_manager_and_its_fields() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "helm" using apps/v1', "field": ".spec.template"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.selector"},
    ]
    body = {"message": "Apply failed with 2 conflicts", "details": {"causes": causes}}
    with pytest.raises(ClusterError) as raised:
        client(ApiError(409, body))[0].apply({**NODE}, dry_run=True)
    assert '"helm" owns .spec.template; "kubectl" owns .spec.selector' in str(raised.value)
    assert "Remove these fields from that manager's manifest" in str(raised.value)


def test_a_change_by_hand_is_undone_by_hand() -> None:
    """`kubectl set image` and `kubectl edit` have no manifest from which a field could be removed."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-set" using apps/v1',
            "field": ".spec.template",
        },
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-edit"', "field": ".spec.selector"},
    ]
    body = {"message": "Apply failed with 2 conflicts", "details": {"causes": causes}}
    with pytest.raises(ClusterError) as raised:
        client(ApiError(409, body))[0].apply({**NODE}, dry_run=True)
    assert str(raised.value).endswith("Undo that change by hand: kubectl edit nodes win-1")


# Evictions


def evicted(*answers: Any) -> tuple[str, Script]:
    made, script, dummy = client(*answers)
    return made.evict("web-1", "shop", "u1", "7"), script


def test_an_eviction_has_uid_and_version_that_were_read() -> None:
    why, script = evicted(Response({}))
    assert why == ""
    ((method, path, sent),) = script.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction")
    assert sent["body"]["deleteOptions"] == {"preconditions": {"uid": "u1", "resourceVersion": "7"}}
    assert evicted(ApiError(404))[0] == ""
    with pytest.raises(ClusterError):
        evicted(ApiError(409))


def test_a_budget_is_named_at_once_and_a_busy_server_is_retried() -> None:
    expected = "The disruption budget db needs 1 healthy pods and has 1 currently"
    budget = {
        "message": "Cannot evict pod",
        "details": {"causes": [{"reason": "DisruptionBudget", "message": expected}]},
    }
    why, script = evicted(ApiError(429, budget, {"Retry-After": "10"}))
    assert why == expected
    assert len(script.asked) == 1
    why, script = evicted(ApiError(429, {"message": "slow down"}, {"Retry-After": "1"}), Response({}))
    assert why == ""
    assert len(script.asked) == 2
    two = {
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    }
    assert "more than one PodDisruptionBudget" in evicted(ApiError(500, two))[0]


TERMINATING = 'pods "a" is forbidden: unable to create new content in namespace n because it is being terminated'
POLICY = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not during the day"


@pytest.mark.parametrize(
    ("status", "message"),
    [(403, TERMINATING), (422, POLICY), (400, 'admission webhook "w" denied the request: it is being moved')],
    ids=["a namespace that is being deleted", "a policy", "a webhook"],
)
def test_an_eviction_that_admission_refuses_is_reported_like_one_of_a_disruption_budget(
    status: int, message: str
) -> None:
    refused = ApiError(status, {"message": message})
    # A 403 is retried once, and the server reports before and after that it is ready.
    assert message in evicted(*[refused, Response({})] * 2)[0]


@pytest.mark.parametrize(("status", "reason"), [(429, "too_many_requests"), (401, "unauthorized")])
def test_an_eviction_that_the_server_has_no_time_for_is_none_that_a_budget_refuses(status: int, reason: str) -> None:
    busy = ApiError(status, {"message": "Too many requests, please try again later."}, headers={"Retry-After": "1"})
    with pytest.raises(ClusterError) as raised:
        evicted(*[busy] * 80)
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("answers", "may_arrive"),
    [
        ((ApiError(403),), False),
        ((ApiError(504),), True),
        ((ConnectionResetError("cut"), ApiError(403)), True),
        ((ConnectionResetError("cut"), ApiError(409)), False),
        ((ConnectionResetError("cut"), Response({"metadata": {}})), False),
    ],
)
def test_a_write_may_still_arrive_unless_an_answer_rules_it_out(answers: tuple[Any, ...], may_arrive: bool) -> None:
    """A proxy answers for a request that it holds, and a later try's refusal says nothing of an earlier one."""
    asked, _script, _time = client(*answers)
    with contextlib.suppress(ClusterError):
        asked.delete(kinds.POD, "web-0", "shop", "uid-1", dry_run=False, policy="Background", version="7")
    assert asked.has_unanswered_writes is may_arrive
