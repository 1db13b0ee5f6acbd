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

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import TranslationError, parse_ebs_id
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import Source
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedPod
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index, union
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import change_template
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import (
    Claims,
    Request,
    provisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.split import Split
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import PodToStart

# In-tree plugins whose volumes count for their CSI driver (nodevolumelimits/utils.go, isCSIMigrationOn).
COUNTED = ("awsElasticBlockStore", "azureDisk", "gcePersistentDisk", "cinder", "portworxVolume")
Unique = tuple[str, str]


class NodeVolumeLimits:
    """The filter for one snapshot."""

    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims

    def filter_pod(self, pod: PodToStart, split: Split) -> None:
        """Note the nodes that take no more volumes, with what is not known of them."""
        volumes = set(self._of(pod))
        if not volumes:
            return
        index, drivers = self._index, {driver for driver, dummy in volumes}
        unread = [one for one in ("csinodes", "pods", "volumeattachments") if one in index.unread]
        if unread:
            what = f"{' and '.join(unread)} could not be read, so the number of volumes on the nodes is unknown"
            split.unknown(split.nodes, "CSI-W21", what, f"let this account list {' and '.join(unread)}")
        if linux := split.nodes & self._unlisted:
            what = "attach limits of Linux nodes are not read"
            split.unknown(linux, "CSI-W21", what, change_template(pod.workload, "nodeSelector kubernetes.io/os"))
        for driver in sorted(drivers):
            mine = {one for one in volumes if one[0] == driver}
            for (limit, count), nodes in self._room.get(driver, {}).items():
                if count + len(mine) <= limit:
                    continue
                # A volume that the node holds already is none more.
                full = nodes & split.nodes
                for node in index.each(full & union(self._holders.get(one, 0) for one in mine)):
                    new = len(mine - self._held[node.name][0])
                    if not new or count + new <= limit:
                        full &= ~index.bit[node.name]
                what = f"the node's attach limit for {driver} is {limit} volumes, and {count} are in use"
                remedy = "add nodes, or move pods with volumes of this driver to other nodes"
                split.blocked(full, "CSI-W20", what, remedy)

    def count_room(self, driver: str, node: str, gone: set[Unique]) -> int:
        """How many volumes of a driver a node with a limit takes besides those that stay there."""
        held, attached = self._held[node]
        return max(0, self.limits[driver][node] - sum(one[0] == driver for one in (held | attached) - gone))

    def collect_needs(self, pod: PodToStart) -> tuple[set[Unique], Counter[str]]:
        """The volumes that a pod names, and how many of each driver are made with its like."""
        made = {unique for one in self._claims.of(pod) if one.made for unique in self._of_request(one)}
        needed: Counter[str] = Counter()
        for driver, _handle in made:
            needed[driver] += pod.count
        return set(self._of(pod)) - made, needed

    @cached_property
    def limits(self) -> dict[str, dict[str, int]]:
        """By driver, the limit of each node that has one."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for one in self._index.csi_nodes.values():
            for entry in one.drivers:
                if entry.limit is not None:
                    found[entry.name][one.name] = entry.limit
        return found

    @cached_property
    def _unlisted(self) -> int:
        """Linux nodes without a CSINode."""
        return self._index.linux & ~union(self._index.bit.get(name, 0) for name in self._index.csi_nodes)

    @cached_property
    def _room(self) -> dict[str, dict[tuple[int, int], int]]:
        """By driver, the nodes with a limit for it, by that limit and what they have."""
        found: dict[str, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
        for one in self._index.csi_nodes.values():
            held, attached = self._held[one.name]
            for entry in one.drivers:
                if entry.limit is not None:
                    count = sum(driver == entry.name for driver, dummy in held | attached)
                    found[entry.name][entry.limit, count] |= self._index.bit.get(one.name, 0)
        return found

    @cached_property
    def _holders(self) -> dict[Unique, int]:
        """By volume, the nodes whose pods have it."""
        found: dict[Unique, int] = defaultdict(int)
        for name, (held, dummy) in self._held.items():
            for one in held:
                found[one] |= self._index.bit.get(name, 0)
        return found

    @cached_property
    def _held(self) -> dict[str, tuple[set[Unique], set[Unique]]]:
        """By node, the volumes of the pods there, and those attached there."""
        found: dict[str, tuple[set[Unique], set[Unique]]] = defaultdict(lambda: (set(), set()))
        for pod in self._index.snapshot.pods:
            if pod.node in self._index.csi_nodes and not pod.finished:
                found[pod.node][0].update(self.volumes_of(pod))
        for node, some in self._index.attachments.items():
            for one in some:
                volume = self._index.volumes.get(one.volume)
                if volume is not None and volume.source.field == "csi":
                    found[node][1].add((one.attacher, volume.source.handle))
        return found

    def volumes_of(self, pod: ObservedPod) -> Iterator[Unique]:
        """The volumes of a pod of today that count."""
        names = [*pod.volumes.claims, *(f"{pod.name}-{one.name}" for one in pod.volumes.ephemeral)]
        for name in names:
            claim = self._index.claims.get(f"{pod.namespace}/{name}")
            if claim is not None:
                yield from self._of_claim(claim, claim.storage_class)
        for inline in pod.volumes.inline:
            yield from _of_source(inline.source, inline=True)

    def _of(self, pod: PodToStart) -> Iterator[Unique]:
        for one in self._claims.of(pod):
            yield from self._of_request(one)
        for inline in pod.inline:
            yield from _of_source(inline.source, inline=True)

    def _of_request(self, one: Request) -> Iterator[Unique]:
        if one.volume is not None:
            yield from _of_source(one.volume.source)
        elif not one.missing:
            yield from self._of_claim(one.claim, one.storage_class)

    def _of_claim(self, claim: ObservedClaim, class_name: str | None) -> Iterator[Unique]:
        volume = self._index.volumes.get(claim.volume)
        if volume is not None:
            yield from _of_source(volume.source)
            return
        storage_class = self._index.classes.get(class_name or "")
        if storage_class is None:
            return
        known = in_tree.find_by_name(storage_class.provisioner)
        if known is None or known.field in COUNTED:
            # A name that no driver gives: two claims are two volumes.
            yield provisioner(storage_class), f"claim {claim.key}"


def _of_source(source: Source, inline: bool = False) -> Iterator[Unique]:
    """The unique name of a volume that counts, or nothing."""
    if source.field == "csi":
        # One that a pod names itself is not attached.
        if not inline and source.driver and source.handle:
            yield source.driver, source.handle
        return
    known = in_tree.find_by_field(source.field)
    if known is None or source.field not in COUNTED:
        return
    try:
        handle = parse_ebs_id(source.handle) if source.field == "awsElasticBlockStore" else source.handle
    except TranslationError:
        return
    yield known.driver, handle
