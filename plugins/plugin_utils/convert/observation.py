# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of the cluster before each move of a conversion; decide.py evaluates it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# What keeps a volume object: Kubernetes' own protection, and those that go by themselves once their owner has let go.
PROTECTION = "kubernetes.io/pv-protection"
PROVISIONER = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE_CONTROLLER = "kubernetes.io/pv-controller"
ATTACHER = "external-attacher/"


def find_unknown_finalizers(finalizers: Iterable[str]) -> list[str]:
    """Return unknown finalizers of a volume, which may never go."""
    expected = (PROTECTION, PROVISIONER, IN_TREE_CONTROLLER)
    return [name for name in finalizers if name not in expected and not name.startswith(ATTACHER)]


VolumeSide = Literal["old", "new", "foreign"]
# "stale": created by a request of a run before this one.
HelperState = Literal["", "starting", "running", "stopping", "failed", "stale"]


@dataclass(frozen=True, slots=True)
class ConversionVolume:
    """The PersistentVolume with the name of the record.

    version: its resourceVersion. side: which side of the exchange it is, "foreign" when neither. claim_uid: of its
    claimRef. by: its annotation provisioned-by.
    """

    name: str
    uid: str
    version: str
    side: VolumeSide
    policy: str
    phase: str
    terminating: bool
    finalizers: tuple[str, ...]
    claim_uid: str
    by: str


@dataclass(frozen=True, slots=True)
class ConversionClaim:
    """The claim. lock, generation: the run in its annotation, and its generation. held: our own finalizer is on it."""

    uid: str
    version: str
    phase: str
    volume: str
    terminating: bool
    lock: str
    generation: int
    held: bool


@dataclass(frozen=True, slots=True)
class ConversionWorkload:
    """A workload of the record.

    uid empty: it is gone. ready: replicas that run on Windows nodes and are Ready. deletes: it is a StatefulSet that deletes
    the claims of pods that it scales away.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    version: str
    replicas: int
    ready: int
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class ConversionObservation:
    """The state of claim, volume and workloads.

    uses: users of the claim or of an attachment of either handle, without the helper pod. twins: other volumes with one of the
    handles. helper: our pod on the claim. helper_path: why the helper's volume is not on the target's CSI path, empty
    when it is. registered: the driver's register still names the old volume. syncer: why the syncer, which removes it, does not
    work, empty if it works. final: the user made the conversion final.
    """

    volume: ConversionVolume | None
    claim: ConversionClaim | None
    workloads: tuple[ConversionWorkload, ...]
    uses: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    helper: HelperState = ""
    helper_path: str = ""
    registered: bool = False
    syncer: str = ""
    final: bool = True
