# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold besides the rules for workloads to start again, grouped, so that a headline can count it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from ..base.grouped import group_values
from ..catalog import wmco
from ..catalog.kubernetes import NEWEST
from ..catalog.translation import REGIONS, ZONES
from ..kube.node import BUILD_LABEL
from .facts.fields import ASSUMED_OF_DRIVERS
from .facts.pod_spec import Dependency
from .index import BY_NAME, Index
from .render.text_format import format_list, format_number
from .usage import OS_LABELS, Workload
from .verdict import Assumption
from .windows_volumes import WindowsVolume, WindowsVolumes

# In the order of a report: what is assumed, by what pods depend on.
_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admission": (
        "Webhooks, policies, optional admission plugins, and of OpenShift SCCs, cluster quotas and the default node selector "
        "accept the next pods and claims as they are",
        (),
    ),
    "room": (
        "The scheduler has its default plugins, and the room that nodes have now stays for the next pods: no pod of higher priority "
        "takes it, and no autoscaler removes a node; available controllers of drivers do their work",
        ("device",),
    ),
    "nodes": (
        "The upgrade keeps the name and the local disks of each node, and the labels that pods select",
        ("node reference",),
    ),
    "disks": (
        "Restored and cloned disks come to no node that has the disk of their source, where csi-proxy leaves them offline "
        "(csi-proxy issue 287)",
        ("restored disk",),
    ),
    "machines": ("The machine types of nodes can attach the disks of StorageClasses", ("disk type",)),
    "drivers": (
        "Drivers that this collection does not know support their volumes on Windows, with their file systems and access modes",
        ("unknown driver",),
    ),
    "references": (
        "Everything that pods and node plugins refer to exists and can be used",
        (
            "image", "Secret", "ConfigMap", "SecretProviderClass", "class parameter", "host path", "path in a volume",
            "user account", "runtime handler", "SMB server with several Secrets",
            "service of Windows",
        ),
    ),
    "release": (
        f"Kubernetes starts pods as in {'.'.join(map(str, NEWEST))}, the newest release that this collection knows",
        ("release of Kubernetes",),
    ),
    # Everything else, so that no kind of dependency is left out.
    "fields": ("Fields that the report does not read keep no pod from starting", ()),
}  # fmt: skip
_OF_ONE_NODE = frozenset({"kubernetes.io/hostname", BUILD_LABEL})
# Labels that a node has again when it is replaced.
_OF_EVERY_NODE = frozenset({*OS_LABELS, "kubernetes.io/arch", *ZONES, *REGIONS})
_MACHINE_TYPE = "node.kubernetes.io/instance-type"
_GROUP_OF = {kind: group for group, (_text, kinds) in _GROUPS.items() for kind in kinds}
# Each pod depends on these.
_ALWAYS = ("admission", "room")
_PLURALS = {
    "SecretProviderClass": "SecretProviderClasses",
    "SMB server with several Secrets": "SMB servers with several Secrets",
    "service of Windows": "services of Windows",
    "release of Kubernetes": "releases of Kubernetes",
}
_NAMED = 3


def collect_assumptions(
    index: Index, volumes: WindowsVolumes, ready: Iterable[Workload], upgrades: bool
) -> tuple[Assumption, ...]:
    """The assumptions of workloads that start again by every rule. upgrades: the report is about other versions."""
    names: dict[str, dict[str, dict[str, None]]] = {group: defaultdict(dict) for group in _GROUPS}
    workloads: dict[str, dict[str, None]] = defaultdict(dict)
    of_nodes = [*_list_service_lists(index)]
    if index.kubernetes is not None and index.kubernetes.minor > NEWEST:
        of_nodes.append(("release of Kubernetes", ".".join(map(str, index.kubernetes.minor))))
    secrets = group_values(
        (volume.source.server, volume.source.secret) for volume in volumes.by_key.values() if volume.source.secret
    )
    # Windows takes one user for each server (https://github.com/kubernetes-csi/csi-driver-smb/issues/219, system error 1219).
    servers = {server for server, own_secrets in secrets.items() if server and len(set(own_secrets)) > 1}
    attaching = _find_attaching_nodes(index)
    for workload in ready:
        for group in _ALWAYS:
            workloads[group][workload.key] = None
        dependencies = [*of_nodes, *_list_dependencies(index, volumes, workload, servers)]
        for volume in volumes.by_workload.get(workload.key, ()):
            dependencies += _list_disk_types(index, volume, attaching)
        if upgrades:
            dependencies += _list_node_dependencies(index, volumes, workload)
        for kind, name in dependencies:
            group = _GROUP_OF.get(kind, "fields")
            names[group][kind][name] = None
            workloads[group][workload.key] = None
    return tuple(
        Assumption(
            group,
            _sentence(text, names[group]),
            tuple(workloads[group]),
            tuple(f"{kind} {name}" for kind, kind_names in names[group].items() for name in kind_names),
        )
        for group, (text, _kinds) in _GROUPS.items()
        if workloads[group]
    )


