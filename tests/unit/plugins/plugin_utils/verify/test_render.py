# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of a proof: a line for each driver and node, and nothing that stays is kept quiet."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.render import describe_proof, render_report


def proof(**changes: Any) -> dict[str, Any]:
    steps = [
        {"step": "write", "node": "win-1", "seconds": 0.1, "ok": True, "detail": "x"},
        {"step": "read", "node": "win-1", "seconds": 0.1, "ok": True, "detail": "x"},
    ]
    known: dict[str, Any] = {
        "driver": "vsphere", "node": "win-1", "verdict": "proven", "seconds": 2.5, "steps": steps, "read_on": ["win-1", "win-2"],
        "note": "", "error": "", "remedy": "",
    }  # fmt: skip
    return {**known, **changes}


def test_a_proof_names_its_nodes() -> None:
    assert describe_proof(proof()) == "written on win-1, read back on win-1 by its next pod, read back on win-2"
    assert describe_proof(proof(read_on=["win-1"], note="there is no other node to read it on")).endswith(
        "by its next pod; there is no other node to read it on"
    )


def test_a_failure_reports_progress_step_and_remedy() -> None:
    bad = {"step": "restart", "node": "win-1", "seconds": 9, "ok": False, "detail": "FailedMount"}
    found = proof(verdict="failed", read_on=[], error="FailedMount", remedy="start it", steps=[*proof()["steps"], bad])
    assert describe_proof(found) == "written on win-1, then FailedMount (restart on win-1) -> start it"


def test_the_report_lists_everything() -> None:
    text = render_report(
        {
            "proofs": [proof(node="win-2"), proof(), proof(node="win-3", verdict="not_run", steps=[], read_on=[])],
            "left_out": [{"driver": "vsphere", "node": "win-4", "why": "it is cordoned"}],
            "left": [{"kind": "PersistentVolume", "name": "pvc-1", "why": "Retain", "kept": True}],
            "earlier": [
                {"run": "a", "namespace": "x", "lives": ""},
                {"run": "b", "namespace": "y", "lives": "renewed 3 s ago"},
            ],
        }
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
