# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two manifests of a volume, and what was not compared. Unread data is never equal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compact import folders, grows
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry, Folder, Gap, Manifest

# missing, added: a path. changed: a file's content or size. written: a file that was written to, its content unread. shortened,
# rewritten: a file that may only grow. retargeted: a link. replaced: something of one kind by something of another.
What = Literal["missing", "added", "changed", "written", "shortened", "rewritten", "retargeted", "replaced"]
# same: everything was compared. incomplete: nothing differs, and not everything was compared.
# Files that are missing or changed in a way that a running workload rarely causes itself.
LOST: frozenset[What] = frozenset({"missing", "shortened", "rewritten", "retargeted", "replaced"})
Verdict = Literal["same", "different", "incomplete"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that differs. detail: how."""

    path: str
    what: What
    detail: str


@dataclass(slots=True)
class Comparison:
    """equal: files whose contents are equal. grown: files that may grow, and only did that. listed: files of which only
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


def heads(before: Manifest, patterns: Sequence[str]) -> dict[str, int]:
    """Of which files how many first bytes have to be as they were."""
    return {one.path: one.size for one in before.files if one.sha256 and grows(one.path, patterns)}


def compare(before: Manifest, after: Manifest, patterns: Sequence[str]) -> Comparison:
    """Compare what is on a volume with what was. patterns: of files that may grow, by their ends alone."""
    if before.folders:
        return _by_folder(before, after)
    found = Comparison()
    old, new = ({one.path: one for one in side.entries} for side in (before, after))
    listing = "listing" in (before.how, after.how)
    for path in sorted(old.keys() | new.keys()):
        if path not in new or path not in old:
            _one_sided(found, path, old.get(path), (*before.gaps, *after.gaps), patterns, new.get(path))
        else:
            _both(found, old[path], new[path], listing, patterns)
    found.not_compared += _once((*before.gaps, *after.gaps))
    return found


def _by_folder(before: Manifest, after: Manifest) -> Comparison:
    """Compare digests: a folder that differs is named, and none of its files can be."""
    found = Comparison()
    old = {one.path: one for one in before.folders}
    new = {one.path: one for one in folders(after, before.depth, before.growing)}
    gaps = (*before.gaps, *after.gaps)
    for path in sorted(old.keys() | new.keys()):
        was, now = old.get(path, _nothing(path)), new.get(path, _nothing(path))
        read = bool(was.contents and now.contents)
        if (was.contents == now.contents) if read else (was.names == now.names):
            found.equal += was.files if read else 0
            found.listed += 0 if read else was.files
        elif not any(gap.covers(path) or gap.path.startswith(f"{path}/" if path else "") for gap in gaps):
            what: What = "missing" if now.files < was.files else "added" if path not in old else "changed"
            detail = (
                f"{was.files} files with {was.size} bytes before, {now.files} files with {now.size} bytes now; the "
                "earlier list was too large to keep, so single files are unknown"
            )
            found.differences.append(Difference(path or "the root folder", what, detail))
    found.not_compared += _once(gaps)
    return found


def _nothing(path: str) -> Folder:
    return Folder(path, 0, 0, "", "")


def _one_sided(
    found: Comparison,
    path: str,
    was: FileEntry | None,
    gaps: Iterable[Gap],
    patterns: Sequence[str],
    now: FileEntry | None,
) -> None:
    if any(gap.covers(path) for gap in gaps):
        # It may exist in both: one of them could not read it.
        return
    if was is not None:
        found.differences.append(Difference(path, "missing", f"the {was.kind} is missing"))
    elif now is not None and now.kind == "file" and grows(path, patterns):
        found.grown.append(path)
    elif now is not None:
        found.differences.append(Difference(path, "added", f"a new {now.kind}"))


def _both(found: Comparison, was: FileEntry, now: FileEntry, listing: bool, patterns: Sequence[str]) -> None:
    if was.kind != now.kind:
        found.differences.append(Difference(was.path, "replaced", f"it was a {was.kind}, is a {now.kind}"))
    elif was.kind == "link":
        if was.target != now.target:
            detail = f"its target was {was.target}, is {now.target}"
            found.differences.append(Difference(was.path, "retargeted", detail))
    elif was.kind == "file" and grows(was.path, patterns):
        _growing(found, was, now, listing)
    elif was.kind == "file":
        _file(found, was, now, listing)


def _growing(found: Comparison, was: FileEntry, now: FileEntry, listing: bool) -> None:
    if now.size < was.size:
        detail = f"it had {was.size} bytes, has {now.size}, but may only grow"
        found.differences.append(Difference(was.path, "shortened", detail))
    elif was.sha256 and now.head:
        if now.head != was.sha256:
            detail = f"its first {was.size} bytes changed, but it may only grow"
            found.differences.append(Difference(was.path, "rewritten", detail))
        elif now.size > was.size:
            found.grown.append(was.path)
        else:
            found.equal += 1
    else:
        _unread(found, was, now, listing)


def _file(found: Comparison, was: FileEntry, now: FileEntry, listing: bool) -> None:
    if was.size != now.size:
        found.differences.append(Difference(was.path, "changed", f"it had {was.size} bytes, has {now.size}"))
    elif was.sha256 and now.sha256:
        if was.sha256 != now.sha256:
            detail = f"its {was.size} bytes changed: SHA-256 was {was.sha256}, is {now.sha256}"
            found.differences.append(Difference(was.path, "changed", detail))
        else:
            found.equal += 1
    elif was.written and now.written and was.written != now.written:
        detail = f"last written at {was.written} before, at {now.written} now; its content was not read"
        found.differences.append(Difference(was.path, "written", detail))
    else:
        _unread(found, was, now, listing)


def _unread(found: Comparison, was: FileEntry, now: FileEntry, listing: bool) -> None:
    if listing:
        found.listed += 1
        return
    when, why = ("before", was.why) if not was.sha256 else ("now", now.why)
    found.not_compared.append(Gap(was.path, f"its content was not read {when}: {why or 'not requested'}"))


def _once(gaps: Iterable[Gap]) -> Iterator[Gap]:
    """Each path once."""
    yield from {gap.path: gap for gap in gaps}.values()
