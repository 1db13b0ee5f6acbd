# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volume plugins that a CSI driver replaces, and in which Kubernetes release each step was taken.

Source: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ and its page of removed gates,
pkg/features/kube_features.go of https://github.com/kubernetes/kubernetes, plugins of https://github.com/kubernetes/csi-translation-lib.
"""

from __future__ import annotations

from dataclasses import dataclass

from .versions import Version, parse


@dataclass(frozen=True, slots=True)
class InTree:
    """One in-tree plugin.

    plugin: which is its provisioner's name as well. field: of PersistentVolume and of pods. driver: the CSI driver's
    name. gate: of the migration, CSIMigration<gate>. beta_on, ga, removed: Kubernetes minor releases;
    empty for a step that never was. removed: its code left Kubernetes. on_windows: that code mounted volumes on Windows.
    locked: from which on the gate cannot be switched off, where that is not ga. broken: kubelet releases, "1.29.0", that
    do not mount its volumes, with the issue. provisioner, attacher: the first release of each sidecar whose translation
    library knows it (go.mod of https://github.com/kubernetes-csi/external-provisioner and external-attacher).
    """

    plugin: str
    field: str
    driver: str
    gate: str
    beta_on: str
    ga: str
    removed: str
    on_windows: bool = True
    locked: str = ""
    broken: tuple[tuple[str, str], ...] = ()
    provisioner: str = "1.5.0"
    attacher: str = "2.1.0"

    def requires_csi(self, version: Version) -> bool:
        """Whether Kubernetes of that version has no way but CSI for it."""
        first = self.locked or self.ga or self.removed
        return version.minor >= parse(first).minor or version.minor >= parse(self.removed).minor

    def is_migrated_by_default(self, version: Version) -> bool:
        """Whether that version of Kubernetes migrates it by default."""
        first = self.beta_on or self.ga
        return bool(first) and version.minor >= parse(first).minor

    def find_issue(self, version: Version) -> str:
        """The known issue by which kubelets of exactly this release do not mount its volumes, empty when there is none."""
        text = ".".join(str(number) for number in version.release)
        return dict(self.broken).get(text, "")


PLUGINS: tuple[InTree, ...] = (
    InTree("kubernetes.io/aws-ebs", "awsElasticBlockStore", "ebs.csi.aws.com", "AWS", "1.23", "1.25", "1.27"),
    InTree("kubernetes.io/azure-disk", "azureDisk", "disk.csi.azure.com", "AzureDisk", "1.23", "1.24", "1.27"),
    InTree(
        "kubernetes.io/azure-file", "azureFile", "file.csi.azure.com", "AzureFile", "1.24", "1.26", "1.30",
        locked="1.27", broken=(("1.32.0", "https://github.com/Azure/AKS/issues/4947"),),
    ),
    InTree("kubernetes.io/gce-pd", "gcePersistentDisk", "pd.csi.storage.gke.io", "GCE", "1.23", "1.25", "1.28"),
    InTree(
        "kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", "OpenStack", "1.18", "1.24", "1.26", on_windows=False,
    ),
    InTree(
        "kubernetes.io/vsphere-volume", "vsphereVolume", "csi.vsphere.vmware.com", "vSphere", "1.25", "1.26", "1.30",
        locked="1.29", broken=(("1.29.0", "https://github.com/kubernetes/kubernetes/issues/122341"),),
        provisioner="2.0.0", attacher="3.0.0",
    ),
    InTree(
        "kubernetes.io/portworx-volume", "portworxVolume", "pxd.portworx.com", "Portworx", "1.31", "1.33", "1.36",
        on_windows=False, provisioner="3.2.0", attacher="3.4.0",
    ),
)  # fmt: skip

# In-tree kinds that have nothing to do with CSI: mounted by kubelets of either system, and by those of Linux alone
# (https://kubernetes.io/docs/concepts/storage/volumes/, https://kubernetes.io/docs/concepts/windows/intro/).
KEPT = ("local", "hostPath", "flexVolume")
LINUX_ONLY = ("nfs", "iscsi", "fc", "rbd", "cephfs", "glusterfs", "flocker", "quobyte", "storageos", "scaleIO")

# Every field that names where a volume is, of PersistentVolumes and of pods, the most frequent first.
FIELDS = ("csi", *(plugin.field for plugin in PLUGINS), *LINUX_ONLY, *KEPT)
FIELD_SET = frozenset(FIELDS)
# Kinds that a pod can name itself, without documentation that Windows mounts them.
UNSURE = frozenset({"image", "gitRepo", "photonPersistentDisk"})
EVALUATED = FIELD_SET | UNSURE

_BY_FIELD = {plugin.field: plugin for plugin in PLUGINS}


def find_by_field(name: str) -> InTree | None:
    """The in-tree plugin that a field of a volume belongs to, None when it is not one of these."""
    return _BY_FIELD.get(name)


def find_by_name(plugin: str | None) -> InTree | None:
    return next((entry for entry in PLUGINS if entry.plugin == plugin), None)


# How many minor releases a kubelet may be older than the API server, and the one from which on it is so.
SKEW = (("1.28", 3), ("1.0", 2))


def find_allowed_skew(version: Version) -> int:
    """How many minor releases kubelets may be behind an API server of that version."""
    return next(count for first, count in SKEW if version.minor >= parse(first).minor)
