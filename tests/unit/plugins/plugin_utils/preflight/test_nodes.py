# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node shows for each required driver whether it works there, with the evidence."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import is_passed
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NodeVerdict, Report
from situations.cluster import healthy
from situations.named import SITUATIONS
from situations.world import World

VSPHERE = DRIVERS["vsphere"].name


def on(report: Report, node: str = "win-1") -> NodeVerdict:
    return next(one for one in report.nodes if one.node == node)


def planted(name: str) -> World:
    return SITUATIONS[name].world()


@pytest.mark.parametrize(
    ("name", "node", "ids", "ok"),
    [
        ("a_registration_that_stopped_half_way", "win-1", {"CSI-G21"}, "no"),
        ("a_topology_label_that_is_missing", "win-1", {"CSI-G22"}, "no"),
        ("a_stale_entry_while_the_plugin_crashes", "win-2", {"CSI-G11"}, "no"),
        ("the_same_driver_brought_twice", "win-1", {"CSI-G30"}, "no"),
        ("csi_proxy_has_stopped_under_a_running_plugin", "win-1", {"CSI-G43"}, "no"),
        ("no_host_was_read", "win-1", {"CSI-G40"}, "unknown"),
        ("a_volume_attached_the_in_tree_way_to_a_migrated_kubelet", "win-1", {"CSI-N36"}, "no"),
        ("a_node_that_is_cordoned", "win-1", set(), "yes"),
        ("an_attachment_that_failed", "win-1", set(), "yes"),
    ],
)
def test_a_node_shows_what_was_planted_there_and_every_registration(
    name: str, node: str, ids: set[str], ok: str
) -> None:
    verdict = on(evaluate(planted(name).snapshot()), node)
    assert (set(verdict.findings), verdict.ok) == (ids, ok)
    assert {line.partition(":")[0] for line in verdict.evidence} == ids | {f"CSINode {node}"}


@pytest.mark.parametrize("registered", [True, False])
def test_an_attachment_that_waits_for_the_registration_is_not_the_cause(registered: bool) -> None:
    world = planted("an_attachment_that_failed")
    (refused,) = [one for one in world.of("VolumeAttachment") if "attachError" in one.get("status", {})]
    node = refused["spec"]["nodeName"]
    refused["status"]["attachError"]["message"] = f"CSINode {node} does not contain driver {VSPHERE}"
    if not registered:
        spec = world.get("CSINode", node)["spec"]
        spec["drivers"] = [one for one in spec["drivers"] if one["name"] != VSPHERE]
    report = evaluate(world.snapshot())
    blockers = {one.id for one in report.findings if one.severity == "blocker"}
    # With the registration the attacher only has to repeat its call: one that does not hangs.
    assert blockers == ({"CSI-N34"} if registered else {"CSI-G20"})
    assert "yes" not in {one.starts_again for one in report.workloads if one.workload == "StatefulSet shop/db"}


@pytest.mark.parametrize("is_mounted", [True, False])
def test_what_keeps_a_volume_from_its_detachment_is_named(is_mounted: bool) -> None:
    world = planted("a_volume_that_is_not_detached_because_the_kubelet_still_has_it_mounted")
    (stuck,) = [one for one in world.of("VolumeAttachment") if "detachError" in one.get("status", {})]
    node = stuck["spec"]["nodeName"]
    if not is_mounted:
        world.get("Node", node)["status"]["volumesInUse"].clear()
    (finding,) = [one for one in evaluate(world.snapshot()).findings if one.id == "CSI-N34"]
    has = "still has" if is_mounted else "does not have"
    assert f"volume pv-db-0, which the kubelet of {node} {has} mounted, could not be detached" in finding.message
    assert f"kubectl drain {node} --ignore-daemonsets" in finding.remedy
    assert ("csi-proxy" in finding.remedy) == is_mounted


def test_only_drivers_that_volumes_need_are_required() -> None:
    world = healthy()
    for one in world.of("CSINode"):
        one["spec"]["drivers"].append({"name": "broken.example.com", "nodeID": "", "topologyKeys": ["no/such"]})
    assert on(evaluate(world.snapshot())).drivers == (VSPHERE, "disk.csi.azure.com", "file.csi.azure.com")


