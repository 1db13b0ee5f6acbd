# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leftovers of earlier runs, and whether these are alive. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import Held
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import RUN

# A run that is starting makes its namespace first and its lease a moment later.
STARTING = timedelta(seconds=60)


def seconds_to_observe(leases: Iterable[Mapping[str, Any]], mine: str, now: datetime) -> float:
    """Seconds to observe these leases before it is known which runs have ended; 0 if none can have."""
    helds = [Held.from_object(lease, now) for lease in leases if _run(lease) != mine]
    return max((held.lasts for held in helds if held is not None and not held.fresh), default=0.0)


def evaluate(
    things: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]], leases: Iterable[Mapping[str, Any]],
    mine: str, now: datetime,
) -> dict[str, str]:  # fmt: skip
    """Every other run that left something, with why it counts as alive, empty if it has ended. now: by the API server's clock.

    things: all labelled objects; leases: those of the runs; before: the same, as long ago as `seconds_to_observe` requires. A run has ended
    if its lease does not look fresh and was not renewed meanwhile, or if it has no lease and is older than a start takes.
    """
    renewals, former = {_run(lease): lease for lease in leases}, {_run(lease): lease for lease in before}
    youngest: dict[str, datetime | None] = {}
    for thing in [*things, *renewals.values()]:
        run = _run(thing)
        if not run or run == mine:
            continue
        made = parse_time(thing["metadata"].get("creationTimestamp"))
        known = youngest.get(run)
        youngest[run] = made if known is None else max(filter(None, (known, made)), default=None)
    return {run: _find_sign_of_life(renewals.get(run), former.get(run), youngest[run], now) for run in sorted(youngest)}


def _run(thing: Mapping[str, Any]) -> str:
    return str((thing["metadata"].get("labels") or {}).get(RUN, ""))


def _find_sign_of_life(
    lease: Mapping[str, Any] | None, before: Mapping[str, Any] | None, made: datetime | None, now: datetime
) -> str:
    if lease is None:
        young = made is not None and now - made < STARTING
        return f"it began {int((now - made).total_seconds())} s ago" if young and made is not None else ""
    held, former = Held.from_object(lease, now), Held.from_object(before, now)
    if held is None:
        return ""
    return str(held) if held.fresh or former is None or held.is_renewed_since(former) else ""
