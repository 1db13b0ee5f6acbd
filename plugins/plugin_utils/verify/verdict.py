# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of a verification. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base.stored import serialize
from ..base.table import render_table
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


def render_report(
    proofs: Sequence[Proof],
    left_out: Iterable[tuple[str, str, str]],
    left: Iterable[RemainingObject],
    earlier_runs: Iterable[EarlierRun],
) -> str:
    """A line for each driver and node, then what was left out, what is still there, and the verdict in words."""
    rows = [
        [
            proof.node,
            proof.driver,
            "not tried" if proof.verdict == "not_run" else proof.verdict,
            f"{proof.seconds:g}",
            describe_proof(proof),
        ]
        for proof in sorted(proofs, key=lambda proof: (proof.node, proof.driver))
    ]
    rows += [[node, driver, "skipped", "-", why] for driver, node, why in left_out]
    lines = [render_table(("NODE", "DRIVER", "VERDICT", "SECONDS", "WHAT"), rows)]
    for remaining in left:
        lines += ["", f"not deleted: {remaining.kind} {remaining.name}: {remaining.why}"]
    for earlier in earlier_runs:
        done = f"kept: {earlier.lives}" if earlier.lives else "deleted"
        lines += ["", f"earlier run {earlier.scope.run} in namespace {earlier.scope.namespace}: {done}"]
    proven = sum(proof.verdict == "proven" for proof in proofs)
    lines += ["", f"{proven} of {len(proofs)} volumes kept their data"]
    return "\n".join(lines)


def shorten_proof(proof: Proof) -> dict[str, Any]:
    """What a failed task returns of a proof: its verdict, and what failed."""
    returned = proof.as_dict()
    returned["steps"] = [step for step in returned["steps"] if not step["ok"]]
    return {key: returned[key] for key in ("node", "driver", "verdict", "error", "remedy", "steps") if returned[key]}


def describe_proof(proof: Proof) -> str:
    wrote = next((step for step in proof.steps if step.step == "write" and step.ok), None)
    sentence = [] if wrote is None else [f"written on {wrote.node}"]
    for count, node in enumerate(proof.read_on):
        sentence.append(f"read back on {node}" + (" by its next pod" if count == 0 else ""))
    text = ", ".join(sentence)
    if proof.note and proof.verdict == "proven":
        text += f"; {proof.note}"
    if proof.error:
        where = next((f" ({step.step} on {step.node})" for step in proof.steps if not step.ok), "")
        text += (", then " if text else "") + f"{proof.error}{where}"
    return text + (f" -> {proof.remedy}" if proof.remedy else "")
