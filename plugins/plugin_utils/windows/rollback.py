# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a swap records beside the service, and going back by it, from wherever a run that ended early left the node.

The command line is set back first, so that any restart by the service manager starts the old executable. The way back
is recorded like the change itself: the next run finishes an interrupted rollback.
"""

from __future__ import annotations

from collections.abc import Callable

from . import model
from .commands import Command, Steps, discard_output, program, tolerate
from .control import Control
from .errors import NodeError, find_meaning
from .model import HostSnapshot, Service
from .observe import IMAGE


def locate_parameters(name: str) -> str:
    return rf"{model.SERVICES_KEY}\{name}\Parameters"


def set_value(key: str, name: str, value: str | int) -> Command:
    kind, data = ("REG_DWORD", str(value)) if isinstance(value, int) else ("REG_SZ", value)
    return discard_output(program("reg", "add", key, "/v", name, "/t", kind, "/d", data, "/f"))


def build_remember_steps(service: Service) -> Steps:
    """Record the command line and process that a swap replaces."""
    key = locate_parameters(service.name)
    return [
        ("previous", set_value(key, "Previous", service.command_line)),
        ("previous pid", set_value(key, "PreviousPid", service.pid)),
    ]


def build_forget_steps(key: str) -> Steps:
    return [
        (f"forget {value}", tolerate(program("reg", "delete", key, "/v", value, "/f")))
        for value in ("Previous", "PreviousPid")
    ]


class Rollback:
    """Undo one swap.

    ``committed``: whether it set (or tried to set) another command line; ``before`` is the snapshot that its plan
    was made for.
    """

    def __init__(
        self, control: Control, committed: bool, before: HostSnapshot, observe: Callable[[], HostSnapshot]
    ) -> None:
        self._control = control
        self._committed = committed
        self._before = before
        self._observe = observe

    def run(self, error: BaseException) -> None:
        """Restore; add the outcome to ``error`` if it is a NodeError that will be reported."""
        self._control.report(f"rolling the swap back: {error}")
        old = self._before.service
        text = self._remove_new_service() if old is None else self._return_to(old)
        if isinstance(error, NodeError) and text:
            error.message = f"{error.message} {text}"
            error.result["rolled_back"] = True

    def _remove_new_service(self) -> str:
        """A first installation that failed: nothing was there before, so no service stays."""
        current = self._observe().service
        if current is None:
            return ""
        self._control.stop(current.name, IMAGE, {current.pid} - {0}, is_stopped=current.state == model.STOPPED)
        delete = discard_output(program("sc", "delete", current.name))
        failure = self._control.run(self._control.lock.guard_step("delete", delete))
        if failure is not None and failure.code != 1060:
            raise find_meaning(failure.code).error(f"The new service {current.name!r} cannot be deleted", failure.code)
        return f"The new service {current.name!r} was removed."

    def _return_to(self, old: Service) -> str:
        target = old.command_line if self._committed else old.record.previous
        snapshot = self._observe()
        current = snapshot.service
        if not target or current is None:
            return ""
        key = locate_parameters(current.name)
        steps: Steps = []
        if current.command_line != target:
            steps = [
                *build_remember_steps(current),
                *self._control.lock.guard_step(
                    "roll back", discard_output(program("sc", "config", current.name, "binPath=", target))
                ),
            ]
        was_running = old.state == model.RUNNING or not self._committed
        still_the_old = current.state == model.RUNNING and old.pid != 0 and current.pid == old.pid and self._committed
        restart = was_running and not still_the_old
        image = current.executable.rpartition("\\")[2]
        known_pids = {current.pid, old.pid, current.record.previous_pid}
        failure = None
        if restart:
            failure = self._control.stop(
                current.name,
                image,
                known_pids & {process.pid for process in snapshot.processes},
                is_stopped=current.state == model.STOPPED,
                before=steps,
                after=self._control.start_steps(current.name, ""),
            )
        elif steps:
            failure = self._control.run(steps)
        if failure is not None and failure.label != "start":
            subject = f"The service {current.name!r} cannot be restored to {target}"
            raise find_meaning(failure.code).error(subject, failure.code)
        if restart:
            self._control.check_start(current.name, failure, "")
            served = self._before.pipes if old.state == model.RUNNING else ()
            image = IMAGE if not old.executable else old.executable.rpartition("\\")[2]
            self._control.wait_serving(current.name, image, served, "")
        self._control.run(build_forget_steps(key))
        subject = f"csi-proxy {old.record.release}" if old.record.release and self._committed else target
        return (
            f"{subject} is restored and serving."
            if was_running
            else f"The command line {target} is restored; the service is stopped, as before."
        )
