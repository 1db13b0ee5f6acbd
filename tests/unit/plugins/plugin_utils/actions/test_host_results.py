# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each host of a play is a row in the form that a cluster-wide task takes; a host that was not read is never a proof."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import host_results
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import (
    describe_left_cordons,
    read_rows,
    to_rows,
)
from unit.plugins.hostvars import HostVars, UntemplatedHostVars

STATE: dict[str, Any] = {
    "observed_at": "2026-01-01T00:00:00Z",
    "host": {"name": "WIN-1", "dns_name": "win-1.example.com", "addresses": ["10.0.0.1"], "boot_time": None},
    "managed_by": "kubewin",
    "service": {"state": "RUNNING"},
    "executable": {"release": "1.3.0"},
    "serving": True,
    "missing_pipes": [],
    "pipes": ["csi-proxy-disk-v1"],
    "findings": [{"id": "CSI-N20", "severity": "note", "message": "x", "remedy": "y"}],
}
MARKED = {"labels": {"kubewin.io/csi-proxy": "serving"}, "cordoned_for": ""}
NODES = {"matched": {"a": "win-1"}, "nodes": {"win-1": MARKED, "b": MARKED}}
LOST = {"failed": False, "reason": "connection_lost", "msg": "a: the connection was lost"}


FORMS: dict[str, Any] = {
    "reported": host_results.reported,
    "proofs": host_results.proof,
    "read": host_results.observed,
    "rows": host_results.row,
    "gathered": host_results.gathered,
    "unmarked": host_results.unmarked,
    "verified": host_results.verified,
    "unsettled": host_results.unsettled,
    "returned": lambda result: dict(result.returned),
}


def rows(form: str, **hosts: dict[str, Any]) -> list[Any]:
    return formed(form, list(hosts), hosts)


def formed(form: str, names: list[str], hosts: dict[str, dict[str, Any]]) -> list[Any]:
    return to_rows(FORMS[form], names, hosts)


def read(**more: Any) -> dict[str, Any]:
    return {"csi_proxy_plan": {"csi_proxy": STATE, "plan": [], **more}, "kubewin_nodes": NODES}


def test_a_host_reports_its_names_or_its_problem() -> None:
    found = rows("reported", a=read(), b={"csi_proxy_plan": LOST}, c={})
    assert found[0] == {
        "name": "a",
        "names": ["WIN-1", "win-1.example.com"],
        "addresses": ["10.0.0.1"],
        "node_name": "",
        "problem": "",
    }
    assert [(one["names"], one["problem"]) for one in found[1:]] == [
        ([], "a: the connection was lost"),
        ([], "its read returned nothing"),
    ]


def test_a_refusal_is_a_problem_although_the_host_was_read() -> None:
    (found,) = rows("reported", a=read(reason="downgrade", msg="1.3.0 runs there"))
    assert found["problem"] == "1.3.0 runs there"


def test_only_a_lost_connection_is_skipped_and_only_on_request() -> None:
    skip = {"kubewin_inputs": {"skip_unreachable": True}}
    assert [one["problem"] for one in rows("reported", a={"csi_proxy_plan": LOST, **skip})] == [""]
    refused = {"csi_proxy_plan": {"reason": "access_denied", "msg": "denied"}, **skip}
    assert [one["problem"] for one in rows("reported", a=refused)] == ["denied"]


def test_a_host_that_was_not_read_is_no_proof() -> None:
    assert [one["node"] for one in rows("proofs", a=read(), b={"csi_proxy_plan": LOST}, c={})] == ["win-1"]


def test_a_host_without_a_driver_that_needs_csi_proxy_is_settled_without_it() -> None:
    bare = {**NODES, "nodes": {"win-1": {"labels": {}, "cordoned_for": ""}}}
    assert rows("unsettled", a={**read(), "kubewin_nodes": bare}) == ["a"]
    assert rows("unsettled", a={**read(needed=False), "kubewin_nodes": bare}) == []
    cordoned = {**NODES, "nodes": {"win-1": {"labels": {}, "cordoned_for": "csi-proxy is being replaced"}}}
    assert rows("unsettled", a={**read(needed=False), "kubewin_nodes": cordoned}) == ["a"]


