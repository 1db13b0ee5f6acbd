# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The in-tree era: which Windows kubelet mounts which in-tree volume itself, and how its node reports that. No I/O here.

Gates of Windows kubelets by release: openshift/windows-machine-config-operator pkg/nodeconfig/nodeconfig.go of release-4.12 to
release-4.14 (the last in-tree one is 1.26), later ones kubernetes/kubernetes pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
# The first release of Windows kubelets that mount every in-tree volume through its CSI driver.
BOUNDARY = (1, 27)
# In-tree plugin by field of a PersistentVolume, and the first release whose Windows kubelets use CSI for it.
PLUGINS: Mapping[str, tuple[str, tuple[int, int]]] = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", (1, 25)),
    "azureDisk": ("kubernetes.io/azure-disk", (1, 24)),
    "azureFile": ("kubernetes.io/azure-file", (1, 26)),
    "cinder": ("kubernetes.io/cinder", (1, 24)),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", (1, 25)),
    "portworxVolume": ("kubernetes.io/portworx-volume", (1, 31)),
    "vsphereVolume": ("kubernetes.io/vsphere-volume", BOUNDARY),
}


def release(version: str) -> tuple[int, int]:
    """(1, 26) of v1.26.9."""
    major, minor = version.lstrip("v").split(".")[:2]
    return int(major), int(minor)


def is_old(version: str) -> bool:
    """Whether a node of this kubelet belongs to the era: something on it may be mounted in-tree."""
    return release(version) < BOUNDARY


def migrated(version: str) -> str:
    """What the kubelet writes on its CSINode: the plugins for which it would use CSI, whether a driver is there or not."""
    return ",".join(sorted(name for name, since in PLUGINS.values() if release(version) >= since))


def mounts_itself(version: str, volume: Mapping[str, Any]) -> bool:
    """Whether this kubelet mounts the PersistentVolume without a CSI driver."""
    return any(field in volume["spec"] and release(version) < since for field, (_name, since) in PLUGINS.items())


def unique_name(volume: Mapping[str, Any]) -> str:
    """What an in-tree volume is called in a node's volumesAttached and volumesInUse; empty for shares, which are in neither.

    As kubernetes/kubernetes pkg/volume/util GetUniqueVolumeName makes it of the plugins' GetVolumeName.
    """
    spec = volume["spec"]
    names = {
        "awsElasticBlockStore": "volumeID",
        "azureDisk": "diskURI",
        "gcePersistentDisk": "pdName",
        "vsphereVolume": "volumePath",
    }
    return next((f"{PLUGINS[field][0]}/{spec[field][key]}" for field, key in names.items() if field in spec), "")


def node_annotations(version: str) -> dict[str, str | None]:
    """The kubelet's own annotations on its Node. Without this one the attach controller leaves the node's volumes alone."""
    return {MANAGED: None if is_old(version) else "true"}
