# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report shows, in the order in which it matters.

Terminal and HTML show the same view, so they cannot disagree. A large cluster's report stays small: each table has its
worst lines, and the number of the others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...base.grouped import group_values
from ..verdict import (
    SEVERITIES,
    Answer,
    NodeRoll,
    NodeVerdict,
    Report,
    ReportFinding,
    Roll,
    Severity,
    VolumeVerdict,
    WorkloadVerdict,
)
from .text_format import describe_no_workloads, format_list, format_number, sentence, starts_with_command

_PART_OF_A_SECOND = re.compile(r"\.\d+")
MARKS: tuple[Answer, ...] = ("no", "unknown", "yes")

# Remedies of a step that are shown, and objects of a remedy.
NAMED = 3

# Of the objects that findings are relations, causes before what suffers from them. Ids are CSI-<letter>..
_CAUSES = "CTDNGVW"
# A node plugin that is not there is of the same rank as one that fails.
_PLUGINS = frozenset({"CSI-N44", "CSI-N45", "CSI-N46"})
# Attachments that failed are on nodes, but they are what volumes suffer, often because the driver does not work there.
_SUFFERED = frozenset({"CSI-N34", "CSI-N35"})

# How to check an assumption, by its kind.
CHECKS: Mapping[str, str] = {
    "admission": "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    "room": "kubectl describe nodes -l kubernetes.io/os=windows",
    "nodes": "kubectl get nodes -l kubernetes.io/os=windows --show-labels",
    "disks": "kubectl get volumeattachments && kubectl get pvc -A -o custom-columns=NAME:.metadata.name,SOURCE:.spec.dataSource.name,PV:.spec.volumeName",
    "machines": "kubectl get nodes -L node.kubernetes.io/instance-type && kubectl get storageclasses -o yaml",
    "references": "kubectl get secrets,configmaps -A",
    "release": "kubectl version",
    "fields": "kubectl explain pod.spec --recursive",
}

