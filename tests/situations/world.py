# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster as plain objects that a real API server takes too, and what a pass over it would read.

References between objects carry the uids that `uid` makes; creating the objects on a real server replaces them by that server's
uids there instead.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.admission import PriorityClass, Webhook
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.cluster import (
    ObservedCluster,
    ObservedController,
    ObservedDriver,
    ObservedNamespace,
    ObservedRuntimeClass,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.nodes import ObservedCsiNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.resources import LimitRange, ResourceQuota
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.scheduling import (
    NO_SHAPE,
    ObservedBudget,
    PodShape,
    PodTable,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot, Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import (
    ObservedAttachment,
    ObservedClass,
    ObservedVolume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import (
    ObservedJob,
    ObservedPod,
    ObservedTemplate,
    pod_is_evaluated,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.revisions import (
    find_doubted_templates,
    set_revision,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scope import list_config_maps
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import PodToStart

Object = dict[str, Any]
NOW = datetime(2026, 11, 20, 23, 0, tzinfo=timezone.utc)
KUBERNETES = "v1.36.3"
TEMPLATES = (
    "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob",
)  # fmt: skip
API_VERSIONS = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision"), "apps/v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch/v1"),
    **dict.fromkeys(("CSINode", "CSIDriver", "StorageClass", "VolumeAttachment"), "storage.k8s.io/v1"),
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "ClusterVersion": "config.openshift.io/v1",
}


def uid(kind: str, name: str, namespace: str = "") -> str:
    """A uid that stays the same for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{namespace}/{name}"))


@dataclass
class World:
    """A cluster. hosts: results of csi_proxy_info. kubernetes: the version of the API server."""

    now: datetime = NOW
    kubernetes: str = KUBERNETES
    objects: list[Object] = field(default_factory=list)
    hosts: list[Object] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def copy(self) -> World:
        """One that can be spoilt."""
        return copy.deepcopy(self)

    # Making and finding objects

    def add(self, kind: str, name: str, namespace: str = "", **parts: Any) -> Object:
        """Put an object in. metadata given in parts is added to the name."""
        metadata = {"name": name, "uid": uid(kind, name, namespace), "creationTimestamp": self.ago(days=30)}
        if namespace:
            metadata["namespace"] = namespace
        metadata.update(parts.pop("metadata", {}))
        made = {"apiVersion": API_VERSIONS.get(kind, "v1"), "kind": kind, "metadata": metadata, **parts}
        self.objects.append(made)
        return made

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """The one object of that name."""
        return next(one for one in self.of(kind) if _is(one, name, namespace))

    def of(self, kind: str) -> Iterator[Object]:
        """Every object of a kind."""
        return (one for one in self.objects if one["kind"] == kind)

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Take an object out."""
        found = self.get(kind, name, namespace)
        self.objects = [one for one in self.objects if one is not found]

    def host(self, node: str) -> Object:
        """What was seen on a node's host."""
        return next(one for one in self.hosts if one["node"] == node)

    def ago(self, **time: float) -> str:
        """A moment of the past, as the API writes it."""
        return (self.now - timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")

    # What a pass over it reads

    def snapshot(self) -> Snapshot:
        """As the pass over a cluster would read it."""
        windows = {one["metadata"]["name"] for one in self.of("Node") if ObservedNode.from_object(one).windows}
        deployments = [ObservedController.from_object(one) for one in self.of("Deployment")]
        templates = [ObservedTemplate.from_object(kind, one) for kind in TEMPLATES for one in self.of(kind)]
        revisions = [*self.of("ControllerRevision")]
        table = PodTable()
        noted = [(one, *table.add(one)) for one in self.of("Pod")]
        pods = [ObservedPod.from_object(*pod) for pod in noted if pod_is_evaluated(pod[0], windows)]
        doubts = {one.key for one in find_doubted_templates(templates, pods)}
        return Snapshot(
            taken_at=self.now,
            hosts_at=self.now,
            name="lab",
            cluster=self._cluster(),
            nodes=tuple(ObservedNode.from_object(one) for one in self.of("Node")),
            csi_nodes=tuple(ObservedCsiNode.from_object(one) for one in self.of("CSINode")),
            volumes=tuple(ObservedVolume.from_object(one) for one in self.of("PersistentVolume")),
            claims=tuple(ObservedClaim.from_object(one) for one in self.of("PersistentVolumeClaim")),
            attachments=tuple(ObservedAttachment.from_object(one) for one in self.of("VolumeAttachment")),
            classes=tuple(ObservedClass.from_object(one) for one in self.of("StorageClass")),
            pods=tuple(pods),
            shapes=table.close(windows, [one.shape for one in templates]),
            budgets=tuple(ObservedBudget.from_object(one) for one in self.of("PodDisruptionBudget")),
            pods_on={node: tuple(numbers) for node, numbers in table.by_node.items()},
            jobs={
                f"{one['metadata']['namespace']}/{one['metadata']['name']}": ObservedJob.from_object(one)
                for one in self.of("Job")
            },
            templates=tuple(set_revision(one, revisions) if one.key in doubts else one for one in templates),
            drivers=tuple(ObservedDriver.from_object(one) for one in self.of("CSIDriver")),
            controllers=tuple(one for one in deployments if one is not None),
            namespaces=tuple(ObservedNamespace.from_object(one) for one in self.of("Namespace")),
            feature_states=self._feature_states(templates, [one for one in deployments if one is not None]),
            runtime_classes=tuple(ObservedRuntimeClass.from_object(one) for one in self.of("RuntimeClass")),
            priority_classes=tuple(PriorityClass.from_object(one) for one in self.of("PriorityClass")),
            service_accounts=self._service_accounts(templates),
            quotas=tuple(ResourceQuota.from_object(one) for one in self.of("ResourceQuota")),
            limit_ranges=tuple(LimitRange.from_object(one) for one in self.of("LimitRange")),
            missing_webhooks=tuple(self._list_missing_webhooks()),
            hosts=tuple(ObservedHost.from_option(one) for one in self.hosts),
            unread=tuple(self.unread),
        )

    def _list_missing_webhooks(self) -> Iterator[Webhook]:
        services = {f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in self.of("Service")}
        for item in self.of("ValidatingWebhookConfiguration"):
            webhooks = Webhook.list_from_object("ValidatingWebhookConfiguration", item)
            yield from (webhook for webhook in webhooks if webhook.service not in services)

    def _service_accounts(self, templates: list[ObservedTemplate]) -> tuple[str, ...]:
        named = {f"{one.namespace}/{one.admit.service_account}" for one in templates}
        metadata = (one["metadata"] for one in self.of("ServiceAccount"))
        return tuple(key for one in metadata if (key := f"{one['namespace']}/{one['name']}") in named)

    def _feature_states(
        self, templates: list[ObservedTemplate], controllers: list[ObservedController]
    ) -> dict[str, dict[str, str] | None]:
        """Those that there are, and those that the pass would find absent."""
        unread = {one.resource for one in self.unread}
        there = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in self.of("ConfigMap")}
        if "configmaps" in unread:
            return {}
        names = None if "namespaces" in unread else frozenset(one["metadata"]["name"] for one in self.of("Namespace"))
        asked = list_config_maps(controllers, templates, names)
        return {"/".join(key): there[key].get("data") or {} if key in there else None for key in asked}

    def _cluster(self) -> ObservedCluster:
        version = next(self.of("ClusterVersion"), None)
        if version is None:
            return ObservedCluster(kubernetes=self.kubernetes)
        openshift, updating_to = ObservedCluster.read_openshift_versions(version)
        return ObservedCluster(
            kubernetes=self.kubernetes,
            openshift=openshift,
            updating_to=updating_to,
        )


def _is(one: Mapping[str, Any], name: str, namespace: str) -> bool:
    metadata = one["metadata"]
    return bool(metadata["name"] == name and metadata.get("namespace", "") == namespace)


def observed_pod(pod: Object) -> ObservedPod:
    """A pod as a pass over a cluster reads it, without its number."""
    return ObservedPod.from_object(pod, PodShape.from_object(pod, pod["metadata"]["namespace"]))


def to_start(observed: ObservedPod, shape: PodShape = NO_SHAPE) -> PodToStart:
    """A pod as the walk asks about it."""
    return PodToStart(
        workload=f"Pod {observed.key}",
        namespace=observed.namespace,
        name=observed.name,
        placement=observed.placement,
        node=observed.node,
        claims=tuple(f"{observed.namespace}/{name}" for name in observed.volumes.claims),
        new_claims=observed.volumes.ephemeral,
        inline=observed.volumes.inline,
        shape=shape,
    )
