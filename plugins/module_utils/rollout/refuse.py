# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a change of a running DaemonSet must not begin. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.kubewin.csi.plugins.module_utils.grouped import grouped
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import Goal, hopeless, standing
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import Picture
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.scheduling import why_not
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.verdict import Evaluation

_MARK = "kubewin.io/csi-proxy"
_SHOWN = 3


def refusals(
    picture: Picture, evaluation: Evaluation, goal: Goal, uses: Callable[[], Iterable[tuple[str, str]]]
) -> tuple[str, ...]:
    """What keeps the change from beginning, node by node. picture: with the DaemonSet as it would be.

    uses: nodes with volumes of the driver in use, each with what shows it; asked only when it matters.
    """
    verdicts = {one.node: one for one in evaluation.nodes}
    found = []
    for name in standing(picture, evaluation, goal).old:
        if name in goal.kept:
            found.append(
                f"{name}: {goal.kept[name]}. Move these workloads first (kubectl drain {name}), then run again"
            )
        trouble = hopeless(verdicts.get(name))
        if trouble:
            found.append(
                f"{name}: {trouble}, expected a node where a new plugin can start. Repair it first, or exclude it "
                "with --limit"
            )
    losing = _losing(picture)
    in_use = grouped(uses()) if any(_MARK not in why for dummy, why in losing) else {}
    for name, why in losing:
        if _MARK in why:
            found.append(
                f"{name}: its plugin would be removed immediately, because csi-proxy does not serve there ({why}). "
                "Run enable_csi.yml with that host in the inventory and without --limit; it first installs "
                "csi-proxy and checks its pipes"
            )
        elif name in in_use:
            signs = ", ".join(in_use[name][:_SHOWN])
            found.append(
                f"{name}: its plugin would be removed immediately ({why}) although volumes are in use there: "
                f"{signs}. Move these workloads first, or extend the DaemonSet to it"
            )
    return tuple(found)


def _losing(picture: Picture) -> list[tuple[str, str]]:
    """Nodes that have a pod and that the DaemonSet does not go to any more: no strategy keeps the controller from removing it."""
    if picture.daemon_set is None:
        return []
    nodes = {node.name: node for node in picture.nodes}
    names = sorted({pod.node for pod in picture.pods if not pod.deleting and pod.node in nodes})
    reasons = [(name, why_not(picture.daemon_set, nodes[name])) for name in names]
    return [(name, why) for name, why in reasons if why is not None]
