# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of folders, for a volume with more files than can be kept by name. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from ..base.grouped import group_values
from .manifest import FileEntry, FolderDigest, Gap, Manifest

# Maximum number of directories, and of paths that could not be read, that are kept.
MOST = 2000


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
