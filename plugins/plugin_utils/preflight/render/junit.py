# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as JUnit XML, which CI systems show: a test case for each workload, node and assumption. Pure.

Not ready is a failure, unknown an error; an accepted workload and an assumption are skipped. Form:
https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from ..verdict import Report
from .view import CHECKS, format_headline
from .words import format_number, plain

_RESULTS = {"no": "failure", "unknown": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class JunitCase:
    """A test case. answer: yes, no, unknown or skipped."""

    name: str
    answer: str
    reason: str
    remedies: tuple[str, ...]


def render_junit(report: Report) -> bytes:
    """The XML."""
    remedies = {finding.id: finding.remedy for finding in reversed(report.findings)}
    suites = {
        "workloads": [
            JunitCase(
                workload.workload,
                "skipped" if workload.accepted else workload.starts_again,
                workload.accepted or workload.because,
                tuple(remedies.get(cause.id, "") for cause in workload.causes),
            )
            for workload in report.workloads
        ],
        "nodes": [
            JunitCase(node.node, node.ok, node.because, tuple(remedies.get(id_, "") for id_ in node.findings))
            for node in report.nodes
        ],
        "assumptions": [
            JunitCase(
                assumption.message,
                "skipped",
                f"assumed for {format_number(len(assumption.workloads), 'workload')}",
                (CHECKS.get(assumption.kind, ""),),
            )
            for assumption in report.assumptions
        ],
    }
    root = Element("testsuites", name=plain(f"{format_headline(report)}: {report.cluster or 'cluster'}"))
    for name, cases in suites.items():
        _add_suite(root, name, cases)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode").encode()


def _add_suite(root: Element, name: str, cases: Sequence[JunitCase]) -> None:
    answers = Counter(case.answer for case in cases)
    suite = SubElement(
        root, "testsuite", name=name, tests=str(len(cases)), failures=str(answers["no"]),
        errors=str(answers["unknown"]), skipped=str(answers["skipped"]),
    )  # fmt: skip
    for case in cases:
        element = SubElement(suite, "testcase", classname=f"readiness.{name}", name=plain(case.name))
        if case.answer in _RESULTS:
            result = SubElement(element, _RESULTS[case.answer], message=plain(case.reason))
            result.text = "\n".join(plain(remedy) for remedy in dict.fromkeys(case.remedies) if remedy)
