# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of an evaluation: what a node lacks, its verdict, and the whole gate's. No logic but counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_field_lines, join_lines

Verdict = Literal["green", "unproven", "waiting", "red"]

# From best to worst; the gate is as good as its worst node. Red outranks waiting: it does not resolve by itself.
_ORDER: tuple[Verdict, ...] = ("green", "unproven", "waiting", "red")


@dataclass(frozen=True, slots=True)
class UnmetCondition:
    """One thing a node lacks. verdict: what it makes of the node at best."""

    id: str
    verdict: Verdict
    message: str
    remedy: str

    def __post_init__(self) -> None:
        join_field_lines(self, "message", "remedy")


@dataclass(frozen=True, slots=True)
class NodeEvaluation:
    """One node's evaluation. notes: remarks that do not block."""

    node: str
    pod: str
    lacks: tuple[UnmetCondition, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(join_lines(note) for note in self.notes))

    @property
    def verdict(self) -> Verdict:
        """As bad as the worst of what it lacks."""
        return max((lack.verdict for lack in self.lacks), key=_ORDER.index, default="green")

    @property
    def fingerprint(self) -> str:
        """The identity of this evaluation: its verdict and what it lacks, without changing numbers."""
        return f"{self.verdict}:{','.join(sorted(lack.id for lack in self.lacks))}:{self.pod}"

    def as_dict(self) -> dict[str, Any]:
        """For a module's result."""
        return {**serialize(self), "verdict": self.verdict, "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The gate's evaluation: expected nodes, the others with the reason, and what is wrong with the whole."""

    nodes: tuple[NodeEvaluation, ...]
    others: tuple[tuple[str, str], ...]
    trouble: tuple[UnmetCondition, ...]

    @property
    def verdict(self) -> Verdict:
        """As bad as the worst node, or as what is wrong with the whole."""
        worst: list[Verdict] = [node.verdict for node in self.nodes] + [lack.verdict for lack in self.trouble]
        return max(worst, key=_ORDER.index, default="green")

    @property
    def settled(self) -> bool:
        """Whether waiting longer would change nothing, or something is wrong that waiting does not resolve."""
        return self.verdict != "waiting"
