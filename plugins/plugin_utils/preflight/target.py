# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What if: the same cluster with other versions, and what stands in the way there. Pure.

Whether workloads will start again is the ordinary evaluation of a snapshot with replaced versions; what is about
the way itself is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..catalog import in_tree, openshift, wmco
from ..catalog.registry import DRIVERS
from ..catalog.target import CurrentReleases, find_impossible_targets
from ..catalog.versions import Version, parse
from ..kube.labels import MANAGER
from ..kube.node import ObservedNode
from .facts.nodes import ObservedCsiNode
from .facts.snapshot import Snapshot
from .findings import create_finding
from .index import Index, version_of
from .verdict import ReportFinding, Target

# The build after it shows who runs the cluster: "v1.33.5-gke.1162000".
_RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Versions:
    """What a target comes to. None stays as it is. line: of OpenShift, as far as it is known."""

    control: Version | None = None
    kubelet: Version | None = None
    operator: Version | None = None
    line: wmco.Line | None = None


def choose_versions(target: Target) -> Versions:
    """Work out what moves: an OpenShift version brings its Kubernetes and its operator, an operator its kubelets."""
    control = parse(target.kubernetes) if target.kubernetes else None
    kubelet, operator, line = control, None, None
    if target.openshift:
        line = wmco.find_line_of_openshift(target.openshift)
        if line is not None:
            control = control or parse(line.kubernetes)
            operator = parse(line.csi_proxy_since or f"{line.wmco}.0")
    if target.wmco:
        operator = parse(target.wmco)
    if operator is not None:
        of_operator = wmco.find_line_of_operator(operator)
        kubelet = parse(of_operator.kubernetes) if of_operator is not None else None
    return Versions(control, kubelet, operator, line)


def simulate(index: Index, target: Target) -> Snapshot:
    """The snapshot as it would be read with those versions, every kubelet of Windows upgraded."""
    snapshot, target_versions = index.snapshot, choose_versions(target)
    cluster = snapshot.cluster
    if target_versions.control is not None and (index.kubernetes is None or target_versions.control > index.kubernetes):
        # Kubelets may come later than their API server, which does not go back for them.
        cluster = replace(cluster, kubernetes=f"v{target_versions.control}{_RELEASE.sub('', cluster.kubernetes)}")
    if target.openshift:
        cluster = replace(cluster, openshift=target.openshift, updating_to="")
    if target_versions.operator is not None:
        cluster = replace(cluster, wmco=str(target_versions.operator))
    if target_versions.kubelet is None:
        return replace(snapshot, cluster=cluster)
    moved = tuple(_list_migrated_plugins(target_versions.kubelet, target_versions.operator))
    by_kubernetes = target.kubernetes and target_versions.operator is None
    kubelet = f"v{target.kubernetes.removeprefix('v')}" if by_kubernetes else f"v{target_versions.kubelet}"
    nodes = tuple(_upgrade_node(node, kubelet, moved) if node.windows else node for node in snapshot.nodes)
    windows = {node.name for node in nodes if node.windows}
    csi_nodes = tuple(
        ObservedCsiNode(csi_node.name, csi_node.drivers, moved) if csi_node.name in windows else csi_node
        for csi_node in snapshot.csi_nodes
    )
    return replace(snapshot, cluster=cluster, nodes=nodes, csi_nodes=csi_nodes)


def _list_migrated_plugins(kubelet: Version, operator: Version | None) -> Iterator[str]:
    """In-tree plugins for which a kubelet of that release, set up by that operator, uses CSI."""
    line = wmco.find_line_of_operator(operator) if operator is not None else None
    kept = line.list_in_tree_plugins(operator) if line is not None and operator is not None else ()
    for plugin in in_tree.PLUGINS:
        if plugin.requires_csi(kubelet) or (plugin.is_migrated_by_default(kubelet) and plugin.plugin not in kept):
            yield plugin.plugin


def _upgrade_node(node: ObservedNode, kubelet: str, moved: tuple[str, ...]) -> ObservedNode:
    """A node after its drain and upgrade: nothing is attached the in-tree way any more."""
    attached = tuple(name for name in node.attached if not any(name.startswith(f"{plugin}/") for plugin in moved))
    return replace(node, kubelet=kubelet, attached=attached)


def evaluate(index: Index, target: Target, demand: Mapping[str, int]) -> tuple[ReportFinding, ...]:
    """What stands in the way. index: of the cluster as it is. demand: where drivers are needed once there."""
    target_versions = choose_versions(target)
    findings = [
        *_check_known(target, target_versions),
        *_check_possible(index, target, target_versions),
        *_check_skew(index, target_versions),
        *_check_operator(index, target, target_versions),
        *_check_migration_path(index, target, demand),
        *_find_plugins_to_remove(index, target),
        *_describe_shipped_drivers(index, target, demand),
    ]
    return tuple(findings)


