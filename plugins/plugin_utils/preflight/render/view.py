# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A readable report: the answer, what to do first, then line by line. Pure.

Terminal, Markdown and HTML show the same view, so they cannot disagree. A large cluster's report stays small: lines that
are ready without a finding become one line for all of a kind, which ``View.aggregated`` lists.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import (
    listed,
    nothing_there,
    number,
    sentence,
    shorten_reason,
    starts_with_command,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    READY,
    SEVERITIES,
    Cause,
    Comparison,
    Finding,
    NodeRoll,
    NodeVerdict,
    Report,
    Roll,
    Severity,
    StepVerdict,
    Suppressed,
    VolumeVerdict,
    WorkloadVerdict,
)

Worst = Literal["blocker", "warning", "note", ""]
_PART_OF_A_SECOND = re.compile(r"\.\d+")
_WORST: tuple[Worst, ...] = (*SEVERITIES, "")

Mark = Literal["no", "unknown", "watch", "yes"]
MARKS: tuple[Mark, ...] = ("no", "unknown", "watch", "yes")

# Remedies of a step that are shown, and objects of a remedy.
NAMED = 3

# Of the objects that findings are relations, causes before what suffers from them. Ids are CSI-<letter>..
_CAUSES = "RCTDNGVW"
# Attachments that failed are on nodes, but they are what volumes suffer, often because the driver does not work there.
_SUFFERED = frozenset({"CSI-N34", "CSI-N35"})

CLASSES: Mapping[str, str] = {
    "NATIVE_CSI": "A CSI volume. Its driver works on every node that it may be on.",
    "NATIVE_NO_DRIVER": "A CSI volume. Its driver does not work on a node that it may be on.",
    "NATIVE_REFUSED": "A CSI volume that the driver does not support on Windows.",
    "MIGRATED_OK": "An in-tree PersistentVolume, served by CSI migration on every node that it may be on.",
    "MIGRATED_NO_DRIVER": "CSI migration applies, but the driver does not work on a node that it may be on.",
    "MIGRATED_REFUSED": "CSI migration applies, but the driver does not support it on Windows.",
    "SPLIT": "The control plane uses CSI migration, but a Windows node does not.",
    "IN_TREE": "In-tree code still serves it; it needs the driver once an upgrade removes that code.",
    "NOT_CSI": "No CSI driver is involved, before or after an upgrade.",
    "DEAD": "This release of Kubernetes neither serves nor translates its kind.",
    "UNKNOWN": "The facts do not decide it. Never counted as ready.",
}

# How to check an assumption, by its kind.
CHECKS: Mapping[str, str] = {
    "admission": "kubectl get resourcequotas,limitranges,mutatingwebhookconfigurations,validatingwebhookconfigurations -A",
    "room": "kubectl describe nodes -l kubernetes.io/os=windows",
    "references": "kubectl get secrets,configmaps,serviceaccounts -A",
}

HEADLINES = {"ready": "Ready", "blocked": "Not ready", "unknown": "Unknown", "no_workloads": "No workloads"}


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a view may be. whole: a table up to so many lines is shown whole; most: of any other, and of findings."""

    whole: int = 200
    most: int = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table.

    name: of the object, or what it stands for. mark: how it is, for the eye; state: the same in the words of its table.
    cells: further columns. evidence: what was found. severity: the worst of its findings, empty without any. count: how
    many objects it stands for.
    """

    name: str
    mark: Mark
    state: str
    because: str
    cells: tuple[str, ...]
    evidence: tuple[str, ...]
    findings: tuple[str, ...]
    severity: Worst
    count: int = 1


