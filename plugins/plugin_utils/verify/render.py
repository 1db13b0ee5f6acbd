# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a verification, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.table import render_table
from .verdict import EarlierRun, Proof, RemainingObject


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
