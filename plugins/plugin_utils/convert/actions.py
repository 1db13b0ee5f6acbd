# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The possible actions. An action on an object carries the object as it was observed for the decision, and must be
refused by the server when the object is another one by then or was changed: the next observation decides again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .observation import ConversionClaim, ConversionVolume, ConversionWorkload
from .record import ConversionRecord


@dataclass(frozen=True, slots=True)
class SaveRecord:
    """Write the record to both stores."""

    record: ConversionRecord


@dataclass(frozen=True, slots=True)
class SetLock:
    """Set the claim's lock, and whether our finalizer is on it; an empty lock takes it off."""

    claim: ConversionClaim
    lock: str
    generation: int
    hold: bool


@dataclass(frozen=True, slots=True)
class DryRunVolumes:
    """Let the server check both volumes under scratch names, without storing them."""


@dataclass(frozen=True, slots=True)
class SetPolicy:
    volume: ConversionVolume
    policy: str


@dataclass(frozen=True, slots=True)
class SetProvisioner:
    """Annotate a volume with the driver that deletes it, once its policy is Delete."""

    volume: ConversionVolume
    driver: str


@dataclass(frozen=True, slots=True)
class ScaleWorkload:
    workload: ConversionWorkload
    replicas: int


@dataclass(frozen=True, slots=True)
class StartHelper:
    """Create the pod that reads the data."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """Read the digest of the data through the helper pod. compare: with the baseline."""

    compare: bool


@dataclass(frozen=True, slots=True)
class StopHelper:
    """Delete the helper pod."""


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Delete a volume object. The disk stays, since the policy is Retain."""

    volume: ConversionVolume


@dataclass(frozen=True, slots=True)
class DropProtection:
    """Remove the finalizer kubernetes.io/pv-protection alone from a volume that is being deleted."""

    volume: ConversionVolume


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """Create the target volume from the record, with policy Retain, for that claim."""

    claim_uid: str


@dataclass(frozen=True, slots=True)
class AwaitCondition:
    """Wait for another program. then_roll_back: roll back at the timeout."""

    condition: str
    remedy: str
    then_roll_back: bool = False


@dataclass(frozen=True, slots=True)
class StopConversion:
    """Stop, since no change is known to be safe. reason: one stable word."""

    reason: str
    state: str
    expected: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ConversionDone:
    """Nothing is left to do. until: the only condition left, empty without one."""

    until: str = ""


# What changes something in the cluster, or reads data.
ConversionEffect: TypeAlias = (
    "SetLock | DryRunVolumes | SetPolicy | SetProvisioner | ScaleWorkload | StartHelper | ReadData | StopHelper"
    " | DeleteVolume | DropProtection | CreateVolume"
)
ConversionAction: TypeAlias = "SaveRecord | ConversionEffect"
ConversionMove: TypeAlias = "ConversionAction | AwaitCondition | StopConversion | ConversionDone"