@dataclass(frozen=True, slots=True)
class RemedyGroup:
    """A remedy, and what it is for."""

    remedy: str
    findings: tuple[Finding, ...]

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
    findings: tuple[Finding, ...]
    total: int
    concerns: str

    @property
    def remedy(self) -> str:
        """What helps all of them, empty where it is not the same."""
        return self.remedies[0].remedy if len(self.remedies) == 1 else ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its lines, worst first, and how many objects have each mark."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    counts: Mapping[Mark, int]

    @property
    def total(self) -> int:
        """How many objects there are."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class AssumptionLine:
    """An assumption. dependents: how many workloads depend on it, in words. check: how to check it, empty if unknown."""

    message: str
    dependents: str
    check: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Pods that stop at one step for one reason. pods: of workloads. where: the nodes in words. first: what to do first."""

    pods: tuple[str, ...]
    at: str
    where: str
    because: str
    first: str


@dataclass(frozen=True, slots=True)
class RollView:
    """The upgrade's drains. headline: whether it finishes. rows: (node, its drain, what stops it), the nodes that stop first."""

    headline: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class View:
    """The whole. target: in words, empty when there was none. first: what to do, in order. comparison: with an
    earlier report in words, empty without one; changes: "new" or "fixed", with the finding.
    """

    cluster: str
    versions: str
    taken_at: str
    target: str
    verdict: str
    headline: str
    answer: str
    collection: str
    comparison: str
    changes: tuple[tuple[str, Cause], ...]
    first: tuple[FindingGroup, ...]
    workloads: Table
    stops: tuple[Stop, ...]
    nodes: Table
    volumes: Table
    groups: tuple[FindingGroup, ...]
    severities: Mapping[str, int]
    unread: tuple[Mapping[str, str], ...]
    suppressed: tuple[Suppressed, ...]
    assumptions: tuple[AssumptionLine, ...]
    roll: RollView | None
    aggregated: tuple[str, ...]


PAGE = Limits()


def create_view(report: Report, limits: Limits = PAGE) -> View:
    """The view of a report."""
    relations = _Relations(report)
    aggregated: list[str] = []
    workloads = _create_table(
        "workload", [_create_workload_line(workload, relations) for workload in report.workloads], limits, aggregated
    )
    nodes = _create_table("node", [_create_node_line(node, relations) for node in report.nodes], limits, aggregated)
    volumes = _create_table(
        "volume", [_create_volume_line(volume, relations) for volume in report.volumes], limits, aggregated
    )
    groups = _group_findings(report, relations, limits, aggregated)
    stops = _list_stops(report, relations)
    if len(stops) > limits.most:
        aggregated.append(f"where pods stop: {limits.most:,} of {len(stops):,} reasons are shown")
    if len(report.suppressed) > limits.most:
        aggregated.append(f"accepted findings: {limits.most:,} of {len(report.suppressed):,} are shown")
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
        headline=_format_headline(report),
        answer=_format_answer(report, workloads),
        collection=f"kubewin.csi {report.collection}".strip(),
        comparison=_format_comparison(report.comparison),
        changes=tuple(_list_changes(report.comparison))[: limits.most],
        first=tuple(_select_steps(groups, report)),
        workloads=workloads,
        stops=stops[: limits.most],
        nodes=nodes,
        volumes=volumes,
        groups=groups,
        severities=report.counts(),
        unread=report.unread,
        suppressed=report.suppressed[: limits.most],
        assumptions=tuple(
            AssumptionLine(
                assumption.message, number(len(assumption.workloads), "workload"), CHECKS.get(assumption.kind, "")
            )
            for assumption in report.assumptions
        ),
        roll=_create_roll_view(report.roll, limits.most) if report.roll else None,
        aggregated=tuple(aggregated),
    )


_ROLLS: Mapping[str, str] = {"yes": "finishes", "no": "stops", "unknown": "is unknown"}


def _create_roll_view(roll: Roll, most: int) -> RollView:
    """Nodes whose drain needs nothing are left out; the headline counts them."""
    shown = [node for node in roll.nodes if node.answer != "yes" or node.budgets or node.waiting]
    shown.sort(key=lambda node: ("no", "unknown", "yes").index(node.answer))
    return RollView(
        f"An upgrade that drains node by node {_ROLLS[roll.answer]}: {roll.because}",
        tuple((node.node, _describe_drain(node), node.because or "goes on") for node in shown[:most]),
    )


