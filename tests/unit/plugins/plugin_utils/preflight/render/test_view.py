# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view that every form of a report shows: the sentence, the order of what to do, and how a long report stays short."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    create_view,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    Suppressed,
    Target,
    WorkloadVerdict,
)
from unit.plugins.plugin_utils.preflight.reports import finding, report, troubled, volume, workload

BLOCKER = finding("CSI-C14", "CSIDriver ebs.csi.aws.com")
DOUBT = finding("CSI-V22", "PersistentVolumeClaim lab/x", severity="warning", doubt=True)


def workloads(*answers: str) -> tuple[WorkloadVerdict, ...]:
    """A Deployment for each answer."""
    return tuple(workload(f"Deployment shop/web-{at}", answer) for at, answer in enumerate(answers))


@pytest.mark.parametrize(
    ("changes", "verdict", "answer"),
    [
        ({}, "No workloads", "No workload on Windows uses volumes."),
        ({"workloads": (workload(),)}, "Ready", "The only workload will start again."),
        ({"workloads": workloads("yes", "yes")}, "Ready", "All 2 workloads will start again."),
        (
            {"workloads": (workload(), workload("Job shop/a", "no", accepted="moved by hand")), "findings": ()},
            "Ready",
            "1 of 2 workloads will not start again; 1 of these is accepted.",
        ),
        (
            {"workloads": workloads("yes", "no"), "findings": (BLOCKER,)},
            "Not ready",
            "1 of 2 workloads will not start again.",
        ),
        (
            {
                "workloads": workloads("unknown", "no", "no"),
                "findings": (BLOCKER, DOUBT),
            },
            "Not ready",
            "2 of 3 workloads will not start again; 1 is unknown.",
        ),
        (
            {"workloads": workloads("unknown", "yes"), "findings": (DOUBT,)},
            "Unknown",
            "For 1 of 2 workloads it is unknown whether it will start again.",
        ),
        (
            {"workloads": workloads("unknown", "unknown"), "findings": (BLOCKER,)},
            "Unknown",
            "For all 2 workloads it is unknown whether they will start again.",
        ),
        # Findings explain the answers of the workloads, and make no verdict.
        ({"workloads": (workload(),), "findings": (DOUBT,)}, "Ready", "The only workload will start again."),
        (
            {"workloads": (workload(),), "target": Target(openshift="4.14", wmco="9.0.0")},
            "Ready",
            "With OpenShift 4.14, Windows Machine Config Operator 9.0.0, the only workload will start again.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_sentence_has_the_answer(changes: dict[str, Any], verdict: str, answer: str) -> None:
    view = create_view(report(**changes))
    assert (view.headline, view.answer) == (verdict, answer)


def test_causes_are_dealt_with_before_what_suffers_from_them_and_blockers_before_all() -> None:
    findings = [
        finding("CSI-W01", "Deployment shop/web"),
        finding("CSI-V13", "PersistentVolume pv-1"),
        finding("CSI-N44", "Node win-1"),
        finding("CSI-C14", "CSIDriver x"),
        finding("CSI-C15", "StorageClass x", severity="warning"),
        finding("CSI-C16", "OperatorCondition x", severity="note"),
        finding("CSI-V22", "PersistentVolumeClaim lab/x", severity="note", doubt=True),
    ]
    expected = ["CSI-C14", "CSI-N44", "CSI-V13", "CSI-W01", "CSI-C15", "CSI-V22"]
    # A note asks for nothing, unless it stands for something unknown.
    assert [group.id for group in create_view(report(findings=tuple(findings))).first] == expected
    assert [group.id for group in create_view(report(findings=tuple(reversed(findings)))).first] == expected


def test_of_equal_findings_the_one_with_more_workloads_comes_first() -> None:
    lost = [workload(f"Deployment shop/{name}", "no", findings=("CSI-V30",)) for name in "abc"]
    both = (finding("CSI-V13", "PersistentVolume pv-1"), finding("CSI-V30", "PersistentVolume pv-2"))
    view = create_view(report(findings=both, workloads=(*lost, workload(findings=("CSI-V13",)))))
    assert [(group.id, group.concerns) for group in view.first] == [("CSI-V30", "3 workloads"), ("CSI-V13", "")]


def test_findings_of_one_id_are_one_step_with_each_remedy_once() -> None:
    alike = [finding(about=f"Node win-{at}", remedy="drain it") for at in range(5)]
    (group,) = create_view(report(findings=(*alike, finding(about="Node win-9", remedy="kubectl drain win-9")))).first
    assert (group.total, group.remedy) == (6, "")
    assert [(one.remedy, len(one.findings)) for one in group.remedies] == [("Drain it.", 5), ("kubectl drain win-9", 1)]
    assert group.remedies[1].describe_objects(str, str) == "Node win-9: something about Node win-9"
    assert group.remedies[0].describe_objects(str, str) == "Node win-0; Node win-1; Node win-2 and 2 more"
    (group,) = create_view(report(findings=tuple(alike))).first
    assert group.remedy == "Drain it."


def test_the_worst_is_first_in_each_table() -> None:
    view = create_view(troubled())
    assert [line.mark for line in view.parts["workloads"].lines] == ["no", "unknown", "yes"]
    assert [line.cells[0] for line in view.parts["nodes"].lines] == ["win-2", "win-1"]
    assert [line.cells[1] for line in view.parts["volumes"].lines] == ["cannot be mounted", "unknown", "can be mounted"]


class TestLongReports:
    def test_a_table_has_its_worst_lines_and_the_number_of_the_others(self) -> None:
        bad = [volume(f"pv-{at}", "no", findings=("CSI-V13",)) for at in range(4)]
        volumes = [volume(f"good-{at}") for at in range(9)] + [volume("odd", "unknown"), *bad]
        table = create_view(report(volumes=tuple(volumes)), 5).parts["volumes"]
        assert [line.cells[0] for line in table.lines] == ["pv-0", "pv-1", "pv-2", "pv-3", "odd"]
        assert (table.hidden, sum(table.counts.values())) == (9, 14)
        assert table.text == "4 cannot be mounted, 1 unknown, 9 can be mounted"

    def test_of_a_finding_with_many_objects_some_are_shown_and_all_are_counted(self) -> None:
        view = create_view(report(findings=tuple(finding(about=f"PersistentVolume pv-{at:02}") for at in range(25))), 5)
        (group,) = view.groups
        assert (len(group.findings), group.total) == (20, 25)

    def test_of_many_accepted_findings_the_first_are_shown_with_their_number(self) -> None:
        part = create_view(report(suppressed=(Suppressed(finding(), "why", "2027-01-31"),) * 7), 5).parts["suppressed"]
        assert (len(part.lines), part.hidden) == (5, 2)


def test_every_field_of_a_target_has_a_text() -> None:
    asked = Target(**{one.name: "x" for one in fields(Target)})
    assert create_view(report(target=asked)).target.count(" x") == len(fields(Target))


def test_a_finding_that_another_step_resolves_is_no_step_of_its_own() -> None:
    on_1, on_2 = "Node win-1, driver ebs.csi.aws.com", "Node win-2, driver ebs.csi.aws.com"
    crashes, absent = finding("CSI-G11", on_1), finding("CSI-G20", on_1)
    stopped = finding("CSI-G43", on_1)
    assert [group.id for group in create_view(report(findings=(crashes, absent, stopped))).first] == ["CSI-G43"]
    shown = create_view(report(findings=(crashes, absent)))
    assert [group.id for group in shown.first] == ["CSI-G11"]
    assert [group.id for group in shown.groups] == ["CSI-G11", "CSI-G20"]
    # Where nothing else explains it, it is.
    shown = create_view(report(findings=(crashes, absent, finding("CSI-G20", on_2))))
    assert [group.id for group in shown.first] == ["CSI-G11", "CSI-G20"]
    assert [group.id for group in create_view(report(findings=(absent,))).first] == ["CSI-G20"]


def test_the_same_command_is_one_step_and_the_same_words_are_not() -> None:
    enable = "az aks update --enable-disk-driver"
    both = [finding(id_, f"{id_} x", remedy=enable) for id_ in ("CSI-D20", "CSI-G02")]
    assert [group.id for group in create_view(report(findings=tuple(both))).first] == ["CSI-D20"]
    both = [finding(id_, f"Node {id_}", remedy="add the host to the inventory") for id_ in ("CSI-N17", "CSI-G40")]
    assert [group.id for group in create_view(report(findings=tuple(both))).first] == ["CSI-N17", "CSI-G40"]


def test_a_claim_without_its_volume_has_a_line_by_its_own_name() -> None:
    shown = create_view(
        report(volumes=(volume("", "unknown", claim="shop/lost"),), taken_at="2026-11-20T08:00:00.4711+00:00")
    )
    assert [line.cells[0] for line in shown.parts["volumes"].lines] == ["claim shop/lost"]
    assert shown.taken_at == "2026-11-20 08:00:00 UTC"


def test_an_attachment_that_failed_comes_after_the_driver_that_does_not_work() -> None:
    names = ("CSI-N34", "CSI-G03", "CSI-N35", "CSI-N30")
    made = report(findings=tuple(finding(name, "Node win-3") for name in names))
    assert [group.id for group in create_view(made).groups] == ["CSI-N30", "CSI-G03", "CSI-N34", "CSI-N35"]


def test_a_volume_with_two_verdicts_counts_once_as_the_worse_one() -> None:
    volumes = [volume(f"pv-{at}", nodes=("win-1",)) for at in range(3)]
    volumes += [volume(f"pv-{at}", "no", nodes=("win-2",)) for at in range(2)]
    view = create_view(report(volumes=tuple(volumes)))
    assert dict(view.parts["volumes"].counts) == {"no": 2, "unknown": 0, "yes": 1}
    assert view.parts["volumes"].text == "2 cannot be mounted on some, 1 can be mounted"
    assert len(view.parts["volumes"].lines) == 5
