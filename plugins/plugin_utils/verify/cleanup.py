# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking away what a proof made: in a run, after it, and after one that died. Never a volume that is to be kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import render_progress, report_progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import leftovers, objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import Room
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import Target

_LOOK = 0.3
# Until everything is gone; storage may take minutes to detach and delete a disk.
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Left:
    """Something that is still there. kept: on purpose, a StorageClass says so; nothing else of a run may stay."""

    kind: str
    namespace: str
    name: str
    why: str
    kept: bool


class Cleaner:
    """Takes away what carries a run's label."""

    def __init__(self, client: Client, room: Room, notify: Callable[[str], None]) -> None:
        self._client, self._room, self._notify = client, room, notify
        self._volumes: dict[str, str] = {}
        self._left: dict[tuple[str, str], Left] = {}
        self._lock = threading.Lock()

    @property
    def left(self) -> tuple[Left, ...]:
        """What could not be taken away, or must not be."""
        with self._lock:
            return tuple(self._left.values())

    def note(self, volume: str, claim: str) -> None:
        """A volume of this run and its claim: it has to be gone in the end."""
        if volume:
            with self._lock:
                self._volumes[volume] = claim

    def target(self, target: Target) -> None:
        """Delete one target's claim and pods while the run continues."""
        name = self._room.name(target)
        selector = objects.of_run(self._room.run)
        try:
            with self._reporting(f"{target.driver} on {target.node}: deleting its pods, claim and volume"):
                self._remove(
                    selector, time.monotonic() + PATIENCE, lambda found: found == name or found.startswith(f"{name}-")
                )
        except ClusterError as error:
            # The end of the run retries everything, and reports what is left then.
            self._notify(f"{target.driver} on {target.node}: {error}")

    def all(self) -> None:
        """Take away everything of the run, its lease last, and its namespace if that is its own."""
        ends = time.monotonic() + PATIENCE
        self.most(ends)
        self.rest(ends)

    def most(self, ends: float) -> None:
        """As all, without waiting for the namespace: Kubernetes takes its time with that."""
        selector = objects.of_run(self._room.run)
        with self._reported():
            self._remove(selector, ends, lambda _name: True)
            for lease in self._client.list(kinds.LEASE, self._room.namespace, label_selector=selector).items:
                self._client.discard(kinds.LEASE, lease)
            live = self._client.get(kinds.NAMESPACE, self._room.namespace) if self._room.own else None
            if live is not None:
                self._client.discard(kinds.NAMESPACE, live)

    def rest(self, ends: float) -> None:
        """Wait for the namespace."""
        with self._reported():
            while self._room.own and self._client.get(kinds.NAMESPACE, self._room.namespace) is not None:
                if time.monotonic() > ends:
                    why = "it is being deleted; check what blocks that: kubectl describe namespace"
                    self._keep(kinds.NAMESPACE.kind, self._room.namespace, why)
                    return
                time.sleep(_LOOK)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """An error of the cleanup hides no proof; it is reported with what it leaves."""
        try:
            with self._reporting(f"deleting the objects of this run in namespace {self._room.namespace}"):
                yield
        except ClusterError as error:
            self._keep(
                kinds.NAMESPACE.kind if self._room.own else "objects with label",
                self._room.namespace if self._room.own else f"{objects.RUN}={self._room.run}",
                f"cleanup failed: {error}. The next run deletes it",
            )

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        with report_progress(self._notify, lambda: f"{what} ({render_progress(time.monotonic() - began, PATIENCE)})"):
            yield

    def _remove(self, selector: str, ends: float, ours: Callable[[str], bool]) -> None:
        """Pods first, then claims, then wait for the volumes behind them."""
        namespace = self._room.namespace
        for kind in (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM):
            while True:
                found = [
                    item
                    for item in self._client.list(kind, namespace, label_selector=selector).items
                    if ours(item["metadata"]["name"])
                ]
                if kind == kinds.PERSISTENT_VOLUME_CLAIM:
                    for item in found:
                        self.note(str((item.get("spec") or {}).get("volumeName") or ""), item["metadata"]["name"])
                for item in found:
                    if "deletionTimestamp" not in item["metadata"]:
                        self._client.discard(kind, item)
                if not found:
                    break
                if time.monotonic() > ends:
                    for item in found:
                        why = "it was deleted but still exists; check its node and its finalizers"
                        self._keep(kind.kind, item["metadata"]["name"], why)
                    return
                time.sleep(_LOOK)
        self._volumes_gone(ends, ours)

    def _volumes_gone(self, ends: float, ours: Callable[[str], bool]) -> None:
        while True:
            with self._lock:
                names = sorted(name for name, claim in self._volumes.items() if ours(claim))
            waiting = [name for name in names if self._stays(name)]
            if not waiting:
                return
            if time.monotonic() > ends:
                for name in waiting:
                    why = "its claim was deleted, but the driver's controller has not deleted it; check the log of its provisioner"
                    self._keep(kinds.PERSISTENT_VOLUME.kind, name, why)
                return
            time.sleep(_LOOK)

    def _stays(self, name: str) -> bool:
        """Whether a volume without its claim is still to go. One that its class keeps is named, and never deleted here."""
        live = self._client.get(kinds.PERSISTENT_VOLUME, name)
        spec = (live or {}).get("spec") or {}
        if live is not None and spec.get("persistentVolumeReclaimPolicy") != "Retain":
            return True
        with self._lock:
            self._volumes.pop(name, None)
            self._left.pop((kinds.PERSISTENT_VOLUME.kind, name), None)
        if live is not None:
            handle = (spec.get("csi") or {}).get("volumeHandle") or "its backend"
            why = (
                f"StorageClass {spec.get('storageClassName')} retains its volumes. To delete it: kubectl delete pv "
                f"{name}, and delete {handle} in the storage"
            )
            self._keep(kinds.PERSISTENT_VOLUME.kind, name, why, kept=True)
        return False

    def _keep(self, kind: str, name: str, why: str, *, kept: bool = False) -> None:
        with self._lock:
            self._left[(kind, name)] = Left(kind, self._room.namespace, name, why, kept)


