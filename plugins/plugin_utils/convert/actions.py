# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The possible actions. An action on an object carries the object as it was observed for the decision, and must be
refused by the server when the object is another one by then or was changed: the next observation decides again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.facts import (
    ObservedClaim,
    ObservedVolume,
    ObservedWorkload,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record, Side


@dataclass(frozen=True, slots=True)
class Save:
    """Write the record to both stores."""

    record: Record


@dataclass(frozen=True, slots=True)
class Mark:
    """Set the claim's lock, and whether our finalizer is on it; an empty lock takes it off."""

    claim: ObservedClaim
    lock: str
    generation: int
    hold: bool


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Let the server check both volumes under scratch names, without storing them."""


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Set a volume's reclaim policy."""

    volume: ObservedVolume
    policy: str


@dataclass(frozen=True, slots=True)
class SetProvisioner:
    """Say on a volume which driver deletes it, once its policy is Delete."""

    volume: ObservedVolume
    driver: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Set a workload's replicas."""

    workload: ObservedWorkload
    replicas: int


@dataclass(frozen=True, slots=True)
class StartHelper:
    """Make the pod that reads the data, on a node that the driver was proven on."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """Take the digest of the data through the helper; `compare` says whether it is held against the baseline."""

    compare: bool


@dataclass(frozen=True, slots=True)
class StopHelper:
    """Delete that pod."""


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete the claim."""

    claim: ObservedClaim


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Delete a volume object; what is behind it stays, as its policy is Retain."""

    volume: ObservedVolume


@dataclass(frozen=True, slots=True)
class DropProtection:
    """Take kubernetes.io/pv-protection, and nothing else, off a volume that is being deleted."""

    volume: ObservedVolume


@dataclass(frozen=True, slots=True)
class Reserve:
    """Set the uid in a volume's claimRef: an empty one for the next claim of that name, or that of a claim that is Lost."""

    volume: ObservedVolume
    claim_uid: str


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """Create that side's volume as it stands in the record, with policy Retain. claim_uid: empty for any uid."""

    side: Side
    claim_uid: str


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create that side's claim as it stands in the record, with the lock on it."""

    side: Side


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for another program. then_roll_back: roll back at the timeout."""

    what: str
    remedy: str
    then_roll_back: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing can be done that is known to be safe. reason: one stable word; the data is where it was."""

    reason: str
    found: str
    expected: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do; with a `until` that is not empty, but for that."""

    until: str = ""


# What changes something in the cluster, or reads data.
Deed: TypeAlias = (
    "Mark | Rehearse | SetPolicy | SetProvisioner | Scale | StartHelper | ReadData | StopHelper | DeleteClaim"
    " | DeleteVolume | DropProtection | Reserve | CreateVolume | CreateClaim"
)
Action: TypeAlias = "Save | Deed"
Move: TypeAlias = "Action | Wait | Stop | Done"