HEADLINES = {"ready": "Ready", "blocked": "Not ready", "unknown": "Unknown", "no_workloads": "No workloads"}


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A line of a table.

    cells: texts by column, first the name of what it is about. mark: how that is; the second cell says so in words, the third why.
    Without a mark the line is about no object.
    """

    cells: tuple[str, ...]
    mark: Answer | None = None
    evidence: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part of a report: a sentence, and a table of its worst lines. hidden: how many more there are.

    counts: of a table about objects, how many of them have each mark.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[ReportRow, ...]
    text: str = ""
    hidden: int = 0
    counts: Mapping[Answer, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemedyGroup:
    remedy: str
    findings: tuple[ReportFinding, ...]

    def describe_objects(self, name: Callable[[str], str], text: Callable[[str], str]) -> str:
        """Of a single object what is wrong with it; of several the first ones, and how many more there are."""
        names = "; ".join(name(finding.object) for finding in self.findings[:NAMED])
        if len(self.findings) == 1:
            return f"{names}: {text(self.findings[0].message)}"
        return f"{names} and {len(self.findings) - NAMED:,} more" if len(self.findings) > NAMED else names


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """All findings of one id.

    remedies: each with all objects that it helps. total: how many findings there are, of which some are shown.
    concerns: how many workloads and nodes it stands in the way of, in words.
    """

    id: str
    severity: Severity
    doubt: bool
    why: str
    remedies: tuple[RemedyGroup, ...]
    link: str
    findings: tuple[ReportFinding, ...]
    total: int
    concerns: str

    @property
    def remedy(self) -> str:
        """What helps all of them, empty where it is not the same."""
        return self.remedies[0].remedy if len(self.remedies) == 1 else ""


@dataclass(frozen=True, slots=True)
class View:
    """The whole. target: in words, empty when there was none. first: what to do, in order. stop: that the upgrade's drains may not finish, empty if
    they do. parts: in order, by key.
    """

    cluster: str
    versions: str
    taken_at: str
    target: str
    verdict: str
    headline: str
    answer: str
    stop: str
    collection: str
    first: tuple[FindingGroup, ...]
    parts: Mapping[str, ReportPart]
    groups: tuple[FindingGroup, ...]
    severities: Mapping[str, int]


# Lines of a table on a page, and of findings.
MOST = 1000


def create_view(report: Report, most: int = MOST) -> View:
    """The view of a report. most: lines of a table."""
    groups = _group_findings(report, most)
    workloads = _create_table(
        ("workloads", "Workloads"),
        ("Workload", "After a restart", "Because", "Runs on", "Volumes"),
        [_create_workload_line(workload) for workload in report.workloads],
    )
    nodes = _create_table(
        ("nodes", "Windows nodes"),
        ("Node", "Its volumes", "Because", "Drivers"),
        [_create_node_line(node) for node in report.nodes],
    )
    mountable = {_name_volume(volume) for volume in report.volumes if volume.ok == "yes"}
    volumes = _create_table(
        ("volumes", "Volumes"),
        ("Volume", "On its nodes", "Because", "Claim", "Driver", "Nodes"),
        [_create_volume_line(volume, _name_volume(volume) in mountable) for volume in report.volumes],
    )
    unread = [(entry.get("resource", ""), entry.get("why", ""), entry.get("rule", "")) for entry in report.unread]
    suppressed = [
        (entry.finding.object, entry.expires, entry.reason, f"{entry.finding.id}: {entry.finding.message}")
        for entry in report.suppressed
    ]
    parts = (
        workloads,
        _create_roll(report.roll),
        _create_assumptions(report),
        nodes,
        volumes,
        _create_part("unread", "What could not be read", ("Resource", "Why", "Rule to add"), unread),
        _create_part("suppressed", "Accepted findings", ("About", "Until", "Reason", "Finding"), suppressed),
    )
    first = tuple(_select_steps(groups, report))
    return View(
        cluster=report.cluster or "cluster",
        versions=", ".join(
            f"{name} {version}"
            for name, version in (("Kubernetes", report.kubernetes), ("OpenShift", report.openshift))
            if version
        ),
        taken_at=_format_time(report.taken_at),
        target=_format_target(report.target.as_dict()),
        verdict=report.verdict,
        headline=format_headline(report),
        answer=format_answer(report),
        stop=format_roll(report.roll) if report.roll is not None and report.roll.answer != "yes" else "",
        collection=f"kubewin.csi {report.collection}".strip(),
        first=first,
        parts={part.key: _refer_to_steps(_shorten(part, most), first) for part in parts},
        groups=groups,
        severities=report.counts(),
    )


def _create_part(
    key: str, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], text: str = ""
) -> ReportPart:
    return ReportPart(key, title, columns, tuple(map(ReportRow, rows)), text)


def _shorten(part: ReportPart, most: int) -> ReportPart:
    return replace(part, lines=part.lines[:most], hidden=max(0, len(part.lines) - most))


def _refer_to_steps(part: ReportPart, first: Iterable[FindingGroup]) -> ReportPart:
    """The part with the id alone in place of a finding that a step reports in full."""
    said = [
        (f"{group.id} {remedy.findings[0].message}", group.id)
        for group in first
        for remedy in group.remedies[:NAMED]
        if len(remedy.findings) == 1
    ]
    lines = []
    for line in part.lines:
        cells = line.cells
        for text, id_ in said if line.mark else ():
            cells = tuple(cell.replace(text, id_) for cell in cells)
        lines.append(replace(line, cells=cells))
    return replace(part, lines=tuple(lines))


def _create_assumptions(report: Report) -> ReportPart:
    lines = (
        ReportRow(
            cells=(
                format_number(len(assumption.workloads), "workload"),
                " -> ".join(filter(None, (assumption.message, CHECKS.get(assumption.kind)))),
            ),
            evidence=assumption.names,
        )
        for assumption in report.assumptions
    )
    return ReportPart("assumptions", "Assumptions", ("For", "Assumed, and how to check it"), tuple(lines))


def _create_roll(roll: Roll | None) -> ReportPart:
    """Nodes whose drain needs nothing are left out; the sentence counts them."""
    columns = ("Node", "Its drain", "And then")
    if roll is None:
        return ReportPart("roll", "", columns, ())
    shown = [node for node in roll.nodes if node.answer != "yes" or node.budgets or node.waiting]
    shown.sort(key=lambda node: ("no", "unknown", "yes").index(node.answer))
    rows = [(node.node, _describe_drain(node), node.because or "goes on") for node in shown]
    return _create_part("roll", "The upgrade's drains", columns, rows, format_roll(roll))


def format_roll(roll: Roll) -> str:
    """The one sentence about the upgrade's drains; what stops a node is in the table."""
    if roll.answer == "yes":
        return f"An upgrade that drains node by node finishes: {roll.because}."
    first = next((node for node in roll.nodes if node.answer != "yes"), None)
    if roll.stops_at:
        return f"An upgrade that drains node by node stops at node {roll.stops_at}{' or before' if roll.or_before else ''}."
    reason = f"see node {first.node}" if first is not None and first.because in roll.because else roll.because
    return f"Whether an upgrade that drains node by node finishes is unknown: {reason}."


