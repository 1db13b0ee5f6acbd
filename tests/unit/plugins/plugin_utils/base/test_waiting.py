# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress messages of a wait."""

from __future__ import annotations

import threading
from itertools import repeat

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import (
    WaitCondition,
    Waits,
    render_progress,
    report_progress,
    spell,
)


@pytest.mark.parametrize(
    ("seconds", "messages"),
    [(0, "0 s"), (-0.5, "0 s"), (45.9, "45 s"), (60, "1 min"), (80, "1 min 20 s"), (7500, "2 h 5 min"), (3600, "1 h")],
)
def test_a_duration_is_readable(seconds: float, messages: str) -> None:
    assert spell(seconds) == messages


def test_the_waited_time_is_reported_with_the_limit() -> None:
    assert render_progress(80, 600) == "1 min 20 s of 10 min"


def reported(*observations: tuple[float, tuple[WaitCondition, ...]]) -> list[tuple[float, str]]:
    """(when, line) of the messages of observations at these times."""
    now = 0.0
    messages: list[tuple[float, str]] = []
    waits = Waits(lambda line: messages.append((now, line)), lambda: now)
    for when, awaited in observations:
        now = when
        waits.report(*awaited)
    return messages


def test_a_wait_is_reported_at_once_and_then_at_growing_intervals() -> None:
    messages = reported(*((now, (WaitCondition("win-1: not Ready", now, 600),)) for now in range(200)))
    assert [when for when, dummy in messages] == [0, 10, 30, 60, 120, 180]
    assert messages[0][1] == "win-1: not Ready (0 s of 10 min)"
    assert messages[-2][1] == "win-1: not Ready (2 min of 10 min)"


def test_only_a_new_wait_is_reported_at_once() -> None:
    one, other = WaitCondition("win-1: not Ready", 5, 60), WaitCondition("win-2: WMCO upgrades it", 0, 60)
    assert reported((0, (one,)), (5, (one, other))) == [(0, str(one)), (5, str(other))]


def test_a_condition_that_is_awaited_again_is_reported_as_new() -> None:
    one, other = WaitCondition("a", 0, 60), WaitCondition("b", 0, 60)
    assert [line for dummy, line in reported((0, (one,)), (1, (other,)), (2, (one,)))] == [
        str(one),
        str(other),
        str(one),
    ]


def test_a_last_read_is_reported_without_a_time() -> None:
    assert str(WaitCondition("OpenShift is 4.13.1", 0, 0)) == "OpenShift is 4.13.1"


def test_progress_is_reported_repeatedly_until_the_end() -> None:
    messages: list[str] = []
    twice = threading.Event()

    def notify(line: str) -> None:
        messages.append(line)
        if len(messages) == 2:
            twice.set()

    with report_progress(notify, lambda: f"{len(messages)} files", lambda: repeat(0.01)):
        # Nothing here: another message was reported meanwhile.
        assert twice.wait(120)
    assert messages[:2] == ["0 files", "1 files"]


def test_a_short_wait_reports_nothing() -> None:
    messages: list[str] = []
    with report_progress(messages.append, lambda: "never"):
        pass
    assert messages == []


def test_an_error_while_reporting_is_raised() -> None:
    with pytest.raises(ValueError, match="no"), report_progress(lambda _line: None, lambda: ""):
        raise ValueError("no")
