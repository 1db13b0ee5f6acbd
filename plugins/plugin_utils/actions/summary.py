# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run did, what it left on every node, what is wrong, and what to do next, as data and as text. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.table import render_table, wrap
from ..drivers.rollout.gate_report import describe_problem
from ..preflight.render.text_format import format_list

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

    hosts: {name, node, left_out, unmatched, csi_proxy, changed} with csi_proxy as csi_proxy_info returns it, or None if it was not read.
    gates: by driver, RV(gate) of gate. readiness: what preflight_info returned for this run, if it was asked.
    applied: results of driver_apply. warnings: findings of the drivers' plans.
    """

    hosts: Sequence[Mapping[str, Any]] = ()
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    nodes_without_host: Sequence[str] = ()
    readiness: Mapping[str, Any] = field(default_factory=dict)
    applied: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[Mapping[str, Any]] = ()
    accepts_unproven: bool = False


def has_remaining_work(facts: RunFacts, accept_unproven: bool, *, check: bool) -> bool:
    """Whether a run has something to do: a Node is not green, or in check mode something would be changed."""
    accepted = ("green", "unproven") if accept_unproven or facts.accepts_unproven else ("green",)
    changes = [host for host in facts.hosts if host["changed"]] + [
        done for done in facts.applied if done.get("changed")
    ]
    verdicts = {gate["verdict"] for gate in facts.gates.values()}
    return bool(check and changes) or not verdicts <= set(accepted)


def describe_unread_hosts(facts: RunFacts) -> str:
    """Why a run that read none of its hosts failed, empty if it read one or has none."""
    if not facts.hosts or not all(host["left_out"] for host in facts.hosts):
        return ""
    return f"{format_list([host['name'] for host in facts.hosts])}: not read, expected at least one Windows host that can be read."


def summarize(facts: RunFacts, failure: str = "") -> dict[str, Any]:
    """Combine the facts of the hosts, the gate's verdicts and the changes. failure: why the run failed.

    Returns {verdict, nodes: [{node, host, csi_proxy, verdict, why}], changes: [{object, changes}], findings, readiness, failure}; the
    verdict is green only if every Node with a host in this run is.
    """
    hosts, gates, readiness = facts.hosts, facts.gates, facts.readiness
    node_verdicts = _evaluate_nodes(gates, [str(host["node"]) for host in hosts if host.get("node")])
    rows = [_build_row(host, gates, node_verdicts) for host in hosts]
    why = "none of the hosts read is this Node; it gets a plugin pod only after its pipes are checked"
    with_host = {row["node"] for row in rows}
    unread = {name: ("not checked", why) for name in facts.nodes_without_host if name not in with_host}
    if not rows and not unread:
        # The platform installs csi-proxy, or the mode needs none: no host was read, and the gate reports that.
        unread = node_verdicts
    rows += [
        {"node": name, "host": None, "csi_proxy": "not read", "verdict": verdict, "why": why}
        for name, (verdict, why) in unread.items()
    ]
    rows.sort(key=lambda row: (row["node"] is None, row["node"] or "", row["host"] or ""))
    findings = [
        {**finding, "host": host["name"]}
        for host in hosts
        if host.get("csi_proxy")
        for finding in host["csi_proxy"].get("findings", [])
    ]
    findings += [{**finding, "host": None} for finding in facts.warnings]
    host_changes = [{"object": host["name"], "changes": host["changed"]} for host in hosts if host.get("changed")]
    evaluated = {key: readiness[key] for key in _READINESS} if readiness and "table" in readiness else None
    # The Nodes of other slices have no host here.
    host_rows = [row for row in rows if row["host"]] or rows
    return {
        "verdict": _find_worst(row["verdict"] for row in host_rows),
        "nodes": rows,
        "changes": [*host_changes, *_list_driver_changes(facts.applied)],
        "findings": findings,
        "readiness": evaluated,
        "failure": failure,
    }


def _list_driver_changes(applied: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    object_changes = []
    for result in applied:
        changes = [
            f"{item['action']} {item['kind']} {item['namespace'] + '/' if item.get('namespace') else ''}{item['name']}"
            for item in result.get("objects") or ()
            if item["action"] != "none"
        ]
        replaced = (result.get("roll") or {}).get("replaced")
        changes += [f"replace the plugin pods on {', '.join(replaced)}"] if replaced else []
        if changes:
            object_changes.append({"object": str(result.get("driver", "driver")), "changes": changes})
    return object_changes


def render_summary(summary: Mapping[str, Any], ended: Sequence[str] = (), *, check: bool = False) -> str:
    """The closing text: a line for each host, the changes, what was noticed, the verdict in words, and the last lines (ended).

    check: whether changes were only announced.
    """
    nodes: Sequence[Mapping[str, Any]] = summary["nodes"]
    # A slice of an AWX job has few of a cluster's hosts. Without any host, each node has its reason.
    has_hosts = any(row["host"] for row in nodes)
    host_rows: list[Mapping[str, Any]] = []
    elsewhere: list[Mapping[str, Any]] = []
    for row in nodes:
        (elsewhere if has_hosts and row["host"] is None and row["verdict"] == "not checked" else host_rows).append(row)
    table = render_table(
        ("NODE", "HOST", "CSI-PROXY", "VERDICT", "WHY"),
        [
            [row["node"] or "-", row["host"] or "-", row["csi_proxy"], _show_verdict(row["verdict"]), row["why"]]
            for row in host_rows
        ],
    )
    lines = [table] if host_rows else []
    if elsewhere:
        names = format_list([row["node"] for row in elsewhere])
        lines += [
            "",
            f"Nodes without a host in this run, where no plugin pod starts before csi-proxy is checked: {names}",
        ]
    lines += ["", *_render_changes(summary["changes"], check=check)]
    finding_hosts = _group_findings(summary["findings"])
    lines += [""] if finding_hosts else []
    for finding, hosts in finding_hosts:
        # A plan's finding is about an object of the cluster.
        subject = f"on {', '.join(hosts)}" if hosts else finding["object"]
        lines.append(f"{finding['severity']} {finding['id']} {subject}: {finding['message']}")
        # A note asks for nothing; its remedy is on the page of findings, and in the result.
        if finding["severity"] != "note":
            lines.append(f"  remedy: {finding['remedy']}")
    if summary["readiness"]:
        first, *further_lines = summary["readiness"]["table"]
        lines += ["", f"Volumes, checked before the first change: {first}", *(f"  {line}" for line in further_lines)]
    # A node that this run did not evaluate is neither: --limit, a slice or an unreachable host leave it to another run.
    node_rows = [row for row in nodes if row["node"]]
    checked = [row for row in node_rows if row["verdict"] != "not checked"]
    evaluated = [row for row in checked if row["verdict"] != "unproven"]
    able = sum(row["verdict"] in ("green", "outdated") for row in evaluated)
    unread = len(checked) - len(evaluated)
    count = f"{able} of {len(evaluated)} Windows nodes can take CSI volumes now" if evaluated else ""
    parts = [count or ("" if unread else "no Windows node was checked")]
    parts += [f"{unread} Windows {'node was' if unread == 1 else 'nodes were'} not read"] if unread else []
    parts += [f"{_count_others(len(node_rows) - len(checked))} not checked"] if checked and node_rows != checked else []
    lines += ["", "; ".join(filter(None, parts))]
    for verdict in _ORDER:
        named = [row["node"] or row["host"] for row in host_rows if row["verdict"] == verdict]
        if named and verdict != "green":
            lines.append(f"{_show_verdict(verdict)}: {', '.join(named)}{_MEANS.get(verdict, '')}")
    return "\n".join([*lines, *ended])


def _show_verdict(verdict: str) -> str:
    return _SHOWN.get(verdict, verdict)


def _count_others(count: int) -> str:
    return "1 other was" if count == 1 else f"{count} others were"


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


def _render_changes(changes: Sequence[Mapping[str, Any]], *, check: bool) -> list[str]:
    if not changes:
        return ["Nothing would be changed." if check else "Nothing was changed."]
    lines = ["Would be changed:" if check else "Changed:"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for entry in changes:
        alike.setdefault(tuple(entry["changes"]), []).append(entry["object"])
    for done, objects in alike.items():
        lines += [f"  {', '.join(objects)}:", *(f"    {change}" for change in done)]
    return lines


def _group_findings(findings: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Each finding once, with every host that has it."""
    groups: dict[tuple[str, ...], tuple[Mapping[str, Any], list[str]]] = {}
    for finding in findings:
        key = (finding["id"], finding["message"], finding["remedy"], "" if finding["host"] else finding["object"])
        hosts = groups.setdefault(key, (finding, []))[1]
        hosts += [finding["host"]] if finding["host"] else []
    return list(groups.values())


