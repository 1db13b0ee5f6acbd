# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A comparison of a volume's data as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.text import mask_controls
from .compare import VolumeComparison
from .manifest import Manifest, summarize_counts

# More lines of a kind than that are counted.
_LINES = 50


def format_report(before: Manifest, after: Manifest, comparison: VolumeComparison) -> str:
    """Format the report of one volume."""
    return mask_controls("\n".join(_format_lines(before, after, comparison)))


def _format_lines(before: Manifest, after: Manifest, comparison: VolumeComparison) -> Iterator[str]:
    head = {
        "same": "unchanged",
        "different": f"{len(comparison.differences)} paths changed",
        "incomplete": "no difference in what was compared; some content was not compared",
    }[comparison.verdict]
    yield f"{after.namespace}/{after.claim}: {head}"
    yield f"  contents equal: {comparison.equal} files; grown as declared: {len(comparison.grown)} files"
    if before.volume != after.volume:
        yield f"  another volume: {before.volume} before, {after.volume} now"
    if comparison.listed:
        yield f"  names and sizes only: {comparison.listed} files (a volume in use is not read)"
    if before.folders:
        yield f"  by digests of {len(before.folders)} folders, because the list of files was too large to keep"
    yield from _limit_lines(
        [f"  {difference.what}: {difference.path}: {difference.detail}" for difference in comparison.differences]
    )
    yield from _limit_lines([f"  not compared: {gap.path}: {gap.why}" for gap in comparison.not_compared])


def _limit_lines(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"  and {len(lines) - _LINES} more"


def describe_manifest(manifest: Manifest) -> str:
    counts = summarize_counts(manifest)
    reading = (
        f"{counts['read_files']} of them read"
        if manifest.how == "content"
        else "only names, sizes and times: it is in use"
    )
    if manifest.folders:
        reading = f"too many to keep by name: digests of {len(manifest.folders)} folders are kept instead"
    gaps = f", {len(manifest.gaps)} folders could not be listed" if manifest.gaps else ""
    return (
        f"{manifest.namespace}/{manifest.claim}: {counts['files']} files with {counts['bytes']} bytes, {reading}{gaps}"
    )
