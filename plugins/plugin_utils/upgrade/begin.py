# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begins an upgrade, takes one over, and records the results of external steps. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.target import CurrentReleases, find_impossible_targets
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import is_at_least, parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.order import batches, wrong
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import Delegated, fail, left_cordoned, reached
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import NodeNow, Observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    Hook,
    Journal,
    NodeEntry,
    Target,
    stamp,
)


class RefusedError(ValueError):
    """An upgrade cannot begin or continue as requested."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. nodes: empty for all. canary: empty for the node with the fewest volumes. batches: sizes.

    pause: where an approval is required: "canary", "batches", or Nodes. cluster: an id of it, empty when it is not known.
    unproven_canary: where nothing can be proven before (WMCO without csi-proxy), a node without volumes may go first.
    """

    name: str
    hook: Hook
    target: Target = field(default_factory=Target)
    nodes: tuple[str, ...] = ()
    canary: str = ""
    batches: tuple[str, ...] = ("1",)
    unproven_canary: bool = False
    pause: tuple[str, ...] = ()
    cluster: str = ""


def begin(desired: Request, observed: Observation, confirmed: Sequence[str] = ()) -> Journal:
    """The journal of an upgrade that nothing was done for yet. Raises RefusedError with every blocker."""
    problems = [
        f"Node {name} is not a Windows node of this cluster, expected one of {', '.join(sorted(observed.nodes)) or 'none'}."
        for name in (*desired.nodes, *([desired.canary] if desired.canary else []))
        if name not in observed.nodes
    ]
    problems += [*_no_pauses(desired, observed.nodes), *_check_approvals(confirmed, observed.nodes)]
    for size in wrong(desired.batches):
        problems.append(f"batch size is {size!r}, expected a number above 0 or a percentage.")
    chosen = [
        observed.nodes[name]
        for name in dict.fromkeys(desired.nodes or sorted(observed.nodes))
        if name in observed.nodes
    ]
    if not chosen and not problems:
        problems.append("this cluster has no Windows node.")
    if chosen and not problems:
        problems += [finding.line() for finding in _impossible(desired, chosen, observed)]
    if desired.hook == "wmco":
        problems += [finding.line() for finding in wmco.blockers(chosen, desired.target, desired.unproven_canary)]
    if problems:
        raise RefusedError("\n".join(problems))
    unproven = desired.hook == "wmco" and not wmco.way(chosen, desired.target).proof_first
    order = [node.name for node in sorted(chosen, key=lambda node: _rank(node, desired, unproven))]
    made = [
        NodeEntry(node, number, kubelet=observed.nodes[node].kubelet, wmco=observed.nodes[node].version)
        for number, batch in enumerate(batches(order, desired.batches))
        for node in batch
    ]
    return Journal(
        name=desired.name,
        hook=desired.hook,
        target=desired.target,
        began=stamp(observed.now),
        nodes=tuple(made),
        only=desired.nodes,
        cluster=desired.cluster,
    )


def _impossible(desired: Request, chosen: Sequence[NodeNow], observed: Observation) -> Iterator[Finding]:
    """Why the target cannot be reached. Releases of WMCO are evaluated with its hook."""
    target, cluster = desired.target, observed.cluster
    openshift = None if cluster is None or cluster.is_openshift is None else cluster.openshift
    if cluster is not None and cluster.is_openshift and not openshift:
        # Its first update is not complete.
        openshift = None
    versions = (node.version for node in chosen if node.version)
    wmco_now = max(versions, key=lambda text: parse(text).release, default=None)
    asked = {"kubernetes": target.kubelet, "openshift": target.openshift}
    if desired.hook != "wmco":
        asked["wmco"] = target.wmco
    # An update of OpenShift that is still to come brings a later API server.
    api_server = "" if target.openshift else observed.api_server
    return find_impossible_targets(
        asked, CurrentReleases({node.name: node.kubelet for node in chosen}, openshift, wmco_now, api_server)
    )


