# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions and output of the command line; other tests run a lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lab import cli, launch
from lab.builds import Reporter
from lab.spec import Spec
from lab.state import LabError, LabState
from lab.windows.wine import WineMissing

Started = list[Spec]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Specs of the labs that would be started; Wine works."""
    monkeypatch.setenv("KUBEWIN_LAB_ROOT", str(tmp_path))
    specs: Started = []

    def up(spec: Spec, notify: Callable[[str], None]) -> LabState:
        specs.append(spec)
        return LabState(
            spec.name,
            spec.directory,
            "https://x",
            "",
            "",
            spec.windows,
            spec.requested,
            "now",
            kubeconfigs={"admin": "/admin.yaml"},
        )

    def nothing(report: Reporter) -> None:
        return

    def binaries(windows: str, report: Reporter | None = None) -> dict[str, str]:
        return {}

    monkeypatch.setattr(launch, "up", up)
    monkeypatch.setattr(launch, "binaries", binaries)
    monkeypatch.setattr(launch, "prepare_wine", nothing)
    return specs


def without_wine(report: Reporter) -> None:
    raise WineMissing("Wine was not found: apt install wine64")


def test_auto_takes_wine_where_it_works(started: Started) -> None:
    assert cli.main(["up"]) == 0
    assert [(spec.windows, spec.nodes) for spec in started] == [("wine", 3)]


def test_auto_without_wine_is_simulated_and_reported_first(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "prepare_wine", without_wine)
    assert cli.main(["up"]) == 0
    assert [spec.windows for spec in started] == ["simulated"]
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "Windows hosts are SIMULATED, not run by Wine: Wine was not found: apt install wine64"


def test_requested_wine_is_not_replaced_by_simulation(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "prepare_wine", without_wine)
    assert cli.main(["up", "--windows", "wine"]) == 1
    assert started == []
    assert "apt install wine64" in capsys.readouterr().err


def test_errors_are_one_line_on_stderr(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inventory", "--name", "absent"]) == 1
    assert capsys.readouterr().err.startswith("lab: lab 'absent' is not up")


@pytest.mark.parametrize("words", [["up", "--nodes", "-1"], ["up", "--name", "Big"], ["node", "remove"]])
def test_bad_input_is_refused_before_anything_starts(started: Started, words: list[str]) -> None:
    assert cli.main(words) == 1
    assert started == []


def test_failed_start_is_an_error(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(spec: Spec, notify: Callable[[str], None]) -> LabState:
        raise LabError("etcd ended with 1")

    monkeypatch.setattr(launch, "up", fail)
    assert cli.main(["up"]) == 1
    assert capsys.readouterr().err == "lab: etcd ended with 1\n"
