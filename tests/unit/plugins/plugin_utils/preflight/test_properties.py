# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Properties of every cluster: Linux is ignored, order does not matter, and less evidence never improves a verdict."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot, Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import encode_snapshot, is_passed
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from situations.cluster import attach, csi, node, pod, pod_spec, volume, workload
from situations.named import SITUATIONS, Situation, report_of, snapshot_of
from situations.world import World

PLANTED = st.sampled_from(sorted(SITUATIONS))
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

RESOURCES = {
    "pods": ("Pod",),
    "csinodes": ("CSINode",),
    "daemonsets": ("DaemonSet",),
    "deployments": ("Deployment",),
    "statefulsets": ("StatefulSet",),
    "replicasets": ("ReplicaSet",),
    "jobs": ("Job",),
    "persistentvolumes": ("PersistentVolume",),
    "persistentvolumeclaims": ("PersistentVolumeClaim",),
    "volumeattachments": ("VolumeAttachment",),
    "storageclasses": ("StorageClass",),
    "csidrivers": ("CSIDriver",),
    "configmaps": ("ConfigMap",),
    "runtimeclasses": ("RuntimeClass",),
    "priorityclasses": ("PriorityClass",),
    "serviceaccounts": ("ServiceAccount",),
    "resourcequotas": ("ResourceQuota",),
    "limitranges": ("LimitRange",),
    "namespaces": ("Namespace",),
}


def reported(planted: Situation, world: World) -> Report:
    """The report of a world, asked what the situation asks."""
    return evaluate(world.snapshot(), planted.target)


def as_text(report: Report) -> dict[str, Any]:
    """Everything in the report."""
    return report.as_dict()


@given(name=PLANTED, what=st.sets(st.sampled_from(["node", "pod", "volume", "nfs", "many"]), min_size=1))
@SLOW
def test_unrelated_linux_never_changes_the_report_of_windows(name: str, what: set[str]) -> None:
    planted = SITUATIONS[name]
    world = planted.world()
    before = as_text(report_of(name))
    # A Linux node is related to what the scheduler may put there, which names one.
    assume(
        "node" not in what
        or not any("keeps its next pod from a Linux node" in one["message"] for one in before["findings"])
    )
    if "node" in what:
        node(world, "another-linux", windows=False, zone="c")
    if "pod" in what:
        pod(world, "another", pod_spec(windows=False), on="linux-1", namespace="elsewhere")
    if "volume" in what:
        volume(
            world, "pv-another", csi(DRIVERS["vsphere"].name, "fcd-another", "xfs"), "another", namespace="elsewhere"
        )
        attach(world, "pv-another", "linux-1", DRIVERS["vsphere"].name, "fcd-another")
        workload(
            world, "StatefulSet", "another", pod_spec("another", windows=False), on=["linux-1"], namespace="elsewhere"
        )
    if "nfs" in what:
        volume(world, "pv-nfs-too", {"nfs": {"server": "s", "path": "/"}}, "nfs-too", namespace="elsewhere")
        workload(world, "CronJob", "nfs-too", pod_spec("nfs-too", windows=False), namespace="elsewhere")
    if "many" in what:
        for number in range(20):
            volume(
                world,
                f"pv-many-l-{number}",
                csi("rbd.csi.ceph.com", f"i-{number}", ""),
                f"l-{number}",
                namespace="elsewhere",
            )
    assert as_text(reported(planted, world)) == before


@given(name=PLANTED, seed=st.integers())
@example(name="more_disks_than_kubelets_attach_in_tree", seed=5)
@SLOW
def test_the_order_of_objects_does_not_matter(name: str, seed: int) -> None:
    planted = SITUATIONS[name]
    world = planted.world()
    before = as_text(report_of(name))
    random.Random(seed).shuffle(world.objects)
    random.Random(seed).shuffle(world.hosts)
    assert as_text(reported(planted, world)) == before


def hide(world: World, what: str) -> None:
    """Take evidence away: a list that may not be read, or a host that was not read."""
    if what == "hosts":
        world.hosts = []
    elif what == "migrated-plugins":
        for one in world.of("CSINode"):
            one["metadata"]["annotations"] = {}
    else:
        world.unread.append(Unread(what, f"this account may not list {what}"))
        world.objects = [one for one in world.objects if one["kind"] not in RESOURCES[what]]


def less_evidence_never_turns_unknown_into_ready(name: str, what: set[str]) -> None:
    planted = SITUATIONS[name]
    world = planted.world()
    before = report_of(name)
    for one in sorted(what):
        hide(world, one)
    after = reported(planted, world)
    if before.verdict == "unknown":
        assert after.verdict != "ready"
    doubtful = {(one.volume, one.claim) for one in before.volumes if one.ok == "unknown"}
    well = {(one.volume, one.claim) for one in after.volumes} - {
        (one.volume, one.claim) for one in after.volumes if one.ok != "yes"
    }
    assert not doubtful & well
    # What fails on one of its nodes, or with others beside it, is a fault that is known, and it goes with what showed it.
    faults = {one.claim for one in before.volumes if one.ok == "no"}
    unknown = {
        one.workload
        for one in before.workloads
        if one.starts_again == "unknown"
        and faults.isdisjoint(one.volumes)
        and "CSI-N33" not in one.findings
        # So does what a host shows.
        and not any(cause.object.startswith("Node ") for cause in one.causes)
    }
    assert not unknown & {one.workload for one in after.workloads if one.starts_again == "yes"}
    assert not {one.node for one in before.nodes if one.ok == "unknown"} & {
        one.node for one in after.nodes if one.ok == "yes" and one.drivers
    }


