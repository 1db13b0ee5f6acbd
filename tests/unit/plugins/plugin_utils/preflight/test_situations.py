# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every named situation makes exactly the findings it must, and a healthy cluster makes none."""

from __future__ import annotations

from collections import defaultdict

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report, WorkloadVerdict
from situations.cluster import healthy
from situations.named import SITUATIONS, Situation, report_of


def test_a_healthy_cluster_gives_no_finding() -> None:
    report = evaluate(healthy().snapshot())
    assert not report.findings, "narrow the rule, or correct the healthy cluster in tests/situations/cluster.py"
    assert report.verdict == "ready"
    assert {one.ok for one in report.volumes} == {"yes"}
    assert {one.starts_again for one in report.workloads} == {"yes"}
    assert {one.ok for one in report.nodes} == {"yes"}


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_the_answers_of_the_workloads_make_the_verdict(planted: Situation) -> None:
    report = report_of(planted.name)
    answers = {one.starts_again for one in report.workloads}
    expected = "blocked" if "no" in answers else "unknown" if "unknown" in answers else "ready"
    assert report.verdict == (expected if answers else "no_workloads")
    objects = {(one.id, one.object) for one in report.findings}
    for workload in report.workloads:
        assert bool(workload.causes) == (workload.starts_again != "yes"), workload
        assert {(one.id, one.object) for one in workload.causes} <= objects, workload
    if report.verdict == "ready":
        assert not [one for one in report.findings if one.severity == "blocker" or one.doubt]


def test_a_cluster_without_workloads_is_not_called_ready() -> None:
    world = healthy()
    kinds = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "PersistentVolumeClaim", "PersistentVolume")
    world.objects = [
        one for one in world.objects if one["kind"] not in kinds or one["metadata"].get("namespace", "shop") != "shop"
    ]
    report = evaluate(world.snapshot())
    assert (report.workloads, report.verdict) == ((), "no_workloads")
    world.unread.append(Unread("deployments", "this account may not list deployments"))
    assert evaluate(world.snapshot()).verdict == "unknown"


def test_there_are_situations_enough() -> None:
    assert len(SITUATIONS) >= 60


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_it_is_distinguished_from_health_and_from_every_other(planted: Situation) -> None:
    report = report_of(planted.name)
    assert {one.id for one in report.findings} == planted.expected, "\n".join(
        f"{one.id} {one.object}: {one.message} [{'; '.join(one.evidence)}]" for one in report.findings
    )
    classes: dict[str, set[str]] = defaultdict(set)
    for one in report.volumes:
        classes[one.volume or one.claim].add(one.ok)
    for name, words in planted.classes.items():
        assert classes[name] == words, name
    starts_again = {one.workload: one for one in report.workloads}
    for name, answer in planted.starts_again.items():
        assert starts_again[name].starts_again == answer, starts_again[name]
    # The pod that has a volume for one node keeps others from it, and starts again itself.
    reported = (one for one in report.findings if one.id != "CSI-V53")
    against = {one.object for one in reported if one.severity == "blocker" or one.doubt}
    for workload in report.workloads:
        if workload.starts_again == "yes":
            assert not against & _objects(report, workload), workload


def _objects(report: Report, workload: WorkloadVerdict) -> set[str]:
    """What findings call a workload, its volumes and their drivers."""
    own = [one for one in report.volumes if one.claim in workload.volumes]
    return {
        workload.workload,
        *(f"PersistentVolumeClaim {one.claim}" for one in own),
        *(f"PersistentVolume {one.volume}" for one in own),
        *(f"{kind} {one.driver}" for one in own for kind in ("CSIDriver", "Driver")),
    }


def test_only_a_claim_that_waits_makes_a_controller_of_shares_a_blocker() -> None:
    severities = [
        evaluate(SITUATIONS[f"a_controller_of_shares_that_does_not_run_while_{case}"].world().snapshot())
        .findings[0]
        .severity
        for case in ("no_claim_waits", "a_claim_waits")
    ]
    assert severities == ["warning", "blocker"]
