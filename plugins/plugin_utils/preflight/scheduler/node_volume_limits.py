# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NodeVolumeLimits filter: how many volumes of a driver a node still takes. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/plugins/nodevolumelimits/csi.go: unique volumes
of the pods on the node, migrated in-tree ones included, and attachments of CSI volumes that no pod there has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

from ...catalog import in_tree
from ...catalog.translation import TranslationError, parse_ebs_id
from ..facts.nodes import ObservedCsiNode
from ..facts.scheduling import read_amount
from ..facts.sources import ObservedClaim, Source
from ..facts.workloads import ObservedPod
from ..findings import change_template
from ..index import Index, unite
from ..walk.claims import Claims, Request
from ..walk.steps import NodeToStatus, PodToStart

# In-tree plugins whose volumes count for their CSI driver (nodevolumelimits/utils.go, isCSIMigrationOn).
COUNTED = ("awsElasticBlockStore", "azureDisk", "gcePersistentDisk", "cinder", "portworxVolume")
# What kubelets that do not migrate these report in status.allocatable (pkg/kubelet/nodestatus/setters.go, VolumeLimits).
_LIMITS_IN_TREE = {
    "awsElasticBlockStore": "attachable-volumes-aws-ebs", "azureDisk": "attachable-volumes-azure-disk",
    "gcePersistentDisk": "attachable-volumes-gce-pd", "cinder": "attachable-volumes-cinder",
}  # fmt: skip
Unique = tuple[str, str]


