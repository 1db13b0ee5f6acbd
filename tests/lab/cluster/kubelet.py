# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for the kubelets of all nodes: node plugin pods, driver registration, exec and logs. One process.

What it models of a Windows node: a plugin that starts, or starts again, opens the pipes it mounts. Without them its
driver container crash-loops and it does not register. A plugin that runs does not notice when they go: it stays
Ready, its registration stays. Pods with volumes of claims run once these are mounted (`volumes.py`), and the
provisioner and attacher of their drivers live in this process too (`storage.py`). Every other pod belongs to KWOK.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from lab.cluster import openshift, plugin, workload
from lab.cluster.api import MERGE, STRATEGIC, Object
from lab.cluster.backend import Backend
from lab.cluster.events import Recorder
from lab.cluster.hostlink import Hosts, HostUnreachable
from lab.cluster.nodes import KUBELET_VERSION
from lab.cluster.old_attach import OldAttach
from lab.cluster.plugin import Phase, Plugin, Standing
from lab.cluster.settings import Settings, Source
from lab.cluster.storage import Storage
from lab.cluster.streams import Exec, Logs
from lab.cluster.syncer import Syncer
from lab.cluster.volumes import InUse, Pod
from lab.cluster.watch import Cluster, Refused, notify
from lab.cluster.wmco import Wmco
from lab.state import LabState, Paths

NODE_ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid"
RESTART_ANNOTATION = "lab/restart"


