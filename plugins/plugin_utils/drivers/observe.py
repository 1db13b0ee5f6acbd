# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at a cluster before a deployment. Read-only, apart from access reviews, which store nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..base.stored import check_version
from ..catalog.base import Driver
from ..catalog.registry import DRIVERS
from ..catalog.versions import parse_image_tag
from ..kube import kinds
from ..kube.access import Need, list_rules
from ..kube.client import Client
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.errors import ClusterError
from ..kube.labels import MANAGED_BY, MANAGER
from ..kube.node import ObservedNode
from ..kube.permissions import Binding, find_missing_rules, list_bind_commands
from .installed import list_controllers
from .plan import choose_namespace
from .plan_inputs import RECORD_SCHEMA, DriverController, DriverRequest, DriverSnapshot, name_record


def read_snapshot(client: Client, driver: Driver, desired: DriverRequest) -> DriverSnapshot:
    """Read everything a plan is made from, with the permissions of this account.

    A missing permission to read is raised as ClusterError, whose text names the rule to add; missing permissions to
    write end up in the snapshot, all of them at once.
    """
    kubernetes = client.read_version()
    installed = tuple(
        DriverController.from_object(item, name)
        for item, name in list_controllers(client, driver, desired.namespace or "")
    )
    namespaces = [desired.namespace, *(controller.namespace for controller in installed), driver.namespace]
    nodes = client.list_windows_nodes()
    observed = tuple(ObservedNode.from_object(node) for node in nodes)
    storage_class = str(desired.storage_class.get("name") or driver.storage_class.name)
    namespace = choose_namespace(driver, desired, installed)
    openshift = _read_openshift_release(client, installed, observed)
    live = {name: client.get(kinds.NAMESPACE, name) for name in dict.fromkeys(filter(None, namespaces))}
    listed = client.list(kinds.DAEMON_SET).items
    daemon_sets = tuple(map(ObservedDaemonSet.from_object, listed))
    claimed = any(
        daemon_set.managed_by != MANAGER and not daemon_set.ready and daemon_set.is_node_plugin_of(driver.name)
        for daemon_set in daemon_sets
    )

    missing = find_missing_deploy_rules(client, driver, namespace, cluster_objects=desired.create_cluster_objects)
    lacking = [need for needs in missing.values() for need in needs]
    creation = Need("create", "", "namespaces", None, namespace)
    if live.get(namespace) is None and not client.is_allowed(creation):
        lacking.append(creation)
    return DriverSnapshot(
        kubernetes=kubernetes,
        nodes=observed,
        controllers=installed,
        daemon_sets=daemon_sets,
        namespaces=live,
        csi_driver=client.get(kinds.CSI_DRIVER, driver.name),
        feature_states={namespace: _read_feature_states(client, driver, namespace)},
        storage_class=client.get(kinds.STORAGE_CLASS, storage_class),
        openshift=openshift,
        privileged=_may_use_privileged(client, namespace, driver.service_account)
        if openshift or any(node.of_operator for node in observed)
        else None,
        replacing=read_begun_handover(client, driver, namespace).get("replaced", ""),
        registered=_list_registered_nodes(client, driver, observed) if claimed else (),
        missing_access=list_rules(lacking),
        access_commands=list_bind_commands(missing, client.read_username()) if missing else (),
    )


def find_missing_deploy_rules(
    client: Client, driver: Driver, namespace: str, *, cluster_objects: bool = False
) -> dict[Binding, list[Need]]:
    """What this account lacks of the ClusterRoles of enable_csi. cluster_objects: whether the run creates the CSIDriver."""
    bindings: list[Binding] = [
        ("kubewin-csi", None),
        (f"kubewin-csi-{driver.key.replace('_', '-')}", None),
        ("kubewin-csi-deploy", namespace),
        *([("kubewin-csi-cluster-objects", None)] if cluster_objects else []),
    ]
    others = [other for other in DRIVERS.values() if other.key != driver.key]
    return find_missing_rules(
        client, bindings, {name for other in others for name in (other.daemonset, other.service_account, other.name)}
    )


def _read_feature_states(client: Client, driver: Driver, namespace: str) -> Mapping[str, str] | None:
    if driver.feature_states is None:
        return None
    config_map: dict[str, Any] | None = client.get(kinds.CONFIG_MAP, driver.feature_states.name, namespace)
    return None if config_map is None else dict(config_map.get("data") or {})


def _list_registered_nodes(client: Client, driver: Driver, nodes: Iterable[ObservedNode]) -> tuple[str, ...]:
    """The Windows nodes whose kubelet has registered the driver."""
    windows = {node.name for node in nodes}
    return tuple(
        item["metadata"]["name"]
        for item in client.list(kinds.CSI_NODE).items
        if item["metadata"]["name"] in windows
        and any(entry.get("name") == driver.name for entry in (item.get("spec") or {}).get("drivers") or ())
    )


def _read_openshift_release(
    client: Client, controllers: Iterable[DriverController], nodes: Iterable[ObservedNode]
) -> str:
    """The version of OpenShift, read only if the cluster resembles OpenShift: other accounts may not read it."""
    undetermined = any(
        controller.namespace.startswith("openshift-") or parse_image_tag(controller.image) is None
        for controller in controllers
    )
    if not undetermined and not any(node.of_operator for node in nodes):
        return ""
    cluster_version = client.get(kinds.CLUSTER_VERSION, "version")
    status = (cluster_version or {}).get("status") or {}
    done = [str(update["version"]) for update in status.get("history") or [] if update.get("state") == "Completed"]
    # Newest first; while an update runs its drivers are replaced one by one, and the last finished one is what was there.
    return done[0] if done else str((status.get("desired") or {}).get("version", ""))


def _may_use_privileged(client: Client, namespace: str, account: str) -> bool | None:
    """Whether the plugin's account may use OpenShift's SCC privileged; None where this account may not ask."""
    try:
        need = Need("use", "security.openshift.io", "securitycontextconstraints", namespace, "privileged")
        return client.is_allowed_for(f"system:serviceaccount:{namespace}:{account}", need)
    except ClusterError as error:
        if error.status not in (403, 404):
            raise
        return None


def read_begun_handover(client: Client, driver: Driver, namespace: str) -> Mapping[str, str]:
    """The record of a hand-over to ours that has not been finished, empty when there is none. namespace: empty for any.

    ClusterError invalid for a record of another format, which may be of an unfinished hand-over.
    """
    name = name_record(driver)
    config_maps = (
        filter(None, [client.get(kinds.CONFIG_MAP, name, namespace)])
        if namespace
        else client.list(
            kinds.CONFIG_MAP, field_selector=f"metadata.name={name}", label_selector=f"{MANAGED_BY}={MANAGER}"
        ).items
    )
    records = [_read_record(config_map) for config_map in config_maps]
    return next((record for record in records if record.get("state") == "begun"), {})


def _read_record(config_map: Mapping[str, Any]) -> Mapping[str, str]:
    metadata, record = config_map["metadata"], config_map.get("data") or {}
    version = record.get("schema", str(RECORD_SCHEMA))
    try:
        check_version(int(version) if version.isdecimal() else version, RECORD_SCHEMA)
    except ValueError as error:
        raise ClusterError(
            f"ConfigMap {metadata['namespace']}/{metadata['name']}: the record of a hand-over cannot be read: {error}. If it was "
            "edited by hand, restore it.",
            "invalid",
        ) from error
    return record
