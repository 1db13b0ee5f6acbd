# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a place to ask and to act: lines of labelled steps over a channel, with a clock that tests can replace."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from . import commands
from .channel import Channel
from .commands import Steps
from .errors import LineResult, NodeError


class Clock:
    """The time in seconds: since 1970, and one that only grows."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Pause between two looks at a host, which tells nobody when a service has changed. Each caller has a limit."""
        time.sleep(seconds)


def generate_nonces() -> Iterator[str]:
    """Marks that no output can hold by accident: each is sent and comes back with every step, so they are short."""
    while True:
        yield base64.b32encode(uuid.uuid4().bytes)[:6].decode()


@dataclass(frozen=True, slots=True)
class Answers:
    """What each labelled step of a line printed, and its code."""

    steps: dict[str, commands.StepResult]

    def code(self, label: str) -> int:
        code = self.steps[label].code
        return -1 if code is None else code

    def text(self, label: str) -> str:
        """The step's output; empty when the line had no such step."""
        step = self.steps.get(label)
        return commands.join_text([step.output]) if step else ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The step at which a chain stopped."""

    label: str
    code: int
    output: str

    @property
    def words(self) -> str:
        return " ".join(self.output.split())[-600:]


class WindowsHost:
    def __init__(self, channel: Channel, clock: Clock | None = None, nonces: Iterator[str] | None = None) -> None:
        self.channel = channel
        self.clock = clock or Clock()
        self._nonces = nonces or generate_nonces()
        self.lists_pipes = True
        """False if an observation found that named pipes cannot be listed; they are opened there"""

    def ask(self, steps: Steps, *, timeout: float = 120.0) -> Answers:
        """Run every step, whatever the others do; ``timeout`` is that of a line.

        Raises NodeError ``interrupted`` when a line did not run to its end.
        """
        results: list[commands.StepResult] = []
        nonce = next(self._nonces)
        for count, line in commands.render_lines([step[1] for step in steps], commands.render_all, nonce):
            completed = self.channel.run(line, timeout=timeout)
            line_results = commands.split_steps(completed.stdout, nonce, count)
            if any(result.code is None for result in line_results):
                raise self._build_interruption(completed, nonce)
            results += line_results
        return Answers(dict(zip([step[0] for step in steps], results, strict=True)))

    def chain(
        self, steps: Steps, *, stdin: BinaryIO | None = None, timeout: float = 120.0
    ) -> tuple[Answers, Failure | None]:
        """Run the steps up to the first that fails; also return that one. Raises NodeError ``interrupted`` as :meth:`ask`.

        What does not fit on one line goes on the next, which is sent when all before it succeeded.
        """
        results: list[commands.StepResult] = []
        nonce = next(self._nonces)
        failure: Failure | None = None
        for count, line in commands.render_lines([step[1] for step in steps], commands.render_chain, nonce):
            if stdin is not None:
                stdin.seek(0)  # the line that reads it need not be the first
            completed = self.channel.run(line, stdin=stdin, timeout=timeout)
            line_results = commands.split_steps(completed.stdout, nonce, count, chained=True)
            for (label, dummy), result in zip(steps[len(results) :], line_results, strict=False):
                if result.code is None:
                    raise self._build_interruption(completed, nonce)
                if result.code:
                    answer = commands.join_text([result.output, b"\n", completed.stderr])
                    failure = Failure(label, result.code, answer)
                    break
            results += line_results
            if failure is not None:
                break
        results += [commands.StepResult(None, b"")] * (len(steps) - len(results))
        return Answers(dict(zip([step[0] for step in steps], results, strict=True))), failure

    @staticmethod
    def _build_interruption(completed: LineResult, nonce: str) -> NodeError:
        if commands.has_double_expansion(completed.stdout, nonce):
            return NodeError(
                "delayed_expansion",
                r"The node's registry switches on delayed expansion for every cmd.exe (DelayedExpansion under "
                r"Software\Microsoft\Command Processor of HKLM, or of the account), so no exit code can be read.",
                remedy=r'On the node: reg delete "HKLM\SOFTWARE\Microsoft\Command Processor" /v DelayedExpansion /f (and the '
                "same below HKCU), then run the play again.",
            )
        started = f"#{nonce}.0=0".encode() in completed.stdout
        outcome = "ended before its last step" if started else "did not start"
        return NodeError(
            "interrupted" if started else "no_cmd",
            f"A command line on the node {outcome} (code {completed.rc}).",
            remedy="The process was ended on the node, or cmd.exe could not run it. Run the play again.",
            detail=commands.join_text([completed.stdout[-200:], b" ", completed.stderr[-400:]]),
        )
