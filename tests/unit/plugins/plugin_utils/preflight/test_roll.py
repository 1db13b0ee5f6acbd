# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether an upgrade finishes that drains the Windows nodes one after the other, and what stops it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import roll as preflight_roll
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_terminal
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NodeRoll, Roll
from situations.cluster import SHOP, attach, csi, healthy, node, owner_reference, pod, pod_spec, volume, workload
from situations.webhooks import add_webhook
from situations.world import World

VSPHERE = DRIVERS["vsphere"]


def nodes(count: int) -> World:
    """Windows nodes with 8 CPUs each."""
    world = World()
    for number in range(1, count + 1):
        node(world, f"win-{number}")
    return world


def cpu(amount: str) -> dict[str, Any]:
    return {
        "containers": [
            {"name": "main", "image": "registry.example.com/main:1", "resources": {"requests": {"cpu": amount}}}
        ]
    }


def stateless(world: World, name: str, on: list[str], **spec: Any) -> None:
    """A Deployment without volumes and its pods."""
    workload(world, "Deployment", name, pod_spec(**spec), on=on)


def budget(world: World, name: str, app: str, healthy_pods: int, desired: int) -> None:
    world.add(
        "PodDisruptionBudget", name, SHOP, spec={"selector": {"matchLabels": {"app": app}}},
        status={"currentHealthy": healthy_pods, "desiredHealthy": desired, "expectedPods": healthy_pods},
    )  # fmt: skip


def rolled(world: World) -> Roll:
    found = evaluate(world.snapshot()).roll
    assert found is not None
    return found


def on(roll: Roll, name: str) -> NodeRoll:
    return next(entry for entry in roll.nodes if entry.node == name)


def test_pods_with_volumes_go_to_the_other_node_and_the_upgrade_finishes() -> None:
    roll = rolled(healthy())
    assert (roll.answer, roll.because) == ("yes", "2 Windows nodes can be drained one after the other")
    assert on(roll, "win-1").targets == ("win-2",)
    assert on(roll, "win-1").pods == 3


def test_pods_of_daemon_sets_and_static_pods_stay() -> None:
    world = nodes(1)
    workload(world, "DaemonSet", "agent", pod_spec(), on=["win-1"])
    pod(world, "static", pod_spec(), on="win-1", annotations={"kubernetes.io/config.mirror": "1"})
    roll = rolled(world)
    assert (roll.answer, on(roll, "win-1").pods) == ("yes", 0)


def test_a_pod_that_nothing_recreates_stops_the_upgrade_at_its_node() -> None:
    world = nodes(2)
    pod(world, "bare", pod_spec(), on="win-2")
    roll = rolled(world)
    assert (roll.answer, roll.because) == (
        "no",
        "node win-2: a pod in shop does not start again: no controller recreates it",
    )
    assert on(roll, "win-1").answer == "yes"


def test_a_pod_of_a_controller_of_an_unknown_kind_may_not_start_again() -> None:
    world = nodes(2)
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "build", "uid": "w", "controller": True}
    pod(world, "build-0", pod_spec(), on="win-2", owner=owner)
    roll = rolled(world)
    because = "a pod of Workflow shop/build may not start again: Workflow is a kind that is not read"
    assert (roll.answer, roll.because) == ("unknown", f"node win-2: {because}")


def test_a_pod_that_does_not_end_leaves_the_upgrade_unknown() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    metadata = world.get("Pod", "web-0", SHOP)["metadata"]
    metadata["deletionTimestamp"] = world.ago(minutes=5)
    assert rolled(world).answer == "yes"
    metadata["deletionTimestamp"] = world.ago(hours=5)
    roll = rolled(world)
    assert roll.answer == "unknown"
    assert roll.because.startswith(
        "node win-1: a pod of ReplicaSet shop/web-6d4f should have ended by 2026-11-20T18:00:00Z"
    )


