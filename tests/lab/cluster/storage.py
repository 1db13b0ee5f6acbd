# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for what runs beside a driver's controller: external-provisioner and external-attacher, for six drivers.

They write what these two write (kubernetes-csi/external-provisioner pkg/controller, kubernetes-csi/external-attacher
pkg/controller/csi_handler.go); binding, protection and attachments themselves are the real controllers'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from lab.cluster import backend, era, in_tree, plugin
from lab.cluster.api import MERGE, Object
from lab.cluster.backend import STORES, Backend, CannotProvision
from lab.cluster.events import Recorder, about
from lab.cluster.settings import Source
from lab.cluster.syncer import Syncer
from lab.cluster.watch import Cluster, Refused, notify

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"

Work = Callable[[], Coroutine[Any, Any, None]]


def _annotations(thing: Object) -> dict[str, str]:
    found: dict[str, str] = thing["metadata"].get("annotations") or {}
    return found


class Tasks:
    """Work under way by key, one piece at a time; what was asked for meanwhile is done once more afterwards.

    What the API refuses is logged and dropped: the object changed or was deleted, and its next event starts again.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, Work] = {}

    def start(self, key: str, work: Work) -> None:
        if key in self._running:
            self._again[key] = work
            return
        task = asyncio.create_task(self._guarded(key, work))
        self._running[key] = task
        task.add_done_callback(lambda _done: self._ended(key))

    def _ended(self, key: str) -> None:
        del self._running[key]
        if (work := self._again.pop(key, None)) is not None:
            self.start(key, work)

    async def _guarded(self, key: str, work: Work) -> None:
        try:
            await work()
        except Refused as error:
            notify(f"{key}: {error}")


class Storage:
    """Makes and deletes volumes, and confirms attachments."""

    def __init__(self, cluster: Cluster, stock: Backend, settings: Source, syncer: Syncer) -> None:
        self._cluster, self._backend, self._settings, self._syncer = cluster, stock, settings, syncer
        self._tasks = Tasks()
        self._attachments: dict[str, Object] = {}

    async def follow_claims(self) -> None:
        async for kind, claim in self._cluster.follow(CLAIMS):
            if kind in ("ADDED", "MODIFIED") and self._wanted(claim):
                self._tasks.start(f"provision {claim['metadata']['uid']}", partial(self._provision, claim))

    async def follow_volumes(self) -> None:
        async for kind, volume in self._cluster.follow(VOLUMES):
            if kind not in ("ADDED", "MODIFIED"):
                continue
            if _is_provisioned(volume):
                self._tasks.start(f"finalizer {volume['metadata']['uid']}", partial(self._hold, volume))
            if _to_reclaim(volume):
                self._tasks.start(f"reclaim {volume['metadata']['uid']}", partial(self._reclaim, volume))

    async def follow_attachments(self) -> None:
        async for kind, attachment in self._cluster.follow(ATTACHMENTS):
            if kind == "RESET":
                self._attachments = {}
                continue
            name = attachment["metadata"]["name"]
            if kind == "DELETED":
                self._attachments.pop(name, None)
                continue
            self._attachments[name] = attachment
            if attachment["spec"]["attacher"] not in STORES:
                continue
            status = attachment.get("status") or {}
            if attachment["metadata"].get("deletionTimestamp"):
                self._tasks.start(f"detach {name}", partial(self._detach, attachment))
            elif not status.get("attached"):
                self._tasks.start(f"attach {name}", partial(self._attach, attachment))

    # Provisioner

    def _wanted(self, claim: Object) -> bool:
        return (
            _driver_of(claim) in STORES
            and not claim["spec"].get("volumeName")
            and "deletionTimestamp" not in claim["metadata"]
        )

    async def _provision(self, claim: Object) -> None:
        metadata = claim["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
        driver = _driver_of(claim)
        record = Recorder(self._cluster, about(claim, "PersistentVolumeClaim"), f"{driver}_csi-provisioner")
        tried = 0
        while True:
            claim = await self._cluster.call("GET", path)
            if claim["metadata"]["uid"] != metadata["uid"] or not self._wanted(claim):
                return
            found = await self._cluster.call("GET", f"{CLASSES}/{claim['spec']['storageClassName']}")
            node = _annotations(claim).get(SELECTED_NODE, "")
            if found.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
                return
            try:
                await self._make(claim, found, driver, node)
            except CannotProvision as error:
                message = f'failed to provision volume with StorageClass "{found["metadata"]["name"]}": {error}'
                await record("Warning", "ProvisioningFailed", message)
                await asyncio.sleep(self._settings.get().restart_delay(tried))
                tried += 1
                continue
            name = f"pvc-{metadata['uid']}"
            await record("Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
            notify(f"{driver} made {name} for {metadata['namespace']}/{metadata['name']}")
            return

    async def _make(self, claim: Object, found: Object, driver: str, node: str) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        parameters: dict[str, str] = found.get("parameters") or {}
        old = found["provisioner"] in in_tree.PROVISIONERS
        if old:
            parameters = in_tree.parameters(driver, parameters)
        backend.check(driver, parameters, spec["accessModes"])
        secrets = {}
        for use in ("provisioner", "node-stage"):
            secret, where = (
                parameters.get(f"{backend.RESERVED}{use}-secret-{part}", "") for part in ("name", "namespace")
            )
            if secret:
                secrets[use] = {"name": secret, "namespace": where}
                try:
                    await self._cluster.call("GET", f"/api/v1/namespaces/{where}/secrets/{secret}")
                except Refused as error:
                    text = f'error getting secret {secret} in namespace {where}: secrets "{secret}" not found'
                    raise CannotProvision(text) from error
        name = f"pvc-{metadata['uid']}"
        handle = backend.handle(driver, name, parameters)
        if old:
            handle = in_tree.handle(driver, handle, name)
        own = {key: value for key, value in parameters.items() if not key.startswith(backend.RESERVED)}
        source: Object = {"driver": driver, "volumeHandle": handle, "volumeAttributes": {
            **own, "storage.kubernetes.io/csiProvisionerIdentity": f"lab-{driver}"}}  # fmt: skip
        if fstype := parameters.get(f"{backend.RESERVED}fstype") or ("" if STORES[driver].share else "ext4"):
            source["fsType"] = fstype
        if "node-stage" in secrets:
            source["nodeStageSecretRef"] = secrets["node-stage"]
        volume: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": name,
                "finalizers": [PROVISIONER_FINALIZER],
                "annotations": {
                    PROVISIONED_BY: found["provisioner"],
                    "volume.kubernetes.io/provisioner-deletion-secret-name": secrets.get("provisioner", {}).get(
                        "name", ""
                    ),
                    "volume.kubernetes.io/provisioner-deletion-secret-namespace": secrets.get("provisioner", {}).get(
                        "namespace", ""
                    ),
                },
            },
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "storageClassName": found["metadata"]["name"],
                "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
                "mountOptions": found.get("mountOptions") or [],
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "resourceVersion": metadata["resourceVersion"],
                },
                **({"csi": source} if not old else in_tree.source(
                    driver, handle, name, source.get("fsType", ""), metadata["namespace"])),
            },
        }  # fmt: skip
        if node and (terms := await self._topology(driver, node)):
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
        if (served := in_tree.served_by(volume)) is not None:
            self._backend.create(*served)
        try:
            await self._cluster.call("POST", VOLUMES, volume)
        except Refused as error:
            # It was made by a try whose answer was lost.
            if error.status != 409:
                raise

    async def _topology(self, driver: str, node: str) -> list[Object]:
        """What CreateVolume answers as accessible topology: the segment of the node that the scheduler chose."""
        drivers = (await self._cluster.call("GET", f"{CSI_NODES}/{node}"))["spec"].get("drivers") or []
        keys = next((entry.get("topologyKeys") or [] for entry in drivers if entry["name"] == driver), [])
        labels = (await self._cluster.call("GET", f"/api/v1/nodes/{node}"))["metadata"]["labels"]
        return [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]

    async def _hold(self, volume: Object) -> None:
        """Its finalizer stands on volumes that it is to delete, and on no others (HonorPVReclaimPolicy)."""
        path = f"{VOLUMES}/{volume['metadata']['name']}"
        live = await self._cluster.call("GET", path)
        if live["metadata"]["uid"] != volume["metadata"]["uid"]:
            return
        if live["spec"].get("persistentVolumeReclaimPolicy") != "Delete":
            await self._change(path, remove=PROVISIONER_FINALIZER)
        elif "deletionTimestamp" not in live["metadata"]:
            await self._change(path, add=PROVISIONER_FINALIZER)

    async def _reclaim(self, volume: Object) -> None:
        name = volume["metadata"]["name"]
        while any(_volume_of(one) == name for one in self._attachments.values()):
            # The driver answers that the volume is in use, and external-provisioner tries again.
            await asyncio.sleep(0.1)
        live = await self._cluster.call("GET", f"{VOLUMES}/{name}")
        if live["metadata"]["uid"] != volume["metadata"]["uid"] or not _to_reclaim(live):
            return
        served = in_tree.served_by(live)
        if served is None:
            return
        driver, handle = served
        self._backend.delete(driver, handle)
        await self._cluster.call("DELETE", f"{VOLUMES}/{name}")
        await self._change(f"{VOLUMES}/{name}", remove=PROVISIONER_FINALIZER)
        notify(f"{driver} deleted {name}")

    # Attacher

    async def _attach(self, attachment: Object) -> None:
        name, driver, node = (
            attachment["metadata"]["name"],
            attachment["spec"]["attacher"],
            attachment["spec"]["nodeName"],
        )
        path, finalizer = f"{ATTACHMENTS}/{name}", _attacher_finalizer(driver)
        while not await self._registered(driver, node):
            error = {"message": f"CSINode {node} does not contain driver {driver}", "time": plugin.stamp()}
            await self._cluster.call(
                "PATCH", f"{path}/status", {"status": {"attached": False, "attachError": error}}, MERGE
            )
            await asyncio.sleep(self._settings.get().restart_delay(0))
            live = await self._cluster.call("GET", path)
            if live["metadata"]["uid"] != attachment["metadata"]["uid"] or "deletionTimestamp" in live["metadata"]:
                return
        volume = await self._cluster.call("GET", f"{VOLUMES}/{_volume_of(attachment)}")
        if "vsphereVolume" in volume["spec"]:
            await self._syncer.registered(volume["spec"]["vsphereVolume"]["volumePath"])
        served = in_tree.served_by(volume)
        while driver == in_tree.VSPHERE and served is not None and not self._syncer.knows(served[1]):
            text = (
                f"rpc error: code = Internal desc = failed to attach disk: volume {served[1]} is not registered in CNS"
            )
            status = {"attached": False, "attachError": {"message": text, "time": plugin.stamp()}}
            await self._cluster.call("PATCH", f"{path}/status", {"status": status}, MERGE)
            await asyncio.sleep(self._settings.get().restart_delay(0))
            await self._cluster.call("GET", path)
        while other := await self._held_in_tree(era.unique_name(volume), node):
            text = f"rpc error: code = Internal desc = failed to attach disk: the disk is in use by the virtual machine {other}"
            status = {"attached": False, "attachError": {"message": text, "time": plugin.stamp()}}
            await self._cluster.call("PATCH", f"{path}/status", {"status": status}, MERGE)
            await asyncio.sleep(self._settings.get().restart_delay(0))
            await self._cluster.call("GET", path)
        await self._change(path, add=finalizer)
        await self._change(f"{VOLUMES}/{_volume_of(attachment)}", add=finalizer)
        await self._cluster.call("PATCH", f"{path}/status", {"status": {"attached": True, "attachError": None}}, MERGE)
        notify(f"{driver} attached {_volume_of(attachment)} to {node}")

    async def _held_in_tree(self, unique: str, node: str) -> str:
        """Another node to which an old kubelet's cloud provider attached this disk."""
        nodes = (await self._cluster.call("GET", "/api/v1/nodes"))["items"] if unique else []
        for item in nodes:
            attached = {one["name"] for one in item["status"].get("volumesAttached") or []}
            if item["metadata"]["name"] != node and unique in attached:
                return str(item["metadata"]["name"])
        return ""

    async def _registered(self, driver: str, node: str) -> bool:
        drivers = (await self._cluster.call("GET", f"{CSI_NODES}/{node}"))["spec"].get("drivers") or []
        return any(entry["name"] == driver for entry in drivers)

    async def _detach(self, attachment: Object) -> None:
        name, driver, volume = attachment["metadata"]["name"], attachment["spec"]["attacher"], _volume_of(attachment)
        finalizer = _attacher_finalizer(driver)
        while attachment["spec"]["nodeName"] in self._settings.get().busy_disks:
            text = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
            error = {"detachError": {"message": text, "time": plugin.stamp()}}
            await self._cluster.call("PATCH", f"{ATTACHMENTS}/{name}/status", {"status": error}, MERGE)
            await asyncio.sleep(self._settings.get().restart_delay(0))
        await self._cluster.call("PATCH", f"{ATTACHMENTS}/{name}/status", {"status": {"attached": False}}, MERGE)
        await self._change(f"{ATTACHMENTS}/{name}", remove=finalizer)
        # The volume's own finalizer goes once no attachment is left, so a volume that is gone is attached nowhere.
        others = [one for key, one in self._attachments.items() if key != name and _volume_of(one) == volume]
        if not others:
            await self._change(f"{VOLUMES}/{volume}", remove=finalizer)
        notify(f"{driver} detached {volume} from {attachment['spec']['nodeName']}")

    async def _change(self, path: str, add: str = "", remove: str = "") -> None:
        """Add or remove a finalizer of an object as it is now."""
        while True:
            try:
                live = await self._cluster.call("GET", path)
                present: list[str] = live["metadata"].get("finalizers") or []
                wanted = [one for one in present if one != remove] + ([add] if add and add not in present else [])
                if wanted == present:
                    return
                metadata = {"finalizers": wanted, "resourceVersion": live["metadata"]["resourceVersion"]}
                await self._cluster.call("PATCH", path, {"metadata": metadata}, MERGE)
            except Refused as error:
                if error.status == 409:
                    continue
                if error.status == 404 and remove:
                    return
                raise
            return


def _driver_of(claim: Object) -> str:
    """Who is to provision a claim: what it asks for, or what took over from that."""
    found = _annotations(claim)
    asked = next((found[name] for name in PROVISIONERS if name in found), "")
    return asked if asked in STORES else found.get(MIGRATED_TO, "")


def _is_provisioned(volume: Object) -> bool:
    """Whether external-provisioner takes it for its own: made by its driver, or by what its driver took over from."""
    found = _annotations(volume)
    return found.get(PROVISIONED_BY) in STORES or (PROVISIONED_BY in found and found.get(MIGRATED_TO) in STORES)


def _to_reclaim(volume: Object) -> bool:
    return (
        (volume.get("status") or {}).get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and _is_provisioned(volume)
        and in_tree.served_by(volume) is not None
    )


def _volume_of(attachment: Object) -> str:
    return str(attachment["spec"]["source"].get("persistentVolumeName", ""))


def _attacher_finalizer(driver: str) -> str:
    return f"external-attacher/{driver.replace('.', '-')}"
