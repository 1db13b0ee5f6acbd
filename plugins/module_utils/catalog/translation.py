# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an in-tree PersistentVolume is named by the CSI driver that took over: one function a plugin.

Source: plugins/*.go of https://github.com/kubernetes/csi-translation-lib, which components with migration use in memory.
What is written here is for Windows: block volumes there are NTFS, whatever the in-tree volume says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.in_tree import PLUGINS, InTree

# Labels of old volumes stand for the newer ones (https://github.com/kubernetes/csi-translation-lib, plugins/in_tree_volume.go).
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGIONS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_LINUX_ONLY = ("xfs", "btrfs")
_SECRET = re.compile(r"azure-storage-account-(.+)-secret")
_RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"


class Untranslatable(ValueError):
    """The driver cannot take this volume over. remedy: what helps."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Translated:
    """A volume as its CSI driver knows it.

    migrated: the handle that attachments carry while the volume still is an in-tree one. handle: that of a native
    volume; empty where only the cluster can tell it (vSphere: volumeid of the CnsVSphereVolumeMigration of volume_path).
    on_node: its name in a Node's status when a kubelet without migration has it. zone_key, region_key: of the driver's
    nodes.
    """

    plugin: InTree
    migrated: str
    handle: str
    fs_type: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, str] = field(default_factory=dict)
    on_node: str = ""
    zone_key: str = ""
    region_key: str = ""
    volume_path: str = ""
    notes: tuple[str, ...] = ()

    @property
    def driver(self) -> str:
        """The driver's CSI name."""
        return self.plugin.driver

    def source(self, handle: str) -> dict[str, Any]:
        """spec.csi of a PersistentVolume."""
        found: dict[str, Any] = {"driver": self.driver, "volumeHandle": handle}
        if self.fs_type:
            found["fsType"] = self.fs_type
        if self.attributes:
            found["volumeAttributes"] = dict(self.attributes)
        if self.secret:
            found["nodeStageSecretRef"] = dict(self.secret)
        return found


def plugin_of(volume: Mapping[str, Any]) -> InTree | None:
    """The in-tree plugin whose field a PersistentVolume has; None for any other, such as a native CSI one."""
    spec = volume.get("spec") or {}
    return next((known for known in PLUGINS if known.field in spec), None)


def translate(volume: Mapping[str, Any], project: str = "") -> Translated:
    """What the CSI driver would make of an in-tree PersistentVolume. project: of Google Cloud, where the disk is.

    Raises Untranslatable.
    """
    plugin = plugin_of(volume)
    name = volume["metadata"]["name"]
    if plugin is None or plugin.plugin not in _TRANSLATORS:
        known = ", ".join(sorted(one.field for one in PLUGINS if one.plugin in _TRANSLATORS))
        kind = plugin.field if plugin is not None else "no in-tree volume that a CSI driver replaces"
        raise Untranslatable(f"PersistentVolume {name} is {kind}; expected one of {known}", "Copy the data instead.")
    if (volume["spec"].get("volumeMode") or "Filesystem") != "Filesystem":
        raise Untranslatable(
            f"PersistentVolume {name} is a raw block device; expected volumeMode Filesystem, which Windows pods use",
            "It is used by Linux pods; leave it alone.",
        )
    source = volume["spec"][plugin.field]
    found = _TRANSLATORS[plugin.plugin](plugin, volume, source, project)
    fs_type = str(source.get("fsType") or "")
    if fs_type.lower() in _LINUX_ONLY:
        raise Untranslatable(
            f"PersistentVolume {name} has fsType {fs_type}; expected ntfs or none, since no Windows node can read that",
            "It is used by Linux pods; leave it alone.",
        )
    if found.fs_type and fs_type and fs_type.lower() != found.fs_type:
        note = f"fsType {fs_type} becomes {found.fs_type}: the in-tree plugin on Windows made NTFS whatever it said"
        found = replace(found, notes=(*found.notes, note))
    return found


def affinity(volume: Mapping[str, Any], found: Translated) -> dict[str, Any] | None:
    """nodeAffinity with the driver's topology keys; None when the volume is bound to no place.

    Raises Untranslatable when it is bound by something that the driver's nodes do not say.
    """
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    terms = required if required else _from_labels(volume)
    if not terms:
        return None
    return {"required": {"nodeSelectorTerms": [_term(volume, term, found) for term in terms]}}


def _from_labels(volume: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Volumes of old releases say their zone in labels alone."""
    labels = volume["metadata"].get("labels") or {}
    zone = next((str(labels[key]) for key in ZONES if labels.get(key)), "")
    if not zone:
        return []
    return [{"matchExpressions": [{"key": ZONES[0], "operator": "In", "values": zone.split("__")}]}]


def _term(volume: Mapping[str, Any], term: Mapping[str, Any], found: Translated) -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    for entry in term.get("matchExpressions") or []:
        key = str(entry["key"])
        if key in ZONES and found.zone_key:
            values = list(entry.get("values") or [])
            if found.driver == "disk.csi.azure.com":
                # Numbers are fault domains of an availability set, which the driver calls an empty zone.
                values = ["" if value in ("0", "1", "2") else value for value in values]
            made.append({"key": found.zone_key, "operator": entry["operator"], "values": values})
        elif key in REGIONS and found.region_key:
            made.append({**entry, "key": found.region_key})
        elif key in REGIONS and found.zone_key:
            # The zone, which stands beside it, says more.
            continue
        elif key in (*ZONES, *REGIONS):
            continue
        else:
            made.append(dict(entry))
    if not made and (term.get("matchExpressions") or not term.get("matchFields")):
        raise Untranslatable(
            f"PersistentVolume {volume['metadata']['name']} is bound to places by {term}, which {found.driver} has no "
            "key for",
            "Give the volume a zone (topology.kubernetes.io/zone).",
        )
    return {**({"matchExpressions": made} if made else {}), **_fields(term)}


def _fields(term: Mapping[str, Any]) -> dict[str, Any]:
    return {"matchFields": term["matchFields"]} if term.get("matchFields") else {}


# One function a plugin


def _vsphere(plugin: InTree, _volume: Mapping[str, Any], source: Mapping[str, Any], _project: str) -> Translated:
    path = str(source["volumePath"])
    policy = str(source.get("storagePolicyName") or "")
    return Translated(
        plugin,
        migrated=path,
        handle="",
        fs_type="ntfs",
        attributes={"storagepolicyname": policy} if policy else {},
        on_node=f"{plugin.plugin}/{path}",
        zone_key="topology.csi.vmware.com/zone",
        region_key="topology.csi.vmware.com/region",
        volume_path=path,
    )


def _aws_ebs(plugin: InTree, volume: Mapping[str, Any], source: Mapping[str, Any], _project: str) -> Translated:
    told = str(source["volumeID"])
    match = re.fullmatch(r"(?:aws://[^/]*/)?(vol-[0-9a-z]+)", told)
    if match is None:
        raise Untranslatable(
            f"PersistentVolume {volume['metadata']['name']} has volumeID {told}; expected vol-... or aws://zone/vol-...",
            "Look the volume up in AWS.",
        )
    partition = source.get("partition")
    return Translated(
        plugin,
        migrated=match[1],
        handle=match[1],
        fs_type="ntfs",
        attributes={"partition": str(partition)} if partition else {},
        on_node=f"{plugin.plugin}/{told}",
        zone_key="topology.ebs.csi.aws.com/zone",
    )


