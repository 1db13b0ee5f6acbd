# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of waiting: for what, for how long, the limit; throttled to a readable rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat


def spell(seconds: float) -> str:
    """A duration as text: 45 s, 1 min 20 s, 2 h 5 min."""
    whole = max(0, int(seconds))
    parts = [(whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60 if whole < 3600 else 0, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def render_progress(waited: float, limit: float) -> str:
    """Such as 1 min 20 s of 10 min."""
    return f"{spell(waited)} of {spell(limit)}"


def repeat_pauses() -> Iterator[float]:
    """Seconds between a line and its repetition: soon at first, then each minute."""
    return chain((10.0, 20.0, 30.0), repeat(60.0))


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """One thing that is waited for, named with its object. waited, limit: seconds, so far and at most; without a limit
    no time is printed, as it is checked only once more."""

    text: str
    waited: float
    limit: float

    def __str__(self) -> str:
        return f"{self.text} ({render_progress(self.waited, self.limit)})" if self.limit else self.text


class Waits:
    """Reports each condition that a task waits for: at once when it is new, then at growing intervals."""

    def __init__(self, notify: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._notify, self._clock = notify, clock
        # By condition: when it is reported again, and the pauses after that.
        self._due: dict[str, tuple[float, Iterator[float]]] = {}

    def report(self, *awaited: WaitCondition) -> None:
        """These are waited for now, and nothing else."""
        current_time = self._clock()
        self._due = {
            condition.text: self._due.get(condition.text, (current_time, repeat_pauses())) for condition in awaited
        }
        for condition in awaited:
            due, following = self._due[condition.text]
            if current_time >= due:
                self._due[condition.text] = (current_time + next(following), following)
                self._notify(str(condition))


def wait_until_clear(
    find: Callable[[], Sequence[str]], timeout: float, notify: Callable[[str], None], pause: float,
    clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
) -> Sequence[str]:  # fmt: skip
    """Wait until nothing is awaited any more, with progress; return what still is after timeout seconds.

    find: reads what is awaited, each as text. pause: seconds between two reads, for what nothing notifies of.
    """
    waits, began = Waits(notify), clock()
    while True:
        awaited, waited = find(), clock() - began
        if not awaited or waited >= timeout:
            return awaited
        waits.report(*(WaitCondition(text, waited, timeout) for text in awaited))
        sleep(min(pause, timeout - waited))


@contextmanager
def report_progress(
    notify: Callable[[str], None], line: Callable[[], str], seldom: Callable[[], Iterator[float]] = repeat_pauses
) -> Iterator[None]:
    """Report progress now and then while the run waits, also if nothing changes."""
    over = threading.Event()

    def follow() -> None:
        for pause in seldom():
            if over.wait(pause):
                return
            notify(line())

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()
