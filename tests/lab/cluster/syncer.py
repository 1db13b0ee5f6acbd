# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for vSphere's syncer and the register of vCenter (CNS): which disks are registered as volumes.

As in kubernetes-sigs/vsphere-csi-driver, pkg/syncer/metadatasyncer.go and pkg/apis/migration: an in-tree volume is
registered when it is attached first, and told by a CnsVSphereVolumeMigration; when its PersistentVolume is deleted, the
disk is taken out of the register, whoever else uses it by then, and the object goes. A native volume is registered when
its PersistentVolume appears. What is not registered cannot be attached.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lab.cluster import in_tree
from lab.cluster.api import Object
from lab.cluster.settings import Source
from lab.cluster.watch import Cluster, Refused, say

VOLUMES = "/api/v1/persistentvolumes"
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
                # What went while nobody looked is found missing: a full sync.
                there = {item["metadata"]["uid"] for item in volume["items"]}
                for uid in set(self._volumes) - there:
                    self._gone(self._volumes.pop(uid))
                continue
            uid = volume["metadata"]["uid"]
            if kind == "DELETED":
                self._gone(self._volumes.pop(uid, volume))
                continue
            new = uid not in self._volumes
            self._volumes[uid] = volume
            source = volume["spec"].get("csi") or {}
            if new and source.get("driver") == in_tree.VSPHERE:
                self._enter(in_tree.disk(in_tree.VSPHERE, source["volumeHandle"]))

    def _gone(self, volume: Object) -> None:
        if "vsphereVolume" in volume["spec"]:
            task = asyncio.create_task(self._unregister(volume["spec"]["vsphereVolume"]["volumePath"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _unregister(self, path: str) -> None:
        await asyncio.sleep(self._settings.get().syncer_delay)
        while self._settings.get().syncer_down:
            await asyncio.sleep(0.2)
        disk = in_tree.fcd(path)
        (self._register / disk).unlink(missing_ok=True)
        try:
            await self._cluster.call("DELETE", f"{MIGRATIONS}/{disk}")
        except Refused as error:
            if error.status != 404:
                raise
        say(f"the syncer took {path} out of the register")
