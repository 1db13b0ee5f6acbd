# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as JUnit XML, which CI systems show: a test case for each workload, node and assumption. Pure.

Not ready is a failure, unknown an error; an accepted workload and an assumption are skipped. Form:
https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from ..verdict import Report
from .text_format import format_number, plain
from .view import CHECKS, format_headline

_RESULTS = {"no": "failure", "unknown": "error", "skipped": "skipped"}


# A test case: its name, yes, no, unknown or skipped, the reason, and what helps.
JunitCase = tuple[str, str, str, Iterable[str]]


def render_junit(report: Report) -> bytes:
    """The XML."""
    remedies = {finding.id: finding.remedy for finding in reversed(report.findings)}
    suites: dict[str, list[JunitCase]] = {
        "workloads": [
            (
                workload.workload,
                "skipped" if workload.accepted else workload.starts_again,
                workload.accepted or workload.because,
                [remedies.get(cause.id, "") for cause in workload.causes],
            )
            for workload in report.workloads
        ],
        "nodes": [
            (node.node, node.ok, node.because, [remedies.get(id_, "") for id_ in node.findings])
            for node in report.nodes
        ],
        "assumptions": [
            (
                assumption.message,
                "skipped",
                f"assumed for {format_number(len(assumption.workloads), 'workload')}",
                [CHECKS.get(assumption.kind, "")],
            )
            for assumption in report.assumptions
        ],
    }
    root = Element("testsuites", name=plain(f"{format_headline(report)}: {report.cluster or 'cluster'}"))
    for name, cases in suites.items():
        _add_suite(root, name, cases)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode").encode()


def _add_suite(root: Element, name: str, cases: Sequence[JunitCase]) -> None:
    answers = Counter(answer for _name, answer, _reason, _remedies in cases)
    suite = SubElement(
        root, "testsuite", name=name, tests=str(len(cases)), failures=str(answers["no"]),
        errors=str(answers["unknown"]), skipped=str(answers["skipped"]),
    )  # fmt: skip
    for title, answer, reason, remedies in cases:
        element = SubElement(suite, "testcase", classname=f"readiness.{name}", name=plain(title))
        if answer in _RESULTS:
            result = SubElement(element, _RESULTS[answer], message=plain(reason))
            result.text = "\n".join(plain(remedy) for remedy in dict.fromkeys(remedies) if remedy)
