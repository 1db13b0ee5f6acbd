# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a place to ask and to act: lines of labelled steps over a channel, with a clock that tests can replace."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import Channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import Command
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError

Steps = Sequence[tuple[str, Command]]
"""Labelled commands; labels are ours, unique within a line."""


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that only grow."""

    def sleep(self, seconds: float) -> None:
        """Returns that many seconds later."""


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


def random_nonces() -> Iterator[str]:
    """Marks that no output can hold by accident."""
    while True:
        yield uuid.uuid4().hex[:8]


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
        """What the node said, for people."""
        return " ".join(self.output.split())[-600:]


class Node:
    def __init__(self, channel: Channel, clock: Clock | None = None, nonces: Iterator[str] | None = None) -> None:
        self.channel = channel
        self.clock: Clock = clock or SystemClock()
        self._nonces = nonces or random_nonces()

    def ask(self, steps: Steps, *, timeout: float = 120.0) -> Answers:
        """Run every step, whatever the others do. Raises NodeError ``interrupted`` when the line did not run to its end."""
        nonce = next(self._nonces)
        labels = [step[0] for step in steps]
        completed = self.channel.run(commands.render_all([step[1] for step in steps], nonce), timeout=timeout)
        results = commands.split_steps(completed.stdout, nonce, len(steps))
        if any(result.code is None for result in results):
            raise self._interrupted(completed.stdout, completed.stderr, completed.rc, nonce)
        return Answers(dict(zip(labels, results, strict=True)))

    def chain(
        self, steps: Steps, *, stdin: BinaryIO | None = None, timeout: float = 120.0
    ) -> tuple[Answers, Failure | None]:
        """Run the steps up to the first that fails; also return that one. Raises NodeError ``interrupted`` as :meth:`ask`."""
        nonce = next(self._nonces)
        labels = [step[0] for step in steps]
        line = commands.render_chain([step[1] for step in steps], nonce)
        completed = self.channel.run(line, stdin=stdin, timeout=timeout)
        results = commands.split_steps(completed.stdout, nonce, len(steps))
        answers = Answers(dict(zip(labels, results, strict=True)))
        for label, result in answers.steps.items():
            if result.code is None:
                raise self._interrupted(completed.stdout, completed.stderr, completed.rc, nonce)
            if result.code:
                said = commands.join_text([result.output, b"\n", completed.stderr])
                return answers, Failure(label, result.code, said)
        return answers, None

    @staticmethod
    def _interrupted(stdout: bytes, stderr: bytes, rc: int, nonce: str) -> NodeError:
        started = f"#{nonce}.0=0".encode() in stdout
        what = "ended before its last step" if started else "did not start"
        return NodeError(
            "interrupted" if started else "no_cmd",
            f"A command line on the node {what} (code {rc}).",
            remedy="Something on the node ended the process, or cmd.exe could not run it; run the play again.",
            detail=commands.join_text([stdout[-200:], b" ", stderr[-400:]]),
        )
