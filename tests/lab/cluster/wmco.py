# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for the Windows Machine Config Operator, and for OLM as far as it replaces that.

After openshift/windows-machine-config-operator, release-4.13 and release-4.14: controllers/controllers.go
(ensureInstanceIsUpToDate, upgradeBlocked, markNodeAsUpgrading), pkg/nodeconfig/nodeconfig.go (Deconfigure, Configure) and
pkg/metadata. A node whose version annotation is not the operator's is upgraded at once, one at a time, unless the guard
finds volumes on it; without an approval, and the node is uncordoned in the end whatever had cordoned it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from lab.cluster import nodes, openshift
from lab.cluster.api import MERGE, Object
from lab.cluster.events import Recorder
from lab.cluster.hostlink import Hosts, HostUnreachable
from lab.cluster.settings import Source
from lab.cluster.watch import Cluster, Refused, notify
from lab.state import Host, LabState, Paths

PID = re.compile(r"^\s*PID\s*:\s*([1-9]\d*)", re.MULTILINE)
NODES = "/api/v1/nodes"
WINDOWS = f"{NODES}?labelSelector=kubernetes.io/os=windows"
BLOCKED = (
    "node upgrade has been blocked, as it can not be ensured that workloads will not be disrupted. If an in-tree persistent "
    "storage volume is in use, please ensure the CSI drivers for the given node have been deployed. This block must be "
    f"overriden by applying the label {openshift.ALLOW}=true to the node. It is recommended to unblock Nodes individually, and "
    "to wait for the upgrade to complete sucessfully before unblocking another Node."
)


class Kubelets(Protocol):
    """What is needed of the kubelets."""

    cluster: Cluster
    settings: Source
    hosts: Hosts

    def restart(self, node: str) -> None:
        """Every plugin container on a node starts again."""


