# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every named situation makes exactly the findings it must, and a healthy cluster makes none."""

from __future__ import annotations

from collections import defaultdict

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.judge import Options, judge
from situations.cluster import healthy
from situations.named import SITUATIONS, Situation


def test_a_healthy_cluster_gives_no_finding() -> None:
    report = judge(healthy().snapshot())
    assert not report.findings
    assert report.verdict == "ready"
    assert {one.verdict for one in report.volumes} == {"NATIVE_CSI", "MIGRATED_OK"}
    assert {one.comes_back for one in report.workloads} == {"yes"}
    assert {one.ok for one in report.nodes} == {"yes"}


def test_there_are_situations_enough() -> None:
    assert len(SITUATIONS) >= 60


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_it_is_told_from_health_and_from_every_other(planted: Situation) -> None:
    report = judge(planted.world().snapshot(), Options(target=planted.target))
    assert {one.id for one in report.findings} == planted.expected, "\n".join(
        f"{one.id} {one.object}: {one.message} [{'; '.join(one.evidence)}]" for one in report.findings
    )
    classes: dict[str, set[str]] = defaultdict(set)
    for one in report.volumes:
        classes[one.volume or one.claim].add(one.verdict)
    for name, words in planted.classes.items():
        assert classes[name] == words, name
    comes_back = {one.workload: one for one in report.workloads}
    for name, answer in planted.comes_back.items():
        assert comes_back[name].comes_back == answer, comes_back[name]
