# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A native CSI volume for Windows from an in-tree one: CSI migration's translation, then named differences from it. Pure.

The differences: `set_file_system` (block volumes are NTFS), and the handles of Google, which the user names, and of vSphere, which only the
cluster has. Everything else is as catalog/translation.py makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .in_tree import InTree
from .translation import Object, TranslationError, require_plugin, translate_volume

_LINUX_ONLY = ("xfs", "btrfs")
_ATTRIBUTE = "fstype"


@dataclass(frozen=True, slots=True)
class NativeVolume:
    """An in-tree volume as a native one of its CSI driver.

    migrated: the handle that attachments carry while the volume still is an in-tree one. handle: that of the native
    volume; empty where only the cluster has it (vSphere: volumeid of the CnsVSphereVolumeMigration of volume_path).
    spec: of the native PersistentVolume, its handle still that of `migrated`. on_node: its name in a Node's status when a
    kubelet without migration has it.
    """

    plugin: InTree
    migrated: str
    handle: str
    spec: Mapping[str, Any]
    on_node: str = ""
    volume_path: str = ""
    notes: tuple[str, ...] = ()

    @property
    def driver(self) -> str:
        return self.plugin.driver

    @property
    def affinity(self) -> Mapping[str, Any] | None:
        """spec.nodeAffinity; None when every node reaches the volume."""
        affinity: Mapping[str, Any] | None = self.spec.get("nodeAffinity")
        return affinity

    def source(self, handle: str) -> dict[str, Any]:
        """spec.csi of the native PersistentVolume, without empty fields."""
        source = {**self.spec["csi"], "volumeHandle": handle}
        return {key: value for key, value in source.items() if value}


def convert_volume(volume: Object, volume_handle: str = "") -> NativeVolume:
    """The native volume of an in-tree PersistentVolume. volume_handle: its handle, where the user names it.

    Raises TranslationError.
    """
    spec = translate_volume(volume)["spec"]
    name, plugin = volume["metadata"]["name"], require_plugin(volume)
    source = volume["spec"][plugin.field] or {}
    if (spec.get("volumeMode") or "Filesystem") != "Filesystem":
        raise TranslationError(
            f"PersistentVolume {name} has volumeMode Block, expected Filesystem",
            "Linux pods use it; do not convert it.",
        )
    if plugin.field == "azureFile" and not source.get("secretName"):
        raise TranslationError(f"PersistentVolume {name} has no secret, expected one", "Set azureFile.secretName.")
    migrated = handle = str(spec["csi"]["volumeHandle"])
    notes: list[str] = []
    spec = set_file_system(name, plugin, spec, notes)
    if plugin.field == "gcePersistentDisk":
        if not volume_handle:
            raise TranslationError(
                f"PersistentVolume {name} does not name the project of disk {source.get('pdName')}, expected its handle "
                "projects/<project>/zones/<zone>/disks/<disk>",
                "Set kubewin_convert_volume_handle.",
            )
        modes = list(volume["spec"].get("accessModes") or [])
        if modes and modes != spec["accessModes"]:
            notes.append(f"accessModes {', '.join(modes)} become {', '.join(spec['accessModes'])}, as in CSI migration")
    disk = source.get("volumePath") or source.get("volumeID") or source.get("diskURI") or source.get("pdName")
    path = migrated if plugin.field == "vsphereVolume" else ""
    return NativeVolume(
        plugin,
        migrated=migrated,
        handle=volume_handle or ("" if path else handle),
        spec=spec,
        on_node=f"{plugin.plugin}/{disk}" if disk else "",
        volume_path=path,
        notes=tuple(notes),
    )


def set_file_system(name: str, plugin: InTree, spec: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Block volumes on Windows are NTFS, whatever the in-tree volume says. Raises TranslationError."""
    csi = dict(spec["csi"])
    if plugin.field == "azureFile":
        return {**spec, "csi": csi}
    fs_type = str(csi.get("fsType") or "")
    if fs_type.lower() in _LINUX_ONLY:
        raise TranslationError(
            f"PersistentVolume {name} has fsType {fs_type}, expected ntfs or none: Windows nodes cannot read it",
            "Linux pods use it; do not convert it.",
        )
    if fs_type and fs_type.lower() != "ntfs":
        notes.append(f"fsType {fs_type} becomes ntfs: the in-tree plugin on Windows always created NTFS")
    csi["fsType"] = "ntfs"
    if _ATTRIBUTE in csi["volumeAttributes"]:
        csi["volumeAttributes"] = {**csi["volumeAttributes"], _ATTRIBUTE: "ntfs"}
    return {**spec, "csi": csi}