def _check_known(target: Target, target_versions: Versions) -> Iterator[ReportFinding]:
    operator, first, last = target_versions.operator, wmco.LINES[0], wmco.LINES[-1]
    remedy = "use a release of this collection that supports it"
    if target.openshift and target_versions.line is None:
        message = f"OpenShift {target.openshift} is unknown to this collection"
        evidence = (f"known lines: {first.openshift} to {last.openshift}",)
        yield create_finding("CSI-T02", "Target", message, evidence, f"{remedy}, or set kubernetes")
    if operator is not None and wmco.find_line_of_operator(operator) is None:
        message = f"release {operator} of the Windows Machine Config Operator is unknown to this collection"
        yield create_finding("CSI-T02", "Target", message, (f"known: {first.wmco} to {last.wmco}",), remedy)


def _check_possible(index: Index, target: Target, target_versions: Versions) -> Iterator[ReportFinding]:
    """Targets behind the cluster, or of a platform that it is not; upgrade refuses the same ones."""
    cluster = index.snapshot.cluster
    version_known = "clusterversions" not in index.unread
    current = CurrentReleases(
        kubelets={node.name: node.kubelet for node in index.list_nodes(index.windows)},
        openshift=(cluster.openshift or (None if cluster.updating_to else "")) if version_known else None,
        wmco=str(index.wmco) if index.wmco is not None else None,
    )
    requested = {
        "kubernetes": target.kubernetes,
        "openshift": target.openshift,
        "wmco": str(target_versions.operator or ""),
    }
    evidence = "target: " + ", ".join(f"{key} {release}" for key, release in target.as_dict().items())
    for finding in find_impossible_targets(requested, current):
        yield create_finding(finding.id, finding.object, finding.message, (evidence,), finding.remedy)


def _check_skew(index: Index, target_versions: Versions) -> Iterator[ReportFinding]:
    if target_versions.control is None:
        return
    allowed = in_tree.find_allowed_skew(target_versions.control)
    for node in index.list_nodes(index.windows):
        kubelet = version_of(node.kubelet)
        if kubelet is None or kubelet.minor[0] != target_versions.control.minor[0]:
            continue
        behind = target_versions.control.minor[1] - kubelet.minor[1]
        if behind > allowed:
            evidence = (
                f"Node {node.name} nodeInfo.kubeletVersion: {node.kubelet}",
                f"target API server: {target_versions.control}",
            )
            message = f"kubelet {node.kubelet} is {behind} minor releases behind {target_versions.control}, expected at most {allowed}"
            remedy = "upgrade its kubelet first, in steps"
            yield create_finding("CSI-T01", f"Node {node.name}", message, evidence, remedy)


def _check_operator(index: Index, target: Target, target_versions: Versions) -> Iterator[ReportFinding]:
    current, operator = index.wmco, target_versions.operator
    if operator is None:
        return
    object_name, line = "Windows Machine Config Operator", wmco.find_line_of_operator(operator)
    openshift = target.openshift or index.snapshot.cluster.openshift
    evidence: tuple[str, ...] = (
        f"now: {current or 'not found'}",
        f"target: {operator}",
        f"OpenShift: {openshift or 'not set'}",
    )
    of_cluster = wmco.find_line_of_openshift(openshift) if openshift else None
    if line is not None and of_cluster is not None and of_cluster.wmco != line.wmco:
        message = f"release {operator} is for OpenShift {line.openshift}, and the cluster would be {openshift}"
        yield create_finding(
            "CSI-T06", object_name, message, evidence, f"use release {of_cluster.wmco} of the operator"
        )
    if current is None:
        return
    if operator.release < current.release:
        return
    if leapt := wmco.list_skipped_lines(current, operator):
        message = f"the upgrade from {current} to {operator} skips {', '.join(leapt)}"
        remedy = f"upgrade OpenShift and the operator one minor release at a time, first to release {leapt[0]} of the operator"
        yield create_finding("CSI-T14", object_name, message, evidence, remedy)
    before = wmco.find_line_of_operator(current)
    steps = (before.wmco, line.wmco) if before is not None and line is not None else ()
    if steps in (("7", "8"), ("8", "9")) and wmco.classify_upgrade(current, operator) == "removed":
        message = f"{current} includes csi-proxy and {operator} does not"
        remedy = "upgrade to a release that includes csi-proxy (8.1.0 or later) instead"
        yield create_finding("CSI-T03", object_name, message, evidence, remedy)


