# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a rolling update must not begin. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import RollState, find_trouble
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import RolloutPicture
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.scheduling import explain_exclusion
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.verdict import Evaluation

_SERVING = "kubewin.io/csi-proxy"
_SHOWN = 3


def list_refusals(
    picture: RolloutPicture,
    evaluation: Evaluation,
    state: RollState,
    kept: Mapping[str, str],
    uses: Callable[[], Iterable[tuple[str, str]]],
) -> tuple[str, ...]:
    """What keeps the update from beginning, node by node. picture: with the DaemonSet as it would be.

    kept: Nodes whose plugin must not change its mode, with the reason. uses: Nodes with volumes of the driver in use, each with what shows
    it; read only when it matters.
    """
    verdicts = {node.node: node for node in evaluation.nodes}
    found = []
    for name in state.old:
        if name in kept:
            found.append(f"{name}: {kept[name]}. Move these workloads first (kubectl drain {name}), then run again")
        if trouble := find_trouble(verdicts.get(name)):
            found.append(
                f"{name}: {trouble}, expected a node where a new plugin can start. Repair it first, or exclude it "
                "with --limit"
            )
    if state.down and not state.order:
        found.append(f"{', '.join(state.down)}: not Ready, expected a Ready node for the canary. Repair one first")
    losing = _find_unselected(picture)
    in_use = group_values(uses()) if any(_SERVING not in why for _name, why in losing) else {}
    for name, why in losing:
        if _SERVING in why:
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


def _find_unselected(picture: RolloutPicture) -> list[tuple[str, str]]:
    """Nodes that have a pod and that the DaemonSet no longer selects: its controller removes the pod under every strategy."""
    if picture.daemon_set is None:
        return []
    nodes = {node.name: node for node in picture.nodes}
    names = sorted({pod.node for pod in picture.pods if not pod.deleting and pod.node in nodes})
    reasons = [(name, explain_exclusion(picture.daemon_set, nodes[name])) for name in names]
    return [(name, why) for name, why in reasons if why is not None]
