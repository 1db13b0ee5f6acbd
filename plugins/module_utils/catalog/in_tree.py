# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volume plugins that a CSI driver replaces, and in which Kubernetes release each step was taken.

Source: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ and its page of removed gates,
pkg/features/kube_features.go of https://github.com/kubernetes/kubernetes, plugins of https://github.com/kubernetes/csi-translation-lib.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InTree:
    """One in-tree plugin.

    plugin: which is its provisioner's name as well. field: of PersistentVolume and of pods. driver: the CSI driver's
    name. gate: of the migration, CSIMigration<gate>. alpha, beta_off, beta_on, ga, gone: Kubernetes minor releases;
    empty for a step that never was. gone: its code left Kubernetes. translated: the translation library still knows it.
    """

    plugin: str
    field: str
    driver: str
    gate: str
    alpha: str
    beta_off: str
    beta_on: str
    ga: str
    gone: str
    translated: bool = True


PLUGINS: tuple[InTree, ...] = (
    InTree("kubernetes.io/aws-ebs", "awsElasticBlockStore", "ebs.csi.aws.com", "AWS", "1.14", "1.17", "1.23", "1.25", "1.27"),
    InTree("kubernetes.io/azure-disk", "azureDisk", "disk.csi.azure.com", "AzureDisk", "1.15", "1.19", "1.23", "1.24", "1.27"),
    InTree("kubernetes.io/azure-file", "azureFile", "file.csi.azure.com", "AzureFile", "1.15", "1.21", "1.24", "1.26", "1.30"),
    InTree("kubernetes.io/gce-pd", "gcePersistentDisk", "pd.csi.storage.gke.io", "GCE", "1.14", "1.17", "1.23", "1.25", "1.28"),
    InTree("kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", "OpenStack", "1.14", "", "1.18", "1.24", "1.26"),
    InTree("kubernetes.io/vsphere-volume", "vsphereVolume", "csi.vsphere.vmware.com", "vSphere", "1.18", "1.19", "1.25", "1.26", "1.30"),
    InTree("kubernetes.io/portworx-volume", "portworxVolume", "pxd.portworx.com", "Portworx", "1.23", "1.25", "1.31", "1.33", "1.36"),
    InTree("kubernetes.io/rbd", "rbd", "rbd.csi.ceph.com", "RBD", "1.23", "", "", "", "1.31", translated=False),
)  # fmt: skip

# What left Kubernetes without a CSI driver taking over: by field, the minor release in which its code was gone.
DEAD = {
    "cephfs": "1.31",
    "glusterfs": "1.26",
    "flocker": "1.25",
    "quobyte": "1.25",
    "storageos": "1.25",
    "scaleIO": "1.22",
}

# In-tree kinds that stay and have nothing to do with CSI: mounted by kubelets of either system, and by those of Linux alone
# (https://kubernetes.io/docs/concepts/storage/volumes/, https://kubernetes.io/docs/concepts/windows/intro/).
KEPT = ("local", "hostPath", "flexVolume")
LINUX_ONLY = ("nfs", "iscsi", "fc")

# Every field that names where a volume is, of PersistentVolumes and of pods, the most frequent first.
FIELDS = ("csi", *(known.field for known in PLUGINS), *DEAD, *LINUX_ONLY, *KEPT)
FIELD_SET = frozenset(FIELDS)

_BY_FIELD = {known.field: known for known in PLUGINS}


def of_field(name: str) -> InTree | None:
    """The in-tree plugin that a field of a volume belongs to, None when it is not one of these."""
    return _BY_FIELD.get(name)


def find(plugin: str | None) -> InTree | None:
    """What is known of an in-tree plugin, None when it is not one of these."""
    return next((known for known in PLUGINS if known.plugin == plugin), None)


def replaced_by(driver: str) -> InTree | None:
    """The in-tree plugin that a CSI driver, by its CSI name, took over from."""
    return next((known for known in PLUGINS if known.driver == driver), None)
