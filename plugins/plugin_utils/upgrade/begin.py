# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begins an upgrade, takes one over, and records the results of external steps. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..base.errors import TaskError
from ..base.findings import Finding
from ..catalog.target import CurrentReleases, find_impossible_targets
from ..catalog.versions import is_at_least, parse
from ..drivers.rollout.decide import find_wrong_sizes, split_batches
from . import wmco
from .decide import DelegatedStep, fail, find_left_cordoned, has_reached
from .journal import Hook, Journal, NodeEntry, UpgradeTarget, format_time
from .observation import UpgradeNode, UpgradeObservation


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """The requested upgrade. nodes: empty for all. canary: empty for the node with the fewest volumes. batches: sizes.

    pause: where an approval is required: "canary", "batches", or Nodes.
    unproven_canary: where nothing can be proven before (WMCO without csi-proxy), a node without volumes may go first.
    """

    name: str
    hook: Hook
    target: UpgradeTarget = field(default_factory=UpgradeTarget)
    nodes: tuple[str, ...] = ()
    canary: str = ""
    batches: tuple[str, ...] = ("1",)
    unproven_canary: bool = False
    pause: tuple[str, ...] = ()


def begin(desired: UpgradeRequest, observed: UpgradeObservation, confirmed: Sequence[str] = ()) -> Journal:
    """Create the journal of a new upgrade. Raises TaskError refused with every blocker."""
    problems = [
        f"Node {name} is not a Windows node of this cluster, expected one of {', '.join(sorted(observed.nodes)) or 'none'}."
        for name in (*desired.nodes, *([desired.canary] if desired.canary else []))
        if name not in observed.nodes
    ]
    problems += [*_check_pauses(desired, observed.nodes), *_check_approvals(confirmed, observed.nodes)]
    for size in find_wrong_sizes(desired.batches):
        problems.append(f"batch size is {size!r}, expected a number above 0 or a percentage.")
    chosen = [
        observed.nodes[name]
        for name in dict.fromkeys(desired.nodes or sorted(observed.nodes))
        if name in observed.nodes
    ]
    if not chosen and not problems:
        problems.append("this cluster has no Windows node.")
    if chosen and not problems:
        problems += [finding.line() for finding in _find_unreachable_targets(desired, chosen, observed)]
    if desired.hook == "wmco":
        problems += [finding.line() for finding in wmco.find_blockers(chosen, desired.target, desired.unproven_canary)]
    if problems:
        raise TaskError("\n".join(problems), "refused")
    unproven = desired.hook == "wmco" and wmco.find_path(chosen, desired.target).csi_proxy != "kept"
    order = [node.name for node in sorted(chosen, key=lambda node: _rank(node, desired, unproven))]
    # Nodes with the target release are only verified: the canary is the first node that this upgrade changes.
    upgraded = sum(has_reached(node, desired.target) for node in chosen)
    batches = [(0, order[:upgraded]), *enumerate(split_batches(order[upgraded:], desired.batches))]
    entries = [
        NodeEntry(node, number, kubelet=observed.nodes[node].kubelet, wmco=observed.nodes[node].version)
        for number, batch in batches
        for node in batch
    ]
    return Journal(
        name=desired.name,
        hook=desired.hook,
        target=desired.target,
        began=format_time(observed.current_time),
        nodes=tuple(entries),
        only=desired.nodes,
    )


def _find_unreachable_targets(
    desired: UpgradeRequest, chosen: Sequence[UpgradeNode], observed: UpgradeObservation
) -> Iterator[Finding]:
    """Return why the target cannot be reached. Releases of WMCO are evaluated with its hook."""
    target, cluster = desired.target, observed.cluster
    openshift = None if cluster is None or cluster.is_openshift is None else cluster.openshift
    if cluster is not None and cluster.is_openshift and not openshift:
        # Its first update is not complete.
        openshift = None
    versions = (node.version for node in chosen if node.version)
    wmco_now = max(versions, key=lambda text: parse(text).release, default=None)
    releases = {"kubernetes": target.kubelet, "openshift": target.openshift}
    if desired.hook != "wmco":
        releases["wmco"] = target.wmco
    # An update of OpenShift that is still to come brings a later API server.
    api_server = "" if target.openshift else observed.api_server
    return find_impossible_targets(
        releases, CurrentReleases({node.name: node.kubelet for node in chosen}, openshift, wmco_now, api_server)
    )


