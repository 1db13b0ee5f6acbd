# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a report on readiness. No logic but counting.

Every verdict names its evidence as text, such as "CSINode win-1 spec.drivers: disk.csi.azure.com". A report's own
verdict follows from the answers of its workloads alone. Findings explain these answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base import findings
from ..base.stored import serialize
from ..base.text import join_field_lines, join_lines

REPORT_VERSION = 1

Severity = findings.Severity
SEVERITIES: tuple[Severity, ...] = ("blocker", "warning", "note")

Answer = Literal["yes", "no", "unknown"]
Overall = Literal["ready", "blocked", "unknown", "no_workloads"]
System = Literal["windows", "linux", "mixed", "unknown"]

# A report names no more nodes than this for one volume; with their total number.
NAMED_NODES = 10
# Likewise of workloads for an assumption.
NAMED_WORKLOADS = 10


@dataclass(frozen=True, slots=True)
class ReportFinding(findings.Finding):
    """A finding of the report.

    evidence: what was found and where. why: why it matters. link: where it is explained. doubt: it stands for something
    that is not known, so nothing with it is ready.
    """

    evidence: tuple[str, ...]
    why: str
    link: str
    doubt: bool = False

    def __post_init__(self) -> None:
        findings.Finding.__post_init__(self)
        join_field_lines(self, "why")
        object.__setattr__(self, "evidence", tuple(join_lines(text) for text in self.evidence))


@dataclass(frozen=True, slots=True)
class VolumeVerdict:
    """A volume on those nodes for which the same is true.

    volume: the PersistentVolume, or "inline azureFile data" of a pod's own. claim: "namespace/name", empty for none.
    nodes: where it is used, else where it may be; ok: whether it can be mounted there. findings: ids of what explains it.
    """

    volume: str
    claim: str
    source: str
    driver: str
    nodes: tuple[str, ...]
    ok: Answer
    because: str
    evidence: tuple[str, ...]
    findings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**serialize(replace(self, nodes=self.nodes[:NAMED_NODES])), "node_count": len(self.nodes)}


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """A Windows node. drivers: what the volumes on it and those that may come need. ok: whether all of them work there."""

    node: str
    drivers: tuple[str, ...]
    ok: Answer
    because: str
    evidence: tuple[str, ...]
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding that keeps a workload from being ready, by its id and object."""

    id: str
    object: str


@dataclass(frozen=True, slots=True)
class WorkloadVerdict:
    """A workload that has volumes and may run on Windows.

    workload: "StatefulSet shop/db". runs_on: with the rule that decided in runs_on_because. starts_again: whether its pods
    get their volumes again after the next restart. volumes: claims "namespace/name" and inline volumes. causes: the findings
    that keep it from being ready. accepted: why the report's verdict leaves it out, empty if it counts.
    """

    workload: str
    runs_on: System
    runs_on_because: str
    starts_again: Answer
    because: str
    volumes: tuple[str, ...]
    findings: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    accepted: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Versions to ask about. Empty fields stay as the cluster has them."""

    kubernetes: str = ""
    openshift: str = ""
    wmco: str = ""

    def __bool__(self) -> bool:
        return any((self.kubernetes, self.openshift, self.wmco))

    def as_dict(self) -> dict[str, str]:
        """For a report: what was asked only."""
        return {key: value for key, value in serialize(self).items() if value}


NO_TARGET = Target()


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a suppression excludes from the verdict."""

    finding: ReportFinding
    reason: str
    expires: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that the report does not read, and on which workloads depend that will start again.

    names: everything that the message counts, such as "image registry.example.com/shop:1".
    """

    kind: str
    message: str
    workloads: tuple[str, ...]
    names: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        named_workloads = self.workloads[:NAMED_WORKLOADS]
        return {**serialize(replace(self, workloads=named_workloads)), "workload_count": len(self.workloads)}


@dataclass(frozen=True, slots=True)
class NodeRoll:
    """What a drain of a Windows node comes to. answer: whether the upgrade goes on after it, "unknown" if placement decides.

    pods: how many it evicts. budgets: PodDisruptionBudgets that it waits for, "namespace/name". targets: nodes where its pods go.
    waiting: pods that wait until the node is back.
    """

    node: str
    answer: Answer
    because: str
    pods: int
    budgets: tuple[str, ...]
    targets: tuple[str, ...]
    waiting: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        short_entry = replace(self, targets=self.targets[:NAMED_NODES], waiting=self.waiting[:NAMED_WORKLOADS])
        return {**serialize(short_entry), "target_count": len(self.targets), "waiting_count": len(self.waiting)}


@dataclass(frozen=True, slots=True)
class Roll:
    """Whether an upgrade that drains the Windows nodes one after the other finishes, and what stops it first.

    stops_at: the node at which it surely stops, empty if there is none. or_before: it may stop at an earlier one.
    """

    answer: Answer
    because: str
    nodes: tuple[NodeRoll, ...]
    stops_at: str = ""
    or_before: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was evaluated. cluster: its name. unread: as dictionaries with resource, why and rule.

    collection: the release that created it. roll: None without a Windows node.
    """

    cluster: str
    kubernetes: str
    openshift: str
    taken_at: str
    target: Target
    findings: tuple[ReportFinding, ...]
    volumes: tuple[VolumeVerdict, ...]
    nodes: tuple[NodeVerdict, ...]
    workloads: tuple[WorkloadVerdict, ...]
    unread: tuple[Mapping[str, str], ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    collection: str = ""
    roll: Roll | None = None

    @property
    def verdict(self) -> Overall:
        """Ready if there is a workload and each will start again; without one, only what could be read says so."""
        answers = {workload.starts_again for workload in self.workloads if not workload.accepted}
        if "no" in answers:
            return "blocked"
        if "unknown" in answers or (not self.workloads and self.unread):
            return "unknown"
        return "ready" if self.workloads else "no_workloads"

    def counts(self) -> dict[str, int]:
        return {severity: sum(finding.severity == severity for finding in self.findings) for severity in SEVERITIES}

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON; its schema is versioned and shipped."""
        return {"report_version": REPORT_VERSION, **serialize(self), "verdict": self.verdict, "counts": self.counts()}
