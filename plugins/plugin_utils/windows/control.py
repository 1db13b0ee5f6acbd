# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping and starting the service as Windows and csi-proxy really do it.

``sc stop`` and ``sc start`` only ask. STOPPED is not the end: csi-proxy reports it and keeps serving its pipes, with its
executable locked. RUNNING is not serving: it is reported before the pipes exist. So both are followed to the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from ..catalog import csi_proxy as catalog
from . import commands, model, parse
from .commands import Command, Steps, builtin, list_pipes, program
from .errors import START, NodeError, find_meaning
from .lock import NodeLock
from .node import Failure, WindowsHost
from .observe import build_status_steps, collect_pipes

Report = Callable[[str], None]

_LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long (seconds) what is waited for. The service control manager itself allows 30 s for a start."""

    stop: float = 60.0
    linger: float = 3.0
    killed: float = 20.0
    pipes_gone: float = 15.0
    start: float = 60.0
    pipes: float = 20.0
    settle: float = 2.0
    poll: float = 0.5
    line: float = 120.0
    takeover: float = 2.0
    lock: float = 180.0
    scan: float = 15.0
    """pause before a service is started once more after 1053"""
    scans: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
    """pauses before what a scanner holds, the staged executable, is read or moved once more"""


@dataclass(frozen=True, slots=True)
class ServiceState(parse.ServiceStatus):
    """What one short read finds of the service: its status (0 when there is no service), processes and pipes."""

    processes: tuple[parse.Process, ...]
    pipes: tuple[str, ...]

    @property
    def pids(self) -> set[int]:
        return {process.pid for process in self.processes}


class Control:
    """Start and stop one service on one node, under the node lock."""

    def __init__(self, node: WindowsHost, lock: NodeLock, limits: WaitLimits, report: Report) -> None:
        self.node = node
        self.lock = lock
        self.limits = limits
        self.report = report

    def read(self, name: str, image: str) -> ServiceState:
        steps = [*build_status_steps(self.node, name, image), *self.lock.beat_steps()]
        answers = self.node.ask(steps, timeout=self.limits.line)
        status = parse.read_service_status(answers.text("status"))
        processes, pipes = parse.read_processes(answers.text("processes")), collect_pipes(answers)
        state, pid, win32_exit, service_exit = astuple(status) if status else (0, 0, 0, 0)
        return ServiceState(state, pid, win32_exit, service_exit, processes, pipes)

    def run(self, steps: Steps, timeout: float | None = None) -> Failure | None:
        """A guarded chain; a guard that fails raises NodeError ``lock_lost``."""
        limit = timeout or self.limits.line
        failure = self.node.chain([*self.lock.renew_steps(), *steps], timeout=limit)[1]
        self.raise_if_lock_lost(failure)
        return failure

    def raise_if_lock_lost(self, failure: Failure | None) -> None:
        if failure is not None and failure.label.startswith("guard"):
            self.lock.held = False
            raise NodeError(
                "lock_lost",
                f"This run lost the node lock {model.LOCK_DIR} to another run. Nothing was changed after that.",
                remedy="Wait for that run, then run the play again.",
            )

    def stop(
        self,
        name: str,
        image: str,
        pids: set[int],
        *,
        is_stopped: bool,
        before: Sequence[tuple[str, Command]] = (),
        after: Sequence[tuple[str, Command]] = (),
    ) -> Failure | None:
        """Run ``before``, stop the service, see its processes and pipes gone, run ``after``; return the failure of one of these two.

        pids: the service's processes, which are ended if they stay. is_stopped: whether the service manager says so already.

        Stop and ``after`` are one line, which the node finishes by itself when its controller is killed: the service does not
        stay stopped. WinRS continues a command whose client has left until its shell times out, and so does OpenSSH for a
        command without a terminal: the job object dies with the command itself (PowerShell/openssh-portable, w32-doexec.c;
        Win32-OpenSSH issue 1751).
        """
        limits = self.limits
        deadline = self.node.clock.monotonic() + limits.start
        seconds = limits.line + limits.stop + limits.linger + limits.killed + limits.pipes_gone
        while True:
            stopping = [*self._stop_steps(name, image, pids, is_stopped=is_stopped), *after]
            quiet = [(label, commands.quiet(command)) for label, command in stopping]
            failure = self.run([*before, *quiet], seconds)
            if failure is None or failure.label in dict([*before, *after]):
                return failure
            if (failure.label, failure.code) == ("stop", 1062):  # it stopped meanwhile
                is_stopped = True
            elif (failure.label, failure.code) == ("stop", 1061) and self.node.clock.monotonic() < deadline:
                self.node.clock.sleep(limits.poll)  # it starts or stops
            else:
                raise self._build_stop_error(name, image, failure)
            before = ()

    def _stop_steps(self, name: str, image: str, pids: set[int], *, is_stopped: bool) -> Steps:
        """Nothing is printed on the way."""
        limits, beat = self.limits, self.lock.beat()
        steps: Steps = []
        if not is_stopped:
            state = commands.pipe(program("sc", "query", name), program("findstr", "/l", "/c:1  STOPPED"))
            steps += self.lock.guard_step("stop", program("sc", "stop", name))
            steps.append(("stopped", commands.wait_for("STOPPED", state, limits.stop, beat)))
        if pids:
            checks = [(pid, self._check_process(image, pid)) for pid in sorted(pids)]
            alive = Command(" || ".join(f"({check})" for dummy, check in checks))
            kills = [f"({check} && {program('taskkill', '/F', '/PID', str(pid)).text})" for pid, check in checks]
            steps += [
                ("ended", commands.tolerate(commands.wait_for("ENDED", alive, limits.linger, beat, absent=True))),
                *self.lock.guard_step("kill", commands.tolerate(Command(" & ".join(kills)))),
                ("gone", commands.wait_for("GONE", alive, limits.killed, beat, absent=True)),
            ]
        pipes = commands.wait_for("PIPES", list_pipes(catalog.PIPE_PREFIX), limits.pipes_gone, beat, absent=True)
        return [*steps, ("pipes", pipes)]

    @staticmethod
    def _check_process(image: str, pid: int) -> str:
        # The image is checked on the same line: process ids are given out anew.
        listing = program("tasklist", "/fi", f"PID eq {pid}", "/fo", "csv", "/nh")
        return commands.pipe(listing, program("findstr", "/i", "/l", f"/c:{image}")).text

    def _build_stop_error(self, name: str, image: str, failure: Failure) -> NodeError:
        if failure.label == "stop":
            return find_meaning(failure.code).error(
                f"The service {name!r} cannot be stopped", failure.code, failure.words
            )
        current = self.read(name, image)
        processes = ", ".join(str(pid) for pid in sorted(current.pids)) or "none"
        if failure.label == "pipes":
            return NodeError(
                "pipes_taken",
                f"The service {name!r} is stopped and its process ended, but {', '.join(current.pipes)} are still served "
                f"(processes of {image}: {processes}): another csi-proxy runs.",
                remedy="Find the HostProcess pod or second service that runs csi-proxy, and remove it.",
            )
        if failure.label == "gone":
            return NodeError(
                "process_stays",
                f"A process of the service {name!r} cannot be ended (processes of {image}: {processes}).",
                remedy="End it on the node, or reboot the node; then run the play again.",
            )
        state = model.STATE_NAMES.get(current.state, "unknown")
        return NodeError(
            "timeout",
            f"Waited {self.limits.stop:g} s for the service {name!r} to report STOPPED; it is {state} with processes {processes}.",
            remedy="Check the node for hanging storage operations, which can block the process, then run the play again.",
        )

    def start_steps(self, name: str, log_file: str) -> Steps:
        """Roll the log while nothing holds it open (csi-proxy itself only truncates), then start."""
        steps: Steps = []
        if log_file:
            steps.append(("roll", commands.tolerate(builtin("move", log_file, log_file + ".1", switches="/y"))))
        return [*steps, *self.lock.guard_step("start", program("sc", "start", name))]

    def check_start(self, name: str, failure: Failure | None, log_file: str) -> None:
        """Evaluate the answer to ``sc start``: 1056 (already running) is as good as 0, and 1053 is tried once more.

        The service control manager waits 30 s for a new process; a scanner may hold a large unsigned program for longer
        when it runs for the first time, and not again.
        """
        if failure is not None and failure.label == "start" and failure.code == 1053:
            self.report(f"service {name} did not report its start in time (1053); starting it again")
            self.run([])
            self.node.clock.sleep(self.limits.scan)
            failure = self.run(self.start_steps(name, log_file))
        if failure is None or failure.label != "start" or failure.code == 1056:
            return
        subject = f"The service {name!r} did not start"
        meaning = START.get(failure.code) or find_meaning(failure.code)
        raise meaning.error(subject, failure.code, result=self._log(log_file))

    def wait_serving(self, name: str, image: str, required: tuple[str, ...], log_file: str) -> int:
        """Wait until the service runs, serves every required pipe and keeps its PID; return that PID."""
        deadline = self.node.clock.monotonic() + self.limits.start
        pipes_deadline: float | None = None
        dead = 0
        while True:
            current = self.read(name, image)
            missing = sorted(set(required) - set(current.pipes))
            moment = self.node.clock.monotonic()
            if current.state == model.RUNNING and current.pid in current.pids:
                dead = 0
                if not missing and (current.pipes or not required):
                    self.node.clock.sleep(self.limits.settle)
                    settled = self.read(name, image)
                    if (
                        settled.state == model.RUNNING
                        and settled.pid == current.pid
                        and not set(required) - set(settled.pipes)
                    ):
                        return current.pid
                    if moment > deadline:
                        raise self._build_start_error(name, settled, log_file)
                    self.report(f"service {name} restarted (PID {current.pid}, then {settled.pid}); still waiting")
                    continue
                pipes_deadline = pipes_deadline or moment + self.limits.pipes
                if moment > pipes_deadline:
                    raise NodeError(
                        "no_pipes",
                        f"The service {name!r} runs (PID {current.pid}) but after {self.limits.pipes:g} s does not serve {', '.join(missing)}.",
                        remedy="Check that the executable is a csi-proxy of the named release, and its log.",
                        result=self._log(log_file),
                    )
            elif current.state in (0, model.STOPPED, model.RUNNING):
                dead += 1
            if dead > 2 or moment > deadline:
                raise self._build_start_error(name, current, log_file)
            self.node.clock.sleep(self.limits.poll)

    def _build_start_error(self, name: str, current: ServiceState, log_file: str) -> NodeError:
        state = model.STATE_NAMES.get(current.state, "unknown")
        other_processes = [
            f"{process.image} PID {process.pid}" for process in current.processes if process.pid != current.pid
        ]
        if current.pipes and other_processes:
            return NodeError(
                "pipes_taken",
                f"The service {name!r} ended after its start because another csi-proxy serves the pipes: {', '.join(other_processes)}.",
                remedy="Remove the other one (a HostProcess pod, a second service), then run the play again.",
                result=self._log(log_file),
            )
        return NodeError(
            "start_failed",
            f"The service {name!r} was started, but is {state} (Win32 code {current.win32_exit}, its own code {current.service_exit}).",
            remedy="Check the flags against the release, and the log.",
            result=self._log(log_file),
        )

    def _log(self, log_file: str) -> dict[str, object]:
        """The log's last lines. It was rolled before the start, so the whole of it is short."""
        text = ""
        # The error that is being reported matters more than its illustration.
        with contextlib.suppress(NodeError):
            if log_file:
                text = self.node.ask([("log", builtin("type", log_file))], timeout=self.limits.line).text("log")
        return {"log_tail": [line.rstrip() for line in text.splitlines() if line.strip()][-_LOG_LINES:]}
