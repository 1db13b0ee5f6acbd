# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contents of a volume, as a value: entries, and what could not be read. Kept as a file between two comparisons. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base.grouped import group_values
from ..base.stored import read, serialize

SCHEMA = 1
# Known without reading.
EMPTY = hashlib.sha256(b"").hexdigest()
# Windows' own folders on a volume, which change by themselves and are unreadable.
NOT_DATA = ("System Volume Information", "$RECYCLE.BIN")
# Maximum number of directories, and of paths that could not be read, that are kept.
MOST = 2000

Kind = Literal["file", "directory", "link"]
# listing: names, sizes and times alone, of a volume in use. content: what is in the files, of an unused volume.
How = Literal["listing", "content"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, directory or link.

    path: below its root, with slashes. written: when a file was written last, as dir shows it. target: where a link leads.
    sha256: of a file's content, empty when it was not read, and then why. head: SHA-256 of so many first bytes as the file
    had before, for files that grow.
    """

    path: str
    kind: Kind
    size: int = 0
    written: str = ""
    target: str = ""
    sha256: str = ""
    why: str = ""
    head: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A path that was not read, with everything below it, and the reason."""

    path: str
    why: str

    def has_path(self, path: str) -> bool:
        return path == self.path or path.startswith(f"{self.path}/") or not self.path


@dataclass(frozen=True, slots=True)
class FolderDigest:
    """Digests of the files in a folder and below it, in place of their list.

    names: over paths, kinds, sizes and targets. contents: over these and the contents, empty when not all files were read.
    """

    path: str
    files: int
    size: int
    names: str
    contents: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a volume. taken: the time.

    folders: in place of entries where these are too many to keep; depth: of the folders. append_only: patterns of files that the digests
    leave out, since they may grow.
    """

    namespace: str
    claim: str
    volume: str
    how: How
    taken: str
    entries: tuple[FileEntry, ...]
    gaps: tuple[Gap, ...] = ()
    folders: tuple[FolderDigest, ...] = ()
    depth: int = 0
    append_only: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return tuple(entry for entry in self.entries if entry.kind == "file")

    def to_json(self) -> str:
        """Serialize the manifest without empty fields."""
        head, entries = _drop_empty(replace(self, entries=())), [_drop_empty(entry) for entry in self.entries]
        return json.dumps({"schema": SCHEMA, **head, "entries": entries})


def from_json(text: str) -> Manifest:
    """Read what to_json wrote. Raises FormatError."""
    manifest: Manifest = read(Manifest, text, SCHEMA)
    return manifest


def _drop_empty(record: Any) -> dict[str, Any]:
    return {name: value for name, value in serialize(record).items() if value}


def summarize_counts(manifest: Manifest) -> Mapping[str, Any]:
    """Count files and bytes, in total and read."""
    if manifest.folders:
        return {
            "files": sum(folder.files for folder in manifest.folders),
            "bytes": sum(folder.size for folder in manifest.folders),
            "read_files": 0,
            "read_bytes": 0,
        }
    files = manifest.files
    return {
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "read_files": sum(bool(file.sha256) for file in files),
        "read_bytes": sum(file.size for file in files if file.sha256),
    }


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


def is_append_only(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file is declared append-only. A pattern without a slash is about the name, others about the whole path."""
    name = path.rpartition("/")[2].lower()
    return any(fnmatch.fnmatchcase(path.lower() if "/" in pattern else name, pattern.lower()) for pattern in patterns)


def summarize(manifest: Manifest, append_only: Sequence[str]) -> Manifest:
    """Replace the files of a manifest by digests of folders, at the greatest depth with few enough folders."""
    deepest = max((entry.path.count("/") for entry in manifest.entries), default=0)
    depth = next(depth for depth in range(deepest, -1, -1) if len(_group_by_folder(manifest, depth)) <= MOST)
    gaps = manifest.gaps
    if len(gaps) > MOST:
        gaps = (Gap("", f"{len(gaps)} folders could not be listed, too many to keep their names"),)
    return replace(
        manifest,
        entries=(),
        gaps=gaps,
        folders=digest_folders(manifest, depth, append_only),
        depth=depth,
        append_only=tuple(append_only),
    )


def digest_folders(manifest: Manifest, depth: int, append_only: Sequence[str]) -> tuple[FolderDigest, ...]:
    """Compute the digests of the folders at a depth, with everything below."""
    return tuple(
        _digest_folder(path, entries, append_only)
        for path, entries in sorted(_group_by_folder(manifest, depth).items())
    )


def _group_by_folder(manifest: Manifest, depth: int) -> dict[str, list[FileEntry]]:
    return group_values(("/".join(entry.path.split("/")[:-1][:depth]), entry) for entry in manifest.entries)


def _digest_folder(path: str, entries: Sequence[FileEntry], append_only: Sequence[str]) -> FolderDigest:
    names, contents = hashlib.sha256(), hashlib.sha256()
    kept = [
        entry
        for entry in sorted(entries, key=lambda entry: entry.path)
        if entry.kind != "file" or not is_append_only(entry.path, append_only)
    ]
    for entry in kept:
        line = f"{entry.path}\0{entry.kind}\0{entry.size}\0{entry.target}\0".encode("utf-8", "surrogatepass")
        names.update(line)
        contents.update(line + entry.sha256.encode() + b"\n")
    files = [entry for entry in kept if entry.kind == "file"]
    read = all(file.sha256 for file in files)
    size = sum(file.size for file in files)
    return FolderDigest(path, len(files), size, names.hexdigest(), contents.hexdigest() if read else "")
