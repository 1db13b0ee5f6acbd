# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for the attach controller on nodes of the in-tree era, which today's one would treat as migrated.

An in-tree volume is attached by the cloud provider, without a VolumeAttachment: only the node's status shows it. A CSI
volume on such a node is attached as ever, through a VolumeAttachment; the real controller makes none there, so this one
does. What it writes is what kubernetes/kubernetes pkg/controller/volume/attachdetach of 1.26 writes.
"""

from __future__ import annotations

import asyncio

from lab.cluster import workload
from lab.cluster.api import MERGE, Object
from lab.cluster.watch import Cluster, Refused, notify

NODES = "/api/v1/nodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


class OldAttach:
    """`volumesAttached` of nodes that the real controller leaves alone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._locks: dict[str, asyncio.Lock] = {}

    async def in_tree(self, node: str, unique: str, rival: str) -> bool:
        """Attach an in-tree volume; False while it is attached to another node, under this name or its CSI name `rival`."""
        async with self._locks.setdefault("", asyncio.Lock()):
            for item in (await self._cluster.call("GET", NODES))["items"]:
                attached = {one["name"] for one in (item["status"].get("volumesAttached") or [])}
                if item["metadata"]["name"] != node and attached & {unique, rival}:
                    return False
            await self._write(node, unique, attached=True)
        return True

    async def csi(self, node: str, driver: str, handle: str, volume: str) -> None:
        """Ask for the attachment of a CSI volume; the attacher does the rest."""
        body: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": workload.attachment_name(driver, handle, node)},
            "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}},
        }
        try:
            await self._cluster.call("POST", ATTACHMENTS, body)
        except Refused as error:
            if error.status != 409:
                raise
        await self._write(node, workload.unique_name(driver, handle), attached=True)

    async def detach(self, node: str, unique: str, attachment: str) -> None:
        """The volume leaves the node, unless another pod there still uses it. attachment: its name, for CSI volumes."""
        try:
            live = (await self._cluster.call("GET", f"{NODES}/{node}"))["status"]
            if unique in (live.get("volumesInUse") or []):
                return
            if attachment:
                await self._cluster.call("DELETE", f"{ATTACHMENTS}/{attachment}")
            await self._write(node, unique, attached=False)
        except Refused as error:
            if error.status != 404:
                raise

    async def _write(self, node: str, unique: str, *, attached: bool) -> None:
        async with self._locks.setdefault(node, asyncio.Lock()):
            live = (await self._cluster.call("GET", f"{NODES}/{node}"))["status"].get("volumesAttached") or []
            wanted = [one for one in live if one["name"] != unique]
            if attached:
                wanted.append({"name": unique, "devicePath": ""})
            if wanted != live:
                body = {"status": {"volumesAttached": wanted or None}}
                await self._cluster.call("PATCH", f"{NODES}/{node}/status", body, MERGE)
                notify(f"{unique} {'attached to' if attached else 'detached from'} {node}, as before the migration")
