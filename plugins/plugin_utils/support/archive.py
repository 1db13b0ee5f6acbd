# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One archive for support, of what was read of cluster and hosts. Pure: no I/O."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ..base.redaction.redactor import Redactor
from .parts import MEBIBYTE, Missing, Part, fit, name_host_folder

# Lines about what is missing; the archive has all of them.
_NAMED = 20


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
