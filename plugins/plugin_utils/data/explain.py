# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A comparison of a volume's data as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import Comparison
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import Manifest, summary

# More lines of a kind than that are counted.
_LINES = 50


def report(before: Manifest, after: Manifest, found: Comparison) -> str:
    """What became of one volume."""
    return "\n".join(_lines(before, after, found))


def _lines(before: Manifest, after: Manifest, found: Comparison) -> Iterator[str]:
    head = {
        "same": "unchanged",
        "different": f"{len(found.differences)} paths changed",
        "incomplete": "no difference in what was compared; some content was not compared",
    }[found.verdict]
    yield f"{after.namespace}/{after.claim}: {head}"
    yield f"  contents equal: {found.equal} files; grown as declared: {len(found.grown)} files"
    if before.volume != after.volume:
        yield f"  another volume: {before.volume} before, {after.volume} now"
    if found.listed:
        yield f"  names and sizes only: {found.listed} files (a volume in use is not read)"
    if before.folders:
        yield f"  by digests of {len(before.folders)} folders, because the list of files was too large to keep"
    yield from _some([f"  {one.what}: {one.path}: {one.detail}" for one in found.differences])
    yield from _some([f"  not compared: {one.path}: {one.why}" for one in found.not_compared])


def _some(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"  and {len(lines) - _LINES} more"


def taken(found: Manifest) -> str:
    """What was read."""
    counts = summary(found)
    how = (
        f"{counts['read_files']} of them read"
        if found.how == "content"
        else "only names, sizes and times: it is in use"
    )
    if found.folders:
        how = f"too many to keep by name: digests of {len(found.folders)} folders are kept instead"
    gaps = f", {len(found.gaps)} folders could not be listed" if found.gaps else ""
    return f"{found.namespace}/{found.claim}: {counts['files']} files with {counts['bytes']} bytes, {how}{gaps}"
