# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubelets do about volumes: pods run once theirs are mounted, and nodes report which ones they hold.

A mount works when the volume is attached (where the driver attaches), the driver is in the node's CSINode, its plugin
pod is Ready there, and every pipe that this plugin mounts answers on the node's host: a mount goes through the pipes even
where the plugin did not notice that they went. On a node of the in-tree era (`era.py`) in-tree volumes need none of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lab.cluster import era, in_tree, nanoserver, plugin, workload
from lab.cluster.api import MERGE, STRATEGIC, Object
from lab.cluster.backend import Backend, roll_back
from lab.cluster.events import Recorder
from lab.cluster.hostlink import HostUnreachable
from lab.cluster.old_attach import OldAttach
from lab.cluster.plugin import Plugin
from lab.cluster.settings import Settings
from lab.cluster.watch import Cluster, Refused, notify
from lab.cluster.workload import Trouble, Workload

POLL = 0.1
# How long a pod's volumes may take to be attached before its events report it; real kubelets wait 2 minutes.
ATTACH_PATIENCE = 5.0


class Node(Protocol):
    """What is needed of the kubelets."""

    cluster: Cluster

    def address(self, node: str) -> str:
        """The node's own address."""

    def release(self, node: str) -> str:
        """The kubelet's release on a node."""

    def ready_plugin(self, node: str, driver: str) -> Plugin | None:
        """The driver's plugin pod on a node, if it runs."""

    async def missing_pipes(self, found: Plugin) -> frozenset[str]:
        """Pipes that a plugin mounts and the node's host does not serve."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """One volume of a pod: its unique name on the node (empty where nothing is attached) and its files."""

    unique: str
    files: Path


class InUse:
    """`volumesInUse` of the nodes. Entries of others stay."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held: dict[str, dict[str, set[str]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def hold(self, node: str, uid: str, names: set[str]) -> None:
        """From now on a pod on a node uses these, and nothing else."""
        async with self._locks.setdefault(node, asyncio.Lock()):
            pods = self._held.setdefault(node, {})
            before = set().union(*pods.values())
            if names:
                pods[uid] = set(names)
            else:
                pods.pop(uid, None)
            after = set().union(*pods.values())
            if before == after:
                return
            try:
                live = (await self._cluster.call("GET", f"/api/v1/nodes/{node}"))["status"].get("volumesInUse") or []
                wanted = sorted((set(live) - before) | after)
                body = {"status": {"volumesInUse": wanted or None}}
                await self._cluster.call("PATCH", f"/api/v1/nodes/{node}/status", body, MERGE)
            except Refused as error:
                if error.status != 404:
                    raise