def _list_service_lists(index: Index) -> Iterable[Dependency]:
    """The lists from which the operator's daemon starts csi-proxy and the kubelet again, as their start mode is manual."""
    versions = {node.annotations.get(wmco.DESIRED) for node in index.list_nodes(index.windows)}
    for version in sorted(filter(None, versions)):
        yield "ConfigMap", f"windows-services-{version} of the Windows Machine Config Operator"


# Azure File finds the Secret of a storage account by its name, where a volume names none.
_FINDS_SECRETS = "file.csi.azure.com"


def _list_dependencies(
    index: Index, volumes: WindowsVolumes, workload: Workload, servers: Container[str]
) -> Iterable[Dependency]:
    """servers: of SMB, whose shares have several Secrets."""
    if workload.template is not None:
        yield from workload.template.dependencies
    else:
        yield "field", f"spec of {workload.key}, which has no template"
    for volume in volumes.by_workload.get(workload.key, ()):
        providers = index.providers.get(volume.driver, ())
        if volume.source.secret or volume.driver == _FINDS_SECRETS:
            yield "Secret", f"of {volume.title}"
        if volume.source.server in servers:
            yield "SMB server with several Secrets", volume.source.server
        yield from ((kind, f"{field} of {volume.title}") for kind, field in volume.assumed)
        if volume.restored and any(provider.plugin and not provider.plugin.host_process for provider in providers):
            yield "restored disk", volume.title
        if volume.source.field == "flexVolume" or (volume.driver and volume.driver not in BY_NAME):
            yield "unknown driver", volume.driver or f"flexVolume of {volume.title}"
        driver = index.csi_drivers.get(volume.driver)
        fields = (field for field in ASSUMED_OF_DRIVERS if driver is not None and driver.spec.get(field))
        yield from (("field", f"{field} of CSIDriver {volume.driver}") for field in fields)
        yield from (dependency for plugin in providers for dependency in plugin.dependencies)


def _find_attaching_nodes(index: Index) -> Mapping[str, int]:
    """By StorageClass, the nodes with a machine type that has a disk of the class attached."""
    attaching: dict[str, int] = defaultdict(int)
    for node in index.node_list:
        same_type = index.find_labelled(_MACHINE_TYPE, node.labels.get(_MACHINE_TYPE, ""))
        for attachment in index.attachments.get(node.name, ()):
            volume = index.volumes.get(attachment.volume)
            if volume is not None and attachment.attached and index.is_of_class(volume):
                attaching[volume.storage_class] |= same_type
    return attaching


def _list_disk_types(index: Index, volume: WindowsVolume, attaching: Mapping[str, int]) -> Iterable[Dependency]:
    """The type of a disk that only some machine types attach, if its class names it and a node may have another machine type."""
    driver, observed = BY_NAME.get(volume.driver), volume.persistent_volume or volume.claim or volume.new_claim
    name = observed.storage_class if observed is not None else ""
    storage_class = index.default_class if name is None else index.classes.get(name)
    if driver is None or driver.disk_types is None or storage_class is None or storage_class.driver != driver.name:
        return
    disk_type = driver.disk_types.find_limited_type(storage_class.parameters)
    if disk_type and volume.eligible & ~attaching.get(storage_class.name, 0):
        yield "disk type", f"{disk_type} of StorageClass {storage_class.name}"


def _list_node_dependencies(index: Index, volumes: WindowsVolumes, workload: Workload) -> Iterable[Dependency]:
    """What a workload has of nodes that an upgrade by replacement, as clouds do it, takes away."""
    template = workload.template
    if template is not None:
        terms = template.placement.terms or ()
        keys = {key for key, _value in template.placement.selector} | {part.key for term in terms for part in term}
        keys |= {"nodeName"} if template.node or any(part.field for term in terms for part in term) else set()
        yield from (("node reference", f"{key} of {workload.key}") for key in sorted(keys - _OF_EVERY_NODE))
    for volume in volumes.by_workload.get(workload.key, ()):
        of_node = any(part.key in _OF_ONE_NODE or part.field for term in volume.terms for part in term)
        if of_node or volume.source.field in ("local", "hostPath"):
            yield "node reference", f"local disk of {volume.title}"
        if any(provider.plugin and provider.plugin.pipes for provider in index.providers.get(volume.driver, ())):
            yield "service of Windows", "csi-proxy on nodes that the upgrade replaces"


def _sentence(text: str, names: Mapping[str, Mapping[str, None]]) -> str:
    parts = [
        f"{format_number(len(kind_names), kind, _PLURALS.get(kind, ''))} ({format_list([*kind_names], _NAMED)})"
        for kind, kind_names in names.items()
    ]
    return text + (f": {', '.join(parts)}" if parts else "")