def _rank(node: NodeNow, desired: Request, unproven: bool) -> tuple[bool, bool, bool, int, str]:
    """A node that has its target release goes first, since nothing is done to it; then the canary; the user's order, or the fewest volumes.

    unproven: the first node to change is upgraded before anything can be proven, so that it must have no volume.
    """
    given = (
        desired.nodes.index(node.name)
        if desired.nodes
        else len(node.attached) + sum(pod.volumes for pod in node.pods or ())
    )
    there, volumes = reached(node, desired.target), unproven and node.carries_volumes
    return not there, volumes, node.name != desired.canary, given, node.name


def _no_pauses(desired: Request, nodes: Collection[str]) -> list[str]:
    """Refuse a pause that never applies: the run would pass it without an approval."""
    return [
        f"kubewin_upgrade_pause has {name!r}, expected canary, batches, or a Node of this upgrade: {', '.join(sorted(nodes))}."
        for name in desired.pause
        if name not in ("canary", "batches") and name not in nodes
    ]


def _check_approvals(confirmed: Sequence[str], nodes: Collection[str]) -> list[str]:
    """Refuse an approval of a pause that does not exist: the run would pause again and not say why."""
    problems = []
    for name in confirmed:
        if name != "canary" and name not in nodes and not re.fullmatch(r"batch-[1-9][0-9]*", name):
            near = get_close_matches(name, ["canary", "batch-1", *sorted(nodes)], 1)
            problems.append(
                f"kubewin_upgrade_confirmed has {name!r}, expected canary, batch-1 or another batch, or a Node of this "
                f"upgrade, as the paused run named it." + (f" Did you mean {near[0]}?" if near else "")
            )
    return problems


def same(journal: Journal, desired: Request) -> None:
    """Refuse a name of an upgrade to another target, of other nodes or another cluster: the run would continue that one."""
    if journal.cluster and desired.cluster and journal.cluster != desired.cluster:
        raise RefusedError(
            f"the journal of upgrade {journal.name} is of another cluster: its kube-system has uid "
            f"{journal.cluster}, expected {desired.cluster}. Use another directory for each cluster "
            "(kubewin_output_dir)."
        )
    began, asked = (
        f"hook {hook}, target {target.text() or 'none'} and nodes {', '.join(sorted(nodes)) or 'all'}"
        for hook, target, nodes in (
            (journal.hook, journal.target, journal.only),
            (desired.hook, desired.target, desired.nodes),
        )
    )
    if began != asked:
        raise RefusedError(
            f"upgrade {journal.name} began with {began}, requested is {asked}. "
            + ("It is finished; give" if journal.state == "finished" else "Continue it with the same options, or give")
            + " the new one a name of its own (kubewin_upgrade_name)."
        )


def take_up(journal: Journal, desired: Request, observed: Observation, confirmed: Sequence[str]) -> Journal:
    """A begun upgrade that another run continues: failed nodes are retried at their step."""
    same(journal, desired)
    if problems := _check_approvals(confirmed, [*(entry.node for entry in journal.nodes), *observed.nodes]):
        raise RefusedError("\n".join(problems))
    now = observed.now
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
            again = entry.at("hook", now) if _did_nothing(journal, entry, observed.nodes.get(entry.node)) else entry
            journal = journal.put(replace(again, failed="", why="", began=stamp(now)), now)
    for name in left_cordoned(journal, observed.nodes):
        uncordoned = journal.entry(name).at("uncordon", now, "cordoned again after it was done")
        journal = journal.put(replace(uncordoned, began=stamp(now)), now)
    for name in confirmed:
        if name not in journal.confirmed:
            journal = replace(journal, confirmed={**journal.confirmed, name: stamp(now)}).note(
                f"{name} was approved", now
            )
    journal = enrol(journal, desired, observed)
    if problems := _no_pauses(desired, [entry.node for entry in journal.nodes]):
        raise RefusedError("\n".join(problems))
    return journal


def _did_nothing(journal: Journal, entry: NodeEntry, node: NodeNow | None) -> bool:
    """Whether the tasks succeeded and the node is Ready but unchanged: waiting longer does not help."""
    there = node is not None and node.ready and not is_at_least(node.kubelet, journal.target.kubelet)
    return journal.hook == "tasks" and entry.step == "back" and bool(entry.failed) and there


