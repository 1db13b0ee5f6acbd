# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Indexes of a snapshot: built once, so that no query walks the cluster again. Pure.

Sets of nodes are numbers with a bit for each node: "which nodes fit this selector" is then a few operations, however many
nodes there are, and is worked out once for each different selector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, reduce
from itertools import chain
from operator import or_

from ..base.cached import cached_method
from ..base.grouped import group_values
from ..catalog import wmco
from ..catalog.base import Driver
from ..catalog.kubernetes import TAKES_NEWEST_DEFAULT_CLASS
from ..catalog.registry import DRIVERS
from ..catalog.versions import Version, parse
from ..drivers.rollout.scheduling import explain_exclusion, matches_expression, tolerates
from ..drivers.rollout.snapshot import ObservedHost
from ..kube.labels import MANAGER
from ..kube.node import ObservedNode, Taint
from ..kube.times import parse_time
from .facts.admission import SYSTEM_CLASSES, PodToAdmit, PriorityClass, Webhook
from .facts.cluster import ObservedController
from .facts.nodes import DriverEntry, ObservedCsiNode
from .facts.placement import ANYWHERE, Placement, Requirement, Term, Toleration
from .facts.scheduling import matches_labels
from .facts.snapshot import Snapshot
from .facts.sources import ObservedClaim
from .facts.storage import ObservedAttachment, ObservedClass, ObservedVolume
from .facts.workloads import ObservedPod, ObservedTemplate

BY_NAME: Mapping[str, Driver] = {driver.name: driver for driver in DRIVERS.values()}

# A pod that is being deleted should be gone by its timestamp; unmounting takes a while on Windows.
GOING = timedelta(minutes=10)
# What pods have that name no class while none is the default.
_NO_CLASS = PriorityClass("")


def version_of(text: str) -> Version | None:
    """A version from the API, None if it is invalid."""
    try:
        return parse(text)
    except ValueError:
        return None


def find_position(nodes: int, start: int) -> int:
    """The position of one of these nodes: the first from `start` on, or else the first of all."""
    later = nodes >> start << start or nodes
    return (later & -later).bit_length() - 1


def split_bits(nodes: int) -> Iterator[int]:
    """Each of these nodes as a set of its own."""
    while nodes:
        yield nodes & -nodes
        nodes &= nodes - 1


def unite(sets: Iterable[int]) -> int:
    """The nodes of any of these sets."""
    return reduce(or_, sets, 0)


