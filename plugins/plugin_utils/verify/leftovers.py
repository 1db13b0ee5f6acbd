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


def compute_observation_time(leases: Iterable[Mapping[str, Any]], own_run: str, current_time: datetime) -> float:
    """Return how many seconds to observe these leases until it is known which runs have ended; 0 if none has."""
    helds = [Held.from_object(lease, current_time) for lease in leases if _run(lease) != own_run]
    return max((held.lasts for held in helds if held is not None and not held.fresh), default=0.0)


def evaluate(
    things: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]], leases: Iterable[Mapping[str, Any]],
    own_run: str, current_time: datetime,
) -> dict[str, str]:  # fmt: skip
    """Return every other run with leftovers, and why it counts as alive, empty if it ended. current_time: by the API server's clock.

    things: all labelled objects; leases: those of the runs; before: the same, as long ago as `seconds_to_observe` requires. A run has ended
    if its lease does not look fresh and was not renewed meanwhile, or if it has no lease and is older than a start takes.
    """
    renewals, former = {_run(lease): lease for lease in leases}, {_run(lease): lease for lease in before}
    youngest: dict[str, datetime | None] = {}
    for thing in [*things, *renewals.values()]:
        run = _run(thing)
        if not run or run == own_run:
            continue
        created = parse_time(thing["metadata"].get("creationTimestamp"))
        former_youngest = youngest.get(run)
        youngest[run] = (
            created if former_youngest is None else max(filter(None, (former_youngest, created)), default=None)
        )
    return {
        run: _find_sign_of_life(renewals.get(run), former.get(run), youngest[run], current_time)
        for run in sorted(youngest)
    }


def _run(thing: Mapping[str, Any]) -> str:
    return str((thing["metadata"].get("labels") or {}).get(RUN, ""))


def _find_sign_of_life(
    lease: Mapping[str, Any] | None, before: Mapping[str, Any] | None, created: datetime | None, current_time: datetime
) -> str:
    if lease is None:
        young = created is not None and current_time - created < STARTING
        return (
            f"it began {int((current_time - created).total_seconds())} s ago" if young and created is not None else ""
        )
    held, former = Held.from_object(lease, current_time), Held.from_object(before, current_time)
    if held is None:
        return ""
    return str(held) if held.fresh or former is None or held.is_renewed_since(former) else ""
