# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Leftovers of an ended run are deleted, those of a live run are not: its lease and its age decide, not its clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.leftovers import compute_observation_time, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import RUN

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=timezone.utc)


def thing(run: str, age: float) -> dict[str, Any]:
    made = (NOW - timedelta(seconds=age)).isoformat()
    return {"metadata": {"name": "x", "labels": {RUN: run}, "creationTimestamp": made}}


def lease(run: str, renewed: float | None, seconds: int = 60) -> dict[str, Any]:
    spec: dict[str, Any] = {"leaseDurationSeconds": seconds, "holderIdentity": "there/7"}
    if renewed is not None:
        spec["renewTime"] = (NOW - timedelta(seconds=renewed)).isoformat()
    return {**thing(run, 3600), "spec": spec}


@pytest.mark.parametrize(
    ("leases", "age", "lives"),
    [
        ([lease("a", 10)], 3600, "there/7 renewed its lease at 2026-11-21 07:59:50Z"),
        ([lease("a", 59)], 3600, "there/7 renewed its lease at 2026-11-21 07:59:01Z"),
        ([lease("a", 61)], 3600, ""),
        ([lease("a", 61, seconds=120)], 3600, "there/7 renewed its lease at 2026-11-21 07:58:59Z"),
        ([lease("a", None)], 3600, ""),
        ([], 3600, ""),
        ([], 5, "it began 5 s ago"),
        ([lease("b", 10)], 3600, ""),
    ],
)
def test_a_run_lives_while_it_renews_its_lease_or_only_just_began(
    leases: list[dict[str, Any]], age: float, lives: str
) -> None:
    found = evaluate([thing("a", age)], leases, leases, "mine", NOW)
    assert found["a"].startswith(lives)
    assert bool(found["a"]) == bool(lives)


def test_own_objects_and_objects_without_labels_are_not_leftovers() -> None:
    unlabelled = {"metadata": {"name": "x"}}
    leases = [lease("mine", 600)]
    assert compute_observation_time(leases, "mine", NOW) == 0
    assert evaluate([thing("mine", 3600), unlabelled], leases, leases, "mine", NOW) == {}


def test_a_lease_alone_is_a_leftover_too() -> None:
    assert evaluate([], [lease("a", 600)], [lease("a", 600)], "mine", NOW) == {"a": ""}


def test_the_newest_object_of_a_run_has_its_age() -> None:
    assert evaluate([thing("a", 3600), thing("a", 5)], [], [], "mine", NOW)["a"] == "it began 5 s ago"


@pytest.mark.parametrize("skew", [-3600, 3600], ids=["behind", "ahead"])
def test_a_run_whose_clock_is_wrong_lives_while_it_renews_its_lease(skew: float) -> None:
    before, now = [lease("a", 20 + skew)], [lease("a", 10 + skew)]
    assert compute_observation_time(before, "mine", NOW) == 60
    assert evaluate([thing("a", 3600)], before, now, "mine", NOW)["a"].startswith("there/7 renewed its lease")
    assert evaluate([thing("a", 3600)], now, now, "mine", NOW) == {"a": ""}
