# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tar of Windows over a volume's directory: `tar -cf - -C folder [--exclude pattern] name ...`, streamed.

As libarchive's bsdtar does it on Windows: libarchive/archive_read_disk_windows.c and tar/write.c. Junctions are walked into,
symbolic links are not. A file that cannot be opened ends the name that it was found under, and the other names continue. Names on the
command line come through the ANSI code page. Holes of sparse files are described, not sent. What another process holds locked here
(flock) is locked as by a Windows program that shares nothing.
"""

from __future__ import annotations

import fcntl
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from lab.cluster.windows_dir import Locate, followed, is_junction

_CHUNK = 1 << 18
_BLOCK = tarfile.BLOCKSIZE
# Paths of Windows end somewhere, and with them a junction that leads to its own parent.
_LONGEST = 32000


class CannotOpen(Exception):
    """A file is locked."""


class Archive:
    """What tar puts out; code and errors once that is over."""

    def __init__(self, locate: Locate, folder: str, names: list[str], excluded: frozenset[str]) -> None:
        self._locate, self._folder, self._names, self._excluded = locate, folder, names, excluded
        self.code = 0
        self.errors = ""

    def chunks(self) -> Iterator[bytes]:
        for name in self._names:
            spoken = name.encode("cp1252", "replace").decode("cp1252")
            path = self._locate(f"{self._folder}\\{spoken}".replace("/", "\\"))
            if path is None or not (path.is_symlink() or path.exists()):
                self._wrong(f"{spoken}: Couldn't visit directory: No such file or directory")
                continue
            try:
                yield from self._entry(path, spoken)
            except CannotOpen as error:
                self._wrong(f"Couldn't open {error}: Permission denied")
        yield bytes(2 * _BLOCK)
        if self.code:
            self.errors += "tar: Error exit delayed from previous errors.\n"

    def _wrong(self, text: str) -> None:
        self.code = 1
        self.errors += f"tar: {text}\n"

    def _entry(self, path: Path, name: str) -> Iterator[bytes]:
        if name in self._excluded or len(name) > _LONGEST:
            return
        if path.is_symlink() and not is_junction(path):
            info = _info(path, name, tarfile.SYMTYPE)
            info.linkname = os.readlink(path)
            yield _header(info)
            return
        shown = PureWindowsPath(f"{self._folder}\\{name}".replace("/", "\\"))
        inside = followed(path, shown, self._locate)
        if inside is None and path.is_file():
            yield from self._file(path, name)
            return
        yield _header(_info(path, f"{name}/" if name != "." else "./", tarfile.DIRTYPE))
        for one in sorted(inside.iterdir(), key=lambda one: one.name.lower()) if inside is not None else ():
            yield from self._entry(one, f"{name}/{one.name}")

    def _file(self, path: Path, name: str) -> Iterator[bytes]:
        info = _info(path, name, tarfile.REGTYPE)
        size = path.stat().st_size
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CannotOpen(name) from error
            parts = list(_data(file.fileno(), size))
            written = sum(length for _start, length in parts)
            if written < size:
                table = _table(parts, size)
                info.name = f"GNUSparseFile.0/{Path(name).name}"
                info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name,
                                    "GNU.sparse.realsize": str(size)}  # fmt: skip
                info.size = len(table) + written
                yield _header(info)
                yield table
            else:
                info.size = size
                yield _header(info)
            for start, length in parts:
                file.seek(start)
                for done in range(0, length, _CHUNK):
                    wanted = min(_CHUNK, length - done)
                    # A file that became shorter meanwhile is filled up, as its header was sent.
                    yield file.read(wanted).ljust(wanted, b"\0")
            yield bytes(-written % _BLOCK)


def _info(path: Path, name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mtime, info.mode = kind, int(path.lstat().st_mtime), 0o777
    return info


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _data(file: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, length) of what is in a file and no hole."""
    at = 0
    while at < size:
        try:
            start = os.lseek(file, at, os.SEEK_DATA)
        except OSError:
            return
        at = os.lseek(file, start, os.SEEK_HOLE)
        yield start, min(at, size) - start


def _table(parts: list[tuple[int, int]], size: int) -> bytes:
    """Where the data belong, as version 1.0 of GNU's sparse format has it in front of them."""
    entries = [*parts, (size, 0)]
    text = "".join(f"{number}\n" for number in (len(entries), *(one for entry in entries for one in entry))).encode()
    return text + bytes(-len(text) % _BLOCK)
