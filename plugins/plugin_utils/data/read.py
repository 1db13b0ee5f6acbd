# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a volume through a pod: cmd lists it, and tar, which every Windows image has, returns the contents.

Memory is constant whatever a file's size, and what goes through the API server is limited in bytes, rate and time.
"""

from __future__ import annotations

import hashlib
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ..base.waiting import render_progress
from ..kube.client import Client
from ..kube.errors import ClusterError, StreamError
from . import listing
from .listing import DirectoryListing
from .manifest import EMPTY, NOT_DATA, FileEntry, Gap

_CHUNK = 1 << 20
# What tar's --exclude takes for a pattern.
_PATTERN = frozenset("*?[]\\")
# A command line of Windows holds 32767 characters; there is more on it than names.
_WORDS = 20000


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reading: bytes in total, bytes a second, and seconds."""

    total: int
    rate: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Digest:
    """SHA-256 over names, kinds and contents; how many entries, and how many bytes of content."""

    sha256: str
    entries: int
    size: int

    def __str__(self) -> str:
        return f"sha256:{self.sha256} ({self.entries} {'entry' if self.entries == 1 else 'entries'}, {self.size} bytes)"


@dataclass(frozen=True, slots=True)
class ContainerFolder:
    """A folder in a container."""

    namespace: str
    pod: str
    container: str
    folder: str


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of an archive. path: below the folder. type, size, linkname: tar's. head: SHA-256 of its first bytes."""

    path: str
    type: bytes
    size: int
    linkname: str
    sha256: str
    head: str


@dataclass(frozen=True, slots=True)
class _End:
    """How an archive ended. why: the error if it is incomplete. final: no other one would end otherwise."""

    whole: bool
    why: str = ""
    final: bool = False


class _Over(Exception):
    """A limit is reached."""


def read_digest(
    client: Client, namespace: str, pod: str, container: str, folder: str, limit: int, timeout: float
) -> Digest:
    """Read everything below a folder. limit: bytes of content that may go through the API server.

    Raises ClusterError, its reason not_comparable when anything could not be read: that is never taken for equal.
    """
    output = client.open_output(namespace, pod, container, _tar(folder, (".",)), timeout)
    lines: list[bytes] = []
    size = 0
    try:
        for member in _read_members(output, {}):
            size += member.size
            if size > limit:
                raise ClusterError(
                    f"the volume has more than {limit >> 20} MiB, the limit for reading through the API server. "
                    "Raise kubewin_convert_compare_limit, or set it to 0 to compare nothing.",
                    "not_comparable",
                )
            described = f"{member.path}\0{member.type!r}\0{member.size}\0{member.linkname}\0{member.sha256}\n"
            lines.append(described.encode("utf-8", "surrogateescape"))
    except tarfile.TarError as error:
        _raise_unreadable(output.code, f"{error}; {output.stderr[:500]}", folder)
    finally:
        output.close()
    if output.code:
        _raise_unreadable(output.code, output.stderr[:500], folder)
    total = hashlib.sha256()
    for line in sorted(lines):
        total.update(line)
    return Digest(total.hexdigest(), len(lines), size)


def _raise_unreadable(code: int, text: str, folder: str) -> None:
    raise ClusterError(
        f"not everything in {folder} could be read (tar ended with {code}): {text}. Use an image with tar whose user "
        "may read all of it, or set kubewin_convert_compare_limit to 0 to compare nothing.",
        "not_comparable",
    )


