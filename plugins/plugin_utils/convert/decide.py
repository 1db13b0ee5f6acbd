# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two tables of steps: in place, where the claim stays, and re-claim, where it is made anew. Pure: no I/O, no clock.

Every step is a function of the record and one observation: it returns the one action that is safe now, what has to
be waited for, or the record at the next step once its proof was observed. So a step may be run again at any time, and a
run that was killed anywhere continues from the record alone. Both directions are one table: a rollback is the same exchange
with the old volume as its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import actions as do
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import facts, objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.facts import (
    Observation,
    ObservedClaim,
    ObservedVolume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record, Step

AGAIN = "Run again with the same record, or roll back."


def next_move(record: Record, observed: Observation) -> do.Move:
    """The next move. It is valid for this observation only: observe again before the next one."""
    claim = observed.claim
    if claim is not None and claim.lock == record.lock and claim.generation != record.generation:
        if claim.generation > record.generation:
            return do.Stop(
                "taken_over",
                f"PersistentVolumeClaim {record.namespace}/{record.claim} is locked by a later run of the same record",
                "no other run on it",
                "Wait for that run to end.",
            )
        return do.Mark(claim, record.lock, record.generation, claim.held)
    if observed.helper == "stale":
        return do.StopHelper()
    return _STEPS[record.step](record, observed)


def _advance(record: Record) -> do.Move:
    return do.Save(record.following())


# What several steps ask


def _foreign(record: Record, observed: Observation) -> do.Stop | None:
    """Another client's object has the name of ours."""
    for volume in observed.volumes:
        if volume.whose == "foreign":
            return do.Stop(
                "foreign_volume",
                f"PersistentVolume {volume.name} was created by another client (uid {volume.uid})",
                "the volume of the record, or none",
                f"Find out what created it. If it is not needed, set its policy to Retain (now {volume.policy}), "
                f"then delete it. {AGAIN}",
            )
    claim = observed.claim
    if claim is not None and record.reached("rehearse") and record.step != "unlock" and not _ours(record, claim):
        return _others_claim(record, observed, claim)
    return None


def _ours(record: Record, claim: ObservedClaim) -> bool:
    """It has our lock, and no volume but those of the record: one that was locked manually may have any content."""
    return claim.lock == record.lock and claim.volume in ("", record.old.name, record.new.name)


def _others_claim(record: Record, observed: Observation, claim: ObservedClaim) -> do.Stop:
    """A claim that is not this run's is never deleted by it: only its owner knows what it is worth.

    No remedy deletes one that may have data of its own without a check.
    """
    name, bare = f"PersistentVolumeClaim {record.namespace}/{record.claim}", f"-n {record.namespace}"
    delete = f"kubectl {bare} delete pvc {record.claim}"
    whose = f", with the lock of run {claim.lock}" if claim.lock else ""
    made = f"{name} was created by another client{whose} (uid {claim.uid}), and has"
    volume = claim.volume
    if volume and volume not in (record.old.name, record.new.name):
        found = f"{made} another volume, {volume}"
        remedy = (
            "This run changes neither. Find out what created them and what that volume contains. "
            f"{'This run continues once no claim has that name. ' if record.variant == 're_claim' else ''}{_ended(record)}"
        )
    elif claim.uid == record.claim_uid:
        found = f"{name} {f'is locked by run {claim.lock}' if claim.lock else 'lost its lock'} (uid {claim.uid})"
        remedy = f"Wait for what changed it to end; to continue: {_lock_it(record)}."
    elif volume:
        found = f"{made} the volume of this run, {volume}"
        remedy = f"The data is safe. To keep this claim: {_lock_it(record)}."
        if record.variant == "re_claim":
            remedy += (
                f" Or end what uses it, check that the policy of that volume is Retain (kubectl get pv {volume}), "
                f"and only then: {delete}."
            )
    else:
        found = f"{made} no volume"
        remedy = f"Check that this is still so (kubectl {bare} get pvc {record.claim}), and only then: {delete}."
    return do.Stop(
        "claim_changed", found, f"the lock of run {record.lock}", f"{remedy} {_kept(record, observed)} {AGAIN}"
    )


def _lock_it(record: Record) -> str:
    lock = f"{objects.LOCK}={objects.lock(record)}"
    return f"kubectl -n {record.namespace} annotate --overwrite pvc {record.claim} {lock}"


def _ended(record: Record) -> str:
    """How an administrator ends a run that can neither continue nor roll back."""
    name = objects.record_name(record.run)
    return (
        f"To abandon this run at this step, move its record out of every store: ConfigMap {name} in each record namespace, and "
        f"{name}.json in record_dir (kubewin_output_dir/convert)."
    )


def _kept(record: Record, observed: Observation) -> str:
    kept = ", ".join(f"PersistentVolume {volume.name} ({volume.policy})" for volume in observed.volumes)
    if not kept:
        return f"No PersistentVolume has {record.old.handle} now; rolling back recreates it from the record."
    return f"{record.old.handle} is kept by {kept}."


def _claim_gone(record: Record, observed: Observation) -> do.Stop | None:
    """The in_place variant never deletes the claim: another client did, and may create another one."""
    claim = observed.claim
    if claim is not None and not claim.terminating and _may_be(record, claim):
        return None
    what = "is being deleted" if claim is not None and claim.terminating else "was deleted by another client"
    if record.step == "lock":
        remedy = "Roll back, which ends this run; it has changed nothing."
    else:
        remedy = (
            f"{_kept(record, observed)} Create a claim of that name for it (spec.volumeName; remove uid and "
            f"resourceVersion from the volume's claimRef), and lock it: {_lock_it(record)}. {AGAIN} {_ended(record)}"
        )
    return do.Stop(
        "claim_gone",
        f"PersistentVolumeClaim {record.namespace}/{record.claim} {what}",
        "the claim that was recorded",
        remedy,
    )


def _may_be(record: Record, claim: ObservedClaim) -> bool:
    """It is the recorded one, or one that may stand in its place."""
    anew = record.variant == "re_claim" and (record.reached("delete_claim") or record.direction == "rollback")
    by_hand = bool(claim.volume) and _ours(record, claim)
    return claim.uid == record.claim_uid or anew or by_hand


def _volume_gone(record: Record) -> do.Stop | do.Save:
    if record.direction == "rollback":
        # A rollback creates it again, from its first step on.
        return do.Save(record.at("retain"))
    return do.Stop(
        "volume_gone",
        f"PersistentVolume {record.old.name} was deleted or is being deleted by another client",
        "the volume of the record",
        "Roll back, which recreates it from the record, or only ends a run that has not locked the claim yet.",
    )


def _not_retained(observed: Observation) -> do.SetPolicy | None:
    """No step continues before the policy is Retain again, whatever reverted it."""
    for volume in observed.volumes:
        if volume.policy != "Retain" and volume.whose != "foreign":
            return do.SetPolicy(volume, "Retain")
    return None


def _quiet(observed: Observation) -> do.Move | None:
    """None when the volume is unused, otherwise what has to happen first."""
    running = [workload for workload in observed.workloads if workload.uid and workload.replicas]
    for workload in running:
        if workload.deletes:
            return do.Stop(
                "claims_at_risk",
                f"{workload.kind} {workload.namespace}/{workload.name} has persistentVolumeClaimRetentionPolicy whenScaled: Delete, "
                "so scaling it to 0 would delete the claims of all its pods",
                "whenScaled: Retain",
                f"{objects.keep_claims(workload.namespace, workload.name)}. {AGAIN}",
            )
    if running:
        first = running[0]
        return do.Scale(first, 0)
    if observed.helper:
        return (
            do.StopHelper()
            if observed.helper != "stopping"
            else do.Wait("the helper pod of this run ends", "Check its node.")
        )
    if observed.uses:
        remedy = "End these pods. If the volume stays attached, check its node's kubelet and the driver's attacher."
        return do.Wait(f"the volume is no longer in use: {'; '.join(observed.uses)}", remedy)
    return None


def _target(record: Record, observed: Observation) -> ObservedVolume | None:
    """The volume that is to stay, if it is there for good."""
    for volume in observed.volumes:
        if volume.whose == record.target_side and not volume.terminating:
            return volume
    return None


def _others(record: Record, observed: Observation) -> list[ObservedVolume]:
    """Volumes that have to go."""
    return [volume for volume in observed.volumes if volume.whose != record.target_side or volume.terminating]


def _bound(claim: ObservedClaim | None, volume: ObservedVolume | None) -> bool:
    """Bound on both sides, to one another."""
    return (
        claim is not None
        and volume is not None
        and claim.phase == volume.phase == "Bound"
        and claim.volume == volume.name
        and claim.uid == volume.claim_uid
        and not claim.terminating
    )


def _exchanged(record: Record, observed: Observation) -> bool:
    """The target stands alone and has the claim."""
    return not _others(record, observed) and _bound(observed.claim, _target(record, observed))


def _nothing_to_exchange(record: Record, observed: Observation) -> bool:
    """In a rollback: the old volume was never deleted or exists again."""
    return record.direction == "rollback" and _exchanged(record, observed)


# The steps, in the order of the tables


def _lock(record: Record, observed: Observation) -> do.Move:
    claim = observed.claim
    gone = _still_there(record, observed)
    if claim is None or gone:
        return gone or _volume_gone(record)
    if claim.lock == record.lock:
        return _advance(record)
    if claim.lock:
        return do.Stop(
            "locked",
            f"PersistentVolumeClaim {record.namespace}/{record.claim} is locked by run {claim.lock}",
            "no lock",
            "Finish or roll back that run; then roll back this one, which has changed nothing.",
        )
    return do.Mark(claim, record.lock, record.generation, hold=False)


def _rehearse(record: Record, observed: Observation) -> do.Move:
    return _foreign(record, observed) or _claim_gone(record, observed) or do.Rehearse()


def _retain(record: Record, observed: Observation) -> do.Move:
    if stop := _foreign(record, observed) or (record.direction == "forward" and _still_there(record, observed)):
        return stop
    if move := _not_retained(observed):
        return move
    for volume in observed.volumes:
        if facts.PROVISIONER in volume.finalizers and not volume.terminating:
            return do.Wait(
                f"the provisioner releases PersistentVolume {volume.name} (finalizer {facts.PROVISIONER})",
                "Check the external-provisioner of the driver's controller.",
            )
    return _advance(record)


def _still_there(record: Record, observed: Observation) -> do.Stop | do.Save | None:
    """Before the first deletion: claim and old volume as recorded."""
    if stop := _claim_gone(record, observed):
        return stop
    if not any(volume.whose == "old" and not volume.terminating for volume in observed.volumes):
        return _volume_gone(record)
    return None


def _quiesce(record: Record, observed: Observation) -> do.Move:
    if record.direction == "forward":
        if stop := _foreign(record, observed) or _still_there(record, observed):
            return stop
    elif _nothing_to_exchange(record, observed):
        return _advance(record)
    return _not_retained(observed) or _quiet(observed) or _advance(record)


def _baseline(record: Record, observed: Observation) -> do.Move:
    if record.direction == "rollback":
        return _advance(record)
    if stop := _foreign(record, observed) or _still_there(record, observed):
        return stop
    if move := _not_retained(observed):
        return move
    if record.baseline:
        return _quiet(observed) or _advance(record)
    if not observed.helper:
        return _quiet(observed) or do.StartHelper()
    return _helper(observed) or do.ReadData(compare=False)


def _helper(observed: Observation) -> do.Move | None:
    """None when the helper is alone and runs."""
    if observed.helper == "failed":
        return do.StopHelper()
    if observed.helper != "running":
        return do.Wait(
            "the helper pod runs" if observed.helper == "starting" else "the helper pod ends", "Check its events."
        )
    return _quiet(replace(observed, helper=""))


def _delete_volume(record: Record, observed: Observation) -> do.Move:
    others = _others(record, observed)
    if not others or all(volume.terminating for volume in others):
        return _advance(record)
    if stop := _foreign(record, observed):
        return stop
    if record.direction == "forward" and (stop := _claim_gone(record, observed)):
        return stop
    if move := _not_retained(observed) or _quiet(observed):
        return move
    if record.variant == "re_claim":
        # A rollback. Otherwise nothing would stand between another claim of that name and a new disk while there is no volume.
        if observed.claim is None:
            return do.CreateClaim(record.target_side)
        if observed.claim.terminating:
            return _going(record, observed.claim)
    volume = next(volume for volume in others if not volume.terminating)
    return do.DeleteVolume(volume)


def _release(record: Record, observed: Observation) -> do.Move:
    leaving = [volume for volume in observed.volumes if volume.terminating]
    if not leaving:
        return _advance(record) if not _others(record, observed) else do.Save(record.at("delete_volume"))
    if move := _not_retained(observed) or _quiet(observed):
        return move
    volume = leaving[0]
    others = [name for name in volume.finalizers if name != facts.PROTECTION]
    if unknown := facts.strange(others):
        return do.Stop(
            "unknown_finalizer",
            f"PersistentVolume {volume.name} has finalizers {', '.join(unknown)}",
            f"only {facts.PROTECTION} and those of attacher and provisioner",
            f"Find out what set them and what they wait for. {AGAIN}",
        )
    if others:
        return do.Wait(
            f"PersistentVolume {volume.name} is released by {', '.join(others)}", "Check the driver's controller."
        )
    if volume.phase != "Bound":
        return do.Wait(f"PersistentVolume {volume.name} is deleted", "Check kube-controller-manager.")
    return do.DropProtection(volume)


def _forget(record: Record, observed: Observation) -> do.Move:
    if not record.forgets or record.direction == "rollback" or _target(record, observed) is not None:
        return _advance(record)
    if observed.syncer:
        return do.Wait(f"the driver's syncer works: {observed.syncer}", "Repair it.", then_roll_back=True)
    if observed.registered:
        what = f"the driver's syncer removes the CnsVSphereVolumeMigration of {record.old.handle}"
        return do.Wait(what, "Check the syncer's log.", then_roll_back=True)
    return _advance(record)


def _create_volume(record: Record, observed: Observation) -> do.Move:
    target = _target(record, observed)
    if target is None:
        # Also when the claim is gone meanwhile: an object with policy Retain keeps the disk in sight.
        if stop := _foreign_volume_only(record, observed):
            return stop
        if _others(record, observed):
            return do.Save(record.at("delete_volume"))
        if record.variant == "re_claim":
            return do.CreateVolume(record.target_side, "")
        claim = observed.claim
        return do.CreateVolume(record.target_side, claim.uid if claim and _ours(record, claim) else record.claim_uid)
    if _others(record, observed):
        return do.Save(record.at("delete_volume"))
    if record.variant == "re_claim":
        return _offered(record, observed, target)
    if gone := _foreign(record, observed) or _claim_gone(record, observed):
        return gone
    if not _bound(observed.claim, target):
        return do.Wait(
            f"Kubernetes binds PersistentVolume {target.name} and its claim", "Check kube-controller-manager."
        )
    return _not_retained(observed) or _advance(record)


def _foreign_volume_only(record: Record, observed: Observation) -> do.Stop | None:
    if stop := _foreign(record, replace(observed, claim=None)):
        return stop
    if observed.twins:
        return do.Stop(
            "same_handle",
            f"{', '.join(f'PersistentVolume {name}' for name in observed.twins)} also has the handle of {record.target.name}",
            "no other volume with it",
            f"Find out what it is for. If it is not needed, set its policy to Retain, then delete it. {AGAIN}",
        )
    return None


def _offered(record: Record, observed: Observation, target: ObservedVolume) -> do.Move:
    """The target waits for its claim, or names the one that waits for it, which may be Lost."""
    claim = observed.claim
    waiting = claim.uid if claim is not None and claim.volume == target.name else ""
    if target.claim_uid != waiting:
        return do.Reserve(target, waiting)
    if not waiting and target.phase != "Available":
        # Only one that the volume controller knows is found for a claim that names none.
        return do.Wait(f"Kubernetes offers PersistentVolume {target.name}", "Check kube-controller-manager.")
    return _not_retained(observed) or _advance(record)


def _delete_claim(record: Record, observed: Observation) -> do.Move:
    """The claim of the deleted volume. Any new claim of its name gets the reserved disk."""
    if stop := _foreign(record, observed):
        return stop
    claim, target = observed.claim, _target(record, observed)
    if target is None or _others(record, observed):
        return do.Save(record.at("create_volume"))
    if claim is None or claim.volume == target.name:
        return _advance(record)
    if target.claim_uid or target.phase != "Available":
        return do.Save(record.at("create_volume"))
    if first := _not_retained(observed) or _quiet(observed):
        return first
    if claim.terminating or claim.held:
        return _going(record, claim)
    return do.DeleteClaim(claim)


def _going(record: Record, claim: ObservedClaim) -> do.Move:
    """What lets a claim go that is to."""
    if claim.held:
        return do.Mark(claim, record.lock, record.generation, hold=False)
    return do.Wait(f"PersistentVolumeClaim {record.namespace}/{record.claim} is deleted", "Check its finalizers.")


def _create_claim(record: Record, observed: Observation) -> do.Move:
    if stop := _foreign(record, observed):
        return stop
    claim, target = observed.claim, _target(record, observed)
    if target is None:
        return _volume_gone(record)
    if claim is None:
        if target.claim_uid:
            return do.Reserve(target, "")
        return do.CreateClaim(record.target_side)
    if gone := _claim_gone(record, observed):
        return gone
    if claim.volume != target.name:
        return do.Save(record.at("delete_claim"))
    if target.claim_uid not in ("", claim.uid):
        # Of a claim that came and went in between.
        return do.Reserve(target, claim.uid)
    if not _bound(claim, target):
        return do.Wait(
            f"Kubernetes binds the claim to PersistentVolume {target.name}", "Check kube-controller-manager."
        )
    return _advance(record)


def _canary(record: Record, observed: Observation) -> do.Move:
    if record.direction == "rollback":
        return _advance(record)
    if stop := _foreign(record, observed) or _claim_gone(record, observed):
        return stop
    if not _exchanged(record, observed):
        return _volume_gone(record)
    if move := _not_retained(observed) or (_helper(observed) if observed.helper else _quiet(observed)):
        return move
    if not observed.helper:
        return do.StartHelper()
    if observed.helper_path:
        return do.Wait(f"the helper's volume is attached by its new handle: {observed.helper_path}", "Check the node.")
    return do.ReadData(compare=True)


def _restore(record: Record, observed: Observation) -> do.Move:
    if stop := _foreign(record, observed) or _claim_gone(record, observed):
        return stop
    if observed.helper:
        return do.StopHelper() if observed.helper != "stopping" else do.Wait("the helper pod ends", "Check its node.")
    if not _exchanged(record, observed):
        return _volume_gone(record)
    had = {(workload.kind, workload.namespace, workload.name): workload.replicas for workload in record.workloads}
    for workload in observed.workloads:
        replicas = had[(workload.kind, workload.namespace, workload.name)]
        if workload.uid and not workload.replicas and replicas:
            return do.Scale(workload, replicas)
    late = [
        f"{workload.kind} {workload.namespace}/{workload.name} ({workload.ready} of {workload.replicas})"
        for workload in observed.workloads
        if workload.uid and workload.ready < workload.replicas
    ]
    if late:
        return do.Wait(f"all pods run on Windows: {'; '.join(late)}", "Check their events.")
    return _advance(record)


def _finish(record: Record, observed: Observation) -> do.Move:
    """Restore the policy, once the user made the conversion final. The claim is held meanwhile: deleting it just then keeps the disk."""
    forward = record.direction == "forward"
    if record.policy == "Retain" and (not forward or observed.final):
        return _advance(record)
    stop = _foreign(record, observed) or _claim_gone(record, observed)
    target, claim = _target(record, observed), observed.claim
    if stop is not None or target is None or claim is None or not _exchanged(record, observed):
        if claim is not None and claim.lock == record.lock and claim.held:
            return _not_retained(observed) or do.Mark(claim, claim.lock, claim.generation, hold=False)
        return stop or _volume_gone(record)
    if record.policy != "Retain" and target.policy == record.policy and (not forward or target.by == record.new.driver):
        return _advance(record)
    if forward and not observed.final:
        return do.Done(until="the conversion can be rolled back until you make it final")
    if not claim.held:
        return do.Mark(claim, claim.lock, claim.generation, hold=True)
    if forward and target.by != record.new.driver:
        return do.SetProvisioner(target, record.new.driver)
    return do.SetPolicy(target, record.policy)


def _unlock(record: Record, observed: Observation) -> do.Move:
    claim = observed.claim
    if claim is None or claim.lock != record.lock:
        return _advance(record)
    if claim.terminating and claim.held:
        # It was deleted while the policy was restored; the disk is kept nevertheless.
        return _not_retained(observed) or do.Mark(claim, "", 0, hold=False)
    return do.Mark(claim, "", 0, hold=False)


def _done(record: Record, observed: Observation) -> do.Move:
    """Remove what requests created that were sent before this and arrived later: the helper pod, and the other volume."""
    if observed.helper:
        return do.StopHelper() if observed.helper != "stopping" else do.Wait("the helper pod ends", "Check its node.")
    for volume in leftovers(record, observed):
        if volume.terminating:
            return do.Wait(f"PersistentVolume {volume.name} is deleted", "Check its finalizers.")
        return do.DeleteVolume(volume)
    return do.Done()


def leftovers(record: Record, observed: Observation) -> list[ObservedVolume]:
    """Volumes of the other side beside the one that the claim is bound to. Deleting one keeps the disk, which that one has too."""
    if not _bound(observed.claim, _target(record, observed)):
        return []
    return [
        volume
        for volume in observed.volumes
        if volume.whose in ("old", "new")
        and volume.whose != record.target_side
        and volume.policy == "Retain"
        and volume.phase != "Bound"
    ]


_STEPS: dict[Step, Callable[[Record, Observation], do.Move]] = {
    "lock": _lock,
    "rehearse": _rehearse,
    "retain": _retain,
    "quiesce": _quiesce,
    "baseline": _baseline,
    "delete_volume": _delete_volume,
    "release": _release,
    "forget": _forget,
    "create_volume": _create_volume,
    "delete_claim": _delete_claim,
    "create_claim": _create_claim,
    "canary": _canary,
    "restore": _restore,
    "finish": _finish,
    "unlock": _unlock,
    "done": _done,
}
