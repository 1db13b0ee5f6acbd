# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster-wide task reads of each host of a play; a host that was not read is never a proof."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.action.gather import describe_host
from ansible_collections.kubewin.csi.plugins.action.verify import list_doubts, list_unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import (
    HostResult,
    build_results,
    describe_left_cordons,
    describe_unusable,
    list_read_nodes,
    read_hosts,
    read_inventory,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.results import CsiProxyResult
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.summary import RunFacts, summarize
from unit.plugins.hostvars import NOTE, STATE, HostVars, UntemplatedHostVars, match

MARKED = {"kubewin.io/csi-proxy": "serving"}
NODES = match("win-1", "b", matched={"a": "win-1"}, labels=MARKED)
LOST = {"failed": False, "reason": "connection_lost", "msg": "a: the connection was lost"}


def results(**hosts: dict[str, Any]) -> list[HostResult]:
    return build_results(list(hosts), hosts)


def result(variables: dict[str, Any]) -> HostResult:
    """The result of host a."""
    (found,) = results(a=variables)
    return found


def read(**more: Any) -> dict[str, Any]:
    return {"csi_proxy_plan": {"csi_proxy": STATE, "plan": [], **more}, "kubewin_nodes": NODES}


def test_a_host_reports_its_names_or_its_problem() -> None:
    found = [host.describe_identity() for host in results(a=read(), b={"csi_proxy_plan": LOST}, c={})]
    assert found[0] == {
        "name": "a",
        "names": ["WIN-1", "win-1.example.com"],
        "addresses": ["10.0.0.1"],
        "node_name": "",
        "problem": "",
    }
    assert [(one["names"], one["problem"]) for one in found[1:]] == [
        ([], "a: the connection was lost"),
        ([], "it could not be read"),
    ]


def test_hosts_that_an_upgrade_cannot_use_are_listed_with_the_reason() -> None:
    """c is outside of --limit: nothing read it."""
    matched = {"kubewin_nodes": {**NODES, "errors": {"d": "host d is no Node"}}}
    hosts = {"a": {**read(), **matched}, "b": {"csi_proxy_plan": LOST}, "c": {}, "d": {**read(), **matched}}
    task_vars = {"kubewin_inputs": {"windows": list(hosts)}, "hostvars": HostVars(hosts)}
    assert describe_unusable(read_inventory(task_vars)) == ["b: a: the connection was lost", "d: host d is no Node"]


def test_a_refusal_is_a_problem_although_the_host_was_read() -> None:
    assert result(read(reason="downgrade", msg="1.3.0 runs there")).describe_identity()["problem"] == "1.3.0 runs there"


def test_only_a_lost_connection_is_skipped_and_only_on_request() -> None:
    skip = {"kubewin_inputs": {"skip_unreachable": True}}
    assert result({"csi_proxy_plan": LOST, **skip}).describe_identity()["problem"] == ""
    refused = {"csi_proxy_plan": {"reason": "access_denied", "msg": "denied"}, **skip}
    assert result(refused).describe_identity()["problem"] == "denied"


def test_a_host_that_was_not_read_is_no_proof_and_has_the_reason() -> None:
    found = [host.describe_csi_proxy() for host in results(a=read(), b={"csi_proxy_plan": LOST}, c={})]
    assert list_read_nodes(found) == ["win-1"]
    assert found[1:] == [
        {"node": "b", "reason": "a: the connection was lost"},
        {"node": "", "reason": "it could not be read"},
    ]
    assert found[0]["findings"] == STATE["findings"]


def test_a_host_that_was_read_and_not_matched_has_a_reason() -> None:
    (host,) = build_results(["a"], {"a": {**read(), "kubewin_nodes": match("a")}})
    assert host.describe_csi_proxy() == {"node": "a", "reason": "it was not matched to a Node"}


def test_a_host_that_is_another_machine_than_its_name_says_proves_nothing() -> None:
    """The address of win-2 was copied to win-1: both are the Node win-2, and win-1 was not read."""
    error = "hosts win-1, win-2 are all Node win-2, expected one host per Node"
    nodes = match("win-1", "win-2", errors=dict.fromkeys(("win-1", "win-2"), error), labels=MARKED)
    hosts = {name: {**read(), "kubewin_nodes": nodes} for name in ("win-1", "win-2")}
    found = build_results(list(hosts), hosts)
    assert [host.describe_csi_proxy() for host in found] == [{"node": name, "reason": error} for name in hosts]
    row = summarize(RunFacts(hosts=found)).nodes[0]
    assert (row.node, row.verdict, row.why) == ("win-1", "not checked", error)


def test_a_host_without_a_driver_that_needs_csi_proxy_is_settled_without_it() -> None:
    bare = match("win-1", matched={"a": "win-1"})
    assert not result({**read(), "kubewin_nodes": bare}).is_settled
    assert result({**read(needed=False), "kubewin_nodes": bare}).is_settled
    cordoned = match("win-1", matched={"a": "win-1"}, cordoned_for="csi-proxy is being replaced")
    assert not result({**read(needed=False), "kubewin_nodes": cordoned}).is_settled


def test_a_changed_host_is_read_after_the_change() -> None:
    after = {**STATE, "serving": False}
    changed = {"changed": True, "csi_proxy": after, "plan": [{"description": "start the service"}]}
    own = {**read(), "csi_proxy_result": changed}
    assert result(own).describe_csi_proxy()["serving"] is False
    assert result(own).changes == ["start the service"]
    assert not result(read()).changes


def test_a_run_that_restored_its_node_alone_says_so() -> None:
    restored = {"changed": True, "csi_proxy": STATE, "plan": []}
    (change,) = result({**read(), "csi_proxy_result": restored}).changes
    assert change.startswith("restore the label kubewin.io/csi-proxy of its Node, and uncordon the Node")


def test_a_host_that_was_not_read_is_not_called_absent() -> None:
    (host,) = results(b={"csi_proxy_plan": LOST, "kubewin_nodes": NODES})
    assert (host.node, host.state, host.left_out) == ("b", None, "a: the connection was lost")
    assert summarize(RunFacts(hosts=[host])).nodes[0].csi_proxy == "not read"


def test_a_skipped_task_has_no_result() -> None:
    own = {**read(), "csi_proxy_result": {"changed": False, "skipped": True}}
    assert result(own).describe_csi_proxy()["serving"] is True


def at(second: int, **more: Any) -> dict[str, Any]:
    return {"csi_proxy": {**STATE, "observed_at": f"2026-01-01T00:00:{second:02}Z"}, **more}


def test_of_two_playbooks_in_one_run_the_later_result_counts() -> None:
    stopped = {"csi_proxy": {**STATE, "observed_at": "2026-01-01T00:00:09Z", "serving": False}}
    changed = at(5, changed=True, plan=[{"description": "start the service"}])
    own = {"csi_proxy_plan": stopped, "csi_proxy_result": changed, "kubewin_nodes": NODES}
    host = result(own)
    assert (host.state and host.state.serving, host.change, host.changes) == (False, None, ())
    assert result({**own, "csi_proxy_plan": at(3)}).latest == CsiProxyResult.from_result(changed)


def test_a_later_failure_is_not_replaced_by_an_older_result() -> None:
    lost = CsiProxyResult.from_result(LOST)
    assert result({"csi_proxy_plan": LOST, "csi_proxy_result": at(5)}).latest == lost
    assert result({"csi_proxy_plan": at(5), "csi_proxy_result": LOST}).latest == lost
    assert not result({}).has_result


def test_a_host_is_settled_when_nothing_of_it_may_be_changed() -> None:
    assert result(read()).is_settled
    assert not result(read(plan=[{"step": "start", "description": "start the service"}])).is_settled
    assert not result({}).is_settled
    unmarked: dict[str, Any] = {"labels": {}}
    for facts in (unmarked, {"labels": MARKED, "cordoned_for": "csi-proxy is being replaced"}):
        own = {**read(), "kubewin_nodes": match("win-1", matched={"a": "win-1"}, **facts)}
        assert not result(own).is_settled


def test_a_host_of_the_play_without_a_result_counts_as_lost_and_other_hosts_do_not_count() -> None:
    hosts = {"a": read(), "lost": {}, "localhost": {}}
    variables = {
        "kubewin_inputs": {"windows": ["a", "lost", "limited"]},
        "ansible_play_hosts_all": ["a", "lost", "localhost"],
        "hostvars": UntemplatedHostVars(hosts),
    }
    found = read_hosts(variables)
    assert [(host.name, host.error) for host in found] == [("a", ""), ("lost", "it could not be read")]
    assert [host.is_settled for host in found] == [True, False]
    assert read_hosts({}) == []


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
    (found,) = read_hosts(variables)
    assert found.claimed_node == "a.example.com"


def test_hosts_of_several_batches_are_each_the_node_that_their_own_batch_matched() -> None:
    of_batches: dict[str, dict[str, Any]] = {
        name: {**read(), "kubewin_nodes": match("win-1", "win-2", matched={name: node}, labels=MARKED)}
        for name, node in (("one.example.com", "win-1"), ("two.example.com", "win-2"))
    }
    assert [host.node for host in build_results(list(of_batches), of_batches)] == ["win-1", "win-2"]
    # A host that no batch had, as one that could not be reached.
    named = {**of_batches, "win-2": {"csi_proxy_plan": LOST}}
    assert [host.node for host in build_results(list(named), named)] == ["win-1", "win-2", "win-2"]


def test_a_host_that_cannot_mount_the_next_volume_is_reported_beside_proven_volumes() -> None:
    stopped = {**STATE, "service": {"name": "csi-proxy", "state": "stopped"}, "serving": False}
    blocked = {**STATE, "findings": [{**NOTE, "severity": "blocker", "message": "SAN policy"}]}
    hosts = results(a=read(), b=read(csi_proxy=stopped), c=read(csi_proxy=blocked), d={"csi_proxy_plan": LOST})
    well, down, wrong, lost = map(list_doubts, hosts)
    assert (well, wrong, lost) == ([], ["c: SAN policy"], [])
    assert down[0].startswith("b: csi-proxy is stopped and does not serve. The next mount of a volume fails")
    assert list_unread(hosts) == ["d: a: the connection was lost"]


def test_gathered_rows_name_each_host_that_was_not_read() -> None:
    part = {"path": "service.txt", "bytes": 5, "problem": ""}
    hosts = results(
        a=read(evidence={"parts": [part], "problem": "interrupted"}),
        b={"csi_proxy_plan": LOST, "kubewin_inputs": {"skip_unreachable": True}},
        c=read(),
    )
    found = [describe_host(host) for host in hosts]
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
            # Uncordoned with kubectl, which leaves the annotation.
            "win-4": {**ours, "unschedulable": False, "labels": {}},
        }
    )
    assert lines == [
        "Node win-1 is cordoned (csi-proxy is being replaced) and lacks the label kubewin.io/csi-proxy, by a run that was "
        "interrupted or still works there. The next run that succeeds restores it.",
        "Node win-2 is cordoned (csi-proxy is being replaced), by a run that was interrupted or still works there. The next "
        "run that succeeds restores it.",
    ]
