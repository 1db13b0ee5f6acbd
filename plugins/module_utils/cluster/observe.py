# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at a cluster before a deployment. Read-only, apart from access reviews, which store nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.kinds import Kind
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import (
    ControllerSeen,
    DaemonSetSeen,
    NodeSeen,
    Snapshot,
    Wanted,
)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing the account must be allowed: verb, kind, and where (None: cluster-wide)."""

    verb: str
    kind: Kind
    namespace: str | None = None
    subresource: str = ""

    def rule(self) -> str:
        """As a rule to add to a role."""
        resource = f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural
        return f'{{apiGroups: ["{self.kind.group}"], resources: ["{resource}"], verbs: ["{self.verb}"]}}'


def snapshot(client: Client, driver: Driver, wanted: Wanted, *, check_access: bool) -> Snapshot:
    """Look at everything a plan is made from. With check_access also at what this account may do.

    A missing permission to read is raised as ClusterError, whose text names the rule to add; missing permissions to
    write end up in the snapshot, all of them at once.
    """
    kubernetes = client.version()
    controllers = tuple(_controllers(client, driver, wanted))
    namespaces = _unique([wanted.namespace, *(seen.namespace for seen in controllers), driver.namespace])
    nodes = client.list(kinds.NODE, label_selector="kubernetes.io/os=windows").items
    storage_class = str(wanted.storage_class.get("name") or driver.storage_class.name)
    home = wanted.namespace or (controllers[0].namespace if controllers else driver.namespace)
    return Snapshot(
        kubernetes=kubernetes,
        nodes=tuple(NodeSeen.from_object(node) for node in nodes),
        controllers=controllers,
        daemon_sets=tuple(DaemonSetSeen.from_object(item) for item in client.list(kinds.DAEMON_SET).items),
        namespaces={name: client.get(kinds.NAMESPACE, name) for name in namespaces},
        csi_driver=client.get(kinds.CSI_DRIVER, driver.name),
        feature_states={home: _feature_states(client, driver, home)},
        storage_class=client.get(kinds.STORAGE_CLASS, storage_class),
        missing_access=tuple(_missing(client, needs(home, wanted))) if check_access else (),
    )


def needs(namespace: str, wanted: Wanted) -> tuple[Need, ...]:
    """What applying and gating need beyond the reads that planning itself makes."""
    applied: list[tuple[Kind, str | None]] = [
        (kinds.SERVICE_ACCOUNT, namespace),
        (kinds.CLUSTER_ROLE, None),
        (kinds.CLUSTER_ROLE_BINDING, None),
        (kinds.ROLE, namespace),
        (kinds.ROLE_BINDING, namespace),
        (kinds.DAEMON_SET, namespace),
        (kinds.NAMESPACE, None),
    ]
    if wanted.storage_class.get("create", True):
        applied.append((kinds.STORAGE_CLASS, None))
    if wanted.create_cluster_objects:
        applied += [(kinds.CSI_DRIVER, None), (kinds.CONFIG_MAP, namespace)]
    found = [Need(verb, kind, where) for kind, where in applied for verb in ("get", "create", "patch")]
    watched: tuple[tuple[Kind, str | None], ...] = (
        (kinds.NODE, None),
        (kinds.CSI_NODE, None),
        (kinds.POD, namespace),
        (kinds.DAEMON_SET, namespace),
    )
    found += [Need(verb, kind, where) for kind, where in watched for verb in ("list", "watch")]
    found.append(Need("list", kinds.EVENT, namespace))
    found.append(Need("get", kinds.POD, namespace, "log"))
    return tuple(found)


def _missing(client: Client, wanted: Iterable[Need]) -> Iterable[str]:
    for need in wanted:
        if not client.allowed(need.verb, need.kind, need.namespace, need.subresource):
            yield need.rule()


def _controllers(client: Client, driver: Driver, wanted: Wanted) -> Iterable[ControllerSeen]:
    where = _unique([wanted.controller_namespace, wanted.namespace, *driver.controller.namespaces])
    for namespace in where:
        for name in driver.controller.deployments:
            found = client.get(kinds.DEPLOYMENT, name, namespace)
            if found is not None:
                yield ControllerSeen.from_object(found, driver.controller.container)


def _feature_states(client: Client, driver: Driver, namespace: str) -> Mapping[str, str] | None:
    if driver.feature_states is None:
        return None
    found: dict[str, Any] | None = client.get(kinds.CONFIG_MAP, driver.feature_states.name, namespace)
    return None if found is None else dict(found.get("data") or {})


def _unique(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))
