# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task whose run is terminated: it cleans up and ends, also when the run was killed and cannot say so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

# Signals that terminate a process.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Seconds between two checks that the run still exists.
_INTERVAL = 0.5


class Interrupted(BaseException):
    """The run was terminated. Not an Exception, so that no handler takes it for a failure."""

    reason = "interrupted"


def ignore_signals() -> None:
    """Ignore termination from here on: what follows is the cleanup."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible(remainder: str, parent: int | None = None) -> Iterator[None]:
    """Raise Interrupted in this thread, the main one, when this process is asked to end or its parent has ended.

    remainder: the state that an interruption leaves, as a sentence. parent: process id of the run; defaults to the parent.
    """
    parent, over = os.getppid() if parent is None else parent, threading.Event()
    if os.getppid() != parent:
        raise Interrupted(f"the run was terminated. {remainder}")

    def end(_number: int, _frame: Any) -> NoReturn:
        # Once is enough.
        ignore_signals()
        raise Interrupted(f"the run was terminated. {remainder}")

    def watch_parent() -> None:
        while not over.wait(_INTERVAL):
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGTERM)
                return

    former = {number: signal.signal(number, end) for number in SIGNALS}
    watcher = threading.Thread(target=watch_parent, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for number, handler in former.items():
            signal.signal(number, handler)
