# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The userland against its case table, on both kinds of host, and the table's sourced texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lab.windows.agent import Agent
from lab.windows.conformance import LAB_KINDS, REAL, TABLE, Case, load
from lab.windows.wine import WineHost

from lab_tests.conftest import MakeHost

CASES = load()


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


INVALID_HANDLE = 6


def parameters() -> Iterator[Any]:
    for case in CASES:
        for kind in LAB_KINDS:
            if kind in case.hosts:
                yield pytest.param((kind, case), case, id=f"{case.name}-{kind}")


@pytest.mark.parametrize(("agent", "case"), list(parameters()), indirect=["agent"])
def test_case(agent: Agent, case: Case) -> None:
    for line in case.setup:
        done = agent.run(line)
        if done.rc == INVALID_HANDLE:
            # Of Wine's service manager on a busy machine, now and then. A setup line is no answer under test.
            done = agent.run(line)
        assert done.rc == 0, f"setup {line!r}: {done}"
    done = agent.run(case.line)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    reported = f"{case.name} ({case.source})\n{case.line}\nstdout: {stdout!r}\nstderr: {stderr!r}"
    assert case.differences(done.rc, stdout, stderr) == [], reported


def test_the_table_covers_all_kinds_and_names_its_sources() -> None:
    assert CASES, f"no case under {TABLE}"
    assert {kind for case in CASES for kind in case.hosts} == {*LAB_KINDS, REAL}
    assert [case.name for case in CASES if not case.source] == []
    silent = [
        c.name for c in CASES if c.stdout is None and c.stdout_regex is None and c.stderr_regex is None and not c.rc
    ]
    assert silent == [], "cases that expect nothing prove nothing"
