# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an archive for support: how large each may be, which are left out when all are too large. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ansible import constants

# Most bytes of one file.
PART = 2 << 20
MEBIBYTE = 1 << 20


def gather_folder() -> Path:
    """Where a run keeps the files for its archive: in the directory that Ansible makes for each run, and removes at its end."""
    return Path(vars(constants)["DEFAULT_LOCAL_TMP"]) / "kubewin-gather"


def name_host_folder(host: str) -> str:
    """The folder of a host in the archive, another one for each inventory name."""
    name = quote(host, safe="")
    # Dots alone name another folder.
    return f"hosts/{name if name.strip('.') else name.replace('.', '%2E')}"


@dataclass(frozen=True, slots=True)
class Part:
    """One file. path: in the archive. problem: why it is empty or not whole; empty otherwise."""

    path: str
    text: str
    problem: str = ""

    @property
    def size(self) -> int:
        """Bytes in the archive."""
        return len(self.text.encode("utf-8", "replace"))

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "bytes": self.size, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be gathered."""

    what: str
    why: str

    def line(self) -> str:
        return f"{self.what}: {self.why}"


def cut(part: Part, limit: int = PART) -> Part:
    """A part of at most so many bytes: its end, from the beginning of a line, since the end of a log says what happened last."""
    if part.size <= limit:
        return part
    raw = part.text.encode("utf-8", "replace")
    begin = raw.find(b"\n", len(raw) - limit)
    kept = raw[begin + 1 :].decode("utf-8", "replace") if 0 <= begin < len(raw) - 1 else ""
    shortened = f"only the last {len(kept.encode()) // 1024} of {part.size // 1024} KiB"
    return replace(part, text=kept, problem="; ".join(filter(None, (part.problem, shortened))))


def fit(parts: Iterable[Part], limit: int) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """(those that fit into so many bytes together, those that are left out), each by path. Smaller files come first."""
    kept: list[Part] = []
    left_out: list[Part] = []
    room = limit
    for part in sorted(parts, key=lambda part: (part.size, part.path)):
        if part.size <= room:
            kept.append(part)
            room -= part.size
        else:
            left_out.append(part)
    return _sort_by_path(kept), _sort_by_path(left_out)


def _sort_by_path(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: part.path))
