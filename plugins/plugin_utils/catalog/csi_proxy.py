# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known about the releases of csi-proxy: flags, API groups, pipes, the floor and the recommendation.

Source: ``cmd/csi-proxy/main.go``, ``pkg/server/*/api_group_generated.go`` and the vendored klog of each tag of
https://github.com/kubernetes-csi/csi-proxy. A new release is one entry in ``RELEASES``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FLOOR = "1.1.3"
"""Lowest release that may be installed: the first one that fixes CVE-2023-3893."""

RECOMMENDED = "1.3.0"

PIPE_PREFIX = "csi-proxy-"

SERVICE_NAMES = ("csi-proxy", "csiproxy")
"""Names under which installers register the service: the first is ours, the second the upstream README's."""

PRIVACY_SINCE = "1.2.0"
"""First release with the flag -require-privacy. A release ends at once when it is started with a flag that it does not have."""

_GROUPS_1_1: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("disk", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v1beta3")),
    ("filesystem", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v2alpha1")),
    ("iscsi", ("v1alpha1", "v1alpha2")),
    ("smb", ("v1", "v1alpha1", "v1beta1", "v1beta2")),
    ("system", ("v1alpha1",)),
    ("volume", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v2alpha1")),
)


@dataclass(frozen=True, slots=True)
class Release:
    """One csi-proxy release, and the API groups that it serves, each with its versions."""

    version: str
    api_groups: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def pipes(self) -> tuple[str, ...]:
        """Bare names of every pipe that this release opens, sorted."""
        return tuple(
            sorted(f"{PIPE_PREFIX}{group}-{version}" for group, versions in self.api_groups for version in versions)
        )


RELEASES: tuple[Release, ...] = (
    Release("1.1.3", _GROUPS_1_1),
    Release("1.2.0", _GROUPS_1_1),
    Release("1.2.1", _GROUPS_1_1),
    Release("1.3.0", _GROUPS_1_1),
)

_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+.][0-9A-Za-z.+-]*)?", re.ASCII)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The three numbers of ``1.3.0``, ``v1.3.0`` or ``1.3.0-build.2``; None for anything else."""
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def find_release(version: str) -> Release | None:
    """The catalog's entry that describes ``version``.

    A build suffix is ignored. A release that is newer than every known one is described by the newest of its own
    major version, because flags and groups were only ever added within version 1.
    """
    numbers = parse_version(version)
    if numbers is None:
        return None
    best: Release | None = None
    for release in RELEASES:
        numbers_of_release = parse_version(release.version)
        if numbers_of_release is not None and numbers_of_release[0] == numbers[0] and numbers_of_release <= numbers:
            best = release
    return best


def is_below(version: str, reference: str) -> bool:
    """Whether ``version`` is an older release than ``reference``; False when either is not a version."""
    numbers, reference_numbers = parse_version(version), parse_version(reference)
    return numbers is not None and reference_numbers is not None and numbers < reference_numbers
