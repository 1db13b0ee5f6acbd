# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The case table of what Windows answers, for simulated hosts, hosts under Wine and real Windows.

A case is one JSON object of a file under ``lab/go/winland/conformance``:

``name``, ``source``   what it shows, and the public record that it was taken from
``setup``              lines that run first; each must succeed
``line``               the line under test, as WinRS gives it to ``cmd.exe /C``
``rc``                 its exit code (0)
``stdout``             its exact standard output; or ``stdout_regex``, ``stderr_regex`` to be found in the streams
``lang``               ``en`` or ``de``
``hosts``              the kinds of host it holds for; all when absent
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parents[1] / "go" / "winland" / "conformance"
LAB_KINDS = ("simulated", "wine")
REAL = "windows"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    line: str
    source: str
    setup: tuple[str, ...] = ()
    rc: int = 0
    stdout: str | None = None
    stdout_regex: str | None = None
    stderr_regex: str | None = None
    lang: str = "en"
    hosts: tuple[str, ...] = (*LAB_KINDS, REAL)

    @classmethod
    def read(cls, raw: dict[str, Any], where: Path) -> Case:
        unknown = set(raw) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"{where}: case {raw.get('name')!r} has unknown keys {sorted(unknown)}")
        lists: dict[str, Any] = {key: tuple(raw[key]) for key in ("setup", "hosts") if key in raw}
        return cls(**(raw | lists))

    def differences(self, rc: int, stdout: str, stderr: str) -> list[str]:
        """Differences between an answer and its case."""
        found = []
        if rc != self.rc:
            found.append(f"exit code {rc}, expected {self.rc}")
        if self.stdout is not None and stdout != self.stdout:
            found.append(f"stdout {stdout!r}, expected {self.stdout!r}")
        for name, text, pattern in (("stdout", stdout, self.stdout_regex), ("stderr", stderr, self.stderr_regex)):
            if pattern is not None and not re.search(pattern, text):
                found.append(f"{name} {text!r}, expected to find {pattern!r}")
        return found


def load(folder: Path = TABLE) -> list[Case]:
    """Every case of a folder; the names are unique."""
    cases = [
        Case.read(raw, path) for path in sorted(folder.glob("*.json")) for raw in json.loads(path.read_text("utf-8"))
    ]
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{folder}: names that occur twice: {sorted(twice)}")
    return cases
