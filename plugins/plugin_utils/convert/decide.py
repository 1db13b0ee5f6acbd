# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a conversion, which keeps the claim and exchanges its volume. Pure: no I/O, no clock.

Every step is a function of the record and one observation: it returns the one action that is safe now, what has to
be waited for, or the record at the next step once its proof was observed. So a run that was killed anywhere continues
from the record alone. A rollback is the same exchange, with the old volume as its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import actions as do
from . import objects, observation
from .observation import ConversionClaim, ConversionObservation, ConversionVolume
from .record import ConversionRecord, ConversionStep

RUN_AGAIN = "Run again with the same record, or roll back."


def decide_move(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    """Decide the next move, which is valid for this observation only."""
    claim = observed.claim
    if claim is not None and claim.lock == record.lock and claim.generation != record.generation:
        if claim.generation > record.generation:
            return do.StopConversion(
                "taken_over",
                f"PersistentVolumeClaim {record.title} is locked by a later run of the same record",
                "no other run on it",
                "Wait for that run to end.",
            )
        return do.SetLock(claim, record.lock, record.generation, claim.held)
    if observed.helper == "stale":
        return do.StopHelper()
    return decide_step(record, observed)


def decide_step(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    """Decide the move of the record's step, for a run that has taken the record over."""
    return _STEPS[record.step](record, observed)


def _advance(record: ConversionRecord) -> do.ConversionMove:
    return do.SaveRecord(record.advance())


# What several steps ask


def _check_foreign_objects(record: ConversionRecord, observed: ConversionObservation) -> do.StopConversion | None:
    """Stop if another client's object has the name of one of ours."""
    volume, claim = observed.volume, observed.claim
    if volume is not None and volume.side == "foreign":
        return do.StopConversion(
            "foreign_volume",
            f"PersistentVolume {volume.name} was created by another client (uid {volume.uid})",
            "the volume of the record, or none",
            f"Find out what created it. If it is not needed, set its policy to Retain (now {volume.policy}), "
            f"then delete it. {RUN_AGAIN}",
        )
    if (
        claim is not None
        and record.has_reached("rehearse")
        and record.step != "unlock"
        and not _is_own_claim(record, claim)
    ):
        return _refuse_foreign_claim(record, observed, claim)
    return None


def _is_own_claim(record: ConversionRecord, claim: ConversionClaim) -> bool:
    """Whether a claim has our lock and no other volume than that of the record. A claim that a user locked may have any content."""
    return claim.lock == record.lock and claim.volume in ("", record.volume)


def _refuse_foreign_claim(
    record: ConversionRecord, observed: ConversionObservation, claim: ConversionClaim
) -> do.StopConversion:
    """Stop at a claim of another owner; this run never deletes it.

    No remedy deletes one that may have data of its own without a check.
    """
    name, bare = f"PersistentVolumeClaim {record.title}", f"-n {record.namespace}"
    delete = f"kubectl {bare} delete pvc {record.claim}"
    lock = f", with the lock of run {claim.lock}" if claim.lock else ""
    creation = f"{name} was created by another client{lock} (uid {claim.uid}), and has"
    volume = claim.volume
    if volume and volume != record.volume:
        state = f"{creation} another volume, {volume}"
        remedy = (
            "This run changes neither. Find out what created them and what that volume contains. "
            f"{_describe_abandoning(record)}"
        )
    elif claim.uid == record.claim_uid:
        state = f"{name} {f'is locked by run {claim.lock}' if claim.lock else 'lost its lock'} (uid {claim.uid})"
        remedy = f"Wait for what changed it to end; to continue: {_format_lock_command(record)}."
    elif volume:
        state = f"{creation} the volume of this run, {volume}"
        remedy = f"The data is safe. To keep this claim: {_format_lock_command(record)}."
    else:
        state = f"{creation} no volume"
        remedy = f"Check that this is still so (kubectl {bare} get pvc {record.claim}), and only then: {delete}."
    return do.StopConversion(
        "claim_changed",
        state,
        f"the lock of run {record.lock}",
        f"{remedy} {_describe_kept_disks(record, observed)} {RUN_AGAIN}",
    )


def _format_lock_command(record: ConversionRecord) -> str:
    lock = f"{objects.LOCK}={objects.format_lock(record)}"
    return f"kubectl -n {record.namespace} annotate --overwrite pvc {record.claim} {lock}"


def _describe_abandoning(record: ConversionRecord) -> str:
    """Describe how an administrator ends a run that can neither continue nor roll back."""
    name = objects.name_record(record.run)
    return f"To abandon this run at this step, move its record, ConfigMap {name}, out of both record namespaces."


def _describe_kept_disks(record: ConversionRecord, observed: ConversionObservation) -> str:
    volume = observed.volume
    if volume is None:
        return f"No PersistentVolume has {record.old_handle} now; rolling back recreates it from the record."
    return f"{record.old_handle} is kept by PersistentVolume {volume.name} ({volume.policy})."


def _check_claim(record: ConversionRecord, observed: ConversionObservation) -> do.StopConversion | None:
    """Stop if another client deleted the claim."""
    claim = observed.claim
    if claim is not None and not claim.terminating and _is_expected_claim(record, claim):
        return None
    state = "is being deleted" if claim is not None and claim.terminating else "was deleted by another client"
    if record.step == "lock":
        remedy = "Roll back, which ends this run; it has changed nothing."
    else:
        remedy = (
            f"{_describe_kept_disks(record, observed)} Create a claim of that name for it (spec.volumeName; remove uid and "
            f"resourceVersion from the volume's claimRef), and lock it: {_format_lock_command(record)}. {RUN_AGAIN} {_describe_abandoning(record)}"
        )
    return do.StopConversion(
        "claim_gone",
        f"PersistentVolumeClaim {record.title} {state}",
        "the claim that was recorded",
        remedy,
    )


def _is_expected_claim(record: ConversionRecord, claim: ConversionClaim) -> bool:
    """Whether a claim is the recorded one or may replace it."""
    by_hand = bool(claim.volume) and _is_own_claim(record, claim)
    return claim.uid == record.claim_uid or by_hand


def _handle_missing_volume(record: ConversionRecord) -> do.StopConversion | do.SaveRecord:
    if record.direction == "rollback":
        # A rollback creates it again, from its first step on.
        return do.SaveRecord(record.move_to("quiesce"))
    return do.StopConversion(
        "volume_gone",
        f"PersistentVolume {record.volume} was deleted or is being deleted by another client",
        "the volume of the record",
        "Roll back, which recreates it from the record, or only ends a run that has not locked the claim yet.",
    )


def _restore_retain(observed: ConversionObservation) -> do.SetPolicy | None:
    """Set the policy to Retain again if another client changed it."""
    volume = observed.volume
    if volume is not None and volume.policy != "Retain" and volume.side != "foreign":
        return do.SetPolicy(volume, "Retain")
    return None


def _ensure_unused(observed: ConversionObservation) -> do.ConversionMove | None:
    """Return what has to happen before the volume is unused, None if it is."""
    running = [workload for workload in observed.workloads if workload.uid and workload.replicas]
    for workload in running:
        if workload.deletes:
            return do.StopConversion(
                "claims_at_risk",
                f"{workload.kind} {workload.namespace}/{workload.name} has persistentVolumeClaimRetentionPolicy whenScaled: Delete, "
                "so scaling it to 0 would delete the claims of all its pods",
                "whenScaled: Retain",
                f"{objects.format_retention_command(workload.namespace, workload.name)}. {RUN_AGAIN}",
            )
    if running:
        return do.ScaleWorkload(running[0], 0)
    if observed.helper:
        return _end_helper(observed)
    if observed.uses:
        remedy = "End these pods. If the volume stays attached, check its node's kubelet and the driver's attacher."
        return do.AwaitCondition(f"the volume is no longer in use: {'; '.join(observed.uses)}", remedy)
    return None


def _end_helper(observed: ConversionObservation) -> do.ConversionMove:
    """Delete the helper pod, and wait until it ended."""
    if observed.helper == "stopping":
        return do.AwaitCondition("the helper pod ends", "Check its node.")
    return do.StopHelper()


def _find_target(record: ConversionRecord, observed: ConversionObservation) -> ConversionVolume | None:
    """Return the target volume, None if it does not exist or is being deleted."""
    volume = observed.volume
    return volume if volume is not None and volume.side == record.target_side and not volume.terminating else None


def _find_obsolete_volume(record: ConversionRecord, observed: ConversionObservation) -> ConversionVolume | None:
    """Return the volume if it is not the target."""
    return observed.volume if _find_target(record, observed) is None else None


def _is_bound(claim: ConversionClaim | None, volume: ConversionVolume | None) -> bool:
    """Whether claim and volume are bound to each other, on both sides."""
    return (
        claim is not None
        and volume is not None
        and claim.phase == volume.phase == "Bound"
        and claim.volume == volume.name
        and claim.uid == volume.claim_uid
        and not claim.terminating
    )


def _is_exchanged(record: ConversionRecord, observed: ConversionObservation) -> bool:
    """Whether the target is bound to the claim."""
    return _is_bound(observed.claim, _find_target(record, observed))


# The steps, in the order of the tables


def _lock(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    claim = observed.claim
    missing = _check_recorded_objects(record, observed)
    if claim is None or missing:
        return missing or _handle_missing_volume(record)
    if claim.lock == record.lock:
        return _advance(record)
    if claim.lock:
        return do.StopConversion(
            "locked",
            f"PersistentVolumeClaim {record.title} is locked by run {claim.lock}",
            "no lock",
            "Finish or roll back that run; then roll back this one, which has changed nothing.",
        )
    return do.SetLock(claim, record.lock, record.generation, hold=False)


def _rehearse(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    return _check_foreign_objects(record, observed) or _check_claim(record, observed) or do.DryRunVolumes()


def _quiesce(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    """Keep the disk whatever happens to its volume, then stop the workloads."""
    if move := (
        _check_foreign_objects(record, observed)
        or (record.direction == "forward" and _check_recorded_objects(record, observed))
        or _restore_retain(observed)
    ):
        return move
    volume = observed.volume
    if volume is not None and observation.PROVISIONER in volume.finalizers and not volume.terminating:
        return do.AwaitCondition(
            f"the provisioner releases PersistentVolume {volume.name} (finalizer {observation.PROVISIONER})",
            "Check the external-provisioner of the driver's controller.",
        )
    if record.direction == "rollback" and _is_exchanged(record, observed):
        return _advance(record)
    return _ensure_unused(observed) or _advance(record)


def _check_recorded_objects(
    record: ConversionRecord, observed: ConversionObservation
) -> do.StopConversion | do.SaveRecord | None:
    """Stop before the first deletion if claim or old volume is not the recorded one."""
    if stop := _check_claim(record, observed):
        return stop
    volume = observed.volume
    if volume is None or volume.side != "old" or volume.terminating:
        return _handle_missing_volume(record)
    return None


def _read_baseline(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    if record.direction == "rollback":
        return _advance(record)
    if move := (
        _check_foreign_objects(record, observed)
        or _check_recorded_objects(record, observed)
        or _restore_retain(observed)
    ):
        return move
    if record.baseline:
        return _ensure_unused(observed) or _advance(record)
    if not observed.helper:
        return _ensure_unused(observed) or do.StartHelper()
    return _wait_for_helper(observed) or do.ReadData(compare=False)


def _wait_for_helper(observed: ConversionObservation) -> do.ConversionMove | None:
    """Wait for the helper pod; None if it runs and is the only user."""
    if observed.helper == "starting":
        return do.AwaitCondition("the helper pod runs", "Check its events.")
    if observed.helper != "running":
        return _end_helper(observed)
    return _ensure_unused(replace(observed, helper=""))


def _delete_volume(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    volume = _find_obsolete_volume(record, observed)
    if volume is None:
        return _advance(record)
    if not volume.terminating and (
        stop := _check_foreign_objects(record, observed)
        or (record.direction == "forward" and _check_claim(record, observed))
    ):
        return stop
    if move := _restore_retain(observed) or _ensure_unused(observed):
        return move
    if not volume.terminating:
        return do.DeleteVolume(volume)
    finalizers = [name for name in volume.finalizers if name != observation.PROTECTION]
    if unknown := observation.find_unknown_finalizers(finalizers):
        return do.StopConversion(
            "unknown_finalizer",
            f"PersistentVolume {volume.name} has finalizers {', '.join(unknown)}",
            f"only {observation.PROTECTION} and those of attacher and provisioner",
            f"Find out what set them and what they wait for. {RUN_AGAIN}",
        )
    if finalizers:
        return do.AwaitCondition(
            f"PersistentVolume {volume.name} is released by {', '.join(finalizers)}", "Check the driver's controller."
        )
    if volume.phase != "Bound":
        return do.AwaitCondition(f"PersistentVolume {volume.name} is deleted", "Check kube-controller-manager.")
    return do.DropProtection(volume)


def _forget(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    if not record.forgets or record.direction == "rollback" or _find_target(record, observed) is not None:
        return _advance(record)
    if observed.syncer:
        return do.AwaitCondition(f"the driver's syncer works: {observed.syncer}", "Repair it.", then_roll_back=True)
    if observed.registered:
        condition = f"the driver's syncer removes the CnsVSphereVolumeMigration of {record.old_handle}"
        return do.AwaitCondition(condition, "Check the syncer's log.", then_roll_back=True)
    return _advance(record)


def _create_volume(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    claim, target = observed.claim, _find_target(record, observed)
    if target is None and (stop := _check_foreign_volumes(record, observed)):
        return stop
    if _find_obsolete_volume(record, observed) is not None:
        return do.SaveRecord(record.move_to("delete_volume"))
    if target is None:
        # Also when the claim is gone meanwhile: an object with policy Retain keeps the disk in sight.
        uid = claim.uid if claim and _is_own_claim(record, claim) else record.claim_uid
        return do.CreateVolume(uid)
    if stop := _check_foreign_objects(record, observed) or _check_claim(record, observed):
        return stop
    if not _is_bound(claim, target):
        return do.AwaitCondition(
            f"Kubernetes binds PersistentVolume {target.name} and its claim", "Check kube-controller-manager."
        )
    return _restore_retain(observed) or _advance(record)


def _check_foreign_volumes(record: ConversionRecord, observed: ConversionObservation) -> do.StopConversion | None:
    if stop := _check_foreign_objects(record, replace(observed, claim=None)):
        return stop
    if observed.twins:
        return do.StopConversion(
            "same_handle",
            f"{', '.join(f'PersistentVolume {name}' for name in observed.twins)} also has the handle of {record.volume}",
            "no other volume with it",
            f"Find out what it is for. If it is not needed, set its policy to Retain, then delete it. {RUN_AGAIN}",
        )
    return None


def _verify_target(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    if record.direction == "rollback":
        return _advance(record)
    if stop := _check_foreign_objects(record, observed) or _check_claim(record, observed):
        return stop
    if not _is_exchanged(record, observed):
        return _handle_missing_volume(record)
    if move := _restore_retain(observed) or (
        _wait_for_helper(observed) if observed.helper else _ensure_unused(observed)
    ):
        return move
    if not observed.helper:
        return do.StartHelper()
    if observed.helper_path:
        return do.AwaitCondition(
            f"the helper's volume is attached by its new handle: {observed.helper_path}", "Check the node."
        )
    return do.ReadData(compare=True)


def _restore(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    if stop := _check_foreign_objects(record, observed) or _check_claim(record, observed):
        return stop
    if observed.helper:
        return _end_helper(observed)
    if not _is_exchanged(record, observed):
        return _handle_missing_volume(record)
    had = {(workload.kind, workload.namespace, workload.name): workload.replicas for workload in record.workloads}
    for workload in observed.workloads:
        replicas = had[(workload.kind, workload.namespace, workload.name)]
        if workload.uid and not workload.replicas and replicas:
            return do.ScaleWorkload(workload, replicas)
    late = [
        f"{workload.kind} {workload.namespace}/{workload.name} ({workload.ready} of {workload.replicas})"
        for workload in observed.workloads
        if workload.uid and workload.ready < workload.replicas
    ]
    if late:
        return do.AwaitCondition(f"all pods run on Windows: {'; '.join(late)}", "Check their events.")
    return _advance(record)


def _finish(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    """Restore the policy, once the user made the conversion final. The claim is held meanwhile: deleting it just then keeps the disk."""
    forward = record.direction == "forward"
    if record.policy == "Retain" and (not forward or observed.final):
        return _advance(record)
    stop = _check_foreign_objects(record, observed) or _check_claim(record, observed)
    target, claim = _find_target(record, observed), observed.claim
    if stop is not None or target is None or claim is None or not _is_exchanged(record, observed):
        if claim is not None and claim.lock == record.lock and claim.held:
            return _restore_retain(observed) or do.SetLock(claim, claim.lock, claim.generation, hold=False)
        return stop or _handle_missing_volume(record)
    if record.policy != "Retain" and target.policy == record.policy and (not forward or target.by == record.driver):
        return _advance(record)
    if forward and not observed.final:
        return do.ConversionDone(until="the conversion can be rolled back until you make it final")
    if not claim.held:
        return do.SetLock(claim, claim.lock, claim.generation, hold=True)
    if forward and target.by != record.driver:
        return do.SetProvisioner(target, record.driver)
    return do.SetPolicy(target, record.policy)


def _unlock(record: ConversionRecord, observed: ConversionObservation) -> do.ConversionMove:
    claim = observed.claim
    if claim is None or claim.lock != record.lock:
        return _advance(record)
    if claim.terminating and claim.held and (move := _restore_retain(observed)):
        # It was deleted while the policy was restored; the disk is kept nevertheless.
        return move
    return do.SetLock(claim, "", 0, hold=False)


_STEPS: dict[ConversionStep, Callable[[ConversionRecord, ConversionObservation], do.ConversionMove]] = {
    "lock": _lock,
    "rehearse": _rehearse,
    "quiesce": _quiesce,
    "baseline": _read_baseline,
    "delete_volume": _delete_volume,
    "forget": _forget,
    "create_volume": _create_volume,
    "canary": _verify_target,
    "restore": _restore,
    "finish": _finish,
    "unlock": _unlock,
    "done": lambda _record, _observed: do.ConversionDone(),
}
