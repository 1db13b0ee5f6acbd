"""Runs named parts in parallel where they allow it, and reports the outcome and duration of each one."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import paths

HEARTBEAT_SECONDS = 20.0
TAIL_LINES = 30
GRACE_SECONDS = 30.0
# How much of the CPU commands leave to those of a part that comes first, as nice(1) counts it.
NICENESS = 10
# Commands under way. A command starts and enters under the lock, so that an interruption meets each one that runs.
STARTED: set[subprocess.Popen[bytes]] = set()
STARTING = threading.RLock()


def interrupt_children() -> None:
    """Asks what parts have started to end as on Ctrl-C, so that tests put away what they made; then makes them end."""
    with STARTING:
        children = list(STARTED)
    for child in children:
        child.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()


@dataclass(frozen=True)
class Counts:
    """What a part counted. A part that is one check counts as one."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""


class PartFailed(Exception):
    """A part that did not pass; the message adds to its log."""

    def __init__(self, message: str = "", counts: Counts | None = None) -> None:
        super().__init__(message)
        self.counts = counts or Counts(failed=1)


class Step:
    """What a part works with: its log and a way to run commands into it."""

    def __init__(self, name: str, nice: bool = False) -> None:
        self.name = name
        self.nice = nice
        self.log = paths.LOGS / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.cpu = 0.0
        self.out: IO[str] = open(self.log, "w", encoding="utf-8")  # noqa: SIM115 - closed by close(), it outlives this call

    def close(self) -> None:
        """Closes the log."""
        self.out.close()

    def notify(self, text: str) -> None:
        """Writes a line to the log."""
        self.out.write(text + "\n")
        self.out.flush()

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path = paths.ROOT,
        env: Mapping[str, str] | None = None,
        may_fail: bool = False,
    ) -> int:
        """Runs a command into the log. `env` is added to the environment. PartFailed where it fails and may not."""
        words = [str(word) for word in command]
        self.notify("$ " + " ".join(words))
        program = Path(words[0]).name
        if self.nice:
            words = ["nice", "-n", str(NICENESS), *words]
        settings = {**os.environ, **(env or {})}
        with STARTING:
            process = subprocess.Popen(
                words, cwd=cwd, env=settings, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out
            )
            STARTED.add(process)
        with process:
            try:
                self.cpu += cpu_seconds(process)
                code = process.wait()
            finally:
                STARTED.discard(process)
        if code and not may_fail:
            raise PartFailed(f"{program} ended with {code}")
        return code

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """The last lines of the log."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process has ended, without reaping it; the CPU time of it and of all that it waited for."""
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        numbers = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (ChildProcessError, FileNotFoundError, ProcessLookupError):
        # An interruption reaped it first.
        return 0.0
    return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Part:
    """One named piece of work.

    `first`: it waits for other things than the CPU most of the time. It starts before the others and no other one like it
    runs beside it. One other part at a time uses the CPU time that it leaves, with a lower priority.
    """

    name: str
    work: Callable[[Step], Counts | None]
    needs: tuple[str, ...] = ()
    first: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a part ended."""

    name: str
    counts: Counts
    seconds: float
    cpu: float = 0.0


class Runner:
    """Runs parts, at most one per CPU at a time, and reports."""

    def __init__(self, notify: Callable[[str], None], jobs: int = 0) -> None:
        self.notify = notify
        self.jobs = jobs or max(1, len(os.sched_getaffinity(0)))
        self.running: dict[str, tuple[float, Step]] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.lock = threading.Lock()

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        """Runs all parts; one whose needs failed counts as failed without being started."""
        started = time.monotonic()
        names = {part.name for part in parts}
        waiting = sorted(parts, key=lambda part: not part.first)
        futures: dict[Future[None], Part] = {}
        with ThreadPoolExecutor(max_workers=self.jobs + 1) as pool:
            while waiting or futures:
                for part in list(waiting):
                    needs = [self.outcomes.get(need) for need in part.needs if need in names]
                    if not all(needs):
                        continue
                    if not self.fits(part, list(futures.values())):
                        continue
                    waiting.remove(part)
                    broken = [outcome.name for outcome in needs if outcome and outcome.counts.failed]
                    if broken:
                        self.finish(
                            Outcome(part.name, Counts(failed=1, note=f"needs {', '.join(broken)}"), 0.0), None, ""
                        )
                    else:
                        futures[pool.submit(self.one, part)] = part
                done = wait(futures, timeout=HEARTBEAT_SECONDS, return_when=FIRST_COMPLETED).done
                for future in done:
                    futures.pop(future)
                    future.result()
                if futures and not done:
                    self.heartbeat(time.monotonic() - started)
        return [self.outcomes[part.name] for part in parts]

    def fits(self, part: Part, busy: Sequence[Part]) -> bool:
        """Whether a part may start beside those that run."""
        if any(other.first for other in busy):
            return not part.first and len(busy) < 2
        return len(busy) < (2 if part.first else self.jobs)

    def one(self, part: Part) -> None:
        """Runs one part to its end, whatever that is."""
        started = time.monotonic()
        step = Step(part.name, nice=not part.first)
        message = ""
        with self.lock:
            self.running[part.name] = (started, step)
        try:
            counts = part.work(step) or Counts(passed=1)
        except PartFailed as error:
            counts, message = error.counts, str(error)
        except Exception as error:
            counts, message = Counts(failed=1), f"{type(error).__name__}: {error}"
        finally:
            step.close()
        self.finish(Outcome(part.name, counts, time.monotonic() - started, step.cpu), step, message)

    def finish(self, outcome: Outcome, step: Step | None, message: str) -> None:
        """Records and reports how a part ended."""
        counts = outcome.counts
        text = "FAIL" if counts.failed else "ok"
        numbers = [f"{counts.passed} passed"] if counts.passed > 1 or counts.failed > 1 else []
        numbers += [f"{counts.failed} failed"] if counts.failed > 1 else []
        numbers += [f"{counts.skipped} skipped"] if counts.skipped else []
        numbers += [counts.note] if counts.note else []
        lines = [f"  {text:4}  {outcome.name:22} {outcome.seconds:6.1f} s  {', '.join(numbers)}".rstrip()]
        if counts.failed and step:
            # The reason first: what shows a run's output elsewhere may keep a part of it.
            lines += [f"        {line}" for line in message.splitlines()]
            lines += [f"        {line}" for line in step.tail()]
            lines.append(f"        log: {paths.short(step.log)}")
        with self.lock:
            self.running.pop(outcome.name, None)
            self.outcomes[outcome.name] = outcome
            for line in lines:
                self.notify(line)

    def heartbeat(self, elapsed: float) -> None:
        """Report what still runs, and the progress of the exclusive or first part."""
        with self.lock:
            busy = dict(self.running)
        now = time.monotonic()
        text = ", ".join(f"{name} {now - entry[0]:.0f} s" for name, entry in busy.items())
        last = ""
        steps = [step for _started, step in busy.values()]
        leading = [step for step in steps if len(steps) == 1 or not step.nice]
        if leading:
            tail = leading[0].tail(1)
            last = f"  {tail[0].strip()[-70:]}" if tail else ""
        self.notify(f"  ...   {elapsed:.0f} s, running: {text}{last}")


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The closing line: `N passed, N failed[, N skipped] in N s`."""
    passed = sum(outcome.counts.passed for outcome in outcomes)
    failed = sum(outcome.counts.failed for outcome in outcomes)
    skipped = sum(outcome.counts.skipped for outcome in outcomes)
    return f"{passed} passed, {failed} failed{f', {skipped} skipped' if skipped else ''} in {seconds:.0f} s"


def durations(outcomes: Sequence[Outcome]) -> str:
    """One line: the seconds of each part, the longest first, and the CPU seconds of its commands."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.seconds, reverse=True)
    return "seconds (CPU): " + ", ".join(f"{one.name} {one.seconds:.0f} ({one.cpu:.0f})" for one in ordered)
