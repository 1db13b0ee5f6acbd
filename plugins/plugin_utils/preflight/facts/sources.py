# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the bytes of volumes are, of PersistentVolumes and of pods, and the claims for them. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from ...base.cached import share
from ...base.text import share_text
from ...catalog import in_tree
from ...kube.labels import CONVERSION
from .fields import ASSUMED_OF_VOLUMES

OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a volume's bytes are.

    field: the API's name of the kind ("csi", "azureDisk"). driver: of a csi one. handle: what names the disk or share.
    kind: of azureDisk. secret_namespace: of azureFile. policy: a vsphereVolume names a storage policy. read_only: it asks
    for that. attribute: fsType of a csi one's attributes. protocol, server: of a csi share, the server as a host's name.
    secret: that a csi one names for mounting it, "namespace/name". shared: its attributes name the share. assumed: its fields that
    no rule reads and that may matter.
    """

    field: str
    driver: str = ""
    handle: str = ""
    fs_type: str = ""
    kind: str = ""
    secret_namespace: str = ""
    policy: bool = False
    read_only: bool = False
    attribute: str = ""
    protocol: str = ""
    server: str = ""
    secret: str = ""
    shared: bool = False
    assumed: tuple[str, ...] = ()

    @property
    def disk(self) -> str:
        """Its key, equal for all pods and PersistentVolumes that name the same disk."""
        return f"{self.field} {self.driver} {self.handle}"

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Source:
        """Read the one source of a PersistentVolumeSpec or of an entry of a pod's volumes. The field is empty for an unknown kind."""
        for name in in_tree.FIELDS:
            entry = spec.get(name)
            if entry is not None:
                attributes = (entry.get("volumeAttributes") if name == "csi" else None) or _NO_FIELDS
                return cls(
                    field=name,
                    driver=share_text(entry.get("driver")),
                    handle=_read_handle(name, entry),
                    fs_type=share_text(entry.get("fsType")),
                    kind=str(entry.get("kind") or ""),
                    secret_namespace=str(entry.get("secretNamespace") or ""),
                    policy=bool(entry.get("storagePolicyName")),
                    read_only=bool(entry.get("readOnly")),
                    attribute=share_text(attributes.get("fsType") or attributes.get("fstype")),
                    protocol=share_text(attributes.get("protocol")),
                    server=read_server(attributes),
                    secret=_name_secret(entry, attributes),
                    shared=bool(attributes.get("shareName") or attributes.get("sharename")),
                    assumed=_list_assumed(spec, entry),
                )
        return cls(field="")


_NO_FIELDS: Mapping[str, Any] = {}


