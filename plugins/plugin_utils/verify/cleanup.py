# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes the objects of a verification, also those of a killed run. Never deletes a volume that its class retains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from ..base.waiting import render_progress, report_progress
from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.kinds import Kind
from ..kube.lease import Lease, LeaseSubject
from ..kube.times import parse_time
from . import objects
from .objects import RunScope
from .plan import VerifyTarget
from .verdict import EarlierRun, RemainingObject

# Seconds between two looks at what is being deleted; each wait for it has an end.
_LOOK = 0.3
# Until everything is gone; storage may take minutes to detach and delete a disk.
PATIENCE = 300.0
# A run that is starting makes its namespace first and its lease a moment later.
_STARTING = timedelta(seconds=60)
_LONG_AGO = datetime.fromtimestamp(0, timezone.utc)


class Cleaner:
    """Deletes objects with a run's label."""

    def __init__(self, client: Client, scope: RunScope, notify: Callable[[str], None]) -> None:
        self._client, self._scope, self._notify = client, scope, notify
        self._volumes: dict[str, str] = {}
        self._left: dict[tuple[str, str], RemainingObject] = {}
        self._lock = threading.Lock()

    @property
    def left(self) -> tuple[RemainingObject, ...]:
        """Objects that could not or must not be deleted."""
        with self._lock:
            return tuple(self._left.values())

    def record_volume(self, volume: str, claim: str) -> None:
        """Record a volume of this run and its claim, to be deleted at the end."""
        if volume:
            with self._lock:
                self._volumes[volume] = claim

    def delete_target(self, target: VerifyTarget) -> None:
        """Delete one target's claim and pods while the run continues."""
        name = self._scope.name(target)
        try:
            with self._report_progress(f"{target.driver} on {target.node}: deleting its pods, claim and volume"):
                self._remove(time.monotonic() + PATIENCE, lambda other: other == name or other.startswith(f"{name}-"))
        except ClusterError as error:
            # The end of the run retries everything, and reports what is left then.
            self._notify(f"{target.driver} on {target.node}: {error}")

    def delete_all(self, ends: float) -> None:
        """Delete everything of the run, then its lease, then a namespace of its own. An error is reported as a remaining object, so
        that it hides no proof. ends: until when what is deleted is waited for.
        """
        scope, owns_namespace = self._scope, self._scope.owns_namespace
        try:
            with self._report_progress(f"deleting the objects of this run in namespace {scope.namespace}"):
                self._remove(ends, lambda _name: True)
                selector = objects.select_run(scope.run)
                for lease in self._client.list(kinds.LEASE, scope.namespace, label_selector=selector).items:
                    self._client.discard(kinds.LEASE, lease)
                while owns_namespace and (live := self._client.get(kinds.NAMESPACE, scope.namespace)) is not None:
                    self._discard(kinds.NAMESPACE, live)
                    if time.monotonic() > ends:
                        why = (
                            f"it is being deleted; check what blocks that: kubectl describe namespace {scope.namespace}"
                        )
                        self._keep(kinds.NAMESPACE.kind, scope.namespace, why)
                        return
                    time.sleep(_LOOK)
        except ClusterError as error:
            self._keep(
                kinds.NAMESPACE.kind if owns_namespace else "objects with label",
                scope.namespace if owns_namespace else f"{objects.RUN}={scope.run}",
                f"cleanup failed: {error}. The next run deletes it",
            )

    @contextmanager
    def _report_progress(self, subject: str) -> Iterator[None]:
        began = time.monotonic()
        with report_progress(
            self._notify, lambda: f"{subject} ({render_progress(time.monotonic() - began, PATIENCE)})"
        ):
            yield

    def _remove(self, ends: float, is_included: Callable[[str], bool]) -> None:
        """Delete pods, then claims, and wait until their volumes are deleted."""
        while remaining := list(self._find_remaining(is_included)):
            if time.monotonic() > ends:
                for kind, name, why in remaining:
                    self._keep(kind.kind, name, why)
                return
            time.sleep(_LOOK)

    def _find_remaining(self, is_included: Callable[[str], bool]) -> Iterator[tuple[Kind, str, str]]:
        """Delete what goes next: pods, without pods the claims; find volumes that the driver still has to delete without these."""
        for kind in (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM):
            listed = self._client.list(kind, self._scope.namespace, label_selector=objects.select_run(self._scope.run))
            items = [item for item in listed.items if is_included(item["metadata"]["name"])]
            for item in items:
                name = item["metadata"]["name"]
                if kind == kinds.PERSISTENT_VOLUME_CLAIM:
                    self.record_volume(str((item.get("spec") or {}).get("volumeName") or ""), name)
                self._discard(kind, item)
                yield kind, name, "it was deleted but still exists; check its node and its finalizers"
            if items:
                return
        with self._lock:
            names = sorted(name for name, claim in self._volumes.items() if is_included(claim))
        for name in filter(self._is_remaining, names):
            why = "its claim was deleted, but the driver's controller has not deleted it; check the log of its provisioner"
            yield kinds.PERSISTENT_VOLUME, name, why

    def _discard(self, kind: Kind, live: Mapping[str, Any]) -> None:
        if "deletionTimestamp" not in live["metadata"]:
            self._client.discard(kind, live)

    def _is_remaining(self, name: str) -> bool:
        """Whether a volume still exists that is to be deleted. A retained one is reported."""
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
            self._left[(kind, name)] = RemainingObject(kind, self._scope.namespace, name, why, kept)


