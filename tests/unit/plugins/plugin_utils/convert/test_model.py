# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps, tried against everything that others may do meanwhile, in every order.

The model (model.py) is searched whole, for each set of disturbances: nothing is sampled. In every state that can be reached

- no disk is deleted, unless a user deleted claim or volume while their policy was Delete, or did both of these, in any
  order: then that is what was asked for;
- we never delete a volume whose policy is not Retain, nor take the protection off a volume that is to stay, nor touch a claim
  of another user;
- the disk is never attached by both handles, no volume object goes while it is attached, and vSphere's syncer never takes
  the disk of the new volume out of its register;
- we never scale a set to 0 that deletes the claims of pods that it scales away, which may be those of other volumes;
- no claim of that name ever gets an empty disk, unless a user deleted claim or volume;
- something leads to an end: done, or a stop that says why.

Our run may die between any two requests and be started again with the newest copy of its record, or with the one before.

A user who sets a policy to Delete at any moment, also in the instant before one of our requests, loses nothing: a volume
is deleted with the resourceVersion at which it was Retain, while it is Bound, and a policy takes effect on one that is
Released, which no step of ours leads to: the claim is never deleted.

What the model leaves out: time (leases and timeouts are choices that may fall either way), the API server's own failures
and refusals by admission (each is a run that dies or stops at that request), more than one workload, pod or node, a set that is
set to delete claims while its pods are ending already (their claims are deleted then, whatever scaled it),
provisioning's own errors, another volume that a user creates with the same handle or for the same claim, an unknown finalizer,
and the data itself: a disk is there or not. Resource versions are
compared by content, so a change back and forth goes unnoticed here, while a server would refuse: the model allows more.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import decide
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.actions import (
    AwaitCondition,
    ConversionMove,
    CreateVolume,
    DropProtection,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import decide_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observation import ConversionObservation
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionRecord
from unit.plugins.plugin_utils.convert.cluster import Violation, World
from unit.plugins.plugin_utils.convert.model import Search


def search(*users: str, **how: object) -> Search:
    return Search(World(users=users, **how)).run()  # type: ignore[arg-type]  # a World's own fields


@pytest.mark.parametrize(("attaches", "forgets"), [(True, False), (True, True), (False, False)])
def test_alone_it_ends_converted_wherever_it_dies(*, attaches: bool, forgets: bool) -> None:
    found = search(attaches=attaches, forgets=forgets, keep_ways=True)
    assert found.finished
    assert found.stuck() is None
    ours = {name for name in found.events if name.startswith("first: ")}
    assert {"first: DeleteVolume at delete_volume", "first: CreateVolume at create_volume"} <= ours
    assert "first: SetPolicy at finish" in ours
    assert "first: DropProtection at delete_volume" in ours
    # The only state in which a policy Delete takes effect, and neither volume is ever in it.
    assert not {name for name in found.events if name.endswith("is Released")}


@pytest.mark.parametrize("user", ["pod", "claim", "volume", "scale", "undo", "policy", "retention"])
def test_one_user_at_any_moment(user: str) -> None:
    found = search(user, keep_ways=True)
    assert found.finished
    assert found.stuck() is None


@pytest.mark.parametrize("user", ["empty", "other"])
@pytest.mark.parametrize("undo", [(), ("undo",)])
def test_a_user_creates_a_claim_of_that_name_while_there_is_none(user: str, undo: tuple[str, ...]) -> None:
    found = search("claim", user, *undo, keep_ways=True)
    assert f"a user makes a claim ({user})" in found.events
    assert found.stuck() is None


def test_a_set_that_is_set_to_delete_claims_before_the_rollback() -> None:
    found = search("retention", "undo", keep_ways=True)
    assert "a user lets the set delete claims" in found.events
    assert found.stuck() is None


@pytest.mark.parametrize("undo", [(), ("undo",)])
def test_a_claim_that_was_bound_by_hand_in_place_of_a_deleted_one_continues(undo: tuple[str, ...]) -> None:
    found = search("claim", "by_hand", "keep", *undo, keep_ways=True)
    assert {"a user binds a claim to old", "a user binds a claim to new", "a user keeps that claim"} <= found.events
    ends = {state for state in found.ends if state.first and found.records[state.first.record].step == "done"}
    assert any(state.pvc is not None and state.pvc.uid == 5 for state in ends)
    assert found.stuck() is None


def test_policy_and_claim_by_users() -> None:
    assert search("policy", "claim").finished


def test_users_who_delete_the_claim_and_the_volume_during_a_rollback() -> None:
    assert search("claim", "volume", "undo", forgets=True).finished


def test_a_second_run_of_the_same_record() -> None:
    assert search(two_runs=True).finished


def test_a_second_run_that_undoes_what_the_first_still_does() -> None:
    assert search("undo", two_runs=True, older_copy=False).finished


def test_a_volume_that_was_to_be_kept_stays_so() -> None:
    assert search("claim", "volume", policy="Retain").finished


@pytest.mark.torture
@pytest.mark.parametrize(
    ("users", "two_runs"),
    [
        (("pod", "claim", "volume", "scale"), False),
        (("claim", "volume", "scale", "undo"), False),
        (("claim",), True),
        (("volume",), True),
        (("scale",), True),
        (("undo",), True),
        (("policy", "scale", "undo"), False),
        (("empty", "policy", "undo"), False),
        (("other", "claim", "scale"), False),
    ],
)
def test_several_users_at_once(users: tuple[str, ...], *, two_runs: bool) -> None:
    assert search(*users, two_runs=two_runs).finished


# The tables, broken on purpose: the model has to see it


def broken(*users: str, **how: object) -> str:
    """The rule that the search finds violated."""
    with pytest.raises(Violation) as caught:
        search(*users, **how)
    return str(caught.value).splitlines()[0]


def test_without_retain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "_restore_retain", lambda _observed: None)
    monkeypatch.setitem(
        decide._STEPS, "quiesce", lambda record, observed: decide._ensure_unused(observed) or decide._advance(record)
    )
    assert broken() == "old is deleted while its policy is Delete"


