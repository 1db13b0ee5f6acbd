# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployment is planned from: the user's request and a snapshot of the cluster.

No logic beyond reading objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..catalog.base import Driver
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.node import ObservedNode
from . import declared

OPENSHIFT_CONTAINER = "csi-driver"
# Of the record of a hand-over. One without a version is of the first, which was written without it before.
RECORD_SCHEMA = 1


def name_record(driver: Driver) -> str:
    """Name of the ConfigMap that remembers what ours replaced."""
    return f"kubewin-replaced-{driver.key.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """What the user asks for; None or empty takes upstream's default.

    version: "3.4.0". mode: auto, csi_proxy or host_process. csi_proxy_managed: this collection installs csi-proxy, so
    the DaemonSet goes only where its pipes were proven. images: by role, whole references. image_mirror: replaces the
    registry host of every image. image_digests: by role, "sha256:...". resources: by container role, requests and
    limits. storage_class: {create, name, parameters}. options: the other declared ones, for templates.
    """

    mode: str = "auto"
    version: str | None = None
    namespace: str | None = None
    create_cluster_objects: bool = False
    allow_version_skew: bool = False
    csi_proxy_managed: bool = True
    images: Mapping[str, str] = field(default_factory=dict)
    image_mirror: str | None = None
    image_digests: Mapping[str, str] = field(default_factory=dict)
    image_pull_secrets: tuple[str, ...] = ()
    kubelet_dir: str = "C:\\var\\lib\\kubelet"
    tolerations: tuple[Mapping[str, Any], ...] | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    priority_class: str | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_unavailable: str | None = None
    storage_class: Mapping[str, Any] = field(default_factory=dict)
    replace: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: dict(TEMPLATE_OPTIONS))


# Options of driver_info that are no field of DriverRequest, with their defaults.
TEMPLATE_OPTIONS: Mapping[str, Any] = {
    name: option.default
    for name, (_role, option) in declared.list_module_options(declared.INFO).items()
    if name not in {field.name for field in fields(DriverRequest)}
}


@dataclass(frozen=True, slots=True)
class DriverController:
    """The driver's Linux controller as its Deployment shows it."""

    namespace: str
    name: str
    image: str
    desired: int
    available: int

    @classmethod
    def from_object(cls, deployment: Mapping[str, Any], container: str) -> DriverController:
        """Read an apps/v1 Deployment; the image is that of the named container, else OpenShift's, else the first one."""
        spec, status = deployment["spec"], deployment.get("status") or {}
        by_name = {entry["name"]: entry["image"] for entry in reversed(spec["template"]["spec"]["containers"])}
        first = spec["template"]["spec"]["containers"][0]["name"]
        image = by_name.get(container) or by_name.get(OPENSHIFT_CONTAINER) or by_name[first]
        return cls(
            namespace=deployment["metadata"]["namespace"],
            name=deployment["metadata"]["name"],
            image=str(image),
            desired=int(spec.get("replicas", 1)),
            available=int(status.get("availableReplicas") or 0),
        )


@dataclass(frozen=True, slots=True)
class DriverSnapshot:
    """The cluster as it was observed.

    kubernetes: "v1.36.3". controllers: those of a known name come first, in the driver's order. namespaces: by name, None when absent.
    feature_states: data of the feature-state map by namespace, None when absent; no entry where it was not read. missing_access: rules
    this account lacks, as text; access_commands: the commands that bind the roles with them. openshift: "4.20.3", empty for other
    clusters or if not read. privileged: whether the plugin's account may use OpenShift's SCC privileged, None if not read or not
    permitted. replacing: a hand-over to ours that was begun and not finished, as "namespace/name" of what it replaces.
    registered: Windows nodes whose kubelet has registered the driver; read only if a DaemonSet without a Ready pod claims to provide it.
    """

    kubernetes: str
    nodes: tuple[ObservedNode, ...]
    controllers: tuple[DriverController, ...]
    daemon_sets: tuple[ObservedDaemonSet, ...]
    namespaces: Mapping[str, Mapping[str, Any] | None]
    csi_driver: Mapping[str, Any] | None
    feature_states: Mapping[str, Mapping[str, str] | None]
    storage_class: Mapping[str, Any] | None
    missing_access: tuple[str, ...] = ()
    access_commands: tuple[str, ...] = ()
    openshift: str = ""
    privileged: bool | None = None
    replacing: str = ""
    registered: tuple[str, ...] = ()
