# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which volumes Windows nodes may mount, by which of them, and which drivers that needs where. Pure.

Node sets make that a few operations for a volume, however many nodes there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..base.cached import share
from ..catalog import in_tree
from ..catalog.in_tree import InTree
from ..catalog.translation import find_file_system
from .facts.fields import ASSUMED_OF_VOLUMES
from .facts.placement import Term
from .facts.sources import Inline, ObservedClaim, Source, read_server
from .facts.storage import ObservedVolume
from .index import BY_NAME, Index
from .migration import Paths, find_paths
from .usage import Usage, Workload
from .walk.claims import Claims, Request
from .walk.pods import list_pods_to_start
from .walk.steps import PodToStart, StepAnswer

# Parameters of a StorageClass by which its volumes name a Secret for mounting them, in lower case
# (https://github.com/kubernetes-csi/external-provisioner, pkg/controller/controller.go; the second is from before its 1.0).
_NODE_SECRETS = ("csi.storage.k8s.io/node-stage-secret-name", "csinodestagesecretname")
LINUX_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs"})
# Fields whose handle migration passes to the driver as it is.
_HANDLES = ("csi", "awsElasticBlockStore", "azureDisk")
# In-tree disks of AWS may name their zone.
_EBS_URL = re.compile(r"aws://(?P<zone>[^/]+)/.+")


def _name_kind(field: str) -> str:
    """The kind of assumption of a field of a volume or a parameter of a class."""
    return ASSUMED_OF_VOLUMES.get(field) or ("Secret" if "secret" in field.lower() else "class parameter")


@dataclass(frozen=True, slots=True)
class VolumeHandle:
    """A parsed handle. zone, region, account: empty where the handle does not name one."""

    valid: bool = True
    zone: str = ""
    region: str = ""
    account: str = ""


@dataclass(slots=True)
class WindowsVolume:
    """A volume that Windows may mount.

    key: what users call it, unique. persistent_volume: None for a claim that has none yet and for a pod's own. new_claim: a claim that
    comes with a pod. eligible: Windows nodes that may mount it; user_nodes: those that its users may be on, reachable or
    not. users, linux_users: workloads. answers: of the steps about it, once it is evaluated.
    """

    key: str
    source: Source
    persistent_volume: ObservedVolume | None = None
    claim: ObservedClaim | None = None
    new_claim: ObservedClaim | None = None
    inline: bool = False
    eligible: int = 0
    user_nodes: int = 0
    users: list[Workload] = field(default_factory=list)
    linux_users: list[Workload] = field(default_factory=list)
    answers: tuple[StepAnswer, ...] = ()

    @property
    def title(self) -> str:
        """What findings call it."""
        if self.persistent_volume is not None:
            return f"PersistentVolume {self.persistent_volume.name}"
        return f"PersistentVolumeClaim {self.claim.key}" if self.claim is not None else self.key

    @property
    def terms(self) -> tuple[Term, ...]:
        """Its node affinity, empty without one."""
        return (self.persistent_volume.terms or ()) if self.persistent_volume is not None else ()

    @property
    def access_modes(self) -> tuple[str, ...]:
        """Those of its PersistentVolume, else of its claim."""
        observed = self.persistent_volume or self.claim or self.new_claim
        return observed.access_modes if observed is not None else ()

    @property
    def is_block(self) -> bool:
        """Whether it is a raw device."""
        observed = self.persistent_volume or self.claim or self.new_claim
        return observed is not None and observed.block

    @property
    def assumed(self) -> tuple[tuple[str, str], ...]:
        """What is set on it that no rule reads: (kind of assumption, field). A pod's own is in its pod spec."""
        fields = () if self.inline else tuple((_name_kind(field), field) for field in self.source.assumed)
        if self.claim is not None and self.claim.grows:
            fields += (("file system to grow", "status.conditions"),)
        return fields

    @property
    def restored(self) -> bool:
        """Whether it is a disk whose claim was made from a snapshot or another claim."""
        claim, driver = self.claim or self.new_claim, BY_NAME.get(self.driver)
        narrowed = claim.narrowed if claim is not None else ()
        return driver is not None and bool(driver.fstypes) and not {"dataSource", "dataSourceRef"}.isdisjoint(narrowed)

    @property
    def handle(self) -> VolumeHandle:
        """Its handle by the pattern of its driver."""
        source, driver, text = self.source, BY_NAME.get(self.driver), self.source.handle
        if source.field not in _HANDLES or driver is None or not driver.handle or not text:
            return VolumeHandle()
        zone = ""
        if source.field == "awsElasticBlockStore":
            url = _EBS_URL.fullmatch(text)
            zone, text = url["zone"] if url is not None else "", text.rpartition("/")[2]
        match = re.fullmatch(driver.handle, text)
        if match is None:
            return VolumeHandle(source.shared)
        places = match.groupdict(default="")
        return VolumeHandle(
            zone=places.get("zone", zone), region=places.get("region", ""), account=places.get("account", "")
        )

    @property
    def plugin(self) -> InTree | None:
        """The in-tree plugin it belongs to, None for every other kind."""
        return in_tree.find_by_field(self.source.field)

    @property
    def driver(self) -> str:
        """The CSI name of the driver that mounts it, or would; empty when none does."""
        plugin = self.plugin
        return self.source.driver if self.source.field == "csi" else plugin.driver if plugin is not None else ""


