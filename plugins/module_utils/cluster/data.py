# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One digest for everything on a volume, read through a pod by the tar that every Windows image has: constant memory."""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass
from typing import IO, Any, cast

from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError

# What Windows itself keeps on a volume: it changes by itself, and nobody may read it.
_NOT_DATA = ("System Volume Information", "$RECYCLE.BIN")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Digest:
    """SHA-256 over names, kinds and contents; how many entries, and how many bytes of content."""

    sha256: str
    entries: int
    size: int

    def __str__(self) -> str:
        return f"sha256:{self.sha256} ({self.entries} entries, {self.size} bytes)"


def digest(client: Client, namespace: str, pod: str, container: str, folder: str, limit: int, timeout: float) -> Digest:
    """Read everything below a folder. limit: bytes of content that may go through the API server.

    Raises ClusterError, its reason not_comparable when anything could not be read: that is never taken for equal.
    """
    excluded = [word for name in _NOT_DATA for word in ("--exclude", f"./{name}")]
    command = ["tar", "-cf", "-", "-C", folder, *excluded, "."]
    output = client.output(namespace, pod, container, command, timeout)
    try:
        lines, size = _read(output, limit)
        while output.code < 0:
            output.read(_CHUNK)
    except tarfile.TarError as error:
        _failed(output.code, f"{error}; {output.stderr.strip()[:500]}", folder)
    finally:
        output.close()
    if output.code:
        _failed(output.code, output.stderr.strip()[:500], folder)
    total = hashlib.sha256()
    for line in sorted(lines):
        total.update(line)
    return Digest(total.hexdigest(), len(lines), size)


def _failed(code: int, text: str, folder: str) -> None:
    raise ClusterError(
        f"not everything in {folder} could be read (tar ended with {code}): {text}. Unread data is not compared and so "
        "never called equal. Use an image with tar whose user may read all of it, or set compare to none.",
        "not_comparable",
    )


def _read(output: Any, limit: int) -> tuple[list[bytes], int]:
    """A line for each entry, and the size of all contents."""
    lines: list[bytes] = []
    size = 0
    # A stream is read once from its beginning, member by member; tarfile keeps what it has seen, which is not needed.
    with tarfile.open(fileobj=cast("IO[bytes]", output), mode="r|", errors="surrogateescape") as archive:
        while (member := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # kept for random access, which a stream has not
            size += member.size
            if size > limit:
                raise ClusterError(
                    f"the volume holds more than {limit >> 20} MiB, which is the most that is read through the API server; "
                    "raise compare_limit, or set compare to none and compare by other means.",
                    "not_comparable",
                )
            content = hashlib.sha256()
            file = archive.extractfile(member) if member.isreg() else None
            while file is not None and (data := file.read(_CHUNK)):
                content.update(data)
            told = f"{member.name}\0{member.type!r}\0{member.size}\0{member.linkname}\0{content.hexdigest()}\n"
            lines.append(told.encode("utf-8", "surrogateescape"))
    return lines, size