# A kubelet that migrates nothing writes no annotation, so its absence is evidence where nothing migrates by default.
EVIDENCE = [
    (name, what)
    for name in sorted(SITUATIONS)
    for what in (*RESOURCES, "hosts", "migrated-plugins")
    if (name, what) != ("a_control_plane_that_does_not_say_whether_it_migrates", "migrated-plugins")
]


@given(name=PLANTED, what=st.sets(st.sampled_from([*RESOURCES, "hosts"]), min_size=1, max_size=3))
@example("a_control_plane_that_does_not_say_whether_it_migrates", {"csinodes"})
@example("a_claim_that_may_take_a_share_of_nfs", {"persistentvolumes"})
@example("a_driver_that_reports_its_free_capacity", {"csidrivers"})
@example("an_attachment_that_failed", {"volumeattachments"})
@example("two_volumes_of_a_disk_in_tree_and_native", {"deployments"})
@settings(SLOW, max_examples=120)
def test_less_evidence_never_turns_unknown_into_ready(name: str, what: set[str]) -> None:
    less_evidence_never_turns_unknown_into_ready(name, what)


@pytest.mark.torture
@pytest.mark.parametrize("what", sorted({what for _name, what in EVIDENCE}))
def test_each_kind_of_evidence_is_missed_in_every_situation(what: str) -> None:
    for name in (name for name, one in EVIDENCE if one == what):
        less_evidence_never_turns_unknown_into_ready(name, {what})


@pytest.mark.parametrize("resource", sorted(RESOURCES))
def test_an_unread_list_is_reported_and_nothing_is_ready(resource: str) -> None:
    planted = SITUATIONS["a_migrated_volume_still_looks_in_tree"]
    world = planted.world()
    hide(world, resource)
    report = reported(planted, world)
    assert report.verdict != "ready"
    assert [one.object for one in report.findings if one.id == "CSI-C01"] == [resource]
    assert not any(one.severity == "blocker" for one in report.findings), report.findings
    assert not any(one.starts_again == "yes" for one in report.workloads)
    if resource in ("pods", "csinodes", "daemonsets"):
        assert {one.ok for one in report.nodes if one.drivers} <= {"unknown"}


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_every_verdict_names_its_evidence(planted: Situation) -> None:
    report = report_of(planted.name)
    for finding in report.findings:
        assert finding.evidence, finding
        assert all(finding.evidence), finding
        assert finding.message, finding
        assert finding.why, finding
        assert finding.remedy, finding
    for one in report.volumes:
        assert one.because, one
        assert one.evidence, one
    for workload_ in report.workloads:
        assert workload_.because, workload_
        assert workload_.runs_on_because, workload_
    for on_node in report.nodes:
        assert on_node.because, on_node
        assert on_node.evidence or not on_node.drivers, on_node


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_a_saved_snapshot_is_evaluated_the_same(planted: Situation) -> None:
    again = Snapshot.from_dict(json.loads(encode_snapshot(snapshot_of(planted.name))))
    assert as_text(evaluate(again, planted.target)) == as_text(report_of(planted.name))


def test_a_taint_that_pods_do_not_tolerate_blocks_their_workload() -> None:
    world = SITUATIONS["pods_that_tolerate_no_taint_of_the_windows_nodes"].world()
    report = evaluate(world.snapshot())
    assert report.verdict == "blocked"
    (finding,) = report.findings
    assert (finding.id, finding.message) == ("CSI-W20", "taint os=Windows:NoSchedule is not tolerated")
    assert [is_passed(report, fail_on) for fail_on in ("never", "blocked")] == [True, False]


def test_a_cluster_without_windows_nodes_is_not_ready_for_windows_workloads() -> None:
    world = SITUATIONS["pods_that_tolerate_no_taint_of_the_windows_nodes"].world()
    for name in ("win-1", "win-2"):
        world.remove("Node", name)
    world.objects = [
        one for one in world.objects if not str((one.get("spec") or {}).get("nodeName", "")).startswith("win-")
    ]
    report = evaluate(world.snapshot())
    assert report.verdict != "ready"
    assert (
        "there is no Windows node" in {one.object: one.message for one in report.findings}["Deployment shop/kept-off"]
    )


@given(
    name=PLANTED, what=st.sets(st.sampled_from([*RESOURCES, "hosts", "migrated-plugins", "tolerations"]), max_size=3)
)
@settings(SLOW, max_examples=120)
def test_ready_means_that_everything_is_known(name: str, what: set[str]) -> None:
    planted = SITUATIONS[name]
    world = planted.world()
    if "tolerations" in what:
        for made in world.objects:
            template = (made.get("spec") or {}).get("template") or {}
            (template.get("spec") or {}).pop("tolerations", None)
    for hidden in sorted(what - {"tolerations"}):
        hide(world, hidden)
    report = reported(planted, world)
    if report.verdict == "ready":
        assert {one.starts_again for one in report.workloads} == {"yes"}
        used = {name for one in report.workloads for name in one.volumes}
        # The scheduler puts no pod on a node that is out of service, so nothing has to work there.
        away = {node.name for node in world.snapshot().nodes if any("out-of-service" in one.key for one in node.taints)}
        volumes = [one for one in report.volumes if one.claim in used and not away.issuperset(one.nodes)]
        assert {one.ok for one in volumes} <= {"yes"}
    for one in report.workloads:
        if one.starts_again == "unknown":
            assert one.findings or one.because.startswith("CSI-C01"), one
