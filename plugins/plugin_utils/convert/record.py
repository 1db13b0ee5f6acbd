# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of one volume's conversion: written before the first change, and all that a later run needs. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from ..base.stored import FormatError, read

SCHEMA = 2

Direction = Literal["forward", "rollback"]
Side = Literal["old", "new"]
ConversionStep = Literal[
    "lock", "rehearse", "quiesce", "baseline", "delete_volume", "forget", "create_volume", "canary", "restore",
    "finish", "unlock", "done",
]  # fmt: skip
STEPS: tuple[ConversionStep, ...] = get_args(ConversionStep)


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """A Deployment or StatefulSet that uses the claim, and the replicas it had."""

    kind: str
    namespace: str
    name: str
    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class ConversionRecord:
    """One conversion.

    run: its name, the same for every record of a claim. key: distinguishes it from a conversion by another user with other
    record stores. volume: name of the PersistentVolume, which both sides have. volume_uid: of the old one. attaches: the driver has
    VolumeAttachments. forgets: the driver's syncer takes the deleted in-tree volume out of a register first (vSphere). policy: the
    volume's reclaim policy before all this. generation: grows whenever a run takes the record over; the claim carries it, so that a
    run that was taken over can write nothing to it any more. baseline: digest of the data when the workload stood still. objects:
    everything as it was, by name, among them "old" and "new", the two volumes as they are created. sequence: grows with every
    save. times: of each step.
    """

    run: str
    key: str
    namespace: str
    claim: str
    claim_uid: str
    volume: str
    volume_uid: str
    driver: str
    old_handle: str
    new_handle: str
    policy: str
    attaches: bool
    forgets: bool
    workloads: tuple[RecordedWorkload, ...]
    direction: Direction = "forward"
    step: ConversionStep = "lock"
    generation: int = 1
    baseline: str = ""
    rollback_reason: str = ""
    sequence: int = field(default=0, compare=False)
    times: Mapping[str, str] = field(default_factory=dict, compare=False)
    objects: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        """The claim, as namespace/name."""
        return f"{self.namespace}/{self.claim}"

    @property
    def lock(self) -> str:
        """The name of the conversion in the lock of its claim."""
        return f"{self.run}.{self.key}"

    @property
    def target_handle(self) -> str:
        """The handle of the volume that is bound at the end."""
        return self.new_handle if self.direction == "forward" else self.old_handle

    @property
    def target_side(self) -> Side:
        return "new" if self.direction == "forward" else "old"

    def advance(self) -> ConversionRecord:
        return replace(self, step=STEPS[STEPS.index(self.step) + 1])

    def move_to(self, step: ConversionStep) -> ConversionRecord:
        return replace(self, step=step)

    def has_reached(self, step: ConversionStep) -> bool:
        """Whether that step has begun."""
        return STEPS.index(self.step) >= STEPS.index(step)

    def roll_back(self, why: str) -> ConversionRecord:
        """Return the record of a rollback: the old volume is the target, and the first step ensures Retain.

        Harmless wherever it is decided: what is still, or again, as it was needs nothing. Before there is a lock there
        is nothing to go back from.
        """
        return replace(
            self, direction="rollback", step="unlock" if self.step == "lock" else "quiesce", rollback_reason=why
        )

    def take_over(self) -> ConversionRecord:
        """Return the record as another run continues it."""
        return replace(self, generation=self.generation + 1)

    def prepare_save(self, step_time: str) -> ConversionRecord:
        """Return the record as it is written: with the next sequence and the time of its step."""
        return replace(
            self, sequence=self.sequence + 1, times={f"{self.direction}:{self.step}": step_time, **self.times}
        )

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True, indent=1, ensure_ascii=False)


def from_json(text: str) -> ConversionRecord:
    """Read a stored record.

    Raises FormatError naming what is wrong with it.
    """
    record: ConversionRecord = read(ConversionRecord, text, SCHEMA)
    for name in ("run", "key", "namespace", "claim", "claim_uid", "volume", "volume_uid", "policy"):
        if not getattr(record, name):
            raise FormatError(f"{name} is '', expected text")
    for name in ("old", "new"):
        thing = record.objects.get(name)
        parts = [thing.get("metadata"), thing.get("spec")] if isinstance(thing, dict) else [None]
        if isinstance(parts[-1], dict):
            parts.append(parts[-1].get("claimRef"))
        if not all(isinstance(part, dict) for part in parts):
            raise FormatError(f"objects.{name} is not an object of the API, expected metadata and spec")
    for name in ("handles", "on_node"):
        if not isinstance(record.objects.get(name), list):
            raise FormatError(f"objects.{name} is {record.objects.get(name)!r}, expected a list")
    return record


def select_newest(copies: Sequence[ConversionRecord]) -> ConversionRecord:
    """Return the copy of a run's record that was written last.

    A run that was taken over may still have written to one store: its generation is lower. Generations restart with each key.
    """
    key = max(copies, key=lambda record: record.sequence).key
    return max(
        (record for record in copies if record.key == key),
        key=lambda record: (record.generation, record.sequence),
    )
