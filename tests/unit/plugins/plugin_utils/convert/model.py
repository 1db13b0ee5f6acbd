# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster in which the tables of steps run against everybody else, and a search of all that can happen.

A state is a tuple; from each, every possible event leads to another: a controller's next deed, a user's, and each half of
our own (decide on a fresh observation; send the action, when the cluster may have changed; end). All states that can be reached are
visited once, breadth first, so that the first bad one comes with a shortest story.

What is in it: the volume controller (binding, Lost, Released), both protections, external-provisioner (its finalizer, and
the deletion of the disk behind a released volume with policy Delete, whatever created the volume), external-attacher, the
driver's syncer of vSphere, the workload's controller, scheduler and kubelet. Controllers act late: each on its own event,
in any order, after any delay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.actions import (
    AwaitCondition,
    ConversionAction,
    ConversionDone,
    ConversionMove,
    CreateClaim,
    CreateVolume,
    DeleteClaim,
    DeleteVolume,
    DropProtection,
    DryRunVolumes,
    ReadData,
    ReserveVolume,
    SaveRecord,
    ScaleWorkload,
    SetLock,
    SetPolicy,
    SetProvisioner,
    StartHelper,
    StopConversion,
    StopHelper,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import decide_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observation import (
    ConversionClaim,
    ConversionObservation,
    ConversionVolume,
    ConversionWorkload,
    HelperState,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import (
    ConversionRecord,
    RecordedVolume,
    RecordedWorkload,
    Variant,
)

IN_TREE, DRIVER = "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"
PV_PROTECTION, EP, EA = 1, 2, 4
FINALIZERS = {
    PV_PROTECTION: observation.PROTECTION,
    EP: observation.PROVISIONER,
    EA: f"{observation.ATTACHER}csi-vsphere",
}
FRESH = 9
NONE, WAITS, COMING, RUNS, ENDS = "-", "waits", "coming", "runs", "ends"


class PV(NamedTuple):
    """A volume object; all three of them have the same disk behind them. claim: the claimRef's uid, 0 for none."""

    uid: str
    side: str
    policy: str
    phase: str
    terminating: bool
    fins: int
    claim: int
    by: str


class PVC(NamedTuple):
    """The claim. uid: 1 from the beginning, 2 the set's, 3 and 4 ours, 5 a user's.

    volume: index of its volume, -1 for none, FRESH for one with another disk. lock: its term, 0 for none.
    """

    uid: int
    volume: int
    phase: str
    terminating: bool
    lock: int
    held: bool


class Pod(NamedTuple):
    """A pod on the claim. side: whose attachment it uses once it is coming."""

    state: str
    side: str


NO_POD = Pod(NONE, "")


class Process(NamedTuple):
    """One of our runs. record, action: their numbers; action -1 before it has observed. alive: False when it ended."""

    record: int
    action: int
    holder: int


class State(NamedTuple):
    """Everything.

    deletes: the set deletes claims when it is scaled down. saved: the record in the cluster and the one before it, which the
    file may still hold.
    """

    pvs: tuple[PV | None, ...]
    pvc: PVC | None
    replicas: int
    deletes: bool
    pod: Pod
    helper: Pod
    attached: tuple[bool, bool]
    disk: bool
    registered: bool
    unregister: bool
    asked: bool
    spent: int
    saved: tuple[int, int]
    holder: int
    first: Process | None
    second: Process | None


class Violation(AssertionError):
    """An event that must never happen."""


@dataclass(frozen=True)
class World:
    """What may happen in a search. Each of `users` happens at most once."""

    variant: Variant = "in_place"
    policy: str = "Delete"
    users: tuple[str, ...] = ()
    forgets: bool = False
    attaches: bool = True
    two_runs: bool = False
    keep_ways: bool = False
    older_copy: bool = True
    # Our own rules, to be broken on purpose.
    decide: Callable[[ConversionRecord, ConversionObservation], ConversionMove] = decide_move
    preconditions: bool = True


@dataclass
class Search:
    """All states that can be reached."""

    world: World
    records: list[ConversionRecord] = field(default_factory=list)
    actions: list[ConversionAction] = field(default_factory=list)
    found: dict[State, tuple[State, str] | None] = field(default_factory=dict)
    # States in which our run reports that it is done, or that it stops; and transitions, for `never_stuck`.
    ends: set[State] = field(default_factory=set)
    before: dict[State, list[State]] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    finished: int = 0

    def __post_init__(self) -> None:
        self._record_ids: dict[ConversionRecord, int] = {}
        self._action_ids: dict[ConversionAction, int] = {}
        self._versions: dict[object, str] = {}
        self._moves: dict[object, ConversionMove] = {}

    # Numbers for things that are compared often

    def record(self, record: ConversionRecord) -> int:
        if record not in self._record_ids:
            self._record_ids[record] = len(self.records)
            self.records.append(record)
        return self._record_ids[record]

    def action(self, action: ConversionAction) -> int:
        if action not in self._action_ids:
            self._action_ids[action] = len(self.actions)
            self.actions.append(action)
        return self._action_ids[action]

    def version(self, thing: object) -> str:
        return self._versions.setdefault(thing, str(len(self._versions)))

    # The search

    def run(self, limit: int = 2_000_000) -> Search:
        start = self.start()
        self.found[start] = None
        waiting = deque([start])
        while waiting:
            state = waiting.popleft()
            if not state.disk and state.asked:
                # A user deleted the claim or the volume of a policy Delete, which requests the deletion of the disk.
                continue
            try:
                for name, after in self.successors(state):
                    self.events.add(name)
                    if self.world.keep_ways:
                        self.before.setdefault(after, []).append(state)
                    if after not in self.found:
                        self.found[after] = (state, name)
                        waiting.append(after)
            except Violation as error:
                raise Violation(f"{error}\n{self.story(state)}") from None
            assert len(self.found) < limit, f"more than {limit} states; the world is too large"
        return self

    def stuck(self) -> State | None:
        """A state from which nothing leads to an end, if there is one."""
        assert self.world.keep_ways
        good, waiting = set(self.ends), deque(self.ends)
        while waiting:
            for before in self.before.get(waiting.popleft(), ()):
                if before not in good:
                    good.add(before)
                    waiting.append(before)
        return next((state for state in self.found if state not in good and (state.disk or not state.asked)), None)

    def story(self, state: State) -> str:
        lines = []
        step: State | None = state
        while step is not None:
            before = self.found[step]
            lines.append(f"  {before[1] if before else 'start'}")
            step = before[0] if before else None
        return "\n".join([*reversed(lines), f"  in {state}"])

    def start(self) -> State:
        world = self.world
        policy = world.policy
        old = PV(
            "o0",
            "old",
            policy,
            "Bound",
            False,
            PV_PROTECTION | (EA if world.attaches else 0) | (EP if policy == "Delete" else 0),
            1,
            "i",
        )
        record = ConversionRecord(
            run="r1",
            key="k",
            variant=world.variant,
            namespace="shop",
            claim="data",
            claim_uid="1",
            old=RecordedVolume("pv", "o0", DRIVER, "path"),
            new=RecordedVolume("pv" if world.variant == "in_place" else "pv-csi", "", DRIVER, "fcd"),
            policy=policy,
            attaches=world.attaches,
            forgets=world.forgets,
            workloads=(RecordedWorkload("StatefulSet", "shop", "db", "s", 1),),
        )
        first = self.record(record)
        return State(
            pvs=(old,) if world.variant == "in_place" else (old, None),
            pvc=PVC(1, 0, "Bound", False, 0, False),
            replicas=1,
            deletes=False,
            pod=Pod(RUNS, "old"),
            helper=NO_POD,
            attached=(world.attaches, False),
            disk=True,
            registered=world.forgets,
            unregister=False,
            asked=False,
            spent=0,
            saved=(first, first),
            holder=1,
            first=None,
            second=None,
        )

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        yield from self.controllers(state)
        yield from self.users(state)
        yield from self.ours(state)

    @staticmethod
    def put(s: State, which: str, process: Process | None) -> State:
        return s._replace(first=process) if which == "first" else s._replace(second=process)

    @staticmethod
    def put_pod(s: State, which: str, pod: Pod) -> State:
        return s._replace(pod=pod) if which == "pod" else s._replace(helper=pod)

    # Everybody else

    def controllers(self, s: State) -> Iterator[tuple[str, State]]:
        yield from self.workload(s)
        yield from self.binding(s)
        for index, pv in enumerate(s.pvs):
            if pv is not None:
                yield from self.volume(s, index, pv)
        pvc = s.pvc
        used = any(pod.state not in (NONE, WAITS) for pod in (s.pod, s.helper))
        if pvc is not None and pvc.terminating and not pvc.held and not used:
            yield "the claim goes", s._replace(pvc=None)
        if s.unregister:
            if any(pv is not None and pv.side == "new" for pv in s.pvs):
                raise Violation("the syncer unregisters the disk of the new volume")
            yield "the syncer deregisters the disk", s._replace(registered=False, unregister=False)

    def workload(self, s: State) -> Iterator[tuple[str, State]]:
        if s.replicas and s.pod.state == NONE:
            if s.pvc is None:
                yield "the set makes a claim", s._replace(pvc=PVC(2, -1, "Pending", False, 0, False))
            elif not s.pvc.terminating:
                yield "the set makes a pod", s._replace(pod=Pod(WAITS, ""))
        if not s.replicas and s.pod.state in (COMING, RUNS):
            yield "the set ends its pod", s._replace(pod=s.pod._replace(state=ENDS))
        if not s.replicas and s.pod.state == WAITS:
            yield "the set ends its pod", s._replace(pod=NO_POD)
        for which in ("pod", "helper"):
            yield from self.pod(s, which, getattr(s, which))
        for index, side in enumerate(("old", "new")):
            if s.attached[index] and side not in (s.pod.side, s.helper.side):
                pvs = tuple(
                    pv._replace(fins=pv.fins & ~EA) if pv is not None and pv.side == side else pv for pv in s.pvs
                )
                attached = (False, s.attached[1]) if index == 0 else (s.attached[0], False)
                yield f"{side} is detached", self.swept(s._replace(pvs=pvs, attached=attached))

    def pod(self, s: State, which: str, pod: Pod) -> Iterator[tuple[str, State]]:
        pvc = s.pvc
        bound = pvc is not None and pvc.phase == "Bound" and not pvc.terminating
        mine = s.pvs[pvc.volume] if pvc is not None and bound and pvc.volume != FRESH else None
        if pod.state == WAITS and mine is not None:
            yield f"{which} is scheduled", self.put_pod(s, which, Pod(COMING, mine.side))
        if pod.state == COMING and not any(pv is not None and pv.side == pod.side for pv in s.pvs):
            yield f"{which} waits for another volume", self.put_pod(s, which, Pod(WAITS, ""))
        if pod.state == COMING:
            for index, pv in enumerate(s.pvs):
                if pv is None or pv.side != pod.side or (pv.terminating and not pv.fins & EA and self.world.attaches):
                    continue
                if not self.world.attaches:
                    yield f"{which} runs", self.put_pod(s, which, Pod(RUNS, pod.side))
                    continue
                attached = (True, s.attached[1]) if pod.side == "old" else (s.attached[0], True)
                if all(attached):
                    raise Violation("the disk is attached by both handles")
                pvs = (*s.pvs[:index], pv._replace(fins=pv.fins | EA), *s.pvs[index + 1 :])
                yield f"{which} runs", self.put_pod(s._replace(pvs=pvs, attached=attached), which, Pod(RUNS, pod.side))
        if pod.state == ENDS:
            yield f"{which} is gone", self.put_pod(s, which, NO_POD)

    def binding(self, s: State) -> Iterator[tuple[str, State]]:
        pvc = s.pvc
        for index, pv in enumerate(s.pvs):
            if pv is None:
                continue
            phase, claim = pv.phase, pv.claim
            if claim and (pvc is None or pvc.uid != claim):
                phase = "Released"
            elif not claim and pvc is not None and pvc.volume == index and pvc.phase == "Lost":
                # A Lost claim is bound again only to a volume that names its uid.
                phase = "Available"
            elif pvc is not None and pvc.volume in (index, -1) and not (pvc.volume == -1 and pv.terminating):
                # A claimRef names the claim, so no other claim can be bound in between.
                phase, claim = "Bound", pvc.uid
                bound = pvc._replace(volume=index, phase="Bound")
                if bound != pvc:
                    yield f"the claim binds {pv.side}", s._replace(pvc=bound)
                    pvc = bound
            elif not claim:
                phase = "Available"
            if (phase, claim) != (pv.phase, pv.claim):
                changed = pv._replace(phase=phase, claim=claim)
                yield f"{pv.side} is {phase}", s._replace(pvs=(*s.pvs[:index], changed, *s.pvs[index + 1 :]), pvc=pvc)
        pvc = s.pvc
        if pvc is not None and pvc.volume not in (-1, FRESH):
            pv = s.pvs[pvc.volume]
            if (pv is None or pv.claim not in (0, pvc.uid)) and pvc.phase == "Bound":
                yield "the claim is Lost", s._replace(pvc=pvc._replace(phase="Lost"))
        offered = any(pv is not None and not pv.claim and pv.phase == "Available" for pv in s.pvs)
        if pvc is not None and pvc.volume == -1 and not offered:
            if not any(self.spent_by(s, user) for user in ("claim", "volume")):
                raise Violation("the claim gets a new and empty disk")
            yield "a new disk is made", s._replace(pvc=pvc._replace(volume=FRESH, phase="Bound"))

    def volume(self, s: State, index: int, pv: PV) -> Iterator[tuple[str, State]]:
        def into(changed: PV) -> State:
            return self.swept(s._replace(pvs=(*s.pvs[:index], changed, *s.pvs[index + 1 :])))

        if pv.terminating and pv.phase != "Bound" and pv.fins & PV_PROTECTION:
            yield f"{pv.side} is not protected any more", into(pv._replace(fins=pv.fins & ~PV_PROTECTION))
        if pv.policy == "Retain" and pv.fins & EP:
            yield f"the provisioner releases {pv.side}", into(pv._replace(fins=pv.fins & ~EP))
        # It takes a native volume of its driver for its own, whatever created it.
        owned = bool(pv.by) or pv.side == "new"
        if pv.policy == "Delete" and owned and not pv.fins & EP and not pv.terminating:
            yield f"the provisioner holds {pv.side}", into(pv._replace(fins=pv.fins | EP))
        unused = not s.attached[0 if pv.side == "old" else 1]
        if (
            pv.policy == "Delete"
            and owned
            and pv.phase == "Released"
            and unused
            and (not pv.terminating or pv.fins & EP)
        ):
            if not s.asked:
                raise Violation(f"the provisioner deletes the disk behind {pv.side}")
            yield "the disk is deleted", into(pv._replace(terminating=True, fins=pv.fins & ~EP))._replace(disk=False)

    def swept(self, s: State) -> State:
        """Objects that are to go and that nothing keeps are gone."""
        for index, pv in enumerate(s.pvs):
            if pv is not None and pv.terminating and not pv.fins:
                runs = any(pod.state == RUNS and pod.side == pv.side for pod in (s.pod, s.helper))
                if s.attached[0 if pv.side == "old" else 1] or runs:
                    raise Violation(f"{pv.side} goes while it is in use")
                s = s._replace(pvs=(*s.pvs[:index], None, *s.pvs[index + 1 :]))
                if pv.side == "old" and self.world.forgets:
                    s = s._replace(unregister=True)
        return s

    def users(self, s: State) -> Iterator[tuple[str, State]]:
        for bit, name in enumerate(self.world.users):
            if s.spent & 1 << bit:
                continue
            spent = s.spent | 1 << bit
            if name == "pod" and s.pod.state in (COMING, RUNS):
                yield "a user deletes the pod", s._replace(spent=spent, pod=s.pod._replace(state=ENDS))
            if name == "claim" and s.pvc is not None and not s.pvc.terminating:
                asked = s.asked or any(pv is not None and pv.policy == "Delete" for pv in s.pvs)
                yield (
                    "a user deletes the claim",
                    s._replace(spent=spent, asked=asked, pvc=s.pvc._replace(terminating=True)),
                )
            if name == "volume":
                for index, pv in enumerate(s.pvs):
                    if pv is not None and not pv.terminating:
                        pvs = (*s.pvs[:index], pv._replace(terminating=True), *s.pvs[index + 1 :])
                        asked = s.asked or pv.policy == "Delete"
                        yield f"a user deletes {pv.side}", self.swept(s._replace(spent=spent, asked=asked, pvs=pvs))
            if name == "scale":
                yield "a user scales the set", s._replace(spent=spent, replicas=1 - s.replicas)
            if name == "retention":
                yield "a user lets the set delete claims", s._replace(spent=spent, deletes=True)
            if name == "policy":
                for index, pv in enumerate(s.pvs):
                    if pv is not None and pv.policy == "Retain":
                        pvs = (*s.pvs[:index], pv._replace(policy="Delete"), *s.pvs[index + 1 :])
                        # If a user also deleted the claim, this policy decides about the disk.
                        asked = s.asked or self.spent_by(s, "claim")
                        yield f"a user sets {pv.side} to Delete", s._replace(spent=spent, asked=asked, pvs=pvs)
            if name in ("empty", "other") and s.pvc is None:
                made = PVC(5, -1, "Pending", False, 0, False)
                if name == "other":
                    made = made._replace(volume=FRESH, phase="Bound")
                yield f"a user makes a claim ({name})", s._replace(spent=spent, pvc=made)
            if name == "by_hand" and s.pvc is None:
                for index, pv in enumerate(s.pvs):
                    if pv is not None and not pv.terminating:
                        pvs = (*s.pvs[:index], pv._replace(claim=0), *s.pvs[index + 1 :])
                        made = PVC(5, index, "Pending", False, 0, False)
                        yield f"a user binds a claim to {pv.side}", s._replace(spent=spent, pvs=pvs, pvc=made)
            if name == "keep" and s.pvc is not None and s.pvc.uid in (2, 5) and s.pvc.volume in (0, 1):
                yield "a user keeps that claim", s._replace(spent=spent, pvc=s.pvc._replace(lock=1))

    # Our own runs

    def ours(self, s: State) -> Iterator[tuple[str, State]]:
        yield from self.process(s, "first", 1)
        if self.world.two_runs:
            yield from self.process(s, "second", 2)

    def process(self, s: State, which: str, holder: int) -> Iterator[tuple[str, State]]:
        process: Process | None = getattr(s, which)
        if process is None:
            yield from self.begin(s, which, holder)
            return
        record = self.records[process.record]
        if process.action >= 0:
            action = self.actions[process.action]
            yield f"{which}: {type(action).__name__} at {record.step}", self.send(s, which, process, action)
            yield f"{which} is killed", self.put(s, which, None)
            return
        move = self.move(s, process)
        if isinstance(move, AwaitCondition):
            if move.then_roll_back and record.direction == "forward":
                saved = self.action(SaveRecord(record.roll_back("it took too long")))
                yield f"{which} gives up waiting", self.put(s, which, process._replace(action=saved))
        elif isinstance(move, (ConversionDone, StopConversion)):
            self.ends.add(s)
            if record.step == "done" and (s.first is None or s.second is None):
                self.finished += 1
                self.check_end(s, record)
        else:
            yield f"{which} observes", self.put(s, which, process._replace(action=self.action(move)))

    def begin(self, s: State, which: str, holder: int) -> Iterator[tuple[str, State]]:
        # One run is started again after its death only; a second one may take over from a first that lives.
        if s.holder != holder and holder == 1:
            return
        copies = set(s.saved) if self.world.older_copy else {s.saved[0]}
        for number in copies:
            if self.records[number].step == "done":
                continue
            # Taking over writes this copy to both places. Terms grow with every run; here one for each will do.
            copy = self.record(replace(self.records[number], generation=holder))
            process = Process(copy, -1, holder)
            s = s._replace(holder=holder, saved=(copy, copy))
            yield f"{which} starts from {self.records[copy].step}", self.put(s, which, process)
            if "undo" not in self.world.users or self.spent_by(s, "undo"):
                continue
            bit = self.world.users.index("undo")
            if self.records[copy].direction == "forward":
                rolled_back = self.action(SaveRecord(self.records[copy].roll_back("a user asked for it")))
                yield (
                    f"{which} rolls back at  {self.records[copy].step}",
                    self.put(s._replace(spent=s.spent | 1 << bit), which, process._replace(action=rolled_back)),
                )

    def spent_by(self, s: State, name: str) -> bool:
        return name in self.world.users and bool(s.spent & 1 << self.world.users.index(name))

    def move(self, s: State, process: Process) -> ConversionMove:
        key = (process.record, s.pvs, s.pvc, s.replicas, s.deletes, s.pod, s.helper, s.attached, s.registered)
        if key not in self._moves:
            self._moves[key] = self.world.decide(self.records[process.record], self.observed(s))
        return self._moves[key]

    def observed(self, s: State) -> ConversionObservation:
        uses = [f"pod db ({s.pod.state})"] if s.pod.state != NONE else []
        if s.helper.state == NONE:
            uses += [f"{side} is attached" for side, is_so in zip(("old", "new"), s.attached, strict=True) if is_so]
        helper: dict[str, HelperState] = {
            NONE: "",
            WAITS: "starting",
            COMING: "starting",
            RUNS: "running",
            ENDS: "stopping",
        }
        pvc = s.pvc
        return ConversionObservation(
            volumes=tuple(
                ConversionVolume(
                    name=("pv", "pv-csi")[index],
                    uid=pv.uid,
                    version=self.version(pv),
                    side="old" if pv.side == "old" else "new",
                    policy=pv.policy,
                    phase=pv.phase,
                    terminating=pv.terminating,
                    finalizers=tuple(name for bit, name in FINALIZERS.items() if pv.fins & bit),
                    claim_uid=str(pv.claim) if pv.claim else "",
                    by={"i": IN_TREE, "n": DRIVER}.get(pv.by, ""),
                )
                for index, pv in enumerate(s.pvs)
                if pv is not None
            ),
            claim=None
            if pvc is None
            else ConversionClaim(
                uid=str(pvc.uid),
                version=self.version(pvc),
                phase=pvc.phase,
                volume={0: "pv", 1: "pv-csi", -1: "", FRESH: "pvc-2"}[pvc.volume],
                terminating=pvc.terminating,
                lock="r1.k" if pvc.lock else "",
                generation=pvc.lock,
                held=pvc.held,
            ),
            workloads=(
                ConversionWorkload(
                    "StatefulSet",
                    "shop",
                    "db",
                    "s",
                    self.version(("set", s.replicas, s.deletes)),
                    s.replicas,
                    int(s.pod.state == RUNS),
                    s.deletes,
                ),
            ),
            uses=tuple(uses),
            helper=helper[s.helper.state],
            registered=s.registered,
        )

    def send(self, s: State, which: str, process: Process, action: ConversionAction) -> State:
        """The server's answer to one action, and what the run does with it."""
        record = self.records[process.record]
        again = process._replace(action=-1)
        if isinstance(action, SaveRecord):
            if s.holder != process.holder:
                return self.put(s, which, None)
            number = self.record(action.record)
            return self.put(s._replace(saved=(number, s.saved[0])), which, Process(number, -1, process.holder))
        if isinstance(action, DryRunVolumes):
            return self.put(s, which, process._replace(action=self.action(SaveRecord(record.advance()))))
        if isinstance(action, ReadData):
            if s.helper.state != RUNS:
                return self.put(s, which, again)
            if not s.disk:
                return self.put(s, which, None)
            saved = record.advance() if action.compare else replace(record, baseline="data")
            return self.put(s, which, process._replace(action=self.action(SaveRecord(saved))))
        changed = self.apply(s, record, action)
        return self.swept(self.put(changed or s, which, again))

    def apply(self, s: State, record: ConversionRecord, action: ConversionAction) -> State | None:
        """The state after a write; None when the server refuses it."""
        if isinstance(action, (SetPolicy, SetProvisioner, DeleteVolume, DropProtection, ReserveVolume)):
            return self.apply_to_volume(s, record, action)
        pvc = s.pvc
        if isinstance(action, (SetLock, DeleteClaim)):
            if pvc is None or not self.same(action.claim.uid, action.claim.version, str(pvc.uid), pvc):
                return None
            if isinstance(action, SetLock):
                if action.hold and pvc.terminating:
                    return None
                if pvc.uid in (2, 5) and not pvc.lock:
                    raise Violation("another user's claim is taken")
                return s._replace(pvc=pvc._replace(lock=action.generation, held=action.hold))
            if pvc.terminating:
                return None
            if pvc.uid in (2, 5) and not pvc.lock:
                raise Violation("another user's claim is deleted")
            if any(pv is not None and pv.claim == pvc.uid and pv.policy != "Retain" for pv in s.pvs):
                raise Violation("a claim is deleted whose volume has not the policy Retain")
            return s._replace(pvc=pvc._replace(terminating=True))
        if isinstance(action, ScaleWorkload):
            if action.workload.version != self.version(("set", s.replicas, s.deletes)) and self.world.preconditions:
                return None
            if s.deletes and not action.replicas:
                raise Violation("our scaling to 0 deletes the claims of the whole set")
            return s._replace(replicas=action.replicas)
        if isinstance(action, StartHelper):
            return s._replace(helper=Pod(WAITS, "")) if s.helper.state == NONE else None
        if isinstance(action, StopHelper):
            ends = NO_POD if s.helper.state in (NONE, WAITS) else s.helper._replace(state=ENDS)
            return s._replace(helper=ends)
        if isinstance(action, CreateVolume):
            index = 0 if action.side == "old" or len(s.pvs) == 1 else 1
            if s.pvs[index] is not None:
                return None
            by = "i" if action.side == "old" else ""
            uid = f"{action.side[0]}{sum(pv is not None for pv in s.pvs) + 1}"
            made = PV(uid, action.side, "Retain", "Pending", False, PV_PROTECTION, int(action.claim_uid or 0), by)
            registered = s.registered or (action.side == "old" and self.world.forgets)
            return s._replace(pvs=(*s.pvs[:index], made, *s.pvs[index + 1 :]), registered=registered)
        assert isinstance(action, CreateClaim)
        if pvc is not None:
            return None
        index = 0 if action.side == "old" else 1
        return s._replace(pvc=PVC(3 if action.side == "new" else 4, index, "Pending", False, record.generation, False))

    def apply_to_volume(
        self,
        s: State,
        record: ConversionRecord,
        action: SetPolicy | SetProvisioner | DeleteVolume | DropProtection | ReserveVolume,
    ) -> State | None:
        index = 0 if action.volume.name == "pv" else 1
        pv = s.pvs[index]
        if pv is None or not self.same(action.volume.uid, action.volume.version, pv.uid, pv):
            return None
        if isinstance(action, SetPolicy):
            pv = pv._replace(policy=action.policy)
        elif isinstance(action, SetProvisioner):
            pv = pv._replace(by="n")
        elif isinstance(action, ReserveVolume):
            pv = pv._replace(claim=int(action.claim_uid or 0))
        elif isinstance(action, DeleteVolume):
            if pv.policy != "Retain":
                raise Violation(f"{pv.side} is deleted while its policy is {pv.policy}")
            if pv.side == "new" and record.direction == "forward":
                raise Violation("the new volume is deleted by a run that makes it")
            pv = pv._replace(terminating=True)
        else:
            if not pv.terminating:
                raise Violation("the protection is taken off a volume that is to stay")
            pv = pv._replace(fins=pv.fins & ~PV_PROTECTION)
        changed = s._replace(pvs=(*s.pvs[:index], pv, *s.pvs[index + 1 :]))
        self.check_pair(changed)
        return changed

    def same(self, uid: str, version: str, live_uid: str, live: object) -> bool:
        return not self.world.preconditions or (uid == live_uid and version == self.version(live))

    # What must hold

    def check_pair(self, s: State) -> None:
        bound = [pv for pv in s.pvs if pv is not None and pv.phase == "Bound"]
        if len(bound) > 1 and any(pv.policy == "Delete" for pv in bound):
            raise Violation("two bound volumes have one disk, and one of them the policy Delete")

    def check_end(self, s: State, record: ConversionRecord) -> None:
        if s.spent or s.second is not None:
            return
        standing = [pv for pv in s.pvs if pv is not None]
        if [pv.side for pv in standing] != [record.target_side] or not s.replicas or s.pvc is None or s.pvc.lock:
            raise Violation(f"it ends {record.direction} with {s}")
        if standing[0].policy != record.policy:
            raise Violation(f"it ends with policy {standing[0].policy}")