class Index:
    """One snapshot. `windows` and `linux` are node sets; `names` turns a set into names."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = sorted(snapshot.nodes, key=lambda node: node.name)
        self.node_list: list[ObservedNode] = nodes
        self.nodes: dict[str, ObservedNode] = {node.name: node for node in nodes}
        self.bit = {node.name: 1 << position for position, node in enumerate(nodes)}
        self.windows = self.find_nodes(node.name for node in nodes if node.windows)
        self.linux = self.find_nodes(node.name for node in nodes if not node.windows)
        # Every node
        self.all = self.windows | self.linux
        self.csi_nodes: dict[str, ObservedCsiNode] = {csi_node.name: csi_node for csi_node in snapshot.csi_nodes}
        self.volumes: dict[str, ObservedVolume] = {volume.name: volume for volume in snapshot.volumes}
        self.claims: dict[str, ObservedClaim] = {claim.key: claim for claim in snapshot.claims}
        self.classes = {storage_class.name: storage_class for storage_class in snapshot.classes}
        self.runtime_classes = {
            runtime_class.name: runtime_class.placement for runtime_class in snapshot.runtime_classes
        }
        self.overheads = {runtime_class.name: runtime_class.overhead for runtime_class in snapshot.runtime_classes}
        self.priority_classes = {
            priority_class.name: priority_class for priority_class in (*SYSTEM_CLASSES, *snapshot.priority_classes)
        }
        self.service_accounts = frozenset(snapshot.service_accounts)
        self.quotas = group_values((quota.namespace, quota) for quota in snapshot.quotas)
        self.limit_ranges = group_values((limit_range.namespace, limit_range) for limit_range in snapshot.limit_ranges)
        self.csi_drivers = {driver.name: driver for driver in snapshot.drivers}
        self.namespaces = {namespace.name: namespace for namespace in snapshot.namespaces}
        self.hosts: dict[str, ObservedHost] = {host.node: host for host in snapshot.hosts}
        self.unread = frozenset(unread_list.resource for unread_list in snapshot.unread)
        self.migrated_to = frozenset(volume.migrated_to for volume in snapshot.volumes)
        self.provisioners = frozenset(volume.provisioner for volume in snapshot.volumes if volume.phase == "Bound")
        self.kubernetes = version_of(snapshot.cluster.kubernetes)
        self._labels: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.taints: dict[tuple[Taint, ...], int] = defaultdict(int)
        for node in nodes:
            bit = self.bit[node.name]
            for key, value in node.labels.items():
                self._labels[key][value] |= bit
            self.taints[node.taints] |= bit

    # Sets of nodes

    def find_nodes(self, names: Iterable[str]) -> int:
        """A set of nodes by their names; those of no node are passed over."""
        nodes = 0
        for name in names:
            nodes |= self.bit.get(name, 0)
        return nodes

    @cached_method
    def list_names(self, nodes: int) -> tuple[str, ...]:
        """The names of a set of nodes, sorted. The same set gives the same tuple."""
        return tuple(node.name for node in self.list_nodes(nodes))

    def list_nodes(self, nodes: int) -> Iterable[ObservedNode]:
        """The nodes of a set, by name."""
        while nodes:
            lowest = nodes & -nodes
            yield self.node_list[lowest.bit_length() - 1]
            nodes ^= lowest

    def find_labelled(self, key: str, value: str) -> int:
        """The nodes with a label of that value."""
        return self._labels[key][value] if key in self._labels and value in self._labels[key] else 0

    def group_by_label(self, key: str) -> Iterable[tuple[str, int]]:
        """The values of a label, each with its nodes."""
        return self._labels[key].items() if key in self._labels else ()

    def find_nodes_with_label(self, key: str) -> int:
        """The nodes with a label, whatever its value."""
        return unite(nodes for _value, nodes in self.group_by_label(key))

    @cached_method
    def find_fitting(self, placement: Placement) -> int:
        """Where a pod may be put, by selector, affinity, taints and runtime class; its system is ignored."""
        added = self.runtime_classes.get(placement.runtime_class, ANYWHERE)
        return self.find_selected(placement) & self._find_accepting(placement.tolerations + added.tolerations)

    def find_selected(self, placement: Placement) -> int:
        """The nodes that selector and required affinity of a pod let pass, with the selector of its RuntimeClass."""
        nodes, added = self.all, self.runtime_classes.get(placement.runtime_class, ANYWHERE)
        for key, value in chain(placement.selector, added.selector):
            nodes &= self.find_labelled(key, value)
        return nodes if placement.terms is None else nodes & self.find_matching(placement.terms)

    @cached_method
    def _find_accepting(self, tolerations: tuple[Toleration, ...]) -> int:
        by_taints = (
            (nodes, [taint for taint in taints if not is_of_state(taint)]) for taints, nodes in self.taints.items()
        )
        return unite(nodes for nodes, taints in by_taints if are_accepted(taints, tolerations))

    @cached_method
    def find_matching(self, terms: tuple[Term, ...]) -> int:
        """The nodes that a node affinity lets pass."""
        nodes = 0
        for term in terms:
            passing = self.all if term else 0
            for requirement in term:
                passing &= self._find_satisfying(requirement)
            nodes |= passing
        return nodes

    def _find_satisfying(self, requirement: Requirement) -> int:
        if requirement.field:
            named = self.find_nodes(requirement.values)
            return named if requirement.operator == "In" else self.all & ~named
        by_value = self._labels.get(requirement.key, {})
        if requirement.operator in ("In", "NotIn"):
            nodes = unite(by_value.get(value, 0) for value in requirement.values)
            return nodes if requirement.operator == "In" else self.all & ~nodes
        if requirement.operator in ("Exists", "DoesNotExist"):
            nodes = self.find_nodes_with_label(requirement.key)
            return nodes if requirement.operator == "Exists" else self.all & ~nodes
        expression = {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}
        return unite(
            nodes for value, nodes in by_value.items() if matches_expression(expression, {requirement.key: value})
        )

    # What pods and drivers there are

    @cached_property
    def attachments(self) -> Mapping[str, list[ObservedAttachment]]:
        """VolumeAttachments by node."""
        return group_values(
            ((attachment.node, attachment) for attachment in self.snapshot.attachments),
            lambda attachment: attachment.name,
        )

    @cached_property
    def attachments_of(self) -> Mapping[str, list[ObservedAttachment]]:
        """VolumeAttachments by PersistentVolume, those of inline volumes by driver."""
        return group_values(
            (attachment.volume or attachment.attacher, attachment)
            for node_attachments in self.attachments.values()
            for attachment in node_attachments
        )

    def find_priority_class(self, name: str) -> PriorityClass | None:
        """The PriorityClass that a pod gets which names this one, or none; None if it does not exist or is not known."""
        if name:
            return self.priority_classes.get(name)
        marked = [priority_class for priority_class in self.priority_classes.values() if priority_class.is_default]
        return min(
            marked,
            key=lambda priority_class: priority_class.value,
            default=None if "priorityclasses" in self.unread else _NO_CLASS,
        )

    def admit(self, template: ObservedTemplate) -> PodToAdmit:
        """A pod of a template with the requests that LimitRanger and its RuntimeClass add."""
        resources = template.admit.resources.add_defaults(self.limit_ranges.get(template.namespace, ()))
        overhead = self.overheads.get(template.placement.runtime_class, ())
        return replace(template.admit, resources=replace(resources, overhead=overhead))

    @cached_property
    def default_class(self) -> ObservedClass | None:
        """The class of claims that name none: the newest of those marked so. None where an older API server refuses such
        claims, because there are several."""
        marked = sorted(
            (storage_class for storage_class in self.snapshot.classes if storage_class.default),
            key=lambda storage_class: storage_class.name,
        )
        if len(marked) > 1 and self.kubernetes is not None and self.kubernetes.minor < TAKES_NEWEST_DEFAULT_CLASS:
            return None
        return max(marked, key=lambda storage_class: storage_class.created, default=None)

    @cached_property
    def reserved(self) -> Mapping[str, list[ObservedVolume]]:
        """By claim, the volumes that name it."""
        named = (volume for volume in self.snapshot.volumes if volume.claim and volume.phase != "Released")
        return group_values((volume.claim, volume) for volume in named)

    @cached_property
    def attached_to_windows(self) -> frozenset[str]:
        """PersistentVolumes that are attached to Windows nodes."""
        return frozenset(
            attachment.volume
            for node in self.list_nodes(self.windows)
            for attachment in self.attachments.get(node.name, ())
            if attachment.attached and attachment.volume
        )

    @cached_property
    def registered(self) -> frozenset[str]:
        """CSI names of the drivers that any Windows node has registered."""
        windows = (csi_node for csi_node in self.csi_nodes.values() if self.bit.get(csi_node.name, 0) & self.windows)
        return frozenset(entry.name for csi_node in windows for entry in csi_node.drivers)

    @cached_method
    def find_differing_labels(self, nodes: int, driver: str, keys: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Of the labels that say where volumes of a driver are, and of these keys, those by which nodes differ."""
        entries = (csi_node.find_entry(driver) for csi_node in self.csi_nodes.values())
        labels = keys.union(key for entry in entries if entry is not None for key in entry.topology_keys)
        values = {key: {node.labels.get(key) for node in self.list_nodes(nodes)} for key in sorted(labels)}
        return tuple(key for key in values if len(values[key]) > 1)

    @cached_property
    def providers(self) -> Mapping[str, tuple[ObservedTemplate, ...]]:
        """By CSI name, the DaemonSets that bring a driver to Windows nodes."""
        names = set(BY_NAME) | self.registered | self.csi_drivers.keys()
        candidates = group_values(
            (name, template)
            for template in self.snapshot.templates
            if template.plugin is not None
            for name in names
            if template.plugin.is_node_plugin_of(name)
        )
        return {
            name: tuple(sorted(_select_serving(templates), key=lambda template: template.key))
            for name, templates in candidates.items()
        }

    def find_controller(self, driver: Driver) -> ObservedController | None:
        """A driver's controller; of several one that is available, then the first by name."""
        controllers = [candidate for candidate in self.snapshot.controllers if candidate.driver == driver.key]
        return min(controllers, key=lambda candidate: (candidate.observed.available < 1, candidate.title), default=None)

    def find_default_file_system(self, name: str) -> str:
        """The file system that a driver's provisioner gives volumes of a class without one; empty where it leaves that to the driver."""
        driver = BY_NAME.get(name)
        controller = self.find_controller(driver) if driver is not None else None
        if controller is not None:
            return controller.file_system
        return driver.default_file_system if driver is not None else ""

    @cached_property
    def proven_classes(self) -> frozenset[str]:
        """Names of the StorageClasses of volumes that were provisioned."""
        volumes = (volume for volume in self.snapshot.volumes if volume.provisioner)
        return frozenset(volume.storage_class for volume in volumes if self.is_of_class(volume))

    def is_of_class(self, volume: ObservedVolume) -> bool:
        """Whether a volume may be one of its StorageClass of today: a class is recreated to change its parameters."""
        storage_class = self.classes.get(volume.storage_class)
        return storage_class is not None and volume.created >= storage_class.created[:10]

    @cached_property
    def accounts(self) -> Mapping[str, int]:
        """By project or subscription, its nodes; those of which it is not known are left out."""
        accounts: dict[str, int] = defaultdict(int)
        for node in self.node_list:
            if node.account:
                accounts[node.account] |= self.bit[node.name]
        return accounts

    def find_missing_webhook(self, namespace: str) -> Webhook | None:
        """A webhook without its Service that may have to accept what is created when a pod of a namespace moves."""
        observed = self.namespaces.get(namespace)
        labels = {**(observed.labels if observed is not None else {}), "kubernetes.io/metadata.name": namespace}
        webhooks = self.snapshot.missing_webhooks
        return next((webhook for webhook in webhooks if matches_labels(webhook.namespaces, labels)), None)

    def count_minutes(self, since: str, limit: timedelta) -> int | None:
        """How long something has lasted, in minutes, if that is longer than a limit; None also where its time is not known."""
        began = parse_time(since)
        lasted = self.snapshot.taken_at - began if began is not None else timedelta()
        return int(lasted.total_seconds() // 60) if lasted > limit else None

    def find_entry(self, driver: str, node: ObservedNode) -> DriverEntry | None:
        """A node's registration of a driver."""
        csi_node = self.csi_nodes.get(node.name)
        return None if csi_node is None else csi_node.find_entry(driver)

    def find_providers(self, driver: str, node: ObservedNode) -> tuple[ObservedTemplate, ...]:
        """Those of them that put a pod on a node."""
        return tuple(
            template
            for template in self.providers.get(driver, ())
            if template.plugin is not None and explain_exclusion(template.plugin, node) is None
        )

    @cached_property
    def plugin_pods(self) -> Mapping[tuple[str, str, str], list[ObservedPod]]:
        """By namespace, DaemonSet and node, the pods of DaemonSets on Windows nodes."""
        pods = (
            ((pod.namespace, pod.owner.partition("/")[2], pod.plugin.node), pod)
            for pod in self.snapshot.pods
            if pod.plugin is not None and self.bit.get(pod.plugin.node, 0) & self.windows
        )
        return group_values(pods, lambda pod: pod.name)

    @cached_property
    def wmco(self) -> Version | None:
        """The release of the Windows Machine Config Operator, from itself or from its nodes."""
        texts = [self.snapshot.cluster.wmco]
        texts += [node.annotations.get(wmco.VERSION, "") for node in self.node_list]
        versions = [version for version in (version_of(text) for text in texts if text) if version is not None]
        return max(versions, default=None)


def _select_serving(providers: list[ObservedTemplate]) -> list[ObservedTemplate]:
    """Without those that only claim to bring a driver which another one brings: they have no Ready pod."""
    ready = [
        template
        for template in providers
        if template.plugin and (template.plugin.ready or template.plugin.managed_by == MANAGER)
    ]
    ready = ready or providers
    # One that registers a driver brings it; another that only mounts its folder does something else there.
    return [template for template in ready if template.plugin and template.plugin.registered_folders] or ready


def is_of_state(taint: Taint) -> bool:
    """Whether a taint shows the state of its node, which does not decide where a pod belongs; node.kubernetes.io/os is GKE's own
    for Windows (https://github.com/kubernetes/kubernetes, staging/src/k8s.io/api/core/v1/well_known_taints.go)."""
    prefixes = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
    return taint.key.startswith(prefixes) and taint.key != "node.kubernetes.io/os"


def are_accepted(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether taints let a pod with these tolerations on a node."""
    return all(taint.effect == "PreferNoSchedule" or is_accepted(taint, tolerations) for taint in taints)


def is_accepted(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether a pod with these tolerations accepts a taint."""
    return any(
        tolerates(
            taint, key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
        )
        for toleration in tolerations
    )
