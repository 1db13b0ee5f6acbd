# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that a task displays while it works."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
from typing import Protocol

from .text import mask_controls


class Screen(Protocol):
    """Displays the lines of a feature, and hides secrets. show: progress, indented. warn: a warning of the task."""

    def show(self, *lines: str) -> None: ...

    def display(self, *lines: str) -> None: ...

    def warn(self, text: str) -> None: ...


def display_line(display: Callable[[str], None], line: str) -> None:
    """Display a line, in which no control character acts, unless the output of the run is a pipe that nobody reads any more.

    Ansible stops taking results of tasks at a line of a task that it cannot print, and the run never ends
    (ansible/plugins/strategy/__init__.py, results_thread_main).
    """
    if _is_read(f"/proc/{os.getppid()}/fd/1"):
        display(mask_controls(line))


def _is_read(output: str) -> bool:
    """Whether a pipe has a reader; True for everything else, and where /proc does not exist."""
    try:
        if not stat.S_ISFIFO(os.stat(output).st_mode):
            return True
        writer = os.open(output, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return True
    poll = select.poll()
    # An error is always reported.
    poll.register(writer, 0)
    has_error = bool(poll.poll(0))
    os.close(writer)
    return not has_error
