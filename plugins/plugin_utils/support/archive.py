# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One archive for support, of what was read of cluster and hosts, and its files. Pure: no I/O."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ansible import constants

from ..base.redaction.redactor import Redactor

# Most bytes of one file.
PART = 2 << 20
MEBIBYTE = 1 << 20
# Lines about what is missing; the archive has all of them.
_NAMED = 20


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


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of an archive, what is missing in it, and when it was made, in UTC."""

    files: tuple[Part, ...]
    missing: tuple[Missing, ...]
    made_at: datetime

    @property
    def name(self) -> str:
        """Its name without suffix, which is that of its directory too."""
        return f"kubewin-gather-{self.made_at.strftime('%Y%m%dT%H%M%SZ')}"

    def pack(self) -> bytes:
        """A compressed tar file: one directory, files for their owner alone."""
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for part in self.files:
                entry = tarfile.TarInfo(f"{self.name}/{part.path}")
                content = part.text.encode("utf-8", "replace")
                entry.size, entry.mode, entry.mtime = len(content), 0o600, int(self.made_at.timestamp())
                archive.addfile(entry, io.BytesIO(content))
        return raw.getvalue()


def build_archive(
    cluster_name: str, parts: Sequence[Part], missing: Sequence[Missing], hosts: Sequence[Mapping[str, Any]],
    limit_mib: int, made_at: datetime, redactor: Redactor,
) -> Archive:  # fmt: skip
    """The archive with its summary. hosts: of the option hosts, redacted. limit_mib: of all parts, uncompressed."""
    kept, left_out = fit(parts, limit_mib * MEBIBYTE)
    absent = (
        *missing,
        *list_unread(hosts),
        *(Missing(part.path, part.problem) for part in kept if part.problem),
        *(Missing(part.path, f"left out: the archive is limited to {limit_mib} MiB.") for part in left_out),
    )
    summary = {
        "cluster": cluster_name,
        "taken_at": made_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "hosts": hosts,
        "missing": [asdict(gap) for gap in absent],
        "files": [part.as_dict() for part in kept],
    }
    text = redactor.hide_known_secrets(json.dumps(summary, indent=1))
    return Archive((Part("summary.json", text), *kept), absent, made_at)


def list_unread(hosts: Sequence[Mapping[str, Any]]) -> Iterator[Missing]:
    """Hosts and files of hosts that could not be read."""
    for host in hosts:
        if host.get("problem"):
            yield Missing(f"host {host['name']}", str(host["problem"]))
        for part in host.get("parts") or ():
            if part.get("problem"):
                yield Missing(f"{name_host_folder(str(host['name']))}/{part['path']}", str(part["problem"]))


def explain(files: Sequence[Part], missing: Sequence[Missing], hosts: Sequence[str], path: str | None) -> list[str]:
    """The lines of the closing summary. path: the archive, None in check mode."""
    size = sum(part.size for part in files) / MEBIBYTE
    verb = "Gathered" if path else "Would gather"
    host_gaps = {f"host {name}" for name in hosts}
    unread = sum(gap.what in host_gaps for gap in missing)
    count = f"{len(hosts) - unread} of {len(hosts)}" if unread else str(len(hosts))
    sources = [f"{count} Windows host{'' if len(hosts) == 1 else 's'}"] if hosts else []
    sources += [] if any(gap.what == "cluster" for gap in missing) else ["the cluster"]
    lines = [f"{verb} {len(files)} files ({size:.1f} MiB) of {' and '.join(sources) or 'nothing'}."]
    if missing:
        lines += ["Missing:", *(f"  {gap.line()}" for gap in missing[:_NAMED])]
        lines += [f"  and {len(missing) - _NAMED} more, see summary.json"] if len(missing) > _NAMED else []
    lines.append(
        "Secrets are replaced. Names of hosts, namespaces and workloads are not: read the archive before you send it."
    )
    if path:
        lines += [f"Archive: {path}", "Unpack it and begin with summary.json."]
    return lines
