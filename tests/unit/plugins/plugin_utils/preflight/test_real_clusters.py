# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of five clusters, as their administrators read it before an upgrade."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_terminal
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import create_view
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET, Report, ReportFinding
from situations.imperfect_clusters import build_imperfect_cluster
from situations.real_clusters import REAL_CLUSTERS, RealCluster

CLUSTERS = pytest.mark.parametrize("cluster", REAL_CLUSTERS.values(), ids=REAL_CLUSTERS)


@CLUSTERS
@pytest.mark.parametrize("planned", [False, True], ids=["now", "upgraded"])
def test_a_cluster_that_works_is_ready_with_three_assumptions(cluster: RealCluster, planned: bool) -> None:
    target = cluster.target if planned else NO_TARGET
    report = evaluate(cluster.world(trouble=False).snapshot(), target)
    assert [(finding.id, finding.message) for finding in report.findings if finding.severity == "blocker"] == []
    assert report.verdict == "ready"
    assert len(report.workloads) == 5
    assert len(report.assumptions) <= 3


@pytest.mark.parametrize(
    ("name", "verdict", "remedy"),
    [
        ("vsphere", "unknown", "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"),
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
    return evaluate(build_imperfect_cluster(name).snapshot(), REAL_CLUSTERS[name].target)


def find_finding(report: Report, id_: str, words: str) -> ReportFinding:
    """The finding whose message has these words."""
    return next(finding for finding in report.findings if finding.id == id_ and words in finding.message)


def test_amounts_are_written_as_quantities() -> None:
    report = evaluate_imperfect_cluster("vsphere")
    message = "the node has less than 64Gi of memory in all; the largest Windows node has 32Gi"
    assert find_finding(report, "CSI-W20", "of memory").message == message


def test_a_quota_is_named_with_the_command_that_changes_it() -> None:
    finding = find_finding(evaluate_imperfect_cluster("eks"), "CSI-W20", "ResourceQuota")
    excess = "it allows 12Gi of requests.memory, 11Gi are used, and its pods need 2Gi more"
    assert finding.message == f"ResourceQuota erp/erp-quota refuses its pods: {excess}"
    assert finding.remedy == "raise the quota: kubectl -n erp edit resourcequota erp-quota"


def test_a_volume_that_no_node_reaches_says_where_it_is() -> None:
    finding = find_finding(evaluate_imperfect_cluster("aks"), "CSI-W20", "pvc-ftp-data")
    place = "topology.disk.csi.azure.com/zone in (westeurope-3)"
    assert finding.message == f"erp/ftp-data: nodeAffinity of volume pvc-ftp-data ({place}) does not match the node"


def test_the_first_step_is_the_plugin_that_most_workloads_need() -> None:
    steps = [(group.id, group.concerns) for group in create_view(evaluate_imperfect_cluster("eks")).first]
    assert steps[:2] == [("CSI-G11", "5 workloads and 1 node"), ("CSI-N44", "1 workload and 2 nodes")]


def test_the_failure_of_a_driver_does_not_hide_that_of_another() -> None:
    node = evaluate_imperfect_cluster("gke").nodes[1]
    assert node.because.startswith("CSI-N44: nothing deploys filestore.csi.storage.gke.io on Windows nodes; CSI-G11: ")


def test_a_cause_is_reported_once_and_referred_to_by_its_id() -> None:
    text = " ".join(render_terminal(evaluate_imperfect_cluster("gke"), 500).split())
    # In the step, in the table of nodes, and at the end.
    assert text.count("container csi-driver-registrar waits") == 3
    assert "pd.csi.storage.gke.io does not work on gke-erp-win-0b1c2d3e-t9ws: CSI-G11; on gke-erp-win-" in text


def test_a_disk_in_use_elsewhere_is_no_doubt_where_no_node_is_left() -> None:
    finding = find_finding(evaluate_imperfect_cluster("gke"), "CSI-V53", "documents-0")
    assert (finding.severity, finding.doubt) == ("blocker", False)


@pytest.mark.parametrize(("name", "switch"), [("disk", "--enable-disk-driver"), ("file", "--enable-file-driver")])
def test_a_managed_driver_is_enabled_and_never_installed_beside(name: str, switch: str) -> None:
    report = (
        evaluate(REAL_CLUSTERS["aks"].world(trouble=True).snapshot())
        if name == "disk"
        else evaluate_imperfect_cluster("aks")
    )
    remedies = [group.remedy for group in create_view(report).first if switch in group.remedy]
    assert remedies == [f"az aks update --resource-group GROUP --name CLUSTER {switch}"]
    assert "nstall the driver first" not in render_terminal(report)


def test_workloads_with_one_cause_have_one_reason() -> None:
    workloads = evaluate_imperfect_cluster("openshift").workloads
    running = {f"Deployment erp/{name}" for name in ("documents", "ftp", "legacy", "print-server")}
    reasons = {workload.because for workload in workloads if workload.workload in running}
    cause = "ResourceQuota erp/erp-quota refuses its pods: it allows 2 of requests.cpu, 2.5 are used"
    assert reasons == {f"the next pod is blocked at step bind on every Windows node: {cause}"}


def test_a_node_that_surely_stops_the_upgrade_is_named_whatever_happens_before() -> None:
    report = evaluate_imperfect_cluster("eks")
    assert report.roll is not None
    assert [node.answer for node in report.roll.nodes] == ["unknown", "no"]
    stop = "An upgrade that drains node by node stops at node ip-10-0-56-98.eu-west-1.compute.internal or before."
    assert create_view(report).stop == stop


def test_node_names_are_not_broken() -> None:
    text = render_terminal(evaluate_imperfect_cluster("eks"), 60)
    assert "eu-\n" not in text


def test_a_driver_that_fails_on_several_nodes_says_so() -> None:
    text = " ".join(render_terminal(evaluate_imperfect_cluster("eks"), 500).split())
    first = "efs.csi.aws.com does not work on ip-10-0-34-21.eu-west-1.compute.internal and 1 more: CSI-N44"
    assert f"step stage on every Windows node: {first}" in text


def test_a_volume_that_works_on_another_node_is_said_to_fail_on_some() -> None:
    volumes = create_view(evaluate_imperfect_cluster("gke")).parts["volumes"]
    assert volumes.text == "1 cannot be mounted, 6 cannot be mounted on some"


def test_an_assumption_names_what_a_pod_has_of_a_node() -> None:
    assumptions = {one.kind: one.message for one in evaluate_imperfect_cluster("vsphere").assumptions}
    kept = "The upgrade keeps the name and the local disks of each node, and the labels that pods select"
    assert assumptions["nodes"] == f"{kept}: 1 node reference (kubernetes.io/hostname of Deployment erp/documents)"


def test_where_the_upgrade_stops_is_read_before_the_assumptions() -> None:
    parts = [*create_view(evaluate_imperfect_cluster("vsphere")).parts]
    assert parts.index("roll") < parts.index("assumptions")
