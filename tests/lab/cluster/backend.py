# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands behind volumes: a real directory each, below the lab's folder. And what the six drivers accept.

Parameters and messages are those of the drivers' own controllers: kubernetes-sigs/vsphere-csi-driver (common/util.go),
aws-ebs-csi-driver (driver/controller.go), azuredisk-csi-driver and azurefile-csi-driver (controllerserver.go),
gcp-compute-persistent-disk-csi-driver (parameters), kubernetes-csi/csi-driver-smb (controllerserver.go).
"""

from __future__ import annotations

import hashlib
import shutil
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import in_tree

# Keys that external-provisioner keeps to itself.
RESERVED = "csi.storage.k8s.io/"
STRIPPED = frozenset(
    {
        f"{RESERVED}{name}"
        for name in (
            "fstype", "provisioner-secret-name", "provisioner-secret-namespace", "node-stage-secret-name",
            "node-stage-secret-namespace", "node-publish-secret-name", "node-publish-secret-namespace",
            "controller-publish-secret-name", "controller-publish-secret-namespace", "controller-expand-secret-name",
            "controller-expand-secret-namespace", "node-expand-secret-name", "node-expand-secret-namespace",
            "pvc/name", "pvc/namespace", "pv/name",
        )
    }
)  # fmt: skip


class CannotProvision(Exception):
    """What CreateVolume answers, in gRPC's words."""


@dataclass(frozen=True, slots=True)
class Store:
    """What a driver's controller accepts. `unknown` is its message for a parameter, `share` a driver of shares."""

    parameters: frozenset[str]
    unknown: str
    handle: str
    share: bool = False
    required: tuple[str, ...] = ()


STORES: dict[str, Store] = {
    "csi.vsphere.vmware.com": Store(
        frozenset({"storagepolicyname", "storagepolicyid", "datastoreurl", "fstype"}),
        'rpc error: code = InvalidArgument desc = Parsing storage class parameters failed with error: invalid param: "{key}" '
        'and value: "{value}"',
        "{uuid}",
    ),
    "ebs.csi.aws.com": Store(
        frozenset({"type", "iops", "iopspergb", "throughput", "encrypted", "kmskeyid", "blocksize", "fstype"}),
        "rpc error: code = InvalidArgument desc = Invalid parameter key {key} for CreateVolume",
        "vol-{hex17}",
    ),
    "disk.csi.azure.com": Store(
        frozenset({"skuname", "storageaccounttype", "kind", "cachingmode", "resourcegroup", "maxshares", "fstype", "tags"}),
        "rpc error: code = InvalidArgument desc = Failed parsing disk parameters: invalid parameter {key} in storage class",
        "/subscriptions/lab/resourceGroups/lab/providers/Microsoft.Compute/disks/{name}",
    ),
    "file.csi.azure.com": Store(
        frozenset({"skuname", "storageaccount", "location", "resourcegroup", "sharename", "protocol", "server", "tags"}),
        'rpc error: code = InvalidArgument desc = invalid parameter "{key}" in storage class',
        "lab#account#{name}###",
        share=True,
    ),
    "pd.csi.storage.gke.io": Store(
        frozenset({"type", "replication-type", "disk-encryption-kms-key", "labels", "provisioned-iops-on-create"}),
        'rpc error: code = InvalidArgument desc = failed to extract parameters: parameters contains invalid option "{key}"',
        "projects/lab/zones/zone-a/disks/{name}",
    ),
    "smb.csi.k8s.io": Store(
        frozenset({"source", "subdir", "ondelete"}),
        "rpc error: code = InvalidArgument desc = invalid parameter {key} in storage class",
        "{source}#{name}#",
        share=True,
        required=("source",),
    ),
}  # fmt: skip


def check(driver: str, parameters: Mapping[str, str], access_modes: list[str]) -> None:
    """Whether the driver would make a volume of these class parameters.

    Raises CannotProvision.
    """
    store = STORES[driver]
    for key in parameters:
        if key.startswith(RESERVED) and key not in STRIPPED:
            raise CannotProvision(
                f'failed to strip CSI Parameters of prefixed keys: found unknown parameter key "{key}" with reserved '
                f"namespace {RESERVED}"
            )
    own = {key.lower(): value for key, value in parameters.items() if not key.startswith(RESERVED)}
    for key, value in parameters.items():
        if not key.startswith(RESERVED) and key.lower() not in store.parameters:
            raise CannotProvision(store.unknown.format(key=key, value=value))
    for key in store.required:
        if not own.get(key):
            raise CannotProvision(f"rpc error: code = InvalidArgument desc = {key} is a required parameter")
    if not store.share and "ReadWriteMany" in access_modes:
        raise CannotProvision(
            "rpc error: code = InvalidArgument desc = Volume capabilities MULTI_NODE_MULTI_WRITER not supported"
        )


def handle(driver: str, name: str, parameters: Mapping[str, str]) -> str:
    """The id of a new volume, in the driver's form; the same for the same name, as CreateVolume has to be."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    source = next((value for key, value in parameters.items() if key.lower() == "source"), "").strip("/")
    made = {"uuid": str(uuid.UUID(digest[:32])), "hex17": digest[:17], "name": name, "source": source}
    return STORES[driver].handle.format(**made)


class Backend:
    """The volumes' directories."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, driver: str, volume: str) -> Path:
        return self._root / driver / urllib.parse.quote(in_tree.disk(driver, volume), safe="")

    def create(self, driver: str, volume: str) -> Path:
        """Its directory, made unless it is there."""
        path = self._path(driver, volume)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def delete(self, driver: str, volume: str) -> None:
        shutil.rmtree(self._path(driver, volume), ignore_errors=True)


def roll_back(volume: Path) -> None:
    """Give every file another content, as a disk has that was restored from an older copy."""
    for file in volume.rglob("*"):
        if file.is_file():
            file.write_bytes(b"an older state\r\n")
