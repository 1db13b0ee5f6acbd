# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster in which the tables of steps run against everybody else, and a search of all that can happen.

A state is a tuple; from each, every possible event leads to another: a controller's next deed, a user's, and each half of
our own (decide on a fresh observation; send the action, when the cluster may have changed; end). All states that can be reached are
visited once, breadth first, so that the first bad one comes with a shortest story.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.actions import (
    AwaitCondition,
    ConversionAction,
    ConversionDone,
    ConversionMove,
    CreateVolume,
    DeleteVolume,
    DropProtection,
    DryRunVolumes,
    ReadData,
    SaveRecord,
    ScaleWorkload,
    SetLock,
    SetPolicy,
    SetProvisioner,
    StartHelper,
    StopConversion,
    StopHelper,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observation import (
    ConversionClaim,
    ConversionObservation,
    ConversionVolume,
    ConversionWorkload,
    HelperState,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import (
    ConversionRecord,
    RecordedWorkload,
)
from unit.plugins.plugin_utils.convert.cluster import (
    COMING,
    DRIVER,
    EA,
    ENDS,
    EP,
    FINALIZERS,
    FRESH,
    IN_TREE,
    NO_POD,
    NONE,
    PV,
    PV_PROTECTION,
    PVC,
    RUNS,
    WAITS,
    ClusterEvents,
    Pod,
    Process,
    State,
    Violation,
)


@dataclass
class Search(ClusterEvents):
    """All states that can be reached."""

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
            namespace="shop",
            claim="data",
            claim_uid="1",
            volume="pv",
            volume_uid="o0",
            driver=DRIVER,
            old_handle="path",
            new_handle="fcd",
            policy=policy,
            attaches=world.attaches,
            forgets=world.forgets,
            workloads=(RecordedWorkload("StatefulSet", "shop", "db", "s", 1),),
        )
        first = self.record(record)
        return State(
            pvs=(old,),
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
        pvc, (pv,) = s.pvc, s.pvs
        return ConversionObservation(
            volume=None
            if pv is None
            else ConversionVolume(
                name="pv",
                uid=pv.uid,
                version=self.version(pv),
                side="old" if pv.side == "old" else "new",
                policy=pv.policy,
                phase=pv.phase,
                terminating=pv.terminating,
                finalizers=tuple(name for bit, name in FINALIZERS.items() if pv.fins & bit),
                claim_uid=str(pv.claim) if pv.claim else "",
                by={"i": IN_TREE, "n": DRIVER}.get(pv.by, ""),
            ),
            claim=None
            if pvc is None
            else ConversionClaim(
                uid=str(pvc.uid),
                version=self.version(pvc),
                phase=pvc.phase,
                volume={0: "pv", -1: "", FRESH: "pvc-2"}[pvc.volume],
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
        if isinstance(action, (SetPolicy, SetProvisioner, DeleteVolume, DropProtection)):
            return self.apply_to_volume(s, record, action)
        pvc = s.pvc
        if isinstance(action, SetLock):
            if pvc is None or not self.same(action.claim.uid, action.claim.version, str(pvc.uid), pvc):
                return None
            if action.hold and pvc.terminating:
                return None
            if pvc.uid in (2, 5) and not pvc.lock:
                raise Violation("another user's claim is taken")
            return s._replace(pvc=pvc._replace(lock=action.generation, held=action.hold))
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
        assert isinstance(action, CreateVolume)
        if s.pvs[0] is not None:
            return None
        side = record.target_side
        by = "i" if side == "old" else ""
        made = PV(f"{side[0]}1", side, "Retain", "Pending", False, PV_PROTECTION, int(action.claim_uid or 0), by)
        return s._replace(pvs=(made,), registered=s.registered or (side == "old" and self.world.forgets))

    def apply_to_volume(
        self,
        s: State,
        record: ConversionRecord,
        action: SetPolicy | SetProvisioner | DeleteVolume | DropProtection,
    ) -> State | None:
        (pv,) = s.pvs
        if pv is None or not self.same(action.volume.uid, action.volume.version, pv.uid, pv):
            return None
        if isinstance(action, SetPolicy):
            pv = pv._replace(policy=action.policy)
        elif isinstance(action, SetProvisioner):
            pv = pv._replace(by="n")
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
        return s._replace(pvs=(pv,))

    def same(self, uid: str, version: str, live_uid: str, live: object) -> bool:
        return not self.world.preconditions or (uid == live_uid and version == self.version(live))

    # What must hold

    def check_end(self, s: State, record: ConversionRecord) -> None:
        if s.spent or s.second is not None:
            return
        standing = [pv for pv in s.pvs if pv is not None]
        if [pv.side for pv in standing] != [record.target_side] or not s.replicas or s.pvc is None or s.pvc.lock:
            raise Violation(f"it ends {record.direction} with {s}")
        if standing[0].policy != record.policy:
            raise Violation(f"it ends with policy {standing[0].policy}")