def test_without_waiting_until_it_is_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "_ensure_unused", lambda _observed: None)
    # With attachments the attacher's finalizer would still keep the volume.
    assert broken(attaches=False) == "old goes while it is in use"


def test_without_looking_at_what_the_set_does_with_its_claims() -> None:
    def blind(record: ConversionRecord, observed: ConversionObservation) -> ConversionMove:
        return decide_move(
            record, replace(observed, workloads=tuple(replace(one, deletes=False) for one in observed.workloads))
        )

    assert broken("retention", decide=blind) == "our scaling to 0 deletes the claims of the whole set"


def test_without_preconditions_a_set_that_was_just_set_to_delete_claims_is_scaled() -> None:
    assert broken("retention", preconditions=False) == "our scaling to 0 deletes the claims of the whole set"


def test_without_waiting_for_the_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(decide._STEPS, "forget", lambda record, _observed: decide._advance(record))
    assert broken(forgets=True) == "the syncer unregisters the disk of the new volume"


def test_without_preconditions_a_late_request_hits_the_new_volume() -> None:
    assert broken(two_runs=True, preconditions=False) in (
        "the new volume is deleted by a run that makes it",
        "the protection is taken off a volume that is to stay",
    )


def test_without_preconditions_a_reverted_policy_is_not_detected() -> None:
    assert broken("policy", preconditions=False) == "old is deleted while its policy is Delete"


def test_without_holding_the_claim_while_the_policy_is_restored() -> None:
    def unheld(record: ConversionRecord, observed: ConversionObservation) -> ConversionMove:
        if record.step == "finish" and observed.claim is not None:
            observed = replace(observed, claim=replace(observed.claim, held=True))
        return decide_move(record, observed)

    assert broken("claim", "pod", decide=unheld) == "the provisioner deletes the disk behind new"


def test_without_the_claims_uid_it_stays_lost() -> None:
    def anonymous(record: ConversionRecord, observed: ConversionObservation) -> ConversionMove:
        move = decide_move(record, observed)
        return replace(move, claim_uid="") if isinstance(move, CreateVolume) else move

    found = search(decide=anonymous, keep_ways=True)
    stuck = found.stuck()
    assert stuck is not None
    assert "the claim is Lost" in found.story(stuck)


def test_without_taking_the_protection_off_it_never_ends() -> None:
    def patient(record: ConversionRecord, observed: ConversionObservation) -> ConversionMove:
        move = decide_move(record, observed)
        return AwaitCondition("it goes", "") if isinstance(move, DropProtection) else move

    assert search(decide=patient, keep_ways=True).stuck() is not None


def test_without_reading_the_claim_before_the_policy_is_restored() -> None:
    def blind(record: ConversionRecord, observed: ConversionObservation) -> ConversionMove:
        claim = observed.claim
        if record.step in ("finish", "unlock") and claim is not None and claim.terminating:
            observed = replace(observed, claim=replace(claim, terminating=False))
        return decide_move(record, observed)

    assert broken("claim", "pod", decide=blind) == "the provisioner deletes the disk behind new"