@pytest.mark.parametrize("state", ["not Ready", "cordoned"])
def test_a_node_for_which_the_upgrade_stops_before_every_other_one_leaves_it_unknown(state: str) -> None:
    world = nodes(2)
    node_object = world.get("Node", "win-2")
    if state == "cordoned":
        node_object["spec"]["unschedulable"] = True
    else:
        node_object["status"]["conditions"][0].update(status="Unknown", reason="NodeStatusUnknown", message="")
    roll = rolled(world)
    assert (roll.answer, on(roll, "win-1").answer) == ("unknown", "yes")
    assert f"node win-2: it is {state}" in roll.because


def test_the_only_node_may_be_cordoned_as_the_upgrade_begins_with_it() -> None:
    world = nodes(1)
    world.get("Node", "win-1")["spec"]["unschedulable"] = True
    assert rolled(world).answer == "yes"


def test_a_pod_for_which_only_its_own_node_has_room_waits_until_that_is_back() -> None:
    world = nodes(2)
    stateless(world, "large", ["win-1"], **cpu("7"))
    stateless(world, "other", ["win-2"], **cpu("4"))
    roll = rolled(world)
    assert roll.answer == "yes"
    assert on(roll, "win-1").waiting == ("a pod of ReplicaSet shop/large-6d4f",)
    assert on(roll, "win-1").targets == ()


def test_a_pod_whose_room_a_smaller_one_takes_stops_the_upgrade_or_not_by_the_order() -> None:
    """Node win-1 has 2 + 6 CPUs; win-2 has 5 left and takes the small one; then the large one waits and finds room again."""
    world = nodes(3)
    for name in ("win-1", "win-2", "win-3"):
        stateless(world, f"large-{name}", [name], **cpu("5"))
    stateless(world, "small", ["win-1", "win-2", "win-3"], **cpu("1500m"))
    roll = rolled(world)
    assert roll.answer in ("yes", "unknown")
    assert on(roll, "win-1").waiting == ("a pod of ReplicaSet shop/large-win-1-6d4f",)


def test_a_budget_that_allows_no_eviction_stops_the_upgrade() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1", "win-2"])
    budget(world, "all", "web", 2, 2)
    roll = rolled(world)
    assert roll.answer == "no"
    expected = "is not evicted: PodDisruptionBudget shop/all needs 2 healthy pods and has 2. Allow an eviction: "
    expected += "kubectl -n shop edit poddisruptionbudget all"
    assert roll.because == f"node win-1: a pod of ReplicaSet shop/web-6d4f {expected}"
    assert on(roll, "win-1").budgets == ("shop/all",)


def test_a_budget_of_one_lets_two_pods_leave_one_after_the_other() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1", "win-1"])
    budget(world, "one", "web", 2, 1)
    assert rolled(world).answer == "yes"


def test_a_budget_stops_the_upgrade_when_the_first_pod_finds_no_place() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1", "win-1"], **cpu("4"))
    stateless(world, "other", ["win-2"], **cpu("6"))
    budget(world, "one", "web", 2, 1)
    roll = rolled(world)
    assert roll.answer == "no"
    # Room for the first pod helps, and not another budget.
    assert roll.because.endswith("PodDisruptionBudget shop/one needs 1 healthy pods and has 1")


def test_a_budget_that_was_not_counted_yet_leaves_the_upgrade_unknown() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    budget(world, "new", "web", 0, 0)
    assert rolled(world).answer == "unknown"


def test_a_budget_whose_controller_cannot_count_its_pods_leaves_the_upgrade_unknown() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1", "win-2"])
    budget(world, "web", "web", 2, 1)
    assert rolled(world).answer == "yes"
    world.get("PodDisruptionBudget", "web", SHOP)["status"]["disruptionsAllowed"] = 0
    assert rolled(world).answer == "unknown"


def test_two_budgets_for_a_pod_stop_the_upgrade() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    budget(world, "one", "web", 2, 1)
    budget(world, "two", "web", 2, 1)
    assert "PodDisruptionBudgets shop/one and shop/two both select it" in rolled(world).because


