# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PersistentVolumes, their claims, attachments and StorageClasses. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.cached import share
from ...base.text import join_lines, share_text
from ...catalog import in_tree
from ...catalog.translation import REGIONS, ZONES
from .placement import Requirement, Term, read_terms
from .sources import OLD_CLASS, Source, read_quantity

MIGRATED_TO = "pv.kubernetes.io/migrated-to"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
# In volumeAttributes of each volume that it made: https://github.com/kubernetes-csi/external-provisioner, pkg/controller/controller.go.
IDENTITY = "storage.kubernetes.io/csiProvisionerIdentity"
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")

_PLACES = (*ZONES, *REGIONS)


@dataclass(frozen=True, slots=True)
class ObservedVolume:
    """A PersistentVolume.

    claim: "namespace/name" it is for, empty otherwise; claim_uid: empty while it is only reserved for that claim. terms: its
    node affinity. places: its labels of zone and region. block: raw. size: bytes. identified: external-provisioner wrote its identity into it.
    created: the day.
    """

    name: str
    source: Source
    claim: str = ""
    claim_uid: str = ""
    policy: str = ""
    storage_class: str = ""
    attributes_class: str = ""
    provisioned_by: str = ""
    identified: bool = False
    migrated_to: str = ""
    phase: str = ""
    deleting: bool = False
    access_modes: tuple[str, ...] = ()
    block: bool = False
    size: int = 0
    terms: tuple[Term, ...] | None = None
    places: tuple[tuple[str, str], ...] = ()
    created: str = ""

    @property
    def provisioner(self) -> str:
        """What made it, empty where nothing proves that. An administrator, or a conversion, may annotate a disk that existed before."""
        return self.provisioned_by if self.identified or self.source.field != "csi" else ""

    @classmethod
    def from_object(cls, volume: Mapping[str, Any]) -> ObservedVolume:
        """Read a core/v1 PersistentVolume."""
        metadata, spec = volume["metadata"], volume.get("spec") or {}
        annotations, claim = metadata.get("annotations") or {}, spec.get("claimRef") or {}
        labels = metadata.get("labels") or {}
        return cls(
            name=str(metadata["name"]),
            source=Source.from_spec(spec),
            claim=f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
            claim_uid=str(claim.get("uid") or ""),
            policy=share_text(spec.get("persistentVolumeReclaimPolicy")),
            storage_class=share_text(annotations.get(OLD_CLASS) or spec.get("storageClassName")),
            attributes_class=share_text(spec.get("volumeAttributesClassName")),
            provisioned_by=share_text(annotations.get(PROVISIONED_BY)),
            identified=IDENTITY in ((spec.get("csi") or {}).get("volumeAttributes") or {}),
            migrated_to=share_text(annotations.get(MIGRATED_TO)),
            phase=share_text((volume.get("status") or {}).get("phase")),
            deleting=bool(metadata.get("deletionTimestamp")),
            access_modes=share(tuple(spec.get("accessModes") or ())),
            block=spec.get("volumeMode") == "Block",
            size=read_quantity((spec.get("capacity") or {}).get("storage")),
            places=tuple((key, sys.intern(str(labels[key]))) for key in _PLACES if key in labels),
            terms=read_terms((spec.get("nodeAffinity") or {}).get("required")),
            # Volumes share few days, and have many times.
            created=share_text(str(metadata.get("creationTimestamp") or "")[:10]),
        )


@dataclass(frozen=True, slots=True)
class ObservedAttachment:
    """A VolumeAttachment. volume: the PersistentVolume's name; empty for one of an inline volume. deleting: since when.

    waits_since: when one that is not attached was made.
    """

    name: str
    attacher: str
    node: str
    volume: str = ""
    attached: bool = False
    attach_error: str = ""
    detach_error: str = ""
    deleting: str = ""
    waits_since: str = ""

    @classmethod
    def from_object(cls, attachment: Mapping[str, Any]) -> ObservedAttachment:
        """Read a storage.k8s.io/v1 VolumeAttachment."""
        metadata, spec, status = attachment["metadata"], attachment.get("spec") or {}, attachment.get("status") or {}
        return cls(
            name=str(metadata["name"]),
            attacher=share_text(spec.get("attacher")),
            node=share_text(spec.get("nodeName")),
            volume=str((spec.get("source") or {}).get("persistentVolumeName") or ""),
            attached=bool(status.get("attached")),
            attach_error=_read_error(status.get("attachError")),
            detach_error=_read_error(status.get("detachError")),
            deleting=str(metadata.get("deletionTimestamp") or ""),
            waits_since="" if status.get("attached") else str(metadata.get("creationTimestamp") or ""),
        )


def _read_error(entry: Mapping[str, Any] | None) -> str:
    return "" if entry is None else join_lines(str(entry.get("message") or "no message"))


@dataclass(frozen=True, slots=True)
class ObservedClass:
    """A StorageClass. default: it is marked as that, and so may others be. allowed: the topologies it makes volumes in, None for all."""

    name: str
    provisioner: str
    default: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    binding_mode: str = "Immediate"
    allowed: tuple[Term, ...] | None = None
    created: str = ""
    mount_options: bool = False

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that parameters of an in-tree class name (k8s.io/csi-translation-lib, TranslateInTreeStorageClassToCSI)."""
        if in_tree.find_by_name(self.provisioner) is None:
            return ()
        texts = (text for key, text in self.parameters.items() if key.lower() in ("zone", "zones"))
        return tuple(sorted({zone.strip() for text in texts for zone in text.split(",")} - {""}))

    @property
    def driver(self) -> str:
        """What makes its volumes: the CSI name of the driver where one took over; empty for nothing."""
        plugin = in_tree.find_by_name(self.provisioner)
        if plugin is not None:
            return plugin.driver
        return "" if self.provisioner == "kubernetes.io/no-provisioner" else self.provisioner

    @classmethod
    def from_object(cls, storage_class: Mapping[str, Any]) -> ObservedClass:
        """Read a storage.k8s.io/v1 StorageClass."""
        metadata = storage_class["metadata"]
        annotations = metadata.get("annotations") or {}
        return cls(
            name=str(metadata["name"]),
            provisioner=str(storage_class.get("provisioner", "")),
            default=any(annotations.get(key) == "true" for key in DEFAULT_CLASS),
            parameters=dict(storage_class.get("parameters") or {}),
            binding_mode=str(storage_class.get("volumeBindingMode") or "Immediate"),
            allowed=tuple(
                tuple(
                    Requirement(str(expression.get("key", "")), "In", tuple(expression.get("values") or ()))
                    for expression in term.get("matchLabelExpressions") or ()
                )
                for term in storage_class.get("allowedTopologies") or ()
            )
            or None,
            created=str(metadata.get("creationTimestamp") or ""),
            mount_options=bool(storage_class.get("mountOptions")),
        )
