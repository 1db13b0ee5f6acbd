# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One workload of the readiness report, with its pods and what stops it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..base.findings import Finding
from ..preflight.verdict import WorkloadVerdict


@dataclass(frozen=True, slots=True)
class WorkloadPod:
    """A pod of the workload. node: empty before it is scheduled. runs: whether it is Ready or complete. event: the last warning about it."""

    name: str
    node: str
    runs: bool
    event: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """A workload by the name that was asked for ("shop/orders-0"). verdict: its entry in the readiness report, None if it is not there.

    causes: findings of the report that stop it.
    """

    name: str
    verdict: WorkloadVerdict | None
    causes: Sequence[Finding] = ()
    pods: Sequence[WorkloadPod] = ()

    def select_nodes(self) -> set[str]:
        return {pod.node for pod in self.pods if pod.node}


def name_workload(name: str, workloads: Iterable[str]) -> str:
    """The workload that has this name or a pod of this name; the name itself without one.

    A pod's name begins with that of its controller; the longest one is meant.
    """
    return max((workload for workload in workloads if f"{name}-".startswith(f"{workload}-")), key=len, default=name)


def select_causes(verdict: WorkloadVerdict, findings: Sequence[Finding], nodes: Collection[str]) -> list[Finding]:
    """The findings of a report that stop a workload. verdict: its entry there. nodes: of its pods."""
    keys = {(cause.id, cause.object) for cause in verdict.causes}
    causes = [finding for finding in findings if (finding.id, finding.object) in keys]
    # Another workload may have the same finding about the same object, such as a node.
    own_causes = {
        (cause.id, cause.object)
        for cause in causes
        if cause.object != verdict.workload and cause.message in verdict.because
    }
    causes = [
        cause for cause in causes if cause.message in verdict.because or (cause.id, cause.object) not in own_causes
    ]
    # What is wrong with its node explains a pod there, and what keeps the pod off other nodes does not.
    objects = {f"Node {node}" for node in nodes}
    of_nodes = [finding for finding in findings if finding.object in objects and finding.id in verdict.findings]
    if any(finding.severity == "blocker" for finding in of_nodes):
        causes = [*of_nodes, *(cause for cause in causes if cause.id != "CSI-W20" and cause not in of_nodes)]
    return causes


def describe_workload(workload: WorkloadFacts) -> list[str]:
    """Where its pods are, with the last warning about each."""
    lines = [] if workload.pods or workload.verdict is None else [f"{workload.verdict.workload} has no such pod now"]
    for pod in workload.pods:
        state = "runs" if pod.runs else "does not run"
        lines.append(f"Pod {pod.name} {state}{f' on {pod.node}' if pod.node else ', has no node'}")
        lines += [f"  {pod.event}"] if pod.event and not pod.runs else []
    return lines
