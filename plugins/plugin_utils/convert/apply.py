# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out a conversion: observe, let convert/decide.py choose the next action, run it, and observe again.

An answer that was lost, a conflict and an object that is gone mean the same here: observe again. Nothing is ever taken for
done because it was sent.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..base.waiting import WaitCondition, Waits, render_progress, report_progress
from ..data.read import Digest, read_digest
from ..kube import kinds
from ..kube.client import FIELD_MANAGER, Client
from ..kube.errors import ClusterError, StreamError, UnreachableError
from ..kube.fencing import Reference, fence
from ..verify.nodes import choose_node
from ..verify.objects import CONTAINER, MOUNT
from ..verify.observe import read_nodes
from . import actions as do
from . import explain, objects
from .decide import decide_move
from .observation import ConversionClaim, ConversionVolume, ConversionWorkload
from .observe import ConversionObserver
from .options import RunOptions
from .record import ConversionRecord, Side
from .records import Records

# Seconds between observations: short at first, since most steps are quick.
_FIRST, _LAST = 0.2, 2.0
# Statuses of a failing server or of our access to it; any other status refused the request itself.
_TROUBLE = frozenset({401, 429, 500, 502, 503, 504})
# After so many restores, another client will keep restoring it.
_PATIENCE = 3
_UNCOMPARED = "not compared"
# Seconds that a helper pod lives beyond the time limits of its start and of reading.
_GRACE = 60
# What a volume that was created is.
_SIDES: dict[Side, str] = {"new": "the native one", "old": "the in-tree one"}


class ConversionStoppedError(ClusterError):
    """A conversion cannot continue."""


