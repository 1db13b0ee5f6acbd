# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures beside their budgets, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both sides. ``digits`` after the point; ``peer`` None where there is nothing to compare with.

    ``at_most`` and ``at_least`` are budgets: the first for our figure, the second for how many times less ours is than
    the peer's. ``why`` explains a budget that is known to be missed.
    """

    what: str
    ours: float
    peer: float | None = None
    unit: str = ""
    digits: int = 0
    at_most: float | None = None
    at_least: float | None = None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the peer's figure is ours; None without a peer or when ours is nothing."""
        return None if self.peer is None or not self.ours else self.peer / self.ours

    @property
    def missed_by(self) -> float | None:
        """By which part of the budget it is missed; None when it is met or there is none."""
        if self.at_most is not None and self.ours > self.at_most:
            return self.ours / self.at_most - 1 if self.at_most else float("inf")
        if self.at_least is not None and self.ratio is not None and self.ratio < self.at_least:
            return 1 - self.ratio / self.at_least
        return None

    @property
    def verdict(self) -> str:
        if self.at_most is None and self.at_least is None:
            return ""
        if self.missed_by is None:
            return "met"
        by = "" if self.missed_by == float("inf") else f" by {self.missed_by:.0%}"
        return f"MISSED{by}{': ' + self.why if self.why else ''}"

    @property
    def budget(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g} {self.unit}".rstrip()
        return "" if self.at_least is None else f">= {self.at_least:g} times"


HEAD = ("", "kubewin.csi", "peer", "times", "budget", "")


def table(title: str, rows: Sequence[Row]) -> str:
    """A table for a terminal, with a title."""
    lines = [HEAD]
    for row in rows:
        lines.append(
            (
                f"{row.what}{f' [{row.unit}]' if row.unit else ''}",
                f"{row.ours:,.{row.digits}f}",
                "-" if row.peer is None else f"{row.peer:,.{row.digits}f}",
                "" if row.ratio is None else f"{row.ratio:,.1f}",
                row.budget,
                row.verdict,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = [title]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:4], widths[1:4], strict=True)]
        cells += [line[4].ljust(widths[4]), line[5]]
        shown.append("  " + "  ".join(cells).rstrip())
    return "\n".join(shown)