class Worker:
    """One plugin pod on one node, from its scheduling to its deletion."""

    def __init__(self, kubelet: Kubelet, pod: Object, found: Plugin) -> None:
        self.plugin = found
        self._kubelet = kubelet
        self._restart = asyncio.Event()
        self._rebooted = False
        self._asked = _asked_restart(pod)
        self._path = f"/api/v1/namespaces/{found.namespace}/pods/{found.name}"
        self._started = (pod.get("status") or {}).get("startTime") or plugin.stamp()
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        self._restarts: int = next((item["restartCount"] for item in statuses if item["name"] == found.driver), 0)
        self._was_ready = bool(statuses) and all(item["ready"] for item in statuses)
        self._crashed = False
        self._booted = self._started
        self._reboots = 0
        self._registrar_since = ""
        self._ready: bool | None = None
        self._turned = self._started
        self.registered = False
        involved = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": found.namespace,
            "name": found.name,
            "uid": found.uid,
        }
        self._event = Recorder(kubelet.cluster, involved, "kubelet", found.node)
        self.task = asyncio.create_task(self._guarded())

    def observe(self, pod: Object) -> None:
        """The pod changed: a new value of the restart annotation ends its driver container."""
        asked = _asked_restart(pod)
        if asked != self._asked:
            self._asked = asked
            self.restart()

    def restart(self) -> None:
        self._restart.set()

    def reboot(self) -> None:
        """Every container starts again, in the same pod."""
        self._rebooted = True
        self.restart()

    async def _guarded(self) -> None:
        try:
            await self._live()
        except asyncio.CancelledError:
            raise
        except Refused as error:
            # The pod went away between two steps: its deletion event follows.
            notify(f"{self.plugin.name}: {error}")

    async def _live(self) -> None:
        if self._was_ready:
            self.registered = bool(self.plugin.driver_name)
            await self._until_restart()
        else:
            await self._start()
            await self._pull()
            if self.plugin.once:
                await self._show(Phase.ENDED)
                return
        while True:
            try:
                missing = await self._kubelet.missing_pipes(self.plugin)
            except HostUnreachable as error:
                notify(f"{self.plugin.name}: {error}")
                await asyncio.sleep(self._settings.restart_delay(0))
                continue
            self._restart.clear()
            self._log(missing)
            if missing:
                await self._crash()
            else:
                await self._show(Phase.RUNNING)
                await self._event("Normal", "Started", f"Started container {self.plugin.driver}")
                await self._register()
                await self._until_restart()

    @property
    def serves(self) -> bool:
        """Whether its driver container runs."""
        return self._was_ready if self._ready is None else self._ready

    @property
    def _settings(self) -> Settings:
        return self._kubelet.settings.get()

    async def _until_restart(self) -> None:
        await self._restart.wait()
        self._count()
        self._crashed = True

    def _count(self) -> None:
        if self._rebooted:
            self._rebooted, self._booted = False, plugin.stamp()
            self._reboots += 1
        else:
            self._restarts += 1

    async def _start(self) -> None:
        """The delay that is in force decides, also when it becomes another one meanwhile."""
        began = time.monotonic()
        while (left := self._settings.delay(self.plugin.node) - (time.monotonic() - began)) > 0:
            await asyncio.sleep(min(left, 0.1))

    async def _pull(self) -> None:
        await self._pull_bad()
        for dummy, image in self.plugin.containers:
            if (self.plugin.node, image) not in self._kubelet.images:
                await asyncio.sleep(self._settings.pull_delay)
                self._kubelet.images.add((self.plugin.node, image))

    async def _pull_bad(self) -> None:
        tried = 0
        while bad := frozenset(image for dummy, image in self.plugin.containers if not self._settings.pullable(image)):
            for name, image in self.plugin.containers:
                log = self._kubelet.logs.of(self.plugin.namespace, self.plugin.name, name)
                log.waiting = "trying and failing to pull image" if image in bad else "ContainerCreating"
            await self._show(Phase.PULL_FAILED, bad_images=bad)
            for image in sorted(bad):
                await self._event(
                    "Warning",
                    "Failed",
                    f'Failed to pull image "{image}": rpc error: code = NotFound: {image}: not found',
                )
                await self._event("Normal", "BackOff", plugin.pull_message(image))
            await asyncio.sleep(self._settings.restart_delay(tried))
            tried += 1

    def _log(self, missing: frozenset[str]) -> None:
        where = (self.plugin.namespace, self.plugin.name)
        self._kubelet.logs.start(*where, self.plugin.driver, plugin.driver_log(self.plugin, missing))
        if self.plugin.registrar and self._registrar_since != self._booted:
            self._registrar_since = self._booted
            self._kubelet.logs.start(*where, self.plugin.registrar, plugin.registrar_log(self.plugin, registered=False))

    async def _crash(self) -> None:
        delay = self._settings.restart_delay(self._restarts)
        self._crashed = True
        await self._show(Phase.CRASHED, backoff=delay)
        message = (
            f"Back-off restarting failed container {self.plugin.driver} in pod "
            f"{self.plugin.name}_{self.plugin.namespace}({self.plugin.uid})"
        )
        await self._event("Warning", "BackOff", message)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._restart.wait(), delay)
        self._count()

    async def _register(self) -> None:
        if not self.plugin.driver_name or not self._settings.registers(
            image for _name, image in self.plugin.containers
        ):
            return
        await asyncio.sleep(self._settings.registration_delay)
        await self._kubelet.register(self.plugin)
        self.registered = True
        lines = plugin.registrar_log(self.plugin, registered=True)[2:]
        self._kubelet.logs.append(self.plugin.namespace, self.plugin.name, self.plugin.registrar, lines)

    async def _show(self, phase: Phase, bad_images: frozenset[str] = frozenset(), backoff: float = 0.0) -> None:
        now = plugin.stamp()
        if self._ready is not (phase is Phase.RUNNING):
            self._ready, self._turned = phase is Phase.RUNNING, now
        standing = Standing(
            phase,
            self._restarts,
            self._started,
            now,
            self._turned,
            self._booted,
            self._reboots,
            bad_images,
            self._crashed,
            backoff,
        )
        status = plugin.status(self.plugin, standing, self._kubelet.address(self.plugin.node))
        body = {"metadata": {"uid": self.plugin.uid}, "status": status}
        await self._kubelet.cluster.call("PATCH", f"{self._path}/status", body, STRATEGIC)
        found = self.plugin
        notify(f"{found.namespace}/{found.name} on {found.node}: {phase.value}, {self._restarts} restarts")


def _asked_restart(pod: Object) -> str:
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    return annotations.get(RESTART_ANNOTATION, "")


