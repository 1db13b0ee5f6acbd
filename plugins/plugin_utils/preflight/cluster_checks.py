# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the whole cluster: the drivers' other halves, StorageClasses, and what OpenShift says of itself. Pure.

Operators' conditions, gates and lists are reported and never written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse, parse_image_tag
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import model, ownership, prerequisites, release
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.cluster import ObservedController
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedTemplate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import BY_NAME, Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import found, passed_on, unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.nodes import read_running_release
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Finding

# Kubernetes 1.30 refused these at admission (https://github.com/kubernetes/kubernetes/issues/124794).
_REFUSED_BY_130 = ("kubernetes.io/azure-disk", "kubernetes.io/vsphere-volume")


def view(snapshot: Snapshot, driver: Driver) -> model.DriverSnapshot:
    """The cluster as a deployment of one driver observes it."""
    live = next((one for one in snapshot.drivers if one.name == driver.name), None)
    states = driver.feature_states
    maps = {
        one.namespace: one.data if one.exists else None
        for one in snapshot.config_maps
        if states is not None and one.name == states.name
    }
    return model.DriverSnapshot(
        kubernetes=snapshot.cluster.kubernetes,
        nodes=tuple(node for node in snapshot.nodes if node.windows),
        controllers=tuple(one.observed for one in snapshot.controllers if one.driver == driver.key),
        daemon_sets=tuple(one.plugin.observed for one in snapshot.templates if one.plugin is not None),
        namespaces={
            one.name: {"metadata": {"name": one.name, "labels": one.labels}, "status": {"phase": one.phase}}
            for one in snapshot.namespaces
        },
        csi_driver=None if live is None else {"metadata": {"name": live.name}, "spec": live.spec},
        feature_states=maps,
        storage_class=None,
        openshift=snapshot.cluster.openshift,
    )


def evaluate(
    index: Index, demand: Mapping[str, int], moved: frozenset[str]
) -> tuple[tuple[Finding, ...], Mapping[str, tuple[Finding, ...]]]:
    """Findings about the cluster, and by CSI name about what a driver that Windows volumes need has there.

    moved: in-tree plugins that some of these volumes belong to.
    """
    cluster = unread(index.snapshot.unread)
    if not index.windows:
        return cluster, {}
    names = [name for name in sorted(demand) if name in BY_NAME]
    cluster += (*_check_classes(index, demand), *_check_openshift(index, demand))
    return cluster, {name: tuple(_check_driver(index, BY_NAME[name], moved)) for name in names}


# A driver's other half


def _check_driver(index: Index, driver: Driver, moved: frozenset[str]) -> Iterator[Finding]:
    snapshot, observed = index.snapshot, view(index.snapshot, driver)
    desired = model.DriverRequest()
    controller = index.controller(driver)
    providers = index.providers.get(driver.name, ())
    namespace = (
        providers[0].namespace if providers else controller.observed.namespace if controller else driver.namespace
    )
    version = read_running_release(driver, providers[0]) if providers else None
    hidden = controller is None and ownership.may_hide_controller(driver, observed)
    if "deployments" not in index.unread and not hidden:
        observed_controller = controller.observed if controller is not None else None
        live = (observed.csi_driver or {}).get("spec") or {}
        attaches = bool(live.get("attachRequired", driver.csi_driver.get("attachRequired", True)))
        for one in passed_on(prerequisites.check_controller(driver, desired, observed, observed_controller)):
            yield one if attaches else _downgrade(one)
        if controller is not None:
            # A claim that waits for its volume has these as blockers, by the step that would make it.
            yield from map(_downgrade, lacking_sidecar("provisioner", driver, controller, moved))
            if attaches:
                yield from lacking_sidecar("attacher", driver, controller, moved)
            yield from _check_skew(driver, controller, providers, observed)
    of_objects = prerequisites.check_objects(
        driver, desired, observed, version or parse(driver.default_version), namespace
    )
    yield from passed_on(one for one in of_objects if one.id != "CSI-D20" or "csidrivers" not in index.unread)
    for provider in providers:
        yield from passed_on(prerequisites.check_namespace(observed, provider.namespace))
        if snapshot.cluster.openshift and not provider.placement.os:
            about = f"DaemonSet {provider.namespace}/{provider.name}"
            message = "its pods do not set their operating system, so security constraints of Linux are applied to them"
            yield found(
                "CSI-C13", about, message, ("spec.template.spec.os: none",), "set spec.template.spec.os.name to windows"
            )


def _downgrade(finding: Finding) -> Finding:
    """What only keeps new volumes from being made, which no blocker is for those that are there."""
    return replace(finding, severity="warning") if finding.severity == "blocker" else finding


def lacking_sidecar(
    part: Literal["provisioner", "attacher"], driver: Driver, controller: ObservedController, moved: frozenset[str]
) -> Iterator[Finding]:
    """That a driver's controller lacks a sidecar, or has it in a release that does not know the plugins in moved.

    Distributions keep the word of part in the sidecar's name.
    """
    about = f"Deployment {controller.observed.namespace}/{controller.observed.name}"
    image = next((image for name, image in controller.images if part in f"{name} {image}"), None)
    if image is None:
        evidence = (f"containers: {', '.join(name for name, dummy in controller.images)}",)
        remedy = f"add the external-{part} as in the driver's own manifest for its release"
        if part == "attacher" and not driver.csi_driver.get("attachRequired", True):
            # The driver's own manifest has none.
            remedy = f"recreate CSIDriver {driver.name} with attachRequired: false, as in the driver's own manifest"
        yield found("CSI-C14", about, f"it runs no external-{part}", evidence, remedy)
        return
    known = in_tree.find_by_name(driver.in_tree) if driver.in_tree in moved else None
    version = parse_image_tag(image)
    if known is None or version is None:
        return
    least = known.provisioner if part == "provisioner" else known.attacher
    if version.release < parse(least).release:
        message = f"its external-{part} {version} does not support {known.plugin}, expected {least} or later"
        yield found("CSI-C17", about, message, (f"image: {image}",), "upgrade the driver's installation")


