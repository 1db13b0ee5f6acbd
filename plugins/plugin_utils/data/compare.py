# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two manifests of a volume, and what was not compared. Unread data is never equal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..base.text import mask_controls
from .manifest import FileEntry, FolderDigest, Gap, Manifest, digest_folders, is_append_only

# missing, added: a path. changed: a file's content or size. written: a file that was written to, its content unread. shortened,
# rewritten: a file that may only grow. retargeted: a link. replaced: something of one kind by something of another.
Change = Literal["missing", "added", "changed", "written", "shortened", "rewritten", "retargeted", "replaced"]
# Files that are missing or changed in a way that a running workload rarely causes itself.
LOST: frozenset[Change] = frozenset({"missing", "shortened", "rewritten", "retargeted", "replaced"})
# same: everything was compared. incomplete: nothing differs, and not everything was compared.
Verdict = Literal["same", "different", "incomplete"]
# More lines of a kind than that are counted.
_LINES = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that differs. detail: how."""

    path: str
    what: Change
    detail: str


@dataclass(slots=True)
class VolumeComparison:
    """The result of a comparison. equal: files whose contents are equal. grown: files that may grow, and only did that. listed: files of which only
    names and sizes were compared.
    """

    differences: list[Difference] = field(default_factory=list)
    not_compared: list[Gap] = field(default_factory=list)
    equal: int = 0
    grown: list[str] = field(default_factory=list)
    listed: int = 0

    @property
    def verdict(self) -> Verdict:
        if self.differences:
            return "different"
        return "incomplete" if self.not_compared or self.listed else "same"


def find_head_sizes(before: Manifest, patterns: Sequence[str]) -> dict[str, int]:
    """Return how many first bytes of each append-only file must be unchanged."""
    return {file.path: file.size for file in before.files if file.sha256 and is_append_only(file.path, patterns)}


def compare_manifests(before: Manifest, after: Manifest, patterns: Sequence[str]) -> VolumeComparison:
    """Compare two manifests of a volume. patterns: of append-only files."""
    if before.folders:
        return _compare_folders(before, after)
    comparison = VolumeComparison()
    old, new = ({entry.path: entry for entry in side.entries} for side in (before, after))
    listing = "listing" in (before.how, after.how)
    for path in sorted(old.keys() | new.keys()):
        if path not in new or path not in old:
            _record_one_sided(comparison, path, old.get(path), (*before.gaps, *after.gaps), patterns, new.get(path))
        else:
            _compare_entries(comparison, old[path], new[path], listing, patterns)
    comparison.not_compared += _drop_repeated((*before.gaps, *after.gaps))
    return comparison


def _compare_folders(before: Manifest, after: Manifest) -> VolumeComparison:
    """Compare digests of folders; single files are unknown."""
    comparison = VolumeComparison()
    old = {folder.path: folder for folder in before.folders}
    new = {folder.path: folder for folder in digest_folders(after, before.depth, before.append_only)}
    gaps = (*before.gaps, *after.gaps)
    for path in sorted(old.keys() | new.keys()):
        was, current = old.get(path, _build_empty_digest(path)), new.get(path, _build_empty_digest(path))
        read = bool(was.contents and current.contents)
        if (was.contents == current.contents) if read else (was.names == current.names):
            comparison.equal += was.files if read else 0
            comparison.listed += 0 if read else was.files
        elif not any(gap.has_path(path) or gap.path.startswith(f"{path}/" if path else "") for gap in gaps):
            change: Change = "missing" if current.files < was.files else "added" if path not in old else "changed"
            detail = (
                f"{was.files} files with {was.size} bytes before, {current.files} files with {current.size} bytes now; the "
                "earlier list was too large to keep, so single files are unknown"
            )
            comparison.differences.append(Difference(path or "the root folder", change, detail))
    comparison.not_compared += _drop_repeated(gaps)
    return comparison


def _build_empty_digest(path: str) -> FolderDigest:
    return FolderDigest(path, 0, 0, "", "")


def _record_one_sided(
    comparison: VolumeComparison,
    path: str,
    was: FileEntry | None,
    gaps: Iterable[Gap],
    patterns: Sequence[str],
    current: FileEntry | None,
) -> None:
    if any(gap.has_path(path) for gap in gaps):
        # It may exist in both: one of them could not read it.
        return
    if was is not None:
        comparison.differences.append(Difference(path, "missing", f"the {was.kind} is missing"))
    elif current is not None and current.kind == "file" and is_append_only(path, patterns):
        comparison.grown.append(path)
    elif current is not None:
        comparison.differences.append(Difference(path, "added", f"a new {current.kind}"))


def _compare_entries(
    comparison: VolumeComparison, was: FileEntry, current: FileEntry, listing: bool, patterns: Sequence[str]
) -> None:
    if was.kind != current.kind:
        comparison.differences.append(Difference(was.path, "replaced", f"it was a {was.kind}, is a {current.kind}"))
    elif was.kind == "link":
        if was.target != current.target:
            detail = f"its target was {was.target}, is {current.target}"
            comparison.differences.append(Difference(was.path, "retargeted", detail))
    elif was.kind == "file" and is_append_only(was.path, patterns):
        _compare_append_only(comparison, was, current, listing)
    elif was.kind == "file":
        _compare_files(comparison, was, current, listing)


def _compare_append_only(comparison: VolumeComparison, was: FileEntry, current: FileEntry, listing: bool) -> None:
    if current.size < was.size:
        detail = f"it had {was.size} bytes, has {current.size}, but may only grow"
        comparison.differences.append(Difference(was.path, "shortened", detail))
    elif was.sha256 and current.head:
        if current.head != was.sha256:
            detail = f"its first {was.size} bytes changed, but it may only grow"
            comparison.differences.append(Difference(was.path, "rewritten", detail))
        elif current.size > was.size:
            comparison.grown.append(was.path)
        else:
            comparison.equal += 1
    else:
        _record_unread(comparison, was, current, listing)


def _compare_files(comparison: VolumeComparison, was: FileEntry, current: FileEntry, listing: bool) -> None:
    if was.size != current.size:
        comparison.differences.append(Difference(was.path, "changed", f"it had {was.size} bytes, has {current.size}"))
    elif was.sha256 and current.sha256:
        if was.sha256 != current.sha256:
            detail = f"its {was.size} bytes changed: SHA-256 was {was.sha256}, is {current.sha256}"
            comparison.differences.append(Difference(was.path, "changed", detail))
        else:
            comparison.equal += 1
    elif was.written and current.written and was.written != current.written:
        detail = f"last written at {was.written} before, at {current.written} now; its content was not read"
        comparison.differences.append(Difference(was.path, "written", detail))
    else:
        _record_unread(comparison, was, current, listing)


def _record_unread(comparison: VolumeComparison, was: FileEntry, current: FileEntry, listing: bool) -> None:
    if listing:
        comparison.listed += 1
        return
    when, why = ("before", was.why) if not was.sha256 else ("now", current.why)
    comparison.not_compared.append(Gap(was.path, f"its content was not read {when}: {why or 'not requested'}"))


def _drop_repeated(gaps: Iterable[Gap]) -> Iterator[Gap]:
    """Return one gap for each path."""
    yield from {gap.path: gap for gap in gaps}.values()


def format_report(before: Manifest, after: Manifest, comparison: VolumeComparison) -> str:
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