class Pod:
    """One pod with volumes, from its scheduling to its deletion."""

    def __init__(
        self, node: Node, found: Workload, pod: Object, in_use: InUse, old: OldAttach, stock: Backend,
        settings: Callable[[], Settings],
    ) -> None:  # fmt: skip
        self.workload = found
        # Its volumes' files by path in the container, by container; empty until it runs.
        self.files: dict[str, dict[str, Path]] = {}
        self._node, self._in_use, self._old, self._backend, self._settings = node, in_use, old, stock, settings
        # VolumeAttachment (empty for an in-tree one) by unique name, of what `OldAttach` attached for it.
        self._old_ones: dict[str, str] = {}
        self._writes = (pod["metadata"].get("annotations") or {}).get(workload.WRITES, "")
        self._path = f"/api/v1/namespaces/{found.namespace}/pods/{found.name}"
        self._started = (pod.get("status") or {}).get("startTime") or plugin.stamp()
        self._was_running = (pod.get("status") or {}).get("phase") == "Running"
        self._record = Recorder(node.cluster, found.involved, "kubelet", found.node)
        self._logged = ""
        self._ending = False
        self._mounted: tuple[Mounted, ...] = ()
        self.task = asyncio.create_task(self._guarded())

    async def _guarded(self) -> None:
        try:
            await self._live()
        except Refused as error:
            # The pod went away between two steps: its deletion event follows.
            notify(f"{self.workload.namespace}/{self.workload.name}: {error}")

    async def _live(self) -> None:
        if not self._was_running:
            await asyncio.sleep(self._settings().delay(self.workload.node))
        mounted = await self._mounts()
        self._mounted = tuple(mounted.values())
        if not self._was_running:
            await self._pull()
        for container in self.workload.containers:
            self.files[container.name] = {
                path: mounted[volume].files for path, volume in container.mounts.items() if volume in mounted
            }
        if not self._was_running:
            await self._show(workload.running(self.workload, self._started, self._address))
            for container in self.workload.containers:
                await self._record("Normal", "Started", f"Started container {container.name}")
            notify(f"{self.workload.namespace}/{self.workload.name} on {self.workload.node}: running")
        await self._write()

    async def _write(self) -> None:
        """What its program does: a line with the time, again and again."""
        files = self.files[self.workload.containers[0].name]
        while self._writes:
            path = nanoserver.locate(self._writes, files)
            if path is None:
                notify(f"{self.workload.name}: {self._writes} is on none of its volumes")
                return
            with path.open("a", encoding="utf-8", newline="") as file:
                file.write(f"{plugin.stamp()}\r\n")
            await asyncio.sleep(self._settings().write_interval)

    @property
    def _address(self) -> str:
        return self._node.address(self.workload.node)

    async def _mounts(self) -> Mapping[str, Mounted]:
        """Every volume, mounted; tried until it works."""
        tried = 0
        while True:
            try:
                found: dict[str, Mounted] = {}
                for volume, claim in self.workload.claims.items():
                    found[volume] = await self._claim(volume, claim, found)
                return found
            except Trouble as trouble:
                await self._show(workload.waiting(self.workload, self._started, self._address))
                await self._record("Warning", trouble.reason, str(trouble))
            except HostUnreachable as error:
                notify(f"{self.workload.name}: {error}")
            await asyncio.sleep(self._settings().restart_delay(tried))
            tried += 1

    async def _claim(self, volume: str, claim: str, before: Mapping[str, Mounted]) -> Mounted:
        pod, call = self.workload, self._node.cluster.call
        try:
            bound = await call("GET", f"/api/v1/namespaces/{pod.namespace}/persistentvolumeclaims/{claim}")
        except Refused as error:
            text = f'failed to fetch PVC from API server: persistentvolumeclaims "{claim}" not found'
            raise workload.unbound([volume], pod.namespace, claim, text) from error
        if (bound.get("status") or {}).get("phase") != "Bound":
            raise workload.unbound([volume], pod.namespace, claim, "PVC is not bound")
        name = bound["spec"]["volumeName"]
        try:
            live = await call("GET", f"/api/v1/persistentvolumes/{name}")
        except Refused as error:
            text = f'failed to fetch PV {name} from API server: persistentvolumes "{name}" not found'
            raise workload.unbound([volume], pod.namespace, claim, text) from error
        served = in_tree.served_by(live)
        if served is None:
            # No driver serves it: nothing here stands in for its driver, so it is taken to be there.
            return Mounted("", self._backend.create("other", name))
        driver, handle = served
        release = self._node.release(pod.node)
        itself = era.mounts_itself(release, live)
        unique = ""
        if itself:
            unique = era.unique_name(live)
        elif await self._attaches(driver):
            unique = workload.unique_name(driver, handle)
        if unique:
            await self._in_use.hold(pod.node, pod.uid, {unique, *(one.unique for one in before.values() if one.unique)})
        if itself and unique:
            await self._attached_in_tree(name, unique, workload.unique_name(driver, handle))
        elif unique:
            if era.is_old(release):
                self._old_ones[unique] = workload.attachment_name(driver, handle, pod.node)
                await self._old.csi(pod.node, driver, handle, name)
            await self._attached(volume, driver, handle, name if unique in self._old_ones else "")
        if not itself:
            await self._reachable(name, driver)
        # One that an administrator wrote by hand is taken to be there, too.
        return Mounted(unique, self._backend.create(driver, handle))

    async def _attached_in_tree(self, volume: str, unique: str, rival: str) -> None:
        if not await self._old.in_tree(self.workload.node, unique, rival):
            raise workload.held_elsewhere(volume)
        self._old_ones[unique] = ""

    async def _attaches(self, driver: str) -> bool:
        try:
            found = await self._node.cluster.call("GET", f"/apis/storage.k8s.io/v1/csidrivers/{driver}")
        except Refused:
            return True
        return bool(found["spec"].get("attachRequired", True))

    async def _attached(self, volume: str, driver: str, handle: str, old: str) -> None:
        """old: the PersistentVolume, where the real attach controller does not report the error."""
        path = (
            f"/apis/storage.k8s.io/v1/volumeattachments/{workload.attachment_name(driver, handle, self.workload.node)}"
        )
        loop = asyncio.get_running_loop()
        ends = loop.time() + ATTACH_PATIENCE
        while loop.time() < ends:
            try:
                found = await self._node.cluster.call("GET", path)
                if (found.get("status") or {}).get("attached") and "deletionTimestamp" not in found["metadata"]:
                    return
                if old and (wrong := (found.get("status") or {}).get("attachError")):
                    raise workload.not_attachable(old, wrong["message"])
            except Refused as error:
                if error.status != 404:
                    raise
            await asyncio.sleep(POLL)
        raise workload.not_attached([volume])

    async def _reachable(self, volume: str, driver: str) -> None:
        node = self.workload.node
        found = await self._node.cluster.call("GET", f"/apis/storage.k8s.io/v1/csinodes/{node}")
        if not any(entry["name"] == driver for entry in found["spec"].get("drivers") or []):
            raise workload.not_registered(volume, driver)
        running = self._node.ready_plugin(node, driver)
        if running is None:
            raise workload.no_plugin(volume, driver)
        if missing := await self._node.missing_pipes(running):
            raise workload.no_pipe(volume, driver, min(missing))

    async def _pull(self) -> None:
        tried = 0
        while bad := [item.image for item in self.workload.containers if not self._settings().pullable(item.image)]:
            message = plugin.pull_message(bad[0])
            await self._show(workload.waiting(self.workload, self._started, self._address, "ImagePullBackOff", message))
            text = f'Failed to pull image "{bad[0]}": rpc error: code = NotFound: {bad[0]}: not found'
            await self._record("Warning", "Failed", text)
            await asyncio.sleep(self._settings().restart_delay(tried))
            tried += 1

    async def _show(self, status: Object) -> None:
        # A waiting pod's status is written once, not at every try.
        text = f"{status['phase']} {status['containerStatuses'][0]['state']}"
        if text == self._logged:
            return
        self._logged = text
        body = {"metadata": {"uid": self.workload.uid}, "status": status}
        await self._node.cluster.call("PATCH", f"{self._path}/status", body, STRATEGIC)

    def changed(self, pod: Object) -> asyncio.Task[None] | None:
        """The pod changed. One that is to be deleted is ended, unless it is held."""
        metadata = pod["metadata"]
        held = workload.HOLD_DELETE in (metadata.get("annotations") or {})
        if "deletionTimestamp" not in metadata or held or self._ending:
            return None
        self._ending = True
        return asyncio.create_task(self._end())

    async def _end(self) -> None:
        """Containers stop, volumes are unmounted, the pod is deleted, and then the node reports that it holds them no more."""
        self.task.cancel()
        self.files.clear()
        if self.workload.node in self._settings().rolled_back:
            for one in self._mounted:
                roll_back(one.files)
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        options["preconditions"] = {"uid": self.workload.uid}
        try:
            await self._node.cluster.call("DELETE", self._path, options)
        except Refused as error:
            if error.status not in (404, 409):
                raise
        await self.gone()

    async def gone(self) -> None:
        """The pod object is no more."""
        self.task.cancel()
        self.files.clear()
        await self._in_use.hold(self.workload.node, self.workload.uid, set())
        for unique, attachment in self._old_ones.items():
            await self._old.detach(self.workload.node, unique, attachment)