@dataclass(frozen=True, slots=True)
class Found:
    """An earlier run's room, and why it is left alone, if it is."""

    room: Room
    lives: str


def earlier(
    client: Client, room: Room, notify: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> tuple[Found, ...]:
    """Runs with leftovers where this one may read: everywhere, or in its namespace.

    Waits as long as a lease lasts if one of them seems to have ended on another machine.
    """
    where = None if room.own else room.namespace
    listed: Sequence[Kind] = (kinds.NAMESPACE,) if room.own else (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM)
    things = [
        item
        for kind in listed
        for item in client.list(kind, where if kind.namespaced else None, label_selector=objects.OURS).items
    ]
    leases = before = client.list(kinds.LEASE, where, label_selector=objects.OURS).items
    if seconds := leftovers.seconds_to_observe(before, room.run, client.now()):
        notify(f"an earlier run seems to have ended; waiting {seconds:.0f} s for a renewal of its lease")
        sleep(seconds)
        leases = client.list(kinds.LEASE, where, label_selector=objects.OURS).items
    rooms: dict[str, Room] = {}
    for item in (*leases, *things):
        metadata = item["metadata"]
        run = str((metadata.get("labels") or {}).get(objects.RUN, ""))
        own = "namespace" not in metadata
        if run not in rooms or own:
            rooms[run] = Room(run, metadata["name"] if own else metadata["namespace"], own)
    evaluated = leftovers.evaluate(things, before, leases, room.run, client.now())
    return tuple(Found(rooms[run], lives) for run, lives in evaluated.items())


def take_away(client: Client, found: Sequence[Found], notify: Callable[[str], None]) -> list[Cleaner]:
    """Delete the leftovers of ended runs; return the cleaners, which delete the rest when this run ends."""
    ends = time.monotonic() + PATIENCE
    at_work: list[Cleaner] = []
    for one in found:
        if one.lives:
            notify(f"run {one.room.run} in namespace {one.room.namespace} is kept: {one.lives}")
            continue
        notify(f"deleting what run {one.room.run} left in namespace {one.room.namespace}")
        cleaner = Cleaner(client, one.room, notify)
        cleaner.most(ends)
        at_work.append(cleaner)
    return at_work
