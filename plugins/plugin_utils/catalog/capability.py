# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which volumes a driver's node plugin takes on Windows: the shape of its table, and the one question asked of it. Pure.

What no cell of a table mentions is unknown, never allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .versions import Version, is_between

# Features that tables answer. Those in _OPEN continue with a name; "*" answers for every other name.
ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
BLOCK, READ_ONLY, INLINE, EXPANSION = "raw block", "read-only", "inline", "expansion"
FILE_SYSTEM, PROTOCOL, CLUSTER_NAME = "file system", "protocol", "server name of the cluster"
# What a share may lack. A driver without such a cell finds it by itself.
NO_SERVER, NO_SECRET = "share without source", "share without secret"
_OPEN = (FILE_SYSTEM, PROTOCOL)

# A Service's name is known to the cluster's DNS only, and node plugins ask the host's resolver.
_OF_THE_CLUSTER = re.compile(r"[^./]+\.[^./]+\.svc(\.|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer of a table.

    allowed: None where upstream's code does not settle it. source: file and function in the driver's repository, or a
    page. why: completes "the driver ..." as text. mode, first, last: for which mode and releases it holds, all when empty.
    """

    allowed: bool | None
    source: str
    why: str = ""
    mode: str = ""
    first: str = ""
    last: str = ""

    def applies_to(self, version: Version | None, mode: str) -> bool | None:
        """Whether it answers for a release in a mode; None when that depends on what is not known."""
        if self.mode and mode and self.mode != mode:
            return False
        if version is None:
            return None if self.first or self.last or (self.mode and not mode) else True
        if not is_between(version, self.first, self.last):
            return False
        return None if self.mode and not mode else True


Table = Mapping[str, tuple[Cell, ...]]


def repeat_answer(answer: Cell, *features: str) -> Table:
    """The part of a table in which all of these features have one answer."""
    return dict.fromkeys(features, (answer,))


# The kubelet itself has no raw devices for pods on Windows, whatever the driver.
NO_BLOCK = Cell(
    False,
    "https://kubernetes.io/docs/concepts/storage/windows-storage/",
    "does not support raw block volumes on Windows",
)
# A mount is a link on Windows, to which no options belong; the kubelet still gives the container a read-only mount.
READ_ONLY_BY_KUBELET = "pkg/kubelet/kubelet_pods.go makeMounts of kubernetes/kubernetes"


@dataclass(frozen=True, slots=True)
class RequestedVolume:
    """A volume as a node plugin is asked for it, and as an attacher or provisioner is.

    fs_type: as the volume names it, empty for none. protocol: "nfs" of Azure File, empty when not named. server: of a share.
    lacks: NO_SERVER and NO_SECRET, where the driver has a cell for it.
    """

    access_modes: tuple[str, ...] = ()
    block: bool = False
    fs_type: str = ""
    read_only: bool = False
    inline: bool = False
    protocol: str = ""
    server: str = ""
    lacks: tuple[str, ...] = ()

    def list_features(self) -> Iterator[str]:
        """What a driver has to have for it."""
        if self.block:
            yield BLOCK
        else:
            yield f"{FILE_SYSTEM} {self.fs_type.lower()}".strip()
        yield from self.access_modes
        if self.read_only:
            yield READ_ONLY
        if self.inline:
            yield INLINE
        if self.protocol:
            yield f"{PROTOCOL} {self.protocol.lower()}"
        if _OF_THE_CLUSTER.search(self.server):
            yield CLUSTER_NAME
        yield from self.lacks


@dataclass(frozen=True, slots=True)
class VolumeSupport:
    """The answer. feature: what it is about; why and source: of the cell that decides, empty for a yes."""

    word: Literal["yes", "no", "unknown"]
    feature: str = ""
    why: str = ""
    source: str = ""


def check_support(
    table: Table, volume: RequestedVolume, version: Version | None = None, mode: str = ""
) -> VolumeSupport:
    """Whether a driver in this release and mode takes this volume on Windows. version None, mode empty: not known."""
    doubt: VolumeSupport | None = None
    for feature in volume.list_features():
        answer = find_cell(table, feature, version, mode)
        if answer is None or answer.allowed is None:
            why = "is not known to support that on Windows" if answer is None or not answer.why else answer.why
            doubt = doubt or VolumeSupport("unknown", feature, why, "" if answer is None else answer.source)
        elif not answer.allowed:
            return VolumeSupport("no", feature, answer.why, answer.source)
    return doubt or VolumeSupport("yes")


def find_cell(table: Table, feature: str, version: Version | None = None, mode: str = "") -> Cell | None:
    """The cell that answers for a feature; None when there is none, or when it depends on what is not known."""
    kind = next((prefix for prefix in _OPEN if feature.startswith(prefix)), "")
    cells = table.get(feature) or (table.get(f"{kind} *") if kind else None) or ()
    held = [(answer, answer.applies_to(version, mode)) for answer in cells]
    possible = [answer for answer, holds in held if holds is not False]
    agreed = len({answer.allowed for answer in possible}) == 1
    # One that may hold says nothing by itself: releases and modes that it leaves out may do otherwise.
    return possible[0] if agreed and (len(possible) > 1 or (possible[0], True) in held) else None
