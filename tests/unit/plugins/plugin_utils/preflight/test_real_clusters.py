# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of five clusters, as their administrators read it before an upgrade."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import create_view
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET, Finding, Report
from situations.imperfect_clusters import build_imperfect_cluster
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


@pytest.mark.parametrize(
    ("name", "verdict", "remedy"),
    [
        ("vsphere", "unknown", "Run enable_csi.yml for this host, which starts csi-proxy and checks its pipes."),
        ("eks", "blocked", "Create the StorageClass, or a claim that names another one."),
        ("aks", "blocked", "az aks update --resource-group GROUP --name CLUSTER --enable-disk-driver"),
        ("gke", "unknown", "kubectl -n kube-system logs pdcsi-node-windows-gke-erp-win-0b1c2d3e-t9ws "),
        (
            "openshift",
            "unknown",
            "kubectl -n openshift-cluster-csi-drivers logs vsphere-csi-node-windows-winworker-4hx9p ",
        ),
    ],
)
def test_the_first_step_is_about_the_trouble_of_the_cluster(name: str, verdict: str, remedy: str) -> None:
    report = evaluate(REAL_CLUSTERS[name].world(trouble=True).snapshot())
    assert report.verdict == verdict
    assert create_view(report).first[0].remedy.startswith(remedy)
    # Six volumes are six, on however many nodes they may be.
    assert sum(create_view(report).parts["volumes"].counts.values()) == 6


def evaluate_imperfect_cluster(name: str) -> Report:
    """The report of a cluster with several troubles, for its next upgrade."""
    return evaluate(build_imperfect_cluster(name).snapshot(), Options(target=REAL_CLUSTERS[name].target))


def find_finding(report: Report, id_: str, words: str) -> Finding:
    """The finding whose message has these words."""
    return next(finding for finding in report.findings if finding.id == id_ and words in finding.message)


def test_amounts_are_written_as_quantities() -> None:
    report = evaluate_imperfect_cluster("vsphere")
    assert find_finding(report, "CSI-W20", "of memory").message == "the node has less than 64Gi of memory in all"


def test_a_quota_is_named_with_the_command_that_changes_it() -> None:
    finding = find_finding(evaluate_imperfect_cluster("eks"), "CSI-W20", "ResourceQuota")
    excess = "it allows 12Gi of requests.memory, 11Gi are used, and 2Gi more are needed"
    assert finding.message == f"ResourceQuota erp/erp-quota refuses its pods: {excess}"
    assert finding.remedy == "raise the quota: kubectl -n erp edit resourcequota erp-quota"
