# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both tables of steps, tried against everything that others may do meanwhile, in every order.

The model (model.py) is searched whole, for each set of disturbances: nothing is sampled. In every state that can be reached

- no disk is deleted, unless a user deleted claim or volume while their policy was Delete, which is what he asked for;
- there are never two bound volumes with one disk behind them and policy Delete;
- we never delete a claim or a volume whose policy is not Retain, nor take the protection off a volume that is to stay;
- the disk is never attached by both handles, no volume object goes while it is attached, and vSphere's syncer never takes
  the disk of the new volume out of its register;
- the workload never finds an empty disk in place of its own;
- something leads to an end: done, or a stop that says why.

Our run may die between any two requests and be started again with the newest copy of its record, or with the one before.

What the model leaves out: time (leases and timeouts are choices that may fall either way), the API server's own failures
and refusals by admission (each is a run that dies or stops at that request), more than one workload, pod or node,
provisioning's own errors, another volume that somebody makes with the same handle, a finalizer that
nobody knows, and the data itself: a disk is there or not. Resource versions are compared by content, so a change back
and forth goes unnoticed here, while a server would refuse: the model allows more. In re-claim it also leaves out that
somebody sets the policy to Delete in the instant between our look at the volume and the deletion of the claim, which no
precondition covers, and it accepts that a set which is scaled up in that gap, by a user or by a run that was taken over,
makes an empty claim: the run then stops, and the disk is kept. In place has neither gap.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.rebind import decide
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.decide import next_move
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.moves import CreateVolume, DropProtection, Move, Wait
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.record import Record, Variant
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.seen import Seen
from unit.plugins.module_utils.rebind.model import Search, Violation, World

VARIANTS: tuple[Variant, ...] = ("in_place", "re_claim")


def search(variant: Variant, *users: str, **how: object) -> Search:
    return Search(World(variant, users=users, **how)).run()  # type: ignore[arg-type]  # a World's own fields


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("attaches", "forgets"), [(True, False), (True, True), (False, False)])
def test_alone_it_ends_converted_wherever_it_dies(variant: Variant, *, attaches: bool, forgets: bool) -> None:
    found = search(variant, attaches=attaches, forgets=forgets, keep_ways=True)
    assert found.finished
    assert found.stuck() is None
    ours = {name for name in found.events if name.startswith("first: ")}
    assert {"first: DeleteVolume at delete_volume", "first: CreateVolume at create_volume"} <= ours
    assert "first: SetPolicy at finish" in ours
    assert ("first: DeleteClaim at delete_claim" in ours) == (variant == "re_claim")
    # Kubernetes itself takes the protection off a volume that has lost its claim; in place it never has.
    assert ("first: DropProtection at release" in ours) == (variant == "in_place")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("user", ["pod", "claim", "volume", "scale", "undo", "policy"])
def test_one_user_at_any_moment(variant: Variant, user: str) -> None:
    if (variant, user) == ("re_claim", "policy"):
        with pytest.raises(Violation, match="a claim is deleted whose volume has not the policy Retain"):
            search(variant, user)
        return
    found = search(variant, user, keep_ways=True)
    assert found.finished
    assert found.stuck() is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_users_who_delete_the_claim_and_the_volume_while_it_is_undone(variant: Variant) -> None:
    assert search(variant, "claim", "volume", "undo", forgets=True).finished


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_second_run_of_the_same_record(variant: Variant) -> None:
    assert search(variant, two_runs=True).finished


def test_a_second_run_that_undoes_what_the_first_still_does() -> None:
    assert search("in_place", "undo", two_runs=True, older_copy=False).finished


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_volume_that_was_to_be_kept_stays_so(variant: Variant) -> None:
    assert search(variant, "claim", "volume", policy="Retain").finished


@pytest.mark.torture
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("users", "two_runs"),
    [
        (("pod", "claim", "volume", "scale"), False),
        (("claim", "volume", "scale", "undo"), False),
        (("claim",), True),
        (("volume",), True),
        (("scale",), True),
        (("undo",), True),
    ],
)
def test_several_users_at_once(variant: Variant, users: tuple[str, ...], *, two_runs: bool) -> None:
    assert search(variant, *users, two_runs=two_runs).finished


# The tables, broken on purpose: the model has to see it


def broken(variant: Variant, *users: str, **how: object) -> str:
    """The rule that the search finds violated."""
    with pytest.raises(Violation) as caught:
        search(variant, *users, **how)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("in_place", "old is deleted while its policy is Delete"),
        ("re_claim", "a claim is deleted whose volume has not the policy Retain"),
    ],
)
def test_without_retain(monkeypatch: pytest.MonkeyPatch, variant: Variant, expected: str) -> None:
    monkeypatch.setattr(decide, "_not_retained", lambda _seen: None)
    monkeypatch.setitem(decide._STEPS, "retain", lambda record, _seen: decide._advance(record))
    assert broken(variant) == expected


def test_without_waiting_until_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "_quiet", lambda _seen: None)
    # With attachments the attacher's finalizer would still keep the volume, and in re-claim the claim's protection.
    assert broken("in_place", attaches=False) == "old goes while it is in use"


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_waiting_for_the_register(monkeypatch: pytest.MonkeyPatch, variant: Variant) -> None:
    monkeypatch.setitem(decide._STEPS, "forget", lambda record, _seen: decide._advance(record))
    assert broken(variant, forgets=True) == "the syncer unregisters the disk of the new volume"


def test_without_preconditions_a_late_request_hits_the_new_volume() -> None:
    assert broken("in_place", two_runs=True, preconditions=False) in (
        "the new volume is deleted by a run that makes it",
        "the protection is taken off a volume that is to stay",
    )


def test_without_preconditions_a_policy_that_came_back_is_not_seen() -> None:
    assert broken("in_place", "policy", preconditions=False) == "old is deleted while its policy is Delete"


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_holding_the_claim_while_the_policy_comes_back(variant: Variant) -> None:
    def unheld(record: Record, seen: Seen) -> Move:
        if record.step == "finish" and seen.claim is not None:
            seen = replace(seen, claim=replace(seen.claim, held=True))
        return next_move(record, seen)

    assert broken(variant, "claim", "pod", decide=unheld) == "the provisioner deletes the disk behind new"


def test_without_the_claims_uid_it_stays_lost() -> None:
    def anonymous(record: Record, seen: Seen) -> Move:
        move = next_move(record, seen)
        return replace(move, claim_uid="") if isinstance(move, CreateVolume) else move

    found = search("in_place", decide=anonymous, keep_ways=True)
    stuck = found.stuck()
    assert stuck is not None
    assert "the claim is Lost" in found.story(stuck)


def test_without_taking_the_protection_off_it_never_ends() -> None:
    def patient(record: Record, seen: Seen) -> Move:
        move = next_move(record, seen)
        return Wait("it goes", "") if isinstance(move, DropProtection) else move

    assert search("in_place", decide=patient, keep_ways=True).stuck() is not None


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_looking_at_the_claim_before_the_policy_comes_back(variant: Variant) -> None:
    def blind(record: Record, seen: Seen) -> Move:
        claim = seen.claim
        if record.step in ("finish", "unlock") and claim is not None and claim.terminating:
            seen = replace(seen, claim=replace(claim, terminating=False))
        return next_move(record, seen)

    assert broken(variant, "claim", "pod", decide=blind) == "the provisioner deletes the disk behind new"