def _check_skew(
    driver: Driver,
    controller: ObservedController,
    providers: tuple[ObservedTemplate, ...],
    observed: model.DriverSnapshot,
) -> Iterator[Finding]:
    known = release.read_controller_release(driver, controller.observed, observed)
    for provider in providers:
        version = read_running_release(driver, provider)
        if version is None or not release.is_skewed(known, version):
            continue
        about = f"DaemonSet {provider.namespace}/{provider.name}"
        evidence = (f"controller: {known.versions[0]} ({known.source})", f"node plugin: {version}")
        message = f"it runs {driver.title} {version}, expected the release of the controller, {known.versions[0]}"
        yield found(
            "CSI-C15", about, message, evidence, "run both in one minor release; enable_csi.yml follows the controller"
        )


# StorageClasses


def _check_classes(index: Index, demand: Mapping[str, int]) -> Iterator[Finding]:
    classes = sorted(index.snapshot.classes, key=lambda one: one.name)
    for one in classes:
        plugin = in_tree.find_by_name(one.provisioner)
        if plugin is None:
            continue
        evidence: tuple[str, ...] = (f"provisioner: {one.provisioner}",)
        if one.default:
            message = f"it is the default class, and its provisioner is {one.provisioner}"
            remedy = (
                f"make a class of {plugin.driver} the default; keep this one, because expanding old volumes needs it"
            )
            yield found("CSI-C09", f"StorageClass {one.name}", message, evidence, remedy)
        if one.provisioner in _REFUSED_BY_130 and index.kubernetes is not None and index.kubernetes.minor == (1, 30):
            remedy = f"use a class of {plugin.driver} for new claims, or upgrade the API server"
            message = f"API server {index.kubernetes} rejects volumes of this class"
            yield found("CSI-C16", f"StorageClass {one.name}", message, evidence, remedy)
    if "storageclasses" in index.unread:
        return
    for name in sorted(demand):
        driver = BY_NAME.get(name)
        if driver is None or not driver.fstypes:
            continue
        own = [one for one in classes if one.provisioner in (name, driver.in_tree)]
        # What the provisioner makes of a class that names none is its own default, which is ext4 where "" does not do.
        if own and not any(_read_file_system(one.parameters).lower() in driver.fstypes for one in own):
            evidence = tuple(
                f"StorageClass {one.name}: {_read_file_system(one.parameters) or 'no file system named'}" for one in own
            )
            key = next(iter(driver.storage_class.parameters), "csi.storage.k8s.io/fstype")
            message = f"no StorageClass of {name} provisions volumes that Windows mounts"
            yield found("CSI-C10", f"Driver {name}", message, evidence, f"add a class with {key}: {driver.fstypes[0]}")


def _read_file_system(parameters: Mapping[str, str]) -> str:
    return next((value for key, value in parameters.items() if key.lower() in prerequisites.FILE_SYSTEM), "")


# OpenShift


def _check_openshift(index: Index, demand: Mapping[str, int]) -> Iterator[Finding]:
    cluster = index.snapshot.cluster
    if not cluster.openshift:
        return
    evidence: tuple[str, ...]
    if cluster.updating_to:
        evidence = (f"ClusterVersion status.desired.version: {cluster.updating_to}", f"completed: {cluster.openshift}")
        message = f"an update from {cluster.openshift} to {cluster.updating_to} is running"
        yield found("CSI-C02", "ClusterVersion version", message, evidence, "wait for it, then run the report again")
    if cluster.storage_driver == "LegacyDeprecatedInTreeDriver":
        evidence = (f"spec.vsphereStorageDriver: {cluster.storage_driver}",)
        message = "vsphereStorageDriver is LegacyDeprecatedInTreeDriver"
        yield found(
            "CSI-C11", "Storage cluster", message, evidence, "set CSIWithMigrationDriver; it cannot be set back"
        )
    yield from _check_operator_release(index, demand)


def _check_operator_release(index: Index, demand: Mapping[str, int]) -> Iterator[Finding]:
    version = index.wmco
    line = None if version is None else wmco.find_line_of_operator(version)
    if version is None or line is None or line.has_csi_proxy(version):
        return
    with_pipes = [
        name
        for name in sorted(demand)
        if any(one.plugin is not None and one.plugin.gate.pipes for one in index.providers.get(name, ()))
    ]
    serving = all(
        node.name in index.hosts and index.hosts[node.name].facts.serving for node in index.each(index.windows)
    )
    if with_pipes and not serving:
        since = f"; {line.csi_proxy_since} of the same line does" if line.csi_proxy_since else ""
        message = f"the operator's release {version} has no csi-proxy{since}, which {', '.join(with_pipes)} need"
        evidence = (f"Windows Machine Config Operator {version}",)
        remedy = (
            "upgrade the operator within its line first"
            if line.csi_proxy_since
            else "upgrade to 4.12 with operator 7.2 or later"
        )
        yield found("CSI-C12", "Windows Machine Config Operator", message, evidence, remedy)
