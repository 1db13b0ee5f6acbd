# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The userland against its case table, on both kinds of host, and the table's sourced texts.

A case is one JSON object of a file under ``lab/go/winland/conformance``:

``name``, ``source``   what it shows, and the public record that it was taken from
``setup``              lines that run first; each must succeed
``line``               the line under test, as WinRS gives it to ``cmd.exe /C``
``rc``                 its exit code (0)
``stdout``             its exact standard output; or ``stdout_regex``, ``stderr_regex`` to be found in the streams
``lang``               ``en`` or ``de``
``hosts``              the kinds of host it holds for; both when absent
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab.builds import GO_MODULES
from lab.windows.agent import Agent
from lab.windows.wine import WineHost

from lab_tests.conftest import MakeHost

TABLE = GO_MODULES / "winland" / "conformance"
KINDS = ("simulated", "wine")


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
    hosts: tuple[str, ...] = KINDS

    @classmethod
    def read(cls, raw: dict[str, Any], where: Path) -> Case:
        unknown = set(raw) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"{where}: case {raw.get('name')!r} has unknown keys {sorted(unknown)}")
        lists: dict[str, Any] = {key: tuple(raw[key]) for key in ("setup", "hosts") if key in raw}
        return cls(**(raw | lists))


def load(folder: Path) -> list[Case]:
    """Every case of a folder; the names are unique."""
    cases = [
        Case.read(raw, path) for path in sorted(folder.glob("*.json")) for raw in json.loads(path.read_text("utf-8"))
    ]
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{folder}: names that occur twice: {sorted(twice)}")
    return cases


CASES = load(TABLE)


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """A simulated host of its own for every case; on Wine one for all, in the case's language."""
    kind, case = request.param
    if kind == "simulated":
        make: MakeHost = request.getfixturevalue("make_host")
        yield make(lang=case.lang)
        return
    hosts: list[WineHost] = request.getfixturevalue("wine_hosts")
    if case.lang != "en":
        hosts[0].set_language(case.lang)
    yield hosts[0].agent
    if case.lang != "en":
        hosts[0].set_language("en")


def parameters() -> Iterator[Any]:
    for case in CASES:
        for kind in KINDS:
            if kind in case.hosts:
                yield pytest.param((kind, case), case, id=f"{case.name}-{kind}")


@pytest.mark.parametrize(("agent", "case"), list(parameters()), indirect=["agent"])
def test_case(agent: Agent, case: Case) -> None:
    for line in case.setup:
        done = agent.run(line)
        assert done.rc == 0, f"setup {line!r}: {done}"
    done = agent.run(case.line)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    told = f"{case.name} ({case.source})\n{case.line}\nstdout: {stdout!r}\nstderr: {stderr!r}"
    assert done.rc == case.rc, told
    if case.stdout is not None:
        assert stdout == case.stdout, told
    if case.stdout_regex is not None:
        assert re.search(case.stdout_regex, stdout), told
    if case.stderr_regex is not None:
        assert re.search(case.stderr_regex, stderr), told


def test_the_table_covers_both_kinds_and_names_its_sources() -> None:
    assert CASES, f"no case under {TABLE}"
    assert {kind for case in CASES for kind in case.hosts} == set(KINDS)
    assert [case.name for case in CASES if not case.source] == []
    silent = [
        c.name for c in CASES if c.stdout is None and c.stdout_regex is None and c.stderr_regex is None and not c.rc
    ]
    assert silent == [], "cases that expect nothing prove nothing"
