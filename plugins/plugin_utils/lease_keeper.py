# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease keeper: renews the lease of a run while the user's tasks work, and ends the run when it no longer can.

Two processes beside the run: the keeper renews, and its parent watches it. If the lease is lost, or one of the two dies, the other
one ends the run. Each renewal is recorded in a file, and every task of the user begins with `check_renewal`: a lease whose last
renewal is younger than its duration cannot have been taken over. The clock counts the time that the machine sleeps.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import SECONDS, uptime

# Tells the keeper to end; other signals count as its death.
_RELEASE = signal.SIGUSR1
# Seconds for the keeper to end, and for the run before it is killed.
_GRACE = 10.0
_LOOK = 0.05


class LeaseNotHeldError(Exception):
    """The lease may be another run's."""


def record_renewal(path: str, renewed_at: float) -> None:
    """Record when a renewal began, by `uptime`. path: of the run's lease."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(str(renewed_at))
    os.replace(part, f"{path}.renewed")


def check_renewal(path: str) -> None:
    """Before a task of the user. LeaseNotHeldError if the last renewal is as old as the lease lasts, or unknown."""
    try:
        with open(f"{path}.renewed", encoding="utf-8") as file:
            age = uptime() - float(file.read())
    except (OSError, ValueError) as error:
        raise LeaseNotHeldError(f"the renewals of the lease cannot be read: {error}. Run again.") from error
    if not 0 <= age < SECONDS:
        raise LeaseNotHeldError(
            f"the lease of this run was last renewed {age:.0f} s ago, expected less than {SECONDS} s: the controller slept or lost the API "
            "server, and another run may have taken over. No further task runs. Wait for that run to end, then run again."
        )


def keep_lease(path: str, holder: str, keep: Callable[[Callable[[float], None]], str]) -> None:
    """Keep the lease until the run ends or releases the keeper; one keeper of a run does this, another one returns at once.

    keep: renews, calls its argument with the time of each renewal, and returns why the lease was lost, empty if the run ended.
    """
    with open(path, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        # Before the fork, since the file names the keeper from then on.
        signal.signal(_RELEASE, lambda _number, _frame: os._exit(0))
        watcher = os.getpid()
        keeper = os.fork()
        if keeper == 0:
            _be_keeper(watcher, path, holder, keep)
        file.truncate(0)
        file.write(str(keeper))
        file.flush()
        _pid, status = os.waitpid(keeper, 0)
        if status != 0:
            end_run(holder, "the process that renews the lease ended unexpectedly")


def _be_keeper(watcher: int, path: str, holder: str, keep: Callable[[Callable[[float], None]], str]) -> NoReturn:
    def renewed(at: float) -> None:
        # Ansible removes the folder with the end of the run.
        with contextlib.suppress(FileNotFoundError):
            record_renewal(path, at)
        if os.getppid() != watcher:
            end_run(holder, "the process that watches the lease keeper ended unexpectedly")
            os._exit(0)

    code = 1
    try:
        if why := keep(renewed):
            end_run(holder, why)
        code = 0
    finally:
        os._exit(code)


def release_keeper(path: str) -> None:
    """End the keeper, if there is one: the caller renews the lease from here on, or gives it back."""
    with open(path, "a+", encoding="utf-8") as file:
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                keeper = file.read()
                if keeper:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(keeper), _RELEASE)
                time.sleep(_LOOK)
                continue
            file.truncate(0)
            return


def end_run(holder: str, why: str) -> None:
    """Terminate the run, and kill it if that does not help. holder: as holder_of() made it."""
    number = int(holder.split("/")[-1].partition("-")[0])
    line = f"\nkubewin.csi: {why}. The run is terminated; a task in progress may continue. Run again to continue the upgrade.\n"
    if not is_dead(holder):
        with contextlib.suppress(OSError):
            screen = os.open(f"/proc/{number}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)
            os.write(screen, line.encode())
    for number_of_signal in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE
        with contextlib.suppress(OSError):
            if not is_dead(holder):
                os.kill(number, number_of_signal)
        while not is_dead(holder) and time.monotonic() < deadline:
            time.sleep(_LOOK)
