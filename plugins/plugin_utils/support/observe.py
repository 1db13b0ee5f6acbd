# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what support needs of a cluster, and continues past what may not be read. I/O only, no decisions."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.redaction.redactor import Redactor
from ..base.text import join_lines
from ..catalog.base import Driver
from ..drivers.installed import find_namespace
from ..drivers.observe import find_missing_deploy_rules
from ..kube import kinds
from ..kube.client import Client
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.errors import ClusterError
from ..kube.kinds import Kind
from ..kube.permissions import find_missing_rules
from ..kube.pod import PodFacts, find_controller
from ..kube.times import read_event_time
from ..preflight.verdict import Report
from .archive import Missing, Part
from .workload import WorkloadFacts, WorkloadPod, name_workload, select_causes

# Lines of a container's log, and most bytes of it.
LINES = 2000
BYTES = 2 << 20
# Events that are kept, the newest.
_EVENTS = 2000

Object = Mapping[str, Any]


class Gathered:
    """What was read so far. redactor: every text goes through it before it is kept."""

    def __init__(self, redactor: Redactor) -> None:
        self.parts: list[Part] = []
        self.missing: list[Missing] = []
        self._redactor = redactor

    def add_objects(self, name: str, kind: Kind, objects: Sequence[Object]) -> None:
        """A file with objects of the API, whose names may be shown in all that is read later."""
        text = json.dumps(self._redactor.redact_objects(kind.kind, objects), indent=1, sort_keys=True)
        self.parts.append(Part(f"cluster/{name}.json", text))

    def add_log(self, path: str, raw: bytes) -> None:
        self.parts.append(Part(path, self._redactor.redact_log(raw)))

    def add_missing(self, name: str, error: ClusterError) -> None:
        gap = Missing(name, self._redactor.redact_message(str(error)))
        if gap not in self.missing:
            self.missing.append(gap)


def gather(client: Client, into: Gathered, notify: Callable[[str], None] = lambda text: None) -> None:
    """Read the cluster. Raises ClusterError where it cannot be reached at all."""
    notify("reading the objects of the cluster")
    into.parts.append(Part("cluster/version.json", json.dumps([{"gitVersion": client.read_version()}], indent=1)))
    nodes = _keep_objects(client, into, kinds.NODE, "nodes", label_selector=kinds.WINDOWS)
    windows = {node["metadata"]["name"] for node in nodes}
    for kind in (kinds.CSI_NODE, kinds.CSI_DRIVER, kinds.VOLUME_ATTACHMENT, kinds.STORAGE_CLASS):
        _keep_objects(client, into, kind, kind.plural, keep=functools.partial(_is_about, kind=kind, windows=windows))
    sets = _keep_objects(
        client, into, kinds.DAEMON_SET, "daemonsets", keep=lambda live: ObservedDaemonSet.from_object(live).is_plugin
    )
    owners = {(live["metadata"]["namespace"], live["metadata"]["name"]) for live in sets}
    pods = _keep_objects(
        client,
        into,
        kinds.POD,
        "pods",
        keep=lambda pod: _is_controlled_by(pod, owners) and pod["spec"].get("nodeName") in windows,
    )
    _keep_events(client, into, windows, {pod["metadata"]["name"] for pod in pods})
    containers = list(_list_containers(pods))
    for number, (namespace, pod, container) in enumerate(containers, 1):
        notify(f"reading logs, container {number} of {len(containers)}")
        _keep_logs(client, into, namespace, pod, container)


def list_missing_rules(client: Client, drivers: Iterable[Driver]) -> dict[str, list[str]]:
    """The rules of shipped ClusterRoles that this account lacks for the playbooks with these drivers, by role. Raises ClusterError."""
    missing = find_missing_rules(client, [("kubewin-preflight", None), ("kubewin-csi", None)])
    for driver in drivers:
        missing |= find_missing_deploy_rules(client, driver, find_namespace(client, driver))
    return {role: [need.rule() for need in needs] for (role, _namespace), needs in missing.items()}


def read_workload(client: Client, name: str, report: Report) -> WorkloadFacts:
    """A workload with its pods and their last warnings. name: namespace/name of it or of a pod."""
    workloads = {verdict.workload.partition(" ")[2]: verdict for verdict in report.workloads}
    verdict = workloads.get(name_workload(name, workloads))
    namespace = name.partition("/")[0]
    warnings: dict[str, str] = {}
    for event in sorted(_list_events(client, "type=Warning", namespace), key=_order_warning):
        text = f"{event.get('reason')}: {join_lines(str(event.get('message') or ''))}"
        warnings[str((event.get("involvedObject") or {}).get("name"))] = text
    pods = []
    for pod in client.list(kinds.POD, namespace).items:
        pod_name = f"{namespace}/{pod['metadata']['name']}"
        if name in (pod_name, name_workload(pod_name, workloads)):
            facts, node = PodFacts.from_object(pod), pod["spec"].get("nodeName") or ""
            runs = facts.ready or facts.phase == "Succeeded"
            pods.append(WorkloadPod(pod_name, node, runs, warnings.get(pod["metadata"]["name"], "")))
    nodes = {pod.node for pod in pods if pod.node}
    return WorkloadFacts(name, verdict, select_causes(verdict, report.findings, nodes) if verdict else [], pods)