@dataclass(slots=True)
class WindowsVolumes:
    """Everything to evaluate. claims: of the cluster. used_claims: those of any workload, on Linux too. demand: by CSI name, where a driver is needed.

    by_workload: the volumes of each. next_pods: what each starts next.
    """

    claims: Claims
    paths: Mapping[str, Paths]
    by_key: dict[str, WindowsVolume] = field(default_factory=dict)
    by_workload: dict[str, tuple[WindowsVolume, ...]] = field(default_factory=dict)
    next_pods: dict[str, tuple[PodToStart, ...]] = field(default_factory=dict)
    demand: dict[str, int] = field(default_factory=dict)
    used_claims: frozenset[str] = frozenset()

    def list_volumes(self, pod: PodToStart) -> list[tuple[str, WindowsVolume | None]]:
        """Each volume of a pod as answers call it; None for one that is not there, or of which nothing is known."""
        keys = [name_volume(request, pod.workload) for request in self.claims.list_requests(pod)]
        keys += [name_inline(inline, pod.workload) for inline in pod.inline]
        return [*zip(pod.volumes, map(self.by_key.get, keys), strict=True)]


def name_volume(request: Request, workload: str) -> str:
    """The key of what a workload's claim stands for: its volume, or the claim itself."""
    if request.volume is not None:
        return request.volume.name
    return f"{request.volume_key} of {workload}" if request.is_new else request.claim.key


def name_inline(inline: Inline, workload: str) -> str:
    """The key of a volume that a workload's pods name themselves."""
    return f"inline {inline.source.field} {inline.name} of {workload}"


def collect_volumes(index: Index, use: Usage) -> WindowsVolumes:
    """Find every volume that a Windows node may mount, and which drivers which nodes need for them."""
    volumes = WindowsVolumes(
        Claims(index),
        {plugin.field: find_paths(index, plugin) for plugin in in_tree.PLUGINS},
        used_claims=frozenset(use.users),
    )
    _Collector(index, use, volumes).run()
    demand: dict[str, int] = defaultdict(int)
    for volume in volumes.by_key.values():
        if volume.driver:
            by_csi = index.windows if volume.plugin is None else volumes.paths[volume.source.field].csi
            demand[volume.driver] |= volume.eligible & by_csi
    volumes.demand = {driver: nodes for driver, nodes in demand.items() if nodes}
    return volumes


def find_migrated_nodes(volumes: WindowsVolumes) -> dict[str, int]:
    """By in-tree plugin, the Windows nodes whose kubelet uses CSI for it."""
    return {plugin.plugin: volumes.paths[plugin.field].csi for plugin in in_tree.PLUGINS}


def list_migrated_plugins(volumes: WindowsVolumes) -> frozenset[str]:
    """In-tree plugins with volumes that a Windows kubelet mounts by CSI."""
    return frozenset(
        volume.plugin.plugin
        for volume in volumes.by_key.values()
        if volume.plugin is not None and volume.eligible & volumes.paths[volume.source.field].csi
    )


def _describe_kind(source: Source) -> tuple[str, ...]:
    """What Windows and drivers may refuse of a volume."""
    plugin = in_tree.find_by_field(source.field)
    driver = source.driver if plugin is None else plugin.driver
    field_ = "csi" if driver else source.field
    fields = source.fs_type, source.attribute, source.protocol, source.server
    return field_, driver, *fields, str(source.read_only), str(bool(source.secret))