def describe_lease(scope: RunScope) -> LeaseSubject:
    """Describe the Lease of a run; while it is renewed, no other run deletes the objects."""
    subject = f"the verification in namespace {scope.namespace}"
    return LeaseSubject(scope.namespace, f"{objects.PREFIX}-{scope.run}", scope.build_labels(), subject)


def find_earlier_runs(client: Client, scope: RunScope, notify: Callable[[str], None]) -> tuple[EarlierRun, ...]:
    """Return runs with leftovers in the whole cluster, or in the namespace of this run.

    Waits as long as a lease lasts if one of them seems to have ended on another machine.
    """
    kinds_of_leftovers = (kinds.NAMESPACE,) if scope.owns_namespace else (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM)
    scopes: dict[str, RunScope] = {}
    created: dict[str, datetime] = {}
    for kind in (kinds.LEASE, *kinds_of_leftovers):
        namespace = None if scope.owns_namespace else scope.namespace
        for item in client.list(kind, namespace, label_selector=objects.SELECTOR).items:
            metadata = item["metadata"]
            run = str(metadata["labels"].get(objects.RUN, ""))
            if run and run != scope.run:
                scopes[run] = RunScope(run, metadata.get("namespace") or metadata["name"], kind == kinds.NAMESPACE)
                age = parse_time(metadata.get("creationTimestamp")) or _LONG_AGO
                created[run] = max(age, created.get(run, age))
    return tuple(
        EarlierRun(scopes[run], _find_sign_of_life(client, scopes[run], created[run], notify)) for run in sorted(scopes)
    )


def _find_sign_of_life(client: Client, scope: RunScope, created: datetime, notify: Callable[[str], None]) -> str:
    """Return why a run counts as alive, empty if it ended. created: when its youngest object was created."""
    lease = Lease(client, describe_lease(scope), "", notify)
    if lives := lease.find_other_run():
        return lives
    try:
        live = lease.wait()
    except ClusterError as error:
        if error.reason != "locked":
            raise
        return str(error)
    age = client.now() - created
    return f"it began {int(age.total_seconds())} s ago" if live is None and age < _STARTING else ""


def delete_leftovers(
    client: Client, runs: Sequence[EarlierRun], notify: Callable[[str], None]
) -> list[RemainingObject]:
    """Delete the leftovers of ended runs; return what remains of them."""
    ends, left = time.monotonic() + PATIENCE, list[RemainingObject]()
    for run in runs:
        if run.lives:
            notify(f"run {run.scope.run} in namespace {run.scope.namespace} is kept: {run.lives}")
            continue
        notify(f"deleting what run {run.scope.run} left in namespace {run.scope.namespace}")
        cleaner = Cleaner(client, run.scope, notify)
        cleaner.delete_all(ends)
        left += cleaner.left
    return left
