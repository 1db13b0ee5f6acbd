# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of a proof, as words and numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize

Verdict = Literal["proven", "failed", "not_run"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step on a node, with its time. detail: what was read, or what went wrong."""

    step: str
    node: str
    seconds: float
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """One driver on one node.

    read_on: nodes on which the file was read back. not_on: another node where the volume should have come up and did not,
    why, and what helps. note: what was not tried, and why.
    """

    driver: str
    node: str
    storage_class: str
    verdict: Verdict
    steps: tuple[Step, ...] = ()
    volume: str = ""
    read_on: tuple[str, ...] = ()
    not_on: tuple[str, str, str] | None = None
    note: str = ""
    error: str = ""
    remedy: str = ""
    events: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all its steps."""
        return round(sum(step.seconds for step in self.steps), 1)

    def as_dict(self) -> dict[str, Any]:
        """For a module's result."""
        values = {name: value for name, value in serialize(self).items() if name != "not_on"}
        return {**values, "seconds": self.seconds}


def proven_nodes(proofs: Iterable[Proof]) -> dict[str, list[str]]:
    """Nodes on which a driver was proven, by driver."""
    found: dict[str, list[str]] = {}
    for proof in proofs:
        found.setdefault(proof.driver, [])
        if proof.verdict == "proven":
            found[proof.driver].append(proof.node)
    return {driver: sorted(nodes) for driver, nodes in found.items()}


def settle(proofs: Sequence[Proof]) -> list[Proof]:
    """Whose fault is a volume that did not come up on another node? Its own, where that node's own volume did.

    A node that mounts nothing fails its own proof, and what was proven elsewhere stays proven.
    """
    able = {(proof.driver, proof.node) for proof in proofs if proof.verdict == "proven"}
    settled = []
    for proof in proofs:
        if proof.verdict == "proven" and proof.not_on is not None:
            node, why, remedy = proof.not_on
            if (proof.driver, node) in able:
                error = f"volume {proof.volume} could not be used on {node}, where another one works: {why}"
                settled.append(replace(proof, verdict="failed", error=error, remedy=remedy))
            else:
                settled.append(replace(proof, note=f"not read on {node}, which has a problem of its own"))
            continue
        settled.append(proof)
    return settled


def compared(written: str, read: str) -> str:
    """What is wrong with what was read, empty when it is what was written."""
    found = read.rstrip("\r\n")
    if found == written:
        return ""
    shown = f'"{found[:200]}"' if found else "nothing"
    return f'the file differs: written "{written}", read {shown}'


def failed(proofs: Sequence[Proof]) -> str:
    """The headline of a run that did not prove everything, empty otherwise."""
    lines = [
        f"{proof.driver} on {proof.node}: {proof.error}" + (f" -> {proof.remedy}" if proof.remedy else "")
        for proof in proofs
        if proof.verdict == "failed"
    ]
    unrun = [f"{proof.driver} on {proof.node}" for proof in proofs if proof.verdict == "not_run"]
    if unrun:
        lines.append(f"not tried before the timeout: {', '.join(unrun)} -> raise timeout or parallel")
    return "\n".join(lines)
