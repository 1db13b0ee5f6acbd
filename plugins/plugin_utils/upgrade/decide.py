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

from ..base.findings import Finding, blocker
from ..base.waiting import WaitCondition, spell
from ..catalog.versions import is_at_least
from ..kube.pod import PodFacts
from ..kube.times import parse_time
from . import maintenance_windows
from .drain import plan_drain
from .journal import DRAINING, Journal, NodeEntry, State, UpgradeStep, UpgradeTarget, UpgradeWorkload, format_time
from .maintenance_windows import MaintenanceWindow
from .observation import ClusterState, UpgradeNode, UpgradeObservation

StopOn = Literal["cluster", "nodes", "workloads"]
ChangeKind = Literal["cordon", "evict", "allow", "uncordon"]
DelegatedStep = Literal["hook", "gate", "verify"]

# The reason for a node that had not begun.
_ABSENT = "the Node does not exist; it is skipped"


@dataclass(frozen=True, slots=True)
class UpgradeRules:
    """Options of an upgrade.

    budget: seconds a node may take until an external step, and again after it. wait_timeout: seconds to wait for the
    cluster, for another node that is away, and for a window.
    pause: "canary", "batches", or nodes. stop_on: conditions outside the current node that stop the run. only: nodes that may
    start, None for all.
    """

    budget: float = 3600.0
    wait_timeout: float = 0.0
    pause: tuple[str, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    stop_on: frozenset[StopOn] = frozenset({"cluster", "nodes", "workloads"})
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ChangeObject:
    """Change an object of the cluster. pods: to evict."""

    kind: ChangeKind
    node: str
    journal: Journal
    pods: tuple[PodFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class DelegateStep:
    """The caller runs a step: the user's tasks, the gate or the verification of a volume."""

    kind: DelegatedStep
    nodes: tuple[str, ...]
    journal: Journal


@dataclass(frozen=True, slots=True)
class ObserveAgain:
    """Wait for these conditions, then observe again."""

    conditions: tuple[WaitCondition, ...]
    journal: Journal


@dataclass(frozen=True, slots=True)
class EndRun:
    """No node is in progress, and none may start now. state of the journal: open if others may (`UpgradeRules.only`)."""

    journal: Journal


Decision: TypeAlias = "ChangeObject | DelegateStep | ObserveAgain | EndRun"


def decide(journal: Journal, observed: UpgradeObservation, rules: UpgradeRules) -> Decision:
    journal = record_external_changes(journal, observed)
    current_time, delegated, waits = observed.current_time, list[tuple[DelegatedStep, str]](), list[WaitCondition]()
    for name in [entry.node for entry in journal.nodes]:
        entry = journal.find_entry(name)
        if not entry.under_way:
            continue
        decision = _NodeDecider(journal, observed, rules, entry).decide()
        journal = decision.journal
        if isinstance(decision, ChangeObject):
            return decision
        if isinstance(decision, DelegateStep):
            delegated.append((decision.kind, name))
        else:
            waits += decision.conditions
    active = [entry for entry in journal.nodes if entry.under_way]
    # An external step may take long; nodes that are being drained are finished before it.
    if delegated and not any(entry.step in DRAINING for entry in active):
        kind = delegated[0][0]
        return DelegateStep(kind, tuple(name for step, name in delegated if step == kind), journal)
    if active:
        return ObserveAgain(tuple(waits), journal)
    if journal.stopping is not None:
        why = f"{journal.stopping.object}: {journal.stopping.message}"
        return EndRun(replace(journal, state="stopped", why=why))
    return _begin_next_batch(journal, observed, rules, current_time)


def select_next_batch(journal: Journal, only: frozenset[str] | None) -> list[NodeEntry]:
    """Return the nodes that start together next, of those that may start."""
    waiting = [entry for entry in journal.nodes if entry.step == "waiting" and (only is None or entry.node in only)]
    return [entry for entry in waiting if entry.batch == waiting[0].batch] if waiting else []


def select_nodes_to_read(journal: Journal, nodes: Mapping[str, UpgradeNode], only: frozenset[str] | None) -> set[str]:
    """Return the nodes whose pods the next decision needs. only: as of UpgradeRules."""
    chosen = {entry.node for entry in journal.nodes if entry.step in DRAINING or entry.step == "hook"}
    waiting = [entry for entry in journal.nodes if entry.step == "waiting"]
    if not any(entry.under_way for entry in journal.nodes):
        chosen |= {entry.node for entry in select_next_batch(journal, only)}
    begins = {entry.node for entry in waiting if entry.node in nodes and _has_begun(journal, entry, nodes[entry.node])}
    return (chosen | begins) & set(nodes)


def select_workloads_to_read(journal: Journal) -> tuple[UpgradeWorkload, ...]:
    waiting = [entry for entry in journal.nodes if entry.step == "workloads"]
    return tuple(dict.fromkeys(workload for entry in waiting for workload in entry.workloads))


def record_external_changes(journal: Journal, observed: UpgradeObservation) -> Journal:
    """Record nodes that another client changed or deleted."""
    for name in [entry.node for entry in journal.nodes]:
        entry, node = journal.find_entry(name), observed.nodes.get(name)
        if entry.step == "done" and entry.why == _ABSENT and node is not None:
            # Clouds delete the Node of a machine that is off, and make it again.
            entry = entry.move_to("waiting", observed.current_time, "the Node exists again")
            journal = journal.put(entry, observed.current_time)
        if entry.step != "waiting" or entry.failed:
            continue
        if node is None:
            journal = journal.put(
                replace(
                    entry.move_to("done", observed.current_time, _ABSENT), began=format_time(observed.current_time)
                ),
                observed.current_time,
            )
            continue
        if not _has_begun(journal, entry, node):
            continue
        began = replace(entry.start(observed.current_time), by_itself=True, workloads=node.workloads)
        if journal.hook == "wmco":
            began = replace(began, why="WMCO began by itself; it is observed and verified")
        else:
            began = began.move_to(
                "gate", observed.current_time, "it already has the target release; it is only verified"
            )
        journal = journal.put(began, observed.current_time)
    return journal


def find_left_cordoned(journal: Journal, nodes: Mapping[str, UpgradeNode]) -> list[str]:
    """Return finished nodes that still carry our cordon or taint: a suspended run wrote late, or the cluster was restored from a backup."""
    done = [entry.node for entry in journal.nodes if entry.step == "done" and entry.why != _ABSENT]
    return [name for name in done if name in nodes and _has_our_mark(journal, nodes[name])]


def _has_our_mark(journal: Journal, node: UpgradeNode) -> bool:
    """Whether a node has our cordon, or the annotation of one that a user lifted, or our taint."""
    return node.cordoned_for == journal.mark or node.tainted_for == journal.name


def _has_begun(journal: Journal, entry: NodeEntry, node: UpgradeNode) -> bool:
    """Whether a node has its target release or is being upgraded: WMCO upgrades those without attached volumes at once, whatever the order."""
    moves = journal.hook == "wmco" and (node.upgrading or node.version != entry.wmco)
    return moves or has_reached(node, journal.target)


def has_reached(node: UpgradeNode, target: UpgradeTarget) -> bool:
    """Whether a node has every target release; never without a target."""
    goals = [(node.kubelet, target.kubelet), (node.version, target.wmco)]
    return any(goal for _is, goal in goals) and all(is_at_least(is_now, goal) for is_now, goal in goals)


def find_unavailable_nodes(journal: Journal, observed: UpgradeObservation) -> dict[str, str]:
    """Return Windows nodes that cannot take pods for another reason than this upgrade, with the reason."""
    own_nodes = {entry.node for entry in journal.nodes if entry.under_way or entry.failed}
    kept = {entry.node for entry in journal.nodes if entry.kept_cordoned}
    reasons = {}
    for name, node in sorted(observed.nodes.items()):
        if name in own_nodes:
            continue
        if not node.ready:
            reasons[name] = f"not Ready ({node.not_ready_because})" if node.not_ready_because else "not Ready"
        elif node.cordoned and name not in kept:
            reasons[name] = f"cordoned ({node.cordoned_for})" if node.cordoned_for else "cordoned"
    return reasons


def _begin_next_batch(
    journal: Journal, observed: UpgradeObservation, rules: UpgradeRules, current_time: datetime
) -> Decision:
    if all(entry.step != "waiting" for entry in journal.nodes):
        return EndRun(replace(journal, state="finished", why="", held_since=""))
    batch = select_next_batch(journal, rules.only)
    if not batch:
        return EndRun(journal)
    if observed.cluster is None:
        return ObserveAgain((), journal)
    hold = _find_hold(journal, batch, observed, observed.cluster, rules)
    if hold is not None:
        return _hold_batch(journal, hold, rules.wait_timeout, current_time)
    for name in _list_pauses(journal, batch, rules):
        if name not in journal.confirmed:
            why = (
                f"before {', '.join(entry.node for entry in batch)} an approval is required (kubewin_upgrade_pause). "
                f"To continue, run again with kubewin_upgrade_confirmed={name}"
            )
            return EndRun(replace(journal, state="paused", why=why, held_since="", approval=name))
    if any(observed.nodes[entry.node].pods is None for entry in batch):
        return ObserveAgain((), journal)
    journal = replace(journal, state="open", why="", held_since="")
    for entry in batch:
        journal = journal.put(
            replace(entry.start(current_time), workloads=observed.nodes[entry.node].workloads), current_time
        )
    return decide(journal, observed, rules)


def _hold_batch(journal: Journal, hold: _Hold, wait_timeout: float, current_time: datetime) -> ObserveAgain | EndRun:
    since = parse_time(journal.held_since)
    awaited = _build_awaited(hold.why, since, current_time, wait_timeout)
    if hold.may_pass and awaited.waited <= wait_timeout:
        if since is None:
            journal = replace(journal, held_since=format_time(current_time)).add_event(hold.why, current_time)
        return ObserveAgain((awaited,), replace(journal, why=hold.why))
    state: State = "paused" if hold.stopping is None else "stopped"
    return EndRun(replace(journal, stopping=hold.stopping, state=state, why=hold.why, held_since=""))


def _build_awaited(condition: str, since: datetime | None, current_time: datetime, limit: float) -> WaitCondition:
    return WaitCondition(condition, (current_time - since).total_seconds() if since else 0.0, limit)


@dataclass(frozen=True, slots=True)
class _Hold:
    """Why the next batch does not begin. stopping: a finding that stops the upgrade; without one it pauses. may_pass: it waits before that."""

    why: str
    stopping: Finding | None = None
    may_pass: bool = True

    @classmethod
    def from_finding(cls, finding: Finding, *, may_pass: bool) -> _Hold:
        return cls(f"{finding.object}: {finding.message}", finding, may_pass)


def _find_hold(
    journal: Journal, batch: list[NodeEntry], observed: UpgradeObservation, cluster: ClusterState, rules: UpgradeRules
) -> _Hold | None:
    target = journal.target
    if cluster.failing and "cluster" in rules.stop_on:
        finding = blocker(
            "CSI-U11",
            "ClusterVersion",
            f"its update fails: {cluster.failing}",
            "repair the cluster's update (oc adm upgrade), then run again",
        )
        return _Hold.from_finding(finding, may_pass=False)
    if target.openshift and not is_at_least(cluster.openshift, target.openshift):
        return _Hold(
            f"OpenShift is {cluster.openshift or 'unknown'}, expected {target.openshift} before its nodes. Start its "
            "update and run again; a higher kubewin_upgrade_wait_timeout waits for it"
        )
    if journal.hook == "wmco" and not is_at_least(cluster.wmco, target.wmco):
        return _Hold(
            f"WMCO is {cluster.wmco or 'unknown'}, expected {target.wmco}: all earlier nodes are verified: approve its InstallPlan now, "
            "wait until OLM has installed it, and run again; a higher kubewin_upgrade_wait_timeout waits for it"
        )
    unavailable = find_unavailable_nodes(journal, observed)
    for entry in batch:
        unavailable.pop(entry.node, None)
    if unavailable and "nodes" in rules.stop_on:
        detail = "; ".join(f"{name} is {why}" for name, why in unavailable.items())
        finding = blocker(
            "CSI-U02", f"Node {next(iter(unavailable))}", f"{detail}; no further node is upgraded meanwhile",
            "repair or uncordon it, or remove nodes from kubewin_upgrade_stop_on",
        )  # fmt: skip
        return _Hold.from_finding(finding, may_pass=True)
    open_for = maintenance_windows.measure_time_left(rules.windows, observed.current_time)
    if open_for is None:
        return _Hold("no maintenance window is open (kubewin_upgrade_windows)")
    # The nodes of a batch are changed one after the other.
    needed = rules.budget * len(batch)
    if rules.windows and open_for < timedelta(seconds=needed):
        batch_text = "a node" if len(batch) == 1 else f"the {len(batch)} nodes of the next batch"
        return _Hold(
            f"the maintenance window closes at {format_time(observed.current_time + open_for)}, and {batch_text} may take {spell(needed)} "
            "(kubewin_upgrade_node_timeout)"
        )
    return None


def _list_pauses(journal: Journal, batch: list[NodeEntry], rules: UpgradeRules) -> list[str]:
    number = batch[0].batch
    pauses = [entry.node for entry in batch if entry.node in rules.pause]
    if number >= 1 and "canary" in rules.pause and "canary" not in journal.confirmed:
        pauses.append("canary")
    if number >= 1 and "batches" in rules.pause:
        pauses.append(f"batch-{number}")
    return pauses


@dataclass(frozen=True, slots=True)
class _NodeDecider:
    """Decides the next step of one node. decide answers with ChangeObject, DelegateStep or ObserveAgain."""

    journal: Journal
    observed: UpgradeObservation
    rules: UpgradeRules
    entry: NodeEntry

    def decide(self) -> ChangeObject | DelegateStep | ObserveAgain:
        entry, node = self.entry, self.observed.nodes.get(self.entry.node)
        if entry.untouched and (entry.failed or (self.journal.stopping and not entry.by_itself)):
            return self._release_node(node)
        if entry.step == "hook":
            return self._run_hook(node)
        if entry.step == "wait_ready":
            return self._wait_until_ready(node)
        if node is None:
            return self._fail_node("CSI-U10", "the Node was deleted during its upgrade", "restore it, then run again")
        return {
            "cordon": self._cordon,
            "drain": self._drain,
            "allow": self._allow,
            "gate": self._check_gate,
            "verify": lambda _node: self._delegate("verify"),
            "workloads": self._open_to_workloads,
        }[entry.step](node)

    # The steps

    def _cordon(self, node: UpgradeNode) -> ChangeObject | DelegateStep | ObserveAgain:
        is_own_cordon = node.cordoned_for == self.journal.mark
        if self.journal.hook == "wmco":
            return (
                self._move_to("wait_ready" if self.entry.by_itself else "allow") if node.tainted else self._do("cordon")
            )
        if node.cordoned and not is_own_cordon:
            kept = replace(self.entry, kept_cordoned=True).move_to(
                "drain", self.observed.current_time, "cordoned by another user, and stays cordoned"
            )
            return self._put(kept).decide()
        return self._move_to("drain") if node.cordoned else self._do("cordon")

    def _drain(self, node: UpgradeNode) -> ChangeObject | DelegateStep | ObserveAgain:
        if not node.cordoned:
            # Another user uncordoned the node, so its pods would be scheduled there again.
            return self._move_to("cordon")
        if node.pods is None:
            return self._wait("its pods are being read")
        plan = plan_drain(node.pods, self.observed.refused, self.observed.current_time)
        if plan.never:
            return self._fail_node("CSI-U03", "; ".join(plan.never), "check its log, then run again")
        if not plan.remaining:
            return self._move_to(self.journal.find_next_step("drain"))
        detail = "; ".join(plan.blocked) or f"{len(plan.remaining)} pods are terminating"
        if self._late:
            remedy = "end these pods, or raise kubewin_upgrade_node_timeout; then run again"
            return self._fail_node("CSI-U03", f"not drained after {self.rules.budget:.0f} s: {detail}", remedy)
        fresh = tuple(
            pod for pod in plan.evict if pod.uid not in self.observed.refused or pod.uid in self.observed.retriable
        )
        if fresh:
            return ChangeObject("evict", self.entry.node, self.journal, fresh)
        return self._wait(detail)

    def _allow(self, node: UpgradeNode) -> ChangeObject | DelegateStep | ObserveAgain:
        if node.allowed or node.upgrading:
            return self._move_to("wait_ready")
        return self._do("allow")

    def _run_hook(self, node: UpgradeNode | None) -> ChangeObject | DelegateStep | ObserveAgain:
        """Run the tasks only while the node is cordoned and drained. A deleted Node has no workloads."""
        if node is None:
            return self._delegate("hook")
        if not node.cordoned:
            return self._move_to("cordon", "another user uncordoned it; it is cordoned and drained again")
        if node.pods is None:
            return self._wait("its pods are being read")
        if plan_drain(node.pods, {}, self.observed.current_time).remaining:
            return self._move_to("drain", "new pods run there")
        return self._delegate("hook")

    def _wait_until_ready(self, node: UpgradeNode | None) -> ChangeObject | DelegateStep | ObserveAgain:
        if node is not None and not node.cordoned and self.journal.hook != "wmco" and not self._late:
            # A Node that was made anew, or that its upgrade opened: nothing goes there before a volume is proven on it.
            return self._do("cordon")
        missing = self._find_unready_reason(node)
        if missing and self._late:
            remedy = "check the node and what upgrades it, then run again, or raise kubewin_upgrade_node_timeout"
            return self._fail_node("CSI-U04", f"not ready after {self.rules.budget:.0f} s: {missing}", remedy)
        return self._wait(missing) if missing else self._move_to("gate")

    def _find_unready_reason(self, node: UpgradeNode | None) -> str:
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

    def _check_gate(self, node: UpgradeNode) -> ChangeObject | DelegateStep | ObserveAgain:
        if node.in_tree and (self.journal.hook == "wmco" or self.journal.target.kubelet):
            listed = ", ".join(node.in_tree[:3])
            return self._fail_node(
                "CSI-U09", f"volumes are attached there in-tree, which the upgraded node does not support: {listed}",
                "delete the pods that use them there, wait until they are detached, then run again",
            )  # fmt: skip
        return self._delegate("gate")

    def has_our_cordon(self, node: UpgradeNode) -> bool:
        """Whether our cordon or taint repels workloads, or a label of WMCO would let its next upgrade begin unasked."""
        return (
            _has_our_mark(self.journal, node)
            or node.tainted
            or (self.journal.hook == "wmco" and node.allowed and self.entry.step == "workloads")
        )

    def _open_to_workloads(self, node: UpgradeNode) -> ChangeObject | DelegateStep | ObserveAgain:
        if self.has_our_cordon(node):
            return self._do("uncordon")
        missing = [detail for workload in self.entry.workloads if (detail := self._describe_missing_pods(workload))]
        if node.in_tree and (self.journal.hook == "wmco" or self.journal.target.kubelet):
            missing.append(f"attached in-tree: {', '.join(node.in_tree[:3])}")
        if missing and not self._late:
            return self._wait("; ".join(missing))
        if missing and "workloads" in self.rules.stop_on:
            return self._fail_node(
                "CSI-U08", f"not ready after {self.rules.budget:.0f} s: {'; '.join(missing)}",
                "check these pods; if the node is not the cause, run again, or remove workloads from kubewin_upgrade_stop_on",
            )  # fmt: skip
        return self._put(self.entry.move_to("done", self.observed.current_time, "; ".join(missing)))._observe_again()

    def _describe_missing_pods(self, workload: UpgradeWorkload) -> str:
        state = self.observed.workloads.get(workload)
        if state is None:
            return f"{workload.title} was not read yet"
        expected = min(workload.ready, state.replicas)
        if state.ready >= expected:
            return ""
        return f"{workload.title} has {state.ready} of {expected} pods Ready" + (f" ({state.why})" if state.why else "")

    # What they are made of

    @property
    def _late(self) -> bool:
        began = parse_time(self.entry.began)
        return began is not None and (self.observed.current_time - began).total_seconds() > self.rules.budget

    def _put(self, entry: NodeEntry) -> _NodeDecider:
        return replace(self, entry=entry, journal=self.journal.put(entry, self.observed.current_time))

    def _move_to(self, step: UpgradeStep, why: str = "") -> ChangeObject | DelegateStep | ObserveAgain:
        return self._put(self.entry.move_to(step, self.observed.current_time, why)).decide()

    def _do(self, kind: ChangeKind) -> ChangeObject:
        return ChangeObject(kind, self.entry.node, self.journal)

    def _delegate(self, kind: DelegatedStep) -> DelegateStep:
        return DelegateStep(kind, (self.entry.node,), self.journal)

    def _wait(self, why: str) -> ObserveAgain:
        entry = replace(self.entry, why=why)
        awaited = _build_awaited(
            f"{entry.node}: {why}", parse_time(entry.began), self.observed.current_time, self.rules.budget
        )
        return ObserveAgain((awaited,), self.journal.put(entry, self.observed.current_time))

    def _observe_again(self) -> ObserveAgain:
        return ObserveAgain((), self.journal)

    def _release_node(self, node: UpgradeNode | None) -> ChangeObject | DelegateStep | ObserveAgain:
        if node is not None and self.has_our_cordon(node):
            return self._do("uncordon")
        why = self.entry.why if self.entry.failed else "released unchanged, because another node failed"
        return self._put(self.entry.move_to("waiting", self.observed.current_time, why))._observe_again()

    def _fail_node(self, finding: str, message: str, remedy: str) -> ChangeObject | DelegateStep | ObserveAgain:
        failed = fail(self.journal, self.entry.node, finding, message, remedy, self.observed.current_time)
        after = replace(self, entry=failed.find_entry(self.entry.node), journal=failed)
        return after.decide() if after.entry.under_way else after._observe_again()


def fail(journal: Journal, node: str, finding: str, message: str, remedy: str, current_time: datetime) -> Journal:
    """Record that a node failed, so that no other node begins."""
    entry = replace(journal.find_entry(node), failed=finding, why=message)
    stopping = journal.stopping or blocker(finding, f"Node {node}", message, remedy)
    return replace(journal.put(entry, current_time), stopping=stopping)
