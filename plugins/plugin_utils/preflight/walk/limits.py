# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many volumes of a driver a node still takes, counted as the scheduler does. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/plugins/nodevolumelimits/csi.go: unique volumes
of the pods on the node, migrated in-tree ones included, and attachments of CSI volumes that no pod there has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import TranslationError, parse_ebs_id
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import Source
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedPod
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index, union
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import (
    Claims,
    Request,
    provisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.split import Split
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import PodToStart

# In-tree plugins whose volumes count for their CSI driver (nodevolumelimits/utils.go, isCSIMigrationOn).
COUNTED = ("awsElasticBlockStore", "azureDisk", "gcePersistentDisk", "cinder", "portworxVolume")
# Volumes that a pod names itself and that two pods on a node do not share, or only so (volumerestrictions, isVolumeConflict).
_ALONE = ("awsElasticBlockStore", "gcePersistentDisk", "rbd", "iscsi")
_SHARED_BY: Mapping[str, Callable[[Source, Source], bool]] = {
    "awsElasticBlockStore": lambda one, other: False,
    "gcePersistentDisk": lambda one, other: one.read_only and other.read_only,
}

Unique = tuple[str, str]


# A workload, its pods with the nodes where each may be put, and its pods of today.
Starting = tuple[str, Sequence[tuple[PodToStart, int]], Sequence[ObservedPod]]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Workloads that need more volumes of a driver than there is room for on nodes."""

    driver: str
    workloads: tuple[str, ...]
    nodes: int
    needed: int
    room: int


class Limits:
    """Attach limits of the nodes of a snapshot."""

    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims

    def narrow(self, pod: PodToStart, split: Split) -> None:
        """Note the nodes that take no more volumes, with what is not known of them."""
        self._apart(pod, split)
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
            split.unknown(linux, "CSI-W21", what, "set nodeSelector kubernetes.io/os in the pod template")
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

    def too_many(
        self, pods: Sequence[PodToStart], now: Iterable[ObservedPod], nodes: int
    ) -> tuple[str, int, int] | None:
        """A driver of which a workload's pods together need more volumes than these nodes take: both numbers, or None.

        now: its pods of today, which go before. The limit of one node for one pod is not checked here.
        """
        named: set[Unique] = set()
        needed: Counter[str] = Counter()
        for pod in pods:
            own, made = self._needs(pod)
            named |= own
            needed += made
        for driver, dummy in named:
            needed[driver] += 1
        gone = named.union(*map(self._of_pod, now))
        for driver, number in sorted(needed.items()):
            room, limits = 0, self._limits.get(driver, {})
            for node in self._index.each(nodes):
                if node.name not in limits:
                    break
                room += self._left(driver, node.name, gone)
                if room >= number:
                    break
            else:
                return driver, number, room
        return None

    def crowded(self, some: Sequence[Starting]) -> Iterator[Crowd]:
        """Workloads that together need more volumes of a driver than the nodes take where they may go.

        The others stay as they are. A volume that several pods have counts once, and what one node takes of one pod is not
        checked: what this finds cannot start, whatever the scheduler does.
        """
        if not self._limits:
            return
        needed_by: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        places: dict[Unique, int] = defaultdict(int)
        users: dict[Unique, str] = {}
        for key, pods, dummy in some:
            for pod, nodes in pods:
                own, made = self._needs(pod)
                for one in own:
                    places[one] |= nodes
                    users.setdefault(one, key)
                for driver, count in made.items():
                    needed_by[driver][nodes][key] += count
        for one, nodes in places.items():
            needed_by[one[0]][nodes][users[one]] += 1
        gone = set(places).union(*(self._of_pod(pod) for dummy, also_dummy, now in some for pod in now))
        for driver, by_nodes in sorted(needed_by.items()):
            limits, unlimited = self._limits.get(driver, {}), self._index.all
            for name in limits:
                unlimited &= ~self._index.bit.get(name, 0)
            groups = sorted((nodes for nodes in by_nodes if not nodes & unlimited), key=lambda one: one.bit_count())
            on = group_values(
                (node.name, number) for number, nodes in enumerate(groups) for node in self._index.each(nodes)
            )
            rooms: Counter[tuple[int, ...]] = Counter()
            for name, numbers in on.items():
                rooms[tuple(numbers)] += self._left(driver, name, gone)
            for numbers_, room in overfull([by_nodes[nodes].total() for nodes in groups], rooms):
                crowd = [groups[number] for number in numbers_]
                needed = sum((by_nodes[nodes] for nodes in crowd), Counter())
                yield Crowd(driver, tuple(sorted(needed)), union(crowd), needed.total(), room)

    def _left(self, driver: str, node: str, gone: set[Unique]) -> int:
        """How many volumes of a driver a node with a limit takes besides those that stay there."""
        held, attached = self._held[node]
        return max(0, self._limits[driver][node] - sum(one[0] == driver for one in (held | attached) - gone))

    def _needs(self, pod: PodToStart) -> tuple[set[Unique], Counter[str]]:
        """The volumes that a pod names, and how many of each driver are made with its like."""
        made = {unique for one in self._claims.of(pod) if one.made for unique in self._of_request(one)}
        needed = Counter(driver for driver, dummy in made)
        return set(self._of(pod)) - made, Counter({driver: count * pod.count for driver, count in needed.items()})

    @cached_property
    def _limits(self) -> dict[str, dict[str, int]]:
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
                found[pod.node][0].update(self._of_pod(pod))
        for node, some in self._index.attachments.items():
            for one in some:
                volume = self._index.volumes.get(one.volume)
                if volume is not None and volume.source.field == "csi":
                    found[node][1].add((one.attacher, volume.source.handle))
        return found

    def _of_pod(self, pod: ObservedPod) -> Iterator[Unique]:
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

    def _apart(self, pod: PodToStart, split: Split) -> None:
        own = [one.source for one in pod.inline if one.source.field in _ALONE]
        if not own:
            return
        for other in self._index.snapshot.pods:
            nodes = self._index.bit.get(other.node, 0) & split.nodes
            if not nodes or other.finished:
                continue
            for one in other.volumes.inline:
                alike = [mine for mine in own if (mine.field, mine.handle) == (one.source.field, one.source.handle)]
                if alike and one.source.field in _SHARED_BY:
                    if not all(_SHARED_BY[one.source.field](mine, one.source) for mine in alike):
                        what = f"pod {other.key} on {other.node} has the same disk {one.source.handle}"
                        split.blocked(nodes, "CSI-W20", what, "use the disk in one pod only")
                elif alike:
                    what = (
                        f"pod {other.key} on {other.node} has a volume of kind {one.source.field} that may be the same"
                    )
                    split.unknown(nodes, "CSI-W21", what, "use claims for these volumes")


def overfull(needed: Sequence[int], rooms: Mapping[tuple[int, ...], int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Groups that together need more than all places that take any of them have, with what these have.

    rooms: by the groups that a kind of place takes. Every unit is placed on its own, by a maximum flow; where that leaves one
    over, the groups that could have made way for it are too many (Hall's theorem).
    """
    left = dict(rooms)
    reached = group_values((group, place) for place in rooms for group in place)
    put: Counter[tuple[int, tuple[int, ...]]] = Counter()
    reported: set[int] = set()
    for group, asked in enumerate(needed):
        count = asked
        while count and group not in reported:
            # From the group to places that take it, and from each place to groups that could leave it.
            came: dict[tuple[int, ...], int] = {}
            from_: dict[int, tuple[int, ...]] = {}
            queue, free, next_ = [group], None, 0
            while free is None and next_ < len(queue):
                one, next_ = queue[next_], next_ + 1
                for place in reached[one]:
                    if place in came:
                        continue
                    came[place] = one
                    if left[place]:
                        free = place
                        break
                    for other in place:
                        if put[other, place] and other not in queue:
                            from_[other] = place
                            queue.append(other)
            if free is None:
                reported.update(queue)
                yield tuple(sorted(queue)), sum(rooms[place] for place in came)
                break
            way, amount = [(came[free], free)], min(count, left[free])
            while way[-1][0] != group:
                place = from_[way[-1][0]]
                amount = min(amount, put[way[-1][0], place])
                way.append((came[place], place))
            for step, (one, place) in enumerate(way):
                put[one, place] += amount
                if step + 1 < len(way):
                    put[one, way[step + 1][1]] -= amount
            left[free] -= amount
            count -= amount


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
