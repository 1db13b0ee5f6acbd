# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of nanoserver as exec sees it: cmd.exe over the files of its volumes, and nothing else.

cmd's own commands that a look at files needs, with the texts and codes of an English Windows. What is not here fails as
loudly as a mistyped name does. The container's own file system is not modelled: only its volumes hold files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

NO_FILE = "The system cannot find the file specified.\r\n"
NO_PATH = "The system cannot find the path specified.\r\n"
DENIED = "Access is denied.\r\n"


class CannotStart(Exception):
    """The program does not exist in the image; no exit code comes of it."""


@dataclass(slots=True)
class Result:
    """What a command line ended with."""

    code: int = 0
    stdout: str = ""
    stderr: str = ""


def run(words: list[str], mounts: Mapping[str, Path], host: str) -> Result:
    """Run the words of an exec in a container whose volumes are mounted at these Windows paths.

    Raises CannotStart.
    """
    name = words[0].lower().rpartition("\\")[2]
    if name not in ("cmd", "cmd.exe"):
        raise CannotStart(
            "error executing command in container: failed to exec in container: failed to start exec: "
            f"hcs::System::CreateProcess {' '.join(words)}: The system cannot find the file specified.: unknown"
        )
    for index, word in enumerate(words[1:], 1):
        if word.lower() == "/c":
            return _Shell(mounts, host).line(_unquoted(" ".join(words[index + 1 :])))
    # An interpreter without a command reads its input, which is at its end.
    return Result(
        0, "Microsoft Windows [Version 10.0.20348.2700]\r\n(c) Microsoft Corporation. All rights reserved.\r\n"
    )


def _unquoted(line: str) -> str:
    """cmd /c takes a first and a last quote away."""
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line


class _Shell:
    def __init__(self, mounts: Mapping[str, Path], host: str) -> None:
        self._mounts = {PureWindowsPath(path): folder for path, folder in mounts.items()}
        self._variables = {"COMPUTERNAME": host.upper(), "OS": "Windows_NT", "USERNAME": "ContainerAdministrator"}

    def line(self, text: str) -> Result:
        expanded = re.sub(r"%([A-Za-z_]+)%", lambda found: self._variables.get(found[1].upper(), found[0]), text)
        done = Result()
        # Words and the operators between them, left to right: cmd binds && and || no tighter than that.
        parts = re.split(r"\s*(&&|\|\||(?<![>&])&)\s*", expanded)
        for operator, part in zip(["&", *parts[1::2]], parts[::2], strict=True):
            if (operator == "&&" and done.code != 0) or (operator == "||" and done.code == 0):
                continue
            step, ended = self._one(part.strip())
            done = Result(step.code, done.stdout + step.stdout, done.stderr + step.stderr)
            if ended:
                break
        return done

    def _one(self, text: str) -> tuple[Result, bool]:
        """One command with its redirections, and whether it ends the interpreter."""
        target, append, quiet = None, False, False
        for found in re.finditer(r"(?<!\S)?([12]?)(>>?)\s*(\"[^\"]+\"|&1|\S+)", text):
            if found[3] == "&1":
                continue
            if found[1] == "2":
                quiet = quiet or found[3].upper() == "NUL"
            else:
                target, append = found[3].strip('"'), found[2] == ">>"
        command = re.sub(r"([12]?)>>?\s*(\"[^\"]+\"|&1|\S+)", "", text).strip(" @")
        name, _space, rest = command.partition(" ")
        if name.lower().startswith("echo."):
            name, rest = "echo", name[5:] + rest
        done, ended = self._command(name.lower(), rest.strip(), command), name.lower() == "exit"
        if quiet:
            done.stderr = ""
        if target is not None and target.upper() != "NUL":
            done = self._write(target, done, append=append)
        elif target is not None:
            done.stdout = ""
        return done, ended

    def _write(self, target: str, done: Result, *, append: bool) -> Result:
        path = self._path(target)
        if path is None or not path.parent.is_dir():
            return Result(1, "", done.stderr + NO_PATH)
        if path.is_dir():
            return Result(1, "", done.stderr + DENIED)
        try:
            with path.open("a" if append else "w", encoding="utf-8", newline="") as file:
                file.write(done.stdout)
        except PermissionError:
            return Result(1, "", done.stderr + DENIED)
        except OSError:
            return Result(1, "", done.stderr + "There is not enough space on the disk.\r\n")
        return Result(done.code, "", done.stderr)

    def _path(self, text: str) -> Path | None:
        """The real file for a Windows path; None outside of the volumes."""
        wanted = PureWindowsPath(text.strip('"'))
        for mount, folder in self._mounts.items():
            if wanted.is_relative_to(mount):
                inside = folder.joinpath(*wanted.relative_to(mount).parts)
                return self._as_written(folder, inside)
        return None

    @staticmethod
    def _as_written(folder: Path, path: Path) -> Path:
        """Windows finds a name whatever its case."""
        found = folder
        for part in path.relative_to(folder).parts:
            same = [entry for entry in found.iterdir() if entry.name.lower() == part.lower()] if found.is_dir() else []
            found = same[0] if same else found / part
        return found

    def _command(self, name: str, rest: str, whole: str) -> Result:
        if name == "echo":
            return Result(0, f"{rest}\r\n")
        if name == "exit":
            code = rest.lower().removeprefix("/b").strip()
            return Result(int(code) if code.lstrip("-").isdigit() else 0)
        if name == "ver":
            return Result(0, "\r\nMicrosoft Windows [Version 10.0.20348.2700]\r\n")
        if name == "hostname":
            return Result(0, f"{self._variables['COMPUTERNAME'].lower()}\r\n")
        if name == "if":
            return self._if(rest)
        if name in ("type", "del", "mkdir", "md", "dir"):
            return self._files(name, rest)
        # The whole first word, as cmd quotes it.
        return Result(
            1,
            "",
            f"'{whole.split(' ')[0]}' is not recognized as an internal or external command,\r\n"
            "operable program or batch file.\r\n",
        )

    def _if(self, rest: str) -> Result:
        match = re.match(r"(not\s+)?exist\s+(\"[^\"]+\"|\S+)\s+(.+)$", rest, re.IGNORECASE)
        if match is None:
            return Result(1, "", "The syntax of the command is incorrect.\r\n")
        path = self._path(match[2])
        there = path is not None and path.exists()
        return self._one(match[3])[0] if there != bool(match[1]) else Result()

    def _files(self, name: str, rest: str) -> Result:
        words = [word for word in re.findall(r"\"[^\"]+\"|\S+", rest) if not word.startswith("/")]
        if not words:
            return Result(1, "", "The syntax of the command is incorrect.\r\n")
        path = self._path(words[0])
        if path is None:
            return Result(1, "", NO_PATH)
        if name in ("mkdir", "md"):
            if path.exists():
                return Result(1, "", f"A subdirectory or file {words[0]} already exists.\r\n")
            path.mkdir(parents=True)
            return Result()
        if not path.parent.is_dir():
            return Result(1, "", NO_PATH)
        if name == "dir":
            if not path.exists():
                return Result(1, "", "File Not Found\r\n")
            listed = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else [path.name]
            return Result(0, "".join(f"{entry}\r\n" for entry in listed))
        if not path.is_file():
            # del says so and leaves the code alone, as cmd does.
            return Result(0, f"Could Not Find {words[0]}\r\n") if name == "del" else Result(1, "", NO_FILE)
        if name == "del":
            path.unlink()
            return Result()
        return Result(0, path.read_bytes().decode("utf-8", "replace"))
