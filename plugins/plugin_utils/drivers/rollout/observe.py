# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A view of a rollout that watches keep current. Talks, and decides nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from ...catalog.base import Driver
from ...kube import kinds
from ...kube.client import Client
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.errors import ClusterError, GoneError, UnreachableError
from ...kube.kinds import Kind
from ...kube.labels import MANAGER
from ...kube.node import ObservedNode
from ...kube.pod import PodFacts
from .scheduling import explain_exclusion
from .snapshot import (
    EventFacts,
    ObservedHost,
    Registration,
    RolloutPicture,
    find_revision_hash,
    hash_template,
)

# Logs explain; a few are enough for a message, and reading them all would cost more than the gate itself.
_LOGS = 10

# The container whose log explains a missing registration.
_REGISTRAR = "node-driver-registrar"
_LISTED_AGAIN = "LISTED_AGAIN"
# Seconds of one watch: a connection that broke without a sign is noticed after it.
_WATCH = 30.0
# Of a planned template that no pod has yet.
_NO_REVISION = "planned"


@dataclass(frozen=True, slots=True)
class RolloutTarget:
    """Which rollout. selector: of the DaemonSet's pods where it is not the driver's label app, as for a DaemonSet that is not ours."""

    driver: Driver
    namespace: str
    daemon_set: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """One kind that is listed, then watched."""

    kind: Kind
    namespace: str | None
    selector: Mapping[str, str] = field(default_factory=dict)


def find_target(client: Client, driver: Driver, namespace: str = "") -> RolloutTarget:
    """The DaemonSet to observe: ours, else another owner's that serves the driver on Windows. namespace: of ours, empty if unknown."""
    name = driver.daemonset
    if namespace:
        return RolloutTarget(driver, namespace, name)
    observed = [ObservedDaemonSet.from_object(item) for item in client.list(kinds.DAEMON_SET).items]
    own_plugin = next(
        (daemon_set for daemon_set in observed if daemon_set.name == name and daemon_set.managed_by == MANAGER), None
    )
    if own_plugin is not None:
        return RolloutTarget(driver, own_plugin.namespace, name)
    other_plugins = [daemon_set for daemon_set in observed if daemon_set.is_node_plugin_of(driver.name)]
    if not other_plugins:
        return RolloutTarget(driver, driver.namespace, name)
    other_plugin = min(other_plugins, key=lambda daemon_set: (daemon_set.name != name, -daemon_set.ready))
    return RolloutTarget(driver, other_plugin.namespace, other_plugin.name, other_plugin.selector)


