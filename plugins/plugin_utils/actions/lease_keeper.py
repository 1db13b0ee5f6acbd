# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease keeper: renews the lease of a run while the user's tasks work, and ends the run when it no longer can.

Two processes beside the run: the keeper renews, and its parent watches it. If the lease is lost, or one of the two dies, the other
one ends the run. Until when the lease is certainly held is recorded in a file, which the playbook reads before each task of the user:
a lease whose last renewal is younger than its duration cannot have been taken over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from ..kube.holder import is_dead
from ..kube.lease import SECONDS, read_uptime

# Tells the keeper to end; other signals count as its death.
_RELEASE = signal.SIGUSR1
# Seconds for the keeper to end, and for the run before it is killed.
_GRACE = 10.0
_LOOK = 0.05


def record_renewal(path: str, renewed_at: float) -> None:
    """Record until when the lease is held, in seconds since 1970. path: of the run's lease. renewed_at: by `read_uptime`."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(str(time.time() + SECONDS - (read_uptime() - renewed_at)))
    os.replace(part, f"{path}.held")


def start_keeper(path: str, holder: str, keep: Callable[[Callable[[float], None]], str]) -> None:
    """Keep the lease in processes beside the run, which neither this process nor Ansible waits for; see `keep_lease`."""
    between = os.fork()
    if between == 0:
        # PID 1 reaps an orphan: the background process leaves no zombie.
        if os.fork() == 0:
            _be_beside(path, holder, keep)
        os._exit(0)
    os.waitpid(between, 0)


def _be_beside(path: str, holder: str, keep: Callable[[Callable[[float], None]], str]) -> NoReturn:
    """Leave all that is the task's alone, and never return to its code."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        null_device = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null_device, descriptor)
        # Trying every number takes long where the limit is 1e9, as in containers; macOS has no /proc.
        folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
        for name in os.listdir(folder):
            if int(name) > 2:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        keep_lease(path, holder, keep)
    finally:
        os._exit(0)


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
    """Terminate the run, and kill it if that does not help. holder: as of kube.holder."""
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