class Reader:
    """Reads one folder within its limits. image: of its container, for messages."""

    def __init__(
        self, client: Client, location: ContainerFolder, limits: ReadLimits, image: str, *,
        clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._client, self._location, self._limits, self._image = client, location, limits, image
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self._count = 0
        self._files: frozenset[str] = frozenset()
        self._have: Mapping[str, _Member] = {}

    @property
    def standing(self) -> str:
        """The progress, as text; read by another thread."""
        files, have = self._files, self._have
        count = f"{sum(path in have for path in files)} of {len(files)} files read, " if files else ""
        taken = render_progress(self._clock() - self._began, self._limits.seconds)
        return f"{count}{self._count / (1 << 20):.1f} MiB came through the API server ({taken})"

    def read_listing(self) -> DirectoryListing:
        """List everything, without contents. Raises ClusterError not_comparable when cmd does not list the folder."""
        answer, code, errors = b"", -1, ""
        output = self._run(listing.build_command(self._location.folder))
        try:
            while data := self._read(output, _CHUNK):
                answer += data
            code, errors = output.code, output.stderr
        except _Over as over:
            raise ClusterError(f"listing {self._location.folder} was aborted: {over}", "not_comparable") from over
        finally:
            output.close()
        listed = listing.parse_listing(answer.decode("utf-16-le", "surrogatepass"), self._location.folder)
        if listed is None:
            message = errors.replace("\0", "").strip()[:300]
            raise ClusterError(
                f"cmd in pod {self._location.namespace}/{self._location.pod} cannot list {self._location.folder} (exit code "
                f"{code}): {message}. Use a container that mounts the volume and whose user may read it.",
                "not_comparable",
            )
        return listed

    def read_contents(self, listed: DirectoryListing, heads: Mapping[str, int]) -> DirectoryListing:
        """Add the contents of the files, until a limit is reached. heads: by file, the number of first bytes to read as well."""
        files = {entry.path: entry for entry in listed.entries if entry.kind == "file"}
        links = frozenset(entry.path for entry in listed.entries if entry.kind == "link")
        read: dict[str, _Member] = {}
        self._files, self._have = frozenset(files), read
        reasons: dict[str, str] = {}
        end = self._archive((".",), links, heads, read)
        # tar reads paths of any length.
        unfilled = (gap for gap in listed.gaps if not self._fill_gap(gap, end, links, heads, read))
        gaps = () if end.whole else tuple(unfilled)
        unread = [path for path in sorted(files) if path not in read and files[path].size]
        for group in split_command_line(unread):
            # One file that cannot be opened ends the folder it was found through, so each is named for itself.
            spoken = [path for path in group if path.isascii()]
            reasons.update(dict.fromkeys(group, "tar ended before it, and its name cannot be passed to tar on Windows"))
            if not end.final and spoken:
                end = self._archive(tuple(f"./{path}" for path in spoken), links, heads, read)
            reason = end.why if end.final else f"it is locked, or the user of the pod may not read it: {end.why}"
            reasons.update(dict.fromkeys(group if end.final else spoken, reason))
        entries = [_fill_entry(entry, read.get(entry.path), reasons.get(entry.path, "")) for entry in listed.entries]
        listed_paths = {entry.path for entry in listed.entries}
        entries += [_to_entry(member) for path, member in read.items() if path and path not in listed_paths]
        return DirectoryListing(tuple(entries), gaps)

    def _fill_gap(
        self, gap: Gap, end: _End, links: frozenset[str], heads: Mapping[str, int], read: dict[str, _Member]
    ) -> bool:
        """Read a folder that cmd could not list; return whether tar read all of it."""
        return not end.final and gap.path.isascii() and self._archive((f"./{gap.path}",), links, heads, read).whole

    def _archive(
        self, names: Sequence[str], links: frozenset[str], heads: Mapping[str, int], read: dict[str, _Member]
    ) -> _End:
        """Read these names with tar."""
        output = None
        try:
            output = self._run(_tar(self._location.folder, names, links))
            for member in _read_members(_Counted(self, output), heads):
                if not any(member.path == link or member.path.startswith(f"{link}/") for link in links):
                    read[member.path] = _resolve_link(member, read)
            return _End(output.code == 0, output.stderr[:300])
        except _Over as over:
            return _End(whole=False, why=str(over), final=True)
        except tarfile.TarError as error:
            return _End(whole=False, why=(output.stderr[:300] if output is not None else "") or str(error))
        except StreamError as error:
            if error.reason != "timeout":
                raise
            return _End(whole=False, why=self._late, final=True)
        except ClusterError as error:
            if error.reason != "exec_failed":
                raise
            return _End(whole=False, why=f"tar could not be started in image {self._image}: {error}", final=True)
        finally:
            if output is not None:
                output.close()

    @property
    def _late(self) -> str:
        return f"the {self._limits.seconds:g} s for reading were exceeded"

    def _run(self, command: Sequence[str]) -> Any:
        seconds = self._limits.seconds - (self._clock() - self._began)
        if seconds <= 0:
            raise _Over(self._late)
        location = self._location
        return self._client.open_output(location.namespace, location.pod, location.container, command, seconds)

    def _read(self, output: Any, size: int) -> bytes:
        data: bytes = output.read(size)
        self._count += len(data)
        if self._count > self._limits.total + _CHUNK:
            raise _Over(f"more than {self._limits.total} bytes would have passed through the API server")
        pause = self._count / self._limits.rate - (self._clock() - self._began)
        if pause > 0:
            self._sleep(pause)
        return data


class _Counted:
    """An output as tarfile reads it, within the limits of a Reader."""

    def __init__(self, reader: Reader, output: Any) -> None:
        self._reader, self._output = reader, output

    def read(self, size: int) -> bytes:
        return self._reader._read(self._output, size)

    @property
    def code(self) -> int:
        return int(self._output.code)


def split_command_line(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Split the paths into groups that fit on a command line."""
    group: list[str] = []
    length = 0
    for path in paths:
        if group and length + len(path) > _WORDS:
            yield tuple(group)
            group, length = [], 0
        group.append(path)
        length += len(path) + 8
    if group:
        yield tuple(group)


def _tar(folder: str, names: Sequence[str], links: frozenset[str] = frozenset()) -> list[str]:
    # It follows junctions. Paths that cannot be named here are omitted from its output.
    excluded_paths = [*NOT_DATA, *sorted(link for link in links if link.isascii() and not _PATTERN & set(link))]
    excluded = [word for path in excluded_paths for word in ("--exclude", f"./{path}")] if list(names) == ["."] else []
    return ["tar", "-cf", "-", "-C", folder, *excluded, *names]


def _read_members(output: Any, heads: Mapping[str, int]) -> Iterator[_Member]:
    """Yield each member of an archive with its content's SHA-256, until the command has ended."""
    # A stream is read once from its beginning, member by member; tarfile keeps every member, which is not needed.
    with tarfile.open(fileobj=cast("Any", output), mode="r|", errors="surrogateescape", bufsize=_CHUNK) as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # kept for random access, which a stream has not
            path = info.name.removeprefix("./").rstrip("/")
            content, head = hashlib.sha256(), hashlib.sha256()
            head_size = heads.get(path, 0)
            file = archive.extractfile(info) if info.isreg() else None
            while file is not None and (data := file.read(_CHUNK)):
                content.update(data)
                if head_size:
                    head.update(data[:head_size])
                    head_size -= len(data[:head_size])
            first = head.hexdigest() if path in heads else ""
            yield _Member(path, info.type, info.size, info.linkname, content.hexdigest(), first)
    while output.code < 0:
        output.read(_CHUNK)


def _resolve_link(member: _Member, read: Mapping[str, _Member]) -> _Member:
    """Return a hard link with the content of the file that it names."""
    first = read.get(member.linkname.removeprefix("./")) if member.type == tarfile.LNKTYPE else None
    return member if first is None else replace(first, path=member.path, head="")


def _fill_entry(listed: FileEntry, member: _Member | None, why: str) -> FileEntry:
    if listed.kind != "file":
        return listed
    if member is not None:
        return replace(listed, size=member.size, sha256=member.sha256, head=member.head)
    return replace(listed, why=why) if listed.size else replace(listed, sha256=EMPTY, head=EMPTY)


def _to_entry(member: _Member) -> FileEntry:
    """Return the entry of a path that cmd did not list."""
    if member.type == tarfile.DIRTYPE:
        return FileEntry(member.path, "directory")
    if member.type == tarfile.SYMTYPE:
        return FileEntry(member.path, "link", target=member.linkname)
    return FileEntry(member.path, "file", size=member.size, sha256=member.sha256, head=member.head)
