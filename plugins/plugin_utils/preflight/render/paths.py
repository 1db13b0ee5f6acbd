# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the pods of workloads that are not ready stop, step by step, for every form of a report. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number, shorten_reason
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    NAMED_NODES,
    Report,
    StepVerdict,
    WorkloadVerdict,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import STEPS

Reached = Literal["yes", "no", "unknown", "never"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Pods that stop at one step for one reason. pods: of workloads. where: the nodes in words. first: what to do first."""

    pods: tuple[str, ...]
    at: str
    where: str
    because: str
    first: str


@dataclass(frozen=True, slots=True)
class Path:
    """A pod on one node, or on several on which it fares the same. steps: each step with how far the pod gets."""

    nodes: str
    steps: tuple[tuple[str, Reached], ...]
    stops: tuple[StepVerdict, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """The paths of a workload's pods that stop. paths: by pod."""

    workload: str
    because: str
    paths: tuple[tuple[str, tuple[Path, ...]], ...]


def list_stops(report: Report, most: int) -> tuple[tuple[Stop, ...], int]:
    """One line for each reason by which pods are lost, and how many more reasons there are."""
    pods_by_reason: dict[tuple[str, str, tuple[str, ...], str, str], list[str]] = defaultdict(list)
    messages = group_values((finding.id, finding.message) for finding in report.findings)
    for workload in report.workloads:
        for step in workload.steps:
            if step.decides:
                reason = shorten_reason(step.because.removeprefix(f"{step.volume}: "), messages)
                key = (step.step, step.answer, step.nodes, reason, step.remedy)
                pods_by_reason[key].append(_name_pod(workload, step))
    stops = [
        Stop(
            tuple(dict.fromkeys(pods)),
            f"{step} {'is unknown' if answer == 'unknown' else 'is blocked'}",
            _format_nodes(nodes),
            because,
            remedy,
        )
        for (step, answer, nodes, because, remedy), pods in pods_by_reason.items()
    ]
    return tuple(stops[:most]), max(0, len(stops) - most)


def list_walks(report: Report, most: int) -> Iterator[Walk]:
    """Every workload that is not ready, with the way of its pods on each node."""
    for workload in [workload for workload in report.workloads if workload.steps][:most]:
        pods = group_values((step.pod, step) for step in workload.steps)
        yield Walk(
            workload.workload, workload.because, tuple((pod, tuple(_find_paths(steps))) for pod, steps in pods.items())
        )


def _name_pod(workload: WorkloadVerdict, step: StepVerdict) -> str:
    name = workload.workload.rpartition("/")[2]
    return workload.workload if step.pod == name else f"{workload.workload}, pod {step.pod}"


def _format_nodes(nodes: tuple[str, ...]) -> str:
    return f"{number(len(nodes), 'node')}: {listed(nodes, 3)}" if len(nodes) > 1 else listed(nodes)


def _find_paths(steps: Iterable[StepVerdict]) -> Iterator[Path]:
    by_node = group_values((node, step) for step in steps for node in step.nodes)
    nodes_by_steps: dict[tuple[int, ...], list[str]] = defaultdict(list)
    steps_by_key: dict[tuple[int, ...], tuple[StepVerdict, ...]] = {}
    for node in sorted(by_node):
        # The same objects, so that equal nodes are one group.
        key = tuple(map(id, by_node[node]))
        nodes_by_steps[key].append(node)
        steps_by_key[key] = tuple(by_node[node])
    for key, nodes in nodes_by_steps.items():
        yield Path(listed(nodes, NAMED_NODES), tuple(_list_reached(steps_by_key[key])), steps_by_key[key])


def _list_reached(verdicts: tuple[StepVerdict, ...]) -> Iterator[tuple[str, Reached]]:
    blocked = min((STEPS.index(step.step) for step in verdicts if step.answer == "blocked"), default=len(STEPS))
    unknown = {step.step for step in verdicts if step.answer == "unknown"}
    for position, step in enumerate(STEPS):
        if position > blocked:
            yield step, "never"
        elif position == blocked:
            yield step, "no"
        else:
            yield step, "unknown" if step in unknown else "yes"
