# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change that goes node by node says on its way and when it ends. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.waiting import so_far, spell
from ansible_collections.kubewin.csi.plugins.plugin_utils.results import failed


def progress(roll: Mapping[str, Any], known: Mapping[str, str], waited: float, limit: float) -> Iterator[str]:
    """Lines for nodes that stand otherwise than known, or one line that nothing changed. limit: seconds that each may take."""
    states = roll["states"]
    done = sum(one["state"] == "done" for one in states)
    head = f"  {spell(waited)}: {done} of {len(states)} nodes have the new plugin"
    news = [one for one in states if known.get(one["node"], "old") != one["state"]]
    gone = sorted(set(known).difference(one["node"] for one in states))
    if not news and not gone:
        moving = [
            f"{one['node']}, {so_far(roll['waited'].get(one['node'], 0), limit)} ({one['why']})"
            for one in states
            if one["state"] == "moving"
        ]
        yield head + (f"; waiting for {', '.join(moving)}" if moving else "")
        return
    yield head
    for one in news:
        text = {"moving": "pod replaced", "done": "works", "old": "as before"}[one["state"]]
        yield f"    {one['node']}: {text}" + (f" ({one['why']})" if one["why"] else "")
    for name in gone:
        yield f"    {name}: the DaemonSet no longer places a pod there, for example because its Node was deleted; not waiting for it"


def ended(roll: Mapping[str, Any], daemon_set: str, driver: str) -> dict[str, Any]:
    """What the task's result says of the end: nothing more, or failed with a reason."""
    if canary := roll.get("failed_canary"):
        node = canary["node"]
        then = (
            f"The former template of DaemonSet {daemon_set} was restored, but does not work there either: "
            f"{roll['message']}. No other node was changed. Repair {node}, then run again."
            if roll["step"] == "stop"
            else f"Rolled back: DaemonSet {daemon_set} has its former template, {node} works with it, and no other node "
            "was changed. Correct the new plugin, then run again."
        )
        why = f"{driver}: the changed plugin does not work on the canary {node}: {canary['because']}."
        return failed("canary_failed", f"{why} {then}")
    if roll["step"] != "stop":
        return {}
    names = {state: [one["node"] for one in roll["states"] if one["state"] == state] for state in ("done", "old")}
    where = f" at {', '.join(roll['nodes'])}" if roll["nodes"] else ""
    return failed(
        "roll_stopped",
        f"{driver}: the change of DaemonSet {daemon_set} stopped{where}: {roll['message']}. With the new plugin: "
        f"{', '.join(names['done']) or 'none'}; untouched: "
        f"{', '.join([*names['old'], *roll['left']]) or 'none'}. The DaemonSet keeps OnDelete, so no further pod "
        "is replaced. To continue, fix the cause and run again; to go back, run again with the former release "
        "and mode.",
    )


def failed_part(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns of an application: the objects that were changed, and the nodes that are not done."""
    part = dict(result)
    if part.get("objects"):
        named = ("action", "kind", "namespace", "name")
        changed = [one for one in part["objects"] if one["action"] != "none"]
        part["objects"] = [{key: one[key] for key in named if one.get(key)} for one in changed]
    if part.get("roll"):
        roll: Mapping[str, Any] = part["roll"]
        waits = [one for one in roll.get("states") or () if one["state"] != "done"]
        part["roll"] = {key: roll[key] for key in ("step", "left", "replaced") if key in roll} | {"states": waits}
    part.pop("diff", None)
    return part


def left_over(roll: Mapping[str, Any], daemon_set: str) -> str:
    """A warning for nodes that another run has to take, empty when there is none."""
    if roll["step"] != "rest":
        return ""
    return (
        f"{', '.join(roll['left'])} still have the former plugin, because their hosts are not in this run. DaemonSet "
        f"{daemon_set} keeps OnDelete until a run with these hosts changes them. For Nodes without a host in any "
        "inventory, run with kubewin_cluster_only=true and an inventory without Windows hosts."
    )
