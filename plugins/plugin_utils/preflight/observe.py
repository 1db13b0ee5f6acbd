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
from functools import partial
from typing import Any, TypeVar

from ..catalog.wmco import OPERATOR_NAMESPACE
from ..drivers.rollout.snapshot import ObservedHost
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
from .facts.nodes import ObservedCsiNode
from .facts.resources import LimitRange, ResourceQuota
from .facts.scheduling import ObservedBudget, PodTable, takes_room
from .facts.snapshot import Snapshot, Unread
from .facts.sources import ObservedClaim
from .facts.storage import ObservedAttachment, ObservedClass, ObservedVolume
from .facts.workloads import ObservedJob, ObservedPod, ObservedTemplate, needs_details, pod_is_evaluated, read_owner
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
        nodes = self._list(kinds.NODE, ObservedNode.from_object, wire.NodeList)
        taken_at = self._client.now()
        windows = frozenset(node.name for node in nodes if node.windows)
        controllers: list[ObservedController] = []
        jobs: dict[str, ObservedJob] = {}
        templates: list[ObservedTemplate] = []
        for kind in kinds.TEMPLATES:
            decode = _decode(wire.BriefTemplateList, wire.TemplateList, lambda item: not read_owner(item["metadata"]))
            read_template = partial(_read_template, kind.kind, controllers, jobs)
            templates += self._list(kind, read_template, wire.TemplateList, decode=decode if kind in _OWNED else None)
        table = PodTable()
        decode = _decode(
            wire.make_brief_pod_list(), wire.PodList, lambda pod: needs_details(pod) and pod_is_evaluated(pod, windows)
        )
        pods = self._list(kinds.POD, partial(_read_pod, windows, table), wire.PodList, decode=decode)
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
        namespaces = self._list(kinds.NAMESPACE, ObservedNamespace.from_object, wire.NamespaceList)
        cluster = self._read_cluster(kubernetes, namespaces)
        names = None if self._is_unread(kinds.NAMESPACE) else frozenset(namespace.name for namespace in namespaces)
        accounts = {f"{template.namespace}/{template.admit.service_account}" for template in kept_templates}
        return Snapshot(
            taken_at=taken_at,
            name=name,
            cluster=cluster,
            hosts=hosts,
            hosts_at=hosts_at,
            nodes=nodes,
            templates=kept_templates,
            jobs=jobs,
            controllers=tuple(controllers),
            pods=kept_pods,
            shapes=shapes,
            budgets=self._list(kinds.DISRUPTION_BUDGET, ObservedBudget.from_object, wire.BudgetList),
            pods_on={node: tuple(table.by_node.pop(node)) for node in [*table.by_node]},
            namespaces=namespaces,
            csi_nodes=self._list(kinds.CSI_NODE, partial(_read_csi_node, windows if nodes else None), wire.CsiNodeList),
            volumes=self._list(kinds.PERSISTENT_VOLUME, ObservedVolume.from_object, wire.VolumeList),
            claims=claims,
            attachments=attachments,
            classes=self._list(kinds.STORAGE_CLASS, ObservedClass.from_object),
            drivers=self._list(kinds.CSI_DRIVER, ObservedDriver.from_object),
            runtime_classes=self._list(kinds.RUNTIME_CLASS, ObservedRuntimeClass.from_object),
            priority_classes=self._list(kinds.PRIORITY_CLASS, PriorityClass.from_object),
            service_accounts=self._list(
                kinds.SERVICE_ACCOUNT, partial(_read_account, accounts), wire.ServiceAccountList
            ),
            quotas=self._list(kinds.RESOURCE_QUOTA, ResourceQuota.from_object),
            limit_ranges=self._list(kinds.LIMIT_RANGE, LimitRange.from_object),
            missing_webhooks=self._read_missing_webhooks(),
            feature_states=self._read_feature_states(list_config_maps(controllers, kept_templates, names)),
            # Last, because all of the above adds to it.
            unread=tuple(dict.fromkeys(self._unread)),
        )

    def _list(
        self,
        kind: Kind,
        read: Callable[[Mapping[str, Any]], T | None],
        shape: Any = Any,
        *,
        namespace: str | None = None,
        labels: str = "",
        decode: Callable[[bytes], Any] | None = None,
    ) -> tuple[T, ...]:
        """The facts of every object of a kind. Without the right to list them, none, and `unread` says so.

        read: returns None for an object of which none is kept. shape: what a page is decoded as; without one each object is decoded whole.
        """
        import msgspec

        results: list[T] = []
        decode = decode or msgspec.json.Decoder(shape).decode
        try:
            for page in self._client.read_pages(kind, decode, namespace, label_selector=labels or None, at=self._at):
                items = page.get("items") or ()
                results.extend(fact for fact in map(read, items) if fact is not None)
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
        return self._list(kinds.CONTROLLER_REVISION, dict, namespace=plugin.namespace, labels=selector)

    def _read_missing_webhooks(self) -> tuple[Webhook, ...]:
        """Webhooks of new pods and of what these need whose Service does not exist."""
        webhooks = [
            webhook
            for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
            for item in self._list(kind, dict)
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

        def read_claim(item: Mapping[str, Any]) -> ObservedClaim | None:
            if f"{item['metadata']['namespace']}/{item['metadata']['name']}" not in scope.elsewhere:
                return ObservedClaim.from_object(item)
            if volume := (item.get("spec") or {}).get("volumeName"):
                linux_volumes.add(volume)
            return None

        def read_attachment(item: Mapping[str, Any]) -> ObservedAttachment | None:
            spec = item.get("spec") or {}
            is_of_linux = (spec.get("source") or {}).get("persistentVolumeName") in linux_volumes
            return None if is_of_linux and spec.get("nodeName") not in windows else ObservedAttachment.from_object(item)

        claims = self._list(kinds.PERSISTENT_VOLUME_CLAIM, read_claim, wire.ClaimList)
        return claims, self._list(kinds.VOLUME_ATTACHMENT, read_attachment, wire.AttachmentList)

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


def _decode(brief: Any, whole: Any, needs_whole: Callable[[Mapping[str, Any]], bool]) -> Callable[[bytes], Any]:
    """Decode pages of objects of which few are needed whole: a page with such an object is decoded again."""
    import msgspec

    decode_brief, decode_whole = (msgspec.json.Decoder(shape).decode for shape in (brief, whole))

    def decode(page: bytes) -> Any:
        content = decode_brief(page)
        return decode_whole(page) if any(map(needs_whole, content.get("items") or ())) else content

    return decode


def _read_pod(windows: frozenset[str], table: PodTable, pod: Mapping[str, Any]) -> ObservedPod | None:
    is_evaluated = pod_is_evaluated(pod, windows)
    if not is_evaluated and not takes_room(pod):
        # No rule reads its shape, and pods of ended Jobs rarely share one.
        return None
    shape, number = table.add(pod)
    return ObservedPod.from_object(pod, shape, number) if is_evaluated else None


def _read_csi_node(windows: frozenset[str] | None, item: Mapping[str, Any]) -> ObservedCsiNode | None:
    return ObservedCsiNode.from_object(item) if windows is None or item["metadata"]["name"] in windows else None


def _read_account(keys: set[str], item: Mapping[str, Any]) -> str | None:
    key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
    return key if key in keys else None


def _read_template(
    kind: str, controllers: list[ObservedController], jobs: dict[str, ObservedJob], item: Mapping[str, Any]
) -> ObservedTemplate | None:
    """A template with volumes; what is a driver's controller goes to `controllers`, and each Job to `jobs`."""
    if kind == kinds.JOB.kind:
        jobs[f"{item['metadata']['namespace']}/{item['metadata']['name']}"] = ObservedJob.from_object(item)
    if kind == kinds.DEPLOYMENT.kind and (controller := ObservedController.from_object(item)) is not None:
        controllers.append(controller)
    return ObservedTemplate.from_object(kind, item) if _is_needed(kind, item) else None


def _is_needed(kind: str, item: Mapping[str, Any]) -> bool:
    """Whether a template matters for the evaluation: it may be a node plugin, or its pods have volumes."""
    spec = item.get("spec") or {}
    if kind == kinds.DAEMON_SET.kind or spec.get("volumeClaimTemplates"):
        return True
    outer = ((spec.get("jobTemplate") or {}).get("spec") or {}) if kind == kinds.CRON_JOB.kind else spec
    return pod_is_evaluated({"metadata": {}, "spec": (outer.get("template") or {}).get("spec")}, frozenset())
