# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods leave a node, and what keeps those that do not, by the rules of kubectl drain --delete-emptydir-data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..kube.labels import MANAGER
from ..kube.pod import PodFacts

# After its grace period a pod should have ended; this much later it is reported.
_SLACK = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The pods that leave a node.

    evict: to be evicted now. remaining: all that still have to leave. blocked: why pods remain. never: what waiting does not resolve.
    """

    evict: tuple[PodFacts, ...]
    remaining: tuple[PodFacts, ...]
    blocked: tuple[str, ...]
    never: tuple[str, ...]


def plan_drain(pods: Iterable[PodFacts], refused: Mapping[str, str], current_time: datetime) -> DrainPlan:
    """Decide which pods of a node are evicted. refused: evictions that the server refused, by uid.

    Pods of DaemonSets and static pods stay, as their controllers ignore cordons; finished ones hold nothing.
    """
    remaining = tuple(pod for pod in pods if not pod.mirror and not pod.finished and pod.owner[0] != "DaemonSet")
    blocked, never, evict = [], [], []
    for pod in remaining:
        if pod.deleting_since is not None:
            if current_time - pod.deleting_since > _SLACK:
                blocked.append(
                    f"{pod.title} should have ended at {pod.deleting_since:%H:%M:%SZ}; check its node's kubelet and "
                    "its finalizers"
                )
            continue
        if pod.owner[0] == MANAGER:
            blocked.append(
                f"{pod.title} works for {pod.owner[1] or 'another run'}, which deletes it; if that run was killed, delete the pod"
            )
            continue
        if not pod.owner[0]:
            never.append(f"{pod.title} has no controller that would recreate it; delete it")
            continue
        evict.append(pod)
        if pod.uid in refused:
            blocked.append(f"{pod.title} may not be evicted: {refused[pod.uid]}")
    return DrainPlan(() if never else tuple(evict), remaining, tuple(blocked), tuple(never))
