# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's channel straight to a lab host's agent, without WinRM, and with cuts at any command.

For tests in process: a thousand cut installs take seconds, and each leaves a journal of what was sent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import BinaryIO, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import (
    CommandTimeoutError,
    ConnectionLostError,
    LineResult,
)

from lab.windows.agent import EXIT, STDERR, STDOUT, Agent, AgentError, Request

CutKind = Literal["request_lost", "reply_lost", "hung_up", "input_lost", "killed"]


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut: at the ``at``-th command of the channel (from 0).

    ``request_lost``: the command never reaches the host. ``reply_lost``: it continues without a reply, as under WinRS.
    ``hung_up``: the same under ssh, whose pipes break: here after ``after_steps`` simple commands of the line.
    ``input_lost``: half of its standard input arrives, then the connection is gone. ``killed``: its interpreter dies
    after ``after_steps`` simple commands of the line; the channel lives on and reports the exit code.
    With ``for_good`` a lost connection stays lost for this channel.
    """

    kind: CutKind
    at: int
    after_steps: int = 0
    for_good: bool = True


class AgentChannel:
    """Same shape and same errors as the collection's channels.

    ``lines`` is the journal of what was asked for (also what a cut kept from the host).
    """

    def __init__(self, agent: Agent, cut: Cut | None = None) -> None:
        self.agent = agent
        self.cut = cut
        self.lines: list[str] = []
        self._lost = False

    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> LineResult:
        """Run a line; ConnectionLostError at a cut, CommandTimeoutError after ``timeout`` seconds."""
        number = len(self.lines)
        self.lines.append(line)
        cut = self.cut if self.cut is not None and self.cut.at == number else None
        if self._lost or (cut is not None and cut.kind == "request_lost"):
            self._lose(cut)
            raise ConnectionLostError(f"lab cut: command {number} was not sent: {line}")
        stop_after = cut.after_steps if cut is not None and cut.kind == "killed" else None
        data = b"" if stdin is None else stdin.read()
        if cut is not None and cut.kind == "input_lost":
            data = data[: len(data) // 2]
        deadline = time.monotonic() + timeout
        hang_up_after = cut.after_steps if cut is not None and cut.kind == "hung_up" else None
        request = Request(commands.wrap_line(line), stop_after=stop_after, hang_up_after=hang_up_after)
        try:
            with self.agent.start(request, timeout) as command:
                command.send(data)
                if cut is None or cut.kind != "input_lost":
                    command.end_input()
                if cut is not None and cut.kind in ("reply_lost", "hung_up", "input_lost"):
                    self._lose(cut)
                    # What was lost is the reply: the host has the command, and it runs.
                    while self.agent.control("steps", line=request.line)["ran"] < 0 and time.monotonic() < deadline:
                        time.sleep(0.001)
                    raise ConnectionLostError(f"lab cut: the reply to command {number} was lost: {line}")
                streams: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
                while True:
                    kind, chunk = command.read()
                    if kind == EXIT:
                        break
                    streams[kind].append(chunk)
                    if time.monotonic() > deadline:
                        command.terminate()
                        raise TimeoutError
        except TimeoutError:
            raise CommandTimeoutError(f"command {number} did not end within {timeout:g} s: {line}") from None
        except AgentError as error:
            raise ConnectionLostError(str(error)) from error
        stdout = b"".join(streams[STDOUT])
        return LineResult(int.from_bytes(chunk, "big"), stdout, b"".join(streams[STDERR]))

    def close(self) -> None:
        """Nothing is held between commands."""

    def _lose(self, cut: Cut | None) -> None:
        if cut is not None and cut.for_good:
            self._lost = True