def _order_warning(event: Object) -> tuple[bool, float]:
    """The kubelet repeats that a mount timed out; what other events say is the reason."""
    return "timed out waiting for the condition" not in str(event.get("message")), read_event_time(event)


def list_failed_mounts(client: Client) -> list[tuple[str, str, str]]:
    """Events of failed mounts as (object, message, node). Raises ClusterError."""
    mounts = []
    for event in _list_events(client, "reason=FailedMount"):
        involved = event.get("involvedObject") or {}
        namespace = f"{involved['namespace']}/" if involved.get("namespace") else ""
        name = f"{involved.get('kind')} {namespace}{involved.get('name')}"
        node = (event.get("source") or {}).get("host") or event.get("reportingInstance") or ""
        mounts.append((name, join_lines(str(event.get("message") or "")), str(node)))
    return mounts


def lacks_windows_nodes(client: Client) -> bool:
    """Whether the cluster has no Windows Node; false where this account may not list them, which is a missing right."""
    try:
        return not client.list_windows_nodes()
    except ClusterError as error:
        if error.status != 403:
            raise
        return False


def _list_events(client: Client, selector: str, namespace: str | None = None) -> Sequence[Object]:
    """Events, none where this account may not list them."""
    try:
        return client.list(kinds.EVENT, namespace, field_selector=selector).items
    except ClusterError as error:
        if error.status != 403:
            raise
        return ()


def _keep_objects(
    client: Client, into: Gathered, kind: Kind, name: str, *, label_selector: str | None = None,
    keep: Callable[[Object], bool] = lambda _live: True, order: Callable[[Object], float] | None = None,
) -> list[Object]:  # fmt: skip
    """Keep the objects of a kind, in an order only the last ones."""
    try:
        objects = [live for live in client.list(kind, label_selector=label_selector).items if keep(live)]
    except ClusterError as error:
        if error.status not in (403, 404):
            raise
        into.add_missing(f"cluster/{name}.json", error)
        return []
    into.add_objects(name, kind, objects if order is None else sorted(objects, key=order)[-_EVENTS:])
    return list(objects)


def _is_about(live: Object, kind: Kind, windows: set[str]) -> bool:
    """Whether an object has to do with Windows nodes, where it says with which it has."""
    if kind is kinds.CSI_NODE:
        return live["metadata"]["name"] in windows
    return kind is not kinds.VOLUME_ATTACHMENT or live["spec"].get("nodeName") in windows


def _is_controlled_by(pod: Object, owners: set[tuple[str, str]]) -> bool:
    kind, name = find_controller(pod["metadata"])
    return kind == "DaemonSet" and (pod["metadata"]["namespace"], name) in owners


def _keep_events(client: Client, into: Gathered, windows: set[str], pods: set[str]) -> None:
    """Events of Windows nodes and plugin pods, and of volumes anywhere."""

    def is_relevant(event: Object) -> bool:
        involved = event.get("involvedObject") or {}
        host = (event.get("source") or {}).get("host") or event.get("reportingInstance")
        storage = ("PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment", "CSINode", "StorageClass")
        return involved.get("name") in windows | pods or host in windows or involved.get("kind") in storage

    _keep_objects(client, into, kinds.EVENT, "events", keep=is_relevant, order=read_event_time)


def _list_containers(pods: Sequence[Object]) -> Iterator[tuple[str, str, str]]:
    for pod in pods:
        spec, metadata = pod["spec"], pod["metadata"]
        for part in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            yield metadata["namespace"], metadata["name"], part["name"]


def _keep_logs(client: Client, into: Gathered, namespace: str, pod: str, container: str) -> None:
    for previous in (False, True):
        path = f"logs/{namespace}/{pod}/{container}{'.previous' if previous else ''}.log"
        try:
            raw = client.read_log_bytes(namespace, pod, container, tail=LINES, most=BYTES, previous=previous)
        except ClusterError as error:
            # Most containers have not been restarted.
            if not (previous and error.status in (400, 404)):
                into.add_missing(f"log of {namespace}/{pod} {container}", error)
            continue
        into.add_log(path, raw)