@pytest.mark.parametrize("ordinals", [[0], [0, 1]])
def test_budgets_of_single_ordinals_leave_the_upgrade_unknown(ordinals: list[int]) -> None:
    world = healthy()
    for number in ordinals:
        own_budget(world, f"db-{number}")
    roll = rolled(world)
    assert roll.answer == "unknown"
    assert roll.because.startswith("node win-1: pod shop/db-0 is not evicted: PodDisruptionBudget")


def own_budget(world: World, pod: str) -> None:
    """A budget of one pod, by its name."""
    label = {"statefulset.kubernetes.io/pod-name": pod}
    world.get("Pod", pod, SHOP)["metadata"]["labels"].update(label)
    budget(world, pod, "db", 1, 1)
    world.get("PodDisruptionBudget", pod, SHOP)["spec"]["selector"]["matchLabels"].update(label)


def test_a_pod_that_a_budget_keeps_for_sure_is_named_before_one_of_which_that_is_unknown() -> None:
    world = healthy()
    own_budget(world, "db-0")
    stateless(world, "shelf", ["win-1"])
    budget(world, "shelf", "shelf", 1, 1)
    roll = rolled(world)
    assert roll.answer == "no"
    assert "PodDisruptionBudget shop/shelf needs 1 healthy pods and has 1" in roll.because


def test_a_budget_that_allows_no_eviction_stops_the_upgrade_beside_one_that_may_select_the_pod() -> None:
    world = healthy()
    own_budget(world, "db-0")
    budget(world, "all", "db", 2, 2)
    roll = rolled(world)
    assert roll.answer == "no"
    assert "PodDisruptionBudget shop/all needs 2 healthy pods and has 2" in roll.because


