# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and what makes them. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.text import join_lines, share_text
from ...catalog import in_tree
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.labels import is_of_run
from ...kube.pod import ENDED, MIRROR, PodFacts, find_controller
from .admission import NO_POD, PodToAdmit
from .placement import ANYWHERE, Placement
from .pod_spec import Dependency, find_dependencies
from .scheduling import NO_SHAPE, PodShape
from .sources import NO_VOLUMES, ObservedClaim, Volumes


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod. owner: "Kind/name" of its controller. mirror: of a static pod. plugin: only of pods of DaemonSets, for gates.

    host_process: it runs on the host itself. gone_by: when one that is being deleted should
    have been gone. waits: why one that is Pending does not start; waits_since: since when. shape: its number in the snapshot, -1 if
    it takes no room on a node.
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = "Running"
    owner: str = ""
    mirror: bool = False
    placement: Placement = ANYWHERE
    volumes: Volumes = NO_VOLUMES
    host_process: bool = False
    plugin: PodFacts | None = None
    gone_by: str = ""
    waits: str = ""
    waits_since: str = ""
    shape: int = -1

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether its containers will not run again."""
        return self.phase in ENDED

    @classmethod
    def from_object(cls, pod: Mapping[str, Any], shape: PodShape, number: int = -1) -> ObservedPod:
        """Read a core/v1 Pod of that shape. number: of the shape."""
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        options = (spec.get("securityContext") or {}).get("windowsOptions") or {}
        waits, waits_since = _find_wait(pod)
        return cls(
            namespace=sys.intern(str(metadata["namespace"])),
            name=str(metadata["name"]),
            node=share_text(spec.get("nodeName")),
            phase=share_text((pod.get("status") or {}).get("phase")),
            owner=sys.intern(shape.owner),
            mirror=MIRROR in (metadata.get("annotations") or {}),
            placement=shape.placement,
            volumes=Volumes.from_spec(spec),
            host_process=bool(options.get("hostProcess")),
            plugin=PodFacts.from_object(pod) if shape.owner.startswith("DaemonSet/") else None,
            gone_by=str(metadata.get("deletionTimestamp") or ""),
            waits=waits,
            waits_since=waits_since,
            shape=number,
        )


# Phases of pods that wait for nothing.
_STARTED = frozenset({"Running", *ENDED})


def needs_details(pod: Mapping[str, Any]) -> bool:
    """Whether facts of a core/v1 Pod have the conditions and containers of its status."""
    return _is_waiting(pod) or find_controller(pod["metadata"])[0] == "DaemonSet"


def _is_waiting(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") not in _STARTED


def _find_wait(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Why a core/v1 Pod that is Pending does not start, and since when; empty for any other.

    A pod is Pending until each of its containers has started once (https://github.com/kubernetes/kubernetes,
    pkg/kubelet/kubelet_pods.go, getPhase).
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    if not _is_waiting(pod) or metadata.get("deletionTimestamp"):
        return "", ""
    conditions = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    since = str(scheduled.get("lastTransitionTime") or metadata.get("creationTimestamp") or "")
    if scheduled.get("status") == "False":
        return join_lines(f"no node is found for it: {scheduled.get('message') or 'no reason is given'}"), since
    for container in status.get("containerStatuses") or ():
        if waiting := (container.get("state") or {}).get("waiting"):
            parts = (f"container {container.get('name', '')} waits:", waiting.get("reason"), waiting.get("message"))
            return join_lines(" ".join(str(part) for part in parts if part)), since
    return f"it is {status.get('phase') or 'Pending'}", since


def read_owner(metadata: Mapping[str, Any]) -> str:
    """ "Kind/name" of the object that controls this one, empty when none does."""
    return "/".join(filter(None, find_controller(metadata)))


# Fields of a volume that storage drivers have to do with.
_OF_DRIVERS = in_tree.EVALUATED - {"hostPath"} | {"persistentVolumeClaim", "ephemeral"}


def pod_is_evaluated(pod: Mapping[str, Any], windows_nodes: frozenset[str] | set[str]) -> bool:
    """Whether a core/v1 Pod matters for the evaluation, so that the many others cost nothing.

    It has a claim or an inline volume of a storage driver; or a DaemonSet put it on a Windows node. A pod that a
    run of this collection left behind does not matter: it ends by itself, and nobody expects it to start again.
    """
    spec = pod.get("spec") or {}
    return (
        not all(map(_OF_DRIVERS.isdisjoint, spec.get("volumes") or ()))
        or (spec.get("nodeName") in windows_nodes and find_controller(pod["metadata"])[0] == "DaemonSet")
    ) and not is_of_run(pod)


# The last two come first, while pods still run (https://github.com/kubernetes/kubernetes, pkg/controller/job/job_controller.go).
_ENDS_OF_JOBS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
# Of a Job that no failed pod ends.
NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """How many more pods of a Job may fail before the Job fails. An evicted pod counts as failed.

    retries: of all its pods. retries_per_index: of those of one completion index. because: the fields that say so.
    """

    retries: int = NO_LIMIT
    retries_per_index: int = NO_LIMIT
    because: str = ""

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> ObservedJob:
        """Read a batch/v1 Job: spec (backoffLimit, backoffLimitPerIndex, managedBy, podFailurePolicy), status (conditions, failed).

        https://github.com/kubernetes/kubernetes, pkg/controller/job: syncJob and isPodFailed in job_controller.go, and
        pod_failure_policy.go.
        """
        spec, status = item.get("spec") or {}, item.get("status") or {}
        if _is_finished(status):
            return cls()
        if manager := _find_manager(spec):
            return cls(0, because=f"spec.managedBy: {manager}")
        if policy := spec.get("podFailurePolicy"):
            retries = NO_LIMIT if _ignores_evictions(policy) else 0
            return cls(retries, because="spec.podFailurePolicy, and an evicted pod may fail")
        failed, per_index = int(status.get("failed") or 0), spec.get("backoffLimitPerIndex")
        limit = int(spec.get("backoffLimit", 6 if per_index is None else NO_LIMIT))
        limit_per_index = NO_LIMIT if per_index is None else int(per_index)
        limits = {"backoffLimit": limit, "backoffLimitPerIndex": limit_per_index}
        shown = "".join(f"spec.{name}: {number}, " for name, number in limits.items() if number != NO_LIMIT)
        # All failures may be of one index.
        return cls(
            limit - failed, limit_per_index - failed, f"{shown}status.failed: {failed}, and an evicted pod may fail"
        )


def _find_manager(spec: Mapping[str, Any]) -> str:
    """The controller of a Job if it is another one than Kubernetes' own (batch/v1, JobControllerName)."""
    manager = str(spec.get("managedBy") or "")
    return "" if manager == "kubernetes.io/job-controller" else manager


