# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a cluster during an upgrade, and makes its single changes. Each change is bound to the observed object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import is_at_least, parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.wmco import ALLOW
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import DaemonSetFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.scheduling import why_not
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode, Taint
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.quiesce import Object, plan_cordon, plan_uncordon
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import Do, whose_pods, whose_return
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import (
    OPERATOR,
    TAINT,
    ClusterNow,
    NodeNow,
    Observation,
    PlanNow,
    WorkloadNow,
    read_pod,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, Target, Workload
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.picture import NodeWas, Picture

# An eviction that was refused is tried again after so many seconds, as kubectl drain does.
_EVICT_AGAIN = 5.0


class Watcher:
    """Looks. operator: namespace of WMCO. check: raises when this run is to end."""

    def __init__(self, client: Client, operator: str, check: Callable[[], None]) -> None:
        self._client, self._operator, self._check = client, operator, check
        self._refused: dict[str, tuple[float, str]] = {}
        # Nodes that may start, as of Rules.
        self.only: frozenset[str] | None = None

    def refuse(self, uid: str, why: str) -> None:
        """Keep in mind that a pod may not be evicted now."""
        self._refused[uid] = (time.monotonic(), why)

    def observe(self, journal: Journal) -> Observation:
        """What the journal's next step is decided from: pods only where they matter."""
        self._check()
        listed = self._nodes()
        plain = _plain(listed)
        chosen = whose_pods(journal, plain, self.only)
        nodes = {name: self._node(item) if name in chosen else plain[name] for name, item in listed.items()}
        now = time.monotonic()
        return Observation(
            now=self._client.now(),
            nodes=nodes,
            workloads={one: self._workload(one.kind, one.namespace, one.name) for one in whose_return(journal)},
            refused={uid: why for uid, (dummy, why) in self._refused.items()},
            again=frozenset(uid for uid, (when, dummy) in self._refused.items() if now - when >= _EVICT_AGAIN),
            cluster=self._cluster(journal) if chosen or not any(entry.under_way for entry in journal.nodes) else None,
        )

    def everything(self, target: Target) -> Observation:
        """The observation for the beginning or takeover of an upgrade."""
        nodes = {name: self._node(item) for name, item in self._nodes().items()}
        return Observation(
            now=self._client.now(),
            nodes=nodes,
            cluster=self._openshift() if target.openshift else None,
            api_server=self._client.read_version() if target.kubelet else "",
        )

    def nodes(self) -> dict[str, NodeNow]:
        """All Windows nodes, without their pods."""
        return _plain(self._nodes())

    def _nodes(self) -> dict[str, Object]:
        items = self._client.list_windows_nodes()
        return {item["metadata"]["name"]: item for item in items}

    def pods(self, node: str) -> tuple[Object, ...]:
        """All pods of a node."""
        return self._client.list(kinds.POD, field_selector=f"spec.nodeName={node}").items

    def _node(self, item: Object) -> NodeNow:
        pods = self.pods(item["metadata"]["name"])
        found = {read_pod(pod): pod["metadata"].get("labels") or {} for pod in pods}
        keys = {
            (*named, pod.namespace)
            for pod, labels in found.items()
            if pod.volumes and not pod.finished and (named := pod.workload(labels)) is not None
        }
        workloads = [
            Workload(kind, namespace, name, self._workload(kind, namespace, name).ready)
            for kind, name, namespace in sorted(keys)
        ]
        return NodeNow.from_object(item, tuple(found), tuple(workloads))

    def _workload(self, kind: str, namespace: str, name: str) -> WorkloadNow:
        live = self._client.get(kinds.SCALABLE[kind], name, namespace)
        if live is None:
            # Deleted by its owner; none of its pods will start again.
            return WorkloadNow(0, 0)
        spec, status = live.get("spec") or {}, live.get("status") or {}
        replicas = spec.get("replicas")
        conditions = status.get("conditions") or []
        why = next(
            (join_lines(str(one.get("message", ""))) for one in conditions if one["type"] == "ReplicaFailure"), ""
        )
        return WorkloadNow(1 if replicas is None else int(replicas), int(status.get("readyReplicas") or 0), why)

    def _cluster(self, journal: Journal) -> ClusterNow:
        found, wmco, plans = ClusterNow(), "", tuple[PlanNow, ...]()
        if journal.target.openshift or journal.hook == "wmco":
            found = self._openshift()
        if journal.hook == "wmco":
            wmco = self.wmco()
            if not is_at_least(wmco, journal.target.wmco):
                listed = self._client.list(kinds.INSTALL_PLAN, self._operator).items
                plans = tuple(PlanNow.from_object(item) for item in listed)
        return replace(found, wmco=wmco, plans=plans)

    def _openshift(self) -> ClusterNow:
        live = self._client.get(kinds.CLUSTER_VERSION, "version")
        status = (live or {}).get("status") or {}
        history, conditions = status.get("history") or [], status.get("conditions") or []
        complete = str(history[0].get("version", "")) if history and history[0].get("state") == "Completed" else ""
        failing = [
            join_lines(str(one.get("message")))
            for one in conditions
            if (one["type"], one["status"]) == ("Failing", "True")
        ]
        return ClusterNow(openshift=complete, failing=next(iter(failing), ""), is_openshift=live is not None)

    def wmco(self) -> str:
        """The release of WMCO that OLM has installed, empty when there is none."""
        found = []
        for item in self._client.list(kinds.CLUSTER_SERVICE_VERSION, self._operator).items:
            spec, status = item.get("spec") or {}, item.get("status") or {}
            if item["metadata"]["name"].startswith(OPERATOR) and status.get("phase") == "Succeeded":
                found.append(str(spec.get("version", "")))
        return max(found, key=lambda version: parse(version).release, default="")

    def kept_off(self, drivers: Iterable[str], upgrade: str) -> list[str]:
        """DaemonSets of these drivers' node plugins that our taint would keep off a node where they go now."""
        taint = Taint(TAINT, upgrade, "NoSchedule")
        nodes = [ObservedNode.from_object(item) for item in self._nodes().values()]
        names = [DRIVERS[key].name for key in drivers]
        found = []
        for item in self._client.list(kinds.DAEMON_SET).items if names else ():
            observed = ObservedDaemonSet.from_object(item)
            if not any(observed.serves_on_windows(name) for name in names):
                continue
            facts = DaemonSetFacts.from_object(item)
            if any(
                why_not(facts, node) is None and why_not(facts, replace(node, taints=(*node.taints, taint))) is not None
                for node in nodes
            ):
                found.append(f"{observed.namespace}/{observed.name}")
        return found

    def picture(self, claims: Iterable[str] = ()) -> Picture:
        """The volumes of pods on Windows nodes and of these claims, and the nodes' releases."""
        nodes = self.nodes()
        return Picture.from_objects(
            {name: NodeWas(node.kubelet, node.version) for name, node in nodes.items()},
            [pod for name in nodes for pod in self.pods(name)],
            self._client.list(kinds.PERSISTENT_VOLUME_CLAIM).items,
            self._client.list(kinds.PERSISTENT_VOLUME).items,
            claims,
        )


class Worker:
    """Changes. client: checks before each write that the run may still do it. notify: progress callback."""

    def __init__(self, client: Client, watcher: Watcher, notify: Callable[[str], None]) -> None:
        self._client, self._watcher, self._notify = client, watcher, notify

    def do(self, action: Do) -> None:
        """One change; the next observation shows its effect."""
        if action.kind == "evict":
            for pod in action.pods:
                try:
                    why = self._client.evict(pod.name, pod.namespace, pod.uid, dry_run=False, version=pod.version)
                except ClusterError as error:
                    if error.status != 409:
                        raise
                    # It changed since it was observed: the next observation has it, or another pod in its place.
                    continue
                if why:
                    self._watcher.refuse(pod.uid, why)
                else:
                    self._notify(f"{action.node}: {pod.title} is evicted")
            return
        modify(self._client, kinds.NODE, action.node, None, lambda node: _changes(node, action))

    def rehearse(self, node: str, pods: Sequence[PodFacts]) -> list[str]:
        """What would keep these pods now; nothing is evicted."""
        answers = [(pod, self._client.evict(pod.name, pod.namespace, pod.uid, dry_run=True)) for pod in pods]
        return [f"{node}: {pod.title} may not be evicted now: {why}" for pod, why in answers if why]


def _plain(listed: Mapping[str, Object]) -> dict[str, NodeNow]:
    return {name: NodeNow.from_object(item) for name, item in listed.items()}


def _changes(node: Object, action: Do) -> Object:
    """The patch for a Node as it is now, empty when nothing is to be done."""
    journal, spec = action.journal, node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    taints = spec.get("taints") or []
    tainted = any(one["key"] == TAINT for one in taints)
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
        patch.setdefault("spec", {})["taints"] = [one for one in taints if one["key"] != TAINT]
    if journal.hook == "wmco" and labels.get(ALLOW) == "true" and journal.entry(action.node).step == "uncordon":
        patch.setdefault("metadata", {})["labels"] = {ALLOW: None}
    return patch
