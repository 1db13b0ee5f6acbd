# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking for what was applied for a driver and for what uses it, and waiting until its pods are gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from ..base.waiting import wait_until_clear
from ..catalog.base import Driver
from ..catalog.registry import DRIVERS
from ..kube import kinds
from ..kube.client import Client
from ..kube.kinds import Kind
from .uses import (
    VolumeUse,
    find_uses,
    is_served_without_pipes,
    list_csi_proxy_pipes,
    list_pipe_users,
    make_selector,
)

# Seconds between two reads of a DaemonSet that is being deleted. A watch of this one object would need a rule and a recovery of its own.
_LOOK_AGAIN = 0.3
# First what makes pods, last what they stand on.
KINDS: tuple[Kind, ...] = (
    kinds.DAEMON_SET,
    kinds.STORAGE_CLASS,
    kinds.CSI_DRIVER,
    kinds.CONFIG_MAP,
    kinds.ROLE_BINDING,
    kinds.ROLE,
    kinds.CLUSTER_ROLE_BINDING,
    kinds.CLUSTER_ROLE,
    kinds.SERVICE_ACCOUNT,
)


def list_applied_objects(client: Client, driver: Driver) -> list[tuple[Kind, dict[str, Any]]]:
    """Every object that carries a driver's labels, in the order in which they may be deleted."""
    return [(kind, item) for kind in KINDS for item in client.list(kind, label_selector=make_selector(driver)).items]


def outlives_plugin(driver: Driver, kind: Kind, item: dict[str, Any]) -> bool:
    """Whether every installation of a driver relies on an object: its CSIDriver, without which Linux nodes mount nothing, and its feature states."""
    states = driver.feature_states.name if driver.feature_states is not None else ""
    return kind == kinds.CSI_DRIVER or (kind == kinds.CONFIG_MAP and item["metadata"]["name"] == states)


def read_uses(client: Client, driver: Driver) -> tuple[VolumeUse, ...]:
    """Read everything that shows volumes in use on Windows Nodes."""
    return find_uses(driver, client.list_windows_nodes(), client.list(kinds.POD).items, *_list_volumes(client))


def _list_volumes(client: Client) -> Iterator[tuple[dict[str, Any], ...]]:
    for kind in (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME, kinds.VOLUME_ATTACHMENT):
        yield client.list(kind).items


def read_csi_proxy_users(
    client: Client, removed_drivers: Collection[str]
) -> tuple[tuple[str, ...], tuple[tuple[Driver, tuple[VolumeUse, ...]], ...]]:
    """What mounts pipes of csi-proxy, and volumes in use that were mounted through it. removed_drivers: as of list_pipe_users."""
    daemon_sets, pods = client.list(kinds.DAEMON_SET).items, client.list(kinds.POD).items
    nodes, volumes = client.list_windows_nodes(), tuple(_list_volumes(client))
    proxied = [driver for driver in DRIVERS.values() if not is_served_without_pipes(driver, daemon_sets)]
    uses = [(driver, find_uses(driver, nodes, pods, *volumes)) for driver in proxied]
    return list_pipe_users(daemon_sets, pods, removed_drivers), tuple(
        (driver, signs) for driver, signs in uses if signs
    )


def list_drivers_with_pipes(client: Client) -> list[str]:
    """The keys of drivers whose node plugin of this collection mounts pipes of csi-proxy."""
    return [
        key
        for key, driver in DRIVERS.items()
        if any(
            list_csi_proxy_pipes(daemon_set["spec"]["template"]["spec"])
            for daemon_set in client.list(kinds.DAEMON_SET, label_selector=make_selector(driver)).items
        )
    ]


def wait_until_gone(client: Client, daemon_set: dict[str, Any], deadline: float, notify: Callable[[str], None]) -> bool:
    """Whether a DaemonSet, and so its pods, is gone by the deadline: it is deleted after them. notify: progress callback."""
    metadata = daemon_set["metadata"]
    name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]

    def find_pods() -> list[str]:
        live = client.get(kinds.DAEMON_SET, name, namespace)
        if live is None or live["metadata"]["uid"] != uid:
            return []
        pods = int((live.get("status") or {}).get("currentNumberScheduled") or 0)
        return [f"waiting until the pods of DaemonSet {namespace}/{name} end, {pods} left"]

    return not wait_until_clear(find_pods, deadline - time.monotonic(), notify, _LOOK_AGAIN)
