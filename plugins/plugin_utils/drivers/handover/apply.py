# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes the two node plugins of a hand-over, and makes its single writes. Each write is bound to the observed object."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base.waiting import wait_until_clear
from ...catalog.base import Driver
from ...kube import kinds
from ...kube.apply import Applier
from ...kube.client import FIELD_MANAGER, Client
from ...kube.compare import strip_bookkeeping
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.errors import ClusterError
from ...kube.fencing import Reference
from ...kube.holder import identify_process
from ...kube.kinds import Kind
from ...kube.labels import CORDONED, MANAGED_BY, MANAGER, PART_OF, build_selector
from ...kube.lease import Lease, LeaseSubject
from ...kube.modify import modify
from ...kube.node import ObservedNode
from ...kube.pod import is_owned_by
from ...kube.quiesce import plan_cordon, plan_uncordon, wait_until_idle
from ..observe import read_begun_handover
from ..ownership import detect_platform_of_nodes, find_owner
from ..plan_inputs import name_record
from ..rollout.scheduling import explain_exclusion
from ..uses import make_selector
from .decide import (
    REPLACED,
    HandoverSide,
    HandoverState,
    WaitingNode,
    list_excluded_nodes,
    make_exclusion_patch,
    make_record,
)

_LOOK_AGAIN = 0.3
# Seconds for volume operations in flight: attaching and formatting a disk takes minutes.
_QUIESCE_SECONDS = 300.0
# Writes of its controllers between reading and deleting an object, before it is given up.
_TRIES = 20

# Why Nodes are cordoned. A later run removes the cordons of an interrupted one by it.
_REASON = "its node plugin is handed over"

# Managers of writes that are no part of what we apply, so that applying takes none of them back by accident.
_MANAGER = f"{FIELD_MANAGER}.handover"

Object = dict[str, Any]


def make_handover_lease(client: Client, namespace: str, driver: Driver, notify: Callable[[str], None]) -> Lease:
    """The Lease of a driver's hand-over, in either direction. namespace: of this collection's node plugin."""

    def list_written() -> Iterator[Reference]:
        """Name what a hand-over writes: its record, this collection's DaemonSet, the replaced plugin's pods, and Nodes."""
        yield Reference(kinds.CONFIG_MAP, name_record(driver), namespace)
        for item in client.list(kinds.DAEMON_SET, namespace, label_selector=make_selector(driver)).items:
            yield Reference(kinds.DAEMON_SET, item["metadata"]["name"], namespace)
        for pod in client.list(kinds.POD, namespace, label_selector=f"{REPLACED}={driver.key}").items:
            yield Reference(kinds.POD, pod["metadata"]["name"], namespace)
        for node in client.list_windows_nodes():
            yield Reference(kinds.NODE, node["metadata"]["name"])

    labels = {MANAGED_BY: MANAGER, PART_OF: driver.name}
    subject = LeaseSubject(
        namespace, f"kubewin-handover-{driver.key.replace('_', '-')}", labels, f"a hand-over of {driver.title}"
    )
    return Lease(client, subject, identify_process(os.getpid()), notify, list_written=list_written)


