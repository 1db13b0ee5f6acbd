# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness of a cluster's Windows storage: one snapshot in, one report out. Pure.

The order: which workloads use which volumes on Windows; which drivers these need on which nodes; whether the drivers
work there; the verdict of each volume; the verdict of each workload.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain

from . import cluster_checks, nodes, volumes, workloads
from . import target as upgrade
from .assumptions import collect_assumptions
from .facts.snapshot import Snapshot
from .index import Index
from .usage import find_usage
from .verdict import NO_TARGET, SEVERITIES, Report, ReportFinding, Target, WorkloadVerdict
from .windows_volumes import collect_volumes, find_migrated_nodes, list_migrated_plugins


def evaluate(snapshot: Snapshot, target: Target = NO_TARGET, *, before: bool = False) -> Report:
    """Evaluate a snapshot, for the versions of a target. before: evaluate the present versions, before an upgrade to the target."""
    if before:
        return _accept_resolved(evaluate(snapshot), evaluate(snapshot, target))
    current_index = Index(snapshot)
    index = Index(upgrade.simulate(current_index, target)) if target else current_index
    usage = find_usage(index)
    windows_volumes = collect_volumes(index, usage)
    node_evaluation = nodes.evaluate(index, windows_volumes.demand, find_migrated_nodes(windows_volumes))
    volume_verdicts, volume_findings = volumes.evaluate(index, windows_volumes, node_evaluation.drivers)
    cluster_findings, driver_findings = cluster_checks.evaluate(
        index, windows_volumes.demand, list_migrated_plugins(windows_volumes)
    )
    target_findings = upgrade.evaluate(current_index, target, windows_volumes.demand) if target else ()
    object_findings = (
        *cluster_findings,
        *chain.from_iterable(driver_findings.values()),
        *node_evaluation.findings,
        *volume_findings,
        *target_findings,
    )
    target_stops = [finding for finding in target_findings if finding.doubt or finding.severity == "blocker"]
    workload_evaluation = workloads.evaluate(
        index, usage, windows_volumes, driver_findings, node_evaluation.stops, target_stops
    )
    starting = {verdict.workload for verdict in workload_evaluation.verdicts if verdict.starts_again == "yes"}
    ready = (workload for workload in usage.workloads if workload.key in starting and not workload.done)
    stopping = {(finding.id, finding.object, finding.message) for finding in workload_evaluation.stopping}
    unique = {
        (finding.id, finding.object, finding.message): finding
        for finding in (*object_findings, *workload_evaluation.findings)
    }
    findings = [finding if key in stopping else _downgrade(finding) for key, finding in unique.items()]
    return Report(
        cluster=snapshot.name,
        kubernetes=snapshot.cluster.kubernetes,
        openshift=snapshot.cluster.openshift,
        taken_at=snapshot.taken_at.isoformat(),
        target=target,
        findings=tuple(sorted(findings, key=_order)),
        volumes=tuple(volume_verdicts),
        nodes=node_evaluation.verdicts,
        workloads=workload_evaluation.verdicts,
        unread=tuple(asdict(unread_list) for unread_list in snapshot.unread),
        assumptions=collect_assumptions(index, windows_volumes, ready, bool(target)),
        roll=workload_evaluation.roll,
    )


def _downgrade(finding: ReportFinding) -> ReportFinding:
    """A finding that stops no workload: a warning, or about a volume a note."""
    if finding.id.startswith("CSI-V") and (finding.doubt or finding.severity == "blocker"):
        return replace(finding, severity="note", doubt=False)
    return replace(finding, severity="warning" if finding.severity == "blocker" else finding.severity, doubt=False)


def _accept_resolved(report: Report, later_report: Report) -> Report:
    """The report of now, in which a blocker that the upgrade itself resolves is a warning.

    A workload that something stops now is accepted if nothing stops it after the upgrade; else its verdict is that of then.
    """
    remaining = {(finding.id, finding.object) for finding in later_report.findings}
    findings = [
        replace(finding, severity="warning")
        if finding.severity == "blocker" and (finding.id, finding.object) not in remaining
        else finding
        for finding in report.findings
    ]
    later_workloads = {workload.workload: workload for workload in later_report.workloads}
    workloads = tuple(_resolve(workload, later_workloads.get(workload.workload)) for workload in report.workloads)
    # Of a workload with the verdict of then, the findings of then.
    causes = {
        (cause.id, cause.object)
        for now, then in zip(report.workloads, workloads, strict=True)
        if then.causes is not now.causes
        for cause in then.causes
    }
    findings = [finding for finding in findings if (finding.id, finding.object) not in causes]
    findings += [finding for finding in later_report.findings if (finding.id, finding.object) in causes]
    return replace(report, findings=tuple(sorted(findings, key=_order)), workloads=workloads)


def _resolve(workload: WorkloadVerdict, later: WorkloadVerdict | None) -> WorkloadVerdict:
    """The verdict before an upgrade on a workload of now and of after it. What is against the target, its own report says."""
    if later is None or not workload.causes:
        return workload
    causes = tuple(cause for cause in later.causes if not cause.id.startswith("CSI-T"))
    if not causes:
        return replace(workload, accepted="the upgrade resolves what stops it")
    findings = tuple(name for name in later.findings if not name.startswith("CSI-T"))
    return replace(workload, starts_again=later.starts_again, because=later.because, findings=findings, causes=causes)


def _order(finding: ReportFinding) -> tuple[int, str, str, str]:
    return SEVERITIES.index(finding.severity), finding.id, finding.object, finding.message
