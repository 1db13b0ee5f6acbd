# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of folders, for a volume with more files than can be kept by name. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry, Folder, Gap, Manifest

# Maximum number of directories, and of paths that could not be read, that are kept.
MOST = 2000


def grows(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file was declared to grow. A pattern without a slash is about the name, others about the whole path."""
    name = path.rpartition("/")[2].lower()
    return any(fnmatch.fnmatchcase(path.lower() if "/" in one else name, one.lower()) for one in patterns)


def compact(manifest: Manifest, growing: Sequence[str]) -> Manifest:
    """The same with digests of folders in place of its files, of the deepest folders that are not too many."""
    deepest = max((one.path.count("/") for one in manifest.entries), default=0)
    depth = next(depth for depth in range(deepest, -1, -1) if len(_groups(manifest, depth)) <= MOST)
    gaps = manifest.gaps
    if len(gaps) > MOST:
        gaps = (Gap("", f"{len(gaps)} folders could not be listed, too many to keep their names"),)
    return replace(
        manifest, entries=(), gaps=gaps, folders=folders(manifest, depth, growing), depth=depth, growing=tuple(growing)
    )


def folders(manifest: Manifest, depth: int, growing: Sequence[str]) -> tuple[Folder, ...]:
    """Digests of the folders at a depth; what lies deeper counts to them."""
    return tuple(_digest(path, entries, growing) for path, entries in sorted(_groups(manifest, depth).items()))


def _groups(manifest: Manifest, depth: int) -> dict[str, list[FileEntry]]:
    return group_values(("/".join(one.path.split("/")[:-1][:depth]), one) for one in manifest.entries)


def _digest(path: str, entries: Sequence[FileEntry], growing: Sequence[str]) -> Folder:
    names, contents = hashlib.sha256(), hashlib.sha256()
    kept = [
        one for one in sorted(entries, key=lambda one: one.path) if one.kind != "file" or not grows(one.path, growing)
    ]
    for one in kept:
        line = f"{one.path}\0{one.kind}\0{one.size}\0{one.target}\0".encode("utf-8", "surrogatepass")
        names.update(line)
        contents.update(line + one.sha256.encode() + b"\n")
    files = [one for one in kept if one.kind == "file"]
    read = all(one.sha256 for one in files)
    size = sum(one.size for one in files)
    return Folder(path, len(files), size, names.hexdigest(), contents.hexdigest() if read else "")
