# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters that already show that something does not start, although no rule has anything against it."""

from __future__ import annotations

from situations.base import VSPHERE, situation
from situations.cluster import SHOP, claim_of, csi, pod_spec, volume, workload
from situations.world import Object, World

WEB = "Deployment shop/web"


def _pending(world: World, condition: Object, **status: object) -> None:
    """A pod of web is Pending for these reasons; the volumes of the workload are fine."""
    world.get("Pod", "web-0", SHOP)["status"] = {"phase": "Pending", "conditions": [condition], **status}


@situation("CSI-W22", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def a_pod_whose_containers_are_created_for_days(world: World) -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": world.ago(days=3)}
    waiting = {"name": "main", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}
    _pending(world, scheduled, containerStatuses=[{**waiting, "image": "", "imageID": ""}])


@situation("CSI-W22", starts_again={WEB: "no"})
def a_pod_that_no_node_takes_for_a_reason_that_is_not_checked(world: World) -> None:
    message = "0/4 nodes are available: 2 Insufficient memory, 2 node(s) had untolerated taint."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    _pending(world, {**refused, "lastTransitionTime": world.ago(hours=2)})
    del world.get("Pod", "web-0", SHOP)["spec"]["nodeName"]


@situation("CSI-W23", starts_again={WEB: "unknown"})
def a_pod_that_has_waited_for_a_minute(world: World) -> None:
    _pending(world, {"type": "PodScheduled", "status": "True", "lastTransitionTime": world.ago(minutes=1)})


@situation("CSI-W22", starts_again={WEB: "no"})
def a_deployment_whose_pods_a_quota_refuses(world: World) -> None:
    message = 'pods "web-6d4f-x" is forbidden: exceeded quota: compute'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    world.get("Deployment", "web", SHOP)["status"] = {
        "replicas": 1,
        "conditions": [{**failure, "lastTransitionTime": world.ago(hours=1)}],
    }


@situation("CSI-W23", starts_again={"StatefulSet shop/db": "unknown"})
def a_stateful_set_of_which_a_pod_is_not_created(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["status"] = {"replicas": 1}


@situation("CSI-V41", starts_again={WEB: "unknown"})
def a_claim_whose_volume_is_not_made_on_its_selected_node(world: World) -> None:
    claim = claim_of(world, "late", storage_class="late")
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "win-1"
    world.add("StorageClass", "late", provisioner=VSPHERE.name, volumeBindingMode="WaitForFirstConsumer",
              parameters={"csi.storage.k8s.io/fstype": "ntfs"}, reclaimPolicy="Delete")  # fmt: skip
    _use(world, "late")


@situation(starts_again={WEB: "yes"})
def a_claim_whose_selected_node_is_gone(world: World) -> None:
    a_claim_whose_volume_is_not_made_on_its_selected_node(world)
    claim = world.get("PersistentVolumeClaim", "late", SHOP)
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "win-9"


def _use(world: World, claim: str) -> None:
    """Web names the claim too, in its template; its pods are those of before."""
    spec = world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"]
    spec["volumes"] = [*spec["volumes"], {"name": "more", "persistentVolumeClaim": {"claimName": claim}}]


@situation("CSI-G13", starts_again={"StatefulSet shop/db": "unknown", "Deployment shop/static": "yes"})
def a_node_plugin_that_restarts_again_and_again(world: World) -> None:
    pod = world.get("Pod", f"{VSPHERE.daemonset}-win-1", VSPHERE.namespace)
    ended = {"exitCode": 1, "reason": "Error", "startedAt": world.ago(hours=4), "finishedAt": world.ago(hours=3)}
    pod["status"]["containerStatuses"][-1].update(restartCount=40, lastState={"terminated": ended})


@situation("CSI-W23", starts_again={"StatefulSet shop/db": "unknown"})
def a_stateful_set_with_a_pod_that_is_not_ready(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["status"]["readyReplicas"] = 1


@situation("CSI-W23", starts_again={"StatefulSet shop/db": "unknown"})
def a_stateful_set_without_a_ready_pod(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["status"]["observedGeneration"] = 1


# The API server deletes at once what no finalizer holds.
_NO_DELETION = "a real API server deletes it"


def _delete(world: World, kind: str, name: str, namespace: str = SHOP) -> None:
    metadata = world.get(kind, name, namespace)["metadata"]
    metadata.update(deletionTimestamp=world.ago(days=2), finalizers=["foregroundDeletion"])


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no"}, only_here=_NO_DELETION)
def a_stateful_set_that_is_being_deleted(world: World) -> None:
    _delete(world, "StatefulSet", "db")


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no", WEB: "yes"}, only_here=_NO_DELETION)
def a_node_plugin_that_is_being_deleted(world: World) -> None:
    _delete(world, "DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)


def _run_job(world: World, active: int = 1, failed: int = 2, **spec: object) -> None:
    status = {"active": active, "failed": failed, "startTime": world.ago(hours=1)}
    workload(world, "Job", "batch", pod_spec("share"), on=["win-1"] * active, status=status, **spec)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_that_fails_with_the_next_evicted_pod(world: World) -> None:
    _run_job(world, backoffLimit=2)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_with_a_policy_for_failures(world: World) -> None:
    condition = {"type": "DisruptionTarget", "status": "True"}
    _run_job(world, podFailurePolicy={"rules": [{"action": "FailJob", "onPodConditions": [condition]}]})


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_with_a_policy_that_ignores_evictions(world: World) -> None:
    condition = {"type": "DisruptionTarget", "status": "True"}
    _run_job(world, backoffLimit=2, podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [condition]}]})


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_with_retries_left(world: World) -> None:
    _run_job(world, backoffLimit=3, managedBy="kubernetes.io/job-controller")


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_with_fewer_retries_than_pods(world: World) -> None:
    _run_job(world, 3, 0, parallelism=3, backoffLimit=2)


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_with_a_retry_for_each_pod(world: World) -> None:
    _run_job(world, 3, 0, parallelism=3, backoffLimit=3)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_with_fewer_retries_than_each_index_has(world: World) -> None:
    _run_job(world, completionMode="Indexed", completions=3, backoffLimitPerIndex=3, backoffLimit=2)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_with_a_deadline(world: World) -> None:
    _run_job(world, activeDeadlineSeconds=7200)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_with_an_index_that_may_have_no_retries_left(world: World) -> None:
    _run_job(world, completionMode="Indexed", completions=3, backoffLimitPerIndex=2)


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_with_retries_left_for_each_index(world: World) -> None:
    _run_job(world, completionMode="Indexed", completions=3, backoffLimitPerIndex=3)


@situation("CSI-W08", starts_again={"Job shop/batch": "unknown"})
def a_job_of_another_controller(world: World) -> None:
    _run_job(world, managedBy="kueue.x-k8s.io/multikueue")


@situation("CSI-W23", starts_again={"Job shop/batch": "unknown"})
def a_job_without_a_pod(world: World) -> None:
    _run_job(world, 0)


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_that_is_suspended_by_a_zero(world: World) -> None:
    _run_job(world, 0, parallelism=0)


@situation(starts_again={"Job shop/batch": "yes"})
def a_job_that_is_about_to_fail(world: World) -> None:
    _run_job(world, backoffLimit=1)
    status = world.get("Job", "batch", SHOP)["status"]
    status["conditions"] = [{"type": "FailureTarget", "status": "True", "lastTransitionTime": world.ago(minutes=1)}]


@situation(starts_again={"Job shop/alone": "yes"})
def a_job_with_one_pod_left_for_its_disk(world: World) -> None:
    volume(world, "pv-alone", csi(VSPHERE.name, "fcd-alone"), "alone")
    status = {"active": 1, "succeeded": 2, "startTime": world.ago(hours=1)}
    workload(world, "Job", "alone", pod_spec("alone"), on=["win-1"], status=status, parallelism=3, completions=3)
