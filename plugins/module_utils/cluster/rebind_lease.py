# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sign of life of a run, which keeps a second one of the same record away."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import FIELD_MANAGER, Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of, is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.rebind import objects
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import moment


class Lease:
    """Held from begin to end. seconds: without a sign of life for so long, this run may be taken for dead.

    It must be more than the time for which one request is repeated: then a request of a dead run cannot come after the
    first of its successor.
    """

    def __init__(self, client: Client, namespace: str, run: str, seconds: int) -> None:
        self._client, self._namespace, self._holder, self._seconds = client, namespace, holder_of(os.getpid()), seconds
        self._name, self._run = objects.record_name(run), run
        self._version = ""
        self._stop = threading.Event()
        self._lost = ""
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def begin(self) -> None:
        """Take it. ClusterError locked when another run lives."""
        live = self._client.get(kinds.LEASE, self._name, self._namespace)
        if live is not None:
            self._refuse(live)
        try:
            if live is None:
                made = self._client.create_new(kinds.LEASE, self._definition(), dry_run=False)
            else:
                self._version = live["metadata"]["resourceVersion"]
                made = self._patch()
        except ClusterError as error:
            if error.status != 409:
                raise
            live = self._client.get(kinds.LEASE, self._name, self._namespace)
            if live is None or (live.get("spec") or {}).get("holderIdentity") != self._holder:
                raise ClusterError(
                    f"another run of {self._run} began at the same moment; let that one end", "locked", 409
                ) from error
            made = live
        self._version = made["metadata"]["resourceVersion"]
        self._thread.start()

    def _refuse(self, live: dict[str, Any]) -> None:
        spec = live.get("spec") or {}
        renewed = moment(spec.get("renewTime"))
        holder = str(spec.get("holderIdentity", ""))
        if renewed is None or not holder or holder == self._holder or is_dead(holder):
            return
        ends = renewed + timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0))
        now = self._client.now()
        if renewed > now + timedelta(seconds=self._seconds):
            raise ClusterError(
                f"{holder} gave its last sign of life for run {self._run} at {renewed:%Y-%m-%dT%H:%M:%SZ}, which is to come: its "
                f"clock jumped. When it is dead: kubectl -n {self._namespace} delete lease {self._name}.",
                "locked",
                409,
            )
        if ends > now:
            raise ClusterError(
                f"run {self._run} is at work: {holder} gave a sign of life at {renewed:%H:%M:%SZ}. Let it end; when it is "
                f"dead, this becomes possible in {(ends - now).total_seconds():.0f} s.",
                "locked",
                409,
            )

    def check(self) -> None:
        """Before each change. ClusterError taken_over when it is ours no more."""
        if self._lost:
            raise ClusterError(self._lost, "taken_over")

    def end(self) -> None:
        """Give it back, so that the next run need not wait."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._lost:
            return
        live = self._client.get(kinds.LEASE, self._name, self._namespace)
        if live is not None and (live.get("spec") or {}).get("holderIdentity") == self._holder:
            uid = live["metadata"]["uid"]
            self._client.delete(kinds.LEASE, self._name, self._namespace, uid, dry_run=False, policy="Background")

    def _spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": self._seconds,
            "renewTime": _stamp(self._client.now()),
        }

    def _definition(self) -> dict[str, Any]:
        metadata = {"name": self._name, "namespace": self._namespace, "labels": objects.labels(self._run)}
        return {"apiVersion": kinds.LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": self._spec()}

    def _patch(self) -> dict[str, Any]:
        body = {"metadata": {"resourceVersion": self._version}, "spec": self._spec()}
        return self._client.patch(kinds.LEASE, self._name, self._namespace, body, FIELD_MANAGER)

    def _keep(self) -> None:
        while not self._stop.wait(self._seconds / 4):
            try:
                self._version = self._patch()["metadata"]["resourceVersion"]
            except ClusterError as error:
                if error.status in (404, 409) and self._still_ours():
                    continue
                self._lost = f"the sign of life of run {self._run} could not be renewed: {error}"
                return

    def _still_ours(self) -> bool:
        """After a lost answer, or when somebody deleted it."""
        try:
            live = self._client.get(kinds.LEASE, self._name, self._namespace)
            if live is None:
                live = self._client.create_new(kinds.LEASE, self._definition(), dry_run=False)
        except ClusterError:
            return False
        self._version = live["metadata"]["resourceVersion"]
        return (live.get("spec") or {}).get("holderIdentity") == self._holder


def _stamp(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
