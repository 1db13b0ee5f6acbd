# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for vSphere's syncer and the register of vCenter (CNS): which disks are registered as volumes.

As in kubernetes-sigs/vsphere-csi-driver, pkg/syncer/metadatasyncer.go and pkg/apis/migration: an in-tree volume is
registered when it is attached first, and recorded by a CnsVSphereVolumeMigration; when its PersistentVolume is deleted, the
disk is unregistered, whatever else uses it by then, and the object is deleted. A native volume is registered when
its PersistentVolume appears. What is not registered cannot be attached. A missed deletion is found by its
full sync, which spares a disk that another volume uses by then. The one that works holds a Lease (cmd/syncer/main.go).
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timezone
from pathlib import Path

from lab.cluster import in_tree
from lab.cluster.api import MERGE, Object
from lab.cluster.settings import Source
from lab.cluster.watch import Cluster, Refused, notify

VOLUMES = "/api/v1/persistentvolumes"
LEASE = "vsphere-syncer"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/vmware-system-csi/leases"
MIGRATIONS = "/apis/cns.vmware.com/v1alpha1/cnsvspherevolumemigrations"


class Syncer:
    """The register is a folder with an empty file for each disk, so that a test can look."""

    def __init__(self, cluster: Cluster, register: Path, settings: Source) -> None:
        self._cluster, self._register, self._settings = cluster, register, settings
        self._volumes: dict[str, Object] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def knows(self, handle: str) -> bool:
        return (self._register / in_tree.disk(in_tree.VSPHERE, handle)).exists()

    async def registered(self, path: str) -> None:
        """An in-tree volume is attached: its disk is registered, unless it is."""
        disk = in_tree.fcd(path)
        self._enter(disk)
        body = {
            "apiVersion": "cns.vmware.com/v1alpha1",
            "kind": "CnsVSphereVolumeMigration",
            "metadata": {"name": disk},
            "spec": {"volumepath": path, "volumeid": disk, "protectvolumefromvmdelete": True},
        }
        try:
            await self._cluster.call("POST", MIGRATIONS, body)
        except Refused as error:
            if error.status != 409:
                raise

    def _enter(self, disk: str) -> None:
        self._register.mkdir(parents=True, exist_ok=True)
        (self._register / disk).touch()

    async def follow_volumes(self) -> None:
        async for kind, volume in self._cluster.follow(VOLUMES):
            if kind == "RESET":
                # A full sync finds volumes that were deleted meanwhile.
                there = {item["metadata"]["uid"] for item in volume["items"]}
                for uid in set(self._volumes) - there:
                    self._gone(self._volumes.pop(uid))
                continue
            uid = volume["metadata"]["uid"]
            if kind == "DELETED":
                self._volumes.pop(uid, None)
                if not self._settings.get().syncer_misses:
                    self._gone(volume)
                continue
            new = uid not in self._volumes
            self._volumes[uid] = volume
            source = volume["spec"].get("csi") or {}
            if new and source.get("driver") == in_tree.VSPHERE:
                self._enter(in_tree.disk(in_tree.VSPHERE, source["volumeHandle"]))

    async def lead(self) -> None:
        """Renew its lease, as the leader of its replicas does.

        A real one has 15 seconds to do so, which a busy machine may not have.
        """
        spec: Object = {"holderIdentity": "vsphere-csi-controller-0", "leaseDurationSeconds": 3600}
        while True:
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            body = {"metadata": {"name": LEASE}, "spec": {**spec, "renewTime": now}}
            try:
                await self._cluster.call("PATCH", f"{LEASES}/{LEASE}", {"spec": body["spec"]}, MERGE)
            except Refused as error:
                if error.status != 404:
                    raise
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body}
                with contextlib.suppress(Refused):
                    await self._cluster.call("POST", LEASES, lease)
            await asyncio.sleep(5)

    async def sync_fully(self) -> None:
        """From time to time, what is registered is compared with the volumes there are."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.5)
            if self._settings.get().syncer_stuck or loop.time() - last < self._settings.get().full_sync:
                continue
            last = loop.time()
            entered = {path.name for path in self._register.glob("*")}
            used = {
                in_tree.disk(*served)
                for volume in self._volumes.values()
                if (served := in_tree.served_by(volume)) is not None and served[0] == in_tree.VSPHERE
            }
            for disk in entered - used:
                await self._forget(disk)

    def _gone(self, volume: Object) -> None:
        if "vsphereVolume" in volume["spec"]:
            task = asyncio.create_task(self._unregister(volume["spec"]["vsphereVolume"]["volumePath"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _unregister(self, path: str) -> None:
        await asyncio.sleep(self._settings.get().syncer_delay)
        while self._settings.get().syncer_stuck:
            await asyncio.sleep(0.2)
        await self._forget(in_tree.fcd(path))

    async def _forget(self, disk: str) -> None:
        (self._register / disk).unlink(missing_ok=True)
        try:
            await self._cluster.call("DELETE", f"{MIGRATIONS}/{disk}")
        except Refused as error:
            if error.status != 404:
                raise
        notify(f"the syncer took {disk} out of the register")
