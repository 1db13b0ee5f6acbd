# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time: a short Lease (coordination.k8s.io/v1) that its holder renews as long as it works.

While a module works, a thread renews. Between the modules of one run, while its tasks work, a process beside it does (``keep``),
which ends with the run. A run that died leaves a lease that ends by itself. A run that lost its lease detects that before its
next change, also when it slept: a machine that was suspended, a process that was stopped. Of writes that are late, see fencing.py.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from . import kinds
from .client import FIELD_MANAGER, Client
from .errors import ClusterError
from .fencing import Reference, fence
from .holder import HeldLease, is_dead

# Seconds without a renewal after which the next run may follow, by its own clock.
SECONDS = 45
# Renewed after this part of it, so that a change begins with the larger part left.
_RENEWALS = 4
# Seconds after which a write that has no answer is given up: renewal, check and write fit into SECONDS.
_SILENCE = 10.0
# Seconds between two reads of another run's lease, and between two checks that our own run is alive.
_LOOK = 1.0
# Tries to give it back.
_ENDS = 5
# On a Lease that was taken over from a run that did not give it back: that run, until its objects are fenced.
_UNFENCED = "kubewin.io/unfenced"
# Linux's monotonic clock stands still while the machine sleeps; elsewhere there is one, which does not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_uptime() -> float:
    """Seconds on a clock that no one sets and that also counts the time that this machine sleeps."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True, slots=True)
class LeaseSubject:
    """Which lease it is. work: it is of, for messages."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    work: str


