# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One read-only pass over a cluster for readiness. I/O only, no evaluation.

Every list shows the same moment: the first one returns its resourceVersion, and the others request exactly that. So a
pod is never on a node that came later, and a claim never bound to a volume that was not there yet. When the server no
longer has that moment, the whole pass starts again.

Pages are decoded into the few fields that are evaluated and turned into facts at once. What has nothing to do with volumes is
dropped there, and what only Linux uses once that is known, so that memory follows what is evaluated, not the cluster's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from ..base.collector import pause_collector
from ..catalog.wmco import OPERATOR_NAMESPACE
from ..kube import kinds
from ..kube.access import Need
from ..kube.client import Client
from ..kube.errors import ClusterError, GoneError
from ..kube.kinds import Kind
from ..kube.node import ObservedNode
from . import wire
from .facts.admission import PriorityClass, Webhook
from .facts.cluster import (
    ObservedCluster,
    ObservedController,
    ObservedDriver,
    ObservedNamespace,
    ObservedRuntimeClass,
)
from .facts.nodes import ObservedCsiNode, ObservedHost
from .facts.resources import LimitRange, ResourceQuota
from .facts.scheduling import ObservedBudget, PodTable
from .facts.snapshot import Snapshot, Unread
from .facts.sources import ObservedClaim
from .facts.storage import ObservedAttachment, ObservedClass, ObservedVolume
from .facts.workloads import ObservedPod, ObservedTemplate, needs_details, pod_is_evaluated, read_owner
from .revisions import find_doubted_templates, set_revision
from .scope import Scope, limit_scope, list_config_maps

T = TypeVar("T")
Items = Sequence[Mapping[str, Any]]

OPERATOR = "windows-machine-config-operator"

# Most objects of these kinds have a controller.
_OWNED = (kinds.REPLICA_SET, kinds.JOB)

# Moments that may be lost before the pass is given up.
_TRIES = 3


class Reading:
    """How far a pass is, as text; read by another thread."""

    def __init__(self) -> None:
        self._all, self._plural, self._of_these = 0, "", 0

    def page(self, plural: str, count: int) -> None:
        """So many objects more."""
        self._of_these = count + (self._of_these if plural == self._plural else 0)
        self._all, self._plural = self._all + count, plural

    def __str__(self) -> str:
        return f"reading the cluster: {self._all:,} objects so far, now {self._plural} ({self._of_these:,})"


