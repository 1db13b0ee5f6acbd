# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of the gate while it waits and at its end. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...base.grouped import group_values
from ...base.stored import serialize
from ...base.table import render_table
from ...base.waiting import render_progress
from .evaluate import Evaluation, GateProblem

# Causes and nodes that a failed task names; all are in the table, which is printed.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of the gate. gate: None if nothing was read. table: to print. reason: key of the failure, empty if the gate passed."""

    message: str
    gate: Mapping[str, Any] | None = None
    table: str = ""
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        gate = {} if self.gate is None else {"gate": self.gate}
        return {"msg": self.message, **gate, **({"failed": True, "reason": self.reason} if self.reason else {})}


def describe_progress(
    evaluation: Evaluation, fingerprints: Mapping[str, str], waited: int, timeout: int, *, accepts: bool = False
) -> Iterator[str]:
    """Lines for nodes with another fingerprint than before, or one line that nothing changed.

    fingerprints: by node, as reported before. timeout: 0 for a gate that does not wait. accepts: whether a node that is registered and unproven is enough.
    """
    nodes = evaluation.nodes
    head = f"  {render_progress(waited, timeout)}: " if timeout else "  "
    if not fingerprints and evaluation.daemon_set is None:
        yield f"{head}the driver is not deployed"
        return
    green = sum(node.verdict == "green" for node in nodes)
    head += f"{green} of {len(nodes)} nodes green"
    unproven = sum(node.verdict == "unproven" for node in nodes)
    if accepts and unproven:
        head += f", {unproven} registered and unproven (accepted)"
    changed = [node for node in nodes if fingerprints.get(node.node) != node.fingerprint]
    names = {node.node for node in nodes}
    removed_nodes = [name for name in fingerprints if name not in names]
    if not changed and not removed_nodes:
        waiting = ", ".join(node.node for node in nodes if node.verdict != "green")
        yield head + (f"; still waiting for {waiting}" if waiting else "")
        return
    yield head
    if not fingerprints and green == len(nodes):
        return
    for node in changed:
        reasons = "; ".join([*(problem.text for problem in node.problems), *node.notes])
        yield f"    {node.node}: {node.verdict}" + (f" ({reasons})" if reasons else "")
    for name in removed_nodes:
        yield f"    {name}: no longer expected: the Node was deleted or its labels changed"


def describe_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    counts = ("namespace", "name", "desired", "current", "ready")
    daemon_set = evaluation.daemon_set
    return {
        "verdict": evaluation.verdict,
        "daemonset": daemon_set and {key: getattr(daemon_set, key) for key in counts},
        "nodes": [node.as_dict() for node in evaluation.nodes],
        "skipped_nodes": [{"node": name, "reason": reason} for name, reason in evaluation.skipped_nodes],
        "problems": [serialize(problem) for problem in evaluation.problems],
    }


def render_gate(evaluation: Evaluation) -> str:
    """Every node with its problems and what helps."""
    rows = []
    for node in evaluation.nodes:
        first, *others = [*map(_describe_remedy, node.problems)] or ["; ".join(node.notes) or "-"]
        rows += [[node.node, node.verdict, first], *(["", "", text] for text in others)]
    rows += [["-", problem.verdict, _describe_remedy(problem)] for problem in evaluation.problems]
    rows += [[name, "not checked", reason] for name, reason in evaluation.skipped_nodes]
    return render_table(["node", "verdict", "problems"], rows)


def build_gate_result(
    evaluation: Evaluation | None, accepts: bool, timeout: int, unreachable: str, *, check_mode: bool
) -> GateResult:
    """Passed, or failed with a reason, the causes, and the table to print.

    accepts: whether a node that is registered and unproven is enough. unreachable: why the last attempt to read failed, or empty.
    """
    if evaluation is None or (unreachable and evaluation.verdict in ("green", "unproven")):
        # What an earlier attempt read says nothing of now.
        message = f"the gate could not read the cluster in {timeout} s: {unreachable}"
        return GateResult(message, reason="unreachable")
    text, verdict = render_gate(evaluation), evaluation.verdict
    whole = {**describe_evaluation(evaluation), "table": text}
    if verdict == "green":
        names = ", ".join(node.node for node in evaluation.nodes)
        message = f"green: {names}" if names else "there is no node to check, which allow_zero_nodes accepts"
        return GateResult(message, whole)
    if verdict == "unproven" and accepts:
        return GateResult(f"accepted although not everything was read:\n{text}", whole)
    if check_mode:
        return GateResult(f"would fail now:\n{text}", whole)
    message = "\n".join([_describe_failure(evaluation, timeout, unreachable), *_list_causes(evaluation)])
    return GateResult(message, _shorten_gate(evaluation), text, _choose_reason(evaluation))


def build_unread_gate(why: str) -> dict[str, Any]:
    """The result of a driver that could not be read: neither green nor broken."""
    return {"verdict": "unproven", "nodes": [], "skipped_nodes": [], "problems": [], "not_read": why}


def _shorten_gate(evaluation: Evaluation) -> dict[str, Any]:
    """What a failed task returns, since the callback prints all of it: the verdict and the first nodes that have problems."""
    bad = [node.as_dict() for node in evaluation.nodes if node.verdict != "green"]
    return {
        "verdict": evaluation.verdict,
        "nodes": [{key: node[key] for key in ("node", "verdict", "problems")} for node in bad[:_NAMED]],
        "problems": [serialize(problem) for problem in evaluation.problems],
    }


def _list_causes(evaluation: Evaluation) -> list[str]:
    """Each cause once, with its nodes and its remedy; without any, why no node is evaluated."""
    causes = group_values(
        (_describe_remedy(problem), node.node) for node in evaluation.nodes for problem in node.problems
    )
    lines = [f"{', '.join(names)}: {cause}" for cause, names in causes.items()]
    lines += map(_describe_remedy, evaluation.problems)
    if not evaluation.nodes:
        lines += [f"{name}: {reason}" for name, reason in evaluation.skipped_nodes]
    omitted_count = len(lines) - _NAMED
    return lines[:_NAMED] + ([f"and {omitted_count} more"] if omitted_count > 0 else [])


def _describe_remedy(problem: GateProblem) -> str:
    return f"{problem.text} -> {problem.remedy}"


def _choose_reason(evaluation: Evaluation) -> str:
    if any(problem.id == "CSI-G01" for problem in evaluation.problems):
        return "no_nodes"
    return {"waiting": "gate_timeout", "unproven": "gate_unproven"}.get(evaluation.verdict, "gate_red")


def _describe_failure(evaluation: Evaluation, timeout: int, unreachable: str) -> str:
    names = ", ".join(node.node for node in evaluation.nodes if node.verdict != "green")
    reason = _choose_reason(evaluation)
    if reason == "no_nodes":
        return "the gate has no node to check"
    if reason == "gate_timeout":
        last = f" (last error of the API server: {unreachable})" if unreachable else ""
        return f"after {timeout} s these nodes are not ready: {names or 'see below'}{last}"
    if reason == "gate_unproven":
        return f"these nodes are registered, but not everything was read on their hosts: {names}"
    return f"these nodes need a change before they can become ready: {names or 'see below'}"