class Lease:
    """Taken, and renewed by a thread until it is left or ended.

    holder: a name as of holder.py. notify: progress callback. list_written: names what the former holder may still write; called, and
    fenced, when the lease is taken from a run that did not give it back. clock: runs also while this machine sleeps.
    """

    def __init__(
        self, client: Client, subject: LeaseSubject, holder: str, notify: Callable[[str], None] = lambda _line: None, *,
        list_written: Callable[[], Iterable[Reference]] = tuple,
        clock: Callable[[], float] = read_uptime, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        # Each try to renew it says when it was made, so none is repeated for long.
        self._client = client.guard_writes(lambda: None, _SILENCE, SECONDS / _RENEWALS)
        self._fencing = bind_client(client, self.confirm)
        self._renew_timeout, self._list_written = client.retry_for, list_written
        self._subject, self._holder, self._notify = subject, holder, notify
        self._clock, self._sleep = clock, sleep
        self._version = ""
        self._renewing = threading.Lock()
        self._stop = threading.Event()
        self._lost = ""
        self._thread = threading.Thread(target=self._renew_in_background, daemon=True)

    def take(self, wait_timeout: float = 0.0) -> None:
        """Take it, or keep it, and fence what a former holder that did not give it back may still write.

        wait_timeout: seconds to wait for another run that renews it; ClusterError locked if it still does then.
        """
        for _attempt in range(5):
            live = self.wait(wait_timeout)
            if live is None:
                # Another run may be faster; the next read shows the holder.
                self._client.create(self._build_definition())
                continue
            self._version = live["metadata"]["resourceVersion"]
            former = str((live.get("spec") or {}).get("holderIdentity") or "")
            if former == self._holder:
                # A process of this run took it over, and may have ended before it fenced.
                former = str((live["metadata"].get("annotations") or {}).get(_UNFENCED) or "")
            try:
                self._write({_UNFENCED: former} if former else {})
            except ClusterError as error:
                if error.status not in (404, 409):
                    raise
                continue
            generation = f"{self._holder} {self._version}"
            self._thread.start()
            if former:
                try:
                    fence(self._fencing, self._list_written(), generation)
                    self.renew({_UNFENCED: None})
                except BaseException:
                    # Not given back: the next run has to fence.
                    self.stop()
                    raise
            return
        raise ClusterError(
            f"another run began {self._subject.work} at the same time. Wait for it to end", "locked", 409
        )

    def wait(self, wait_timeout: float = 0.0) -> dict[str, Any] | None:
        """Answer with the lease when no other run holds it, with None when there is none.

        Waits until a lease that is not renewed expires, which is within its duration. ClusterError locked if its run is alive after
        `wait_timeout` seconds.
        """
        first: HeldLease | None = None
        since, ends = 0.0, self._clock() + wait_timeout
        while True:
            read_at = self._clock()
            live = self._read()
            held = self._find_other_run(live or {})
            if held is None:
                return live
            if first is None:
                self._notify(f"{self._subject.work}: {held}; waiting up to {held.lasts:.0f} s for a renewal")
            elif held.is_renewed_since(first) and read_at >= ends:
                raise self._describe_lock(held)
            elif held.version == first.version and read_at - since >= held.lasts:
                return live
            if first is None or held.version != first.version:
                first, since = held, self._clock()
            self._sleep(_LOOK)

    def find_other_run(self) -> str:
        """Which other run seems to hold it now, by its time, empty when none does."""
        held = self._find_other_run(self._read() or {})
        return str(self._describe_lock(held)) if held is not None and held.fresh else ""

    def _find_other_run(self, live: Mapping[str, Any]) -> HeldLease | None:
        held = HeldLease.from_object(live, self._client.now())
        return None if held is None or held.holder == self._holder else held

    def _describe_lock(self, held: HeldLease) -> ClusterError:
        remedy = f"wait for it to end, then run again. If it was killed, its lease expires within {held.lasts:.0f} s"
        return ClusterError(f"another run works on {self._subject.work}: {held}; {remedy}", "locked", 409)

    def check(self) -> None:
        """Between changes. Raises ClusterError: taken_over if the lease is known to be lost, interrupted if the parent run has ended."""
        if is_dead(self._holder):
            raise ClusterError("the parent run has ended; no further change is made", "interrupted")
        if self._lost:
            raise ClusterError(self._lost, "taken_over")

    def confirm(self) -> None:
        """Before each write: renew the lease by a conditional write (see fencing.py), as the renewing thread may have slept too. Raises as check."""
        self.check()
        self._renew_or_lose()
        self.check()

    def keep(self, ended: Callable[[], bool], renewed: Callable[[float], None] = lambda _at: None) -> str:
        """Renew the lease until the run ends, in a process beside it; return why the lease is lost, empty if it is not.

        renewed: called with the time of each renewal, of the clock.
        """
        due = self._clock()
        last = due
        while not ended():
            if self._clock() >= due:
                begun = self._clock()
                due = begun + SECONDS / _RENEWALS
                try:
                    self.renew()
                    last = begun
                    renewed(last)
                except ClusterError as error:
                    if error.reason == "taken_over":
                        return str(error)
                    if self._clock() - last > SECONDS:
                        return f"the lease of {self._subject.work} could not be renewed for {SECONDS} s: {error}"
                    due = self._clock() + _LOOK
            self._sleep(_LOOK)
        return ""

    def renew(self, annotations: Mapping[str, str | None] | None = None) -> None:
        """Keep our lease. ClusterError taken_over when it is not: another run may also have taken it, and ended."""
        subject = self._subject
        with self._renewing:
            for _attempt in range(5):
                if self._version:
                    try:
                        self._write(annotations or {})
                        return
                    except ClusterError as error:
                        if error.status not in (404, 409):
                            raise
                live = self._read()
                holder = str(((live or {}).get("spec") or {}).get("holderIdentity") or "")
                if live is None or holder != self._holder:
                    raise ClusterError(
                        f"Lease {subject.namespace}/{subject.name} is {f'held by {holder}' if live else 'missing'}, "
                        f"expected {self._holder}: another run works or worked on {subject.work}. Wait for it to end, "
                        "then run again",
                        "taken_over",
                    )
                # The version may be newer after our own write whose response was lost, or after a change of a label.
                self._version = live["metadata"]["resourceVersion"]
        raise ClusterError(
            f"Lease {subject.namespace}/{subject.name} changes faster than it can be renewed", "conflict", 409
        )

    def leave(self) -> None:
        """End of this process, not of the run, which renews it from here on."""
        self.stop()
        if self._lost:
            raise ClusterError(self._lost, "taken_over")
        self.renew()

    def end(self, *, unanswered: bool = False) -> None:
        """End of the run: the next one need not wait. An error here is not raised, since why the run ends matters more.

        unanswered: a write of the run may still arrive, so the lease is left to expire, and the next run fences.
        """
        self.stop()
        if unanswered:
            return
        with contextlib.suppress(ClusterError):
            for _attempt in range(_ENDS):
                live = None if self._lost else self._read()
                if live is None or (live.get("spec") or {}).get("holderIdentity") != self._holder:
                    return
                subject, metadata = self._subject, live["metadata"]
                if _UNFENCED in (metadata.get("annotations") or {}):
                    # The next run has to fence, so it must see that this one did not.
                    return
                try:
                    self._client.delete(
                        kinds.LEASE, subject.name, subject.namespace, metadata["uid"],
                        dry_run=False, policy="Background", version=metadata["resourceVersion"],
                    )  # fmt: skip
                    return
                except ClusterError as error:
                    # The process beside the run renewed it at this moment.
                    if error.status != 409:
                        raise

    @contextlib.contextmanager
    def hold(self, client: Client, wait_timeout: float = 0.0) -> Iterator[Client]:
        """Take the lease for a block; its client writes only while the lease is held. wait_timeout, errors: as of take."""
        self.take(wait_timeout)
        bound = bind_client(client, self.confirm)
        try:
            yield bound
        finally:
            self.end(unanswered=bound.has_unanswered_writes)

    def stop(self) -> None:
        """Renew it no more. It is left as it is."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _read(self) -> dict[str, Any] | None:
        return self._client.get(kinds.LEASE, self._subject.name, self._subject.namespace)

    def _build_spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": SECONDS,
            "renewTime": _format_time(self._client.now()),
        }

    def _build_definition(self) -> dict[str, Any]:
        subject = self._subject
        metadata = {"name": subject.name, "namespace": subject.namespace, "labels": dict(subject.labels)}
        spec = self._build_spec()
        return {"apiVersion": kinds.LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}

    def _write(self, annotations: Mapping[str, str | None]) -> None:
        metadata = {"resourceVersion": self._version, **({"annotations": dict(annotations)} if annotations else {})}
        body = {"metadata": metadata, "spec": self._build_spec()}
        live = self._client.patch(kinds.LEASE, self._subject.name, self._subject.namespace, body, FIELD_MANAGER)
        self._version = live["metadata"]["resourceVersion"]

    def _renew_or_lose(self) -> None:
        began = self._clock()
        while True:
            try:
                self.renew()
            except ClusterError as error:
                passing = error.reason != "taken_over" and self._clock() - began < self._renew_timeout
                if passing and not self._stop.wait(_LOOK):
                    continue
                self._lost = f"the lease of {self._subject.work} could not be renewed, so another run may have taken it over: {error}"
            return

    def _renew_in_background(self) -> None:
        while not (self._lost or self._stop.wait(SECONDS / _RENEWALS)):
            self._renew_or_lose()
        if self._lost:
            self._notify(self._lost)


def bind_client(client: Client, confirm: Callable[[], None]) -> Client:
    """A client of a run that holds a lease: `confirm` (of the Lease) is called right before each try of each write that lasts.

    Every such write names the version of its object that was read before: TypeError otherwise, which is a programming error. See
    fencing.py.
    """
    return client.guard_writes(confirm, _SILENCE, conditional=True)


def _format_time(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