def test_a_changed_host_is_read_after_the_change() -> None:
    after = {**STATE, "serving": False}
    changed = {"changed": True, "csi_proxy": after, "plan": [{"description": "start the service"}]}
    own = {**read(), "csi_proxy_result": changed}
    assert [one["serving"] for one in rows("proofs", a=own)] == [False]
    assert [one["changed"] for one in rows("rows", a=own)] == [["start the service"]]
    assert [one["changed"] for one in rows("rows", a=read())] == [[]]


def test_a_host_that_was_not_read_is_not_called_absent() -> None:
    (row,) = rows("rows", b={"csi_proxy_plan": LOST, "kubewin_nodes": NODES})
    assert (row["node"], row["csi_proxy"], row["left_out"]) == ("b", None, "a: the connection was lost")


def test_a_skipped_task_has_no_result() -> None:
    own = {**read(), "csi_proxy_result": {"changed": False, "skipped": True}}
    assert [one["serving"] for one in rows("proofs", a=own)] == [True]


def at(second: int, **more: Any) -> dict[str, Any]:
    return {"csi_proxy": {**STATE, "observed_at": f"2026-01-01T00:00:{second:02}Z"}, **more}


def test_of_two_playbooks_in_one_run_the_later_result_counts() -> None:
    stopped = {"csi_proxy": {**STATE, "observed_at": "2026-01-01T00:00:09Z", "serving": False}}
    changed = at(5, changed=True, plan=[{"description": "start the service"}])
    own = {"csi_proxy_plan": stopped, "csi_proxy_result": changed, "kubewin_nodes": NODES}
    (row,) = rows("rows", a=own)
    assert (row["csi_proxy"]["serving"], row["changed"]) == (False, [])
    assert rows("returned", a=own) == [stopped]
    assert rows("returned", a={**own, "csi_proxy_plan": at(3)}) == [changed]


def test_a_later_failure_is_not_replaced_by_an_older_result() -> None:
    assert rows("returned", a={"csi_proxy_plan": LOST, "csi_proxy_result": at(5)}) == [LOST]
    assert rows("returned", a={"csi_proxy_plan": at(5), "csi_proxy_result": LOST}) == [LOST]
    assert rows("returned", a={}) == [{}]


def test_readiness_gets_unread_hosts_with_the_reason() -> None:
    found = rows("read", a=read(), b={"csi_proxy_plan": LOST}, c={"csi_proxy_plan": LOST})
    assert [(one["node"], one["reason"]) for one in found] == [("win-1", ""), ("b", "a: the connection was lost")]
    assert "boot_time" not in found[0]
    assert found[0]["findings"] == STATE["findings"]


def test_a_host_is_settled_when_nothing_of_it_may_be_changed() -> None:
    assert rows("unsettled", a=read()) == []
    assert rows("unsettled", a=read(plan=[{"step": "start"}])) == ["a"]
    assert rows("unsettled", a={}) == ["a"]
    unmarked: dict[str, Any] = {"labels": {}}
    for facts in (unmarked, {**MARKED, "cordoned_for": "csi-proxy is being replaced"}):
        own = {**read(), "kubewin_nodes": {"matched": {"a": "win-1"}, "nodes": {"win-1": facts}}}
        assert rows("unsettled", a=own) == ["a"]


def test_a_node_is_labelled_by_whether_its_csi_proxy_serves_unless_it_was_already() -> None:
    def node(labels: dict[str, str], **facts: str) -> dict[str, Any]:
        return {"kubewin_nodes": {"matched": {"a": "win-1"}, "nodes": {"win-1": {"labels": labels, **facts}}}}

    labelled = {"kubewin.io/csi-proxy": "serving"}
    stopped = {"csi_proxy_plan": {"csi_proxy": {**STATE, "serving": False}}}
    assert rows("unmarked", a={**read(), **node(labelled)}) == []
    assert rows("unmarked", a={**read(), **node({})}) == [{"node": "win-1", "serving": True}]
    assert rows("unmarked", a={**stopped, **node(labelled)}) == [{"node": "win-1", "serving": False}]
    assert rows("unmarked", a={**stopped, **node({})}) == []
    assert rows("unmarked", a={**node({}), "csi_proxy_plan": LOST}) == []
    # Another run removed it, and is about to restart csi-proxy.
    assert rows("unmarked", a={**read(), **node({}, cordoned_for="csi-proxy is being replaced")}) == []