def _check_migration_path(index: Index, target: Target, demand: Mapping[str, int]) -> Iterator[ReportFinding]:
    """In-tree volumes on Windows that the platform takes over to CSI by no upgrade."""
    current = version_of(index.snapshot.cluster.openshift)
    first = parse(wmco.NO_PATH_BEFORE)
    if current is None or not target.openshift or not current.minor < first.minor <= parse(target.openshift).minor:
        return
    for plugin in in_tree.PLUGINS:
        if plugin.plugin in wmco.NO_PATH and demand.get(plugin.driver):
            in_tree_volumes = [volume.name for volume in index.snapshot.volumes if volume.source.field == plugin.field]
            if in_tree_volumes:
                evidence = (
                    f"OpenShift: {current}, target: {target.openshift}",
                    f"PersistentVolumes: {', '.join(in_tree_volumes[:3])}",
                )
                message = f"OpenShift {current} has {len(in_tree_volumes)} in-tree volumes of {plugin.plugin}, and no supported upgrade migrates them to CSI"
                remedy = f"before the upgrade, copy their data to a cluster that was installed as {wmco.NO_PATH_BEFORE} or later"
                yield create_finding("CSI-T15", "Target", message, evidence, remedy)


def _find_plugins_to_remove(index: Index, target: Target) -> Iterator[ReportFinding]:
    """Node plugins that must be removed before OpenShift brings its own ones for these drivers."""
    if not target.openshift or parse(target.openshift).minor < parse(openshift.OWN_PLUGINS_FROM).minor:
        return
    for key in openshift.OWN_PLUGINS:
        driver = DRIVERS[key]
        for provider in index.providers.get(driver.name, ()):
            if provider.plugin is None or provider.plugin.of_openshift:
                continue
            message = (
                f"OpenShift {openshift.OWN_PLUGINS_FROM} and later are planned to deploy their own Windows node plugin of "
                f"{driver.title}, a HostProcess container that uses csi-proxy; two node plugins remove each "
                "other's registration"
            )
            is_own = provider.plugin.managed_by == MANAGER
            remove = (
                f"ansible-playbook -i inventory.yml kubewin.csi.remove -e kubewin_drivers={key}"
                if is_own
                else f"kubectl -n {provider.namespace} delete daemonset {provider.name}"
            )
            remedy = (
                f"read the release notes of {target.openshift}; if it deploys the plugin, remove this one right before the "
                f"update ({remove}), and keep csi-proxy"
            )
            evidence = (
                f"DaemonSet {provider.namespace}/{provider.name} serves {driver.name} on Windows",
                f"target: OpenShift {target.openshift}",
            )
            yield create_finding(
                "CSI-T16", f"DaemonSet {provider.namespace}/{provider.name}", message, evidence, remedy
            )


def _describe_shipped_drivers(index: Index, target: Target, demand: Mapping[str, int]) -> Iterator[ReportFinding]:
    """The release, mode and Windows images of each needed driver that the target's OpenShift ships."""
    for key in openshift.DRIVERS if target.openshift and index.snapshot.cluster.openshift else ():
        driver, nodes = DRIVERS[key], demand.get(DRIVERS[key].name, 0)
        shipped = openshift.list_shipped_releases(target.openshift, key)
        if not shipped or not nodes:
            continue
        plugins = [provider.plugin for provider in index.providers.get(driver.name, ()) if provider.plugin is not None]
        current = {"host_process" if plugin.host_process else "csi_proxy" for plugin in plugins}
        rules = driver.list_mode_rules(shipped[-1])
        rule = next((rule for rule in rules if rule.mode in current), rules[0])
        builds = driver.list_builds(shipped[-1], rule)
        without = [node.name for node in index.list_nodes(nodes) if builds is not None and node.build not in builds]
        changes = bool(current) and rule.mode not in current
        message = f"it ships release {shipped[-1]}, on Windows in mode {rule.mode}"
        message += f" instead of {', '.join(current)}" if changes else ""
        message += f", with images for the builds {', '.join(builds)}" if builds else ", with one image for all builds"
        message += f" and none for {', '.join(without[:3])}" if without else ""
        remedy = f"after the update run: ansible-playbook -i inventory.yml kubewin.csi.enable_csi -e kubewin_drivers={key} --check"
        evidence = tuple(
            f"Node {node.name}: Windows build {node.build or 'unknown'}" for node in index.list_nodes(nodes)
        )[:3]
        object_name = f"OpenShift {target.openshift}, driver {driver.name}"
        yield create_finding(
            "CSI-T18", object_name, message, evidence, remedy, "warning" if without or changes else None
        )