def _build_row(
    host: Mapping[str, Any], gates: Mapping[str, Mapping[str, Any]], node_verdicts: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    observed = host.get("csi_proxy")
    node = host.get("node")
    if unusable := host.get("left_out") or host.get("unmatched"):
        verdict, why = "not checked", str(unusable)
    else:
        gate_result = node_verdicts.get(str(node))
        # As in check mode, before the first run with a driver.
        absent = [driver for driver, gate in gates.items() if gate.get("daemonset", gate) is None]
        missing = f"{', '.join(absent)} not deployed"
        if absent and node:
            verdict, why = (
                (_find_worst(["waiting", gate_result[0]]), f"{missing}; {gate_result[1]}")
                if gate_result
                else ("waiting", missing)
            )
        else:
            unchecked = "the gate did not check this Node" if gates else "the cluster has no driver"
            verdict, why = gate_result or ("not checked", unchecked)
    return {
        "node": node,
        "host": host["name"],
        "csi_proxy": _describe_csi_proxy(observed),
        "verdict": verdict,
        "why": why,
    }


def _describe_csi_proxy(observed: Mapping[str, Any] | None) -> str:
    if not observed:
        return "not read"
    service, executable = observed.get("service"), observed.get("executable")
    owner = observed.get("managed_by")
    if not service:
        return f"serving (managed by {owner})" if observed.get("serving") else "absent"
    release = (executable or {}).get("release") or "unknown release"
    state = str(service.get("state", "")).lower()
    missing = len(observed.get("missing_pipes") or [])
    pipes = f"{missing} pipe{'s' if missing > 1 else ''} missing" if missing else "not serving"
    pipes = "serving" if observed.get("serving") else pipes
    return f"{release} {state}, {pipes}" + ("" if owner in ("kubewin", "adopted") else f" (managed by {owner})")


def brief(observed: Mapping[str, Any]) -> list[str]:
    """One host in a few lines: csi-proxy and its pipes, drift, and the findings that ask for something."""
    lines = [f"csi-proxy {_describe_csi_proxy(observed)}"]
    lines += [f"missing pipes: {', '.join(observed['missing_pipes'])}"] if observed.get("missing_pipes") else []
    lines += [
        f"{drift['item']}: found {drift['found']}, expected {drift['expected']}"
        for drift in observed.get("drift") or ()
    ]
    for finding in observed.get("findings") or ():
        line = f"{finding['severity']} {finding['id']}: {finding['message']}"
        lines.append(line if finding["severity"] == "note" else f"{line} -> {finding['remedy']}")
    return lines


def _evaluate_nodes(gates: Mapping[str, Mapping[str, Any]], hosts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Verdict and reason of each node with all drivers. hosts: names of the hosts' Nodes."""
    verdicts: dict[str, list[tuple[str, str]]] = {}
    unchecked_verdicts: dict[str, list[tuple[str, str]]] = {}
    several = len(gates) > 1
    for driver, gate in gates.items():
        for node in gate.get("nodes") or []:
            problems = "; ".join(map(describe_problem, node.get("problems") or ()))
            named = f"{driver}: {problems}" if several else problems
            why = named if problems else "; ".join([f"{driver} registered, pod Ready", *(node.get("notes") or [])])
            verdicts.setdefault(node["node"], []).append((_name_verdict(node), why))
        for entry in gate.get("skipped_nodes") or []:
            unchecked_verdicts.setdefault(entry["node"], []).append(("not checked", entry["reason"]))
    # A driver that places no pod on a node says nothing about it where another one does.
    verdicts = {**unchecked_verdicts, **verdicts}
    for driver, gate in gates.items():
        for name in {*verdicts, *hosts} if gate.get("not_read") else ():
            verdicts.setdefault(name, []).append(("unproven", f"{driver} was not read: {gate['not_read']}"))
    return {
        name: (
            _find_worst(verdict for verdict, _why in node_verdicts),
            "; ".join(dict.fromkeys(why for _verdict, why in node_verdicts)),
        )
        for name, node_verdicts in verdicts.items()
    }


def _name_verdict(node: Mapping[str, Any]) -> str:
    is_outdated = {problem.get("id") for problem in node.get("problems") or ()} == {_OLDER_TEMPLATE}
    return "outdated" if is_outdated else str(node["verdict"])


def _find_worst(verdicts: Iterable[str]) -> str:
    return min(verdicts, key=lambda verdict: _ORDER.index(verdict) if verdict in _ORDER else 0, default="not checked")
