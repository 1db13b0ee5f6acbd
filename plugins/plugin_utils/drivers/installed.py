# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drivers a cluster has: their controllers, and their node plugins for Windows nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..base.grouped import group_values
from ..catalog.base import Driver
from ..catalog.registry import DRIVERS
from ..kube import kinds
from ..kube.client import Client
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.errors import ClusterError
from ..kube.labels import MANAGER
from ..kube.pod import list_images

_CONTROLLERS = {name: driver for driver in DRIVERS.values() for name in driver.controller.deployments}


def _shorten_repository(image: str) -> str:
    """What a mirror keeps of an image's name: its last part, of "driver" the last two."""
    parts = image.partition("@")[0].split("/")
    last = parts[-1].partition(":")[0]
    return f"{parts[-2]}/{last}" if last == "driver" and len(parts) > 1 else last


_BY_IMAGE = {
    _shorten_repository(release.images["driver"]): driver for driver in DRIVERS.values() for release in driver.releases
}


def identify_controller(deployment: Mapping[str, Any]) -> tuple[Driver, str] | None:
    """The driver whose controller a Deployment is, and its container: by its name, else by its image beside a provisioner."""
    driver = _CONTROLLERS.get(str(deployment["metadata"]["name"]))
    if driver is not None:
        return driver, driver.controller.container
    images = list_images(deployment["spec"]["template"]["spec"])
    if not any("provisioner" in f"{name} {image}" for name, image in images):
        return None
    return next(
        ((_BY_IMAGE[key], name) for name, image in images if (key := _shorten_repository(image)) in _BY_IMAGE), None
    )


def choose_driver(installed: Mapping[str, Sequence[str]], option: str, part: str) -> str:
    """Return the key of the only installed driver. ClusterError driver_not_chosen if there is none, or a choice.

    installed: by driver, the objects that show it. option: the input that names a driver. part: of a driver, as text.
    """
    if len(installed) == 1:
        return next(iter(installed))
    if not installed:
        raise ClusterError(
            f"{option} is not set: the cluster has no {part} of a known driver, expected one. Install the driver first, or "
            f"set {option} if the platform hides its controller. Known drivers: {', '.join(sorted(DRIVERS))}.",
            "driver_not_chosen",
        )
    listed = "; ".join(f"{key} ({', '.join(names)})" for key, names in installed.items())
    raise ClusterError(
        f"{option} is not set: the cluster has the {part} of {len(installed)} drivers, expected one: {listed}. Set {option} "
        "to what this run is for.",
        "driver_not_chosen",
    )


def list_controllers(client: Client, driver: Driver, namespace: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """List the Deployments of a driver's controller with its container in each; one with a name of upstream's comes first.

    Those in the given namespace and upstream's, else those of the whole cluster.
    """
    names = driver.controller.deployments
    namespaces = list(dict.fromkeys(filter(None, (namespace, *driver.controller.namespaces))))
    any_controller = False
    for place in (*namespaces, None):
        if place is None and any_controller:
            return
        controllers = [
            (item, installed[1])
            for item in client.list(kinds.DEPLOYMENT, place).items
            if (installed := identify_controller(item)) is not None and installed[0].key == driver.key
        ]
        any_controller = any_controller or bool(controllers)
        yield from sorted(
            controllers,
            key=lambda pair: names.index(name) if (name := pair[0]["metadata"]["name"]) in names else len(names),
        )


def find_controllers(client: Client) -> dict[str, tuple[str, ...]]:
    """Read the Deployments of the catalog's controllers, as "Deployment namespace/name" by driver."""
    pairs = (
        (controller[0].key, f"Deployment {item['metadata']['namespace']}/{item['metadata']['name']}")
        for item in client.list(kinds.DEPLOYMENT).items
        if (controller := identify_controller(item)) is not None
    )
    return {key: tuple(sorted(names)) for key, names in sorted(group_values(pairs).items())}


def find_node_plugins(client: Client, *, own_only: bool = False) -> dict[str, tuple[str, ...]]:
    """Read the DaemonSets that provide the catalog's drivers on Windows nodes, as "DaemonSet namespace/name" by driver.

    own_only: only those of this collection.
    """
    observed = [ObservedDaemonSet.from_object(item) for item in client.list(kinds.DAEMON_SET).items]
    plugins = {
        key: tuple(
            f"DaemonSet {daemon_set.namespace}/{daemon_set.name}"
            for daemon_set in observed
            if daemon_set.is_node_plugin_of(driver.name)
            and not daemon_set.deleting
            and (not own_only or daemon_set.managed_by == MANAGER)
        )
        for key, driver in DRIVERS.items()
    }
    return {key: names for key, names in plugins.items() if names}


def find_namespace(client: Client, driver: Driver) -> str:
    """The namespace of a driver: of this collection's node plugin, else of the controller. Upstream's without both, or if they may not be read."""
    try:
        observed = map(ObservedDaemonSet.from_object, client.list(kinds.DAEMON_SET).items)
        own = (
            item.namespace for item in observed if item.managed_by == MANAGER and item.is_node_plugin_of(driver.name)
        )
        controllers = (str(item["metadata"]["namespace"]) for item, _container in list_controllers(client, driver))
        return next(chain(own, controllers), driver.namespace)
    except ClusterError as error:
        if error.status != 403:
            raise
        return driver.namespace
