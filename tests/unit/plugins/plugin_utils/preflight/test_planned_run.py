# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A run that deploys drivers: what it would break stops it, what it repairs does not, and the rest is only reported."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.planned_run import PlannedRun, report_run, simulate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_brief, render_refusal
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.suppress import Suppression, suppress
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from situations.cluster import daemon_set, healthy, unregister, windows_nodes
from situations.named import SITUATIONS, Situation, report_of, snapshot_of
from situations.world import Object, World

VSPHERE = DRIVERS["vsphere"]
BY_DAEMON_SET = {driver.daemonset: key for key, driver in DRIVERS.items()}
SELECTS_SERVING = {"kubernetes.io/os": "windows", "kubewin.io/csi-proxy": "serving"}


def plugins(world: World) -> list[Object]:
    """The node plugins that are there, as they would be applied again: without what the server adds."""
    found = []
    for one in world.of("DaemonSet"):
        if one["metadata"]["name"] in BY_DAEMON_SET:
            metadata = {key: one["metadata"][key] for key in ("name", "namespace", "labels")}
            applied = {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": metadata, "spec": one["spec"]}
            found.append(copy.deepcopy(applied))
    return found


def run_of(objects: Iterable[Object], *nodes: str) -> PlannedRun:
    found = list(objects)
    return PlannedRun(tuple(BY_DAEMON_SET[one["metadata"]["name"]] for one in found), tuple(found), frozenset(nodes))


def evaluated(world: World, run: PlannedRun) -> tuple[Report, Report]:
    """The report of the cluster after the run, and the one about the run."""
    snapshot = world.snapshot()
    then = evaluate(simulate(snapshot, run))
    return then, report_run(evaluate(snapshot), then, run, snapshot.controllers)


def ids(report: Report) -> set[tuple[str, str]]:
    return {(one.id, one.object) for one in report.findings}


def without_vsphere() -> tuple[World, list[Object]]:
    """A cluster before its first run, and what that would apply: no csi-proxy, no plugin, volumes that wait."""
    world = healthy()
    wanted = [one for one in plugins(world) if one["metadata"]["name"] == VSPHERE.daemonset]
    wanted[0]["spec"]["template"]["spec"]["nodeSelector"] = SELECTS_SERVING
    world.remove("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    for one in windows_nodes(world):
        name = one["metadata"]["name"]
        del one["metadata"]["labels"]["kubewin.io/csi-proxy"]
        world.remove("Pod", f"{VSPHERE.daemonset}-{name}", VSPHERE.namespace)
        unregister(world, VSPHERE, name)
        world.host(name).update(serving=False, state="", release="", pipes=[])
    return world, wanted


def test_findings_of_a_missing_driver_do_not_stop_the_run_that_deploys_it() -> None:
    world, wanted = without_vsphere()
    now = evaluate(world.snapshot())
    assert ("CSI-G02", f"Driver {VSPHERE.name}") in ids(now)
    then, own = evaluated(world, run_of(wanted, "win-1", "win-2"))
    assert own.verdict == "ready"
    assert {one.ok for one in then.volumes} == {"yes"}
    assert {one.starts_again for one in then.workloads} == {"yes"}


def test_the_account_that_a_run_creates_does_not_stop_it() -> None:
    """As when workloads wait for a driver that is deployed for the first time, or again after its removal."""
    world, wanted = without_vsphere()
    wanted[0]["spec"]["template"]["spec"]["serviceAccountName"] = "kubewin-vsphere-csi-node"
    metadata = {"namespace": VSPHERE.namespace, "name": "kubewin-vsphere-csi-node"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    run = run_of(wanted, "win-1", "win-2")
    assert "CSI-W20" in {one.id for one in evaluated(world, run)[1].findings}
    then, own = evaluated(world, replace(run, objects=(account, *run.objects)))
    assert own.verdict == "ready"
    assert {one.starts_again for one in then.workloads} == {"yes"}


def test_a_run_for_some_nodes_is_not_stopped_by_those_that_have_no_driver_before_and_after() -> None:
    world, wanted = without_vsphere()
    then, own = evaluated(world, run_of(wanted, "win-1"))
    assert ("CSI-G03", f"Node win-2, driver {VSPHERE.name}") in ids(then)
    assert own.verdict == "ready"
    assert {one.node: one.ok for one in then.nodes} == {"win-1": "yes", "win-2": "no"}


def test_a_run_that_takes_the_driver_from_a_node_with_volumes_is_stopped() -> None:
    world = healthy()
    wanted = [one for one in plugins(world) if one["metadata"]["name"] == VSPHERE.daemonset]
    wanted[0]["spec"]["template"]["spec"]["nodeSelector"]["pool"] = "gold"
    world.get("Node", "win-1")["metadata"]["labels"]["pool"] = "gold"
    dummy, own = evaluated(world, run_of(wanted, "win-1", "win-2"))
    assert ids(own) == {("CSI-G03", f"Node win-2, driver {VSPHERE.name}")}
    message = render_refusal(own)
    assert "Refused before the first change" in message
    assert "label pool is missing, expected gold" in message
    assert "kubewin_suppressions" in message


def test_a_change_to_csi_proxy_is_stopped_by_a_node_with_an_unproven_csi_proxy() -> None:
    world = healthy()
    del world.get("Node", "win-2")["metadata"]["labels"]["kubewin.io/csi-proxy"]
    wanted = [one for one in plugins(world) if one["metadata"]["name"] == VSPHERE.daemonset]
    wanted[0]["spec"]["template"]["spec"]["nodeSelector"] = SELECTS_SERVING
    assert ids(evaluated(world, run_of(wanted, "win-1"))[1]) == {("CSI-G03", f"Node win-2, driver {VSPHERE.name}")}
    assert evaluated(world, run_of(wanted, "win-1", "win-2"))[1].verdict == "ready"


def test_a_run_that_deploys_a_second_node_plugin_is_stopped() -> None:
    world = healthy()
    wanted = [one for one in plugins(world) if one["metadata"]["name"] == VSPHERE.daemonset]
    rule = VSPHERE.rule("csi_proxy")
    assert rule is not None
    theirs = daemon_set(world, VSPHERE, rule, "3.4.0", name="theirs")
    for on in ("win-1", "win-2"):
        pod = world.get("Pod", f"{VSPHERE.daemonset}-{on}", VSPHERE.namespace)
        pod["metadata"]["ownerReferences"][0].update(name="theirs", uid=theirs["metadata"]["uid"])
    world.remove("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    assert evaluate(world.snapshot()).verdict == "ready"
    own = evaluated(world, run_of(wanted, "win-1", "win-2"))[1]
    twice = [one for one in own.findings if one.severity == "blocker"]
    assert {one.id for one in twice} == {"CSI-G30"}
    # The same on every node, so that a report has it once.
    assert {one.remedy for one in twice} == {
        f"delete one of the two DaemonSets, {VSPHERE.namespace}/theirs or {VSPHERE.namespace}/{VSPHERE.daemonset}, "
        "at its source"
    }


# Of the planned drivers' own halves: a run does not repair them, and without them no volume works.
HALVES = {"CSI-C14", "CSI-C17"}
AS_THEY_ARE = {name: one for name, one in SITUATIONS.items() if not one.target}


@pytest.mark.parametrize("planted", AS_THEY_ARE.values(), ids=AS_THEY_ARE)
def test_a_run_that_changes_nothing_is_stopped_by_nothing_but_the_drivers_own_halves(planted: Situation) -> None:
    """A run is how things are repaired, so what is wrong anyway must not be in its way."""
    world = planted.world()
    hosts = [one["node"] for one in world.hosts]
    wanted = plugins(world)
    run, snapshot = run_of(wanted, *hosts), snapshot_of(planted.name)
    own = report_run(report_of(planted.name), evaluate(simulate(snapshot, run)), run, snapshot.controllers)
    blockers = {one.id for one in own.findings if one.severity == "blocker"}
    assert blockers == planted.expected & HALVES


def test_a_planned_drivers_controller_stops_a_run_whatever_its_name_is() -> None:
    for name in (VSPHERE.controller.deployments[0], "storage"):
        world = SITUATIONS["a_controller_without_its_attacher"].world()
        deployment = world.get("Deployment", VSPHERE.controller.deployments[0], VSPHERE.namespace)
        deployment["metadata"]["name"] = name
        own = evaluated(world, run_of(plugins(world), "win-1", "win-2"))[1]
        assert (f"Deployment {VSPHERE.namespace}/{name}", "CSI-C14") in {(one.object, one.id) for one in own.findings}


def test_a_claim_that_waits_for_the_class_that_the_run_makes_starts_again() -> None:
    world = SITUATIONS["a_claim_of_a_class_that_is_not_there"].world()
    waiting = next(one.object for one in evaluate(world.snapshot()).findings if one.id == "CSI-V26")
    name = next(
        one["spec"]["storageClassName"]
        for one in world.of("PersistentVolumeClaim")
        if waiting.endswith(f"/{one['metadata']['name']}")
    )
    made = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": VSPHERE.name, "parameters": {}}
    run = run_of(plugins(world), "win-1", "win-2")
    assert "CSI-V26" in {one.id for one in evaluated(world, run)[0].findings}
    then, dummy = evaluated(world, replace(run, objects=(*run.objects, made)))
    assert "CSI-V26" not in {one.id for one in then.findings}


def test_a_stopped_csi_proxy_is_repaired_by_the_run() -> None:
    world = SITUATIONS["csi_proxy_has_stopped_under_a_running_plugin"].world()
    then, own = evaluated(world, run_of(plugins(world), "win-1", "win-2"))
    assert (then.verdict, own.verdict) == ("ready", "ready")


def test_the_brief_report_has_counts_blocked_workloads_and_what_was_not_read() -> None:
    world = SITUATIONS["a_raw_block_volume"].world()
    then, own = evaluated(world, run_of(plugins(world), "win-1", "win-2"))
    assert own.verdict == "ready"
    lines = render_brief(then)
    lost = [one for one in then.workloads if one.starts_again == "no"]
    assert lines[0] == f"Not ready: {len(lost)} of {len(then.workloads)} workloads will not start again."
    assert any(line.startswith(f"{lost[0].workload} will not start again: ") for line in lines)
    assert lines[-1] == "the full report: run the playbook kubewin.csi.preflight with the same inventory"
    unread = SITUATIONS["pods_could_not_be_read"].world()
    then, own = evaluated(unread, run_of(plugins(unread), "win-1", "win-2"))
    assert own.verdict == "ready"
    assert any(line.startswith("not checked, because it could not be read: pods") for line in render_brief(then))


def test_an_acceptance_that_ended_yesterday_stops_the_run() -> None:
    world = healthy()
    wanted = [one for one in plugins(world) if one["metadata"]["name"] == VSPHERE.daemonset]
    wanted[0]["spec"]["template"]["spec"]["nodeSelector"]["pool"] = "gold"
    run, snapshot = run_of(wanted, "win-1", "win-2"), world.snapshot()
    accepted = [Suppression("CSI-G03", "Node win-*", "it moves", date(2026, 11, 20))]
    for today, verdict in ((date(2026, 11, 20), "ready"), (date(2026, 11, 21), "blocked")):
        then = suppress(evaluate(simulate(snapshot, run)), accepted, today)
        assert report_run(evaluate(snapshot), then, run, snapshot.controllers).verdict == verdict
