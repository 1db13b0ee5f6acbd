# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of five clusters, as their administrators read it before an upgrade."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET
from situations.real_clusters import REAL_CLUSTERS, RealCluster

CLUSTERS = pytest.mark.parametrize("cluster", REAL_CLUSTERS.values(), ids=REAL_CLUSTERS)


@CLUSTERS
@pytest.mark.parametrize("planned", [False, True], ids=["now", "upgraded"])
def test_a_cluster_that_works_is_ready_with_three_assumptions(cluster: RealCluster, planned: bool) -> None:
    options = Options(target=cluster.target if planned else NO_TARGET)
    report = evaluate(cluster.world(trouble=False).snapshot(), options)
    assert [(finding.id, finding.message) for finding in report.findings if finding.severity == "blocker"] == []
    assert report.verdict == "ready"
    assert len(report.workloads) == 5
    assert len(report.assumptions) <= 3


@CLUSTERS
def test_the_trouble_of_a_cluster_is_in_its_verdict(cluster: RealCluster) -> None:
    assert evaluate(cluster.world(trouble=True).snapshot()).verdict in ("blocked", "unknown")
