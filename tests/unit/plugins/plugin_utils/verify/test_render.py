# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of a proof: a line for each driver and node, and nothing that stays is kept quiet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import RunScope
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.verdict import (
    EarlierRun,
    Proof,
    RemainingObject,
    VerifyStep,
    describe_proof,
    render_report,
    shorten_proof,
)

STEPS = (VerifyStep("write", "win-1", 0.1, True, "x"), VerifyStep("read", "win-1", 0.1, True, "x"))
PROOF = Proof("vsphere", "win-1", "fast", "proven", STEPS, read_on=("win-1", "win-2"))


def proof(**changes: Any) -> Proof:
    return replace(PROOF, **changes)


def test_a_proof_names_its_nodes() -> None:
    assert describe_proof(proof()) == "written on win-1, read back on win-1 by its next pod, read back on win-2"
    assert describe_proof(proof(read_on=("win-1",), note="there is no other node to read it on")).endswith(
        "by its next pod; there is no other node to read it on"
    )


def test_a_failure_reports_progress_step_and_remedy() -> None:
    bad = VerifyStep("restart", "win-1", 9, False, "FailedMount")
    found = proof(verdict="failed", read_on=(), error="FailedMount", remedy="start it", steps=(*STEPS, bad))
    assert describe_proof(found) == "written on win-1, then FailedMount (restart on win-1) -> start it"
    assert [step["step"] for step in shorten_proof(found)["steps"]] == ["restart"]
    assert shorten_proof(PROOF) == {"node": "win-1", "driver": "vsphere", "verdict": "proven"}


def test_the_report_lists_everything() -> None:
    text = render_report(
        [proof(node="win-2"), PROOF, proof(node="win-3", verdict="not_run", steps=(), read_on=())],
        [("vsphere", "win-4", "it is cordoned")],
        [RemainingObject("PersistentVolume", "x", "pvc-1", "Retain", True)],
        [EarlierRun(RunScope("a", "x", True), ""), EarlierRun(RunScope("b", "y", True), "renewed 3 s ago")],
    )
    lines = text.splitlines()
    assert lines[0].split() == ["NODE", "DRIVER", "VERDICT", "SECONDS", "WHAT"]
    assert [line.split()[0] for line in lines[1:5]] == ["win-1", "win-2", "win-3", "win-4"]
    assert "not tried" in lines[3]
    assert lines[4].split()[2:] == ["skipped", "-", "it", "is", "cordoned"]
    assert "not deleted: PersistentVolume pvc-1: Retain" in lines
    assert "earlier run a in namespace x: deleted" in lines
    assert "earlier run b in namespace y: kept: renewed 3 s ago" in lines
    assert lines[-1] == "2 of 3 volumes kept their data"