def _describe_drain(node: NodeRoll) -> str:
    targets = f", go to {format_list(node.targets, 3)}" if node.targets else ""
    parts = [f"{format_number(node.pods, 'pod')}{targets}"]
    parts += [f"budgets: {format_list(node.budgets, 3)}"] if node.budgets else []
    parts += [f"wait until it is back: {format_list(node.waiting, 3)}"] if node.waiting else []
    return "; ".join(parts)


def format_headline(report: Report) -> str:
    """The verdict in words, with the number of assumptions."""
    count = len(report.assumptions)
    if report.verdict != "ready" or not count:
        return HEADLINES[report.verdict]
    return f"{HEADLINES['ready']}, if {format_number(count, 'assumption holds', 'assumptions hold')}"


# What goes away by itself with what comes before it on the same object: a plugin needs csi-proxy to run, and runs to register.
FOLLOWS: Mapping[str, frozenset[str]] = {
    "CSI-G11": frozenset({"CSI-G42", "CSI-G43"}),
    "CSI-G12": frozenset({"CSI-G42", "CSI-G43"}),
    "CSI-G20": frozenset({"CSI-G10", "CSI-G11", "CSI-G12", "CSI-G42", "CSI-G43"}),
}


def _select_steps(groups: Iterable[FindingGroup], report: Report) -> Iterator[FindingGroup]:
    """What to do, in order: everything that is more than a note and does not go away with another step or by the same command."""
    objects: dict[str, set[str]] = defaultdict(set)
    for finding in report.findings:
        objects[finding.id].add(finding.object)
    commands: set[str] = set()
    for group in groups:
        causes = {name for name in FOLLOWS.get(group.id, ()) for name in objects[name]}
        needed = group.severity != "note" or group.doubt
        if needed and group.remedy not in commands and not (causes and causes >= objects[group.id]):
            yield group
            commands.update(remedy.remedy for remedy in group.remedies if starts_with_command(remedy.remedy))


_STARTS_AGAIN: Mapping[str, str] = {"yes": "will start again", "no": "will not start again", "unknown": "unknown"}
_NODE: Mapping[str, str] = {"yes": "work", "no": "do not work", "unknown": "unknown"}
# Of a volume that can be mounted on other nodes.
_SOME_NODES = " on some"
_VOLUME: Mapping[str, str] = {"yes": "can be mounted", "no": "cannot be mounted", "unknown": "unknown"}
_RUNS_ON: Mapping[str, str] = {
    "windows": "Windows",
    "linux": "Linux",
    "mixed": "Windows or Linux",
    "unknown": "unknown",
}
_TARGETS = {
    "kubernetes": "Kubernetes",
    "openshift": "OpenShift",
    "wmco": "Windows Machine Config Operator",
}


def format_answer(report: Report) -> str:
    """The one sentence about the workloads."""
    counts = Counter(workload.starts_again for workload in report.workloads)
    lost, doubtful, total = counts["no"], counts["unknown"], sum(counts.values())
    accepted = sum(bool(workload.accepted) for workload in report.workloads)
    if lost:
        answer = f"{lost:,} of {format_number(total, 'workload')} will not start again"
        answer += f"; {doubtful:,} {'is' if doubtful == 1 else 'are'} unknown" if doubtful else ""
    elif doubtful:
        subject = (
            f"{doubtful:,} of {format_number(total, 'workload')}" if doubtful < total else f"all {total:,} workloads"
        )
        subject = "the only workload" if total == 1 else subject
        answer = f"for {subject} it is unknown whether {'it' if doubtful == 1 else 'they'} will start again"
    elif total:
        answer = "the only workload will start again" if total == 1 else f"all {total:,} workloads will start again"
    else:
        answer = describe_no_workloads(report.unread)
    if accepted:
        answer += f"; {accepted:,} of these {'is' if accepted == 1 else 'are'} accepted"
    target = _format_target(report.target.as_dict())
    return f"With {target}, {answer}." if target else f"{answer[0].upper()}{answer[1:]}."