class RolloutView:
    """The objects of one rollout: load once, then take in changes. A watch that breaks starts again from a new list."""

    def __init__(self, client: Client, target: RolloutTarget, hosts: Iterable[ObservedHost]) -> None:
        self._client = client
        self._target = target
        self._hosts = {host.node: host for host in hosts}
        self._objects: dict[Kind, dict[str, dict[str, Any]]] = {}
        self._versions: dict[Kind, str] = {}
        self._stopped = threading.Event()
        self._changes: queue.Queue[tuple[Kind, str, Any]] = queue.Queue()
        self._providers: tuple[ObservedDaemonSet, ...] = ()
        self._events: tuple[EventFacts, ...] = ()
        self._logs: dict[str, str] = {}

    def load(self) -> None:
        self.read_providers()
        for source in self._list_sources():
            self._objects[source.kind], self._versions[source.kind] = self._list(source)

    def read_providers(self) -> None:
        """Read the other node plugins of the driver, which no watch follows."""
        listed = self._client.list(kinds.DAEMON_SET).items
        target_key = (self._target.namespace, self._target.daemon_set)
        self._providers = tuple(
            daemon_set
            for daemon_set in map(ObservedDaemonSet.from_object, listed)
            if (daemon_set.namespace, daemon_set.name) != target_key
            and daemon_set.is_node_plugin_of(self._target.driver.name)
        )

    def watch(self) -> None:
        """Keep watching in the background; the threads end soon after `stop`, or with the process."""
        for source in self._list_sources():
            arguments = (source, self._versions[source.kind])
            threading.Thread(target=self._follow, args=arguments, daemon=True).start()

    def stop(self) -> None:
        """End the watches, each with its present request."""
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Take in changes, at the latest after that time. An error of a watch is raised here."""
        try:
            self._take(*self._changes.get(timeout=max(0.0, seconds)))
            while True:
                self._take(*self._changes.get_nowait())
        except queue.Empty:
            return

    def explain(self) -> None:
        """Read what explains trouble: warnings in the namespace, and logs of pods that do not work."""
        namespace = self._target.namespace
        listed = self._client.list(kinds.EVENT, namespace, field_selector="type=Warning").items
        self._events = tuple(EventFacts.from_object(event) for event in listed)
        picture = self.picture()
        troubled = [pod for pod in picture.pods if not pod.ready or pod.node not in picture.registrations]
        for pod in troubled[:_LOGS]:
            container = _REGISTRAR if pod.ready else self._target.driver.container
            restarted = any(
                container_facts.restarts for container_facts in pod.containers if container_facts.name == container
            )
            log = self._client.read_log(namespace, pod.name, container, previous=True) if restarted else ""
            self._logs[pod.name] = log or self._client.read_log(namespace, pod.name, container)

    def picture(self, planned: dict[str, Any] | None = None) -> RolloutPicture:
        """The current state, for the evaluation. planned: the DaemonSet as it would be, to evaluate that."""
        daemon_set = planned or self._objects[kinds.DAEMON_SET].get(self._target.daemon_set)
        nodes = [ObservedNode.from_object(node) for node in self._objects[kinds.NODE].values()]
        registrations = {
            name: Registration.from_object(item, self._target.driver.name)
            for name, item in self._objects[kinds.CSI_NODE].items()
        }
        revisions = self._objects[kinds.CONTROLLER_REVISION].values()
        return RolloutPicture(
            now=self._client.now(),
            controller_now=datetime.now(timezone.utc),
            driver=self._target.driver.name,
            daemon_set=None
            if daemon_set is None
            else replace(
                ObservedDaemonSet.from_object(daemon_set),
                revision=find_revision_hash(daemon_set, revisions) or (_NO_REVISION if planned else ""),
                template=hash_template(daemon_set),
            ),
            nodes=nodes,
            registrations={
                name: registration for name, registration in registrations.items() if registration is not None
            },
            pods=[PodFacts.from_object(pod) for pod in self._objects[kinds.POD].values()],
            hosts=self._hosts,
            events=self._events,
            other_providers={node.name: self._list_other_providers(node) for node in nodes} if self._providers else {},
            logs=self._logs,
        )

    def _list_other_providers(self, node: ObservedNode) -> list[str]:
        # One without a Ready pod only claims to provide the driver, and registers nothing anywhere.
        return [
            f"{provider.namespace}/{provider.name}"
            for provider in self._providers
            if provider.ready and explain_exclusion(provider, node) is None
        ]

    def _list_sources(self) -> Sequence[_Source]:
        target = self._target
        pods = {"label_selector": target.selector or f"app={target.driver.app_label}"}
        return (
            _Source(kinds.DAEMON_SET, target.namespace, {"field_selector": f"metadata.name={target.daemon_set}"}),
            _Source(kinds.NODE, None, {"label_selector": kinds.WINDOWS}),
            _Source(kinds.CSI_NODE, None),
            _Source(kinds.POD, target.namespace, pods),
            _Source(kinds.CONTROLLER_REVISION, target.namespace, pods),
        )

    def _list(self, source: _Source) -> tuple[dict[str, dict[str, Any]], str]:
        listed = self._client.list(source.kind, source.namespace, **source.selector)
        return {str(item["metadata"]["name"]): item for item in listed.items}, listed.resource_version

    def _follow(self, source: _Source, version: str) -> None:
        """Watch one kind until `stop`. Runs in a thread of its own and puts everything into the queue."""
        refused = False
        while not self._stopped.is_set():
            try:
                for kind_of_change, item in self._client.watch(
                    source.kind, version, _WATCH, source.namespace, **source.selector
                ):
                    version = str(item["metadata"].get("resourceVersion", version))
                    refused = False
                    if kind_of_change != "BOOKMARK":
                        self._changes.put((source.kind, kind_of_change, item))
            except ClusterError as error:
                # A server that just started refuses for a moment; the list below waits for it, the second refusal counts.
                if not isinstance(error, (GoneError, UnreachableError)) and (refused or error.status not in (401, 403)):
                    self._changes.put((source.kind, "ERROR", error))
                    return
                refused = error.status in (401, 403)
                try:
                    items, version = self._list(source)
                except ClusterError as lost:
                    self._changes.put((source.kind, "ERROR", lost))
                    return
                self._changes.put((source.kind, _LISTED_AGAIN, items))

    def _take(self, kind: Kind, change: str, item: Any) -> None:
        if change == "ERROR":
            raise item
        if change == _LISTED_AGAIN:
            self._objects[kind] = item
        elif change == "DELETED":
            self._objects[kind].pop(item["metadata"]["name"], None)
        else:
            self._objects[kind][item["metadata"]["name"]] = item
