# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of nanoserver for exec:  cmd.exe with echo, type, dir and exit, and tar, over the files of its volumes.

Texts and codes are those of an English Windows. What is not here fails as loudly as a mistyped name does. The container's
own file system is not modelled: only its volumes hold files.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PureWindowsPath

from lab.cluster import windows_dir
from lab.cluster.bsdtar import Archive

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
    encoding: str = "utf-8"

    @property
    def output(self) -> bytes:
        return self.stdout.encode(self.encoding)

    @property
    def errors(self) -> bytes:
        return self.stderr.encode(self.encoding)


def run(words: list[str], mounts: Mapping[str, Path]) -> Result | Archive:
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
    options = [word.lower() for word in itertools.takewhile(lambda word: word.startswith("/"), words[1:])]
    upto = options.index("/c") + 1 if "/c" in options else 0
    line = " ".join(words[1 + upto :])
    if not upto or set(options[:upto]) - {"/c", "/d", "/u"} or _NOT_MODELLED & set(line):
        return Result(1, "", f"The lab does not know what cmd makes of {words[1:]}.\r\n")
    target = _REDIRECTION.search(line)
    # What cmd itself puts out into a pipe is UTF-16 with /u.
    encoding = "utf-16-le" if "/u" in options[:upto] else "utf-8"
    if line.lower().startswith("dir "):
        return _dir(words[2 + upto :], mounts, encoding)
    done = _command(_REDIRECTION.sub("", line).strip(), mounts, encoding)
    return _written(target[2], done, mounts, append=target[1] == ">>") if target else done


def _command(text: str, mounts: Mapping[str, Path], encoding: str) -> Result:
    name, _space, rest = text.partition(" ")
    if name.lower() == "echo":
        return Result(0, f"{rest}\r\n", "", encoding)
    if name.lower() == "exit":
        return Result(int(rest or 0))
    if name.lower() != "type":
        unknown = (
            f"'{name}' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"
        )
        return Result(1, "", unknown, encoding)
    path = locate(rest, mounts)
    if path is None or not path.parent.is_dir():
        return Result(1, "", NO_PATH, encoding)
    return Result(0, path.read_bytes().decode("utf-8", "replace")) if path.is_file() else Result(1, "", NO_FILE)


def _dir(words: list[str], mounts: Mapping[str, Path], encoding: str) -> Result:
    options = [word for word in words if word.startswith("/")]
    if {word.lower() for word in options} != windows_dir.OPTIONS or len(words) != len(options) + 1:
        return Result(1, "", f"The lab does not know what dir makes of {words}.\r\n", encoding)
    shown = words[-1]
    folder = locate(shown, mounts)
    if folder is None or not folder.is_dir():
        return Result(1, "", "File Not Found\r\n", encoding)
    command = windows_dir.Dir(partial(_locate_in, mounts))
    text = "".join(f"{line}\r\n" for line in command.lines(folder, shown))
    wrong = "".join(f"{line}\r\n" for line in command.errors)
    return Result(1 if wrong else 0, text, wrong, encoding)


def _tar(words: list[str], mounts: Mapping[str, Path]) -> Result | Archive:
    if words[:3] != ["-cf", "-", "-C"] or len(words) < 5:
        return Result(1, "", "The lab does not know what tar makes of that.\r\n")
    folder = locate(words[3], mounts)
    if folder is None or not folder.is_dir():
        return Result(1, "", f"tar: could not chdir to '{words[3]}'\n")
    rest, excluded = words[4:], set()
    while rest[0] == "--exclude":
        excluded.add(rest[1])
        rest = rest[2:]
    return Archive(partial(_locate_in, mounts), words[3], rest, frozenset(excluded))


def _locate_in(mounts: Mapping[str, Path], text: str) -> Path | None:
    return locate(text, mounts)


def _written(target: str, done: Result, mounts: Mapping[str, Path], *, append: bool) -> Result:
    path = locate(target, mounts)
    if path is None or not path.parent.is_dir():
        return Result(1, "", NO_PATH)
    try:
        with path.open("a" if append else "w", encoding="utf-8", newline="") as file:
            file.write(done.stdout)
    except OSError:
        return Result(1, "", DENIED)
    return Result(done.code, "", done.stderr, done.encoding)


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