class Converter:
    """Runs one conversion. check: raises when this run may write no more. actions: its changes, as text."""

    def __init__(
        self, client: Client, records: Records, options: RunOptions, notify: Callable[[str], None], check: Callable[[], None]
    ) -> None:  # fmt: skip
        self._client, self._records, self._options, self._notify, self._check = client, records, options, notify, check
        self.actions: list[str] = []
        self._repeated: Counter[str] = Counter()
        self._cut_since = 0.0
        self.record: ConversionRecord | None = None

    def fence(self, record: ConversionRecord) -> None:
        """Fence what earlier runs may still write, also a run that released its lease before its last request was answered.

        Its record is bound to the version that was read, and its helper pod names the generation of its run.
        """
        references = [
            Reference(kinds.PERSISTENT_VOLUME_CLAIM, record.claim, record.namespace),
            Reference(kinds.PERSISTENT_VOLUME, record.volume),
            *(
                Reference(kinds.SCALABLE[workload.kind], workload.name, workload.namespace)
                for workload in record.workloads
            ),
        ]
        fence(self._client, references, secrets.token_hex(8))
        # The objects are the user's: nothing is left on them.
        fence(self._client, references, None)

    def run(self, record: ConversionRecord) -> str:
        """Run the conversion from the state in its record; return the condition that is left, empty without one.

        Raises ConversionStoppedError or ClusterError; `record` has the progress.
        """
        self.record = record = self._save(record)
        view = ConversionObserver(self._client, final=self._options.final)
        waiting, since, pause = "", time.monotonic(), _FIRST
        waits = Waits(self._notify)
        while True:
            self._check()
            move: do.ConversionMove = decide_move(record, view.observe(record))
            if isinstance(move, do.ConversionDone):
                return move.until
            if isinstance(move, do.StopConversion):
                raise ConversionStoppedError(explain.describe_stop(record, move), move.reason)
            if not isinstance(move, do.AwaitCondition):
                self.record = record = self._do(record, move)
                waiting, pause = "", _FIRST
                continue
            if move.condition != waiting:
                waiting, since, pause = move.condition, time.monotonic(), _FIRST
            waited = time.monotonic() - since
            waits.report(WaitCondition(f"{record.title}: waiting until {move.condition}", waited, self._options.step))
            if waited > self._options.step:
                self.record = record = self._handle_timeout(record, move)
                waiting = ""
            # Between two observations; the time limit of a wait is checked above.
            time.sleep(pause)
            pause = min(pause * 1.3, _LAST)

    def _handle_timeout(self, record: ConversionRecord, move: do.AwaitCondition) -> ConversionRecord:
        text = f"timed out after {self._options.step:.0f} s waiting until {move.condition}. {move.remedy}"
        if move.then_roll_back and record.direction == "forward":
            self._notify(f"{text} Rolling back.")
            return self._save(record.roll_back(text))
        raise ConversionStoppedError(f"{text} {explain.describe_state(record)}", "timeout")

    def _save(self, record: ConversionRecord) -> ConversionRecord:
        self._check()
        return self._records.write(record, self._client.now().strftime("%Y-%m-%dT%H:%M:%SZ"))

    # One action

    def _do(self, record: ConversionRecord, action: do.ConversionAction) -> ConversionRecord:
        if isinstance(action, do.SaveRecord):
            saved = self._save(action.record)
            if saved.step != record.step:
                self._notify(f"{record.title}: {record.step} done")
            return saved
        try:
            following = self._send(record, action)
        except UnreachableError:
            raise
        except ClusterError as error:
            # What is to be created is refused as not found when its namespace is: looking again would help nothing.
            if error.status == 409 or (error.status == 404 and not isinstance(action, do.StartHelper)):
                # Seconds between two reads of what another client changes.
                time.sleep(_FIRST)
                return record
            refused = error.status not in _TROUBLE
            if isinstance(action, do.CreateVolume) and record.direction == "forward" and refused:
                self._notify(f"{record.title}: the API server refused the new volume; rolling back: {error}")
                return self._save(record.roll_back(f"the API server refused the new volume: {error}"))
            raise ConversionStoppedError(f"{error} {explain.describe_state(record)}", error.reason) from error
        return self._save(following) if following != record else record

    def _send(self, record: ConversionRecord, action: do.ConversionEffect) -> ConversionRecord:
        """Carry out an action; return the record that follows from it."""
        self._check()
        client = self._client
        match action:
            case do.DryRunVolumes():
                return self._dry_run_volumes(record)
            case do.ReadData():
                return self._read(record, action)
            case do.StartHelper():
                client.create_new(kinds.POD, self._define_helper(record), dry_run=False)
            case do.StopHelper():
                name = objects.name_helper(record.run)
                live = client.get(kinds.POD, name, record.namespace)
                if live is not None:
                    metadata = live["metadata"]
                    client.delete(
                        kinds.POD, name, record.namespace, metadata["uid"],
                        dry_run=False, policy="Background", version=metadata["resourceVersion"],
                    )  # fmt: skip
            case do.SetLock():
                self._patch_lock(record, action)
            case do.ScaleWorkload():
                self._scale(record, action)
            case do.SetPolicy():
                self._patch_policy(record, action)
            case do.CreateVolume():
                definition = objects.define_volume(record, record.target_side, action.claim_uid)
                client.create_new(kinds.PERSISTENT_VOLUME, definition, dry_run=False)
                self._note(f"created PersistentVolume {record.volume}, {_SIDES[record.target_side]}")
            case do.DeleteVolume():
                volume = action.volume
                client.delete(
                    kinds.PERSISTENT_VOLUME, volume.name, None, volume.uid,
                    dry_run=False, policy="Background", version=volume.version,
                )  # fmt: skip
                self._note(f"deleted the object PersistentVolume {action.volume.name}")
            case do.DropProtection():
                # The observed volume has no other finalizer, and the patch fails if it has changed.
                body = {"metadata": {**_build_precondition(action.volume), "finalizers": None}}
                client.patch(kinds.PERSISTENT_VOLUME, action.volume.name, None, body, FIELD_MANAGER)
            case do.SetProvisioner():
                self._patch_volume(action.volume, {}, {objects.PROVISIONED_BY: action.driver})
        return record

    def _patch_volume(
        self, volume: ConversionVolume, spec: Mapping[str, Any], annotations: Mapping[str, str] | None = None
    ) -> None:
        body = {"metadata": {**_build_precondition(volume), "annotations": annotations or {}}, "spec": spec}
        self._client.patch(kinds.PERSISTENT_VOLUME, volume.name, None, body, FIELD_MANAGER)

    def _note(self, text: str) -> None:
        self.actions.append(text)
        self._notify(text)

    def _dry_run_volumes(self, record: ConversionRecord) -> ConversionRecord:
        for side in ("new", "old"):
            try:
                self._client.create_new(
                    kinds.PERSISTENT_VOLUME, objects.define_scratch_volume(record, side), dry_run=True
                )
            except ClusterError as error:
                if isinstance(error, UnreachableError):
                    raise
                raise ConversionStoppedError(
                    f"the API server would refuse the {side} volume of {record.title}: {error} "
                    "Only the lock was set. Fix what refuses it, or roll back.",
                    "admission_refused",
                ) from error
        self._dry_run_helper(record)
        return record.advance()

    def _dry_run_helper(self, record: ConversionRecord) -> None:
        """Refuse a helper pod that the API server would reject. Ignores quotas, since stopping the workload frees its share."""
        pod = self._define_helper(record)
        try:
            self._client.create_new(kinds.POD, pod, dry_run=True)
        except ClusterError as error:
            if isinstance(error, UnreachableError):
                raise
            # 409: one of before is there, which ends before the next one is made.
            if error.status != 409 and "exceeded quota" not in str(error):
                raise ConversionStoppedError(
                    "the API server would refuse the helper pod, which reads the data of "
                    f"{record.title}: {error} Only the lock was set. Allow the pod (it needs pod "
                    "security baseline), or roll back.",
                    "admission_refused",
                ) from error

    def _read(self, record: ConversionRecord, action: do.ReadData) -> ConversionRecord:
        if not self._options.compare:
            digest = _UNCOMPARED
        else:
            reading, began = f"{record.title}: reading all data", time.monotonic()
            self._notify(reading)
            try:
                with report_progress(
                    self._notify, lambda: f"{reading} ({render_progress(time.monotonic() - began, self._options.step)})"
                ):
                    digest = str(self._digest(record))
            except StreamError as error:
                # Reading is safe to repeat, and nothing was concluded from a part.
                self._cut_since = self._cut_since or time.monotonic()
                if time.monotonic() - self._cut_since > self._options.step:
                    raise ConversionStoppedError(
                        f"the data of {record.title} could not be read: {error}. Every attempt "
                        f"failed for {self._options.step:.0f} s. Check the helper pod's node and the connection to "
                        f"the API server; raise kubewin_convert_timeout for large volumes. {explain.describe_state(record)}",
                        "timeout",
                    ) from error
                self._notify(f"{record.title}: reading again: {error}")
                # A connection may be cut at once, and is again: the server gets a moment between two tries.
                time.sleep(_FIRST)
                return record
            self._cut_since = 0.0
        if not action.compare:
            self._note(f"data of {record.title}: {digest}")
            return replace(record, baseline=digest)
        if _UNCOMPARED not in (digest, record.baseline) and digest != record.baseline:
            raise ConversionStoppedError(
                f"the data of {record.title} differs: {digest} through the new volume, expected "
                f"{record.baseline}. The workload stays at 0. Roll back, and find what wrote to the volume. "
                f"{explain.describe_state(record)}",
                "data_differs",
            )
        if digest == record.baseline:
            self._note(f"data of {record.title} through the new volume: {digest}")
        return record.advance()

    def _digest(self, record: ConversionRecord) -> Digest:
        return read_digest(
            self._client, record.namespace, objects.name_helper(record.run), CONTAINER, MOUNT,
            self._options.compare, self._options.step,
        )  # fmt: skip

    def _define_helper(self, record: ConversionRecord) -> dict[str, Any]:
        """Define the helper pod on a node that has the driver and that the volume can go to."""
        volume = record.objects[record.target_side if record.has_reached("canary") else "old"]
        image, tolerations = self._options.image, self._options.tolerations
        claim = record.title
        node = choose_node(read_nodes(self._client), claim, volume, record.driver, image, tolerations)
        # One that a late request creates ends by itself; one that ends too early is created again.
        return objects.define_helper(record, node, image, tolerations, int(2 * self._options.step) + _GRACE)

    def _patch_lock(self, record: ConversionRecord, action: do.SetLock) -> None:
        kind, name, namespace = kinds.PERSISTENT_VOLUME_CLAIM, record.claim, record.namespace
        live = self._client.get(kind, name, namespace)
        present = [
            finalizer
            for finalizer in ((live or {}).get("metadata") or {}).get("finalizers") or ()
            if finalizer != objects.HOLD
        ]
        value = f"{action.lock}/{action.generation}" if action.lock else None
        metadata = {
            **_build_precondition(action.claim),
            "annotations": {objects.LOCK: value},
            "finalizers": [*present, objects.HOLD] if action.hold else present,
        }
        self._client.patch(kind, name, namespace, {"metadata": metadata}, FIELD_MANAGER)

    def _scale(self, record: ConversionRecord, action: do.ScaleWorkload) -> None:
        workload = action.workload
        name = f"{workload.kind} {workload.namespace}/{workload.name}"
        done = f"{name} was scaled to {action.replicas}"
        if not action.replicas:
            self._limit_repetitions(record, done, "its replicas", "0 while its volume is converted", "not_quiet")
        body = {"metadata": _build_precondition(workload), "spec": {"replicas": action.replicas}}
        self._client.patch(kinds.SCALABLE[workload.kind], workload.name, workload.namespace, body, FIELD_MANAGER)
        self._repeated[done] += 1
        self._note(f"scaled {name} to {action.replicas}")

    def _limit_repetitions(self, record: ConversionRecord, done: str, subject: str, expected: str, reason: str) -> None:
        """Raise ConversionStoppedError if a step was repeated too often."""
        if self._repeated[done] >= _PATIENCE:
            raise ConversionStoppedError(
                f"{done} {_PATIENCE} times, but another client restores {subject}, expected {expected}. Pause that "
                f"client (GitOps, an operator). {explain.describe_state(record)}",
                reason,
            )

    def _patch_policy(self, record: ConversionRecord, action: do.SetPolicy) -> None:
        done = f"set the policy of PersistentVolume {action.volume.name} to {action.policy}"
        if action.policy == "Retain":
            self._limit_repetitions(record, done, "the other one", "Retain until the data is verified", "not_retained")
        self._patch_volume(action.volume, {"persistentVolumeReclaimPolicy": action.policy})
        self._repeated[done] += 1
        self._note(f"PersistentVolume {action.volume.name}: policy {action.policy}")


def _build_precondition(observed: ConversionClaim | ConversionVolume | ConversionWorkload) -> dict[str, Any]:
    """Build the metadata with which the API server refuses a patch of another or changed object."""
    return {"uid": observed.uid, "resourceVersion": observed.version}
