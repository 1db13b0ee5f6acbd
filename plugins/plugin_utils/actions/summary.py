# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run did, what it left on every node, what is wrong, and what to do next, as data and as text. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Finding
from ..base.grouped import group_values
from ..base.stored import serialize
from ..base.table import render_table, wrap
from ..drivers.rollout.evaluate import NodeEvaluation
from ..preflight.render.text_format import format_list
from ..windows.model import CsiProxyState
from .host_results import HostResult, read_hosts, read_plans
from .results import GateReport, NodeMatch, ObjectChanges

# The worst verdict a node has with any of its drivers is the node's.
_ORDER = ("red", "waiting", "unproven", "not checked", "outdated", "green")
# Keys that are kept of the evaluation of volumes.
_READINESS = ("verdict", "counts", "taken_at", "unread", "table")
_MEANS = {
    "unproven": " (registered; csi-proxy and its pipes, or a driver, were not read)",
    "outdated": " (the plugin pod works, and has an older template)",
}
# What a node may lack that takes volumes all the same: its pod has not been replaced yet.
_OLDER_TEMPLATE = "CSI-G14"
# What was not read is neither able nor unable to take volumes.
_SHOWN = {"unproven": "not read"}
_WIDTH = 120


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run found and did.

    gates: by driver. nodes: the Windows Nodes of the cluster, none without hosts. readiness: what preflight_info returned for this run, if it
    was asked. driver_changes: of the objects of drivers. warnings: of the drivers' plans.
    """

    hosts: Sequence[HostResult] = ()
    gates: Mapping[str, GateReport] = field(default_factory=dict)
    nodes: Sequence[str] = ()
    readiness: Mapping[str, Any] = field(default_factory=dict)
    driver_changes: Sequence[ObjectChanges] = ()
    warnings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One Node, one host, or both."""

    node: str | None
    host: str | None
    csi_proxy: str
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run leaves. verdict: green only if every Node with a host in this run is. findings: each with its host, None for one of a plan.

    readiness: None if it was not evaluated. failure: why the run failed, empty if it did not.
    """

    verdict: str
    nodes: Sequence[NodeRow]
    changes: Sequence[ObjectChanges]
    findings: Sequence[tuple[Finding, str | None]]
    readiness: Mapping[str, Any] | None
    failure: str

    def as_dict(self) -> dict[str, Any]:
        findings = [{**serialize(finding), "host": host} for finding, host in self.findings]
        return {**serialize(self), "findings": findings}


def read_facts(task_vars: Mapping[str, Any]) -> RunFacts:
    """What the tasks of a playbook registered, for its summary."""
    hosts = read_hosts(task_vars)
    gates = (task_vars.get("kubewin_gates") or {}).get("results") or ()
    nodes = NodeMatch.from_result(task_vars.get("kubewin_nodes")).nodes
    applied = map(ObjectChanges.from_driver, (task_vars.get("kubewin_applied") or {}).get("results") or ())
    return RunFacts(
        hosts=hosts,
        gates={str(result["item"]): GateReport.from_result(result["gate"]) for result in gates if "gate" in result},
        # Without Windows hosts, only the gate reports the nodes.
        nodes=list(nodes) if hosts else [],
        readiness=task_vars.get("kubewin_readiness") or {},
        driver_changes=[driver for driver in applied if driver.changes],
        warnings=[
            finding for plan in read_plans(task_vars) for finding in plan.findings if finding.severity == "warning"
        ],
    )


def has_remaining_work(facts: RunFacts, accept_unproven: bool, *, check: bool) -> bool:
    """Whether a run has something to do: a Node is not green, or in check mode something would be changed."""
    accepted = {"green", "unproven"} if accept_unproven or not facts.hosts else {"green"}
    verdicts = {gate.verdict for gate in facts.gates.values()}
    return bool(check and list_changes(facts)) or not verdicts <= accepted


def list_changes(facts: RunFacts) -> list[ObjectChanges]:
    """What the run changed, or in check mode would change."""
    return [*(ObjectChanges(host.name, host.changes) for host in facts.hosts if host.changes), *facts.driver_changes]


def describe_unread_hosts(facts: RunFacts) -> str:
    """Why a run that read none of its hosts failed, empty if it read one or has none."""
    if not facts.hosts or not all(host.left_out for host in facts.hosts):
        return ""
    return f"{format_list([host.name for host in facts.hosts])}: not read, expected at least one Windows host that can be read."


def summarize(facts: RunFacts, failure: str = "") -> RunSummary:
    """Combine the facts of the hosts, the gate's verdicts and the changes. failure: why the run failed."""
    hosts, gates, readiness = facts.hosts, facts.gates, facts.readiness
    node_verdicts = _evaluate_nodes(gates, [host.node for host in hosts if host.node])
    rows = [_build_row(host, gates, node_verdicts) for host in hosts]
    why = "none of the hosts read is this Node"
    with_host = {row.node for row in rows}
    unread = {name: ("not checked", why) for name in facts.nodes if name not in with_host}
    if not rows and not unread:
        # The platform installs csi-proxy, or the mode needs none: no host was read, and the gate reports that.
        unread = node_verdicts
    rows += [NodeRow(name, None, "not read", verdict, why) for name, (verdict, why) in unread.items()]
    rows.sort(key=lambda row: (row.node is None, row.node or "", row.host or ""))
    # The Nodes of other slices have no host here.
    host_rows = [row for row in rows if row.host] or rows
    return RunSummary(
        verdict=_find_worst(row.verdict for row in host_rows),
        nodes=rows,
        changes=list_changes(facts),
        findings=[
            *((finding, host.name) for host in hosts if host.state for finding in host.state.findings),
            *((finding, None) for finding in facts.warnings),
        ],
        readiness={key: readiness[key] for key in _READINESS} if "table" in readiness else None,
        failure=failure,
    )