def _describe_drain(node: NodeRoll) -> str:
    """What a drain needs, and where its pods go."""
    targets = f", go to {listed(node.targets, 3)}" if node.targets else ""
    parts = [f"{number(node.pods, 'pod')}{targets}"]
    parts += [f"budgets: {listed(node.budgets, 3)}"] if node.budgets else []
    parts += [f"wait until it is back: {listed(node.waiting, 3)}"] if node.waiting else []
    return "; ".join(parts)


def _format_headline(report: Report) -> str:
    count = len(report.assumptions)
    if report.verdict != "ready" or not count:
        return HEADLINES[report.verdict]
    return f"{HEADLINES['ready']}, if {number(count, 'assumption holds', 'assumptions hold')}"


# What goes away by itself with what comes before it on the same object: a plugin needs csi-proxy to run, and runs to register.
_FOLLOWS: Mapping[str, frozenset[str]] = {
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
        causes = {name for name in _FOLLOWS.get(group.id, ()) for name in objects[name]}
        needed = group.severity != "note" or group.doubt
        if needed and group.remedy not in commands and not (causes and causes >= objects[group.id]):
            yield group
            commands.update(remedy.remedy for remedy in group.remedies if starts_with_command(remedy.remedy))


_STARTS_AGAIN: Mapping[str, str] = {"yes": "will start again", "no": "will not start again", "unknown": "unknown"}
_NODE: Mapping[str, str] = {"yes": "work", "no": "do not work", "unknown": "unknown"}
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
    "driver": "driver",
    "driver_version": "release",
    "mode": "mode",
}


def _format_answer(report: Report, workloads: Table) -> str:
    """The one sentence."""
    lost, doubtful, total = workloads.counts["no"], workloads.counts["unknown"], workloads.total
    accepted = sum(bool(workload.accepted) for workload in report.workloads)
    if lost:
        answer = f"{lost:,} of {number(total, 'workload')} will not start again"
        answer += f"; {doubtful:,} {'is' if doubtful == 1 else 'are'} unknown" if doubtful else ""
    elif doubtful:
        subject = f"{doubtful:,} of {number(total, 'workload')}" if doubtful < total else f"all {total:,} workloads"
        subject = "the only workload" if total == 1 else subject
        answer = f"for {subject} it is unknown whether {'it' if doubtful == 1 else 'they'} will start again"
    elif total:
        answer = "the only workload will start again" if total == 1 else f"all {total:,} workloads will start again"
    else:
        answer = nothing_there(report.unread)
    if accepted:
        answer += f"; {accepted:,} of these {'is' if accepted == 1 else 'are'} accepted"
    target = _format_target(report.target.as_dict())
    return f"With {target}, {answer}." if target else f"{answer[0].upper()}{answer[1:]}."


def _format_target(target: Mapping[str, str]) -> str:
    return ", ".join(f"{_TARGETS.get(key, key)} {value}" for key, value in target.items())


def _format_time(time: str) -> str:
    return _PART_OF_A_SECOND.sub("", time).replace("T", " ").replace("+00:00", " UTC")


def _format_comparison(comparison: Comparison | None) -> str:
    """How many findings are fixed, new and unchanged since an earlier report."""
    if comparison is None:
        return ""
    target = f" with {_format_target(comparison.target)}" if comparison.target else ""
    return (
        f"The report of {_format_time(comparison.taken_at)}{target} was {HEADLINES[comparison.verdict]}. Since then "
        f"{number(len(comparison.fixed), 'finding')} fixed, {len(comparison.new):,} new, {len(comparison.unchanged):,} unchanged."
    )


