# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of nanoserver as exec sees it: cmd.exe with echo, type and exit, and tar, over the files of its volumes.

Texts and codes are those of an English Windows. What is not here fails as loudly as a mistyped name does. The container's
own file system is not modelled: only its volumes hold files.
"""

from __future__ import annotations

import io
import itertools
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

NO_FILE = "The system cannot find the file specified.\r\n"
NO_PATH = "The system cannot find the path specified.\r\n"
DENIED = "Access is denied.\r\n"
# A digit that stands alone before the sign names a stream; only the output's is modelled.
_REDIRECTION = re.compile(r"(?:(?<!\S)1)?(>>?)\s*(\S+)")
_NOT_MODELLED = frozenset('&|<%^"')


class CannotStart(Exception):
    """The program does not exist in the image; no exit code comes of it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command line ended with."""

    code: int = 0
    stdout: str = ""
    stderr: str = ""
    raw: bytes = b""

    @property
    def output(self) -> bytes:
        return self.raw or self.stdout.encode()


def run(words: list[str], mounts: Mapping[str, Path]) -> Result:
    """Run the words of an exec in a container whose volumes are mounted at these Windows paths.

    Raises CannotStart.
    """
    if words[0].lower() in ("tar", "tar.exe"):
        return _tar(words[1:], mounts)
    if words[0].lower() not in ("cmd", "cmd.exe"):
        raise CannotStart(
            "error executing command in container: failed to exec in container: failed to start exec: "
            f"hcs::System::CreateProcess {' '.join(words)}: The system cannot find the file specified.: unknown"
        )
    line = " ".join(words[2:])
    if [word.lower() for word in words[1:2]] != ["/c"] or _NOT_MODELLED & set(line):
        return Result(1, "", f"The lab does not know what cmd makes of {words[1:]}.\r\n")
    target = _REDIRECTION.search(line)
    done = _command(_REDIRECTION.sub("", line).strip(), mounts)
    return _written(target[2], done, mounts, append=target[1] == ">>") if target else done


def _command(text: str, mounts: Mapping[str, Path]) -> Result:
    name, _space, rest = text.partition(" ")
    if name.lower() == "echo":
        return Result(0, f"{rest}\r\n")
    if name.lower() == "exit":
        return Result(int(rest or 0))
    if name.lower() != "type":
        unknown = (
            f"'{name}' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"
        )
        return Result(1, "", unknown)
    path = locate(rest, mounts)
    if path is None or not path.parent.is_dir():
        return Result(1, "", NO_PATH)
    return Result(0, path.read_bytes().decode("utf-8", "replace")) if path.is_file() else Result(1, "", NO_FILE)


def _tar(words: list[str], mounts: Mapping[str, Path]) -> Result:
    """`tar -cf - -C folder [--exclude pattern] .`, as Windows' bsdtar does it."""
    if words[:3] != ["-cf", "-", "-C"] or words[-1] != ".":
        return Result(1, "", "The lab does not know what tar makes of that.\r\n")
    folder = locate(words[3], mounts)
    if folder is None or not folder.is_dir():
        return Result(1, "", f"tar: could not chdir to '{words[3]}'\n")
    excluded = {word for before, word in itertools.pairwise(words[4:]) if before == "--exclude"}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, arcname=".", filter=lambda item: None if item.name in excluded else item)
    return Result(raw=made.getvalue())


def _written(target: str, done: Result, mounts: Mapping[str, Path], *, append: bool) -> Result:
    path = locate(target, mounts)
    if path is None or not path.parent.is_dir():
        return Result(1, "", NO_PATH)
    try:
        with path.open("a" if append else "w", encoding="utf-8", newline="") as file:
            file.write(done.stdout)
    except OSError:
        return Result(1, "", DENIED)
    return Result(done.code, "", done.stderr)


def locate(text: str, mounts: Mapping[str, Path]) -> Path | None:
    """The real file for a Windows path, whatever its case; None outside of the volumes."""
    wanted = PureWindowsPath(text)
    for mount, folder in mounts.items():
        if wanted.is_relative_to(mount):
            found = folder
            for part in wanted.relative_to(mount).parts:
                same = (
                    [entry for entry in found.iterdir() if entry.name.lower() == part.lower()] if found.is_dir() else []
                )
                found = same[0] if same else found / part
            return found
    return None