def _azure_disk(plugin: InTree, volume: Mapping[str, Any], source: Mapping[str, Any], _project: str) -> Translated:
    kind = str(source.get("kind") or "Shared")
    if kind != "Managed":
        raise Untranslatable(
            f"PersistentVolume {volume['metadata']['name']} is an Azure disk of kind {kind}; expected Managed",
            "Convert the disk to a managed one in Azure and copy, or leave it alone.",
        )
    uri = str(source["diskURI"])
    attributes = {"kind": kind}
    if source.get("cachingMode"):
        attributes["cachingMode"] = str(source["cachingMode"])
    return Translated(
        plugin,
        migrated=uri,
        handle=uri,
        fs_type="ntfs",
        attributes={**attributes, "fsType": "ntfs"},
        on_node=f"{plugin.plugin}/{uri}",
        zone_key="topology.disk.csi.azure.com/zone",
    )


def _azure_file(plugin: InTree, volume: Mapping[str, Any], source: Mapping[str, Any], _project: str) -> Translated:
    name = volume["metadata"]["name"]
    namespace = source.get("secretNamespace") or (volume["spec"].get("claimRef") or {}).get("namespace")
    secret = str(source.get("secretName") or "")
    if not namespace or not secret:
        raise Untranslatable(
            f"PersistentVolume {name} names secret {secret or 'none'} in namespace {namespace or 'none'}; expected both",
            "Set azureFile.secretNamespace in a new volume by hand.",
        )
    match = _SECRET.fullmatch(secret)
    account = match[1] if match else secret
    group = str((volume["metadata"].get("annotations") or {}).get(_RESOURCE_GROUP, ""))
    share = str(source["shareName"])
    handle = f"{group}#{account}#{share}#{name}#{namespace}"
    return Translated(
        plugin,
        migrated=handle,
        handle=handle,
        attributes={"sharename": share},
        secret={"name": secret, "namespace": str(namespace)},
    )


def _gce_pd(plugin: InTree, volume: Mapping[str, Any], source: Mapping[str, Any], project: str) -> Translated:
    disk = str(source["pdName"])
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or []
    zones = [
        value
        for term in required or _from_labels(volume)
        for entry in term.get("matchExpressions") or []
        if entry["key"] in (*ZONES, "topology.gke.io/zone")
        for value in entry.get("values") or []
    ]
    zones = sorted(dict.fromkeys(zone for value in zones for zone in value.split("__")))
    if not zones or not project:
        lacking = "zone (label topology.kubernetes.io/zone)" if not zones else "project"
        raise Untranslatable(
            f"PersistentVolume {volume['metadata']['name']} does not tell the {lacking} of disk {disk}; expected both, since "
            "a native handle is projects/<project>/zones/<zone>/disks/<disk>",
            "Give it with volume_handle.",
        )
    place = f"zones/{zones[0]}" if len(zones) == 1 else f"regions/{zones[0].rpartition('-')[0]}"
    partition = source.get("partition")
    return Translated(
        plugin,
        migrated=f"projects/UNSPECIFIED/{place}/disks/{disk}",
        handle=f"projects/{project}/{place}/disks/{disk}",
        fs_type="ntfs",
        attributes={"partition": str(partition)} if partition else {},
        on_node=f"{plugin.plugin}/{disk}",
        zone_key="topology.gke.io/zone",
    )


_TRANSLATORS: dict[str, Callable[[InTree, Mapping[str, Any], Mapping[str, Any], str], Translated]] = {
    "kubernetes.io/vsphere-volume": _vsphere,
    "kubernetes.io/aws-ebs": _aws_ebs,
    "kubernetes.io/azure-disk": _azure_disk,
    "kubernetes.io/azure-file": _azure_file,
    "kubernetes.io/gce-pd": _gce_pd,
}
