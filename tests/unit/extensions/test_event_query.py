# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The platform counts nodes that a job manages, and none that it only reads or plans to change."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import (
    Evaluation,
    GateProblem,
    NodeEvaluation,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate_report import describe_evaluation
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import NodeEntry

ROOT = Path(__file__).parents[3]
QUERIES = yaml.safe_load((ROOT / "extensions" / "audit" / "event_query.yml").read_text(encoding="utf-8"))


def counted(action: str, result: dict[str, Any]) -> list[str]:
    """Names of the nodes that a result counts, as the platform asks: a record without canonical facts is dropped."""
    jq = importlib.import_module("jq")
    found = jq.compile(QUERIES[f"kubewin.csi.{action}"]["query"]).input_value(result).all()
    assert all(one["canonical_facts"] == {"host_name": one["name"]} for one in found)
    return [one["name"] for one in found]


def test_every_query_is_of_an_action_of_this_collection() -> None:
    for name in QUERIES:
        namespace, collection, action = name.split(".")
        assert (namespace, collection) == ("kubewin", "csi")
        assert (ROOT / "plugins" / "action" / f"{action}.py").is_file()


def test_nodes_that_passed_the_gate_are_counted() -> None:
    verdicts = {"win-1": "green", "win-2": "red", "win-3": "unproven", "win-4": "waiting"}
    evaluation = Evaluation(
        tuple(made(name, verdict) for name, verdict in verdicts.items()), (("win-9", "no host"),), ()
    )
    assert counted("gate", {"gate": describe_evaluation(evaluation)}) == ["win-1", "win-3"]
    assert counted("gate", {"failed": True, "msg": "the API server cannot be asked"}) == []


def made(name: str, verdict: Any) -> NodeEvaluation:
    problems = () if verdict == "green" else (GateProblem("CSI-G01", verdict, "it lacks something", "wait"),)
    return NodeEvaluation(name, f"plugin-{name}", problems)


@pytest.mark.parametrize(
    ("outcome", "names"),
    [("tasks", ["win-1", "win-2"]), ("finished", ["win-1", "win-2"]), ("planned", [])],
)
def test_nodes_that_an_upgrade_has_begun_are_counted(outcome: str, names: list[str]) -> None:
    steps = {"win-1": "done", "win-2": "drain", "win-3": "waiting"}
    journal = [{**asdict(entry(name)), "step": step} for name, step in steps.items()]
    assert counted("upgrade", {"outcome": outcome, "journal": journal}) == names
    assert counted("upgrade", {"failed": True, "outcome": outcome}) == []


def entry(name: str) -> NodeEntry:
    return NodeEntry(node=name, batch=0)
