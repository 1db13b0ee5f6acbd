# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The TaintToleration filter. Pure."""

from __future__ import annotations

from ...kube.node import Taint
from ..facts.placement import ANYWHERE, Placement, Toleration
from ..findings import change_template
from ..index import Index, are_accepted, is_accepted, is_of_state, unite
from ..verdict import NAMED_NODES
from ..walk.steps import NodeToStatus, PodToStart

# Admission gives every pod the first two, and the DaemonSet controller all of them to its pods.
_ADDED_BY_ADMISSION = tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoExecute") for key in ("not-ready", "unreachable")
)
_OF_DAEMONS = _ADDED_BY_ADMISSION + tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoSchedule")
    for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
_OPERATORS = ("Equal", "Exists")


def collect_tolerations(index: Index, placement: Placement, kind: str = "") -> tuple[Toleration, ...]:
    """All tolerations of a pod of a workload of that kind, with those of its RuntimeClass and those that admission or its controller adds."""
    added = index.runtime_classes.get(placement.runtime_class, ANYWHERE).tolerations
    return placement.tolerations + added + (_OF_DAEMONS if kind == "DaemonSet" else _ADDED_BY_ADMISSION)


class TaintToleration:
    def __init__(self, index: Index) -> None:
        self._index = index

    def find_tolerated_nodes(self, placement: Placement) -> int:
        tolerations = collect_tolerations(self._index, placement)
        return unite(nodes for taints, nodes in self._index.taints.items() if are_accepted(taints, tolerations))

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Block nodes with a taint that the pod does not tolerate. A pod that is bound already is only evicted, by NoExecute."""
        effects = ("NoExecute",) if pod.node else ("NoSchedule", "NoExecute")
        tolerations = collect_tolerations(self._index, pod.placement, pod.kind)
        known_tolerations = tuple(toleration for toleration in tolerations if toleration.operator in _OPERATORS)
        for taints, nodes in self._index.taints.items():
            for taint in taints:
                if not nodes & statuses.nodes or taint.effect not in effects or is_accepted(taint, known_tolerations):
                    continue
                shown = f"{taint.key}={taint.value}" if taint.value else taint.key
                compared = [
                    toleration
                    for toleration in tolerations
                    if toleration.operator not in _OPERATORS and toleration.key == taint.key
                ]
                if compared:
                    message = f"its toleration of taint {shown}:{taint.effect} has operator {compared[0].operator}, expected Equal or Exists"
                    statuses.doubt(nodes, "CSI-W21", message, "use operator Equal or Exists")
                    continue
                message = f"taint {shown}:{taint.effect} is not tolerated"
                names = self._index.list_names(nodes & statuses.nodes)[:NAMED_NODES]
                statuses.block(nodes, "CSI-W20", message, _find_remedy(pod, taint, " ".join(names)))


def _find_remedy(pod: PodToStart, taint: Taint, nodes: str) -> str:
    """A taint that shows the state of a node is not to be tolerated. nodes: their names."""
    if taint.key == "node.kubernetes.io/out-of-service":
        return f"repair the nodes, then: kubectl taint nodes {nodes} {taint.key}-"
    if is_of_state(taint):
        return f"repair the nodes, and the taint goes: kubectl describe nodes {nodes}"
    return f"{change_template(pod.workload, 'a toleration')}, or remove the taint"
