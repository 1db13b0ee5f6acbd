# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Termination of a process that works with the cluster."""

from __future__ import annotations

import signal

# Signals that terminate a process.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Interrupted(BaseException):
    """The run was terminated. Not an Exception, so that no handler takes it for a failure."""

    reason = "interrupted"


def ignore_signals() -> None:
    """Ignore termination from here on: what follows is the cleanup."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
