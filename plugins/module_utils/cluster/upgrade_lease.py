# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one upgrade of a cluster: a Lease that names the run that is at it, and until when it is to be believed alive."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import FIELD_MANAGER, Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.removal import PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import MANAGED_BY, MANAGER
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import moment

NAME = "kubewin-upgrade"
PART = "upgrade"
# Seconds without a sign of life while a module runs; a request may be repeated for a part of that.
AT_WORK = 120


class UpgradeLease:
    """Held by a whole run, which is many modules: each renews it while it runs and leaves it for as long as may pass to the next.

    holder: of the run. over: the holder whom this run may take over from although he may live.
    """

    def __init__(self, client: Client, namespace: str, holder: str, over: str = "") -> None:
        self._client, self._namespace, self._holder, self._over = client, namespace, holder, over
        self._version = ""
        self._stop = threading.Event()
        self._lost = ""
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def take(self) -> None:
        """Take it, or go on with it. ClusterError locked when another run lives."""
        for _again in range(5):
            live = self._client.get(kinds.LEASE, NAME, self._namespace)
            try:
                if live is None:
                    # Somebody may be quicker; whose it is shows with the next look.
                    self._client.create(self._definition())
                    continue
                self._refuse(live)
                self._version = live["metadata"]["resourceVersion"]
                made = self._renew(AT_WORK)
            except ClusterError as error:
                if error.status not in (404, 409) or error.reason == "locked":
                    raise
                continue
            self._version = made["metadata"]["resourceVersion"]
            self._thread.start()
            return
        raise ClusterError(
            "another run began an upgrade of this cluster at the same moment; let that one end", "locked", 409
        )

    def others(self) -> str:
        """Who else is at it, empty when nobody is."""
        live = self._client.get(kinds.LEASE, NAME, self._namespace)
        try:
            self._refuse(live or {})
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
        if ends > now:
            raise ClusterError(
                f"another run is at an upgrade of this cluster: {holder} gave its last sign of life "
                f"{(now - renewed).total_seconds():.0f} s ago, at {renewed:%Y-%m-%d %H:%M:%SZ}, and is believed alive until "
                f"{ends:%H:%M:%SZ}. Let it end. When you know that it is dead, run again with "
                f"kubewin_upgrade_take_over={holder}",
                "locked",
                409,
            )

    def check(self) -> None:
        """Before each change. ClusterError taken_over when it is ours no more, or the run that we are of has ended."""
        if is_dead(self._holder):
            raise ClusterError("the run that this is a part of has ended; nothing more is changed", "interrupted")
        if self._lost:
            raise ClusterError(self._lost, "taken_over")

    def leave(self, seconds: float) -> None:
        """End of this module, not of the run: the next one comes within these seconds."""
        self._still()
        for again in (True, False):
            try:
                if not self._lost:
                    self._version = self._renew(int(seconds) + AT_WORK)["metadata"]["resourceVersion"]
                return
            except ClusterError as error:
                if not (again and error.status in (404, 409) and self._still_ours()):
                    raise

    def end(self) -> None:
        """End of the run: the next one need not wait."""
        self._still()
        live = self._client.get(kinds.LEASE, NAME, self._namespace)
        if live is not None and (live.get("spec") or {}).get("holderIdentity") == self._holder:
            uid = live["metadata"]["uid"]
            self._client.delete(kinds.LEASE, NAME, self._namespace, uid, dry_run=False, policy="Background")

    def _still(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _spec(self, seconds: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": seconds,
            "renewTime": _stamp(self._client.now()),
        }

    def _definition(self) -> dict[str, Any]:
        labels = {MANAGED_BY: MANAGER, PART_OF: PART}
        metadata = {"name": NAME, "namespace": self._namespace, "labels": labels}
        return {
            "apiVersion": kinds.LEASE.api_version,
            "kind": "Lease",
            "metadata": metadata,
            "spec": self._spec(AT_WORK),
        }

    def _renew(self, seconds: int) -> dict[str, Any]:
        body = {"metadata": {"resourceVersion": self._version}, "spec": self._spec(seconds)}
        return self._client.patch(kinds.LEASE, NAME, self._namespace, body, FIELD_MANAGER)

    def _keep(self) -> None:
        while not self._stop.wait(AT_WORK / 6):
            try:
                self._version = self._renew(AT_WORK)["metadata"]["resourceVersion"]
            except ClusterError as error:
                if not (error.status in (404, 409) and self._still_ours()):
                    self._lost = f"this run's sign of life could not be renewed, another one may be at it: {error}"
                    return

    def _still_ours(self) -> bool:
        """After an answer that was lost, the version may be newer for a write of our own; one that somebody deleted is made again."""
        try:
            live = self._client.get(kinds.LEASE, NAME, self._namespace)
            if live is None:
                live = self._client.create_new(kinds.LEASE, self._definition(), dry_run=False)
        except ClusterError:
            return False
        if (live.get("spec") or {}).get("holderIdentity") != self._holder:
            return False
        self._version = live["metadata"]["resourceVersion"]
        return True


def _stamp(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