def test_a_driver_that_is_needed_on_one_node_is_not_missed_on_another() -> None:
    world = healthy()
    for one in world.of("PersistentVolume"):
        if one["metadata"]["name"] in ("pv-db-0", "pv-db-1", "pv-legacy"):
            expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["win-1"]}
            one["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    for one in list(world.of("VolumeAttachment")):
        if one["spec"]["nodeName"] == "win-2" and one["spec"]["attacher"] == VSPHERE:
            world.objects.remove(one)
    world.get("CSINode", "win-2")["spec"]["drivers"] = [
        one for one in world.get("CSINode", "win-2")["spec"]["drivers"] if one["name"] != VSPHERE
    ]
    report = evaluate(world.snapshot())
    assert on(report, "win-2").ok == "yes"
    assert VSPHERE not in on(report, "win-2").drivers


def test_a_list_without_which_a_driver_is_not_known_to_work_makes_its_nodes_unknown() -> None:
    world = healthy()
    world.unread.append(Unread("csinodes", "this account may not list csinodes"))
    assert on(evaluate(world.snapshot())).ok == "unknown"


@pytest.mark.parametrize(
    ("id_", "severity", "ok", "verdict"),
    [
        # The other node takes the pods.
        ("CSI-N06", "blocker", "no", "unknown"),
        ("CSI-N07", "blocker", "no", "unknown"),
        ("CSI-N18", "blocker", "no", "unknown"),
        ("CSI-N18", "warning", "yes", "ready"),
        ("CSI-N09", "warning", "unknown", "unknown"),
        ("CSI-N17", "warning", "unknown", "unknown"),
        ("CSI-N08", "note", "yes", "ready"),
    ],
)
def test_a_node_whose_csi_proxy_will_not_start_again_is_not_ready(
    id_: str, severity: str, ok: str, verdict: str
) -> None:
    world = healthy()
    world.host("win-1")["findings"] = [
        {"id": id_, "severity": severity, "object": "service csi-proxy", "message": "m", "remedy": "r"}
    ]
    report = evaluate(world.snapshot())
    assert (on(report).ok, report.verdict) == (ok, verdict)
    assert is_passed(report, "blocked") == (severity != "blocker")


def test_a_fault_at_the_next_reboot_is_reported_without_volumes_and_blocks_nothing() -> None:
    world = healthy()
    gone = ("Pod", "Deployment", "StatefulSet", "PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment")
    world.objects = [one for one in world.objects if one["kind"] not in gone]
    world.host("win-1")["findings"] = [
        {"id": id_, "severity": "blocker", "object": "o", "message": "m", "remedy": "r"}
        for id_ in ("CSI-N06", "CSI-N12")
    ]
    report = evaluate(world.snapshot())
    assert [(one.id, one.severity) for one in report.findings if one.id.startswith("CSI-N")] == [("CSI-N06", "warning")]


def test_findings_of_the_host_are_passed_on_unchanged() -> None:
    report = evaluate(planted("the_host_itself_has_no_unix_sockets").snapshot())
    reported = next(one for one in report.findings if one.id == "CSI-N12")
    assert (reported.severity, reported.object, reported.message) == (
        "blocker",
        "Node win-1, driver afunix",
        "The driver for Unix domain sockets is missing.",
    )
    assert on(report).ok == "no"


def test_pods_whose_maker_may_not_be_read_name_the_rule_that_the_account_lacks() -> None:
    """For a kind that is never read no rule helps."""
    rule = '{apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["list"]}'
    world = healthy()
    world.objects = [one for one in world.objects if one["kind"] != "StatefulSet"]
    world.unread.append(Unread("statefulsets", "this account may not list statefulsets", rule))
    reported = [one for one in evaluate(world.snapshot()).findings if one.id == "CSI-W08"]
    assert reported
    assert {one.remedy for one in reported} == {f"add to a role of this account: {rule}"}
    assert all("statefulsets could not be read" in one.message for one in reported)
    (other,) = [
        one for one in evaluate(planted("pods_of_a_kind_that_is_not_read").snapshot()).findings if one.id == "CSI-W08"
    ]
    assert "GameServer is a kind that is not read" in other.message
    assert other.remedy == "check the pods of its next rollout"