def _list_assumed(spec: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a PersistentVolumeSpec and of its source that are assumed. Most volumes have none."""
    if "mountOptions" not in spec and ASSUMED_OF_VOLUMES.keys().isdisjoint(entry):
        return ()
    return tuple(field for field in ASSUMED_OF_VOLUMES if spec.get(field) or entry.get(field))


_SHARE = re.compile(r"//+([^/]+)/+[^/]")


def read_server(parameters: Mapping[str, Any]) -> str:
    """The host of a share, by the attributes of a volume or the parameters of a class: source of SMB, server of Azure File.

    Empty for a source that is no //server/share.
    """
    source = str(parameters.get("source") or parameters.get("Source") or "").replace("\\", "/")
    match = _SHARE.match(source)
    return share_text(parameters.get("server") if not source else match[1] if match is not None else "")


def _name_secret(entry: Mapping[str, Any], attributes: Mapping[str, Any]) -> str:
    """The Secret of a csi source: a PersistentVolume names it by a reference, a pod's own volume by an attribute, in its namespace."""
    if entry.get("volumeHandle"):
        reference = entry.get("nodeStageSecretRef") or _NO_FIELDS
        return share_text(f"{reference.get('namespace', '')}/{reference['name']}") if reference.get("name") else ""
    return str(attributes.get("secretName") or attributes.get("secretname") or "")


def _read_handle(name: str, entry: Mapping[str, Any]) -> str:
    if name == "azureFile":
        return f"{entry.get('secretName', '')}#{entry.get('shareName', '')}"
    for key in ("volumeHandle", "volumeID", "diskURI", "pdName", "volumePath"):
        if key in entry:
            return str(entry[key])
    return ""


@dataclass(frozen=True, slots=True)
class Inline:
    """A volume that a pod names itself."""

    name: str
    source: Source


# Fields of a claim's spec that narrow or replace what it gets, and whose content is not read.
_NARROWING = ("selector", "dataSource", "dataSourceRef", "volumeAttributesClassName")


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """A PersistentVolumeClaim, or a template of one: of a StatefulSet, or of a generic ephemeral volume, by the volume's name.

    storage_class: None takes the default one, empty means none. block: a raw device. size: bytes. narrowed: names of the
    spec's fields that narrow or replace what it gets (selector, dataSource, dataSourceRef, volumeAttributesClassName). pod: that
    it was made for. waits_since: when one that is not bound was made. grows: its file system is to grow when it is mounted.
    converting: a conversion has locked it.
    """

    namespace: str
    name: str
    uid: str = ""
    volume: str = ""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()
    block: bool = False
    size: int = 0
    narrowed: tuple[str, ...] = ()
    phase: str = ""
    deleting: bool = False
    selected_node: str = ""
    pod: str = ""
    waits_since: str = ""
    grows: bool = False
    converting: bool = False

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    def choose_remedy(self, remedy: str) -> str:
        """What helps if its volume is deleted or missing. An interrupted conversion may have deleted it, and its next run completes that."""
        conversion_remedy = (
            f"if its conversion was interrupted, run convert_volumes with kubewin_convert_claims={self.key}"
        )
        return f"{conversion_remedy}; otherwise {remedy}" if self.converting else remedy

    @classmethod
    def from_template(cls, name: str, item: Mapping[str, Any]) -> ObservedClaim:
        """Read a template of a core/v1 PersistentVolumeClaim."""
        return cls("", name, **_read_request(item))

    @classmethod
    def from_object(cls, claim: Mapping[str, Any]) -> ObservedClaim:
        """Read a core/v1 PersistentVolumeClaim."""
        metadata, status = claim["metadata"], claim.get("status") or {}
        volume, annotations = (claim.get("spec") or {}).get("volumeName"), metadata.get("annotations") or {}
        return cls(
            namespace=sys.intern(str(metadata["namespace"])),
            name=str(metadata["name"]),
            uid=str(metadata.get("uid") or ""),
            volume=str(volume or ""),
            phase=share_text(status.get("phase")),
            deleting=bool(metadata.get("deletionTimestamp")),
            selected_node=str(annotations.get(SELECTED_NODE) or ""),
            pod=next(
                (
                    str(owner["name"])
                    for owner in metadata.get("ownerReferences") or ()
                    if owner.get("kind") == "Pod" and owner.get("controller")
                ),
                "",
            ),
            waits_since="" if volume else str(metadata.get("creationTimestamp") or ""),
            converting=CONVERSION in annotations,
            grows=any(
                condition.get("type") == "FileSystemResizePending" for condition in status.get("conditions") or ()
            )
            or str((status.get("allocatedResourceStatuses") or {}).get("storage") or "").startswith("NodeResize"),
            **_read_request(claim),
        )


def _read_request(item: Mapping[str, Any]) -> dict[str, Any]:
    """What a claim or a template of one asks for. The beta annotation of the class comes first."""
    spec, annotations = item.get("spec") or {}, (item.get("metadata") or {}).get("annotations") or {}
    return {
        "storage_class": annotations.get(OLD_CLASS, spec.get("storageClassName")),
        "access_modes": share(tuple(spec.get("accessModes") or ())),
        "block": spec.get("volumeMode") == "Block",
        "size": read_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage")),
        "narrowed": tuple(field for field in _NARROWING if spec.get(field) not in (None, "")),
    }


_QUANTITY = re.compile(r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))([A-Za-z]*)(?:[eE]([+-]?[0-9]{1,2}))?")
_UNITS: dict[str, Fraction] = {
    "": Fraction(1),
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate("mun", 1)},
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
}


@lru_cache(maxsize=4096)
def read_quantity(text: str | None, scale: int = 1) -> int:
    """A Kubernetes quantity such as 10Gi times scale, rounded up as the API does; 0 where there is none."""
    match = _QUANTITY.fullmatch(str(text)) if text else None
    if match is None or match[2] not in _UNITS:
        return 0
    return ceil(Fraction(match[1]) * _UNITS[match[2]] * Fraction(10) ** int(match[3] or 0) * scale)


@dataclass(frozen=True, slots=True)
class Volumes:
    """What a pod's volumes are, as far as storage drivers have to do with them.

    claims: names of claims in the pod's namespace. ephemeral: the claims of generic ephemeral volumes, each by its volume's
    name. inline: sources without a claim. devices: what its containers take as raw devices, by claim, or by volume where there is none.
    """

    claims: tuple[str, ...] = ()
    ephemeral: tuple[ObservedClaim, ...] = ()
    inline: tuple[Inline, ...] = ()
    devices: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Volumes:
        """Read a core/v1 PodSpec."""
        claims: list[str] = []
        ephemeral: list[ObservedClaim] = []
        inline: list[Inline] = []
        devices = _list_devices(spec)
        for volume in spec.get("volumes") or ():
            if (claim := volume.get("persistentVolumeClaim")) is not None:
                claims.append(str(claim.get("claimName", "")))
                if devices:
                    name = str(volume.get("name", ""))
                    devices = tuple(claims[-1] if device_name == name else device_name for device_name in devices)
            elif (ephemeral_source := volume.get("ephemeral")) is not None:
                template = ephemeral_source.get("volumeClaimTemplate") or {}
                ephemeral.append(ObservedClaim.from_template(str(volume.get("name", "")), template))
            elif "hostPath" not in volume and not in_tree.EVALUATED.isdisjoint(volume):
                source = Source.from_spec(volume)
                if source.field or not in_tree.UNSURE.isdisjoint(volume):
                    inline.append(Inline(str(volume.get("name", "")), source))
        if not (claims or ephemeral or inline or devices):
            return NO_VOLUMES
        return cls(tuple(claims), tuple(ephemeral), tuple(inline), devices)


def _list_devices(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The volumes that a pod's containers take as raw devices."""
    return tuple(
        str(device.get("name", ""))
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        for device in container.get("volumeDevices") or ()
    )


NO_VOLUMES = Volumes()