def _rank(node: UpgradeNode, desired: UpgradeRequest, unproven: bool) -> tuple[bool, bool, bool, int, str]:
    """Return the sort key of a node: first those with the target release, then the canary, then the user's order or the fewest volumes.

    unproven: the first node to change is upgraded before anything can be proven, so that it must have no volume.
    """
    order = (
        desired.nodes.index(node.name)
        if desired.nodes
        else len(node.attached) + sum(pod.volumes for pod in node.pods or ())
    )
    is_upgraded, volumes = has_reached(node, desired.target), unproven and node.carries_volumes
    return not is_upgraded, volumes, node.name != desired.canary, order, node.name


def _check_pauses(desired: UpgradeRequest, nodes: Collection[str]) -> list[str]:
    """Refuse a pause that never applies: the run would pass it without an approval."""
    return [
        f"kubewin_upgrade_pause has {name!r}, expected canary, batches, or a Node of this upgrade: {', '.join(sorted(nodes))}."
        for name in desired.pause
        if name not in ("canary", "batches") and name not in nodes
    ]


def _check_approvals(confirmed: Sequence[str], nodes: Collection[str]) -> list[str]:
    """Refuse an approval of a pause that does not exist: the run would pause again and not say why."""
    return [
        f"kubewin_upgrade_confirmed has {name!r}, expected canary, batch-1 or another batch, or a Node of this upgrade, as the paused "
        "run named it."
        for name in confirmed
        if name != "canary" and name not in nodes and not re.fullmatch(r"batch-[1-9][0-9]*", name)
    ]


def check_same_request(journal: Journal, desired: UpgradeRequest) -> None:
    """Refuse a name of an upgrade to another target or of other nodes: the run would continue that one."""
    began, requested = (
        f"hook {hook}, target {target.describe() or 'none'} and nodes {', '.join(sorted(nodes)) or 'all'}"
        for hook, target, nodes in (
            (journal.hook, journal.target, journal.only),
            (desired.hook, desired.target, desired.nodes),
        )
    )
    if began != requested:
        raise TaskError(
            f"upgrade {journal.name} began with {began}, requested is {requested}. "
            + ("It is finished; give" if journal.state == "finished" else "Continue it with the same options, or give")
            + " the new one a name of its own (kubewin_upgrade_name).",
            "refused",
        )


def resume(
    journal: Journal, desired: UpgradeRequest, observed: UpgradeObservation, confirmed: Sequence[str]
) -> Journal:
    """Return the journal as this run continues it: failed nodes are retried at their step."""
    check_same_request(journal, desired)
    if problems := _check_approvals(confirmed, [*(entry.node for entry in journal.nodes), *observed.nodes]):
        raise TaskError("\n".join(problems), "refused")
    current_time = observed.current_time
    journal = replace(
        journal,
        generation=journal.generation + 1,
        state="open",
        why="",
        due=(),
        approval="",
        stopping=None,
        held_since="",
    )
    for entry in journal.nodes:
        if entry.failed or entry.under_way:
            retried = (
                entry.move_to("hook", current_time)
                if _needs_tasks_again(journal, entry, observed.nodes.get(entry.node))
                else entry
            )
            journal = journal.put(replace(retried, failed="", why="", began=format_time(current_time)), current_time)
    for name in find_left_cordoned(journal, observed.nodes):
        uncordoned = journal.find_entry(name).move_to("workloads", current_time, "cordoned again after it was done")
        journal = journal.put(replace(uncordoned, began=format_time(current_time)), current_time)
    for name in confirmed:
        if name not in journal.confirmed:
            journal = replace(journal, confirmed={**journal.confirmed, name: format_time(current_time)}).add_event(
                f"{name} was approved", current_time
            )
    journal = add_new_nodes(journal, desired, observed)
    if problems := _check_pauses(desired, [entry.node for entry in journal.nodes]):
        raise TaskError("\n".join(problems), "refused")
    return journal


def _needs_tasks_again(journal: Journal, entry: NodeEntry, node: UpgradeNode | None) -> bool:
    """Whether the tasks succeeded and the node is Ready but unchanged, so that waiting longer does not help."""
    is_unchanged = node is not None and node.ready and not is_at_least(node.kubelet, journal.target.kubelet)
    return journal.hook == "tasks" and entry.step == "wait_ready" and bool(entry.failed) and is_unchanged


