"""The closing summary reports every node's facts and never calls an unread node green."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import HostResult, build_result
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.results import GateReport, NodeMatch, ObjectChanges
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.summary import (
    RunFacts,
    RunSummary,
    brief,
    has_remaining_work,
    read_facts,
    render_ending,
    render_summary,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.summary import summarize as summarize_facts
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateProblem, NodeEvaluation
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.model import CsiProxyState
from unit.operations import is_linear
from unit.plugins.hostvars import STATE, HostVars, match

SERVING: dict[str, Any] = {**STATE, "findings": []}
UNREAD = GateProblem("CSI-G40", "unproven", "the host was not read", "read it")
GONE = GateProblem("CSI-G42", "red", "the pipe is gone", "enable_csi")
OLDER = GateProblem("CSI-G14", "waiting", "pod vsphere-1 still runs an older template", "delete it")


def summarize(
    hosts: Sequence[HostResult],
    gates: Mapping[str, GateReport],
    nodes_without_host: Sequence[str],
    driver_changes: Sequence[ObjectChanges] = (),
    warnings: Sequence[Finding] = (),
    failure: str = "",
) -> RunSummary:
    return summarize_facts(RunFacts(hosts, gates, nodes_without_host, {}, driver_changes, warnings), failure)


def host(node: str, state: dict[str, Any] | None = SERVING, left_out: str = "", **change: Any) -> HostResult:
    """A host; without a state it has the reason."""
    name = f"{node}.example.com"
    plan = {"csi_proxy": state, "plan": []} if state else {"msg": left_out, "reason": "connection_lost"}
    variables = {"csi_proxy_plan": plan, "kubewin_node_name": node}
    variables |= {"csi_proxy_result": {"csi_proxy": state, **change}} if change else {}
    matched = {name: node} if state else {}
    return build_result(name, variables, NodeMatch.from_result(match(node, matched=matched)))


def gate(**problems: GateProblem | None) -> GateReport:
    nodes = [
        NodeEvaluation(name.replace("_", "-"), "plugin", () if problem is None else (problem,))
        for name, problem in problems.items()
    ]
    return GateReport("green", nodes)


def test_every_node_green_makes_the_run_green() -> None:
    summary = summarize([host("win-1"), host("win-2")], {"vsphere": gate(win_1=None, win_2=None)}, [])
    assert summary.verdict == "green"
    assert "2 of 2 Windows nodes can take CSI volumes now" in render_summary(summary)
    assert "1.3.0 running, serving" in render_summary(summary)


def test_the_worst_driver_decides_for_a_node() -> None:
    summary = summarize([host("win-1")], {"vsphere": gate(win_1=None), "smb": gate(win_1=GONE)}, [])
    assert summary.nodes[0].verdict == "red"
    assert "the pipe is gone" in summary.nodes[0].why


def test_a_node_names_the_problems_of_each_of_several_drivers() -> None:
    gates = {"vsphere": gate(win_1=None, win_2=None), "smb": gate(win_1=GONE, win_2=None)}
    summary = summarize([host("win-1"), host("win-2")], gates, [])
    assert "1 of 2 Windows nodes can take CSI volumes now\n" in render_summary(summary)
    assert summary.nodes[0].why == "vsphere registered, pod Ready; smb: CSI-G42 the pipe is gone"


def test_a_driver_that_places_no_pod_on_a_node_does_not_decide_there() -> None:
    elsewhere = replace(gate(win_2=None), skipped_nodes=[("win-1", "no plugin pod: its selector")])
    hosts = [host("win-1"), host("win-2")]
    summary = summarize(hosts, {"vsphere": gate(win_1=None, win_2=None), "smb": elsewhere}, [])
    assert summary.verdict == "green"
    assert summary.nodes[0].why == "vsphere registered, pod Ready"


def test_a_driver_that_may_not_be_read_makes_no_node_green_and_none_broken() -> None:
    closed = GateReport("unproven", not_read="it may not list pods")
    summary = summarize([host("win-1")], {"vsphere": gate(win_1=None), "smb": closed}, [])
    assert [row.verdict for row in summary.nodes] == ["unproven"]
    text = render_summary(summary)
    assert "\n1 Windows node was not read\n" in text
    assert "smb was not read: it may not list pods" in summary.nodes[0].why
    assert "can take" not in text


def test_nodes_that_were_not_read_are_not_counted_as_unable() -> None:
    text = render_summary(summarize([], {"vsphere": gate(win_1=UNREAD, win_2=UNREAD)}, []))
    assert "\n2 Windows nodes were not read\n" in text
    assert "0 of" not in text
    some = render_summary(summarize([], {"vsphere": gate(win_1=None, win_2=UNREAD)}, []))
    assert "1 of 1 Windows nodes can take CSI volumes now; 1 Windows node was not read" in some


def test_a_node_whose_plugin_pod_has_an_older_template_takes_volumes() -> None:
    summary = summarize([host("win-1")], {"vsphere": gate(win_1=OLDER)}, [])
    assert summary.verdict == "outdated"
    text = render_summary(summary)
    assert "1 of 1 Windows nodes can take CSI volumes now" in text
    assert "outdated: win-1 (the plugin pod works, and has an older template)" in text
    broken = GateReport("red", [NodeEvaluation("win-1", "plugin", (OLDER, GONE))])
    assert summarize([host("win-1")], {"vsphere": broken}, []).verdict == "red"


def test_a_driver_that_is_not_deployed_yet_leaves_no_node_green() -> None:
    """The facts of enable_csi --check with a new driver."""
    new = GateReport("red", is_deployed=False)
    beside = summarize([host("win-1")], {"vsphere": gate(win_1=None), "smb": new}, [])
    assert (beside.verdict, beside.nodes[0].why) == (
        "waiting",
        "smb not deployed; vsphere registered, pod Ready",
    )
    assert "0 of 1 Windows nodes can take CSI volumes now" in render_summary(beside)
    alone = summarize([host("win-1"), host("win-2", None, left_out="not reached")], {"smb": new}, [])
    assert [(row.verdict, row.why) for row in alone.nodes] == [
        ("waiting", "smb not deployed"),
        ("not checked", "not reached"),
    ]


def test_a_node_without_a_host_and_a_host_left_out_are_listed_with_the_reason_and_are_not_green() -> None:
    summary = summarize(
        [host("win-1"), host("win-2", None, left_out="cannot be reached, left out by kubewin_skip_unreachable")],
        {"vsphere": gate(win_1=None)},
        ["win-4"],
    )
    rows = {row.node: row for row in summary.nodes}
    assert "not checked: win-2\n" in render_summary(summary) + "\n"
    assert "Nodes without a host in this run: win-4\n" in render_summary(summary)
    assert "1 of 1 Windows nodes can take CSI volumes now; 2 others were not checked" in render_summary(summary)
    one = summarize([host("win-1")], {"vsphere": gate(win_1=None)}, ["win-4"])
    assert "can take CSI volumes now; 1 other was not checked" in render_summary(one)
    assert "no Windows node was checked" in render_summary(summarize([], {}, ["win-1"]))
    assert rows["win-2"].why == "cannot be reached, left out by kubewin_skip_unreachable"
    assert "none of the hosts read" in rows["win-4"].why
    assert summary.verdict == "not checked"


def test_a_slice_shows_its_own_hosts_and_counts_the_others() -> None:
    others = [f"win-{number}" for number in range(3, 203)]
    summary = summarize([host("win-1"), host("win-2")], {"vsphere": gate(win_1=None, win_2=None)}, others)
    assert summary.verdict == "green"
    text = render_summary(summary)
    assert "2 of 2 Windows nodes can take CSI volumes now; 200 others were not checked" in text
    assert "and 195 more" in text
    assert len(text.splitlines()) < 12
    assert {row.node for row in summary.nodes} == {"win-1", "win-2", *others}


def test_a_csi_proxy_that_a_pod_runs_is_not_called_absent() -> None:
    observed = {**SERVING, "service": None, "managed_by": "host-process"}
    summary = summarize([host("win-1", observed)], {"vsphere": gate(win_1=None)}, [])
    assert summary.nodes[0].csi_proxy == "serving (managed by host-process)"


def test_without_windows_hosts_the_gate_alone_speaks() -> None:
    summary = summarize([], {"vsphere": gate(win_1=UNREAD)}, [])
    assert [(row.node, row.csi_proxy, row.verdict) for row in summary.nodes] == [("win-1", "not read", "unproven")]


def test_findings_keep_their_host_and_remedy() -> None:
    finding = {
        "id": "CSI-H04",
        "severity": "warning",
        "object": "host WIN-1",
        "message": "defragsvc is disabled",
        "remedy": "sc config defragsvc start= demand",
    }
    observed = {**SERVING, "findings": [finding]}
    summary = summarize(
        [host("win-1", observed), host("win-2", observed)], {"vsphere": gate(win_1=None, win_2=None)}, []
    )
    text = render_summary(summary)
    assert text.count("CSI-H04") == 1
    assert "warning CSI-H04 on win-1.example.com, win-2.example.com: defragsvc is disabled" in text
    assert "remedy: sc config defragsvc start= demand" in text


def test_changes_are_reported_with_their_object_and_equal_changes_once() -> None:
    steps = [{"description": "install csi-proxy 1.3.0"}, {"description": "start the service"}]
    changed: dict[str, Any] = {"changed": True, "plan": steps}
    objects = [
        {"action": "create", "kind": "DaemonSet", "namespace": "smb", "name": "csi-smb-node-win"},
        {"action": "none", "kind": "Namespace", "namespace": None, "name": "smb"},
    ]
    hosts = [host("win-1", **changed), host("win-2", **changed), host("win-3")]
    smb = ObjectChanges.from_driver({"driver": "smb", "objects": objects, "roll": {"replaced": ["win-1"]}})
    summary = summarize(hosts, {}, [], [smb])
    text = render_summary(summary)
    assert (
        "Changed:\n  win-1.example.com, win-2.example.com:\n    install csi-proxy 1.3.0\n    start the service\n"
        in text
    )
    assert "  smb:\n    create DaemonSet smb/csi-smb-node-win\n    replace the plugin pods on win-1\n" in text
    assert "Would be changed:" in render_summary(summary, check=True)
    nothing = summarize([host("win-1")], {}, [])
    assert "Nothing was changed." in render_summary(nothing)
    assert "Nothing would be changed." in render_summary(nothing, check=True)


def test_the_end_is_why_the_run_failed_and_the_next_command_on_a_line_of_its_own() -> None:
    why = "win-2: csi-proxy is stopped -> kubectl -n vmware-system-csi describe pod vsphere-csi-node-windows-x7kqp and then look at its host"
    command = "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
    summary = summarize([host("win-2")], {"vsphere": gate(win_2=GONE)}, [], failure=why)
    lines = render_summary(summary, render_ending(why, [command])).splitlines()
    assert lines[-2:] == ["Next:", f"  {command}"]
    assert "The run failed:" in lines
    assert "  win-2: csi-proxy is stopped" in lines


@pytest.mark.parametrize("failure", ["", "the gate found win-1 red"])
@pytest.mark.parametrize("hosts", [[host("win-1")], []], ids=["hosts", "cluster only"])
def test_warnings_of_the_plan_are_repeated_at_the_end(hosts: list[HostResult], failure: str) -> None:
    remedy = "install the driver first"
    missing = {
        "severity": "warning",
        "id": "CSI-D30",
        "object": "SMB controller",
        "message": "no Deployment",
        "remedy": remedy,
    }
    note = {**missing, "severity": "note", "id": "CSI-D53"}
    plan = {
        "driver": "smb",
        "title": "SMB",
        "pipes": [],
        "unselected_nodes": [],
        "findings": [missing, note, {**missing, "object": "Other"}],
    }
    planned = {"kubewin_plans": {"results": [{"driver_plan": plan, "definition": ""}, {"skipped": True}]}}
    warnings = read_facts(planned).warnings
    summary = summarize(hosts, {"smb": gate(win_1=None)}, [], failure=failure, warnings=warnings)
    assert [(one["id"], one["host"]) for one in summary.as_dict()["findings"]] == [("CSI-D30", None)] * 2
    for check in (True, False):
        text = render_summary(summary, check=check)
        assert f"warning CSI-D30 SMB controller: no Deployment\n  remedy: {remedy}" in text
        assert "warning CSI-D30 Other: no Deployment" in text
        assert "CSI-D53" not in text


def test_one_host_is_a_few_lines_with_what_is_to_be_done() -> None:
    warning = {
        "id": "CSI-N04",
        "severity": "warning",
        "object": "host WIN-1",
        "message": "defragsvc is disabled",
        "remedy": "sc.exe config defragsvc start= demand",
    }
    note = {**warning, "id": "CSI-N13", "severity": "note", "message": "names may not resolve"}
    drift = [{"item": "start_mode", "found": "manual", "expected": "auto"}]
    observed = {
        **SERVING,
        "serving": False,
        "missing_pipes": ["csi-proxy-disk-v1"],
        "drift": drift,
        "findings": [warning, note],
    }
    assert brief(CsiProxyState.from_result(observed)) == [
        "csi-proxy 1.3.0 running, 1 pipe missing",
        "missing pipes: csi-proxy-disk-v1",
        "start_mode: found manual, expected auto",
        "warning CSI-N04: defragsvc is disabled -> sc.exe config defragsvc start= demand",
        "note CSI-N13: names may not resolve",
    ]


def test_a_stopped_service_is_not_said_to_lack_no_pipes() -> None:
    stopped = {**SERVING, "service": {**SERVING["service"], "state": "stopped"}, "serving": False, "missing_pipes": []}
    assert brief(CsiProxyState.from_result(stopped))[0] == "csi-proxy 1.3.0 stopped, not serving"


def test_a_failure_that_a_task_printed_is_not_printed_again() -> None:
    lines = render_ending("win-2: csi-proxy is stopped", ["again"], "see the message of the task 'Wait' above.")
    assert lines == ["", "The run failed: see the message of the task 'Wait' above.", "", "Next:", "  again"]


def test_the_command_of_a_failed_run_follows_the_repair() -> None:
    assert render_ending("win-2: csi-proxy is stopped", ["again"], repeats=True)[-2:] == [
        "Next, when that is fixed:",
        "  again",
    ]
    assert render_ending("", ["again"], repeats=True) == ["", "Next:", "  again"]


CHANGED = host("win-1", changed=True, plan=[{"description": "start the service"}])
APPLIED = ObjectChanges("smb", ["create DaemonSet smb/csi-smb-node-win"])


@pytest.mark.parametrize(
    ("check", "facts", "accept_unproven", "expected"),
    [
        (True, {}, False, False),
        (True, {"hosts": [CHANGED]}, False, True),
        (False, {"hosts": [CHANGED]}, False, False),
        (True, {"driver_changes": [APPLIED]}, False, True),
        (False, {"driver_changes": [APPLIED]}, False, False),
        (True, {"gates": {"vsphere": GateReport("waiting")}}, False, True),
        (True, {"gates": {"vsphere": GateReport("unproven")}}, False, True),
        (True, {"gates": {"vsphere": GateReport("unproven")}}, True, False),
        (True, {"gates": {"vsphere": GateReport("unproven")}, "hosts": []}, False, False),
    ],
)
def test_enable_csi_is_followed_by_itself_only_while_it_has_something_to_do(
    check: bool, facts: dict[str, Any], accept_unproven: bool, expected: bool
) -> None:
    assert has_remaining_work(RunFacts(**{"hosts": [host("win-1")], **facts}), accept_unproven, check=check) is expected


@pytest.mark.parametrize("read", [True, False], ids=["read", "unreachable"])
def test_the_work_for_each_host_does_not_grow_with_their_number(read: bool) -> None:
    def summarize_run(count: int) -> None:
        nodes = [f"win-{number}" for number in range(count)]
        hosts = {f"{node}.example.com": node for node in nodes}
        plan = {"csi_proxy": SERVING, "plan": []} if read else {"msg": "no route", "reason": "connection_lost"}
        # Registered by a task that ran once for all hosts.
        registered = match(*nodes, matched=hosts if read else {})
        gates = [
            {"item": "smb", "gate": {"verdict": "green", "nodes": [{"node": node, "problems": []} for node in nodes]}}
        ]
        facts = read_facts(
            {
                "kubewin_inputs": {"windows": list(hosts)},
                "ansible_play_hosts_all": list(hosts),
                "hostvars": HostVars({host: {"csi_proxy_plan": plan, "kubewin_nodes": registered} for host in hosts}),
                "kubewin_nodes": registered,
                "kubewin_gates": {"results": gates},
            }
        )
        summary = summarize_facts(facts)
        assert len(summary.nodes) == (count if read else 2 * count)
        render_summary(summary)

    assert is_linear(summarize_run)
