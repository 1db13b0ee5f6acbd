# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of a verification. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base.stored import serialize
from .objects import RunScope

Verdict = Literal["proven", "failed", "not_run"]


@dataclass(frozen=True, slots=True)
class VerifyStep:
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
    steps: tuple[VerifyStep, ...] = ()
    volume: str = ""
    read_on: tuple[str, ...] = ()
    not_on: tuple[str, str, str] | None = None
    note: str = ""
    error: str = ""
    remedy: str = ""
    events: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The duration of all steps."""
        return round(sum(step.seconds for step in self.steps), 1)

    def as_dict(self) -> dict[str, Any]:
        values = {name: value for name, value in serialize(self).items() if name != "not_on"}
        return {**values, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class RemainingObject:
    """An object that was not deleted. kept: because its StorageClass retains volumes."""

    kind: str
    namespace: str
    name: str
    why: str
    kept: bool


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The scope of an earlier run, and why it counts as alive, empty if it ended."""

    scope: RunScope
    lives: str

    def as_dict(self) -> dict[str, Any]:
        return {"run": self.scope.run, "namespace": self.scope.namespace, "lives": self.lives}


def list_proven_nodes(proofs: Iterable[Proof]) -> dict[str, list[str]]:
    nodes_by_driver: dict[str, list[str]] = {}
    for proof in proofs:
        nodes_by_driver.setdefault(proof.driver, [])
        if proof.verdict == "proven":
            nodes_by_driver[proof.driver].append(proof.node)
    return {driver: sorted(nodes) for driver, nodes in nodes_by_driver.items()}


def settle(proofs: Sequence[Proof]) -> list[Proof]:
    """Attribute each volume that could not be used on another node: to itself if that node's own volume was proven.

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


def compare_content(written: str, read: str) -> str:
    """Return how the content differs from what was written, empty if it is equal."""
    content = read.rstrip("\r\n")
    if content == written:
        return ""
    shown = f'"{content[:200]}"' if content else "nothing"
    return f'the file differs: written "{written}", read {shown}'


def describe_failures(proofs: Sequence[Proof]) -> str:
    """Describe what was not proven, empty if everything was."""
    lines = [
        f"{proof.driver} on {proof.node}: {proof.error}" + (f" -> {proof.remedy}" if proof.remedy else "")
        for proof in proofs
        if proof.verdict == "failed"
    ]
    unrun = [f"{proof.driver} on {proof.node}" for proof in proofs if proof.verdict == "not_run"]
    if unrun:
        lines.append(f"not tried before the timeout: {', '.join(unrun)} -> raise timeout")
    return "\n".join(lines)
