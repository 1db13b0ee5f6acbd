# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade's journal as text. Pure."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import TABLES, Journal, NodeEntry, Step

_DOES = {
    "cordon": "cordoned",
    "drain": "drained",
    "allow": "released to WMCO",
    "hook": "upgraded by your tasks",
    "back": "awaited",
    "gate": "checked by the gate",
    "canary": "a volume verified",
    "uncordon": "uncordoned",
    "workloads": "its workloads awaited",
}

# How a node is left that failed while this was done.
_LEFT: dict[Step, str] = {
    "waiting": "it was uncordoned",
    "allow": "it stays cordoned",
    "hook": "it stays cordoned and drained",
    "back": "it stays cordoned",
    "gate": "it stays cordoned",
    "canary": "it stays cordoned",
    "workloads": "it is schedulable",
}
# The finding of a node that is not there any more.
_GONE = "CSI-U10"


def describe(journal: Journal) -> str:
    """The whole, as a text."""
    lines = [
        f"Upgrade {journal.name}, begun {journal.began}: {journal.state}" + (f", {journal.why}" if journal.why else ""),
        f"Hook {journal.hook}, target {journal.target.text() or 'none'}; run {journal.generation}",
    ]
    if journal.ended:
        lines.append(f"Verified and compared after the last node: {journal.ended}")
    if journal.stopping is not None:
        found = journal.stopping
        lines += ["", f"{found.id} {found.object}: {found.message}", f"  -> {found.remedy}"]
    lines.append("")
    lines += [_line(entry, journal) for entry in journal.nodes]
    if journal.confirmed:
        lines += [
            "",
            "Confirmed: " + ", ".join(f"{name} at {when}" for name, when in sorted(journal.confirmed.items())),
        ]
    return "\n".join([*lines, "", "What happened:", *(f"  {line}" for line in journal.happened)]) + "\n"


def unfinished(journal: Journal) -> str:
    """Message that another upgrade is not finished, for a run that begins a new one."""
    left = "; ".join(
        f"{entry.node} {entry.status}" for entry in journal.nodes if entry.step != "waiting" or entry.failed
    )
    return (
        f"upgrade {journal.name} began {journal.began} and is not finished "
        f"({journal.state}{f'; {left}' if left else ''}). Continue it under its name "
        f"(kubewin_upgrade_name={journal.name}), or delete its journal to abandon it. No other upgrade uncordons its "
        "nodes"
    )


def plan_of(journal: Journal) -> list[str]:
    """What is to come, a line for each batch."""
    lines = [f"upgrade {journal.name}, hook {journal.hook}, target {journal.target.text() or 'none'}: {journal.state}"]
    for number in sorted({entry.batch for entry in journal.nodes}):
        names = ", ".join(
            entry.node if entry.step == "waiting" else f"{entry.node} ({entry.status})"
            for entry in journal.nodes
            if entry.batch == number
        )
        lines.append(f"{'canary' if number == 0 else f'batch {number}'}: {names}")
    return [*lines, f"each: {', then '.join(_DOES[step] for step in TABLES[journal.hook] if step in _DOES)}"]


def _line(entry: NodeEntry, journal: Journal) -> str:
    since = f" since {entry.since}" if entry.since else ""
    notes = [entry.why] if entry.why else []
    notes += [_LEFT[entry.step]] if entry.failed not in ("", _GONE) and entry.step in _LEFT else []
    if entry.by_itself:
        notes.append(
            "it began by itself"
            if journal.hook == "wmco"
            else "it already had the target release and was only verified"
        )
    notes += ["it stays cordoned, because another user cordoned it"] if entry.kept_cordoned else []
    notes += [f"its tasks ran {entry.tries} times"] if entry.tries > 1 else []
    return f"{entry.node} (batch {entry.batch}): {entry.status}{since}" + (f"; {'; '.join(notes)}" if notes else "")