def take(
    client: Client,
    *,
    name: str = "",
    hosts: Iterable[ObservedHost] = (),
    hosts_at: datetime | None = None,
    reading: Reading | None = None,
) -> Snapshot:
    """Read everything that readiness is evaluated from. reading: called with each page.

    What this account may not read is in `unread`. Raises ClusterError when something else goes wrong: then there is no
    snapshot, because a part of one could be taken for the whole. Needs msgspec.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            with pause_collector():
                return _Pass(client, reading or Reading()).make_snapshot(name, tuple(hosts), hosts_at)
        except GoneError as error:
            if attempt == _TRIES:
                raise GoneError(
                    f"the API server expired the list {_TRIES} times ({error}): reading takes longer than it keeps "
                    "its history, usually 5 minutes. Run this nearer to the API server, or at a quieter time.",
                    "gone", 410,
                ) from error  # fmt: skip
    raise AssertionError("unreachable: the loop returns or raises")


class _Pass:
    """One try."""

    def __init__(self, client: Client, reading: Reading) -> None:
        self._client, self._reading = client, reading
        self._at = ""
        self._unread: list[Unread] = []

    def make_snapshot(self, name: str, hosts: tuple[ObservedHost, ...], hosts_at: datetime | None) -> Snapshot:
        kubernetes = self._client.read_version()
        nodes = self._list(kinds.NODE, wire.NodeList, _map_each(ObservedNode.from_object))
        taken_at = self._client.now()
        windows = frozenset(node.name for node in nodes if node.windows)
        controllers: list[ObservedController] = []
        templates: list[ObservedTemplate] = []
        for kind in kinds.TEMPLATES:
            decode = _decode(wire.BriefTemplateList, wire.TemplateList, lambda item: not read_owner(item["metadata"]))
            facts = _read_templates(kind.kind, controllers)
            templates += self._list(kind, wire.TemplateList, facts, decode=decode if kind in _OWNED else None)
        table = PodTable()
        decode = _decode(
            wire.BriefPodList, wire.PodList, lambda pod: needs_details(pod) and pod_is_evaluated(pod, windows)
        )
        pods = self._list(kinds.POD, wire.PodList, _read_pods(windows, table), decode=decode)
        shapes = table.close(windows, [template.shape for template in templates])
        # What was not read may be of interest to Windows, so then nothing is left out.
        scope = Scope(tuple(templates), pods) if self._unread else limit_scope(nodes, templates, pods)
        del pods, templates
        doubted = {template.key for template in find_doubted_templates(scope.templates, scope.pods)}
        claims, attachments = self._read_claims(scope, windows)
        kept_pods = scope.pods
        kept_templates = tuple(
            set_revision(template, self._read_revisions(template)) if template.key in doubted else template
            for template in scope.templates
        )
        # Its sets of names are large.
        del scope
        namespaces = self._list(kinds.NAMESPACE, wire.NamespaceList, _map_each(ObservedNamespace.from_object))
        cluster = self._read_cluster(kubernetes, namespaces)
        names = None if self._is_unread(kinds.NAMESPACE) else frozenset(namespace.name for namespace in namespaces)
        return Snapshot(
            taken_at=taken_at,
            name=name,
            cluster=cluster,
            hosts=hosts,
            hosts_at=hosts_at,
            nodes=nodes,
            templates=kept_templates,
            controllers=tuple(controllers),
            pods=kept_pods,
            shapes=shapes,
            budgets=self._list(kinds.DISRUPTION_BUDGET, wire.BudgetList, _map_each(ObservedBudget.from_object)),
            pods_on={node: tuple(table.by_node.pop(node)) for node in [*table.by_node]},
            namespaces=namespaces,
            csi_nodes=self._list(kinds.CSI_NODE, wire.CsiNodeList, _read_csi_nodes(windows if nodes else None)),
            volumes=self._list(kinds.PERSISTENT_VOLUME, wire.VolumeList, _map_each(ObservedVolume.from_object)),
            claims=claims,
            attachments=attachments,
            classes=self._list(kinds.STORAGE_CLASS, wire.StorageClassList, _map_each(ObservedClass.from_object)),
            drivers=self._list(kinds.CSI_DRIVER, wire.CsiDriverList, _map_each(ObservedDriver.from_object)),
            runtime_classes=self._list(
                kinds.RUNTIME_CLASS, wire.RuntimeClassList, _map_each(ObservedRuntimeClass.from_object)
            ),
            priority_classes=self._list(
                kinds.PRIORITY_CLASS, wire.PriorityClassList, _map_each(PriorityClass.from_object)
            ),
            service_accounts=self._list(kinds.SERVICE_ACCOUNT, wire.ServiceAccountList, _list_names(kept_templates)),
            quotas=self._list(kinds.RESOURCE_QUOTA, wire.QuotaList, _map_each(ResourceQuota.from_object)),
            limit_ranges=self._list(kinds.LIMIT_RANGE, wire.LimitRangeList, _map_each(LimitRange.from_object)),
            missing_webhooks=self._read_missing_webhooks(),
            feature_states=self._read_feature_states(list_config_maps(controllers, kept_templates, names)),
            # Last, because all of the above adds to it.
            unread=tuple(dict.fromkeys(self._unread)),
        )

    def _list(
        self,
        kind: Kind,
        shape: Any,
        facts: Callable[[Items], Iterable[T]],
        namespace: str | None = None,
        labels: str = "",
        decode: Callable[[bytes], Any] | None = None,
    ) -> tuple[T, ...]:
        """The facts of every object of a kind. Without the right to list them, none, and `unread` says so."""
        import msgspec

        results: list[T] = []
        decode = decode or msgspec.json.Decoder(shape).decode
        try:
            for page in self._client.read_pages(kind, decode, namespace, label_selector=labels or None, at=self._at):
                items = page.get("items") or ()
                results.extend(facts(items))
                self._reading.page(kind.plural, len(items))
                self._at = self._at or str((page.get("metadata") or {}).get("resourceVersion") or "")
                # Before the next page is decoded.
                del page, items
        except ClusterError as error:
            if not self._is_forgiven(error, "list", kind):
                raise
        return tuple(results)

    def _read_revisions(self, plugin: ObservedTemplate) -> Items:
        """The templates that a node plugin has and had."""
        selector = plugin.plugin.selector if plugin.plugin is not None else ""
        return self._list(kinds.CONTROLLER_REVISION, wire.RevisionList, tuple, plugin.namespace, selector)

    def _read_missing_webhooks(self) -> tuple[Webhook, ...]:
        """Webhooks of new pods and of what these need whose Service does not exist."""
        webhooks = [
            webhook
            for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
            for item in self._list(kind, wire.WebhookList, tuple)
            for webhook in Webhook.list_from_object(kind.kind, item)
        ]
        services = {webhook.service: webhook.service.split("/") for webhook in webhooks}
        found = {service: self._get(kinds.SERVICE, name, namespace) for service, (namespace, name) in services.items()}
        return tuple(webhook for webhook in webhooks if found[webhook.service] is None)

    def _read_claims(
        self, scope: Scope, windows: frozenset[str]
    ) -> tuple[tuple[ObservedClaim, ...], tuple[ObservedAttachment, ...]]:
        """The claims that are kept, and the attachments, without those of volumes of other claims to Linux nodes."""
        linux_volumes: set[str] = set()

        def facts(items: Items) -> Iterable[ObservedClaim]:
            for item in items:
                metadata = item["metadata"]
                if f"{metadata['namespace']}/{metadata['name']}" not in scope.elsewhere:
                    yield ObservedClaim.from_object(item)
                elif volume := (item.get("spec") or {}).get("volumeName"):
                    linux_volumes.add(volume)

        claims = self._list(kinds.PERSISTENT_VOLUME_CLAIM, wire.ClaimList, facts)
        of_volumes = _read_attachments(windows, linux_volumes)
        return claims, self._list(kinds.VOLUME_ATTACHMENT, wire.AttachmentList, of_volumes)

    def _is_forgiven(self, error: ClusterError, verb: str, kind: Kind, where: str = "") -> bool:
        """Whether the pass continues without this: it does not exist here, or may not be read, which is recorded."""
        if error.status == 403:
            why = f"this account may not {verb} {kind.plural}{where}"
            self._unread.append(Unread(kind.plural, why, Need(verb, kind.group, kind.plural).rule()))
        return error.status in (403, 404)

    def _is_unread(self, kind: Kind) -> bool:
        """Whether something of that kind could not be read."""
        return any(unread_list.resource == kind.plural for unread_list in self._unread)

    def _get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | Unread | None:
        """One object; None when it does not exist, which is never what a missing permission means."""
        try:
            return self._client.get(kind, name, namespace)
        except ClusterError as error:
            if not self._is_forgiven(error, "get", kind, f" {namespace}/{name}" if namespace else f" {name}"):
                raise
            return self._unread[-1] if error.status == 403 else None

    def _list_namespaced(self, kind: Kind, namespace: str) -> Items:
        """The objects of a kind in one namespace."""
        try:
            return self._client.list(kind, namespace).items
        except ClusterError as error:
            if not self._is_forgiven(error, "list", kind, f" in {namespace}"):
                raise
            return ()

    def _read_cluster(self, kubernetes: str, namespaces: Sequence[ObservedNamespace]) -> ObservedCluster:
        names = {namespace.name for namespace in namespaces}
        if names and not any(name.startswith("openshift-") for name in names):
            return ObservedCluster(kubernetes=kubernetes)
        version = self._get(kinds.CLUSTER_VERSION, "version")
        if version is None or isinstance(version, Unread):
            if "openshift-cluster-version" in names and version is None:
                why = "ClusterVersion version does not exist, although namespace openshift-cluster-version does"
                self._unread.append(Unread(kinds.CLUSTER_VERSION.plural, why))
            return ObservedCluster(kubernetes=kubernetes)
        releases = [
            str((item.get("spec") or {}).get("version") or "")
            for item in self._list_namespaced(kinds.CLUSTER_SERVICE_VERSION, OPERATOR_NAMESPACE)
            if str(item["metadata"]["name"]).startswith(OPERATOR)
        ]
        openshift, updating_to = ObservedCluster.read_openshift_versions(version)
        return ObservedCluster(
            kubernetes=kubernetes,
            openshift=openshift,
            updating_to=updating_to,
            wmco=releases[-1] if releases else "",
        )

    def _read_feature_states(self, keys: Iterable[tuple[str, str]]) -> dict[str, dict[str, str] | None]:
        """What may not be read is left out, so that it is not taken for a ConfigMap that is not there."""
        maps = {f"{namespace}/{name}": self._get(kinds.CONFIG_MAP, name, namespace) for namespace, name in keys}
        return {
            key: None if config_map is None else dict(config_map.get("data") or {})
            for key, config_map in maps.items()
            if not isinstance(config_map, Unread)
        }


def _map_each(fact: Callable[[Mapping[str, Any]], T]) -> Callable[[Items], Iterable[T]]:
    return lambda items: map(fact, items)


def _list_names(templates: Iterable[ObservedTemplate]) -> Callable[[Items], Iterable[str]]:
    """The ServiceAccounts that templates name, "namespace/name"."""
    named = {f"{template.namespace}/{template.admit.service_account}" for template in templates}

    def facts(items: Items) -> Iterable[str]:
        keys = (f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items)
        return (key for key in keys if key in named)

    return facts


def _decode(brief: Any, whole: Any, needs_whole: Callable[[Mapping[str, Any]], bool]) -> Callable[[bytes], Any]:
    """Decode pages of objects of which few are needed whole: a page with such an object is decoded again."""
    import msgspec

    decode_brief, decode_whole = (msgspec.json.Decoder(shape).decode for shape in (brief, whole))

    def decode(page: bytes) -> Any:
        content = decode_brief(page)
        return decode_whole(page) if any(map(needs_whole, content.get("items") or ())) else content

    return decode


def _read_pods(windows: frozenset[str], table: PodTable) -> Callable[[Items], Iterable[ObservedPod]]:
    def facts(items: Items) -> Iterable[ObservedPod]:
        for pod in items:
            shape = table.add(pod)
            if pod_is_evaluated(pod, windows):
                yield ObservedPod.from_object(pod, shape)

    return facts


def _read_csi_nodes(windows: frozenset[str] | None) -> Callable[[Items], Iterable[ObservedCsiNode]]:
    return lambda items: [
        ObservedCsiNode.from_object(item) for item in items if windows is None or item["metadata"]["name"] in windows
    ]


def _read_attachments(
    windows: frozenset[str], linux_volumes: set[str]
) -> Callable[[Items], Iterable[ObservedAttachment]]:
    def facts(items: Items) -> Iterable[ObservedAttachment]:
        for item in items:
            spec = item.get("spec") or {}
            if (
                spec.get("nodeName") in windows
                or (spec.get("source") or {}).get("persistentVolumeName") not in linux_volumes
            ):
                yield ObservedAttachment.from_object(item)

    return facts


def _read_templates(kind: str, controllers: list[ObservedController]) -> Callable[[Items], Iterable[ObservedTemplate]]:
    """Templates with volumes; what is a driver's controller goes to `controllers`."""

    def facts(items: Items) -> Iterable[ObservedTemplate]:
        for item in items:
            if kind == kinds.DEPLOYMENT.kind and (controller := ObservedController.from_object(item)) is not None:
                controllers.append(controller)
            if _is_needed(kind, item):
                yield ObservedTemplate.from_object(kind, item)

    return facts


def _is_needed(kind: str, item: Mapping[str, Any]) -> bool:
    """Whether a template matters for the evaluation: it may be a node plugin, or its pods have volumes."""
    spec = item.get("spec") or {}
    if kind == kinds.DAEMON_SET.kind or spec.get("volumeClaimTemplates"):
        return True
    outer = ((spec.get("jobTemplate") or {}).get("spec") or {}) if kind == kinds.CRON_JOB.kind else spec
    return pod_is_evaluated({"metadata": {}, "spec": (outer.get("template") or {}).get("spec")}, frozenset())
