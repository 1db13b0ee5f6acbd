# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Healthy clusters are ready, whoever deployed the node plugin, and their users are told nothing that they cannot act on."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.judge import judge
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.verdict import Report
from situations.deployed import deployed
from unit.roles.manifests import Case, cases

OURS = list(cases(1))


def told(report: Report) -> str:
    return "\n".join(
        [
            *(f"{one.id} {one.severity} {one.object}: {one.message}" for one in report.findings),
            *(f"{one.workload}: {one.comes_back} {one.because}" for one in report.workloads),
        ]
    )


def test_there_is_one_for_each_driver_and_mode() -> None:
    assert len(OURS) == 11


@pytest.mark.parametrize("case", OURS, ids=[one.name for one in OURS])
def test_what_our_templates_deploy_is_ready(case: Case) -> None:
    report = judge(deployed(case).snapshot())
    assert not report.findings, told(report)
    assert report.verdict == "ready", told(report)
    assert {one.comes_back for one in report.workloads} == {"yes"}
    assert {one.verdict for one in report.volumes} == {"NATIVE_CSI"}
