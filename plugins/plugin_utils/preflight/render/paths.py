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
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number
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


def stops(report: Report, most: int) -> tuple[tuple[Stop, ...], int]:
    """One line for each reason by which pods are lost, and how many more reasons there are."""
    alike: dict[tuple[str, str, tuple[str, ...], str, str], list[str]] = defaultdict(list)
    for workload in report.workloads:
        for one in workload.steps:
            if one.decides:
                about = one.because.removeprefix(f"{one.volume}: ")
                alike[one.step, one.answer, one.nodes, about, one.remedy].append(_pod(workload, one))
    found = [
        Stop(
            tuple(dict.fromkeys(pods)),
            f"{step} {'is unknown' if answer == 'unknown' else 'is blocked'}",
            _where(nodes),
            because,
            remedy,
        )
        for (step, answer, nodes, because, remedy), pods in alike.items()
    ]
    return tuple(found[:most]), max(0, len(found) - most)


def walks(report: Report, most: int) -> Iterator[Walk]:
    """Every workload that is not ready, with the way of its pods on each node."""
    for workload in [one for one in report.workloads if one.steps][:most]:
        pods = group_values((one.pod, one) for one in workload.steps)
        yield Walk(workload.workload, workload.because, tuple((pod, tuple(_paths(some))) for pod, some in pods.items()))


def _pod(workload: WorkloadVerdict, one: StepVerdict) -> str:
    own = workload.workload.rpartition("/")[2]
    return workload.workload if one.pod == own else f"{workload.workload}, pod {one.pod}"


def _where(nodes: tuple[str, ...]) -> str:
    return f"{number(len(nodes), 'node')}: {listed(nodes, 3)}" if len(nodes) > 1 else listed(nodes)


def _paths(some: Iterable[StepVerdict]) -> Iterator[Path]:
    by_node = group_values((node, one) for one in some for node in one.nodes)
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    found: dict[tuple[int, ...], tuple[StepVerdict, ...]] = {}
    for node in sorted(by_node):
        # The same objects, so that equal nodes are one group.
        key = tuple(map(id, by_node[node]))
        alike[key].append(node)
        found[key] = tuple(by_node[node])
    for key, nodes in alike.items():
        yield Path(listed(nodes, NAMED_NODES), tuple(_reached(found[key])), found[key])


def _reached(stopped: tuple[StepVerdict, ...]) -> Iterator[tuple[str, Reached]]:
    blocked = min((STEPS.index(one.step) for one in stopped if one.answer == "blocked"), default=len(STEPS))
    unknown = {one.step for one in stopped if one.answer == "unknown"}
    for position, step in enumerate(STEPS):
        if position > blocked:
            yield step, "never"
        elif position == blocked:
            yield step, "no"
        else:
            yield step, "unknown" if step in unknown else "yes"
