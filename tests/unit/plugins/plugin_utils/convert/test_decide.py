# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A remedy for a claim never loses data, and suffices to continue or to end. The model tests the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.actions import (
    CreateVolume,
    DeleteClaim,
    DeleteVolume,
    Done,
    Mark,
    Save,
    Stop,
    StopHelper,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import next_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import Request
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.facts import (
    Observation,
    ObservedClaim,
    ObservedVolume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record
from unit.plugins.plugin_utils.convert.test_record import IN_PLACE, RECLAIM, record

TARGET = ObservedVolume(
    "pv-1", "u9", "1", "new", "Retain", "Available", terminating=False, finalizers=(), claim_uid="", by=""
)


def theirs(volume: str, lock: str = "", uid: str = "another-uid") -> ObservedClaim:
    return ObservedClaim(
        uid, "1", "Bound", volume, terminating=False, lock=lock, generation=1 if lock else 0, held=False
    )


def observations(found: Record) -> Iterator[tuple[Record, Observation, ObservedClaim]]:
    """Every step in both directions, with every claim that may stand there."""
    for step, back, volume, lock, uid in itertools.product(
        found.steps,
        (False, True),
        ("", found.old.name, found.new.name, "pv-of-another"),
        ("", found.lock, "another.k9"),
        (found.claim_uid, "another-uid"),
    ):
        claim = theirs(volume, lock, uid)
        at = replace(found.rolled_back("asked") if back else found, step=step)
        for volumes in ((), (replace(TARGET, name=at.target.name, whose=at.target_side),)):
            yield at, Observation(volumes, claim, ()), claim


@pytest.mark.parametrize("desired", [IN_PLACE, RECLAIM])
def test_no_claim_with_a_volume_of_its_own_is_deleted_and_none_by_hand_without_an_observation(desired: Request) -> None:
    found = record(desired)
    reported = 0
    for at, observed, claim in observations(found):
        move = next_move(at, observed)
        known = claim.volume in ("", found.old.name, found.new.name)
        assert known or not isinstance(move, DeleteClaim), (at.step, claim)
        if isinstance(move, Stop) and "delete pvc" in move.remedy:
            reported += 1
            assert known, (at.step, claim)
            assert "and only then: kubectl -n shop delete pvc data-db-0" in move.remedy
            assert not claim.volume or f"Retain (kubectl get pv {claim.volume})" in move.remedy
    assert reported


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_a_conversion_can_be_rolled_back_until_the_user_makes_it_final(policy: str) -> None:
    found = replace(record(), policy=policy).at("finish")
    claim = ObservedClaim(
        found.claim_uid, "1", "Bound", "pv-1", terminating=False, lock=found.lock, generation=1, held=False
    )
    volume = replace(TARGET, phase="Bound", claim_uid=found.claim_uid)
    current = Observation((volume,), claim, (), final=False)
    move = next_move(found, current)
    assert isinstance(move, Done), move
    assert move.until
    # Rolled back from there, and final if the user makes it final.
    assert next_move(found.rolled_back("asked"), current) != move
    assert not isinstance(next_move(found, replace(current, final=True)), Done)


def stopped(at: Record, claim: ObservedClaim | None) -> Stop:
    move = next_move(at, Observation((TARGET,), claim, ()))
    assert isinstance(move, Stop), move
    return move


def test_a_claim_with_another_volume_is_left_alone_and_the_run_can_be_ended() -> None:
    stop = stopped(record().at("finish"), theirs("pv-of-production"))
    assert stop.reason == "claim_changed"
    assert "created by another client (uid another-uid), and has another volume, pv-of-production" in stop.found
    assert "This run changes neither" in stop.remedy
    assert (
        f"move its record out of every store: ConfigMap kubewin-convert-{record().run} in each record namespace"
        in stop.remedy
    )


def test_another_runs_lock_on_a_claim_with_another_volume_is_not_taken() -> None:
    """Nor does one continue that a user gave our lock."""
    for lock in ("another.k9", record().lock):
        stop = stopped(record(RECLAIM).at("delete_claim"), theirs("pv-of-production", lock))
        assert "annotate" not in stop.remedy
        assert "This run continues once no claim has that name." in stop.remedy


def test_in_place_a_claim_that_was_bound_by_hand_continues_once_it_is_locked() -> None:
    at = record().at("finish")
    lock = f"kubectl -n shop annotate --overwrite pvc data-db-0 kubewin.io/convert={at.lock}/1"
    gone = stopped(at, None)
    assert gone.reason == "claim_gone"
    assert f"lock it: {lock}." in gone.remedy
    assert "kept by PersistentVolume pv-1 (Retain)" in gone.remedy
    assert f"kubewin-convert-{at.run}.json" in gone.remedy
    bound = replace(TARGET, phase="Bound", claim_uid="another-uid")
    assert lock in stopped(at, theirs("pv-1")).remedy
    assert isinstance(next_move(at, Observation((bound,), theirs("pv-1", at.lock), ())), Mark)
    # It is the one that a volume is made for from now on.
    made = next_move(at.at("create_volume"), Observation((), theirs("pv-1", at.lock), ()))
    assert made == CreateVolume("new", "another-uid")


def test_a_run_that_changed_nothing_ends_only_when_its_claim_is_deleted() -> None:
    assert stopped(record(), None).remedy == "Roll back, which ends this run; it has changed nothing."


def test_on_the_way_back_a_volume_that_was_deleted_is_made_again() -> None:
    back = record().at("restore").rolled_back("asked")
    claim = theirs("pv-1", back.lock, back.claim_uid)
    for step in ("restore", "finish"):
        assert next_move(back.at(step), Observation((), claim, ())) == Save(back)
    assert next_move(back.at("create_volume"), Observation((), claim, ())) == CreateVolume("old", back.claim_uid)


def test_what_arrived_after_a_run_had_ended_is_removed_only_beside_the_bound_volume() -> None:
    """The native volume that a request created after the rollback: its disk has the in-tree volume that the claim is bound to."""
    ended = record(RECLAIM).rolled_back("requested").at("done")
    claim = replace(theirs(ended.old.name), uid=ended.claim_uid)
    bound = replace(TARGET, name=ended.old.name, whose="old", policy="Delete", phase="Bound", claim_uid=ended.claim_uid)
    late = replace(TARGET, name=ended.new.name)
    beside = Observation((bound, late), claim, ())
    assert next_move(ended, beside) == DeleteVolume(late)
    kept = [
        replace(beside, volumes=(bound, replace(late, policy="Delete"))),
        replace(beside, volumes=(bound, replace(late, phase="Bound"))),
        replace(beside, volumes=(bound, replace(late, whose="foreign"))),
        replace(beside, volumes=(late,)),
        replace(beside, claim=theirs("pv-of-another")),
        replace(beside, claim=None),
    ]
    assert [next_move(ended, one) for one in kept] == [Done()] * len(kept)
    assert next_move(ended, replace(beside, helper="running")) == StopHelper()


def test_a_helper_pod_of_an_earlier_run_is_deleted_at_every_step() -> None:
    found = record()
    claim = replace(theirs(found.old.name, found.lock), uid=found.claim_uid)
    for step in found.steps:
        assert next_move(found.at(step), Observation((), claim, (), helper="stale")) == StopHelper()
