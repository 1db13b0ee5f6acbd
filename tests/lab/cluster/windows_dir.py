# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dir of cmd over a volume's directory. Only the options in use;  the texts are those of an English Windows.

Lines: https://devblogs.microsoft.com/oldnewthing/20041227-00/?p=36883 (with a link that it walks into). A folder whose path does
not fit into 260 characters is reported on the error stream and omitted.

What Linux has no word for: a symbolic link to an absolute Windows path is a junction here, any other one a symbolic link.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath

OPTIONS = frozenset({"/a", "/s", "/-c"})
MAX_PATH = 260
Locate = Callable[[str], "Path | None"]


def is_junction(path: Path) -> bool:
    return path.is_symlink() and re.match(r"[A-Za-z]:\\", os.readlink(path)) is not None


def followed(path: Path, shown: PureWindowsPath, locate: Locate) -> Path | None:
    """The directory that an entry is or leads to; None for a file, and for a link that leads nowhere."""
    if not path.is_symlink():
        return path if path.is_dir() else None
    target = locate(str(shown.parent / os.readlink(path).replace("/", "\\")))
    return target if target is not None and target.is_dir() else None


class Dir:
    """One run of it."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self.errors: list[str] = []

    def lines(self, folder: Path, shown: str) -> Iterator[str]:
        yield from (" Volume in drive C has no label.", " Volume Serial Number is 1A2B-3C4D")
        yield from self._folder(folder, PureWindowsPath(shown))
        yield from ("", "     Total Files Listed:", "               0 File(s)              0 bytes")

    def _folder(self, folder: Path, shown: PureWindowsPath) -> Iterator[str]:
        if len(str(shown)) + len("\\*") >= MAX_PATH:
            self.errors.append(f"The directory name {shown} is too long.")
            return
        yield from ("", f" Directory of {shown}", "")
        entries = sorted(folder.iterdir(), key=lambda path: path.name.lower())
        for name in (".", ".."):
            yield f"{_when(folder)}    <DIR>          {name}"
        for entry in entries:
            yield _line(entry, self._is_folder(entry, shown))
        count = sum(entry.is_file() and not entry.is_symlink() for entry in entries)
        yield f"{count:16} File(s) {sum(_size(entry) for entry in entries):14} bytes"
        for entry in entries:
            inside = followed(entry, shown / entry.name, self._locate)
            if inside is not None:
                yield from self._folder(inside, shown / entry.name)

    def _is_folder(self, entry: Path, shown: PureWindowsPath) -> bool:
        return followed(entry, shown / entry.name, self._locate) is not None


def _line(entry: Path, is_folder: bool) -> str:
    if entry.is_symlink():
        word = "<JUNCTION>" if is_junction(entry) else "<SYMLINKD>" if is_folder else "<SYMLINK>"
        return f"{_when(entry)}    {word:15}{entry.name} [{os.readlink(entry)}]"
    if is_folder:
        return f"{_when(entry)}    <DIR>          {entry.name}"
    return f"{_when(entry)} {_size(entry):17} {entry.name}"


def _when(entry: Path) -> str:
    return time.strftime("%m/%d/%Y  %I:%M %p", time.gmtime(entry.lstat().st_mtime))


def _size(entry: Path) -> int:
    return entry.lstat().st_size if entry.is_file() and not entry.is_symlink() else 0
