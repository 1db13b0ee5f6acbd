# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the whole cluster: lists that could not be read, and the controllers and objects of drivers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from ..catalog import in_tree
from ..catalog.base import Driver
from ..catalog.versions import parse, parse_image_tag
from ..drivers import ownership, plan_inputs, prerequisites
from .facts.cluster import ObservedController
from .facts.snapshot import Snapshot
from .findings import create_finding, pass_on, report_unread_lists
from .index import BY_NAME, Index
from .nodes import read_running_release
from .verdict import ReportFinding


def build_driver_snapshot(snapshot: Snapshot, driver: Driver) -> plan_inputs.DriverSnapshot:
    """The cluster as a deployment of one driver observes it."""
    live = next((observed_driver for observed_driver in snapshot.drivers if observed_driver.name == driver.name), None)
    states = driver.feature_states.name if driver.feature_states is not None else ""
    keys = ((key, *key.split("/")) for key in snapshot.feature_states)
    return plan_inputs.DriverSnapshot(
        kubernetes=snapshot.cluster.kubernetes,
        nodes=tuple(node for node in snapshot.nodes if node.windows),
        controllers=tuple(
            controller.observed for controller in snapshot.controllers if controller.driver == driver.key
        ),
        daemon_sets=tuple(template.plugin for template in snapshot.templates if template.plugin is not None),
        # Admission is evaluated for the next pods of node plugins, in workloads.py.
        namespaces={},
        csi_driver=None if live is None else {"metadata": {"name": live.name}, "spec": live.spec},
        feature_states={namespace: snapshot.feature_states[key] for key, namespace, name in keys if name == states},
        storage_class=None,
        openshift=snapshot.cluster.openshift,
    )


def evaluate(
    index: Index, demand: Mapping[str, int], moved: frozenset[str]
) -> tuple[tuple[ReportFinding, ...], Mapping[str, tuple[ReportFinding, ...]]]:
    """Findings about the cluster, and by CSI name about what a driver that Windows volumes need has there.

    moved: in-tree plugins that some of these volumes belong to.
    """
    cluster = report_unread_lists(index.snapshot.unread)
    if not index.windows:
        return cluster, {}
    names = [name for name in sorted(demand) if name in BY_NAME]
    return cluster, {name: tuple(_check_driver(index, BY_NAME[name], moved)) for name in names}


# A driver's other half


def _check_driver(index: Index, driver: Driver, moved: frozenset[str]) -> Iterator[ReportFinding]:
    observed = build_driver_snapshot(index.snapshot, driver)
    desired = plan_inputs.DriverRequest()
    controller = index.find_controller(driver)
    providers = index.providers.get(driver.name, ())
    namespace = (
        providers[0].namespace if providers else controller.observed.namespace if controller else driver.namespace
    )
    version = read_running_release(driver, providers[0]) if providers else None
    live = (observed.csi_driver or {}).get("spec") or {}
    attaches = bool(live.get("attachRequired", driver.csi_driver.get("attachRequired", True)))
    for finding in check_controller(index, driver):
        yield finding if attaches else _downgrade(finding)
    if controller is not None and "deployments" not in index.unread:
        # A claim that waits for its volume has these as blockers, by the step that would make it.
        yield from map(_downgrade, find_lacking_sidecars("provisioner", driver, controller, moved))
        if attaches:
            yield from find_lacking_sidecars("attacher", driver, controller, moved)
    of_objects = prerequisites.check_objects(
        driver, desired, observed, version or parse(driver.default_version), namespace
    )
    yield from pass_on(finding for finding in of_objects if finding.id != "CSI-D20" or "csidrivers" not in index.unread)
    if controller is not None and driver.in_tree in moved:
        yield from _check_migration_switches(driver, controller, observed.feature_states)


def _check_migration_switches(
    driver: Driver, controller: ObservedController, maps: Mapping[str, Mapping[str, str] | None]
) -> Iterator[ReportFinding]:
    states, version = driver.feature_states, parse_image_tag(controller.observed.image)
    namespace = controller.observed.namespace
    data = maps.get(namespace)
    if states is None or version is None or data is None:
        return
    for key, fixed in states.migrates_before.items():
        if version.release < parse(fixed).release and data.get(key) != "true":
            state = f"{key} is {data.get(key, 'not set')} in ConfigMap {namespace}/{states.name}"
            message = f"{state}, expected true: before {fixed} it attaches no volume of {driver.in_tree} without it"
            yield create_finding(
                "CSI-C17",
                controller.title,
                message,
                (f"image: {controller.observed.image}",),
                f'set {key} to "true" there',
            )


def check_controller(index: Index, driver: Driver) -> tuple[ReportFinding, ...]:
    """What is wrong with a driver's controller; nothing where it was not read or may be hidden."""
    observed, controller = build_driver_snapshot(index.snapshot, driver), index.find_controller(driver)
    if "deployments" in index.unread or (controller is None and ownership.may_hide_controller(driver, observed)):
        return ()
    observed_controller = controller.observed if controller is not None else None
    lacks = prerequisites.check_controller(driver, plan_inputs.DriverRequest(), observed, observed_controller)
    return tuple(pass_on(lacks))


def _downgrade(finding: ReportFinding) -> ReportFinding:
    """What only keeps new volumes from being made, which no blocker is for those that are there."""
    return replace(finding, severity="warning") if finding.severity == "blocker" else finding


def find_lacking_sidecars(
    part: Literal["provisioner", "attacher"], driver: Driver, controller: ObservedController, moved: frozenset[str]
) -> Iterator[ReportFinding]:
    """That a driver's controller lacks a sidecar, or has it in a release that does not know the plugins in moved."""
    image = controller.find_image(part)
    if image is None:
        evidence = (f"containers: {', '.join(name for name, dummy in controller.images)}",)
        remedy = f"add the external-{part} as in the driver's own manifest for its release"
        if part == "attacher" and not driver.csi_driver.get("attachRequired", True):
            # The driver's own manifest has none.
            remedy = f"recreate CSIDriver {driver.name} with attachRequired: false, as in the driver's own manifest"
        yield create_finding("CSI-C14", controller.title, f"it runs no external-{part}", evidence, remedy)
        return
    plugin = in_tree.find_by_name(driver.in_tree) if driver.in_tree in moved else None
    version = parse_image_tag(image)
    if plugin is None or version is None:
        return
    minimum_release = plugin.provisioner if part == "provisioner" else plugin.attacher
    if version.release < parse(minimum_release).release:
        message = f"its external-{part} {version} does not support {plugin.plugin}, expected {minimum_release} or later"
        yield create_finding(
            "CSI-C17", controller.title, message, (f"image: {image}",), "upgrade the driver's installation"
        )
