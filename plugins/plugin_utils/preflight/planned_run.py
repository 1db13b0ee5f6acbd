# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that deploys drivers would make of a cluster, and what of that has to stop it. Pure.

The cluster is evaluated twice from one snapshot: as it is, and as it would be after the run. What is
wrong today because csi-proxy or a driver is not there yet is wrong no more in the second, and is why one runs it. What is
wrong in both is not caused by the run and is only reported. What stops it is what it would break, and what is wrong with the
planned drivers' other halves, since without those none of their volumes works whatever is deployed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..catalog.registry import DRIVERS
from ..drivers.rollout.scheduling import explain_exclusion
from ..drivers.rollout.snapshot import ObservedHost
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.labels import SERVING_LABEL, SERVING_VALUE
from ..kube.pod import PodFacts
from .facts.cluster import ObservedController, ObservedDriver
from .facts.nodes import DriverEntry, ObservedCsiNode
from .facts.snapshot import Snapshot
from .facts.storage import ObservedClass
from .facts.workloads import ObservedPod, ObservedTemplate
from .index import Index
from .verdict import SEVERITIES, Overall, Report, ReportFinding

# What deploying itself needs is decided by each driver's plan, which knows what the user allowed.
_OF_THE_PLAN = "CSI-D"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What is about to be done.

    drivers: keys of the catalog. objects: what would be applied, as the API takes it. nodes: Windows nodes on which csi-proxy
    would be proven.
    """

    drivers: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...]
    nodes: frozenset[str] = frozenset()


def simulate(snapshot: Snapshot, run: PlannedRun) -> Snapshot:
    """The snapshot as it would be taken after the run, all of it having worked."""
    label = {SERVING_LABEL: SERVING_VALUE}
    nodes = tuple(
        replace(node, labels={**node.labels, **label}) if node.name in run.nodes else node for node in snapshot.nodes
    )
    templates = (ObservedTemplate.from_object("DaemonSet", item) for item in _select_kind(run, "DaemonSet"))
    applied = {template.key: template for template in templates}
    unmanaged = (pod for pod in snapshot.pods if pod.owner.replace("/", f" {pod.namespace}/", 1) not in applied)
    # What waits now may start after the run.
    pods = [replace(pod, waits_since="") if pod.waits else pod for pod in unmanaged]
    index = Index(replace(snapshot, nodes=nodes))
    ids: dict[str, dict[str, str]] = {}
    for template in applied.values():
        plugin = template.plugin
        if plugin is None:
            continue
        for node in index.list_nodes(index.windows):
            if explain_exclusion(plugin, node) is None:
                pods.append(_build_pod(template, plugin, node.name))
                brought = [DRIVERS[key].name for key in run.drivers if plugin.is_node_plugin_of(DRIVERS[key].name)]
                ids.setdefault(node.name, {}).update(dict.fromkeys(brought, node.name))
    csi_nodes = {csi_node.name: csi_node for csi_node in snapshot.csi_nodes}
    csi_nodes |= {
        name: _register(csi_nodes.get(name, ObservedCsiNode(name)), node_ids) for name, node_ids in ids.items()
    }
    drivers = {driver.name: driver for driver in map(ObservedDriver.from_object, _select_kind(run, "CSIDriver"))}
    classes = {
        storage_class.name: storage_class
        for storage_class in map(ObservedClass.from_object, _select_kind(run, "StorageClass"))
    }
    hosts = {host.node: host for host in snapshot.hosts}
    accounts = (item["metadata"] for item in _select_kind(run, "ServiceAccount"))
    return replace(
        snapshot,
        nodes=tuple(replace(node, node_ids={**ids.get(node.name, {}), **node.node_ids}) for node in nodes),
        templates=(*(template for template in snapshot.templates if template.key not in applied), *applied.values()),
        pods=tuple(pods),
        csi_nodes=tuple(csi_nodes.values()),
        drivers=tuple((drivers | {driver.name: driver for driver in snapshot.drivers}).values()),
        classes=tuple((classes | {storage_class.name: storage_class for storage_class in snapshot.classes}).values()),
        service_accounts=(
            *snapshot.service_accounts,
            *(f"{metadata['namespace']}/{metadata['name']}" for metadata in accounts),
        ),
        hosts=tuple(
            (hosts | {name: _build_serving_host(snapshot, name, hosts.get(name)) for name in run.nodes}).values()
        ),
    )


@dataclass(frozen=True)
class PlannedRunReport(Report):
    """The findings about a run, of which the worst decides whether it may begin: the workloads may be lost without it too."""

    @property
    def verdict(self) -> Overall:
        """Blocked by any blocker; unknown while anything is in doubt; ready otherwise."""
        if any(finding.severity == "blocker" for finding in self.findings):
            return "blocked"
        return "unknown" if any(finding.doubt for finding in self.findings) else "ready"


def report_run(
    current_report: Report, later_report: Report, run: PlannedRun, controllers: Iterable[ObservedController]
) -> PlannedRunReport:
    """The report of the cluster as it would be, with those findings alone that are about the run."""
    worst: dict[str, int] = {}
    for finding in current_report.findings:
        worst[finding.object] = min(worst.get(finding.object, len(SEVERITIES)), SEVERITIES.index(finding.severity))
    run_objects = frozenset(_list_run_objects(run, controllers))
    findings = tuple(
        finding
        for finding in later_report.findings
        if not finding.id.startswith(_OF_THE_PLAN)
        and (finding.object in run_objects or not _was_before(finding, worst))
    )
    parts = {field.name: getattr(later_report, field.name) for field in fields(later_report)}
    return PlannedRunReport(**{**parts, "findings": findings})


def _was_before(finding: ReportFinding, worst: Mapping[str, int]) -> bool:
    """Whether something at least as bad was the matter with this object before; a driver that is nowhere is on no node."""
    object_name, comma, driver = finding.object.partition(", driver ")
    objects = (finding.object, f"Driver {driver}") if comma else (object_name,)
    return min(worst.get(name, len(SEVERITIES)) for name in objects) <= SEVERITIES.index(finding.severity)


def _list_run_objects(run: PlannedRun, controllers: Iterable[ObservedController]) -> Iterator[str]:
    """What findings call the objects of the planned drivers that belong to the cluster, and not to a node."""
    yield from (f"{kind} {DRIVERS[key].name}" for key in run.drivers for kind in ("Driver", "CSIDriver"))
    yield from (controller.title for controller in controllers if controller.driver in run.drivers)


def _select_kind(run: PlannedRun, kind: str) -> Iterator[Mapping[str, Any]]:
    return (item for item in run.objects if item["kind"] == kind)


def _register(csi_node: ObservedCsiNode, ids: Mapping[str, str]) -> ObservedCsiNode:
    new = tuple(DriverEntry(driver, node_id) for driver, node_id in ids.items() if csi_node.find_entry(driver) is None)
    return replace(csi_node, drivers=csi_node.drivers + new)


def _build_pod(template: ObservedTemplate, plugin: ObservedDaemonSet, node: str) -> ObservedPod:
    name = f"{template.name}-{node}"
    return ObservedPod(
        namespace=template.namespace,
        name=name,
        node=node,
        owner=f"DaemonSet/{template.name}",
        host_process=plugin.host_process,
        plugin=PodFacts(name, node, ready=True),
    )


def _build_serving_host(snapshot: Snapshot, node: str, observed: ObservedHost | None) -> ObservedHost:
    """A host whose csi-proxy serves, in a release that the run accepts; none of those is too old for anything here."""
    return ObservedHost(
        node=node,
        observed_at=snapshot.hosts_at or snapshot.taken_at,
        serving=True,
        release="",
        state="RUNNING",
        reason="",
        pipes=None,
        boot_time=None,
        findings=observed.findings if observed else (),
    )