def _list_changes(comparison: Comparison | None) -> Iterator[tuple[str, Cause]]:
    if comparison is not None:
        yield from (("new", cause) for cause in comparison.new)
        yield from (("fixed", cause) for cause in comparison.fixed)


class _Relations:
    """Findings by what they are about."""

    def __init__(self, report: Report) -> None:
        self.severity: dict[str, Worst] = {}
        self.messages = group_values((finding.id, finding.message) for finding in report.findings)
        for finding in report.findings:
            self.severity[finding.id] = _find_worst([self.severity.get(finding.id, ""), finding.severity])
        self.stopped_workloads = Counter(
            finding for verdict in report.workloads if verdict.starts_again != "yes" for finding in verdict.findings
        )
        self.stopped_nodes = Counter(
            finding for verdict in report.nodes if verdict.ok != "yes" for finding in verdict.findings
        )

    def find_worst(self, findings: Iterable[str]) -> Worst:
        """The worst severity that findings of these ids have."""
        return _find_worst(self.severity.get(id_, "") for id_ in findings)


def _find_worst(severities: Iterable[Worst]) -> Worst:
    return min(severities, key=_WORST.index, default="")


def _create_workload_line(workload: WorkloadVerdict, relations: _Relations) -> Line:
    return Line(
        name=workload.workload,
        mark=workload.starts_again,
        state=_STARTS_AGAIN[workload.starts_again],
        because=shorten_reason(workload.because, relations.messages),
        cells=(_RUNS_ON[workload.runs_on], listed(workload.volumes, 3) or "none"),
        evidence=(
            f"runs on {workload.runs_on}: {workload.runs_on_because}",
            *(f"volume {name}" for name in workload.volumes),
        ),
        findings=workload.findings,
        severity=relations.find_worst(workload.findings),
    )


def _create_node_line(node: NodeVerdict, relations: _Relations) -> Line:
    return Line(
        name=node.node,
        mark=node.ok,
        state=_NODE[node.ok],
        because=node.because,
        cells=(listed(node.drivers) or "none needed",),
        evidence=node.evidence,
        findings=node.findings,
        severity=relations.find_worst(node.findings),
    )


def _create_volume_line(volume: VolumeVerdict, relations: _Relations) -> Line:
    mark: Mark = "unknown" if volume.verdict == "UNKNOWN" else "watch" if volume.works else "no"
    return Line(
        name=volume.volume or f"claim {volume.claim}",
        mark="yes" if volume.verdict in READY else mark,
        state=volume.verdict,
        because=shorten_reason(volume.because, relations.messages),
        cells=(volume.claim or "no claim", volume.driver or volume.source, listed(volume.nodes, 3) or "no node"),
        evidence=volume.evidence,
        findings=volume.findings,
        severity=relations.find_worst(volume.findings),
    )


def _list_stops(report: Report, relations: _Relations) -> tuple[Stop, ...]:
    """One line for each reason by which pods are lost."""
    pods_by_reason: dict[tuple[str, str, tuple[str, ...], str, str], list[str]] = defaultdict(list)
    for workload in report.workloads:
        for step in workload.steps:
            if step.decides:
                reason = shorten_reason(step.because.removeprefix(f"{step.volume}: "), relations.messages)
                key = (step.step, step.answer, step.nodes, reason, step.remedy)
                pods_by_reason[key].append(_name_pod(workload, step))
    return tuple(
        Stop(
            tuple(dict.fromkeys(pods)),
            f"{step} {'is unknown' if answer == 'unknown' else 'is blocked'}",
            _format_nodes(nodes),
            because,
            remedy,
        )
        for (step, answer, nodes, because, remedy), pods in pods_by_reason.items()
    )


def _name_pod(workload: WorkloadVerdict, step: StepVerdict) -> str:
    name = workload.workload.rpartition("/")[2]
    return workload.workload if step.pod == name else f"{workload.workload}, pod {step.pod}"


