# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts and faults as tests ask for them: every point of a conversation, and the rule that makes one at the front."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab.windows.agent import Agent
from lab.windows.channel import Cut, CutKind
from lab.windows.control import FrontControl
from lab.windows.faults import Rule

ALL_KINDS: tuple[CutKind, ...] = ("request_lost", "reply_lost", "killed")


@dataclass(frozen=True, slots=True)
class Sent:
    """One command of a conversation that went through: its line, and how many simple commands ran in it."""

    line: str
    steps: int
    has_input: bool = False


def conversation(agent: Agent) -> list[Sent]:
    """The requests to a host since its journal was last cleared, in order."""
    journal = agent.control("journal")["journal"]
    return [Sent(entry["line"], len(entry["steps"])) for entry in journal]


def every_cut(sent: Sequence[Sent], kinds: Sequence[CutKind] = ALL_KINDS) -> Iterator[Cut]:
    """A cut of every kind at every command; ``killed`` once before, between and after all steps of each line."""
    for number, command in enumerate(sent):
        for kind in kinds:
            if kind == "killed":
                for steps in range(command.steps + 1):
                    yield Cut("killed", number, steps)
            elif kind != "input_lost" or command.has_input:
                yield Cut(kind, number)


def rule_of(cut: Cut, match: str = "") -> Rule:
    """The front's rule for a cut: the ``cut.at``-th command (from 0) whose line contains ``match``."""
    lost = cut.for_good and cut.kind != "killed"
    if cut.kind == "input_lost":
        return Rule("request_lost", match, operation="Send", skip=1, for_good=lost)
    return Rule(cut.kind, match, skip=cut.at, after_steps=cut.after_steps, for_good=lost)


@contextlib.contextmanager
def faults(front: FrontControl, host: str, *rules: Rule) -> Iterator[None]:
    """Rules on a host's WS-Man endpoint for the time of the block."""
    for rule in rules:
        front.add_fault(host, rule)
    try:
        yield
    finally:
        front.clear_faults(host)


@contextlib.contextmanager
def host_faults(agent: Agent, *rules: dict[str, Any]) -> Iterator[None]:
    """Rules of the host itself (what a command answers, disk full, quarantine) for the time of the block."""
    for rule in rules:
        agent.control("fault", rule=rule)
    try:
        yield
    finally:
        agent.control("clear_faults")
