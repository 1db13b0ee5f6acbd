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
    ConversionDone,
    CreateVolume,
    SaveRecord,
    SetLock,
    StopConversion,
    StopHelper,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import decide_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observation import (
    ConversionClaim,
    ConversionObservation,
    ConversionVolume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import STEPS, ConversionRecord
from unit.plugins.plugin_utils.convert.test_record import record

TARGET = ConversionVolume(
    "pv-1", "u9", "1", "new", "Retain", "Available", terminating=False, finalizers=(), claim_uid="", by=""
)


def theirs(volume: str, lock: str = "", uid: str = "another-uid") -> ConversionClaim:
    return ConversionClaim(
        uid, "1", "Bound", volume, terminating=False, lock=lock, generation=1 if lock else 0, held=False
    )


def observations(found: ConversionRecord) -> Iterator[tuple[ConversionRecord, ConversionObservation, ConversionClaim]]:
    """Every step in both directions, with every claim that may stand there."""
    for step, back, volume, lock, uid in itertools.product(
        STEPS,
        (False, True),
        ("", found.volume, "pv-of-another"),
        ("", found.lock, "another.k9"),
        (found.claim_uid, "another-uid"),
    ):
        claim = theirs(volume, lock, uid)
        at = replace(found.roll_back("asked") if back else found, step=step)
        for volume_observed in (None, replace(TARGET, side=at.target_side)):
            yield at, ConversionObservation(volume_observed, claim, ()), claim


def test_no_claim_with_a_volume_is_to_be_deleted_by_hand() -> None:
    reported = 0
    for at, observed, claim in observations(record()):
        move = decide_move(at, observed)
        if isinstance(move, StopConversion) and "delete pvc" in move.remedy:
            reported += 1
            assert not claim.volume, (at.step, claim)
            assert "and only then: kubectl -n shop delete pvc data-db-0" in move.remedy
    assert reported


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_a_conversion_can_be_rolled_back_until_the_user_makes_it_final(policy: str) -> None:
    found = replace(record(), policy=policy).move_to("finish")
    claim = ConversionClaim(
        found.claim_uid, "1", "Bound", "pv-1", terminating=False, lock=found.lock, generation=1, held=False
    )
    volume = replace(TARGET, phase="Bound", claim_uid=found.claim_uid)
    current = ConversionObservation(volume, claim, (), final=False)
    move = decide_move(found, current)
    assert isinstance(move, ConversionDone), move
    assert move.until
    # Rolled back from there, and final if the user makes it final.
    assert decide_move(found.roll_back("asked"), current) != move
    assert not isinstance(decide_move(found, replace(current, final=True)), ConversionDone)


def stopped(at: ConversionRecord, claim: ConversionClaim | None) -> StopConversion:
    move = decide_move(at, ConversionObservation(TARGET, claim, ()))
    assert isinstance(move, StopConversion), move
    return move


def test_a_claim_with_another_volume_is_left_alone_and_the_run_can_be_ended() -> None:
    stop = stopped(record().move_to("finish"), theirs("pv-of-production"))
    assert stop.reason == "claim_changed"
    assert "created by another client (uid another-uid), and has another volume, pv-of-production" in stop.state
    assert "This run changes neither" in stop.remedy
    assert f"move its record, ConfigMap kubewin-convert-{record().run}, out of both record namespaces" in stop.remedy


def test_another_runs_lock_on_a_claim_with_another_volume_is_not_taken() -> None:
    """Nor does one continue that a user gave our lock."""
    for lock in ("another.k9", record().lock):
        stop = stopped(record().move_to("create_volume"), theirs("pv-of-production", lock))
        assert "annotate" not in stop.remedy


def test_a_claim_that_was_bound_by_hand_continues_once_it_is_locked() -> None:
    at = record().move_to("finish")
    lock = f"kubectl -n shop annotate --overwrite pvc data-db-0 kubewin.io/convert={at.lock}/1"
    gone = stopped(at, None)
    assert gone.reason == "claim_gone"
    assert f"lock it: {lock}." in gone.remedy
    assert "kept by PersistentVolume pv-1 (Retain)" in gone.remedy
    assert f"ConfigMap kubewin-convert-{at.run}, out of both record namespaces" in gone.remedy
    bound = replace(TARGET, phase="Bound", claim_uid="another-uid")
    assert lock in stopped(at, theirs("pv-1")).remedy
    assert isinstance(decide_move(at, ConversionObservation(bound, theirs("pv-1", at.lock), ())), SetLock)
    # It is the one that a volume is made for from now on.
    made = decide_move(at.move_to("create_volume"), ConversionObservation(None, theirs("pv-1", at.lock), ()))
    assert made == CreateVolume("another-uid")


def test_a_run_that_changed_nothing_ends_only_when_its_claim_is_deleted() -> None:
    assert stopped(record(), None).remedy == "Roll back, which ends this run; it has changed nothing."


def test_on_the_way_back_a_volume_that_was_deleted_is_made_again() -> None:
    back = record().move_to("restore").roll_back("asked")
    claim = theirs("pv-1", back.lock, back.claim_uid)
    for step in ("restore", "finish"):
        assert decide_move(back.move_to(step), ConversionObservation(None, claim, ())) == SaveRecord(back)
    assert decide_move(back.move_to("create_volume"), ConversionObservation(None, claim, ())) == CreateVolume(
        back.claim_uid
    )


def test_a_helper_pod_of_an_earlier_run_is_deleted_at_every_step() -> None:
    found = record()
    claim = replace(theirs(found.volume, found.lock), uid=found.claim_uid)
    for step in STEPS:
        assert decide_move(found.move_to(step), ConversionObservation(None, claim, (), helper="stale")) == StopHelper()
