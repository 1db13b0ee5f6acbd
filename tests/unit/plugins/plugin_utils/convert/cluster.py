# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster in which conversions are searched: its states, what may happen in it, and what controllers and users do.

In it are the volume controller (binding, Lost, Released), both protections, external-provisioner (its finalizer, and the
deletion of the disk behind a released volume with policy Delete, whatever created the volume), external-attacher, the
driver's syncer of vSphere, the workload's controller, scheduler and kubelet. Controllers act late: each on its own event,
in any order, after any delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.actions import ConversionMove
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import decide_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observation import ConversionObservation
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionRecord

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
    """A volume object; both of them have the same disk behind them. claim: the claimRef's uid, 0 for none."""

    uid: str
    side: str
    policy: str
    phase: str
    terminating: bool
    fins: int
    claim: int
    by: str


class PVC(NamedTuple):
    """The claim. uid: 1 from the beginning, 2 the set's, 5 a user's.

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
class ClusterEvents:
    """What controllers and users may do next in a state."""

    world: World

    @staticmethod
    def put_pod(s: State, which: str, pod: Pod) -> State:
        return s._replace(pod=pod) if which == "pod" else s._replace(helper=pod)

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

    def spent_by(self, s: State, name: str) -> bool:
        return name in self.world.users and bool(s.spent & 1 << self.world.users.index(name))
