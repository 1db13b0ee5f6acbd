# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work beside the caller's, which a run that is terminated does not wait for, as it would for an executor's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

# Seconds that the work waits for the interpreter each time that a part of a response has come; by default ten times as long, which is
# longer than a page takes.
_SWITCH = 0.0005


def begin(work: Callable[[], T]) -> Callable[..., T]:
    """Start work in a thread of its own; return what waits for its result, at most the given seconds, and raises its exceptions."""
    future = Future[T]()

    def perform() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    sys.setswitchinterval(_SWITCH)
    threading.Thread(target=perform, daemon=True).start()
    return future.result
