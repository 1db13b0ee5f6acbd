# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows, in which nodes may begin. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM = re.compile(r"(?:(?P<days>[A-Za-z,-]+) )?(?P<from>\d\d:\d\d)-(?P<to>\d\d:\d\d)\Z")


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """A daily window, which may end on the next day. days: on which it begins, Monday is 0. zone: of the times."""

    days: frozenset[int]
    opens: time
    closes: time
    zone: ZoneInfo

    def measure_time_left(self, current_time: datetime) -> timedelta | None:
        """Return how long the window stays open, None while it is closed."""
        today = current_time.astimezone(self.zone).date()
        for day in (today, today - timedelta(days=1)):
            if day.weekday() not in self.days:
                continue
            last = day + timedelta(days=1) if self.closes <= self.opens else day
            # Times of one zone are compared as its clocks show them, also in the night in which these change.
            opens, closes = (
                datetime.combine(date, hour, self.zone).astimezone(timezone.utc)
                for date, hour in ((day, self.opens), (last, self.closes))
            )
            if opens <= current_time < closes:
                return closes - current_time
        return None


def parse_window(text: str, zone: str) -> MaintenanceWindow:
    """Read "22:00-04:00", "Sat,Sun 08:00-20:00" or "Mon-Fri 22:00-04:00". ValueError says what was expected."""
    match = _FORM.match(text.strip())
    expected = f"'{text}' is not a maintenance window, expected one such as 'Sat,Sun 22:00-04:00', 'Mon-Fri 20:00-23:00' or '22:00-04:00'"
    if match is None:
        raise ValueError(expected)
    try:
        zone_info = ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"'{zone}' is not a time zone of this machine, expected one such as UTC or Europe/Berlin"
        ) from error
    try:
        opens, closes = time.fromisoformat(match["from"]), time.fromisoformat(match["to"])
        days = frozenset(
            number for part in (match["days"] or "mon-sun").lower().split(",") for number in _parse_days(part)
        )
    except ValueError as error:
        raise ValueError(expected) from error
    return MaintenanceWindow(days, opens, closes, zone_info)


def _parse_days(part: str) -> list[int]:
    first, dash, last = part.partition("-")
    begin = _DAYS.index(first[:3]) if len(first) >= 3 else _DAYS.index("")
    if not dash:
        return [begin]
    end = _DAYS.index(last[:3])
    return [number % 7 for number in range(begin, end + 1 if end >= begin else end + 8)]


def measure_time_left(hours: Sequence[MaintenanceWindow], current_time: datetime) -> timedelta | None:
    """Return how long nodes may still start, None while every window is closed. Without windows there is no limit."""
    if not hours:
        return timedelta.max
    return max(
        (
            time_left
            for time_left in (window.measure_time_left(current_time) for window in hours)
            if time_left is not None
        ),
        default=None,
    )
