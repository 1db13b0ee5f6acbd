# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a verification, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.table import render_table


def render_report(result: Mapping[str, Any]) -> str:
    """A line for each driver and node, then what was left out, what is still there, and the verdict in words."""
    proofs: Sequence[Mapping[str, Any]] = result.get("proofs") or []
    rows = [
        [
            proof["node"],
            proof["driver"],
            "not tried" if proof["verdict"] == "not_run" else proof["verdict"],
            f"{proof['seconds']:g}",
            describe_proof(proof),
        ]
        for proof in sorted(proofs, key=lambda proof: (proof["node"], proof["driver"]))
    ]
    rows += [
        [target["node"], target["driver"], "skipped", "-", target["why"]] for target in result.get("left_out") or []
    ]
    lines = [render_table(("NODE", "DRIVER", "VERDICT", "SECONDS", "WHAT"), rows)]
    for remaining in result.get("left") or []:
        lines += ["", f"not deleted: {remaining['kind']} {remaining['name']}: {remaining['why']}"]
    for run in result.get("earlier") or []:
        done = f"kept: {run['lives']}" if run["lives"] else "deleted"
        lines += ["", f"earlier run {run['run']} in namespace {run['namespace']}: {done}"]
    proven = sum(proof["verdict"] == "proven" for proof in proofs)
    lines += ["", f"{proven} of {len(proofs)} volumes kept their data"]
    return "\n".join(lines)


def shorten_proofs(result: Mapping[str, Any]) -> dict[str, Any]:
    """The proofs that a failed task returns: their verdicts, and what failed."""
    proofs = []
    for proof in result.get("proofs") or ():
        verdict = {key: proof[key] for key in ("node", "driver", "verdict", "error", "remedy") if proof[key]}
        failed = [step for step in proof["steps"] if not step["ok"]]
        proofs.append({**verdict, **({"steps": failed} if failed else {})})
    return {"proofs": proofs}


def describe_proof(proof: Mapping[str, Any]) -> str:
    steps: Sequence[Mapping[str, Any]] = proof["steps"]
    wrote = next((step for step in steps if step["step"] == "write" and step["ok"]), None)
    sentence = []
    if wrote is not None:
        sentence.append(f"written on {wrote['node']}")
    for count, node in enumerate(proof["read_on"]):
        sentence.append(f"read back on {node}" + (" by its next pod" if count == 0 else ""))
    text = ", ".join(sentence)
    if proof["note"] and proof["verdict"] == "proven":
        text += f"; {proof['note']}"
    if proof["error"]:
        where = next((f" ({step['step']} on {step['node']})" for step in steps if not step["ok"]), "")
        text += (", then " if text else "") + f"{proof['error']}{where}"
    return text + (f" -> {proof['remedy']}" if proof["remedy"] else "")
