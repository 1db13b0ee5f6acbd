# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A volume's verdicts name their nodes, its users and the evidence."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report, VolumeVerdict
from situations.cluster import SHOP, claim_of, healthy, pod_spec, workload
from situations.named import SITUATIONS


def rows(report: Report, volume: str) -> dict[str, VolumeVerdict]:
    return {one.ok: one for one in report.volumes if one.volume == volume}


def test_each_node_is_evaluated_by_its_own_kubelet() -> None:
    report = evaluate(SITUATIONS["one_node_of_two_was_upgraded"].world().snapshot())
    found = sorted((one for one in report.volumes if one.volume == "pv-legacy"), key=lambda one: one.nodes)
    assert [one.nodes for one in found] == [("win-1",), ("win-2",)]
    assert "kubelet v1.26.9 on win-1 mounts vsphereVolume in-tree" in found[0].because


def test_a_zone_leaves_only_the_nodes_in_it() -> None:
    found = rows(evaluate(SITUATIONS["an_old_zone_label_that_the_node_has"].world().snapshot()), "pv-zone")
    assert found["yes"].nodes == ("win-2",)


def test_an_attached_volume_names_its_claim() -> None:
    world = SITUATIONS["a_volume_attached_to_windows_that_nothing_known_uses"].world()
    found = rows(evaluate(world.snapshot()), "pv-orphan")["yes"]
    assert (found.claim, found.nodes) == ("shop/orphan", ("win-1",))


def test_annotations_of_csi_migration_are_reported_and_decide_nothing() -> None:
    world = healthy()
    reported = " ".join(rows(evaluate(world.snapshot()), "pv-legacy")["yes"].evidence)
    assert "migrated-to csi.vsphere.vmware.com" in reported
    world.get("PersistentVolume", "pv-legacy")["metadata"]["annotations"] = {}
    found = rows(evaluate(world.snapshot()), "pv-legacy")["yes"]
    assert any("static" in line for line in found.evidence)


@pytest.mark.parametrize("name", ["a_stale_entry_while_the_plugin_crashes", "no_host_was_read"])
def test_a_volume_that_works_on_one_node_only_has_the_reason_for_the_other(name: str) -> None:
    found = rows(evaluate(SITUATIONS[name].world().snapshot()), "pv-db-0")
    other = next(one for answer, one in found.items() if answer != "yes")
    assert other.findings
    assert other.findings[0] in other.because


def test_a_driver_whose_csidriver_could_not_be_read_is_not_called_absent() -> None:
    world = SITUATIONS["a_volume_of_secrets_whose_driver_has_no_csidriver"].world()
    world.unread.append(Unread("csidrivers", "this account may not list csidrivers"))
    report = evaluate(world.snapshot())
    assert {one.workload: one.starts_again for one in report.workloads}["Deployment shop/vault"] == "unknown"
    assert [one.id for one in report.findings] == ["CSI-C01"]


def test_a_finding_about_an_unknown_driver_names_the_class_of_its_claim() -> None:
    world = healthy()
    for name in ("fast", "slow"):
        world.add("StorageClass", name, provisioner="disk.example.com", volumeBindingMode="WaitForFirstConsumer")
        claim_of(world, name, SHOP, name)
        workload(world, "Deployment", name, pod_spec(name), replicas=1)
    found = [one.object for one in evaluate(world.snapshot()).findings if one.id == "CSI-V41"]
    assert found == ["StorageClass fast", "StorageClass slow"]


def test_a_report_names_few_nodes_and_counts_all() -> None:
    row = VolumeVerdict("v", "", "csi", "d", tuple(f"n-{one}" for one in range(25)), "yes", "b", ("e",))
    assert len(row.as_dict()["nodes"]) == 10
    assert row.as_dict()["node_count"] == 25
