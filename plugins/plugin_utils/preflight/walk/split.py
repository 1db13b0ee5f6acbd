# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of one step that cover each node exactly once. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import unite
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import create_finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Answer, Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import (
    PodToStart,
    Step,
    StepAnswer,
)

# Makes the finding of an answer of its id, message and remedy, with more evidence; only answers that are not yes need one.
Maker = Callable[..., Finding]


class Split:
    """What a step says of one volume, or of the pod as a whole, on some nodes.

    maker: of findings about it. What blocks a node wins over what is unknown there, and among equals the first reason stands. The rest passes.
    """

    def __init__(self, step: Step, nodes: int, maker: Maker, volume: str = "") -> None:
        self._step: Step = step
        self.nodes = nodes
        self._maker, self._volume = maker, volume
        self._noted: dict[Answer, list[tuple[int, Callable[[], Finding]]]] = {"no": [], "unknown": []}

    def block(self, nodes: int, id_: str, message: str, remedy: str, *evidence: str) -> None:
        """The pod cannot pass this step on these nodes."""
        if nodes & self.nodes:
            self.note("no", nodes, partial(self._maker, id_, message, remedy, *evidence))

    def doubt(self, nodes: int, id_: str, message: str, remedy: str, *evidence: str) -> None:
        """Whether it can is not known on these nodes."""
        if nodes & self.nodes:
            self.note("unknown", nodes, partial(self._maker, id_, message, remedy, *evidence))

    def report_unread(self, id_: str, resource: str, message: str) -> None:
        """Whether it can is not known, because this list could not be read."""
        self.doubt(self.nodes, id_, message, f"let this account list {resource}")

    def note_about(self, answer: Answer, nodes: int, id_: str, object_name: str, message: str, remedy: str) -> None:
        """Either of these, with a finding about another object."""
        self.note(
            answer,
            nodes,
            partial(create_finding, id_, object_name, message, (f"{object_name}: {self._volume}",), remedy),
        )

    def note(self, answer: Answer, nodes: int, finding: Callable[[], Finding]) -> None:
        """Either of these, with a finding of another maker."""
        if nodes & self.nodes:
            self._noted[answer].append((nodes, finding))

    def find_nodes(self, answer: Answer) -> int:
        """The nodes of which this was noted."""
        return unite(nodes for nodes, _finding in self._noted[answer]) & self.nodes

    def list_answers(self, because: str) -> list[StepAnswer]:
        """The answers. because: why it passes where nothing was noted."""
        remaining, answers = self.nodes, []
        for answer, noted in self._noted.items():
            for nodes, make in noted:
                if covered := nodes & remaining:
                    answers.append(StepAnswer.from_findings(self._step, answer, covered, (make(),), self._volume))
                    remaining &= ~covered
        if remaining:
            answers.append(StepAnswer(self._step, "yes", remaining, self._volume, because))
        return answers


def answer_without_claims(step: Step, pod: PodToStart, nodes: int) -> list[StepAnswer]:
    """What a step about claims says of a pod's own volumes, and of a pod without any."""
    names = [f"inline {inline.name}" for inline in pod.inline]
    if not names and not pod.volumes:
        names = [""]
    return [StepAnswer(step, "yes", nodes, volume, "no claim is needed") for volume in names]