def render_summary(summary: RunSummary, ended: Sequence[str] = (), *, check: bool = False) -> str:
    """The closing text: a line for each host, the changes, what was noticed, the verdict in words, and the last lines (ended).

    check: whether changes were only announced.
    """
    nodes = summary.nodes
    # A slice of an AWX job has few of a cluster's hosts. Without any host, each node has its reason.
    has_hosts = any(row.host for row in nodes)
    elsewhere: list[NodeRow] = []
    host_rows: list[NodeRow] = []
    for row in nodes:
        (elsewhere if has_hosts and row.host is None and row.verdict == "not checked" else host_rows).append(row)
    table = render_table(
        ("NODE", "HOST", "CSI-PROXY", "VERDICT", "WHY"),
        [
            [row.node or "-", row.host or "-", row.csi_proxy, _SHOWN.get(row.verdict, row.verdict), row.why]
            for row in host_rows
        ],
    )
    lines = [table] if host_rows else []
    if elsewhere:
        names = format_list([str(row.node) for row in elsewhere])
        lines += ["", f"Nodes without a host in this run: {names}"]
    lines += ["", *_render_changes(summary.changes, check=check)]
    finding_hosts = _group_findings(summary.findings)
    lines += [""] if finding_hosts else []
    for finding, hosts in finding_hosts:
        # A plan's finding is about an object of the cluster.
        subject = f"on {', '.join(hosts)}" if hosts else finding.object
        lines.append(f"{finding.severity} {finding.id} {subject}: {finding.message}")
        # A note asks for nothing; its remedy is on the page of findings, and in the result.
        if finding.severity != "note":
            lines.append(f"  remedy: {finding.remedy}")
    if summary.readiness:
        first, *further_lines = summary.readiness["table"]
        lines += ["", f"Volumes, checked before the first change: {first}", *(f"  {line}" for line in further_lines)]
    # A node that this run did not evaluate is neither: --limit, a slice or an unreachable host leave it to another run.
    node_rows = [row for row in nodes if row.node]
    checked = [row for row in node_rows if row.verdict != "not checked"]
    evaluated = [row for row in checked if row.verdict != "unproven"]
    able = sum(row.verdict in ("green", "outdated") for row in evaluated)
    unread = len(checked) - len(evaluated)
    count = f"{able} of {len(evaluated)} Windows nodes can take CSI volumes now" if evaluated else ""
    parts = [count or ("" if unread else "no Windows node was checked")]
    parts += [f"{unread} Windows {'node was' if unread == 1 else 'nodes were'} not read"] if unread else []
    others = len(node_rows) - len(checked)
    parts += [f"{'1 other was' if others == 1 else f'{others} others were'} not checked"] if checked and others else []
    lines += ["", "; ".join(filter(None, parts))]
    for verdict in _ORDER:
        named = [str(row.node or row.host) for row in host_rows if row.verdict == verdict]
        if named and verdict != "green":
            lines.append(f"{_SHOWN.get(verdict, verdict)}: {', '.join(named)}{_MEANS.get(verdict, '')}")
    return "\n".join([*lines, *ended])


def render_ending(failure: str, commands: Sequence[str], place: str = "", *, repeats: bool = False) -> list[str]:
    """The last lines of every playbook: what is wrong, and the next commands.

    place: where that is on the screen already. repeats: whether a command is that of the failed run.
    """
    lines = []
    if failure:
        lines += ["", f"The run failed: {place}" if place else "The run failed:"]
        text = "" if place else failure
        lines += [f"  {line}" for paragraph in text.splitlines() for line in wrap(paragraph, _WIDTH - 2)]
    heading = "Next, when that is fixed:" if failure and repeats else "Next:"
    lines += ["", heading, *(f"  {words}" for words in commands)] if commands else []
    return lines


