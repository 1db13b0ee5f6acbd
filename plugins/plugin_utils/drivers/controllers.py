# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Deployment is a driver's controller. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError

_CONTROLLERS = {name: driver for driver in DRIVERS.values() for name in driver.controller.deployments}


def list_images(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """By container, the images of a core/v1 PodSpec."""
    return tuple(
        (str(container.get("name", "")), str(container.get("image", ""))) for container in spec.get("containers") or ()
    )


def _shorten_repository(image: str) -> str:
    """What a mirror keeps of an image's name: its last part, of "driver" the last two."""
    parts = image.partition("@")[0].split("/")
    last = parts[-1].partition(":")[0]
    return f"{parts[-2]}/{last}" if last == "driver" and len(parts) > 1 else last


_BY_IMAGE = {
    _shorten_repository(one.images["driver"]): driver for driver in DRIVERS.values() for one in driver.releases
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