def _is_finished(status: Mapping[str, Any]) -> bool:
    """Whether a Job makes no more pods."""
    return any(
        condition.get("type") in _ENDS_OF_JOBS and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _ignores_evictions(policy: Mapping[str, Any]) -> bool:
    """Whether a podFailurePolicy does not count evicted pods. The first rule that matches decides, and another one may match exit codes."""
    rule: Mapping[str, Any] = next(iter(policy.get("rules") or ()), {})
    return rule.get("action") == "Ignore" and any(
        condition.get("type") == "DisruptionTarget" and condition.get("status", "True") == "True"
        for condition in rule.get("onPodConditions") or ()
    )


@dataclass(frozen=True, slots=True)
class ObservedTemplate:
    """Something that makes pods: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob.

    owner: its controller, "Kind/name", whose template says the same; of one with an owner no more is kept. replicas: None where pods follow nodes
    or completions. parallel: how many pods of a Job run at a time. finished: a Job that is done.
    first: the first ordinal of a StatefulSet. node: spec.nodeName of its pods. surges: its rollout starts a pod before the one
    that it replaces ends. lacks: why it has fewer pods that work than it asks for; lacks_since: since when, empty if it is not known.
    dependencies: what its pods need and no rule reads. admit: what admission reads. held_back: why its next pods may not be made from this template.
    """

    kind: str
    namespace: str
    name: str
    owner: str = ""
    replicas: int | None = None
    parallel: int = 1
    finished: bool = False
    placement: Placement = ANYWHERE
    shape: PodShape = NO_SHAPE
    node: str = ""
    volumes: Volumes = NO_VOLUMES
    claim_templates: tuple[ObservedClaim, ...] = ()
    first: int = 0
    surges: bool = False
    plugin: ObservedDaemonSet | None = None
    lacks: str = ""
    lacks_since: str = ""
    dependencies: tuple[Dependency, ...] = ()
    admit: PodToAdmit = NO_POD
    held_back: str = ""

    @property
    def key(self) -> str:
        """ "Kind namespace/name"."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def runs(self) -> bool:
        """Whether it has pods now or will have by itself; one that runs by the clock comes at its own time."""
        return not self.finished and self.replicas != 0 and self.kind != "CronJob"

    @classmethod
    def from_object(cls, kind: str, item: Mapping[str, Any]) -> ObservedTemplate:
        """Read a Deployment, StatefulSet, DaemonSet or ReplicaSet (apps/v1), ReplicationController (v1), Job or CronJob (batch/v1)."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        namespace, name, owner = sys.intern(str(metadata["namespace"])), str(metadata["name"]), read_owner(metadata)
        if owner and kind != "DaemonSet":
            return cls(kind, namespace, name, owner)
        outer = ((spec.get("jobTemplate") or {}).get("spec") or {}) if kind == "CronJob" else spec
        template = outer.get("template") or {}
        pod = template.get("spec") or {}
        claims = {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates") or ()}
        if claims and "volumes" in pod:
            # Their volumes take the place of others with the same name (pkg/controller/statefulset/stateful_set_utils.go, updateStorage).
            pod = {**pod, "volumes": [volume for volume in pod["volumes"] or () if volume.get("name") not in claims]}
        has_replicas = kind not in ("DaemonSet", "Job", "CronJob")
        lacks, lacks_since = _find_lack(kind, spec, status)
        return cls(
            kind=kind,
            namespace=namespace,
            name=name,
            owner=owner,
            replicas=int(1 if spec.get("replicas") is None else spec["replicas"]) if has_replicas else None,
            parallel=_count_parallel(outer, int(status.get("succeeded") or 0)),
            finished=kind == "Job" and _is_finished(status),
            placement=Placement.from_spec(pod),
            shape=PodShape.from_object(template, namespace),
            node=str(pod.get("nodeName") or ""),
            volumes=Volumes.from_spec(pod),
            claim_templates=tuple(
                ObservedClaim.from_template(str(claim_template["metadata"]["name"]), claim_template)
                for claim_template in spec.get("volumeClaimTemplates") or ()
            ),
            first=int((spec.get("ordinals") or {}).get("start") or 0),
            surges=_has_surge(kind, spec),
            plugin=ObservedDaemonSet.from_object(item) if kind == "DaemonSet" else None,
            lacks=lacks,
            lacks_since=lacks_since,
            dependencies=find_dependencies(pod, namespace),
            admit=PodToAdmit.from_spec(pod, deleting=bool(metadata.get("deletionTimestamp"))),
            held_back=_find_hold(kind, spec, outer, status),
        )


def _find_hold(kind: str, spec: Mapping[str, Any], outer: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Why a workload may not make its next pods, or from an earlier revision. outer: what has the pod template.

    A paused Deployment scales the ReplicaSets that it has, and a StatefulSet makes the ordinals below its partition from its
    current revision (https://github.com/kubernetes/kubernetes, pkg/controller/deployment/deployment_controller.go,
    syncDeployment; pkg/controller/statefulset/stateful_set_utils.go, newVersionedStatefulSetPod). An upgrade evicts each pod of
    a Job.
    """
    if kind == "Deployment" and spec.get("paused"):
        return "spec.paused: true"
    if manager := _find_manager(outer):
        return f"spec.managedBy: {manager}"
    if kind == "Job" and spec.get("activeDeadlineSeconds") and status.get("startTime"):
        return f"spec.activeDeadlineSeconds: {spec['activeDeadlineSeconds']}, status.startTime: {status['startTime']}, and then it fails"
    if kind == "Job":
        job = ObservedJob.from_object({"spec": spec, "status": status})
        active = max(1, int(status.get("active") or 0))
        if job.retries < active or job.retries_per_index < 1:
            return job.because
    partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition")
    current, update = status.get("currentRevision"), status.get("updateRevision")
    if kind == "StatefulSet" and partition and current != update:
        return f"spec.updateStrategy.rollingUpdate.partition: {partition}, revisions {current} and {update}"
    return ""


def _find_lack(kind: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[str, str]:
    """Why a workload has fewer pods that work than it asks for, and since when.

    Only some controllers write a condition (https://github.com/kubernetes/kubernetes, pkg/controller/replicaset, and
    deployment/sync.go, ReplicaFailure); the others show it by their counts alone. A StatefulSet makes no pod after one that
    is not Ready.
    """
    if kind in ("Job", "CronJob"):
        asks_for_pods = not spec.get("suspend") and spec.get("parallelism") != 0
        lacks_pods = asks_for_pods and status.get("startTime") and not status.get("active")
        return ("it has no pod", "") if lacks_pods else ("", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            reasons = (str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return join_lines(f"its pods are not created: {': '.join(reasons)}"), str(
                condition.get("lastTransitionTime") or ""
            )
    of_nodes = kind == "DaemonSet"
    replicas = 1 if spec.get("replicas") is None else spec["replicas"]
    wanted = int((status.get("desiredNumberScheduled") or 0) if of_nodes else replicas)
    created = int(status.get("currentNumberScheduled" if of_nodes else "replicas") or 0)
    if created < wanted:
        return f"{created} of its {wanted} pods exist", ""
    ready = status.get("numberReady" if of_nodes else "readyReplicas")
    if ready is None and not status.get("observedGeneration"):
        # A controller leaves out a zero; this status is of none.
        return "", ""
    return (f"{ready or 0} of its {created} pods are Ready", "") if (ready or 0) < created else ("", "")


def _count_parallel(spec: Mapping[str, Any], succeeded: int) -> int:
    """How many pods of a Job run at a time from now on; of one that is suspended by a zero, one."""
    parallelism = int(spec.get("parallelism") or 1)
    completions = spec.get("completions")
    return max(1, parallelism if completions is None else min(parallelism, int(completions) - succeeded))


def _has_surge(kind: str, spec: Mapping[str, Any]) -> bool:
    """Whether a rollout may start a pod before the one that it replaces ends; so it does by default for a Deployment alone."""
    strategy = spec.get("strategy" if kind == "Deployment" else "updateStrategy") or {}
    if kind not in ("Deployment", "DaemonSet") or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return False
    surge = (strategy.get("rollingUpdate") or {}).get("maxSurge", "25%" if kind == "Deployment" else 0)
    return str(surge) not in ("0", "0%")
