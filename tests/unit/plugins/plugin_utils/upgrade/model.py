# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster on paper for whole upgrades: nodes, workloads that move, disruption budgets, WMCO, and a run that can die anywhere.

An observation, a write of the journal, a change, and each external step is an event. A run can be killed right before an
event or right after it. Time moves with observations. Rules that must always hold are checked after every event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import (
    UpgradeRequest,
    begin,
    check_batch,
    plan_batches,
    record_results,
    resume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import (
    ChangeObject,
    Decision,
    DelegateStep,
    UpgradeRules,
    record_external_changes,
    select_nodes_to_read,
    select_workloads_to_read,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    Journal,
    UpgradeTarget,
    UpgradeWorkload,
    from_json,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import (
    ClusterState,
    UpgradeNode,
    UpgradeObservation,
    WorkloadState,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import advance

BEGAN = datetime(2026, 11, 21, 20, 0, tzinfo=timezone.utc)
LOOK = timedelta(seconds=5)
# A play that has asked its owner for so many has no end.
TASKS = 1000
# Durations in this cluster, in observations.
ENDS, COMES, CHANGES = 2, 1, 3
IN_TREE, CSI = "kubernetes.io/vsphere-volume/[ds] {}.vmdk", "kubernetes.io/csi/csi.vsphere.vmware.com^{}"


class Killed(Exception):
    """The run has ended here, without a chance to clear up."""


@dataclass
class Pod:
    """One pod of a workload. rounds: until it has started or ended."""

    uid: str
    workload: UpgradeWorkload
    node: str
    rounds: int = COMES
    going: bool = False


@dataclass
class Box:
    """One node. changing: observations until its upgrade is over, None without one. proven: since its upgrade."""

    kubelet: str = "v1.26.1"
    version: str = ""
    cordoned: bool = False
    cordoned_for: str = ""
    tainted: bool = False
    tainted_for: str = ""
    allowed: bool = False
    upgrading: bool = False
    blocked: bool = False
    changing: int | None = None
    proven: set[str] = field(default_factory=set)
    down: bool = False


parsed = lru_cache(maxsize=4)(from_json)


class World:
    """The cluster, and what a run needs of it: journal store, observer and executor in one.

    stuck: workloads that a disruption budget never lets go. broken: nodes whose gate fails. idle_hooks: where tasks do nothing.
    takes: how long what is handed out does, by its kind. made_anew: whether the tasks replace the machine, so that the Node that
    comes back is another one. killed_at: number of the event; .5 means right after it.
    """

    def __init__(
        self,
        desired: UpgradeRequest,
        nodes: int = 3,
        pods: int = 2,
        rules: UpgradeRules | None = None,
        *,
        operator: bool = False,
    ) -> None:
        self.desired, self.rules, self.operator = desired, rules or UpgradeRules(), operator
        self.now = BEGAN
        self.boxes = {f"win-{number}": Box(version="8.1.2" if operator else "") for number in range(1, nodes + 1)}
        self.names = {UpgradeWorkload("StatefulSet", "shop", f"db-{number}", 1) for number in range(pods)}
        self.pods: list[Pod] = []
        self.serial = 0
        self.running = ""
        # Progress messages of all runs.
        self.messages: list[str] = []
        self.stuck: set[str] = set()
        self.broken: set[str] = set()
        self.failing_hooks: dict[str, str] = {}
        self.idle_hooks: set[str] = set()
        self.takes: dict[str, timedelta] = {}
        self.made_anew = False
        self.hooked: list[str] = []
        self.kept: str | None = None
        self.events = 0
        self.killed_at: tuple[int, bool] | None = None
        self.reopened: list[str] = []
        for workload in sorted(self.names):
            self._place(workload)
        for pod in self.pods:
            pod.rounds = 0
        self.refused: dict[str, str] = {}
        # Whether observations are so far apart that each retries refused evictions.
        self.seldom = False
        self.allowed_away = 1

    # Dying

    def event(self, effect: object = None) -> None:
        """Something happens; the run may die right before or right after it."""
        self.events += 1
        assert self.events < 3000, f"it does not end: {self.kept}"
        if self.killed_at == (self.events, False):
            raise Killed
        if callable(effect):
            effect()
        self.check()
        if self.killed_at == (self.events, True):
            raise Killed

    # What must always hold

    def check(self) -> None:
        journal = self.journal
        closed = [name for name, box in self.boxes.items() if (box.cordoned and box.cordoned_for) or box.tainted]
        for name in closed:
            assert journal is not None, f"{name} is cordoned and no journal has it"
            entry = journal.find_entry(name)
            assert entry.step not in ("waiting", "done") or entry.failed, f"{name} is closed at {entry.step}"
        asked = [name for name in closed if journal is not None and not journal.find_entry(name).by_itself]
        assert len(asked) <= self.allowed_away, f"{asked} are away at once"
        if journal is not None:
            assert len({journal.find_entry(name).batch for name in asked}) <= 1, f"{asked} are of different batches"
        for pod in self.pods:
            box = self.boxes[pod.node]
            fresh = pod.rounds == COMES and not pod.going
            if fresh and box.proven != {"old"} and self.is_new(pod.node) and not self._was_there(pod):
                assert box.proven >= {"gate", "verify"}, f"{pod.uid} came to {pod.node} before it was proven"

    def _was_there(self, pod: Pod) -> bool:
        # WMCO opens a node itself, and a taint that comes one observation later evicts no pod.
        journal = self.journal
        return journal is not None and journal.find_entry(pod.node).by_itself

    def is_new(self, name: str) -> bool:
        target, box = self.desired.target, self.boxes[name]
        return box.version == target.wmco if self.operator else box.kubelet == "v1.27.3"

    # A run

    @property
    def journal(self) -> Journal | None:
        return None if self.kept is None else parsed(self.kept)

    def run(self, confirmed: tuple[str, ...] = ()) -> Decision:
        """A run from its beginning to an end, as the play does it."""
        observed = self.see()
        found = self.journal
        journal = begin(self.desired, observed) if found is None else resume(found, self.desired, observed, confirmed)
        journal = self.keep(journal)
        if self.desired.hook != "tasks":
            return self.follow(journal, None)
        for batch in plan_batches(record_external_changes(journal, observed), set(self.boxes)):
            check_batch(record_external_changes(journal, self.see()), batch)
            decision = self.follow(journal, frozenset(batch))
            if isinstance(decision, DelegateStep):
                assert set(decision.nodes) <= set(batch)
                journal = self.keep(replace(decision.journal, due=decision.nodes))
                results = {name: self.do_delegated("hook", name) for name in decision.nodes}
                journal = self.keep(replace(record_results(journal, "hook", results, self.now), due=()))
                decision = self.follow(journal, frozenset())
            if decision.journal.state != "open":
                return decision
            journal = decision.journal
        return self.follow(journal, frozenset())

    def follow(self, journal: Journal, only: frozenset[str] | None) -> Decision:
        """One step of the play. only: the nodes that it may start, None for all."""
        rules = replace(self.rules, only=only)
        for _task in range(TASKS):
            decision = advance(
                journal, self.keep, self.observe, self.do, rules, self.messages.append, lambda _seconds: None
            )
            if not isinstance(decision, DelegateStep) or decision.kind == "hook":
                return decision
            results = {name: self.do_delegated(decision.kind, name) for name in decision.nodes}
            journal = self.keep(record_results(decision.journal, decision.kind, results, self.now))
        raise AssertionError(f"the play does not end within {TASKS} tasks of its owner")

    def do_delegated(self, kind: str, name: str) -> str:
        results: list[str] = []
        self.event(lambda: results.append(self.delegated(kind, name)))
        return results[0]

    def delegated(self, kind: str, name: str) -> str:
        box = self.boxes[name]
        self.now += self.takes.get(kind, timedelta())
        if kind == "hook":
            assert box.cordoned, f"{name} is changed though it is not cordoned"
            assert not [pod for pod in self.pods if pod.node == name], f"{name} is changed under its workloads"
            self.hooked.append(name)
            if name in self.failing_hooks:
                return self.failing_hooks[name]
            if name in self.idle_hooks:
                return ""
            if box.kubelet != "v1.27.3":
                box.kubelet, box.changing = "v1.27.3", CHANGES
                if self.made_anew:
                    box.cordoned, box.cordoned_for = False, ""
            return ""
        assert not box.upgrading, f"{kind} of {name} while WMCO works on it"
        journal = self.journal
        assert journal is not None
        open_for_all = journal.find_entry(name).by_itself and not self.operator
        assert box.cordoned or box.tainted or open_for_all, f"{kind} of {name} while it is open for workloads"
        if name in self.broken:
            return "its plugin pod is not Ready"
        box.proven.add(kind)
        return ""

    # Journal store

    def keep(self, journal: Journal) -> Journal:
        kept = replace(journal, sequence=journal.sequence + 1)
        self.event(lambda: setattr(self, "kept", kept.to_json()))
        return kept

    # Observer

    def observe(self, journal: Journal, only: frozenset[str] | None) -> UpgradeObservation:
        self.event(self._time)
        observed = self.see()
        needed = select_nodes_to_read(journal, observed.nodes, only)
        nodes = {
            name: node if name in needed else replace(node, pods=None, workloads=())
            for name, node in observed.nodes.items()
        }
        between = needed or not any(entry.under_way for entry in journal.nodes)
        return replace(
            observed,
            nodes=nodes,
            workloads={one: WorkloadState(1, self._ready(one)) for one in select_workloads_to_read(journal)},
            cluster=observed.cluster if between else None,
        )

    def see(self) -> UpgradeObservation:
        """Everything, as a run observes at its beginning."""
        return UpgradeObservation(
            current_time=self.now,
            nodes={name: self._node(name, box) for name, box in self.boxes.items()},
            refused=dict(self.refused),
            retriable=frozenset(self.refused if self.seldom else ()),
            cluster=ClusterState(wmco=self.running),
        )

    def _node(self, name: str, box: Box) -> UpgradeNode:
        pods = [pod for pod in self.pods if pod.node == name]
        there = [pod for pod in pods if pod.rounds == 0 or pod.going]
        form = CSI if self.is_new(name) else IN_TREE
        return UpgradeNode(
            name=name,
            ready=box.changing is None and not box.down,
            not_ready_because="KubeletDown" if box.changing is not None or box.down else "",
            cordoned=box.cordoned,
            cordoned_for=box.cordoned_for,
            tainted=box.tainted,
            tainted_for=box.tainted_for,
            kubelet=box.kubelet,
            version=box.version,
            desired=self.running if box.upgrading else box.version,
            allowed=box.allowed,
            upgrading=box.upgrading,
            blocked=box.blocked,
            attached=tuple(form.format(pod.workload.name) for pod in there),
            pods=(*(self._pod(pod) for pod in pods), self._agent(name)),
            workloads=tuple(sorted(pod.workload for pod in pods)),
        )

    def _pod(self, pod: Pod) -> PodFacts:
        since = self.now if pod.going else None
        return PodFacts(
            pod.uid, pod.node, pod.rounds == 0, deleting=pod.going, deleting_since=since, uid=pod.uid, namespace="shop",
            owner=("StatefulSet", pod.workload.name), volumes=True,
        )  # fmt: skip

    def _agent(self, name: str) -> PodFacts:
        agent = f"agent-{name}"
        return PodFacts(agent, name, ready=True, uid=agent, namespace="kube-system", owner=("DaemonSet", "agent"))

    def _ready(self, workload: UpgradeWorkload) -> int:
        return sum(pod.workload == workload and pod.rounds == 0 and not pod.going for pod in self.pods)

    # Executor

    def do(self, action: ChangeObject) -> None:
        box = self.boxes[action.node]
        if action.kind == "evict":
            for victim in action.pods:
                self.event(lambda uid=victim.uid: self._evict(uid))
        elif action.kind == "cordon":
            self.event(lambda: self._close(box, action.journal))
        elif action.kind == "allow":
            self.event(lambda: setattr(box, "allowed", True))
        else:
            self.event(lambda: self._open(action.node, box, action.journal))

    def _close(self, box: Box, journal: Journal) -> None:
        if self.operator:
            box.tainted, box.tainted_for = True, journal.name
        else:
            box.cordoned, box.cordoned_for = True, journal.mark

    def _open(self, name: str, box: Box, journal: Journal) -> None:
        self.reopened.append(name)
        box.tainted, box.tainted_for = False, ""
        if box.cordoned_for == journal.mark:
            box.cordoned, box.cordoned_for = False, ""
        if journal.find_entry(name).step == "workloads":
            box.allowed = False

    def _evict(self, uid: str) -> None:
        for pod in self.pods:
            if pod.uid != uid or pod.going:
                continue
            if pod.workload.name in self.stuck:
                self.refused[uid] = "disruption budget shop/never needs 1 healthy pods and has 1 currently"
            else:
                pod.going, pod.rounds = True, ENDS

    # Events of the cluster itself

    def _time(self) -> None:
        self.now += LOOK
        for pod in list(self.pods):
            pod.rounds = max(0, pod.rounds - 1)
            if pod.going and pod.rounds == 0:
                self.pods.remove(pod)
        for box in self.boxes.values():
            if box.changing is not None:
                box.changing = box.changing - 1 or None
        if self.operator and self.running:
            self._operate()
        for workload in sorted(self.names - {pod.workload for pod in self.pods}):
            self._place(workload)

    def _place(self, workload: UpgradeWorkload) -> None:
        fits = [name for name, box in self.boxes.items() if self._takes(box)]
        if not fits:
            return
        self.serial += 1
        least = min(fits, key=lambda name: (sum(pod.node == name for pod in self.pods), name))
        self.pods.append(Pod(f"{workload.name}-{self.serial}", workload, least))

    @staticmethod
    def _takes(box: Box) -> bool:
        return not box.cordoned and not box.tainted and box.changing is None and not box.down

    def _operate(self) -> None:
        """WMCO 9: one node at a time; blocked while volumes are attached without a permission; it uncordons by itself."""
        at_work = next((name for name, box in self.boxes.items() if box.upgrading), None)
        if at_work is None:
            for name, box in self.boxes.items():
                if box.version == self.running:
                    continue
                box.blocked = bool([pod for pod in self.pods if pod.node == name]) and not box.allowed
                if not box.blocked:
                    box.upgrading, box.cordoned, box.version = True, True, ""
                    return
            return
        box = self.boxes[at_work]
        there = [pod for pod in self.pods if pod.node == at_work]
        for pod in there:
            if not pod.going:
                pod.going, pod.rounds = True, ENDS
        if there or box.changing is not None:
            return
        if box.kubelet != "v1.27.3":
            box.kubelet, box.changing = "v1.27.3", CHANGES
            return
        box.version, box.upgrading, box.cordoned, box.proven = self.running, False, False, set()

    # Afterwards

    def converged(self) -> None:
        """Every node is new, open, and the workloads run."""
        for name, box in self.boxes.items():
            assert self.is_new(name), name
            assert (box.cordoned, box.tainted, box.allowed, box.upgrading) == (False,) * 4, name
            assert box.proven >= {"gate", "verify"}, name
        assert {pod.workload for pod in self.pods if pod.rounds == 0} == self.names


def kubelets(
    nodes: int = 3, pods: int = 2, *, hook: str = "tasks", batches: tuple[str, ...] = ("1",), **more: object
) -> World:
    """Kubelets past the boundary, by the user's own tasks or, with hook none, by the user while the run waits."""
    desired = UpgradeRequest("kubelets", hook, UpgradeTarget(kubelet="1.27"), batches=batches)  # type: ignore[arg-type]  # a parameter of tests
    return World(desired, nodes, pods, **more)  # type: ignore[arg-type]  # as above


def wmco(nodes: int = 3, pods: int = 2, **more: object) -> World:
    """WMCO 8.1 to 9, its InstallPlan approved."""
    world = World(UpgradeRequest("wmco-9", "wmco", UpgradeTarget(wmco="9.0.0")), nodes, pods, operator=True, **more)  # type: ignore[arg-type]  # as above
    world.running = "9.0.0"
    return world


def until_done(world: World, runs: int = 5) -> list[Mapping[str, str]]:
    """Run again until it is done."""
    for _again in range(runs):
        decision = world.run()
        if decision.journal.state == "finished":
            return []
    raise AssertionError(f"not done after {runs} runs: {world.kept}")