class Kubelet:
    """The nodes' kubelets: follows nodes and pods, and keeps a worker for each plugin pod."""

    def __init__(self, place: Paths, cluster: Cluster, app: web.AppRunner, tls: ssl.SSLContext, port: int) -> None:
        self.cluster = cluster
        self.settings = Source(place.kubelet_settings)
        self.hosts = Hosts(place)
        self.logs = Logs()
        self._app, self._tls, self._port = app, tls, port
        self._nodes: dict[str, Object] = {}
        self._sites: dict[str, web.TCPSite] = {}
        self._workers: dict[str, Worker] = {}
        self._with_volumes: dict[str, Pod] = {}
        self._in_use = InUse(cluster)
        self._old_attach = OldAttach(cluster)
        self.backend = Backend(place.volumes)
        self._pods: dict[tuple[str, str], str] = {}
        # What each node has pulled.
        self.images: set[tuple[str, str]] = set()
        self._owners: dict[tuple[str, str], str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def address(self, node: str) -> str:
        addresses = self._nodes.get(node, {}).get("status", {}).get("addresses") or []
        return next((item["address"] for item in addresses if item["type"] == "InternalIP"), "127.0.0.1")

    def release(self, node: str) -> str:
        info: Object = self._nodes.get(node, {}).get("status", {}).get("nodeInfo", {})
        return str(info.get("kubeletVersion", KUBELET_VERSION))

    def node_of(self, namespace: str, pod: str) -> str | None:
        return self._pods.get((namespace, pod))

    def files_of(self, namespace: str, pod: str, container: str) -> dict[str, Path] | None:
        """What a container of a pod with volumes has mounted, by path; None for any other pod."""
        for found in self._with_volumes.values():
            if (found.workload.namespace, found.workload.name) == (namespace, pod):
                return found.files.get(container, {})
        return None

    def ready_plugin(self, node: str, driver: str) -> Plugin | None:
        for worker in self._workers.values():
            if (worker.plugin.node, worker.plugin.driver_name) == (node, driver) and worker.serves:
                return worker.plugin
        return None

    async def missing_pipes(self, found: Plugin) -> frozenset[str]:
        if not found.pipes:
            return frozenset()
        host = self.hosts.find(found.node)
        if host is None:
            return frozenset() if await self._without_host(found.node) else found.pipes
        return found.pipes - await self.hosts.pipes(host)

    async def _without_host(self, name: str) -> bool:
        """Whether a node with no host behind it is taken to serve the pipes."""
        settings = self.settings.get()
        if settings.wmco is None:
            return settings.pipes_without_host
        node = await self.cluster.call("GET", f"/api/v1/nodes/{name}")
        release = (node["metadata"].get("annotations") or {}).get(openshift.VERSION)
        return release is not None and openshift.brings_csi_proxy(release)

    def restart(self, node: str) -> None:
        """Every plugin container on a node starts again."""
        for worker in self._workers.values():
            if worker.plugin.node == node:
                worker.restart()

    async def register(self, found: Plugin) -> None:
        """Write what a kubelet writes when a driver registers: first the Node, then the CSINode."""
        driver = self.settings.get().driver(found.driver_name)
        async with self._lock(found.node):
            self._owners[(found.node, found.driver_name)] = found.uid
            # Read, because the watch of the nodes may be behind that of the pods: a kubelet knows its own Node.
            node = await self.cluster.call("GET", f"/api/v1/nodes/{found.node}")
            identity = driver.node_id.format(uuid=node["status"]["nodeInfo"]["systemUUID"], node=found.node)
            annotations = node["metadata"].get("annotations") or {}
            ids = {**json.loads(annotations.get(NODE_ID_ANNOTATION, "{}")), found.driver_name: identity}
            metadata = {"annotations": {NODE_ID_ANNOTATION: json.dumps(ids)}, "labels": dict(driver.topology)}
            await self.cluster.call("PATCH", f"/api/v1/nodes/{found.node}", {"metadata": metadata}, MERGE)
            entry: Object = {
                "name": found.driver_name,
                "nodeID": identity,
                "topologyKeys": sorted(driver.topology) or None,
            }
            if found.max_volumes is not None:
                entry["allocatable"] = {"count": found.max_volumes}
            path = f"/apis/storage.k8s.io/v1/csinodes/{found.node}"
            drivers = (await self.cluster.call("GET", path))["spec"]["drivers"] or []
            others = [item for item in drivers if item["name"] != found.driver_name]
            mine = [item for item in drivers if item["name"] == found.driver_name]
            if mine and {**mine[0], "topologyKeys": mine[0].get("topologyKeys")} != entry:
                # An entry cannot be changed, only taken out and put in again.
                await self.cluster.call("PATCH", path, {"spec": {"drivers": others}}, MERGE)
            await self.cluster.call("PATCH", path, {"spec": {"drivers": [*others, entry]}}, MERGE)
        notify(f"{found.driver_name} registered on {found.node} as {identity}")

    async def _unregister(self, found: Plugin, beside: list[Worker]) -> None:
        """A registrar that ends removes its socket, and the kubelet then forgets the driver.

        The socket is called after the driver, and the plugin's own is in a directory called after it: both are removed
        although a second plugin of that driver, `beside`, has made them anew. Its liveness probe finds that out.
        """
        if found.node in self.settings.get().stale:
            return
        async with self._lock(found.node):
            if self._owners.get((found.node, found.driver_name)) != found.uid and not beside:
                return
            self._owners.pop((found.node, found.driver_name), None)
            try:
                path = f"/apis/storage.k8s.io/v1/csinodes/{found.node}"
                drivers = (await self.cluster.call("GET", path))["spec"]["drivers"] or []
                left = [item for item in drivers if item["name"] != found.driver_name]
                await self.cluster.call("PATCH", path, {"spec": {"drivers": left}}, MERGE)
                node = await self.cluster.call("GET", f"/api/v1/nodes/{found.node}")
                ids = json.loads((node["metadata"].get("annotations") or {}).get(NODE_ID_ANNOTATION, "{}"))
                ids.pop(found.driver_name, None)
                metadata = {"annotations": {NODE_ID_ANNOTATION: json.dumps(ids) if ids else None}}
                await self.cluster.call("PATCH", f"/api/v1/nodes/{found.node}", {"metadata": metadata}, MERGE)
            except Refused as error:
                if error.status != 404:
                    raise
                return
        notify(f"{found.driver_name} unregistered on {found.node}")
        for worker in beside:
            if any(plugin.LIVENESS_IMAGE in image for dummy, image in worker.plugin.containers):
                await asyncio.sleep(self.settings.get().liveness_delay)
                worker.restart()

    def _lock(self, node: str) -> asyncio.Lock:
        return self._locks.setdefault(node, asyncio.Lock())

    async def follow_nodes(self) -> None:
        async for kind, node in self.cluster.follow("/api/v1/nodes"):
            if kind == "RESET":
                present = {item["metadata"]["name"] for item in node["items"]}
                for name in [name for name in self._nodes if name not in present]:
                    await self._forget_node(name)
                continue
            name = node["metadata"]["name"]
            if kind == "DELETED":
                await self._forget_node(name)
                continue
            before = self._nodes.get(name)
            self._nodes[name] = node
            await self._serve(name)
            boot = node["status"]["nodeInfo"]["bootID"]
            if before is not None and before["status"]["nodeInfo"]["bootID"] != boot:
                notify(f"{name} rebooted")
                for worker in self._workers.values():
                    if worker.plugin.node == name:
                        worker.reboot()

    async def _forget_node(self, name: str) -> None:
        address = self.address(name)
        self._nodes.pop(name, None)
        if address in self._sites and address not in map(self.address, self._nodes):
            await self._sites.pop(address).stop()

    async def _serve(self, name: str) -> None:
        """Answer at the node's own address; nodes beyond the certificate's addresses have no exec."""
        address = self.address(name)
        if address in self._sites or not address.startswith(("127.0.10.", "127.0.11.")):
            return
        site = web.TCPSite(self._app, address, self._port, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as error:
            notify(f"{name} has no exec and logs: {address}:{self._port} cannot be served: {error}")
            return
        self._sites[address] = site

    async def follow_pods(self) -> None:
        async for kind, pod in self.cluster.follow("/api/v1/pods"):
            if kind == "RESET":
                present = {item["metadata"]["uid"] for item in pod["items"]}
                for uid in [uid for uid in (*self._workers, *self._with_volumes) if uid not in present]:
                    self._drop(uid)
                continue
            metadata = pod["metadata"]
            key, uid, node = (metadata["namespace"], metadata["name"]), metadata["uid"], pod["spec"].get("nodeName")
            if uid in self._with_volumes and kind != "DELETED":
                self._keep(self._with_volumes[uid].changed(pod))
            elif node and kind != "DELETED" and (found := workload.read(pod)) is not None:
                self._pods[key] = node
                made = Pod(self, found, pod, self._in_use, self._old_attach, self.backend, self.settings.get)
                self._with_volumes[uid] = made
                self._keep(made.changed(pod))
            elif kind == "DELETED" or metadata.get("deletionTimestamp"):
                self._drop(uid)
                if kind == "DELETED":
                    self._pods.pop(key, None)
                    self.logs.forget(*key)
            elif node:
                self._pods[key] = node
                if uid in self._workers:
                    self._workers[uid].observe(pod)
                elif (plugged := plugin.read(pod)) is not None:
                    self._workers[uid] = Worker(self, pod, plugged)

    def _drop(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None:
            worker.task.cancel()
            mine = (worker.plugin.node, worker.plugin.driver_name)
            others = self._workers.values() if worker.registered else ()
            beside = [one for one in others if one.registered and (one.plugin.node, one.plugin.driver_name) == mine]
            self._keep(asyncio.create_task(self._unregister(worker.plugin, beside)))
        if (pod := self._with_volumes.pop(uid, None)) is not None:
            self._keep(asyncio.create_task(pod.gone()))

    def _keep(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _healthy(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def serve(place: Paths) -> None:
    """Run until one of the watches ends, which means a fault."""
    state = LabState.from_json(place.state.read_text(encoding="utf-8"))
    client = ssl.create_default_context(cafile=str(place.pki / "ca.crt"))
    client.load_cert_chain(place.pki / "kubelet-client.crt", place.pki / "kubelet-client.key")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(place.pki / "ca.crt"))
    server.load_cert_chain(place.pki / "kubelet.crt", place.pki / "kubelet.key")
    server.verify_mode = ssl.CERT_REQUIRED
    connector = aiohttp.TCPConnector(ssl=client, limit=32)
    async with aiohttp.ClientSession(connector=connector) as session:
        app = web.Application(client_max_size=0)
        runner = web.AppRunner(app, access_log=None)
        kubelet = Kubelet(place, Cluster(session, state.server), runner, server, state.ports["kubelet"])
        execute = Exec(kubelet.hosts, kubelet.settings, kubelet.node_of, kubelet.files_of)
        syncer = Syncer(kubelet.cluster, place.volumes.with_name("cns"), kubelet.settings)
        storage = Storage(kubelet.cluster, kubelet.backend, kubelet.settings, syncer)
        routes: list[tuple[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]] = [
            ("/exec/{namespace}/{pod}/{container}", execute.handle),
            ("/exec/{namespace}/{pod}/{uid}/{container}", execute.handle),
            ("/containerLogs/{namespace}/{pod}/{container}", kubelet.logs.handle),
            ("/healthz", _healthy),
        ]
        for path, handler in routes:
            app.router.add_route("*", path, handler)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", state.ports["kubelet"], ssl_context=server).start()
        await asyncio.gather(
            kubelet.follow_nodes(),
            kubelet.follow_pods(),
            storage.follow_claims(),
            storage.follow_volumes(),
            storage.follow_attachments(),
            syncer.follow_volumes(),
            syncer.sync_fully(),
            syncer.lead(),
            Wmco(kubelet, place).run(),
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.cluster.kubelet", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="the lab's folder")
    options: Any = parser.parse_args(arguments)
    asyncio.run(serve(Paths(options.directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
