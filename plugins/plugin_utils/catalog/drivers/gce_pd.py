# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GCE Persistent Disk: pd.csi.storage.gke.io.

Source: deploy/kubernetes/base/node_windows/node.yaml, base/controller/v1_csidriver.yaml, images/stable-master/image.yaml, README.md and
Makefile of https://github.com/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver. Upstream gives the pod a priority
class of its own, which has to be made first; ours is system-node-critical as with every other driver. Its role for Windows
holds only a PodSecurityPolicy rule; newer releases read their Node at start, so ours may.
Releases whose images can be pulled: registry.k8s.io/images/k8s-staging-cloud-provider-gcp/images.yaml of kubernetes/k8s.io, and 1.26.0
by https://github.com/kubernetes/k8s.io/pull/9586. No such entry is known for 1.18.0 to 1.21.6, 1.23.3 to 1.25.0, and 1.26.4.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, Cell

_PLUGIN = "registry.k8s.io/cloud-provider-gcp/gcp-compute-persistent-disk-csi-driver"


def _release(version: str, registrar: str) -> base.Release:
    registrar = f"registry.k8s.io/sig-storage/csi-node-driver-registrar:{registrar}"
    return base.Release(version, base.map_images(f"{_PLUGIN}:v{version}", registrar))


_UTILS = "pkg/gce-pd-csi-driver/utils.go"
_ATTACHED_READ_ONLY = "attaches the disk read-only, and whether Windows mounts a read-only disk is unknown"

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    **capability.repeat_answer(Cell(True, f"{_UTILS} validateAccessMode"), "ReadWriteOnce", "ReadWriteOncePod"),
    # The disk is attached read-only then; whether Windows mounts NTFS from one is undocumented.
    "ReadOnlyMany": (Cell(None, f"{_UTILS} validateAccessMode", _ATTACHED_READ_ONLY),),
    "ReadWriteMany": (Cell(False, f"{_UTILS} validateVolumeCapability", "supports that for raw block volumes only"),),
    capability.BLOCK: (NO_BLOCK,),
    "file system": (Cell(True, "pkg/gce-pd-csi-driver/node.go getDefaultFsType"),),
    "file system ntfs": (Cell(True, "pkg/gce-pd-csi-driver/utils_windows.go formatAndMount"),),
    "file system *": (
        Cell(False, "pkg/gce-pd-csi-driver/utils_windows.go formatAndMount", "mounts NTFS only on Windows"),
    ),
    capability.READ_ONLY: (
        Cell(None, "pkg/gce-pd-csi-driver/controller.go executeControllerPublishVolume", _ATTACHED_READ_ONLY),
    ),
    capability.INLINE: (
        Cell(False, "deploy/kubernetes/base/controller/v1_csidriver.yaml", "does not support inline volumes"),
    ),
    capability.EXPANSION: (Cell(True, "pkg/resizefs/resizefs_windows.go Resize"),),
}

DRIVER = base.Driver(
    key="gce_pd",
    title="GCE PD",
    name="pd.csi.storage.gke.io",
    namespace="gce-pd-csi-driver",
    daemonset="csi-gce-pd-node-win",
    container="gce-pd-driver",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="GCE PD CSI reaches the host through csi-proxy in every release and has no HostProcess mode",
            default_from="1.0.0",
            template="gce_pd_csi_proxy.yaml.j2",
            pipes=("csi-proxy-volume-v1", "csi-proxy-filesystem-v1", "csi-proxy-disk-v1"),
            beta_pipes=("csi-proxy-volume-v1beta1", "csi-proxy-filesystem-v1beta1", "csi-proxy-disk-v1beta2"),
            min_kubernetes="1.19",
        ),
    ),
    releases=(
        _release("1.13.0", "v2.7.0"),
        _release("1.15.2", "v2.9.3"),
        _release("1.16.1", "v2.9.3"),
        _release("1.17.15", "v2.9.3"),
        _release("1.22.1", "v2.13.0"),
        _release("1.26.0", "v2.13.0"),
    ),
    default_version="1.26.0",
    controller=base.Controller(
        deployments=("csi-gce-pd-controller", "gcp-pd-csi-driver-controller"),
        container="gce-pd-driver",
        namespaces=("gce-pd-csi-driver", "openshift-cluster-csi-drivers", "kube-system"),
        pointer="https://github.com/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/blob/master/docs/kubernetes/user-guides/driver-install.md",
    ),
    csi_driver={"attachRequired": True, "podInfoOnMount": False},
    cluster_rules=(base.build_rule(groups=("",), resources=("nodes",), verbs=("get", "list")),),
    storage_class=base.StorageClass(
        name="gce-pd-csi-windows",
        parameters={"csi.storage.k8s.io/fstype": "ntfs", "type": "pd-balanced"},
    ),
    topology_keys=("topology.gke.io/zone",),
    in_tree="kubernetes.io/gce-pd",
    windows_builds=("17763", "20348"),
    windows_since={"20348": "1.18.0"},
    fstypes=("ntfs",),
    # Source: pkg/common/utils.go VolumeIDToKey.
    handle=r"projects/(?P<account>[^/]+)/(?:zones/(?P<zone>[^/]+)|regions/(?P<region>[^/]+))/disks/[^/]+",
    default_file_system="ext4",
    # Sources: https://cloud.google.com/compute/docs/disks/hyperdisks#machine-type-support and README.md, StorageClass parameters.
    disk_types=base.DiskTypes(("type",), "(?i:pd-.*|hyperdisk-.*)", default="pd-standard"),
    capabilities=_CAPABILITIES,
    platform_daemonsets={"gke": "pdcsi-node-windows"},
    prerequisites=(
        "credentials of the controller: Secret cloud-sa, key cloud-sa.json",
        "the metadata server http://metadata.google.internal, reached from the pod network",
    ),
)
