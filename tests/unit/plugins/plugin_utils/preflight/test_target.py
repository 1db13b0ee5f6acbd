# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a target comes to, and what is refused as one."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.target import choose_versions, simulate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Target
from situations.base import kubelets, on_windows
from situations.cluster import SHOP, healthy, pod_spec, volume, windows_nodes, workload


def test_an_openshift_version_implies_its_kubernetes_and_its_operator() -> None:
    found = choose_versions(Target(openshift="4.14.2"))
    assert (str(found.control), str(found.kubelet), str(found.operator)) == ("1.27.0", "1.27.0", "9.0.0")
    # The operator may be held back, and its nodes with it.
    held = choose_versions(Target(openshift="4.14.2", wmco="8.1.0"))
    assert (str(held.control), str(held.kubelet)) == ("1.27.0", "1.26.0")


@pytest.mark.parametrize(
    ("operator", "in_tree_on_windows"),
    [
        ("7.0.1", set()),
        ("7.1.0", {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}),
        ("8.1.0", {"kubernetes.io/vsphere-volume"}),
        ("9.0.0", set()),
        ("10.15.3", set()),
    ],
)
def test_windows_follows_its_operator_and_not_the_cluster(operator: str, in_tree_on_windows: set[str]) -> None:
    line = wmco.find_line_of_operator(parse(operator))
    assert line is not None
    imagined = simulate(Index(healthy().snapshot()), Target(openshift=f"{line.openshift}.1", wmco=operator))
    kubelet = parse(line.kubernetes)
    reported = next(one.migrated for one in imagined.csi_nodes if one.name == "win-1")
    assert reported is not None
    on = {one.plugin for one in in_tree.PLUGINS if one.is_migrated_by_default(kubelet)}
    assert on - set(reported) == in_tree_on_windows
    assert next(one.kubelet for one in imagined.nodes if one.name == "win-1") == f"v{kubelet}"


def test_linux_nodes_stay_as_they_are() -> None:
    before = healthy().snapshot()
    after = simulate(Index(before), Target(kubernetes="1.40"))
    linux = [one for one in before.nodes if not one.windows]
    assert [one for one in after.nodes if not one.windows] == linux


def test_the_report_names_the_target() -> None:
    report = evaluate(healthy().snapshot(), Target(kubernetes="1.37"))
    assert report.as_dict()["target"] == {"kubernetes": "1.37"}
    assert report.kubernetes == "v1.36.3"


def test_on_the_way_to_a_target_only_blockers_that_remain_block() -> None:
    world = healthy()
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))
    snapshot, ahead = world.snapshot(), Target(kubernetes="1.34")
    now = evaluate(snapshot)
    assert now.verdict == "blocked"
    assert {one.id for one in now.findings if one.severity == "blocker"} == {"CSI-V50"}
    on_the_way = evaluate(snapshot, ahead, before=True)
    assert not on_the_way.target
    assert "CSI-V50" in {one.id for one in on_the_way.findings if one.severity == "warning"}
    assert on_the_way.verdict != "blocked"
    # One that changes no kubelet leaves it in the way.
    assert evaluate(snapshot, Target(openshift="6.4"), before=True).verdict == "blocked"


def test_on_the_way_to_a_target_a_workload_that_something_else_stops_there_is_stopped() -> None:
    world = healthy()
    world.kubernetes = "v1.30.4"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))
    for kind, name in (("Deployment", "legacy"), ("ReplicaSet", "legacy-6d4f"), ("Pod", "legacy-0")):
        world.remove(kind, name, SHOP)
    for node in windows_nodes(world):
        node["status"]["volumesInUse"] = []
    # The disk needs a later kubelet, and 1.32.0 does not mount the share.
    share = {"azureFile": {"secretName": "s", "shareName": "x", "secretNamespace": SHOP}}
    volume(world, "pv-old", share, "old", accessModes=["ReadWriteMany"])
    workload(world, "Deployment", "both", pod_spec("legacy", "old"), replicas=1)
    snapshot, name = world.snapshot(), "Deployment shop/both"
    for kubernetes, expected in (("1.32.0", False), ("1.33.0", True)):
        report = evaluate(snapshot, Target(kubernetes=kubernetes), before=True)
        assert {one.workload: bool(one.accepted) for one in report.workloads}[name] is expected


def test_on_the_way_to_a_target_a_workload_that_is_unknown_there_is_unknown() -> None:
    world = healthy()
    world.kubernetes = "v1.30.4"
    kubelets(world, "v1.26.9", migrated=("kubernetes.io/azure-disk", "kubernetes.io/azure-file"))
    # Before an upgrade by WMCO nobody has read the hosts.
    world.hosts.clear()
    snapshot = world.snapshot()
    answers = {one.workload: one for one in evaluate(snapshot).workloads}
    report = evaluate(snapshot, Target(kubernetes="1.33.0"), before=True)
    before = {one.workload: one for one in report.workloads}
    legacy = "Deployment shop/legacy"
    # The report has each finding that the verdict names.
    assert set(before[legacy].findings) <= {finding.id for finding in report.findings}
    assert (answers[legacy].starts_again, before[legacy].starts_again, before[legacy].accepted) == ("no", "unknown", "")
    assert {cause.id for cause in before[legacy].causes} == {"CSI-G40"}


@pytest.mark.parametrize(("kubernetes", "expected"), [("1.32", set()), ("1.32.0", {"CSI-V20"})])
def test_a_target_without_a_patch_release_has_no_issue_of_the_first_one(kubernetes: str, expected: set[str]) -> None:
    world = healthy()
    on_windows(world, "old", {"azureFile": {"secretName": "s", "shareName": "x", "secretNamespace": "shop"}})
    kubelets(world, "v1.31.4")
    report = evaluate(world.snapshot(), Target(kubernetes=kubernetes))
    assert {finding.id for finding in report.findings} & {"CSI-V20"} == expected
