# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses what cmd's dir prints of a folder and everything below it, in any language. Pure.

The lines of dir: a date and a time of the locale, then either a size or a word in angle brackets, then the name; for links
their target in square brackets. A folder's lines follow one that ends with its path. Examples:
https://devblogs.microsoft.com/oldnewthing/20041227-00/?p=36883 and
https://learn.microsoft.com/windows-server/administration/windows-commands/dir
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .manifest import NOT_DATA, FileEntry, Gap

# cmd interprets these in a path, and not all can be quoted.
UNSPEAKABLE = frozenset('%^&|<>"!')
_LINE = re.compile(r"(?P<written>\d[^<>]*?) +(?:(?P<size>\d{1,19}) |<(?P<word>[^<>]+)> )(?P<name>.+)")
# A word in brackets takes so many characters, whatever it is.
_WIDTH = 15
_LINK = re.compile(r"(?P<name>.+) \[(?P<target>.*)\]")


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The entries, and directories that dir could not read."""

    entries: tuple[FileEntry, ...]
    gaps: tuple[Gap, ...]


def build_command(folder: str) -> tuple[str, ...]:
    """Build the command that lists everything below a folder, in UTF-16 whatever the container's code page is."""
    return ("cmd", "/u", "/d", "/c", "dir", "/a", "/s", "/-c", folder)


def parse_listing(text: str, folder: str) -> DirectoryListing | None:
    """Parse what dir printed of this directory; None if it printed nothing of it."""
    entries: dict[str, FileEntry] = {}
    observed: set[str] = set()
    outside: set[str] = set()
    directory: str | None = None
    for line in re.split(r"\r?\n", text):
        header = _parse_header(line, folder)
        if header is not None:
            # Links may be walked into: what is behind them is not on this path.
            directory = None if _is_below(header, outside) else header
            if directory is not None:
                observed.add(directory)
        elif directory is not None and (match := _LINE.fullmatch(line)) is not None:
            entry = _parse_entry(directory, match)
            if entry is None:
                continue
            if not directory and entry.path in NOT_DATA:
                outside.add(entry.path)
                continue
            entries[entry.path] = entry
            if entry.kind == "link":
                outside.add(entry.path)
    if "" not in observed:
        return None
    gaps = (
        Gap(path, "cmd could not list this folder: access is denied, or its path is longer than 260 characters")
        for path, entry in entries.items()
        if entry.kind == "directory" and path not in observed
    )
    return DirectoryListing(tuple(entries.values()), tuple(gaps))


def _parse_header(line: str, folder: str) -> str | None:
    """Parse the line above the entries of a folder; None for any other line."""
    at = line.lower().find(f" {folder.rstrip(chr(92)).lower()}")
    if not line.startswith(" ") or at < 0:
        return None
    subpath = line[at + 1 + len(folder.rstrip("\\")) :]
    return subpath.strip("\\").replace("\\", "/") if not subpath or subpath.startswith("\\") else None


def _parse_entry(directory: str, match: re.Match[str]) -> FileEntry | None:
    name, word, written = match["name"], match["word"], match["written"]
    if word is not None:
        name = name[max(0, _WIDTH - len(f"<{word}> ")) :]
    if name in (".", ".."):
        return None
    prefix = f"{directory}/" if directory else ""
    if word is None:
        return FileEntry(f"{prefix}{name}", "file", size=int(match["size"]), written=written)
    link = _LINK.fullmatch(name) if word.upper() != "DIR" else None
    if link is not None:
        return FileEntry(f"{prefix}{link['name']}", "link", target=link["target"])
    return FileEntry(f"{prefix}{name}", "directory")


def _is_below(path: str, folders: set[str]) -> bool:
    while path and path not in folders:
        path = path.rpartition("/")[0]
    return bool(path)
