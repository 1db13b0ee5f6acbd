# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a cluster during an upgrade, and makes its single changes. Each change is bound to the observed object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ..base.text import join_lines
from ..catalog.registry import DRIVERS
from ..catalog.versions import parse
from ..catalog.wmco import ALLOW, OPERATOR_NAMESPACE
from ..drivers.rollout.scheduling import explain_exclusion
from ..kube import kinds
from ..kube.client import Client
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.errors import ClusterError
from ..kube.modify import modify
from ..kube.node import ObservedNode, Taint
from ..kube.quiesce import Object, plan_cordon, plan_uncordon
from .decide import ChangeObject, select_nodes_to_read, select_workloads_to_read
from .journal import Journal, UpgradeTarget, UpgradeWorkload
from .observation import OPERATOR, TAINT, ClusterState, UpgradeNode, UpgradeObservation, WorkloadState, read_pod
from .snapshot import ClaimedVolume, read_volumes

# An eviction that was refused is tried again after so many seconds, as kubectl drain does.
_EVICT_AGAIN = 5.0


class UpgradeObserver:
    """Reads the cluster. check: raises when this run is to end."""

    def __init__(self, client: Client, check: Callable[[], None]) -> None:
        self._client, self._check = client, check
        self._refused: dict[str, tuple[float, str]] = {}

    def record_refusal(self, uid: str, why: str) -> None:
        """Record that the API server refused an eviction."""
        self._refused[uid] = (time.monotonic(), why)

    def observe(self, journal: Journal, only: frozenset[str] | None) -> UpgradeObservation:
        """Read what the journal's next step is decided from: pods only where they matter. only: as of UpgradeRules."""
        self._check()
        listed = self._list_nodes()
        plain = _read_without_pods(listed)
        chosen = select_nodes_to_read(journal, plain, only)
        nodes = {name: self._read_node(item) if name in chosen else plain[name] for name, item in listed.items()}
        elapsed_clock = time.monotonic()
        return UpgradeObservation(
            current_time=self._client.now(),
            nodes=nodes,
            workloads={
                workload: self._read_workload(workload.kind, workload.namespace, workload.name)
                for workload in select_workloads_to_read(journal)
            },
            refused={uid: why for uid, (dummy, why) in self._refused.items()},
            retriable=frozenset(
                uid for uid, (refused_at, dummy) in self._refused.items() if elapsed_clock - refused_at >= _EVICT_AGAIN
            ),
            cluster=self._read_cluster(journal)
            if chosen or not any(entry.under_way for entry in journal.nodes)
            else None,
        )

    def observe_all(self, target: UpgradeTarget) -> UpgradeObservation:
        """Read what the beginning or takeover of an upgrade is decided from."""
        nodes = {name: self._read_node(item) for name, item in self._list_nodes().items()}
        return UpgradeObservation(
            current_time=self._client.now(),
            nodes=nodes,
            cluster=self._read_openshift() if target.openshift else None,
            api_server=self._client.read_version() if target.kubelet else "",
        )

    def read_nodes(self) -> dict[str, UpgradeNode]:
        """Read all Windows nodes, without their pods."""
        return _read_without_pods(self._list_nodes())

    def _list_nodes(self) -> dict[str, Object]:
        items = self._client.list_windows_nodes()
        return {item["metadata"]["name"]: item for item in items}

    def list_pods(self, node: str) -> tuple[Object, ...]:
        return self._client.list(kinds.POD, field_selector=f"spec.nodeName={node}").items

    def _read_node(self, item: Object) -> UpgradeNode:
        pods = self.list_pods(item["metadata"]["name"])
        labels_by_pod = {read_pod(pod): pod["metadata"].get("labels") or {} for pod in pods}
        keys = {
            (*named, pod.namespace)
            for pod, labels in labels_by_pod.items()
            if pod.volumes and not pod.finished and (named := pod.find_workload(labels)) is not None
        }
        workloads = [
            UpgradeWorkload(kind, namespace, name, self._read_workload(kind, namespace, name).ready)
            for kind, name, namespace in sorted(keys)
        ]
        return UpgradeNode.from_object(item, tuple(labels_by_pod), tuple(workloads))

    def _read_workload(self, kind: str, namespace: str, name: str) -> WorkloadState:
        live = self._client.get(kinds.SCALABLE[kind], name, namespace)
        if live is None:
            # Deleted by its owner; none of its pods will start again.
            return WorkloadState(0, 0)
        spec, status = live.get("spec") or {}, live.get("status") or {}
        replicas = spec.get("replicas")
        conditions = status.get("conditions") or []
        why = next(
            (
                join_lines(str(condition.get("message", "")))
                for condition in conditions
                if condition["type"] == "ReplicaFailure"
            ),
            "",
        )
        return WorkloadState(1 if replicas is None else int(replicas), int(status.get("readyReplicas") or 0), why)

    def _read_cluster(self, journal: Journal) -> ClusterState:
        state = ClusterState()
        if journal.target.openshift or journal.hook == "wmco":
            state = self._read_openshift()
        return replace(state, wmco=self.read_wmco_release()) if journal.hook == "wmco" else state

    def _read_openshift(self) -> ClusterState:
        live = self._client.get(kinds.CLUSTER_VERSION, "version")
        status = (live or {}).get("status") or {}
        history, conditions = status.get("history") or [], status.get("conditions") or []
        complete = str(history[0].get("version", "")) if history and history[0].get("state") == "Completed" else ""
        failing = [
            join_lines(str(condition.get("message")))
            for condition in conditions
            if (condition["type"], condition["status"]) == ("Failing", "True")
        ]
        return ClusterState(openshift=complete, failing=next(iter(failing), ""), is_openshift=live is not None)

    def read_wmco_release(self) -> str:
        """Read the release of WMCO that OLM has installed, empty when there is none."""
        releases = []
        for item in self._client.list(kinds.CLUSTER_SERVICE_VERSION, OPERATOR_NAMESPACE).items:
            spec, status = item.get("spec") or {}, item.get("status") or {}
            if item["metadata"]["name"].startswith(OPERATOR) and status.get("phase") == "Succeeded":
                releases.append(str(spec.get("version", "")))
        return max(releases, key=lambda version: parse(version).release, default="")

    def find_repelled_plugins(self, drivers: Iterable[str], upgrade: str) -> list[str]:
        """Find DaemonSets of these drivers' node plugins that our taint would repel from a node that they can go to now."""
        taint = Taint(TAINT, upgrade, "NoSchedule")
        nodes = [ObservedNode.from_object(item) for item in self._list_nodes().values()]
        names = [DRIVERS[key].name for key in drivers]
        repelled = []
        for item in self._client.list(kinds.DAEMON_SET).items if names else ():
            observed = ObservedDaemonSet.from_object(item)
            if not any(observed.is_node_plugin_of(name) for name in names):
                continue
            if any(
                explain_exclusion(observed, node) is None
                and explain_exclusion(observed, replace(node, taints=(*node.taints, taint))) is not None
                for node in nodes
            ):
                repelled.append(f"{observed.namespace}/{observed.name}")
        return repelled

    def read_volumes(self, nodes: Iterable[str], claims: Iterable[str] = ()) -> dict[str, ClaimedVolume]:
        return read_volumes(
            [pod for name in nodes for pod in self.list_pods(name)],
            self._client.list(kinds.PERSISTENT_VOLUME_CLAIM).items,
            self._client.list(kinds.PERSISTENT_VOLUME).items,
            claims,
        )


