# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows: over midnight, on days, in a time zone; outside of them there is no time left."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.maintenance_windows import (
    measure_time_left,
    parse_window,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("window", "zone", "now", "minutes"),
    [
        ("22:00-04:00", "UTC", "2026-11-21 23:00", 300),
        ("22:00-04:00", "UTC", "2026-11-22 03:59", 1),
        ("22:00-04:00", "UTC", "2026-11-22 04:00", None),
        # A Saturday's night belongs to the Saturday.
        ("Sat 22:00-04:00", "UTC", "2026-11-22 01:00", 180),
        ("Sat 22:00-04:00", "UTC", "2026-11-22 23:00", None),
        ("Mon-Fri 20:00-23:00", "UTC", "2026-11-20 20:00", 180),
        ("Mon-Fri 20:00-23:00", "UTC", "2026-11-21 20:00", None),
        ("Fri-Mon 20:00-23:00", "UTC", "2026-11-22 22:00", 60),
        ("Sat,Wed 08:00-09:00", "UTC", "2026-11-25 08:30", 30),
        ("20:00-22:00", "Europe/Berlin", "2026-11-21 20:30", 30),
        ("20:00-22:00", "Europe/Berlin", "2026-07-21 18:30", 90),
        ("20:00-22:00", "Europe/Berlin", "2026-07-21 20:30", None),
        # The clocks go from 02:00 to 03:00, and in autumn from 03:00 to 02:00.
        ("22:00-04:00", "Europe/Berlin", "2026-03-29 00:30", 90),
        ("22:00-04:00", "Europe/Berlin", "2026-10-25 00:30", 150),
        ("01:00-02:30", "Europe/Berlin", "2026-10-25 00:15", 15),
        ("01:00-02:30", "Europe/Berlin", "2026-10-25 01:15", None),
    ],
)
def test_how_long_it_stays_open(window: str, zone: str, now: str, minutes: int | None) -> None:
    assert parse_window(window, zone).measure_time_left(at(now)) == (
        None if minutes is None else timedelta(minutes=minutes)
    )


def test_the_longest_of_several_counts_and_without_any_it_is_always_open() -> None:
    windows = [parse_window("20:00-21:00", "UTC"), parse_window("20:00-23:00", "UTC")]
    assert measure_time_left(windows, at("2026-11-21 20:30")) == timedelta(minutes=150)
    assert measure_time_left(windows, at("2026-11-21 19:30")) is None
    assert measure_time_left([], at("2026-11-21 19:30")) == timedelta.max


@pytest.mark.parametrize(
    "text", ["", "20-22", "Sun 25:00-26:00", "Xyz 20:00-21:00", "20:00", "Mo 20:00-21:00", "Mon- 20:00-21:00"]
)
def test_an_invalid_window_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected one such as 'Sat,Sun 22:00-04:00'"):
        parse_window(text, "UTC")


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="'Mars/North' is not a time zone"):
        parse_window("20:00-21:00", "Mars/North")
