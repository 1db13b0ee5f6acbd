# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holder of a lease: a process that is distinguishable from every other one, and known to have ended where that is visible."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..base.decode import read_number
from .times import parse_time

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A held Lease. lasts: its duration in seconds. fresh: its renewTime is less than that away from the API server's clock.

    A renewTime is of another clock, so it decides nothing by itself: a lease has expired once nothing of it changed for as long as
    it lasts on the clock of the observer, as in client-go (tools/leaderelection/leaderelection.go, observedTime).
    """

    holder: str
    renewed: datetime | None
    version: str
    lasts: float
    fresh: bool

    @classmethod
    def from_object(cls, lease: Mapping[str, Any] | None, server_time: datetime) -> HeldLease | None:
        """Read a coordination.k8s.io/v1 Lease; None if no run holds it or its holder has ended. server_time: the API server's clock."""
        spec = (lease or {}).get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), parse_time(spec.get("renewTime"))
        if lease is None or not holder or is_dead(holder):
            return None
        lasts = float(spec.get("leaseDurationSeconds") or 0)
        fresh = renewed is not None and abs((server_time - renewed).total_seconds()) < lasts
        return cls(holder, renewed, str(lease["metadata"].get("resourceVersion", "")), lasts, fresh)

    def is_renewed_since(self, before: HeldLease) -> bool:
        """Whether its run lives: it renewed or took the lease since it was read before."""
        return (self.holder, self.renewed) != (before.holder, before.renewed)

    def __str__(self) -> str:
        when = "without a time" if self.renewed is None else f"at {self.renewed:%Y-%m-%d %H:%M:%SZ}"
        return f"{self.holder} renewed its lease {when}"


def identify_run() -> str:
    """The run that this process of Ansible's works for, also when that has ended and this process has another parent."""
    parent = multiprocessing.parent_process()
    return identify_process((parent and parent.pid) or os.getpid())


def identify_process(process: int) -> str:
    """Machine, its boot and process table, process and its start; no other process is ever called so."""
    return f"{socket.gethostname()}/{_identify_process_table()}/{process}-{_read_start(process) or ''}"


def is_dead(holder: str) -> bool:
    """Whether a holder is known to have ended."""
    return is_alive(holder) is False


def is_alive(holder: str) -> bool | None:
    """Whether a holder of this machine still runs; None for others, of which nothing is known."""
    machine, table, process = ([*holder.split("/"), "", ""])[:3]
    number, dummy, began = process.partition("-")
    identifier = read_number(number)
    # No system has larger ones: os.kill raises OverflowError beyond a C int.
    is_here = (machine, table) == (socket.gethostname(), _identify_process_table())
    if not is_here or identifier is None or not 0 < identifier < 1 << 31:
        return None
    start = _read_start(identifier)
    return not _is_gone(identifier) if start is None else start == began


def _identify_process_table() -> str:
    """This boot of this machine, and the process table that is visible to this process."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot[:13]}-{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        # As on macOS. If a process has the number of one that ended, its lease expires as that of another machine.
        return sys.platform


def _is_gone(process: int) -> bool:
    """Whether there is no such process. One of another user may be hidden in /proc (hidepid) although it exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read_start(process: int) -> str | None:
    """When a process began, in ticks since the boot; empty when only its exit code is left, None when it cannot be read, as on macOS."""
    try:
        stat = (_PROC / f"{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything; what follows is its state, and numbers.
    state, *numbers = stat.rpartition(")")[2].split()
    return "" if state in ("Z", "X") else numbers[18]