class HandoverExecutor:
    """One driver's hand-over in one cluster.

    definition: our DaemonSet as it would be applied, None where ours only leaves. notify: progress callback.
    """

    def __init__(
        self, client: Client, driver: Driver, definition: Mapping[str, Any] | None, notify: Callable[[str], None]
    ) -> None:
        self._client = client
        self._notify = notify
        self._driver = driver
        self._definition = definition
        self._namespace = str(definition["metadata"]["namespace"]) if definition is not None else ""

    def observe(self) -> HandoverState:
        """Everything that a hand-over is decided from."""
        client, driver = self._client, self._driver
        listed = client.list(kinds.DAEMON_SET).items
        nodes = [ObservedNode.from_object(node) for node in client.list_windows_nodes()]
        running_on = detect_platform_of_nodes(client.read_version(), nodes)
        theirs: list[HandoverSide] = []
        installed_plugin = None
        for item in listed:
            observed = ObservedDaemonSet.from_object(item)
            if not observed.is_node_plugin_of(driver.name):
                continue
            owner = find_owner(driver, running_on, observed)
            if owner is None:
                installed_plugin = item
            else:
                deleting = observed.deleting or self._is_namespace_deleted(observed.namespace)
                theirs.append(replace(self._read_side(item, nodes), owner=owner, deleting=deleting))
        own_plugin = installed_plugin or self._definition
        record_of = self._read_record()
        waiting = WaitingNode.from_object(installed_plugin) if installed_plugin is not None else None
        return HandoverState(
            driver=driver,
            nodes=tuple(sorted(node.name for node in nodes)),
            ours=None if own_plugin is None else self._read_side(own_plugin, nodes),
            theirs=tuple(theirs),
            begun=record_of.get("replaced", ""),
            replaced_nodes=tuple(sorted({str(pod["spec"]["nodeName"]) for pod in self.list_replaced_pods()})),
            waiting="" if waiting is None else waiting.node,
        )

    def _read_side(self, item: Mapping[str, Any], nodes: Sequence[ObservedNode]) -> HandoverSide:
        facts = ObservedDaemonSet.from_object(item)
        reasons = {node.name: explain_exclusion(facts, node) for node in nodes}
        pods = self.list_pods(item) if "uid" in item["metadata"] else []
        return HandoverSide(
            namespace=facts.namespace,
            name=facts.name,
            mode="csi_proxy" if facts.pipes else "host_process",
            exclusions={name: why for name, why in reasons.items() if why is not None},
            pods={
                str(pod["spec"]["nodeName"]): pod["metadata"]["name"]
                for pod in pods
                if pod["spec"].get("nodeName") in reasons
            },
        )

    def _is_namespace_deleted(self, name: str) -> bool:
        namespace = self._client.get(kinds.NAMESPACE, name)
        return namespace is not None and "deletionTimestamp" in namespace["metadata"]

    def read_daemon_set(self, namespace: str, name: str) -> Object:
        """A DaemonSet that must be there."""
        live = self._client.get(kinds.DAEMON_SET, name, namespace)
        if live is None:
            raise ClusterError(f"DaemonSet {namespace}/{name} no longer exists. Run again", "conflict")
        return live

    def read_own_daemon_set(self) -> Object:
        for item in self._client.list(kinds.DAEMON_SET).items:
            observed = ObservedDaemonSet.from_object(item)
            if observed.managed_by == MANAGER and observed.is_node_plugin_of(self._driver.name):
                return item
        raise ClusterError(
            f"this collection's DaemonSet of {self._driver.title} no longer exists. Run again", "conflict"
        )

    def list_pods(self, daemon_set: Mapping[str, Any], node: str = "") -> list[Object]:
        metadata = daemon_set["metadata"]
        return [
            pod
            for pod in self._select_pods(str(metadata["namespace"]), build_selector(daemon_set), node)
            if is_owned_by(metadata["uid"], pod)
        ]

    def _select_pods(self, namespace: str, selector: str, node: str = "") -> list[Object]:
        field = f"spec.nodeName={node}" if node else None
        return list(self._client.list(kinds.POD, namespace, label_selector=selector, field_selector=field).items)

    # Ours to the platform's

    def exclude_nodes(self, nodes: Sequence[str], waiting: WaitingNode | None) -> bool:
        """Keep our DaemonSet off these Nodes and no others, and note with it where the other one is waited for; whether it was a write.

        Its controller writes its status just when a pod leaves.
        """

        def patch(live: Object) -> Object:
            unchanged = set(list_excluded_nodes(live)) == set(nodes) and WaitingNode.from_object(live) == waiting
            return {} if unchanged else make_exclusion_patch(live, nodes, waiting)

        metadata = self.read_own_daemon_set()["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        return modify(self._client, kinds.DAEMON_SET, name, namespace, patch, manager=_MANAGER, required=True)

    # Somebody's to ours

    def _read_record(self) -> Mapping[str, str]:
        return read_begun_handover(self._client, self._driver, self._namespace)

    def list_replaced_pods(self) -> list[Object]:
        """Pods of the replaced plugin that still run: adopted and annotated, or orphaned."""
        record = self._read_record()
        if not record:
            return []
        marked = self._select_pods(self._namespace, f"{REPLACED}={self._driver.key}")
        names = {pod["metadata"]["name"] for pod in marked}
        orphans = [
            pod
            for pod in self._select_pods(self._namespace, record["selector"])
            if pod["metadata"]["name"] not in names and not pod["metadata"].get("ownerReferences")
        ]
        return [pod for pod in [*marked, *orphans] if pod["spec"].get("nodeName")]

    def orphan_pods(self, namespace: str, name: str, deadline: float) -> None:
        """Note what a DaemonSet was, then delete it and leave its pods. Safe to repeat at any point."""
        live = self._client.get(kinds.DAEMON_SET, name, namespace)
        if live is not None and ObservedDaemonSet.from_object(live).managed_by == MANAGER:
            return
        if live is not None:
            data = {
                "replaced": f"{namespace}/{name}",
                "state": "begun",
                "selector": build_selector(live),
                "uid": live["metadata"]["uid"],
                "daemonset.json": json.dumps(
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", **strip_bookkeeping(live)}, indent=1
                ),
            }
            Applier(self._client).apply([make_record(self._driver, namespace, data)])
            self.delete(kinds.DAEMON_SET, live, "Orphan")
        uid = self._read_record().get("uid")
        self.wait_until(
            f"deleted DaemonSet {namespace}/{name}; its pods stay",
            lambda: (
                not any(item["metadata"]["uid"] == uid for item in self._client.list(kinds.DAEMON_SET, namespace).items)
            ),
            deadline,
            f"DaemonSet {namespace}/{name} still exists after its deletion",
        )

    def label_replaced_pods(self) -> None:
        """Label the orphaned pods, so that our DaemonSet adopts them and their origin stays known."""
        selected = (self._definition or {})["spec"]["selector"]["matchLabels"]
        labels = {REPLACED: self._driver.key, **selected}
        for pod in self.list_replaced_pods():
            uid = pod["metadata"]["uid"]

            def patch(live: Object, uid: str = uid) -> Object:
                metadata = live["metadata"]
                if metadata["uid"] != uid or labels.items() <= (metadata.get("labels") or {}).items():
                    return {}
                return {"metadata": {"labels": labels}}

            modify(
                self._client, kinds.POD, pod["metadata"]["name"], pod["metadata"]["namespace"], patch, manager=_MANAGER
            )

    def finish_record(self) -> None:
        """Keep the copy of what was replaced, and record that the hand-over is complete."""
        if record := self._read_record():
            Applier(self._client).apply([make_record(self._driver, self._namespace, {**record, "state": "finished"})])

    # Both

    def delete(self, kind: Kind, observed: Object, policy: str = "Foreground") -> None:
        """Delete the observed object, as it is now; one that was created again under its name is kept. policy: as of Client.delete."""
        metadata = observed["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        for tries_left in reversed(range(_TRIES)):
            live = self._client.get(kind, name, namespace)
            if live is None or live["metadata"]["uid"] != metadata["uid"]:
                return
            version = live["metadata"]["resourceVersion"]
            try:
                self._client.delete(
                    kind, name, namespace, metadata["uid"], dry_run=False, policy=policy, version=version
                )
            except ClusterError as error:
                if tries_left and error.status == 409:
                    continue
                raise
            return

    def quiesce(self, node: str) -> None:
        """Cordon a Node and wait for volume operations in flight. ClusterError busy if they do not finish in time."""
        modify(self._client, kinds.NODE, node, None, lambda live: plan_cordon(live, _REASON), required=True)
        busy = wait_until_idle(self._client, node, _QUIESCE_SECONDS, self._notify)
        if busy:
            raise ClusterError(
                f"volume operations did not finish within {_QUIESCE_SECONDS:.0f} s, and nothing was changed on the node: "
                f"{'; '.join(busy)}. Let them finish, or delete the pods that cannot start, then run again.",
                "busy",
            )

    def list_cordoned_nodes(self) -> list[str]:
        """Nodes that this run or an interrupted one cordoned for a hand-over."""
        return [
            str(node["metadata"]["name"])
            for node in self._client.list_windows_nodes()
            if (node["metadata"].get("annotations") or {}).get(CORDONED) == _REASON
        ]

    def uncordon(self, node: str) -> bool:
        """Remove the cordon of a hand-over; whether there was one."""
        return modify(self._client, kinds.NODE, node, None, lambda live: plan_uncordon(live, _REASON))

    def wait_until(self, condition: str, is_met: Callable[[], bool], deadline: float, message: str) -> None:
        """Wait until is_met() is true, with progress; ClusterError after the deadline."""
        awaited = [f"waiting until {condition}"]
        timeout = deadline - time.monotonic()
        if wait_until_clear(lambda: [] if is_met() else awaited, timeout, self._notify, _LOOK_AGAIN):
            raise ClusterError(message, "timeout")

    def wait_for_end(self, pod: Object, title: str, deadline: float) -> None:
        """Wait until an observed pod no longer exists. title: the pod, as text."""
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]

        def is_deleted() -> bool:
            live = self._client.get(kinds.POD, metadata["name"], metadata["namespace"])
            return live is None or live["metadata"]["uid"] != metadata["uid"]

        message = f"{title} is still on {node}. Check it with kubectl describe"
        self.wait_until(f"{title} on {node} ends", is_deleted, deadline, message)
