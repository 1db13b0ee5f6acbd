# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON of a report conforms to the shipped schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import verdict
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its stubs are a package of their own
from situations.named import SITUATIONS, Situation, report_of
from unit.plugins.plugin_utils.preflight.reports import report, troubled

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[5] / "docs" / "schemas" / f"readiness-report-{verdict.REPORT_VERSION}.json").read_text(
        encoding="utf-8"
    )
)


def complaints(written: dict[str, Any]) -> list[str]:
    """What the schema has against a report."""
    return [f"{one.json_path}: {one.message}" for one in Draft202012Validator(SCHEMA).iter_errors(written)]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["report_version"] == {"const": verdict.REPORT_VERSION}


@pytest.mark.parametrize("evaluated", [report(), troubled()], ids=["nothing there", "some of everything"])
def test_a_report_conforms_to_the_schema_also_after_json(evaluated: verdict.Report) -> None:
    assert complaints(json.loads(json.dumps(evaluated.as_dict()))) == []


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_the_report_of_every_situation_conforms_to_the_schema(planted: Situation) -> None:
    assert complaints(report_of(planted.name).as_dict()) == []


def test_an_unannounced_field_is_noticed() -> None:
    for path in ((), ("findings", 0), ("nodes", 0), ("workloads", 0), ("volumes", 0)):
        written = troubled().as_dict()
        place: Any = written
        for step in path:
            place = place[step]
        place["new"] = True
        assert len(complaints(written)) == 1, path


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (verdict.Severity, ("$defs", "finding", "properties", "severity")),
        (verdict.Overall, ("properties", "verdict")),
        (verdict.Answer, ("$defs", "answer")),
        (verdict.System, ("$defs", "workload", "properties", "runs_on")),
    ],
    ids=["severity", "verdict", "answer", "runs on"],
)
def test_every_word_that_a_report_may_use_is_in_the_schema_and_no_other(words: Any, place: tuple[str, ...]) -> None:
    found: Any = SCHEMA
    for step in place:
        found = found[step]
    assert tuple(found["enum"]) == get_args(words)
