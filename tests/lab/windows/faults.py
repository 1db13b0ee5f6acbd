# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a WS-Man endpoint of the lab makes on demand: cuts, refusals, quotas, delays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

EFFECTS = {
    "request_lost": "the TCP connection is dropped before anything is done",
    "reply_lost": "the request is carried out, the TCP connection is dropped instead of the answer",
    "killed": "the command's interpreter dies after `after_steps` simple commands of the line (operation Command)",
    "unauthorized": "from this request on everything is answered 401, until the rules are cleared",
    "http_500": "HTTP 500 without a body",
    "quota": "fault 2150859174: operations of this user exhausted",
    "shells_refused": "fault 2150859180: a policy forbids remote shells",
    "operation_timeout": "fault 2150858793: nothing within OperationTimeout",
    "busy": "fault 170: the command is busy",
    "delay": "the answer comes after `delay_ms`",
}
OPERATIONS = ("", "Create", "Command", "Send", "Receive", "Signal", "Delete")


@dataclass(slots=True)
class Rule:
    """One rule. It fires for requests of ``operation`` (empty: every one) whose command line contains the regular
    expression ``match``; the first ``skip`` of them pass, the next ``times`` (None: all) are hit.

    The command line of Send, Receive and Signal is that of their command; Create and Delete have an empty one.
    With ``for_good`` the host is disconnected from then on: no request gets an answer until the rules are cleared.
    """

    effect: str
    match: str = ""
    operation: str = "Command"
    skip: int = 0
    times: int | None = 1
    after_steps: int = 0
    delay_ms: int = 0
    for_good: bool = False
    hits: int = 0

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS:
            raise ValueError(f"fault rule: effect {self.effect!r} is unknown, use one of {', '.join(EFFECTS)}")
        if self.operation not in OPERATIONS:
            raise ValueError(f"fault rule: operation {self.operation!r} is unknown, use one of {', '.join(OPERATIONS)}")
        if self.effect == "killed" and self.operation != "Command":
            raise ValueError(f"fault rule: killed works on operation Command, not on {self.operation!r}")
        re.compile(self.match)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"fault rule: unknown keys {sorted(unknown)}")
        return cls(**data)


class FaultTable:
    """The rules of one endpoint, oldest first."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self.locked_out = False
        self.cut_off = False

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)

    def clear(self) -> None:
        self._rules.clear()
        self.locked_out = False
        self.cut_off = False

    def describe(self) -> list[dict[str, Any]]:
        return [asdict(rule) for rule in self._rules]

    def hit(self, operation: str, line: str) -> Rule | None:
        """The rule that fires for this request, counted."""
        for rule in self._rules:
            if rule.operation not in ("", operation) or not re.search(rule.match, line):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.times is not None and rule.hits >= rule.times:
                continue
            rule.hits += 1
            if rule.effect == "unauthorized":
                self.locked_out = True
            if rule.for_good:
                self.cut_off = True
            return rule
        return None
