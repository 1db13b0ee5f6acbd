# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking for a driver's controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.controllers import installed_as
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client


def controllers(client: Client, driver: Driver, namespaces: Iterable[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The Deployments of a driver's controller and its container in each: those of a name that it is known by come first."""
    for namespace in namespaces:
        found = [
            (item, installed[1])
            for item in client.list(kinds.DEPLOYMENT, namespace).items
            if (installed := installed_as(item)) is not None and installed[0].key == driver.key
        ]
        names = driver.controller.deployments
        yield from sorted(
            found, key=lambda one: names.index(name) if (name := one[0]["metadata"]["name"]) in names else len(names)
        )


def find_controllers(client: Client) -> dict[str, tuple[str, ...]]:
    """Read the Deployments of the catalog's controllers, as "namespace/name" by driver."""
    pairs = (
        (controller[0].key, f"{item['metadata']['namespace']}/{item['metadata']['name']}")
        for item in client.list(kinds.DEPLOYMENT).items
        if (controller := installed_as(item)) is not None
    )
    return {key: tuple(sorted(names)) for key, names in sorted(group_values(pairs).items())}
