# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leftovers of earlier runs, and whether these are alive. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import Held
from ansible_collections.kubewin.csi.plugins.module_utils.kube.times import moment
from ansible_collections.kubewin.csi.plugins.module_utils.verify.objects import RUN

# A run that is starting makes its namespace first and its lease a moment later.
STARTING = timedelta(seconds=60)


def evaluate(
    things: Iterable[Mapping[str, Any]], leases: Iterable[Mapping[str, Any]], mine: str, now: datetime
) -> dict[str, str]:
    """Every other run that left something, with why it counts as alive, empty if it has ended. now: by the API server's clock.

    things: all labelled objects; leases: those of the runs. A run has ended if its lease was not renewed in time, or if it
    has no lease and is older than a start takes.
    """
    renewals = {_run(lease): lease for lease in leases}
    youngest: dict[str, datetime | None] = {}
    for thing in [*things, *renewals.values()]:
        run = _run(thing)
        if not run or run == mine:
            continue
        made = moment(thing["metadata"].get("creationTimestamp"))
        known = youngest.get(run)
        youngest[run] = made if known is None else max(filter(None, (known, made)), default=None)
    return {run: _lives(renewals.get(run), youngest[run], now) for run in sorted(youngest)}


def _run(thing: Mapping[str, Any]) -> str:
    return str((thing["metadata"].get("labels") or {}).get(RUN, ""))


def _lives(lease: Mapping[str, Any] | None, made: datetime | None, now: datetime) -> str:
    if lease is None:
        young = made is not None and now - made < STARTING
        return f"it began {int((now - made).total_seconds())} s ago" if young and made is not None else ""
    return str(Held.from_object(lease, now) or "")
