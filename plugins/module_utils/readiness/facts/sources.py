# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the bytes of volumes are, of PersistentVolumes and of pods. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import in_tree

PIPE = "\\\\.\\pipe\\csi-proxy-"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a volume's bytes are.

    field: the API's name of the kind ("csi", "azureDisk"). driver: of a csi one. handle: what names the disk or share.
    kind: of azureDisk. secret_namespace: of azureFile. policy: a vsphereVolume names a storage policy.
    """

    field: str
    driver: str = ""
    handle: str = ""
    fs_type: str = ""
    kind: str = ""
    secret_namespace: str = ""
    policy: bool = False

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Source:
        """Read the one source of a PersistentVolumeSpec or of an entry of a pod's volumes.

        Reads, of the kind that is there: csi (driver, volumeHandle, fsType), awsElasticBlockStore (volumeID, fsType),
        azureDisk (diskURI, kind, fsType), azureFile (shareName, secretName, secretNamespace), gcePersistentDisk (pdName,
        fsType), cinder (volumeID, fsType), vsphereVolume (volumePath, fsType, storagePolicyName), portworxVolume
        (volumeID, fsType), rbd, cephfs, glusterfs, flocker, quobyte, storageos, scaleIO, nfs, iscsi, fc, local, hostPath,
        flexVolume (only that they are there). The field is empty for any other kind.
        """
        for name in in_tree.FIELDS:
            entry = spec.get(name)
            if entry is not None:
                return cls(
                    field=name,
                    driver=sys.intern(str(entry.get("driver") or "")),
                    handle=_handle(name, entry),
                    fs_type=sys.intern(str(entry.get("fsType") or "")),
                    kind=str(entry.get("kind") or ""),
                    secret_namespace=str(entry.get("secretNamespace") or ""),
                    policy=bool(entry.get("storagePolicyName")),
                )
        return cls(field="")


def _handle(name: str, entry: Mapping[str, Any]) -> str:
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


@dataclass(frozen=True, slots=True)
class Volumes:
    """What a pod's volumes are, as far as storage drivers have to do with them.

    claims: names of claims in the pod's namespace. ephemeral: (volume, storage class) of generic ephemeral volumes, the
    class None for the default one. inline: sources without a claim. pipes: csi-proxy's pipes that it mounts, bare names.
    """

    claims: tuple[str, ...] = ()
    ephemeral: tuple[tuple[str, str | None], ...] = ()
    inline: tuple[Inline, ...] = ()
    pipes: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Volumes:
        """Read a core/v1 PodSpec.

        Reads of each entry of volumes: name, persistentVolumeClaim.claimName,
        ephemeral.volumeClaimTemplate.spec.storageClassName, hostPath.path, and what Source reads.
        """
        claims: list[str] = []
        ephemeral: list[tuple[str, str | None]] = []
        inline: list[Inline] = []
        pipes: list[str] = []
        for volume in spec.get("volumes") or ():
            if (claim := volume.get("persistentVolumeClaim")) is not None:
                claims.append(str(claim.get("claimName", "")))
            elif (made := volume.get("ephemeral")) is not None:
                template = (made.get("volumeClaimTemplate") or {}).get("spec") or {}
                ephemeral.append((str(volume.get("name", "")), template.get("storageClassName")))
            elif (path := volume.get("hostPath")) is not None:
                text = str(path.get("path", "")).replace("/", "\\").lower()
                if text.startswith(PIPE):
                    pipes.append(text[len(PIPE) - len("csi-proxy-") :])
            else:
                source = Source.from_spec(volume)
                if source.field:
                    inline.append(Inline(str(volume.get("name", "")), source))
        if not (claims or ephemeral or inline or pipes):
            return NO_VOLUMES
        return cls(tuple(claims), tuple(ephemeral), tuple(inline), tuple(pipes))


NO_VOLUMES = Volumes()