class _Collector:
    def __init__(self, index: Index, use: Usage, volumes: WindowsVolumes) -> None:
        self._index, self._use, self._claims = index, use, volumes.claims
        self._volumes, self._by_key = volumes, volumes.by_key

    def run(self) -> None:
        for workload in self._use.workloads:
            if workload.on_windows:
                pods = self._volumes.next_pods[workload.key] = list_pods_to_start(self._index, workload)
                if self._index.windows and not workload.done:
                    self._collect_workload(workload, pods)
        self._collect_attached()
        for volume in self._by_key.values():
            if volume.claim is not None:
                users = self._use.users.get(volume.claim.key, ())
                volume.linux_users = [user for user in users if user.system == "linux" and user.pods]

    def _collect_workload(self, workload: Workload, pods: Iterable[PodToStart]) -> None:
        used: dict[str, WindowsVolume] = {}
        for pod in pods:
            requested = (self._add_request(request, workload) for request in self._claims.list_requests(pod))
            inline_volumes = (self._add_inline(inline, workload) for inline in pod.inline)
            for volume in (*requested, *inline_volumes):
                if volume is not None:
                    used[volume.key] = volume
                    self._add_user(volume, workload, workload.eligible)
        self._volumes.by_workload[workload.key] = tuple(used.values())

    def _add_user(self, volume: WindowsVolume, workload: Workload, nodes: int) -> None:
        # A workload's uses come one after another, so it is the last one when it was noted before.
        if not volume.users or volume.users[-1] is not workload:
            volume.users.append(workload)
        volume.user_nodes = share(volume.user_nodes | nodes)
        volume.eligible = share(volume.eligible | (nodes & self._find_reachable_nodes(volume)))

    def _find_reachable_nodes(self, volume: WindowsVolume) -> int:
        windows, persistent_volume = self._index.windows, volume.persistent_volume
        return windows if persistent_volume is None else windows & self._claims.match_affinity(persistent_volume)

    def _add_request(self, request: Request, workload: Workload) -> WindowsVolume | None:
        key, claim = name_volume(request, workload.key), None if request.is_new else request.claim
        if request.volume is not None:
            return self._add_volume(request.volume, claim)
        if request.missing:
            return None
        if request.bound or request.claim.volume:
            if "persistentvolumes" in self._index.unread:
                return None
            return self._by_key.setdefault(key, WindowsVolume(key, Source(""), claim=claim))
        source = self._choose_source(request, self._read_class(request, workload))
        if source is None:
            return None
        new_claim = request.claim if request.is_new else None
        volume = self._by_key.setdefault(key, WindowsVolume(key, source, claim=claim, new_claim=new_claim))
        volume.eligible |= self._index.bit.get(request.claim.selected_node, 0) & self._index.windows
        return volume

    def _choose_source(self, request: Request, made: Source | None) -> Source | None:
        """What a claim gets where free volumes fit it; not known where these and what its class makes are of several kinds."""
        if "persistentvolumes" in self._index.unread:
            return None
        sources = [volume.source for volume in self._claims.find_candidates(request)]
        sources += () if made is None else (made,)
        if len({_describe_kind(source) for source in sources}) > 1:
            return Source("")
        return sources[0] if sources else None

    def _add_volume(self, persistent_volume: ObservedVolume, claim: ObservedClaim | None) -> WindowsVolume:
        volume = self._by_key.get(persistent_volume.name)
        if volume is None:
            volume = WindowsVolume(persistent_volume.name, persistent_volume.source, persistent_volume, claim)
            self._by_key[persistent_volume.name] = volume
        return volume

    def _add_inline(self, inline: Inline, workload: Workload) -> WindowsVolume:
        key = name_inline(inline, workload.key)
        return self._by_key.setdefault(key, WindowsVolume(key, inline.source, inline=True))

    def _read_class(self, request: Request, workload: Workload) -> Source | None:
        """What a claim without a volume will get, by its class; None if nothing is provisioned for it."""
        storage_class = self._claims.find_class(request)
        if storage_class is None or not storage_class.driver:
            return None
        parameters = {key.lower(): value for key, value in storage_class.parameters.items()}
        plugin = in_tree.find_by_name(storage_class.provisioner)
        fs_type = find_file_system(plugin, storage_class.parameters)
        fs_type = fs_type or self._index.find_default_file_system(storage_class.driver)
        # What a class has made shows that its parameters are valid, which never change.
        assumed = () if storage_class.name in self._index.proven_classes else tuple(sorted(storage_class.parameters))
        if plugin is not None:
            return Source(
                plugin.field, fs_type=fs_type, kind="Managed", secret_namespace=workload.namespace, assumed=assumed
            )
        return Source(
            "csi",
            driver=storage_class.provisioner,
            fs_type=fs_type,
            attribute=parameters.get("fstype", ""),
            protocol=parameters.get("protocol", ""),
            server=read_server(parameters),
            secret=next(filter(None, map(parameters.get, _NODE_SECRETS)), ""),
            assumed=assumed + (("mountOptions",) if storage_class.mount_options else ()),
        )

    def _collect_attached(self) -> None:
        index = self._index
        for node in index.list_nodes(index.windows):
            for attachment in index.attachments.get(node.name, ()):
                persistent_volume = index.volumes.get(attachment.volume)
                if persistent_volume is not None:
                    volume = self._add_volume(persistent_volume, index.claims.get(persistent_volume.claim))
                    volume.user_nodes = share(volume.user_nodes | index.bit[node.name])
                    volume.eligible = share(volume.eligible | index.bit[node.name])