def _format_nodes(nodes: tuple[str, ...]) -> str:
    return f"{number(len(nodes), 'node')}: {listed(nodes, 3)}" if len(nodes) > 1 else listed(nodes)


_TABLES = {
    "workload": ("Workloads", ("Workload", "After a restart", "Because", "Runs on", "Volumes")),
    "node": ("Windows nodes", ("Node", "Its volumes", "Because", "Drivers")),
    "volume": ("Volumes", ("Volume", "Class", "Because", "Claim", "Driver", "Nodes")),
}


def _rank_mark(line: Line) -> int:
    return MARKS.index(line.mark)


def _create_table(kind: str, lines: list[Line], limits: Limits, aggregated: list[str]) -> Table:
    """The lines worst first; a long table groups ready ones, and those beyond the limit, by kind."""
    # A volume has a line for each group of nodes, and counts once, as the worst of them.
    counts = Counter({line.name: line.mark for line in sorted(lines, key=_rank_mark, reverse=True)}.values())
    lines.sort(key=lambda line: (MARKS.index(line.mark), _WORST.index(line.severity), line.name))
    if len(lines) > limits.whole:
        ready = [line for line in lines if line.mark == "yes" and not line.severity]
        others = [line for line in lines if line.mark != "yes" or line.severity]
        if ready:
            aggregated.append(f"{_count_objects(ready, kind)} without a finding: one line for all alike")
        if len(others) > limits.most:
            aggregated.append(
                f"{_count_objects(others[limits.most :], kind)} more with findings: one line for all alike"
            )
        lines = others[: limits.most] + _aggregate_lines(others[limits.most :], kind) + _aggregate_lines(ready, kind)
    return Table(*_TABLES[kind], tuple(lines), {mark: counts[mark] for mark in MARKS})


def _count_objects(lines: Iterable[Line], kind: str) -> str:
    return number(len({line.name for line in lines}), kind)


def _aggregate_lines(lines: Iterable[Line], kind: str) -> list[Line]:
    """One line for all lines with the same state and the same findings."""
    # Of volumes the driver is the one further column that says what kind they are; of nodes the drivers.
    kinds = 1 if kind == "volume" else 0
    by_kind = group_values(((line.state, line.findings, line.cells[kinds]), line) for line in lines)
    aggregated = []
    for (state, findings, kind_cell), group in by_kind.items():
        first = group[0]
        aggregated.append(
            Line(
                name=_count_objects(group, kind),
                mark=first.mark,
                state=state,
                because=f"such as {listed([line.name for line in group], 3)}"
                + (f"; findings {', '.join(findings)}" if findings else ""),
                cells=tuple(cell if cell == kind_cell else "various" for cell in first.cells),
                evidence=(),
                findings=findings,
                severity=first.severity,
                count=len(group),
            )
        )
    return aggregated


def _group_findings(
    report: Report, relations: _Relations, limits: Limits, aggregated: list[str]
) -> tuple[FindingGroup, ...]:
    """Findings by id, in the order in which they are to be dealt with."""
    by_id = group_values((finding.id, finding) for finding in report.findings)
    share = max(20, limits.most // max(1, len(by_id)))
    groups = []
    for name, findings in by_id.items():
        findings.sort(key=lambda finding: (_WORST.index(finding.severity), finding.object))
        if len(findings) > share:
            aggregated.append(f"{name}: {share:,} of {len(findings):,} are shown")
        remedies = group_values((finding.remedy, finding) for finding in findings)
        concerns = [
            number(count, kind)
            for kind, count in (
                ("workload", relations.stopped_workloads[name]),
                ("node", relations.stopped_nodes[name]),
            )
            if count
        ]
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
        stopped = relations.stopped_workloads[group.id] + relations.stopped_nodes[group.id]
        letter = "V" if group.id in _SUFFERED else group.id[4]
        return _WORST.index(group.severity), group.doubt, _CAUSES.find(letter), -stopped, group.id

    return tuple(sorted(groups, key=order))