def enrol(journal: Journal, desired: Request, observed: Observation) -> Journal:
    """With Nodes that joined since: they come last, one by one, unless the nodes were named."""
    if desired.nodes:
        return journal
    known = {entry.node for entry in journal.nodes}
    last = max(entry.batch for entry in journal.nodes)
    joined = [observed.nodes[name] for name in sorted(observed.nodes) if name not in known]
    for number, node in enumerate(joined, last + 1):
        entry = NodeEntry(node.name, number, kubelet=node.kubelet, wmco=node.version)
        journal = replace(journal, nodes=(*journal.nodes, entry)).note(f"{node.name} joined the cluster", observed.now)
    return journal


def plan_batches(journal: Journal, nodes: Collection[str]) -> list[list[str]]:
    """The nodes of a run that upgrades these alone, batch by batch; none of a finished upgrade.

    RefusedError if a node in progress, or the canary, is not among them.
    """
    left = [entry for entry in journal.nodes if entry.step != "done"]
    # A node that has its target release needs no tasks, and so no host.
    begun = [entry.node for entry in left if entry.under_way and not entry.by_itself and entry.node not in nodes]
    if begun:
        raise RefusedError(
            f"Node {', '.join(begun)}: in progress and without a host in this run, expected one host for each. Add its "
            "host to the inventory or to --limit, or repair the host if it could not be read."
        )
    canary = [entry.node for entry in left if entry.batch == 0 and not entry.by_itself and entry.node not in nodes]
    if canary:
        raise RefusedError(
            f"Node {', '.join(canary)}: the canary of upgrade {journal.name}, without a host in this run, expected one. Add "
            "its host to the inventory or to --limit, or name another canary (kubewin_upgrade_canary)."
        )
    numbers = dict.fromkeys(entry.batch for entry in left if entry.node in nodes)
    return [[entry.node for entry in left if entry.batch == number and entry.node in nodes] for number in numbers]


def check_batch(journal: Journal, batch: Collection[str]) -> None:
    """Refuse to begin nodes before those that began earlier, or before the canary. RefusedError."""
    unknown = sorted(set(batch) - {entry.node for entry in journal.nodes})
    if unknown:
        raise RefusedError(
            f"Node {', '.join(unknown)}: not in upgrade {journal.name}, expected one of "
            f"{', '.join(entry.node for entry in journal.nodes)}. Leave its host out."
        )
    begun = [
        entry.node for entry in journal.nodes if entry.step == "hook" and entry.under_way and entry.node not in batch
    ]
    if begun:
        raise RefusedError(
            f"Node {', '.join(begun)}: its tasks did not end, expected that before Node {', '.join(batch)}. Check its host, "
            "then run again."
        )
    canary = [entry.node for entry in journal.nodes if entry.batch == 0 and entry.step == "waiting"]
    if not set(canary) <= set(batch):
        raise RefusedError(
            f"Node {', '.join(batch)}: begun before the canary {', '.join(canary)}, expected the canary first. Begin with "
            "the canary's host."
        )


_FAILED: Mapping[Delegated, tuple[str, str]] = {
    "hook": ("CSI-U07", "fix what the tasks report; the next run runs them again for this node"),
    "gate": ("CSI-U05", "fix what the node lacks (run enable_csi.yml), then run again"),
    "canary": ("CSI-U06", "fix what the verification reports, then run again; the node stays cordoned"),
}


def returned(journal: Journal, kind: Delegated, results: Mapping[str, str], now: datetime) -> Journal:
    """The result of an external step. results: by node why it failed, empty if it succeeded."""
    for node, why in results.items():
        entry = journal.entry(node)
        if entry.step != kind:
            raise RefusedError(f"{kind} of {node} was not requested: it is at step {entry.step}")
        if why:
            finding, remedy = _FAILED[kind]
            journal = fail(journal, node, finding, why, remedy, now)
            continue
        # External time is not the node's: the nodes of a batch are returned one by one, and tasks may take longer than a budget.
        following = entry.at(journal.following(kind), now)
        journal = journal.put(replace(following, began=stamp(now)), now)
    return journal


def delegated_to(journal: Journal, kind: Delegated, nodes: Sequence[str], now: datetime) -> Journal:
    """An external step begins: its tasks may have run from here on."""
    for node in nodes:
        entry = journal.entry(node)
        tries = entry.tries + 1 if kind == "hook" else entry.tries
        journal = journal.put(replace(entry, tries=tries), now)
    return journal