def test_what_is_sure_in_any_placement_goes_first_where_only_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight_roll, "_MOST_PLACEMENTS", 1)
    world = nodes(2)
    stateless(world, "api", ["win-1", "win-1"])
    for pod_of_api in world.of("Pod"):
        pod_of_api["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "win-1"
    world.get("Deployment", "api", SHOP)["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "win-1"
    budget(world, "api", "api", 2, 1)
    stateless(world, "web", ["win-1"])
    budget(world, "one", "web", 2, 1)
    budget(world, "two", "web", 2, 1)
    roll = rolled(world)
    assert roll.answer == "no"
    assert "PodDisruptionBudgets shop/one and shop/two both select it" in roll.because


@pytest.mark.parametrize("resource", ["pods/eviction", "pods/*"])
def test_whether_an_upgrade_finishes_is_unknown_with_a_webhook_of_evictions_without_its_service(resource: str) -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    add_webhook(world, resource=resource)
    roll = rolled(world)
    assert roll.answer == "unknown"
    assert "webhook pods.policy.example.com of validatingwebhookconfiguration/policy has" in roll.because


def test_a_webhook_of_evictions_elsewhere_stops_nothing() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    add_webhook(world, namespace="elsewhere", resource="pods/eviction")
    assert rolled(world).answer == "yes"


def test_pods_that_keep_apart_wait_for_their_node() -> None:
    world = nodes(3)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    stateless(world, "web", ["win-1", "win-2", "win-3"], **apart)
    roll = rolled(world)
    assert roll.answer == "yes"
    assert all(entry.waiting for entry in roll.nodes)
    budget(world, "quorum", "web", 3, 3)
    assert rolled(world).answer == "no"


def test_attach_limits_count_on_the_way() -> None:
    world = healthy()
    for number in range(2):
        volume(world, f"pv-{number}", csi(VSPHERE.name, f"fcd-{number}"), f"own-{number}")
        attach(world, f"pv-{number}", "win-1", VSPHERE.name, f"fcd-{number}")
        workload(world, "Deployment", f"own-{number}", pod_spec(f"own-{number}"), on=["win-1"])
    for name in ("win-1", "win-2"):
        for entry in world.get("CSINode", name)["spec"]["drivers"]:
            if entry["name"] == VSPHERE.name:
                entry["allocatable"] = {"count": 3}
    roll = rolled(world)
    assert on(roll, "win-1").waiting
    assert roll.answer in ("yes", "unknown")


def test_a_workload_that_does_not_start_again_stops_the_upgrade_at_its_node() -> None:
    world = healthy()
    volume(world, "pv-x", csi(VSPHERE.name, "fcd-x"), "disk")
    workload(world, "Deployment", "x", pod_spec("disk"), on=["win-1"])
    world.remove("PersistentVolume", "pv-x")
    roll = rolled(world)
    assert roll.answer == "no"
    assert roll.because == "node win-1: pod shop/x-0 does not start again: see Deployment shop/x"


def test_a_budget_is_named_before_a_pod_that_does_not_start_again() -> None:
    world = healthy()
    volume(world, "pv-x", csi(VSPHERE.name, "fcd-x"), "disk")
    workload(world, "Deployment", "x", pod_spec("disk"), on=["win-1"])
    budget(world, "x", "x", 1, 1)
    world.remove("PersistentVolume", "pv-x")
    assert "PodDisruptionBudget shop/x needs 1 healthy pods" in rolled(world).because


def test_a_pod_that_takes_another_free_volume_with_each_start_leaves_the_upgrade_unknown() -> None:
    world = nodes(2)
    mode = "WaitForFirstConsumer"
    world.add("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=mode)
    for name in ("win-1", "win-2"):
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
        volume(world, f"free-{name}", {"local": {"path": "C:\\disk"}}, storage_class="local", nodeAffinity=affinity)
    request = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    spec = pod_spec()
    spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": request}}}]
    workload(world, "Deployment", "scratch", spec, on=["win-1"])
    roll = rolled(world)
    assert (roll.answer, roll.because) == (
        "unknown",
        "node win-1: pod shop/scratch-0 may not start again: each start takes another volume that exists already",
    )


def test_a_pod_that_may_go_to_linux_leaves_the_upgrade_unknown() -> None:
    world = nodes(2)
    node(world, "linux-1", windows=False)
    stateless(world, "web", ["win-1"], nodeSelector={}, os=None)
    roll = rolled(world)
    assert (roll.answer, roll.because.rpartition(": ")[2]) == (
        "unknown",
        "nothing keeps its next pod from a Linux node",
    )


def test_a_pod_that_waits_for_a_node_may_take_the_room_of_the_others() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    pod(world, "late", pod_spec(**cpu("9")))
    roll = rolled(world)
    assert (roll.answer, roll.because.partition(",")[0]) == ("unknown", "a pod in shop waits for a node now")


def test_with_a_pod_that_waits_the_upgrade_may_stop_before_the_node_that_is_sure_to_stop_it() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    pod(world, "bare", pod_spec(), on="win-2")
    pod(world, "late", pod_spec(**cpu("9")))
    roll = rolled(world)
    assert (roll.answer, roll.stops_at, roll.or_before) == ("no", "win-2", True)
    assert roll.because.startswith("node win-2 or before: ")
    assert "stops at node win-2 or before." in render_terminal(evaluate(world.snapshot()), 200)
    world.remove("Pod", "bare", SHOP)
    pod(world, "bare", pod_spec(), on="win-1")
    roll = rolled(world)
    assert (roll.answer, roll.stops_at, roll.or_before) == ("no", "win-1", False)


def test_a_pod_of_today_takes_the_part_of_the_quota_that_it_has() -> None:
    world = healthy()
    world.get("Deployment", "web", SHOP)["spec"]["replicas"] = 3
    hard = {"count/pods": "8"}
    world.add("ResourceQuota", "quota", SHOP, spec={"hard": hard}, status={"hard": hard, "used": hard})
    report = evaluate(world.snapshot())
    answers = {entry.workload: entry.starts_again for entry in report.workloads}
    assert answers["Deployment shop/web"] == "no"
    assert report.roll is not None
    assert report.roll.answer == "yes"


def test_pods_without_volumes_are_unknown_where_their_quota_allows_less_than_is_used() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1", "win-1", "win-2"])
    budget(world, "web", "web", 3, 2)
    quota = world.add("ResourceQuota", "quota", SHOP, spec={"hard": {"pods": "3"}}, status={"used": {"pods": "3"}})
    assert rolled(world).answer == "yes"
    quota["spec"]["hard"]["pods"] = "2"
    roll = rolled(world)
    assert roll.answer == "unknown"
    assert roll.because.endswith("may not start again: ResourceQuota shop/quota allows less than is used")
    # Admission of a pod does not ask for others.
    quota["spec"]["hard"] = {"services": "1", "requests.storage": "1Gi"}
    quota["status"]["used"] = {"services": "2", "requests.storage": "2Gi"}
    assert rolled(world).answer == "yes"


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
IGNORED = {"action": "Ignore", "onPodConditions": [DISRUPTED]}
EXIT_CODES = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}


def run_job(world: World, on: list[str], *claims: str, failed: int = 0, **spec: Any) -> dict[str, Any]:
    status = {"active": len(on), "failed": failed, "startTime": world.ago(hours=1)}
    return workload(world, "Job", "batch", pod_spec(*claims), on=on, status=status, **spec)


def test_a_job_without_retries_may_fail_when_its_pod_is_evicted() -> None:
    world = nodes(2)
    run_job(world, ["win-2"], backoffLimit=0)
    roll = rolled(world)
    assert (roll.answer, on(roll, "win-1").answer) == ("unknown", "yes")
    because = "a pod of Job shop/batch may not start again: spec.backoffLimit: 0, status.failed: 0, and an evicted pod may fail"
    assert roll.because == f"node win-2: {because}"


@pytest.mark.parametrize(
    ("on_nodes", "spec", "answer"),
    [
        # Evicted on win-1, it goes to win-2 and is evicted there too.
        (["win-1"], {"failed": 5, "backoffLimit": 6}, "unknown"),
        (["win-1"], {"failed": 4, "backoffLimit": 6}, "yes"),
        (["win-2"], {"failed": 5, "backoffLimit": 6}, "yes"),
        (["win-2"], {"failed": 6}, "unknown"),
        # Each of its pods is evicted.
        (["win-2"] * 3, {"parallelism": 3, "backoffLimit": 2}, "unknown"),
        (["win-2"] * 3, {"parallelism": 3, "backoffLimit": 3}, "yes"),
        (["win-2"] * 3, {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}, "yes"),
        (["win-1"] * 3, {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}, "unknown"),
        (["win-2"] * 3, {"completions": 3, "backoffLimitPerIndex": 1, "backoffLimit": 2}, "unknown"),
        # A policy counts them, or does not.
        (["win-2"], {"backoffLimit": 0, "podFailurePolicy": {"rules": [IGNORED, EXIT_CODES]}}, "yes"),
        (["win-2"], {"backoffLimit": 6, "podFailurePolicy": {"rules": [EXIT_CODES, IGNORED]}}, "unknown"),
        (["win-2"], {"podFailurePolicy": {"rules": [{**IGNORED, "action": "Count"}]}}, "unknown"),
        (["win-2"], {"managedBy": "kueue.x-k8s.io/multikueue"}, "unknown"),
    ],
)
def test_evictions_count_as_failures_of_a_job(on_nodes: list[str], spec: dict[str, Any], answer: str) -> None:
    world = nodes(2)
    run_job(world, on_nodes, **spec)
    assert rolled(world).answer == answer


def test_a_job_of_a_cron_job_may_fail_when_its_pod_is_evicted() -> None:
    world = healthy()
    workload(world, "CronJob", "nightly", pod_spec("share"))
    job = run_job(world, ["win-2"], "share", backoffLimit=0)
    job["metadata"]["ownerReferences"] = [owner_reference("CronJob", "nightly", SHOP)]
    report = evaluate(world.snapshot())
    assert {verdict.workload: verdict.starts_again for verdict in report.workloads}["CronJob shop/nightly"] == "yes"
    assert report.roll is not None
    assert report.roll.because.startswith("node win-2: pod shop/batch-0 may not start again: spec.backoffLimit: 0")


def test_a_job_that_is_over_or_whose_pod_is_being_deleted_does_not_fail_by_a_drain() -> None:
    world = nodes(2)
    job = run_job(world, ["win-1"], backoffLimit=0)
    job["status"]["conditions"] = [{"type": "SuccessCriteriaMet", "status": "True"}]
    assert rolled(world).answer == "yes"
    job["status"] = {"failed": 1}
    world.get("Pod", "batch-0", SHOP)["metadata"]["deletionTimestamp"] = world.ago(minutes=1)
    assert rolled(world).answer == "yes"


def test_a_pod_of_a_job_that_was_not_read_may_not_start_again() -> None:
    world = nodes(2)
    pod(world, "train-0", pod_spec(), on="win-1", owner=owner_reference("Job", "train", SHOP))
    assert (
        rolled(world).because == "node win-1: a pod of Job shop/train may not start again: Job shop/train was not read"
    )


def test_an_ordinal_that_does_not_start_again_stops_the_upgrade_at_its_own_node() -> None:
    world = healthy()
    world.get("PersistentVolumeClaim", "data-db-1", SHOP)["status"]["phase"] = "Lost"
    roll = rolled(world)
    assert (roll.answer, roll.stops_at) == ("no", "win-2")
    assert on(roll, "win-1").answer == "yes"


def test_without_the_budgets_the_upgrade_is_unknown() -> None:
    world = nodes(2)
    world.unread.append(Unread("poddisruptionbudgets", "this account may not list poddisruptionbudgets"))
    assert rolled(world) == Roll("unknown", "poddisruptionbudgets could not be read", ())


def test_without_the_webhooks_the_upgrade_is_unknown() -> None:
    world = nodes(2)
    stateless(world, "web", ["win-1"])
    name = "validatingwebhookconfigurations"
    world.unread.append(Unread(name, f"this account may not list {name}"))
    roll = rolled(world)
    assert (roll.answer, roll.because) == ("unknown", f"{name} could not be read")


def test_a_cluster_without_windows_nodes_has_no_such_upgrade() -> None:
    world = World()
    node(world, "linux-1", windows=False)
    assert evaluate(world.snapshot()).roll is None


def test_every_form_of_the_report_says_where_it_stops_and_why() -> None:
    world = healthy()
    pod(world, "bare", pod_spec(), on="win-2")
    report = evaluate(world.snapshot())
    lines = render_terminal(report, 200).splitlines()
    stop = "An upgrade that drains node by node stops at node win-2."
    because = "a pod in shop does not start again: no controller recreates it"
    # The workloads are ready, so that nothing else is to be done first.
    assert lines[1] == lines[-2] == stop
    assert lines[-1] == f"Begin with node win-2: {because}"
    assert sum(because in line for line in lines) == 2
    page = render_html(report)
    assert f'<a href="#roll">{stop}</a></p></div></section>' in page
    assert 'See <a href="#roll">what stops the upgrade\'s drains</a>' in page
    assert because in page


def test_drains_that_may_stop_are_unknown_in_words() -> None:
    world = nodes(2)
    world.unread.append(Unread("poddisruptionbudgets", "this account may not list poddisruptionbudgets"))
    text = " ".join(render_terminal(evaluate(world.snapshot()), 200).split())
    assert "Whether an upgrade that drains node by node finishes is unknown: poddisruptionbudgets could not" in text