class Wmco:
    """The operator; it does nothing while the settings disable it."""

    def __init__(self, kubelets: Kubelets, place: Paths) -> None:
        self._kubelets, self._place = kubelets, place
        self._cluster, self._settings = kubelets.cluster, kubelets.settings
        self._upgrade: asyncio.Task[None] | None = None
        self._records: dict[str, Recorder] = {}
        self._safe: bool | None = None

    async def run(self) -> None:
        while True:
            pace = self._settings.get().wmco
            await asyncio.sleep(pace.poll if pace is not None else 0.5)
            if pace is None:
                continue
            try:
                await self._reconcile()
            except Refused as error:
                notify(f"WMCO: {error}")

    async def _reconcile(self) -> None:
        await self._install_plans()
        found = (await self._cluster.call("GET", openshift.VERSIONS))["items"]
        if not found:
            return
        release: str = found[0]["spec"]["version"]
        platform: str = (await self._cluster.call("GET", openshift.INFRASTRUCTURE))["status"]["platform"]
        for node in (await self._cluster.call("GET", WINDOWS))["items"]:
            annotations = node["metadata"]["annotations"]
            if annotations.get(openshift.VERSION) != release or openshift.UPGRADING in node["metadata"]["labels"]:
                await self._outdated(node, release, platform)
        await self._condition(release)

    async def _install_plans(self) -> None:
        """What OLM does with a plan that was approved: the new release takes the place of the old one."""
        for plan in (await self._cluster.call("GET", openshift.PLANS))["items"]:
            if not plan["spec"].get("approved") or plan["status"].get("phase") == "Complete":
                continue
            release = plan["spec"]["clusterServiceVersionNames"][0].partition(".v")[2]
            if self._upgrade is not None and not self._upgrade.done():
                # The operator reports that it is not safe to replace, and OLM waits.
                continue
            for old in (await self._cluster.call("GET", openshift.VERSIONS))["items"]:
                await self._cluster.call("DELETE", f"{openshift.VERSIONS}/{old['metadata']['name']}")
            await self._cluster.call("POST", openshift.VERSIONS, openshift.service_version(release))
            await self._services(release)
            path = f"{openshift.PLANS}/{plan['metadata']['name']}"
            await self._cluster.call("PATCH", path, {"status": {"phase": "Complete"}}, MERGE)
            notify(f"WMCO {release} is installed")

    async def _condition(self, release: str) -> None:
        safe = self._upgrade is None or self._upgrade.done()
        if safe is self._safe:
            return
        self._safe = safe
        reason = "upgradeIsSafe" if safe else "upgradeIsNotSafe"
        condition = {"type": "Upgradeable", "status": str(safe), "reason": reason, "message": reason}
        name = f"{openshift.OPERATOR}.v{release}"
        thing = {"apiVersion": f"{openshift.OPERATORS}/v2", "kind": "OperatorCondition"}
        body = {**thing, "metadata": {"name": name}, "spec": {"conditions": [condition]}}
        try:
            await self._cluster.call("POST", openshift.CONDITIONS, body)
        except Refused as error:
            if error.status != 409:
                raise
            await self._cluster.call("PATCH", f"{openshift.CONDITIONS}/{name}", body, MERGE)

    async def _outdated(self, node: Object, release: str, platform: str) -> None:
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        if self._upgrade is not None and not self._upgrade.done() and self._upgrade.get_name() == name:
            return
        old = node["metadata"]["annotations"].get(openshift.VERSION)
        if old is not None and old != release:
            if await self._is_blocked(node, release, platform):
                if openshift.BLOCKED in labels:
                    return
                record = self._records.setdefault(name, Recorder(self._cluster, _about(node), "windows-controller"))
                await record("Warning", "UpgradeBlocked", BLOCKED)
                await self._patch(name, labels={openshift.BLOCKED: "true"})
                return
            if openshift.BLOCKED in labels:
                await self._patch(name, labels={openshift.BLOCKED: None})
        # One node at a time, also those that an operator before this one began.
        selector = f"{WINDOWS},{openshift.UPGRADING}=true"
        busy = {item["metadata"]["name"] for item in (await self._cluster.call("GET", selector))["items"]}
        running = self._upgrade is not None and not self._upgrade.done()
        if running or busy - {name}:
            return
        await self._patch(name, labels={openshift.UPGRADING: "true"})
        self._upgrade = asyncio.create_task(self._guarded(name, release, platform), name=name)

    async def _is_blocked(self, node: Object, release: str, platform: str) -> bool:
        guard = openshift.guards(release, platform, node["metadata"]["labels"])
        if guard == "attached":
            return bool(node["status"].get("volumesAttached"))
        pods = await self._pods(node["metadata"]["name"]) if guard else []
        return any("persistentVolumeClaim" in volume for pod in pods for volume in pod["spec"].get("volumes") or [])

    async def _guarded(self, node: str, release: str, platform: str) -> None:
        try:
            await self._deconfigure(node)
            await self._configure(node, release, platform)
            await self._services(release)
        except Refused as error:
            notify(f"WMCO on {node}: {error}")

    async def _services(self, release: str) -> None:
        """The list of services for its nodes; those that no node carries any more go."""
        there = {item["metadata"]["name"] for item in (await self._cluster.call("GET", openshift.MAPS))["items"]}
        notes = [node["metadata"]["annotations"] for node in (await self._cluster.call("GET", WINDOWS))["items"]]
        carried = {found.get(key) for found in notes for key in (openshift.VERSION, openshift.DESIRED)}
        wanted = {f"{openshift.SERVICES}{one}" for one in {release, *carried}}
        for name in sorted(there - wanted):
            if name.startswith(openshift.SERVICES):
                await self._cluster.call("DELETE", f"{openshift.MAPS}/{name}")
        if f"{openshift.SERVICES}{release}" not in there:
            await self._cluster.call("POST", openshift.MAPS, openshift.services(release))

    async def _deconfigure(self, node: str) -> None:
        await self._patch(node, spec={"unschedulable": True})
        await self._drain(node)
        notify(f"WMCO drained {node}")
        # Cleanup stops and removes the services, the kubelet's among them, and drops the annotation.
        await self._service(node, "")
        await self._patch(node, annotations={openshift.VERSION: None, "lab/notready": "true"})
        await self._step()

    async def _drain(self, node: str) -> None:
        while True:
            pods = [one for one in await self._pods(node) if not _of_daemonset(one)]
            if not pods:
                return
            for pod in pods:
                metadata = pod["metadata"]
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
                thing = {"apiVersion": "policy/v1", "kind": "Eviction"}
                name = {"name": metadata["name"], "namespace": metadata["namespace"]}
                if "deletionTimestamp" in metadata:
                    continue
                try:
                    # A disruption budget that does not allow it is asked again and again.
                    await self._cluster.call("POST", path, {**thing, "metadata": name})
                except Refused as error:
                    if error.status != 404:
                        raise
            await asyncio.sleep(0.2)

    async def _configure(self, node: str, release: str, platform: str) -> None:
        await self._patch(node, spec={"unschedulable": True})
        await self._step()
        for path, body in nodes.upgraded(node, openshift.kubelet(release)):
            await self._cluster.call("PATCH", path, body, MERGE)
        if openshift.brings_csi_proxy(release):
            await self._service(node, release)
        labels: dict[str, str | None] = {openshift.WITH_CSI: "true"} if openshift.csi_enabled(release, platform) else {}
        await self._patch(node, labels=labels, annotations={openshift.DESIRED: release})
        await self._step()
        # WICD, on the node, has every service running.
        await self._patch(node, annotations={openshift.VERSION: release, "lab/notready": None})
        self._kubelets.restart(node)
        await self._patch(node, spec={"unschedulable": None})
        await self._patch(node, labels={openshift.UPGRADING: None})
        notify(f"WMCO configured {node} with {release}")

    async def _service(self, node: str, release: str) -> None:
        """csi-proxy on the node's host as this release has it; none for no release."""
        host = self._kubelets.hosts.find(node)
        if host is None:
            return
        try:
            await self._stop(host)
            if not release:
                return
            state = LabState.from_json(self._place.state.read_text(encoding="utf-8"))
            for line in (
                r"mkdir C:\k C:\var\log\csi-proxy",
                f"curl.exe -sf -o {openshift.EXE} {state.artifacts[-1].http_url}",
                f'sc.exe create csi-proxy binPath= "{openshift.EXE} {openshift.ARGUMENTS}" start= demand',
                'sc.exe description csi-proxy "OpenShift managed csi-proxy"',
                "sc.exe start csi-proxy",
            ):
                await self._kubelets.hosts.run(host, line)
        except HostUnreachable as error:
            notify(f"WMCO on {node}: {error}")

    async def _stop(self, host: Host) -> None:
        """As pkg/daemon/manager does it: a process that lives on after its service has stopped is ended, with its pipes."""
        run = self._kubelets.hosts.run
        found = PID.search(await run(host, "sc.exe queryex csi-proxy"))
        if found is not None:
            await run(host, "sc.exe stop csi-proxy")
            while "3  STOP_PENDING" in await run(host, "sc.exe query csi-proxy"):
                await asyncio.sleep(0.1)
            await run(host, f"taskkill.exe /f /pid {found[1]}")
        await run(host, "sc.exe delete csi-proxy")

    async def _step(self) -> None:
        pace = self._settings.get().wmco
        await asyncio.sleep(pace.step if pace is not None else 0)

    async def _pods(self, node: str) -> list[Object]:
        found: list[Object] = (await self._cluster.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}"))[
            "items"
        ]
        return found

    async def _patch(
        self,
        node: str,
        labels: dict[str, str | None] | None = None,
        annotations: dict[str, str | None] | None = None,
        spec: Object | None = None,
    ) -> None:
        body: Object = {"metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": spec or {}}
        await self._cluster.call("PATCH", f"{NODES}/{node}", body, MERGE)


def _of_daemonset(pod: Object) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def _about(node: Object) -> Object:
    """A node's events are in the namespace default."""
    metadata = node["metadata"]
    thing = {"apiVersion": "v1", "kind": "Node", "namespace": "default"}
    return {**thing, "name": metadata["name"], "uid": metadata["uid"]}
