# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes as a cluster with migration has them: which driver serves them, by which handle, and which disk that is.

Handles as kubernetes/csi-translation-lib makes them. No I/O here.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any

PROVISIONERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
VSPHERE = "csi.vsphere.vmware.com"
GCE = "pd.csi.storage.gke.io"
AZURE_FILE = "file.csi.azure.com"
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def served_by(volume: Mapping[str, Any]) -> tuple[str, str] | None:
    """(driver, handle) of a PersistentVolume, native or migrated; None for one that no driver here serves."""
    spec = volume["spec"]
    if "csi" in spec:
        return spec["csi"]["driver"], spec["csi"]["volumeHandle"]
    if "vsphereVolume" in spec:
        return VSPHERE, spec["vsphereVolume"]["volumePath"]
    if "awsElasticBlockStore" in spec:
        return "ebs.csi.aws.com", spec["awsElasticBlockStore"]["volumeID"].rpartition("/")[2]
    if "azureDisk" in spec:
        return "disk.csi.azure.com", spec["azureDisk"]["diskURI"]
    if "azureFile" in spec:
        source = spec["azureFile"]
        account = re.sub("^azure-storage-account-(.+)-secret$", r"\1", source["secretName"])
        namespace = source.get("secretNamespace") or spec["claimRef"]["namespace"]
        return AZURE_FILE, f"#{account}#{source['shareName']}#{volume['metadata']['name']}#{namespace}"
    if "gcePersistentDisk" in spec:
        labels = volume["metadata"].get("labels") or {}
        zone = next((labels[key] for key in ZONES if key in labels), "UNSPECIFIED")
        return GCE, f"projects/UNSPECIFIED/zones/{zone}/disks/{spec['gcePersistentDisk']['pdName']}"
    return None


def parameters(driver: str, given: Mapping[str, str]) -> dict[str, str]:
    """An in-tree class's parameters as its driver gets them."""
    found = {key: value for key, value in given.items() if key.lower() not in ("fstype", "zone", "zones")}
    if driver == VSPHERE:
        # Those of the old plugin become hints, and unknown ones are dropped.
        found = {key: value for key, value in found.items() if key.lower() == "storagepolicyname"}
    fstype = next((value for key, value in given.items() if key.lower() == "fstype"), "")
    return {**found, **({"csi.storage.k8s.io/fstype": fstype} if fstype else {})}


def handle(driver: str, made: str, name: str) -> str:
    """The handle that a driver answers for a volume of an in-tree class, where it differs from its own volumes'."""
    return f"[datastore1] fcd/{name}.vmdk" if driver == VSPHERE else made


def source(driver: str, volume: str, name: str, fstype: str, namespace: str) -> dict[str, Any]:
    """What external-provisioner makes of a CSI volume when its class is in-tree: an in-tree one again."""
    if driver == VSPHERE:
        return {"vsphereVolume": {"volumePath": volume, "fsType": fstype}}
    if driver == "ebs.csi.aws.com":
        return {"awsElasticBlockStore": {"volumeID": volume, "fsType": fstype}}
    if driver == "disk.csi.azure.com":
        return {"azureDisk": {"diskName": name, "diskURI": volume, "kind": "Managed", "fsType": fstype}}
    if driver == GCE:
        return {"gcePersistentDisk": {"pdName": volume.rpartition("/")[2], "fsType": fstype}}
    account, share = volume.split("#")[1:3]
    return {
        "azureFile": {
            "secretName": f"azure-storage-account-{account}-secret",
            "secretNamespace": namespace,
            "shareName": share,
        }
    }


def fcd(path: str) -> str:
    """The id under which vCenter has the disk of a vmdk path."""
    return str(uuid.UUID(hashlib.sha256(path.encode()).hexdigest()[:32]))


def disk(driver: str, handle: str) -> str:
    """What names the disk itself: some drivers know one disk by two handles."""
    if driver == VSPHERE and handle.startswith("["):
        return fcd(handle)
    if driver == GCE:
        return handle.rpartition("/")[2]
    if driver == AZURE_FILE and handle.count("#") == 4:
        return "#".join(handle.split("#")[1:3])
    return handle