def add_new_nodes(journal: Journal, desired: UpgradeRequest, observed: UpgradeObservation) -> Journal:
    """Add Nodes that joined since: they come last, one by one, unless the nodes were named."""
    if desired.nodes:
        return journal
    node_names = {entry.node for entry in journal.nodes}
    last = max(entry.batch for entry in journal.nodes)
    joined = [observed.nodes[name] for name in sorted(observed.nodes) if name not in node_names]
    for number, node in enumerate(joined, last + 1):
        entry = NodeEntry(node.name, number, kubelet=node.kubelet, wmco=node.version)
        journal = replace(journal, nodes=(*journal.nodes, entry)).add_event(
            f"{node.name} joined the cluster", observed.current_time
        )
    return journal


def plan_batches(journal: Journal, nodes: Collection[str]) -> list[list[str]]:
    """Return the unfinished nodes among these, batch by batch.

    TaskError refused if a node in progress, or the canary, is not among them.
    """
    unfinished = [entry for entry in journal.nodes if entry.step != "done"]
    # A node that has its target release needs no tasks, and so no host.
    begun = [entry.node for entry in unfinished if entry.under_way and not entry.by_itself and entry.node not in nodes]
    if begun:
        raise TaskError(
            f"Node {', '.join(begun)}: in progress and without a host in this run, expected one host for each. Add its "
            "host to the inventory or to --limit, or repair the host if it could not be read.",
            "refused",
        )
    canary = [
        entry.node for entry in unfinished if entry.batch == 0 and not entry.by_itself and entry.node not in nodes
    ]
    if canary:
        raise TaskError(
            f"Node {', '.join(canary)}: the canary of upgrade {journal.name}, without a host in this run, expected one. Add "
            "its host to the inventory or to --limit, or name another canary (kubewin_upgrade_canary).",
            "refused",
        )
    numbers = dict.fromkeys(entry.batch for entry in unfinished if entry.node in nodes)
    return [[entry.node for entry in unfinished if entry.batch == number and entry.node in nodes] for number in numbers]


def check_batch(journal: Journal, batch: Collection[str]) -> None:
    """Refuse to begin nodes before those that began earlier, or before the canary. TaskError refused."""
    unknown = sorted(set(batch) - {entry.node for entry in journal.nodes})
    if unknown:
        raise TaskError(
            f"Node {', '.join(unknown)}: not in upgrade {journal.name}, expected one of "
            f"{', '.join(entry.node for entry in journal.nodes)}. Leave its host out.",
            "refused",
        )
    begun = [
        entry.node for entry in journal.nodes if entry.step == "hook" and entry.under_way and entry.node not in batch
    ]
    if begun:
        raise TaskError(
            f"Node {', '.join(begun)}: its tasks did not end, expected that before Node {', '.join(batch)}. Check its host, "
            "then run again.",
            "refused",
        )
    canary = [entry.node for entry in journal.nodes if entry.batch == 0 and entry.step == "waiting"]
    if not set(canary) <= set(batch):
        raise TaskError(
            f"Node {', '.join(batch)}: begun before the canary {', '.join(canary)}, expected the canary first. Begin with "
            "the canary's host.",
            "refused",
        )


_FAILED: Mapping[DelegatedStep, tuple[str, str]] = {
    "hook": ("CSI-U07", "fix what the tasks report; the next run runs them again for this node"),
    "gate": ("CSI-U05", "fix what the node lacks (run enable_csi), then run again"),
    "verify": ("CSI-U06", "fix what the verification reports, then run again; the node stays cordoned"),
}


def record_results(
    journal: Journal, kind: DelegatedStep, results: Mapping[str, str], current_time: datetime
) -> Journal:
    """Record the results of a delegated step. results: by node why it failed, empty if it succeeded."""
    for node, why in results.items():
        entry = journal.find_entry(node)
        if entry.step != kind:
            raise TaskError(f"{kind} of {node} was not requested: it is at step {entry.step}", "refused")
        if why:
            finding, remedy = _FAILED[kind]
            journal = fail(journal, node, finding, why, remedy, current_time)
            continue
        # External time is not the node's: the nodes of a batch are returned one by one, and tasks may take longer than a budget.
        following = entry.move_to(journal.find_next_step(kind), current_time)
        journal = journal.put(replace(following, began=format_time(current_time)), current_time)
    return journal


def record_delegation(journal: Journal, kind: DelegatedStep, nodes: Sequence[str], current_time: datetime) -> Journal:
    """Record that a delegated step begins: its tasks may have run from here on."""
    for node in nodes:
        entry = journal.find_entry(node)
        tries = entry.tries + 1 if kind == "hook" else entry.tries
        journal = journal.put(replace(entry, tries=tries), current_time)
    return journal