def test_a_host_of_the_play_without_a_result_counts_as_lost_and_other_hosts_do_not_count() -> None:
    hosts = {"a": read(), "lost": {}, "localhost": {}}
    variables = {
        "kubewin_inputs": {"windows": ["a", "lost", "limited"]},
        "ansible_play_hosts_all": ["a", "lost", "localhost"],
        "hostvars": UntemplatedHostVars(hosts),
    }
    found = read_rows(host_results.reported, variables)
    assert [(host["name"], host["problem"]) for host in found] == [("a", ""), ("lost", "its read returned nothing")]
    assert read_rows(host_results.unsettled, variables) == ["lost"]
    assert read_rows(host_results.reported, {}) == []


def test_the_name_of_a_host_s_node_may_be_a_template() -> None:
    """Of all that is read, the inventory sets this alone."""

    class Templated(HostVars):
        def raw_get(self, host: str) -> dict[str, Any]:
            return {"kubewin_node_name": "{{ inventory_hostname }}.example.com"}

    variables = {
        "kubewin_inputs": {"windows": ["a"]},
        "ansible_play_hosts_all": ["a"],
        "hostvars": Templated({"a": {"kubewin_node_name": "a.example.com"}}),
    }
    (found,) = read_rows(host_results.reported, variables)
    assert found["node_name"] == "a.example.com"


def test_hosts_of_several_batches_are_each_the_node_that_their_own_batch_matched() -> None:
    of_batches: dict[str, dict[str, Any]] = {
        name: {**read(), "kubewin_nodes": {"matched": {name: node}, "nodes": {"win-1": MARKED, "win-2": MARKED}}}
        for name, node in (("one.example.com", "win-1"), ("two.example.com", "win-2"))
    }
    for form in ("proofs", "rows", "read"):
        assert [one["node"] for one in formed(form, list(of_batches), of_batches)] == ["win-1", "win-2"], form
    # A host that no batch had, as one that could not be reached.
    named = {**of_batches, "win-2": {"csi_proxy_plan": LOST}}
    assert [one["node"] for one in formed("read", list(named), named)] == ["win-1", "win-2", "win-2"]


def test_a_host_that_cannot_mount_the_next_volume_is_reported_beside_proven_volumes() -> None:
    stopped = {**STATE, "service": {"state": "stopped"}, "serving": False}
    blocked = {**STATE, "findings": [{"id": "CSI-N10", "severity": "blocker", "message": "SAN policy", "remedy": "y"}]}
    well, down, wrong, lost = rows(
        "verified", a=read(), b=read(csi_proxy=stopped), c=read(csi_proxy=blocked), d={"csi_proxy_plan": LOST}
    )
    assert well == {"node": "win-1", "error": "", "unread": "", "doubts": []}
    assert down["doubts"][0].startswith("b: csi-proxy is stopped and does not serve. The next mount of a volume fails")
    assert wrong["doubts"] == ["c: SAN policy"]
    assert (lost["node"], lost["unread"], lost["doubts"]) == ("", "d: a: the connection was lost", [])


def test_gathered_rows_name_each_host_that_was_not_read() -> None:
    part = {"path": "service.txt", "bytes": 5, "problem": ""}
    found = rows(
        "gathered",
        a={**read(), "kubewin_evidence": {"parts": [part], "problem": "interrupted"}},
        b={"csi_proxy_plan": LOST, "kubewin_inputs": {"skip_unreachable": True}},
        c=read(),
    )
    assert [(one["node"], one["problem"]) for one in found] == [
        ("win-1", "interrupted"),
        ("b", "a: the connection was lost"),
        ("", ""),
    ]
    assert found[0]["csi_proxy"] == "csi-proxy 1.3.0 running, serving"
    assert (found[0]["parts"], found[0]["findings"]) == ([part], STATE["findings"])


def test_a_refusal_names_the_nodes_that_a_cancelled_run_left_cordoned_and_unlabelled() -> None:
    ours = {"cordoned_for": "csi-proxy is being replaced", "unschedulable": True}
    lines = describe_left_cordons(
        {
            "win-1": {**ours, "labels": {}},
            "win-2": {**ours, "labels": {"kubewin.io/csi-proxy": "serving"}},
            "win-3": {"cordoned_for": "", "unschedulable": True, "labels": {}},
        }
    )
    assert lines == [
        "Node win-1 is cordoned (csi-proxy is being replaced) and lacks the label kubewin.io/csi-proxy, because a run was "
        "interrupted. The next run that succeeds restores it.",
        "Node win-2 is cordoned (csi-proxy is being replaced), because a run was interrupted. The next run that succeeds "
        "restores it.",
    ]