class UpgradeExecutor:
    """Changes the cluster. client: checks before each write that the run may still do it. notify: progress callback."""

    def __init__(self, client: Client, observer: UpgradeObserver, notify: Callable[[str], None]) -> None:
        self._client, self._observer, self._notify = client, observer, notify

    def execute(self, action: ChangeObject) -> None:
        """Make one change; the next observation shows its effect."""
        if action.kind == "evict":
            for pod in action.pods:
                try:
                    why = self._client.evict(pod.name, pod.namespace, pod.uid, pod.version)
                except ClusterError as error:
                    if error.status != 409:
                        raise
                    # It changed since it was observed: the next observation has it, or another pod in its place.
                    continue
                if why:
                    self._observer.record_refusal(pod.uid, why)
                else:
                    self._notify(f"{action.node}: {pod.title} is evicted")
            return
        modify(self._client, kinds.NODE, action.node, None, lambda node: _build_patch(node, action))


def _read_without_pods(listed: Mapping[str, Object]) -> dict[str, UpgradeNode]:
    return {name: UpgradeNode.from_object(item) for name, item in listed.items()}


def _build_patch(node: Object, action: ChangeObject) -> Object:
    """Build the patch for a Node as it is now, empty if it needs no change."""
    journal, spec = action.journal, node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    taints = spec.get("taints") or []
    tainted = any(taint["key"] == TAINT for taint in taints)
    if action.kind == "allow":
        return {} if labels.get(ALLOW) == "true" else {"metadata": {"labels": {ALLOW: "true"}}}
    if action.kind == "cordon":
        if journal.hook == "wmco":
            return (
                {}
                if tainted
                else {"spec": {"taints": [*taints, {"key": TAINT, "value": journal.name, "effect": "NoSchedule"}]}}
            )
        # If another run was faster, the next read shows its owner.
        return plan_cordon(node, journal.mark)
    patch = plan_uncordon(node, journal.mark)
    if tainted:
        patch.setdefault("spec", {})["taints"] = [taint for taint in taints if taint["key"] != TAINT]
    if journal.hook == "wmco" and labels.get(ALLOW) == "true" and journal.find_entry(action.node).step == "workloads":
        patch.setdefault("metadata", {})["labels"] = {ALLOW: None}
    return patch
