# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module's side of its progress: messages, and whether a reader still exists."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable

# Signals that terminate a process.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Interrupted(BaseException):
    """The run was terminated. Not an Exception, so that no handler takes it for a failure."""

    reason = "interrupted"


def reporter(progress: str | None) -> Callable[[str], None]:
    """Adds lines to the file that the action shows, without ever making one."""
    lock = threading.Lock()

    def notify(text: str) -> None:
        if progress is None:
            return
        with lock:
            try:
                with open(os.open(progress, os.O_WRONLY | os.O_APPEND), "w", encoding="utf-8") as file:
                    file.write(text.replace("\n", " ") + "\n")
            except FileNotFoundError:
                return

    return notify


def when_ended(progress: str | None, then: Callable[[], None]) -> None:
    """Call `then` when this process is terminated, or once its parent no longer waits for it."""
    for number in SIGNALS:
        signal.signal(number, lambda _number, _frame: then())
    when_left_alone(progress, then)


def when_left_alone(progress: str | None, then: Callable[[], None]) -> None:
    """Call `then` once no process waits for this one: Ansible does not end modules with itself."""
    poll = select.poll()
    poll.register(1, 0)

    def follow() -> None:
        while True:
            gone = any(event & (select.POLLERR | select.POLLHUP) for _descriptor, event in poll.poll(0))
            if gone or (progress is not None and not os.path.exists(progress)):
                then()
                return
            time.sleep(0.5)

    threading.Thread(target=follow, daemon=True).start()


def ignore_signals() -> None:
    """Ignore termination from here on: what follows is the cleanup."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
