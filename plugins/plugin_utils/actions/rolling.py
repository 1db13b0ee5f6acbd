# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a rolling update in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.roll import RollResult


def failure(roll: RollResult, daemon_set: str, driver: str) -> TaskError | None:
    """Why the update failed, None if it did not."""
    state, step = roll.state, roll.step
    if roll.failed is not None:
        node = roll.failed.node
        then = (
            f"The former template of DaemonSet {daemon_set} was not restored there: {step.message}. No other node was changed. "
            f"Repair {node}, then run again."
            if step.kind == "stop"
            else f"Rolled back: DaemonSet {daemon_set} has its former template, {node} works with it, and no other node "
            "was changed. Correct the new plugin, then run again."
        )
        why = f"{driver}: the changed plugin does not work on the canary {node}: {roll.failed.message}."
        return TaskError(f"{why} {then}", "canary_failed")
    if step.kind != "stop":
        return None
    where = f" at {', '.join(step.nodes)}" if step.nodes else ""
    done = ", ".join(name for name in state.order if name in state.done) or "none"
    unchanged = ", ".join([*state.old, *state.left]) or "none"
    return TaskError(
        f"{driver}: the change of DaemonSet {daemon_set} stopped{where}: {step.message}. With the new plugin: {done}; untouched: "
        f"{unchanged}. No further pod is replaced. To continue, fix the cause and run again; to go back, run again with the "
        "former release and mode.",
        "roll_stopped",
    )


def warnings(roll: RollResult) -> Iterator[str]:
    """What a later run has to do."""
    state = roll.state
    if state.down:
        yield (
            f"{', '.join(state.down)}: not Ready, so the plugin pod was not replaced. Run again when the Node is Ready, "
            "or delete the Node if it does not come back."
        )
    if roll.step.kind == "finish" and roll.failed is None and state.left:
        yield (
            f"{', '.join(state.left)} still have the former plugin, because their hosts are not in this run. Run with these hosts. "
            "For Nodes without a host in any inventory, run with kubewin_cluster_only=true and an inventory without Windows hosts."
        )
