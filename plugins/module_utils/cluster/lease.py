# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time: a Lease (coordination.k8s.io/v1) whose holder gives a sign of life as long as he is at work.

Who was believed dead and was not notices before his next change, also when he slept: a machine that was suspended, a process
that was stopped.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import FIELD_MANAGER, Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import moment

# Linux's monotonic clock stands still while the machine sleeps; elsewhere there is one, which does not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class About:
    """Which lease it is. what: it is of, for messages. remedy: what to do when its holder is dead; {holder} stands for him."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    what: str
    remedy: str


class Lease:
    """Taken, and renewed by a thread until it is left or ended.

    holder: a name as of holder.py. seconds: without a sign of life for so long, he may be taken for dead. It must be more than
    the time for which one request is repeated: then a request of a dead run cannot come after the first of its successor.
    over: the holder from whom it may be taken although he may live. clock: runs also while this machine sleeps.
    """

    def __init__(
        self, client: Client, about: About, holder: str, seconds: int, over: str = "",
        clock: Callable[[], float] = lambda: time.clock_gettime(_CLOCK),
    ) -> None:  # fmt: skip
        self._client, self._about, self._holder, self._seconds, self._over = client, about, holder, seconds, over
        self._clock = clock
        self._version = ""
        self._alive = 0.0
        self._told = client.now()
        self._renewing = threading.Lock()
        self._stop = threading.Event()
        self._lost = ""
        self._thread = threading.Thread(target=self._keep_on, daemon=True)

    def take(self) -> None:
        """Take it, or go on with it. ClusterError locked when another run lives."""
        for _again in range(5):
            live = self._look()
            if live is None:
                # Somebody may be quicker; whose it is shows with the next look.
                self._client.create(self._definition())
                continue
            self._refuse(live)
            self._version = live["metadata"]["resourceVersion"]
            try:
                self._write(self._seconds)
            except ClusterError as error:
                if error.status not in (404, 409):
                    raise
                continue
            self._thread.start()
            return
        raise ClusterError(f"another run began {self._about.what} at the same moment; let that one end", "locked", 409)

    def others(self) -> str:
        """Who else is at it, empty when nobody is."""
        try:
            self._refuse(self._look() or {})
        except ClusterError as error:
            return str(error)
        return ""

    def _refuse(self, live: dict[str, Any]) -> None:
        spec = live.get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), moment(spec.get("renewTime"))
        if not holder or holder in (self._holder, self._over) or renewed is None or is_dead(holder):
            return
        now = self._client.now()
        ends = renewed + timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0))
        remedy = self._about.remedy.format(holder=holder)
        if renewed > now + timedelta(seconds=self._seconds):
            raise ClusterError(
                f"{holder} is at {self._about.what}, and gave its last sign of life at {renewed:%Y-%m-%d %H:%M:%SZ}, which is to "
                f"come: its clock jumped. When you know that it is dead: {remedy}",
                "locked",
                409,
            )
        if ends > now:
            raise ClusterError(
                f"another run is at {self._about.what}: {holder} gave its last sign of life "
                f"{(now - renewed).total_seconds():.0f} s ago, at {renewed:%Y-%m-%d %H:%M:%SZ}, and is believed alive until "
                f"{ends:%H:%M:%SZ}. Let it end. When you know that it is dead: {remedy}",
                "locked",
                409,
            )

    def check(self) -> None:
        """Before each change. ClusterError taken_over when it is ours no more, or the run that we are of has ended.

        The one who renews it may have slept as we did, so what is half over is renewed here; the other half is for the change.
        """
        if is_dead(self._holder):
            raise ClusterError("the run that this is a part of has ended; nothing more is changed", "interrupted")
        if self._half_over():
            self._keep()
        if self._lost:
            raise ClusterError(self._lost, "taken_over")

    def _half_over(self) -> bool:
        """By the API server's clock as well: that of a virtual machine stands still while it is paused."""
        slept, passed = self._clock() - self._alive, self._client.now() - self._told
        return max(slept, abs(passed.total_seconds())) > self._seconds / 2

    def leave(self, seconds: float) -> None:
        """End of this process, not of the run: the next one comes within these seconds."""
        self._still()
        if self._lost:
            raise ClusterError(self._lost, "taken_over")
        self._renew(int(seconds) + self._seconds)

    def end(self) -> None:
        """End of the run: the next one need not wait. Where that cannot be said, it waits; why the run ends matters more."""
        self._still()
        with contextlib.suppress(ClusterError):
            live = None if self._lost else self._look()
            if live is not None and (live.get("spec") or {}).get("holderIdentity") == self._holder:
                about, metadata = self._about, live["metadata"]
                self._client.delete(
                    kinds.LEASE, about.name, about.namespace, metadata["uid"],
                    dry_run=False, policy="Background", version=metadata["resourceVersion"],
                )  # fmt: skip

    def _still(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _look(self) -> dict[str, Any] | None:
        return self._client.get(kinds.LEASE, self._about.name, self._about.namespace)

    def _spec(self, seconds: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": seconds,
            "renewTime": _stamp(self._client.now()),
        }

    def _definition(self) -> dict[str, Any]:
        about = self._about
        metadata = {"name": about.name, "namespace": about.namespace, "labels": dict(about.labels)}
        spec = self._spec(self._seconds)
        return {"apiVersion": kinds.LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}

    def _write(self, seconds: int) -> None:
        alive, told = self._clock(), self._client.now()
        body = {"metadata": {"resourceVersion": self._version}, "spec": self._spec(seconds)}
        made = self._client.patch(kinds.LEASE, self._about.name, self._about.namespace, body, FIELD_MANAGER)
        self._version, self._alive, self._told = made["metadata"]["resourceVersion"], alive, told

    def _renew(self, seconds: int) -> None:
        """Go on with what is ours. Gone is lost: another run may have taken it, and ended; so it is never made again."""
        about = self._about
        with self._renewing:
            for _again in range(5):
                try:
                    self._write(seconds)
                    return
                except ClusterError as error:
                    if error.status not in (404, 409):
                        raise
                live = self._look()
                holder = str(((live or {}).get("spec") or {}).get("holderIdentity") or "")
                if live is None or holder != self._holder:
                    raise ClusterError(
                        f"Lease {about.namespace}/{about.name} is {f'held by {holder}' if live else 'gone'}, expected was "
                        f"{self._holder}: another run is at {about.what}, or was. Let that one end, then run again",
                        "taken_over",
                    )
                # After an answer that was lost the version may be newer for a write of our own; or somebody gave it a label.
                self._version = live["metadata"]["resourceVersion"]
        raise ClusterError(
            f"Lease {about.namespace}/{about.name} changes faster than it can be renewed", "conflict", 409
        )

    def _keep(self) -> None:
        try:
            self._renew(self._seconds)
        except ClusterError as error:
            self._lost = (
                f"the sign of life of {self._about.what} could not be renewed, another run may be at it: {error}"
            )

    def _keep_on(self) -> None:
        while not (self._lost or self._stop.wait(self._seconds / 4)):
            self._keep()


def _stamp(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
