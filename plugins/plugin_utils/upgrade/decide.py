# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next action of an upgrade, from its journal and an observation. Pure.

Every answer holds the journal to store before the answer is carried out: a run that is killed after that leaves a journal
that says what may have been done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import Awaited, spell
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import is_at_least
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import hours
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.drain import drain
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import ClusterNow, NodeNow, Observation, PlanNow
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.hours import Hours
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    DRAINING,
    Journal,
    NodeEntry,
    Step,
    Stopping,
    Target,
    Workload,
    stamp,
)

StopOn = Literal["cluster", "nodes", "workloads"]
Act = Literal["cordon", "evict", "allow", "uncordon"]
Delegated = Literal["hook", "gate", "canary"]

# The reason for a node that had not begun.
_ABSENT = "the Node does not exist; it is skipped"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user asked for.

    budget: seconds a node may take until an external step, and again after it. patience: seconds to wait for the
    cluster, for another node that is away, and for a window.
    pause: "canary", "batches", or nodes. stop_on: conditions outside the current node that stop the run. only: nodes that may
    start, None for all.
    """

    budget: float = 3600.0
    patience: float = 0.0
    pause: tuple[str, ...] = ()
    windows: tuple[Hours, ...] = ()
    stop_on: frozenset[StopOn] = frozenset({"cluster", "nodes", "workloads"})
    delete_unowned: bool = False
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Change an object of the cluster. pods: to evict."""

    kind: Act
    node: str
    journal: Journal
    pods: tuple[PodFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Delegate:
    """The caller runs a step: the user's tasks, the gate or the verification of a volume."""

    kind: Delegated
    nodes: tuple[str, ...]
    journal: Journal


@dataclass(frozen=True, slots=True)
class Wait:
    """Observe again soon."""

    what: tuple[Awaited, ...]
    journal: Journal


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing failed; the upgrade waits for an approval, a window or the cluster's own update."""

    why: str
    journal: Journal


@dataclass(frozen=True, slots=True)
class Stop:
    """A step failed, the journal says why; no node is in progress."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class Settled:
    """No node is in progress, and none of the others may start now (`Rules.only`)."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class Done:
    """Every node is finished."""

    journal: Journal


Decision: TypeAlias = "Do | Delegate | Wait | Pause | Stop | Settled | Done"


def decide(journal: Journal, observed: Observation, rules: Rules) -> Decision:
    """Decide the next step."""
    journal = notice(journal, observed)
    now, delegated, waits = observed.now, list[tuple[Delegated, str]](), list[Awaited]()
    for name in [entry.node for entry in journal.nodes]:
        entry = journal.entry(name)
        if not entry.under_way:
            continue
        found = _Node(journal, observed, rules, entry).decide()
        journal = found.journal
        if isinstance(found, Do):
            return found
        if isinstance(found, Delegate):
            delegated.append((found.kind, name))
        else:
            waits += found.what
    active = [entry for entry in journal.nodes if entry.under_way]
    # An external step may take long; nodes that are being drained are finished before it.
    if delegated and not any(entry.step in DRAINING for entry in active):
        kind = delegated[0][0]
        return Delegate(kind, tuple(name for what, name in delegated if what == kind), journal)
    if active:
        return Wait(tuple(waits), journal)
    if journal.stopping is not None:
        why = f"{journal.stopping.object}: {journal.stopping.message}"
        return Stop(replace(journal, state="stopped", why=why))
    return _next_batch(journal, observed, rules, now)


def next_batch(journal: Journal, only: frozenset[str] | None) -> list[NodeEntry]:
    """The nodes that start together next, of those that may start."""
    waiting = [entry for entry in journal.nodes if entry.step == "waiting" and (only is None or entry.node in only)]
    return [entry for entry in waiting if entry.batch == waiting[0].batch] if waiting else []


def whose_pods(journal: Journal, nodes: Mapping[str, NodeNow], only: frozenset[str] | None = None) -> set[str]:
    """Nodes whose pods the next decision needs. only: as of Rules."""
    chosen = {entry.node for entry in journal.nodes if entry.step in DRAINING or entry.step == "hook"}
    waiting = [entry for entry in journal.nodes if entry.step == "waiting"]
    if not any(entry.under_way for entry in journal.nodes):
        chosen |= {entry.node for entry in next_batch(journal, only)}
    begins = {entry.node for entry in waiting if entry.node in nodes and _begins(journal, entry, nodes[entry.node])}
    return (chosen | begins) & set(nodes)


def whose_return(journal: Journal) -> tuple[Workload, ...]:
    """Workloads that the next decision needs."""
    uncordoned = [entry for entry in journal.nodes if entry.step in ("uncordon", "workloads")]
    return tuple(dict.fromkeys(one for entry in uncordoned for one in entry.workloads))


def notice(journal: Journal, observed: Observation) -> Journal:
    """With what happened without us: nodes that changed, or began to change, by themselves, and nodes that went."""
    for name in [entry.node for entry in journal.nodes]:
        entry, node = journal.entry(name), observed.nodes.get(name)
        if entry.step == "done" and entry.why == _ABSENT and node is not None:
            # Clouds delete the Node of a machine that is off, and make it again.
            entry = entry.at("waiting", observed.now, "the Node exists again")
            journal = journal.put(entry, observed.now)
        if entry.step != "waiting" or entry.failed:
            continue
        if node is None:
            journal = journal.put(
                replace(entry.at("done", observed.now, _ABSENT), began=stamp(observed.now)), observed.now
            )
            continue
        if not _begins(journal, entry, node):
            continue
        began = replace(entry.begun(observed.now), by_itself=True, workloads=node.workloads)
        if journal.hook == "wmco":
            began = replace(began, why="WMCO began by itself; it is observed and verified")
        else:
            began = began.at("gate", observed.now, "it already has the target release; it is only verified")
        journal = journal.put(began, observed.now)
    return journal


def left_cordoned(journal: Journal, nodes: Mapping[str, NodeNow]) -> list[str]:
    """Finished nodes that still carry our cordon or taint: a suspended run wrote late, or the cluster was restored from a backup."""
    done = [entry.node for entry in journal.nodes if entry.step == "done" and entry.why != _ABSENT]
    return [name for name in done if name in nodes and _marked(journal, nodes[name])]


def _marked(journal: Journal, node: NodeNow) -> bool:
    """Also if a user removed the cordon but not the annotation: a later cordon of that user would be taken for ours."""
    return node.cordoned_for == journal.mark or node.tainted_for == journal.name


def _begins(journal: Journal, entry: NodeEntry, node: NodeNow) -> bool:
    """Whether a node has its target release, or is on its way: WMCO upgrades those without attached volumes at once, whatever the order."""
    moves = journal.hook == "wmco" and (node.upgrading or node.version != entry.wmco)
    return moves or reached(node, journal.target)


def reached(node: NodeNow, target: Target) -> bool:
    """Whether a node has become what it is to be; never without a target."""
    goals = [(node.kubelet, target.kubelet), (node.version, target.wmco)]
    return any(goal for _is, goal in goals) and all(is_at_least(is_now, goal) for is_now, goal in goals)


def away(journal: Journal, observed: Observation) -> dict[str, str]:
    """Windows nodes that cannot take pods, and not because of this upgrade; with the reason."""
    ours = {entry.node for entry in journal.nodes if entry.under_way or entry.failed}
    kept = {entry.node for entry in journal.nodes if entry.kept_cordoned}
    found = {}
    for name, node in sorted(observed.nodes.items()):
        if name in ours:
            continue
        if not node.ready:
            found[name] = f"not Ready ({node.not_ready_because})" if node.not_ready_because else "not Ready"
        elif node.cordoned and name not in kept:
            found[name] = f"cordoned ({node.cordoned_for})" if node.cordoned_for else "cordoned"
    return found


def _next_batch(journal: Journal, observed: Observation, rules: Rules, now: datetime) -> Decision:
    if all(entry.step != "waiting" for entry in journal.nodes):
        return Done(replace(journal, state="finished", why="", held_since=""))
    batch = next_batch(journal, rules.only)
    if not batch:
        return Settled(journal)
    if observed.cluster is None:
        return Wait((), journal)
    held = _held(journal, batch, observed, observed.cluster, rules)
    if isinstance(held, str):
        since = parse_time(journal.held_since)
        if since is None:
            journal = replace(journal, held_since=stamp(now)).note(held, now)
        elif (now - since).total_seconds() > rules.patience:
            return Pause(held, replace(journal, state="paused", why=held, held_since=""))
        return Wait((_awaited(held, since, now, rules.patience),), replace(journal, why=held))
    if held is not None:
        since = parse_time(journal.held_since)
        if held.id == "CSI-U02" and (since is None or (now - since).total_seconds() <= rules.patience):
            journal = journal if since else replace(journal, held_since=stamp(now))
            return Wait((_awaited(f"{held.object}: {held.message}", since, now, rules.patience),), journal)
        return Stop(
            replace(journal, stopping=held, state="stopped", why=f"{held.object}: {held.message}", held_since="")
        )
    for name in _pauses(journal, batch, rules):
        if name not in journal.confirmed:
            why = (
                f"before {', '.join(entry.node for entry in batch)} an approval is required (kubewin_upgrade_pause). "
                f"To continue, run again with kubewin_upgrade_confirmed={name}"
            )
            return Pause(why, replace(journal, state="paused", why=why, held_since="", approval=name))
    if any(observed.nodes[entry.node].pods is None for entry in batch):
        return Wait((), journal)
    journal = replace(journal, state="open", why="", held_since="")
    for entry in batch:
        journal = journal.put(replace(entry.begun(now), workloads=observed.nodes[entry.node].workloads), now)
    return decide(journal, observed, rules)


def _awaited(what: str, since: datetime | None, now: datetime, limit: float) -> Awaited:
    return Awaited(what, (now - since).total_seconds() if since else 0.0, limit)


def _held(
    journal: Journal, batch: list[NodeEntry], observed: Observation, cluster: ClusterNow, rules: Rules
) -> str | Stopping | None:
    """What keeps the next batch from beginning: words where that passes by itself, a finding where it does not."""
    target = journal.target
    if cluster.failing and "cluster" in rules.stop_on:
        return Stopping(
            "CSI-U11",
            "ClusterVersion",
            f"its update fails: {cluster.failing}",
            "repair the cluster's update (oc adm upgrade), then run again",
        )
    if target.openshift and not is_at_least(cluster.openshift, target.openshift):
        return (
            f"OpenShift is {cluster.openshift or 'unknown'}, expected {target.openshift} before its nodes. Start its "
            "update and run again; a higher kubewin_upgrade_patience waits for it"
        )
    if journal.hook == "wmco" and not is_at_least(cluster.wmco, target.wmco):
        return (
            f"WMCO is {cluster.wmco or 'unknown'}, expected {target.wmco}: "
            f"{_install(cluster.plans, target)}, and run again; a higher kubewin_upgrade_patience waits for it"
        )
    others = away(journal, observed)
    for entry in batch:
        others.pop(entry.node, None)
    if others and "nodes" in rules.stop_on:
        detail = "; ".join(f"{name} is {why}" for name, why in others.items())
        return Stopping(
            "CSI-U02", f"Node {next(iter(others))}", f"{detail}; no further node is upgraded meanwhile",
            "repair or uncordon it, or remove nodes from kubewin_upgrade_stop_on",
        )  # fmt: skip
    open_for = hours.left(rules.windows, observed.now)
    if open_for is None:
        return "no maintenance window is open (kubewin_upgrade_windows)"
    # The nodes of a batch are changed one after the other.
    needed = rules.budget * len(batch)
    if rules.windows and open_for < timedelta(seconds=needed):
        batch_text = "a node" if len(batch) == 1 else f"the {len(batch)} nodes of the next batch"
        return (
            f"the maintenance window closes at {stamp(observed.now + open_for)}, and {batch_text} may take {spell(needed)} "
            "(kubewin_upgrade_node_timeout)"
        )
    return None


def _install(plans: tuple[PlanNow, ...], target: Target) -> str:
    """The next node until WMCO has the target release."""
    fit = [plan for plan in plans if any(is_at_least(release, target.wmco) for release in plan.releases)]
    approved = [plan for plan in fit if plan.approved]
    if approved:
        plan = approved[-1]
        phase = f", its phase is {plan.phase}" if plan.phase else ""
        return f"InstallPlan {plan.name} is approved{phase}; wait until OLM has installed it"
    named = f" ({', '.join(plan.name for plan in fit)})" if fit else ""
    return f"all earlier nodes are verified: approve its InstallPlan now{named}"


def _pauses(journal: Journal, batch: list[NodeEntry], rules: Rules) -> list[str]:
    number = batch[0].batch
    found = [entry.node for entry in batch if entry.node in rules.pause]
    if number >= 1 and "canary" in rules.pause and "canary" not in journal.confirmed:
        found.append("canary")
    if number >= 1 and "batches" in rules.pause:
        found.append(f"batch-{number}")
    return found


@dataclass(frozen=True, slots=True)
class _Node:
    """One node's next thing. decide answers with Do, Hand or Wait."""

    journal: Journal
    observed: Observation
    rules: Rules
    entry: NodeEntry

    def decide(self) -> Do | Delegate | Wait:
        entry, node = self.entry, self.observed.nodes.get(self.entry.node)
        if entry.untouched and (entry.failed or (self.journal.stopping and not entry.by_itself)):
            return self._give_back(node)
        if entry.step == "hook":
            return self._hook(node)
        if entry.step == "back":
            return self._back(node)
        if node is None:
            return self._failed("CSI-U10", "the Node was deleted during its upgrade", "restore it, then run again")
        return {
            "cordon": self._cordon,
            "drain": self._drain,
            "allow": self._allow,
            "gate": self._gate,
            "canary": lambda _node: self._delegate("canary"),
            "uncordon": self._uncordon,
            "workloads": self._workloads,
        }[entry.step](node)

    # The steps

    def _cordon(self, node: NodeNow) -> Do | Delegate | Wait:
        mine = node.cordoned_for == self.journal.mark
        if self.journal.hook == "wmco":
            return self._moved("back" if self.entry.by_itself else "allow") if node.tainted else self._do("cordon")
        if node.cordoned and not mine:
            kept = replace(self.entry, kept_cordoned=True).at(
                "drain", self.observed.now, "cordoned by another user, and stays cordoned"
            )
            return self._put(kept).decide()
        return self._moved("drain") if node.cordoned else self._do("cordon")

    def _drain(self, node: NodeNow) -> Do | Delegate | Wait:
        if not node.cordoned:
            # Another user uncordoned the node, so its pods would be scheduled there again.
            return self._moved("cordon")
        if node.pods is None:
            return self._wait("its pods are being read")
        found = drain(node.pods, self.observed.refused, self.observed.now, delete_unowned=self.rules.delete_unowned)
        if found.never:
            return self._failed("CSI-U03", "; ".join(found.never), "check its log, then run again")
        if not found.left:
            return self._moved(self.journal.following("drain"))
        detail = "; ".join(found.blocked) or f"{len(found.left)} pods are terminating"
        if self._late:
            remedy = "end these pods, or raise kubewin_upgrade_node_timeout; then run again"
            return self._failed("CSI-U03", f"not drained after {self.rules.budget:.0f} s: {detail}", remedy)
        fresh = tuple(
            pod for pod in found.evict if pod.uid not in self.observed.refused or pod.uid in self.observed.again
        )
        if fresh:
            return Do("evict", self.entry.node, self.journal, fresh)
        return self._wait(detail)

    def _allow(self, node: NodeNow) -> Do | Delegate | Wait:
        if node.allowed or node.upgrading:
            return self._moved("back")
        return self._do("allow")

    def _hook(self, node: NodeNow | None) -> Do | Delegate | Wait:
        """Whatever happened since it was emptied: nothing is changed under workloads. Without a Node there are none."""
        if node is None:
            return self._delegate("hook")
        if not node.cordoned:
            return self._moved("cordon", "another user uncordoned it; it is cordoned and drained again")
        if node.pods is None:
            return self._wait("its pods are being read")
        if drain(node.pods, {}, self.observed.now, delete_unowned=True).left:
            return self._moved("drain", "new pods run there")
        return self._delegate("hook")

    def _back(self, node: NodeNow | None) -> Do | Delegate | Wait:
        if node is not None and not node.cordoned and self.journal.hook != "wmco" and not self._late:
            # A Node that was made anew, or that its upgrade opened: nothing goes there before a volume is proven on it.
            return self._do("cordon")
        missing = self._not_back(node)
        if missing and self._late:
            remedy = "check the node and what upgrades it, then run again, or raise kubewin_upgrade_node_timeout"
            return self._failed("CSI-U04", f"not ready after {self.rules.budget:.0f} s: {missing}", remedy)
        return self._wait(missing) if missing else self._moved("gate")

    def _not_back(self, node: NodeNow | None) -> str:
        target = self.journal.target
        if node is None:
            return "the Node does not exist"
        if self.journal.hook == "wmco":
            if node.upgrading:
                return "WMCO upgrades it"
            if not is_at_least(node.version, target.wmco):
                return f"WMCO has not upgraded it yet (version {node.version or 'none'}, expected {target.wmco})" + (
                    "; it reports that the upgrade is blocked" if node.blocked else ""
                )
            if node.desired and node.desired != node.version:
                return f"WMCO is changing it to {node.desired}"
            if node.cordoned and not node.cordoned_for and not self.entry.kept_cordoned:
                return "WMCO has not uncordoned it yet"
        if not node.ready:
            return f"not Ready ({node.not_ready_because or 'no reason reported'})"
        if not is_at_least(node.kubelet, target.kubelet):
            return f"its kubelet is {node.kubelet}, expected {target.kubelet}"
        return ""

    def _gate(self, node: NodeNow) -> Do | Delegate | Wait:
        if node.in_tree and (self.journal.hook == "wmco" or self.journal.target.kubelet):
            listed = ", ".join(node.in_tree[:3])
            return self._failed(
                "CSI-U09", f"volumes are attached there in-tree, which the upgraded node does not support: {listed}",
                "delete the pods that use them there, wait until they are detached, then run again",
            )  # fmt: skip
        return self._delegate("gate")

    def _uncordon(self, node: NodeNow) -> Do | Delegate | Wait:
        if self.holds_cordon(node):
            return self._do("uncordon")
        return self._moved("workloads")

    def holds_cordon(self, node: NodeNow) -> bool:
        """Whether something of ours keeps workloads away, or a label of WMCO would let its next upgrade begin unasked."""
        return (
            _marked(self.journal, node)
            or node.tainted
            or (self.journal.hook == "wmco" and node.allowed and self.entry.step == "uncordon")
        )

    def _workloads(self, node: NodeNow) -> Do | Delegate | Wait:
        missing = [detail for one in self.entry.workloads if (detail := self._not_there(one))]
        if node.in_tree and (self.journal.hook == "wmco" or self.journal.target.kubelet):
            missing.append(f"attached in-tree: {', '.join(node.in_tree[:3])}")
        if missing and not self._late:
            return self._wait("; ".join(missing))
        if missing and "workloads" in self.rules.stop_on:
            return self._failed(
                "CSI-U08", f"not ready after {self.rules.budget:.0f} s: {'; '.join(missing)}",
                "check these pods; if the node is not the cause, run again, or remove workloads from kubewin_upgrade_stop_on",
            )  # fmt: skip
        return self._put(self.entry.at("done", self.observed.now, "; ".join(missing)))._settled()

    def _not_there(self, workload: Workload) -> str:
        now = self.observed.workloads.get(workload)
        if now is None:
            return f"{workload.title} was not read yet"
        expected = min(workload.ready, now.replicas)
        if now.ready >= expected:
            return ""
        return f"{workload.title} has {now.ready} of {expected} pods Ready" + (f" ({now.why})" if now.why else "")

    # What they are made of

    @property
    def _late(self) -> bool:
        began = parse_time(self.entry.began)
        return began is not None and (self.observed.now - began).total_seconds() > self.rules.budget

    def _put(self, entry: NodeEntry) -> _Node:
        return replace(self, entry=entry, journal=self.journal.put(entry, self.observed.now))

    def _moved(self, step: Step, why: str = "") -> Do | Delegate | Wait:
        return self._put(self.entry.at(step, self.observed.now, why)).decide()

    def _do(self, kind: Act) -> Do:
        return Do(kind, self.entry.node, self.journal)

    def _delegate(self, kind: Delegated) -> Delegate:
        return Delegate(kind, (self.entry.node,), self.journal)

    def _wait(self, why: str) -> Wait:
        entry = replace(self.entry, why=why)
        awaited = _awaited(f"{entry.node}: {why}", parse_time(entry.began), self.observed.now, self.rules.budget)
        return Wait((awaited,), self.journal.put(entry, self.observed.now))

    def _settled(self) -> Wait:
        return Wait((), self.journal)

    def _give_back(self, node: NodeNow | None) -> Do | Delegate | Wait:
        """Nothing was done to the node yet: as it was before, it serves best."""
        if node is not None and self.holds_cordon(node):
            return self._do("uncordon")
        why = self.entry.why if self.entry.failed else "released unchanged, because another node failed"
        return self._put(self.entry.at("waiting", self.observed.now, why))._settled()

    def _failed(self, finding: str, message: str, remedy: str) -> Do | Delegate | Wait:
        failed = fail(self.journal, self.entry.node, finding, message, remedy, self.observed.now)
        after = replace(self, entry=failed.entry(self.entry.node), journal=failed)
        return after.decide() if after.entry.under_way else after._settled()


def fail(journal: Journal, node: str, finding: str, message: str, remedy: str, now: datetime) -> Journal:
    """A node failed: it is described, and nothing new begins."""
    entry = replace(journal.entry(node), failed=finding, why=message)
    stopping = journal.stopping or Stopping(finding, f"Node {node}", message, remedy)
    return replace(journal.put(entry, now), stopping=stopping)