class NodeVolumeLimits:
    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims
        self._linux_nodes_without_csi_node = index.linux & ~index.find_nodes(index.csi_nodes)

    def filter_pod(self, pod: PodToStart, statuses: NodeToStatus) -> None:
        """Note the nodes that take no more volumes, with what is not known of them."""
        volumes = set(self._collect_volumes(pod))
        if not volumes:
            return
        index, drivers = self._index, {driver for driver, dummy in volumes}
        if linux := statuses.nodes & self._linux_nodes_without_csi_node:
            message = "attach limits of Linux nodes are not read"
            statuses.doubt(linux, "CSI-W21", message, change_template(pod.workload, "nodeSelector kubernetes.io/os"))
        for driver in sorted(drivers):
            own_volumes = {volume for volume in volumes if volume[0] == driver}
            for (limit, count), nodes in sorted(self._room.get(driver, {}).items()):
                if count + len(own_volumes) <= limit:
                    continue
                # A volume that the node holds already is none more.
                full = nodes & statuses.nodes
                for node in index.list_nodes(full & unite(self._holders.get(volume, 0) for volume in own_volumes)):
                    new = len(own_volumes - self._held[node.name][0])
                    if not new or count + new <= limit:
                        full &= ~index.bit[node.name]
                message = f"the node's attach limit for {driver} is {limit} volumes, and {count} are in use"
                remedy = "add nodes, or move pods with volumes of this driver to other nodes"
                statuses.block(full, "CSI-W20", message, remedy)

    def count_room(self, driver: str, node: str, leaving: set[Unique]) -> int:
        """How many volumes of a driver a node with a limit takes besides those that stay there."""
        held, attached = self._held[node]
        return max(0, self.limits[driver][node] - sum(volume[0] == driver for volume in (held | attached) - leaving))

    def collect_needs(self, pod: PodToStart) -> tuple[set[Unique], Counter[str]]:
        """The volumes that a pod names, and how many of each driver are made with its like."""
        if not pod.new_claims:
            return set(self._collect_volumes(pod)), Counter()
        new_volumes = {
            unique
            for request in self._claims.list_requests(pod)
            if request.is_new
            for unique in self._identify_request(request)
        }
        needed: Counter[str] = Counter()
        for driver, _handle in new_volumes:
            needed[driver] += pod.count
        return set(self._collect_volumes(pod)) - new_volumes, needed

    @cached_property
    def limits(self) -> dict[str, dict[str, int]]:
        """By driver, the limit of each node that has one."""
        limits: dict[str, dict[str, int]] = defaultdict(dict)
        for csi_node in self._index.csi_nodes.values():
            for driver, limit in self._read_limits(csi_node).items():
                limits[driver][csi_node.name] = limit
        return limits

    def _read_limits(self, csi_node: ObservedCsiNode) -> dict[str, int]:
        """A node's limits by driver; for an in-tree plugin that it does not migrate, that of nodevolumelimits/non_csi.go until 1.30."""
        limits = {entry.name: entry.limit for entry in csi_node.drivers if entry.limit is not None}
        node = self._index.nodes.get(csi_node.name)
        allocatable = node.allocatable if node is not None else {}
        for in_tree_plugin in in_tree.PLUGINS:
            name = _LIMITS_IN_TREE.get(in_tree_plugin.field, "")
            if name in allocatable and in_tree_plugin.plugin not in (csi_node.migrated or ()):
                limit = read_amount(name, allocatable[name])
                limits[in_tree_plugin.driver] = min(limit, limits.get(in_tree_plugin.driver, limit))
        return limits

    @cached_property
    def _room(self) -> dict[str, dict[tuple[int, int], int]]:
        """By driver, the nodes with a limit for it, by that limit and what they have."""
        rooms: dict[str, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
        for csi_node in self._index.csi_nodes.values():
            held, attached = self._held[csi_node.name]
            for driver, limit in self._read_limits(csi_node).items():
                count = sum(unique[0] == driver for unique in held | attached)
                rooms[driver][limit, count] |= self._index.bit.get(csi_node.name, 0)
        return rooms

    @cached_property
    def _holders(self) -> dict[Unique, int]:
        """By volume, the nodes whose pods have it."""
        nodes: dict[Unique, int] = defaultdict(int)
        for name, (held, dummy) in self._held.items():
            for volume in held:
                nodes[volume] |= self._index.bit.get(name, 0)
        return nodes

    @cached_property
    def _held(self) -> dict[str, tuple[set[Unique], set[Unique]]]:
        """By node, the volumes of the pods there, and those attached there."""
        held_by_node: dict[str, tuple[set[Unique], set[Unique]]] = defaultdict(lambda: (set(), set()))
        for pod in self._index.snapshot.pods:
            if pod.node in self._index.csi_nodes and not pod.finished:
                held_by_node[pod.node][0].update(self.list_volumes(pod))
        for node, attachments in self._index.attachments.items():
            for attachment in attachments:
                volume = self._index.volumes.get(attachment.volume)
                if volume is not None and volume.source.field == "csi":
                    held_by_node[node][1].add((attachment.attacher, volume.source.handle))
        return held_by_node

    def list_volumes(self, pod: ObservedPod) -> Iterator[Unique]:
        """The volumes of a pod of today that count."""
        names = [*pod.volumes.claims, *(f"{pod.name}-{ephemeral.name}" for ephemeral in pod.volumes.ephemeral)]
        for name in names:
            claim = self._index.claims.get(f"{pod.namespace}/{name}")
            if claim is not None:
                yield from self._identify_claim(claim, claim.storage_class)
        for inline in pod.volumes.inline:
            yield from _identify_source(inline.source, inline=True)

    def _collect_volumes(self, pod: PodToStart) -> Iterator[Unique]:
        for request in self._claims.list_requests(pod):
            yield from self._identify_request(request)
        for inline in pod.inline:
            yield from _identify_source(inline.source, inline=True)

    def _identify_request(self, request: Request) -> Iterator[Unique]:
        if request.volume is not None:
            yield from _identify_source(request.volume.source)
        elif not request.missing:
            yield from self._identify_claim(request.claim, request.storage_class)

    def _identify_claim(self, claim: ObservedClaim, class_name: str | None) -> Iterator[Unique]:
        volume = self._index.volumes.get(claim.volume)
        if volume is not None:
            yield from _identify_source(volume.source)
            return
        storage_class = self._index.classes.get(class_name or "")
        if storage_class is None:
            return
        plugin = in_tree.find_by_name(storage_class.provisioner)
        if plugin is None or plugin.field in COUNTED:
            # A name that no driver gives: two claims are two volumes.
            yield storage_class.driver, f"claim {claim.key}"


def _identify_source(source: Source, inline: bool = False) -> Iterator[Unique]:
    """The unique name of a volume that counts, or nothing."""
    if source.field == "csi":
        # One that a pod names itself is not attached.
        if not inline and source.driver and source.handle:
            yield source.driver, source.handle
        return
    plugin = in_tree.find_by_field(source.field)
    if plugin is None or source.field not in COUNTED:
        return
    try:
        handle = parse_ebs_id(source.handle) if source.field == "awsElasticBlockStore" else source.handle
    except TranslationError:
        return
    yield plugin.driver, handle
