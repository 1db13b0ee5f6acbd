# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade's journal as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.findings import Finding
from .journal import STEPS_BY_HOOK, Journal, NodeEntry, UpgradeStep
from .observation import UpgradeNode

_STEP_DESCRIPTIONS = {
    "cordon": "cordoned",
    "drain": "drained",
    "allow": "released to WMCO",
    "hook": "upgraded by your tasks",
    "wait_ready": "Ready again",
    "gate": "checked by the gate",
    "verify": "a volume verified",
    "workloads": "uncordoned, then its workloads awaited",
}

# How a node is left that failed while this was done.
_STATES_AFTER_FAILURE: dict[UpgradeStep, str] = {
    "waiting": "it was uncordoned",
    "allow": "it stays cordoned",
    "hook": "it stays cordoned and drained",
    "wait_ready": "it stays cordoned",
    "gate": "it stays cordoned",
    "verify": "it stays cordoned",
    "workloads": "it is schedulable",
}
# The finding of a node that is not there any more.
_NODE_DELETED = "CSI-U10"


def describe(journal: Journal) -> str:
    lines = [
        f"Upgrade {journal.name}, begun {journal.began}: {journal.state}" + (f", {journal.why}" if journal.why else ""),
        f"Hook {journal.hook}, target {journal.target.describe() or 'none'}; run {journal.generation}",
    ]
    if journal.ended:
        lines.append(f"Verified and compared after the last node: {journal.ended}")
    if journal.stopping is not None:
        finding = journal.stopping
        lines += ["", f"{finding.id} {finding.object}: {finding.message}", f"  -> {finding.remedy}"]
    lines.append("")
    lines += [_describe_entry(entry, journal) for entry in journal.nodes]
    if journal.confirmed:
        lines += [
            "",
            "Confirmed: "
            + ", ".join(f"{name} at {confirmed_at}" for name, confirmed_at in sorted(journal.confirmed.items())),
        ]
    return "\n".join([*lines, "", "What happened:", *(f"  {line}" for line in journal.happened)]) + "\n"


def describe_unfinished(journal: Journal) -> str:
    """Describe an unfinished upgrade to a run that begins another one."""
    nodes = "; ".join(
        f"{entry.node} {entry.status}" for entry in journal.nodes if entry.step != "waiting" or entry.failed
    )
    return (
        f"upgrade {journal.name} began {journal.began} and is not finished "
        f"({journal.state}{f'; {nodes}' if nodes else ''}). Continue it under its name "
        f"(kubewin_upgrade_name={journal.name}), or delete its journal to abandon it. No other upgrade uncordons its "
        "nodes"
    )


def describe_plan(journal: Journal) -> list[str]:
    """Describe the remaining steps, one line for each batch."""
    lines = [
        f"upgrade {journal.name}, hook {journal.hook}, target {journal.target.describe() or 'none'}: {journal.state}"
    ]
    for number in sorted({entry.batch for entry in journal.nodes}):
        names = ", ".join(
            entry.node if entry.step == "waiting" else f"{entry.node} ({entry.status})"
            for entry in journal.nodes
            if entry.batch == number
        )
        lines.append(f"{'canary' if number == 0 else f'batch {number}'}: {names}")
    return [
        *lines,
        f"each: {', then '.join(_STEP_DESCRIPTIONS[step] for step in STEPS_BY_HOOK[journal.hook] if step in _STEP_DESCRIPTIONS)}",
    ]


def describe_changes(journal: Journal, nodes: Mapping[str, UpgradeNode], findings: Sequence[Finding]) -> list[str]:
    """Describe the releases of each node before and after, then the volumes. findings: of changed volumes."""
    lines = []
    for entry in journal.nodes:
        node = nodes.get(entry.node)
        releases = (("kubelet", entry.kubelet, node.kubelet), ("WMCO", entry.wmco, node.version)) if node else ()
        changes = [
            f"{component} {current}" if was == current else f"{component} {was} -> {current}"
            for component, was, current in releases
            if was or current
        ]
        lines.append(f"{entry.node}: {', '.join(changes) or 'the Node does not exist'}")
    unchanged = len(journal.before) - len(findings)
    return [*lines, f"{unchanged} of {len(journal.before)} volumes of Windows workloads are unchanged"]


def _describe_entry(entry: NodeEntry, journal: Journal) -> str:
    since = f" since {entry.since}" if entry.since else ""
    notes = [entry.why] if entry.why else []
    notes += (
        [_STATES_AFTER_FAILURE[entry.step]]
        if entry.failed not in ("", _NODE_DELETED) and entry.step in _STATES_AFTER_FAILURE
        else []
    )
    if entry.by_itself:
        notes.append(
            "it began by itself"
            if journal.hook == "wmco"
            else "it already had the target release and was only verified"
        )
    notes += ["it stays cordoned, because another user cordoned it"] if entry.kept_cordoned else []
    notes += [f"its tasks ran {entry.tries} times"] if entry.tries > 1 else []
    return f"{entry.node} (batch {entry.batch}): {entry.status}{since}" + (f"; {'; '.join(notes)}" if notes else "")