def _render_changes(changes: Sequence[ObjectChanges], *, check: bool) -> list[str]:
    if not changes:
        return ["Nothing would be changed." if check else "Nothing was changed."]
    lines = ["Would be changed:" if check else "Changed:"]
    for done, objects in group_values((tuple(entry.changes), entry.object) for entry in changes).items():
        lines += [f"  {', '.join(objects)}:", *(f"    {change}" for change in done)]
    return lines


def _group_findings(findings: Iterable[tuple[Finding, str | None]]) -> list[tuple[Finding, list[str]]]:
    """Each finding once, with every host that has it."""
    groups: dict[tuple[str, ...], tuple[Finding, list[str]]] = {}
    for finding, host in findings:
        key = (finding.id, finding.message, finding.remedy, "" if host else finding.object)
        hosts = groups.setdefault(key, (finding, []))[1]
        hosts += [host] if host else []
    return list(groups.values())


def _build_row(
    host: HostResult, gates: Mapping[str, GateReport], node_verdicts: Mapping[str, tuple[str, str]]
) -> NodeRow:
    unchecked = "the gate did not check this Node" if gates else "the cluster has no driver"
    verdict, why = node_verdicts.get(host.node, ("not checked", unchecked))
    # As in check mode, before the first run with a driver.
    absent = [driver for driver, gate in gates.items() if not gate.is_deployed]
    if unusable := host.left_out or host.unmatched:
        verdict, why = "not checked", unusable
    elif absent and host.node:
        missing = f"{', '.join(absent)} not deployed"
        why = f"{missing}; {why}" if host.node in node_verdicts else missing
        verdict = _find_worst(["waiting", verdict]) if host.node in node_verdicts else "waiting"
    return NodeRow(host.node or None, host.name, _describe_csi_proxy(host.state), verdict, why)


def _describe_csi_proxy(state: CsiProxyState | None) -> str:
    if state is None:
        return "not read"
    if not state.service:
        return f"serving (managed by {state.managed_by})" if state.serving else "absent"
    missing = len(state.missing_pipes)
    pipes = f"{missing} pipe{'s' if missing > 1 else ''} missing" if missing else "not serving"
    pipes = "serving" if state.serving else pipes
    managed = "" if state.managed_by in ("kubewin", "adopted") else f" (managed by {state.managed_by})"
    return f"{state.release or 'unknown release'} {state.service.state.lower()}, {pipes}{managed}"


def brief(state: CsiProxyState) -> list[str]:
    """One host in a few lines: csi-proxy and its pipes, drift, and the findings that ask for something."""
    lines = [f"csi-proxy {_describe_csi_proxy(state)}"]
    lines += [f"missing pipes: {', '.join(state.missing_pipes)}"] if state.missing_pipes else []
    lines += [f"{drift.item}: found {drift.found}, expected {drift.expected}" for drift in state.drift]
    for finding in state.findings:
        line = f"{finding.severity} {finding.id}: {finding.message}"
        lines.append(line if finding.severity == "note" else f"{line} -> {finding.remedy}")
    return lines


def _evaluate_nodes(gates: Mapping[str, GateReport], hosts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Verdict and reason of each node with all drivers. hosts: names of the hosts' Nodes."""
    verdicts: dict[str, list[tuple[str, str]]] = {}
    unchecked_verdicts: dict[str, list[tuple[str, str]]] = {}
    several = len(gates) > 1
    for driver, gate in gates.items():
        for node in gate.nodes:
            problems = "; ".join(problem.text for problem in node.problems)
            named = f"{driver}: {problems}" if several else problems
            why = named if problems else "; ".join([f"{driver} registered, pod Ready", *node.notes])
            verdicts.setdefault(node.node, []).append((_name_verdict(node), why))
        for name, reason in gate.skipped_nodes:
            unchecked_verdicts.setdefault(name, []).append(("not checked", reason))
    # A driver that places no pod on a node says nothing about it where another one does.
    verdicts = {**unchecked_verdicts, **verdicts}
    for driver, gate in gates.items():
        for name in {*verdicts, *hosts} if gate.not_read else ():
            verdicts.setdefault(name, []).append(("unproven", f"{driver} was not read: {gate.not_read}"))
    return {
        name: (
            _find_worst(verdict for verdict, _why in node_verdicts),
            "; ".join(dict.fromkeys(why for _verdict, why in node_verdicts)),
        )
        for name, node_verdicts in verdicts.items()
    }


def _name_verdict(node: NodeEvaluation) -> str:
    return "outdated" if {problem.id for problem in node.problems} == {_OLDER_TEMPLATE} else node.verdict


def _find_worst(verdicts: Iterable[str]) -> str:
    return min(verdicts, key=_ORDER.index, default="not checked")