def _format_target(target: Mapping[str, str]) -> str:
    return ", ".join(f"{_TARGETS.get(key, key)} {value}" for key, value in target.items())


def _format_time(time: str) -> str:
    return _PART_OF_A_SECOND.sub("", time).replace("T", " ").replace("+00:00", " UTC")


def _create_workload_line(workload: WorkloadVerdict) -> ReportRow:
    return ReportRow(
        cells=(
            workload.workload,
            _STARTS_AGAIN[workload.starts_again],
            workload.because,
            _RUNS_ON[workload.runs_on],
            format_list(workload.volumes, 3) or "none",
        ),
        mark=workload.starts_again,
        evidence=(
            f"runs on {workload.runs_on}: {workload.runs_on_because}",
            *(f"volume {name}" for name in workload.volumes),
        ),
        findings=workload.findings,
    )


def _create_node_line(node: NodeVerdict) -> ReportRow:
    return ReportRow(
        cells=(node.node, _NODE[node.ok], node.because, format_list(node.drivers) or "none needed"),
        mark=node.ok,
        evidence=node.evidence,
        findings=node.findings,
    )


def _name_volume(volume: VolumeVerdict) -> str:
    return volume.volume or f"claim {volume.claim}"


def _create_volume_line(volume: VolumeVerdict, is_mountable: bool) -> ReportRow:
    """is_mountable: it can be mounted on one of its nodes."""
    return ReportRow(
        cells=(
            _name_volume(volume),
            _VOLUME[volume.ok] + (_SOME_NODES if is_mountable and volume.ok != "yes" else ""),
            volume.because,
            volume.claim or "no claim",
            volume.driver or volume.source,
            format_list(volume.nodes, 3) or "no node",
        ),
        mark=volume.ok,
        evidence=volume.evidence,
        findings=volume.findings,
    )


def _create_table(names: tuple[str, str], columns: tuple[str, ...], lines: list[ReportRow]) -> ReportPart:
    """The lines worst first, and a sentence with the number of objects in each state. names: key and title."""

    def rank(line: ReportRow) -> tuple[int, str]:
        return MARKS.index(line.mark or "yes"), line.cells[0]

    lines.sort(key=rank)
    # A volume has a line for each group of nodes, and counts once, as the worst of them.
    worst = {line.cells[0]: line for line in reversed(lines)}.values()
    counts = Counter(line.mark for line in worst)
    states = Counter(line.cells[1] for line in sorted(worst, key=rank))
    text = ", ".join(f"{count:,} {state}" for state, count in states.items())
    return ReportPart(*names, columns, tuple(lines), text, counts={mark: counts[mark] for mark in MARKS})


def _group_findings(report: Report, most: int) -> tuple[FindingGroup, ...]:
    """Findings by id, in the order in which they are to be dealt with."""
    by_id = group_values((finding.id, finding) for finding in report.findings)
    stopped = {
        "workload": Counter(
            id_ for workload in report.workloads if workload.starts_again != "yes" for id_ in workload.findings
        ),
        "node": Counter(id_ for node in report.nodes if node.ok != "yes" for id_ in node.findings),
    }
    share = max(20, most // max(1, len(by_id)))
    groups = []
    for name, findings in by_id.items():
        findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.object))
        remedies = group_values((finding.remedy, finding) for finding in findings)
        concerns = [format_number(counts[name], kind) for kind, counts in stopped.items() if counts[name]]
        groups.append(
            FindingGroup(
                id=name,
                severity=findings[0].severity,
                doubt=any(finding.doubt for finding in findings),
                why=sentence(findings[0].why),
                remedies=tuple(RemedyGroup(sentence(remedy), tuple(alike)) for remedy, alike in remedies.items()),
                link=findings[0].link,
                findings=tuple(findings[:share]),
                total=len(findings),
                concerns=" and ".join(concerns),
            )
        )

    def order(group: FindingGroup) -> tuple[int, bool, int, int, str]:
        count = sum(counts[group.id] for counts in stopped.values())
        letter = "V" if group.id in _SUFFERED else "G" if group.id in _PLUGINS else group.id[4]
        return SEVERITIES.index(group.severity), group.doubt, _CAUSES.find(letter), -count, group.id

    return tuple(sorted(groups, key=order))
