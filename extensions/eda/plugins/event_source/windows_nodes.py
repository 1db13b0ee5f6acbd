# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event source for ansible-rulebook: Windows nodes that need enable_csi."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

DOCUMENTATION = r"""
---
short_description: Windows nodes that need kubewin.csi.enable_csi
description:
  - Reads the Windows Nodes, their CSINodes and the pods of the node plugins at an interval.
  - "Sends an event with C(windows_node.name), C(windows_node.reason) and C(windows_node.driver) for each node and driver in need, at each read,
    until the need is over. Use C(throttle) in the rule, so that one need starts one run."
  - C(reason) is C(driver_missing) for a node that is Ready and has not registered the driver, and C(plugin_crash_loops) for a node whose plugin
    pod restarts again and again.
  - A failed read is logged and repeated. Wrong access to the cluster at the first read ends the source.
  - Reads the access to the cluster from C(K8S_AUTH_*), the in-cluster configuration or the kubeconfig. Requires C(kubernetes.core), and
    ansible-core and the Python packages of this collection in the decision environment.
options:
  drivers:
    description: Drivers that every Windows node needs, as a list or divided by commas. Defaults to the only driver whose Linux controller
      the cluster has.
  interval:
    description: Seconds between two reads.
    type: int
    default: 30
  kubeconfig:
    description: Path of a kubeconfig file.
    type: str
  context:
    description: Context of the kubeconfig file.
    type: str
"""

EXAMPLES = r"""
- kubewin.csi.windows_nodes:
    drivers: [vsphere, smb]
    interval: 30
"""

Object = Mapping[str, Any]
LOGGER = logging.getLogger(__name__)
DRIVER_MISSING, CRASH_LOOPS = "driver_missing", "plugin_crash_loops"


def needs(
    nodes: Iterable[Object],
    csi_nodes: Iterable[Object],
    pods: Mapping[str, Collection[Object]],
    names: Mapping[str, str],
) -> Iterator[dict[str, str]]:
    """What each Ready Windows node lacks. pods: of the node plugin, by driver. names: the driver's name in CSINode, by driver."""
    registered = {
        one["metadata"]["name"]: {found["name"] for found in (one.get("spec") or {}).get("drivers") or ()}
        for one in csi_nodes
    }
    for node in nodes:
        name = str(node["metadata"]["name"])
        if node["metadata"].get("deletionTimestamp") or not _ready(node):
            continue
        for driver, pods_of in pods.items():
            if any((pod.get("spec") or {}).get("nodeName") == name and _loops(pod) for pod in pods_of):
                yield {"name": name, "reason": CRASH_LOOPS, "driver": driver}
            elif names[driver] not in registered.get(name, ()):
                yield {"name": name, "reason": DRIVER_MISSING, "driver": driver}


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _loops(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = [((one.get("state") or {}).get("waiting") or {}).get("reason") for one in statuses]
    return not pod["metadata"].get("deletionTimestamp") and "CrashLoopBackOff" in waiting


class Cluster:
    """Reads the cluster with the collection's own client."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        # Loaded here, since ansible-rulebook runs this file without Ansible's loader of collections.
        from ansible.plugins.loader import init_plugin_loader

        init_plugin_loader()
        from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
        from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import as_list
        from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS, refuse_unknown_driver
        from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.installed import (
            choose_driver,
            find_controllers,
        )
        from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
        from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import create_client

        self._kinds = kinds
        access = {name: args[name] for name in ("kubeconfig", "context") if args.get(name)}
        self._client = create_client(partial(get_api_client, **access), 60.0)
        drivers = as_list(args.get("drivers") or "")
        for name in drivers:
            if name not in DRIVERS:
                raise ValueError(refuse_unknown_driver(name))
        drivers = drivers or [choose_driver(find_controllers(self._client), "kubewin_drivers", "controller")]
        self._drivers = {name: DRIVERS[name] for name in drivers}

    def needs(self) -> list[dict[str, str]]:
        """What each Windows node needs now."""
        kinds, client = self._kinds, self._client
        pods = {
            name: client.list(kinds.POD, label_selector=f"app={driver.app_label}").items
            for name, driver in self._drivers.items()
        }
        names = {name: driver.name for name, driver in self._drivers.items()}
        return list(needs(client.list_windows_nodes(), client.list(kinds.CSI_NODE).items, pods, names))


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Entry point of ansible-rulebook."""
    cluster = await asyncio.to_thread(Cluster, args)
    found = await asyncio.to_thread(cluster.needs)
    while True:
        for need in found:
            await queue.put({"windows_node": need})
        await asyncio.sleep(int(args.get("interval") or 30))
        found = await asyncio.to_thread(_patiently, cluster)


def _patiently(cluster: Cluster) -> list[dict[str, str]]:
    """A read that may fail, for example while the API server restarts."""
    try:
        return cluster.needs()
    except Exception as error:
        LOGGER.warning("The cluster cannot be read now, trying again: %s", error)
        return []
