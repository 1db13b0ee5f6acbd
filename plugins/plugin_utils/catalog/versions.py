# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release numbers as drivers and Kubernetes write them: "v3.4.0", "3.4.1-rc.1", "v1.36.3+k3s1", "10.0.20348.2700"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_FORM = re.compile(
    r"v?(?P<major>\d{1,9})\.(?P<minor>\d{1,9})(?:\.(?P<patch>\d{1,9}))?(?P<rest>[-+.][!-~]*)?\Z", re.ASCII
)

# What distributors append to an upstream tag without changing the driver's release.
_SUFFIXES = re.compile(
    r"(-eksbuild\.\d+|-gke\.\d+|-windows-hp|-build\d+|[-_](linux|windows)[-_]?amd64|-(1809|20H2|ltsc\d+)(-amd64)?)\Z"
)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Three numbers and, for a pre-release, its text; a pre-release sorts before its release."""

    release: tuple[int, int, int]
    final: bool
    pre: str

    def __str__(self) -> str:
        numbers = ".".join(str(number) for number in self.release)
        return numbers if self.final else f"{numbers}-{self.pre}"

    @property
    def minor(self) -> tuple[int, int]:
        return self.release[0], self.release[1]


def parse(text: str) -> Version:
    """Read a release number; ValueError names the text and an example when it is none."""
    match = _FORM.match(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a release number, expected one such as 3.4.0")
    suffix = match["rest"] or ""
    pre = suffix[1:] if suffix.startswith("-") else ""
    numbers = (int(match["major"]), int(match["minor"]), int(match["patch"] or 0))
    return Version(release=numbers, final=not pre, pre=pre)


def find_closest(version: Version, candidates: Collection[Version]) -> Version | None:
    """The candidate closest to a release: the newest that is not newer, else the oldest; None without candidates."""
    older = [candidate for candidate in candidates if candidate <= version]
    return max(older) if older else min(candidates, default=None)


def is_between(version: Version, first: str | None, last: str | None) -> bool:
    """Whether a release is one of these, both included; empty is open. A pre-release counts with the release it leads to."""
    if first and version.release < parse(first).release:
        return False
    return not last or version.release <= parse(last).release


def has_fix(version: Version, fixed: Iterable[str]) -> bool:
    """Whether a release has a fix. fixed: the first release with it, for each minor release that got one."""
    fixes = sorted(parse(text) for text in fixed)
    return version.release >= next((fix for fix in fixes if fix.minor == version.minor), fixes[0]).release


def is_at_least(version: str, least: str) -> bool:
    """Whether a release is the least one or later, as far as that is given: "1.27" is any of that minor."""
    if not least:
        return True
    try:
        return _shorten(version, least) >= parse(least)
    except ValueError:
        return False


def is_above(release: str, reference: str) -> bool:
    """Whether a release is later than the reference, as far as the shorter of the two is given; False for what is no release."""
    try:
        return _shorten(release, reference) > _shorten(reference, release)
    except ValueError:
        return False


def _shorten(text: str, like: str) -> Version:
    version = parse(text)
    # Distributors append their own text to the release that it is.
    numbers = version.release if like.count(".") > 1 else (*version.minor, 0)
    return Version(numbers, True, "")


def parse_image_tag(image: str) -> Version | None:
    """The release an image reference names by its tag, None for a digest, no tag, or a tag that is no release.

    Registry and path are ignored, since mirrors change both.
    """
    name = image.rsplit("/", 1)[-1].split("@", 1)[0]
    dummy, colon, tag = name.partition(":")
    if not colon:
        return None
    shorter = _SUFFIXES.sub("", tag)
    while shorter != tag:
        tag, shorter = shorter, _SUFFIXES.sub("", shorter)
    try:
        return parse(tag)
    except ValueError:
        return None
