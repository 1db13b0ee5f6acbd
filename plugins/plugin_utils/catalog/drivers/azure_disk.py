# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Disk: disk.csi.azure.com.

Source: deploy/<release>/csi-azuredisk-node-windows.yaml and csi-azuredisk-node-windows-hostprocess.yaml, deploy/csi-azuredisk-driver.yaml,
deploy/rbac-csi-azuredisk-node.yaml, deploy/install-driver.sh, docs/driver-parameters.md and Makefile of
https://github.com/kubernetes-sigs/azuredisk-csi-driver.
The manifests of a release name its images and its sidecars'.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, READ_ONLY_BY_KUBELET, Cell

_MCR = "mcr.microsoft.com/oss/kubernetes-csi"
_MCR2 = "mcr.microsoft.com/oss/v2/kubernetes-csi"


def _release(
    version: str, registrar: str, liveness_probe: str, host_registrar: str, driver: str = _MCR
) -> base.Release:
    name = f"{driver}/azuredisk-csi:v{version}"
    return base.Release(
        version,
        base.map_images(name, registrar, f"{_MCR}/livenessprobe:{liveness_probe}"),
        mode_images={"host_process": base.map_images(f"{name}-windows-hp", host_registrar)},
    )


def _build_old_release(version: str, registrar: str, liveness_probe: str) -> base.Release:
    image = f"{_MCR}/csi-node-driver-registrar:{registrar}"
    return _release(version, image, liveness_probe, image)


def _build_new_release(version: str, host_registrar: str) -> base.Release:
    name = f"{_MCR2}/csi-node-driver-registrar"
    return _release(version, f"{name}:v2.13.0", "v2.15.0", f"{name}:{host_registrar}", driver=_MCR2)


_UTILS = "pkg/azureutils/azure_disk_utils.go"
_BLOCK_ONLY = "shares a disk between nodes as a raw block volume only"

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    **capability.repeat_answer(Cell(True, f"{_UTILS} IsValidVolumeCapabilities"), "ReadWriteOnce", "ReadWriteOncePod"),
    **capability.repeat_answer(
        Cell(False, f"{_UTILS} IsValidVolumeCapabilities", _BLOCK_ONLY), "ReadOnlyMany", "ReadWriteMany"
    ),
    capability.BLOCK: (NO_BLOCK,),
    "file system": (Cell(True, "pkg/azuredisk/nodeserver.go getDefaultFsType"),),
    "file system ntfs": (Cell(True, "pkg/azuredisk/nodeserver.go NodeStageVolume"),),
    # Its mounters on Windows do not read the name; pull request 3779 says so and warns.
    "file system *": (
        Cell(
            None,
            "pkg/mounter/safe_mounter_windows.go FormatAndMount",
            "ignores that name on Windows, and formats an unformatted disk with NTFS",
        ),
    ),
    capability.READ_ONLY: (Cell(True, READ_ONLY_BY_KUBELET),),
    capability.INLINE: (Cell(False, "deploy/csi-azuredisk-driver.yaml", "does not support inline volumes"),),
    capability.EXPANSION: (Cell(True, "pkg/azuredisk/azure_common_windows.go resizeVolume"),),
}

DRIVER = base.Driver(
    key="azure_disk",
    title="Azure Disk",
    name="disk.csi.azure.com",
    namespace="kube-system",
    daemonset="csi-azuredisk-node-win",
    container="azuredisk",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="Azure Disk CSI reaches the host through csi-proxy in every release",
            template="azure_disk_csi_proxy.yaml.j2",
            pipes=("csi-proxy-filesystem-v1", "csi-proxy-disk-v1", "csi-proxy-volume-v1"),
            beta_pipes=("csi-proxy-filesystem-v1beta1", "csi-proxy-disk-v1beta2", "csi-proxy-volume-v1beta2"),
            ports={"health": 29603},
            liveness=base.build_probe(delay=60, timeout=60, period=60, failures=5),
            min_kubernetes="1.21",
            notes=("fixes for NVMe disks are in the HostProcess mode only (azuredisk-csi-driver issue 2661)",),
            resources={
                "driver": base.build_resources("10m", "40Mi", "600Mi"),
                "registrar": base.build_resources("30m", "40Mi", "150Mi"),
                "liveness_probe": base.build_resources("10m", "40Mi", "150Mi"),
            },
        ),
        base.ModeRule(
            mode="host_process",
            why="Azure Disk CSI has a HostProcess mode from 1.28.0 on",
            first="1.28.0",
            default_from="1.30.4",
            template="azure_disk_host_process.yaml.j2",
            ports={"metrics": 29605},
            min_kubernetes="1.23",
            min_containerd="1.6",
            any_windows=True,
            resources={
                "driver": base.build_resources("10m", "40Mi", "1000Mi"),
                "registrar": base.build_resources("30m", "40Mi", "150Mi"),
            },
        ),
    ),
    releases=(
        _build_old_release("1.28.9", "v2.8.0", "v2.10.0"),
        _build_old_release("1.29.7", "v2.12.0", "v2.13.0"),
        _build_old_release("1.31.1", "v2.12.0", "v2.14.0"),
        _build_old_release("1.32.0", "v2.13.0", "v2.15.0"),
        _build_old_release("1.33.1", "v2.13.0", "v2.15.0"),
        _build_new_release("1.34.2", "v2.16.0"),
        _build_new_release("1.34.3", "v2.16.0"),
        _build_new_release("1.34.4", "v2.16.0"),
        _build_new_release("1.34.5", "v2.17.0"),
    ),
    default_version="1.34.5",
    controller=base.Controller(
        deployments=("csi-azuredisk-controller", "azure-disk-csi-driver-controller"),
        container="azuredisk",
        namespaces=("kube-system", "openshift-cluster-csi-drivers"),
        pointer="https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/master/docs/install-azuredisk-csi-driver.md",
    ),
    csi_driver={"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "File"},
    cluster_rules=(
        base.build_rule(groups=("",), resources=("secrets",), verbs=("get",)),
        base.build_rule(groups=("",), resources=("nodes",), verbs=("get", "patch")),
        base.build_rule(groups=("storage.k8s.io",), resources=("csinodes",), verbs=("get",)),
        base.build_rule(groups=("storage.k8s.io",), resources=("volumeattachments",), verbs=("get", "list", "watch")),
    ),
    storage_class=base.StorageClass(name="azure-disk-csi-windows", parameters={"fsType": "ntfs"}),
    topology_keys=("topology.disk.csi.azure.com/zone", "topology.kubernetes.io/zone"),
    in_tree="kubernetes.io/azure-disk",
    windows_builds=("17763", "20348"),
    fstypes=("ntfs", ""),
    # Source: pkg/azureutils/azure_disk_utils.go GetInfoFromURI; pkg/azureconstants/azure_constants.go ManagedDiskPathRE.
    handle=r"(?i:/subscriptions/(?P<account>[^/]+)/resourceGroups/[^/]+/providers/Microsoft\.Compute/disks/[^/]+)",
    # Sources: https://learn.microsoft.com/azure/virtual-machines/disks-types and docs/driver-parameters.md.
    disk_types=base.DiskTypes(("skuname", "storageaccounttype"), "(?i:Premium.*|UltraSSD_.*)"),
    capabilities=_CAPABILITIES,
    avoid_nodes={"type": ("virtual-kubelet",)},
    platform_daemonsets={"aks": "csi-azuredisk-node-win"},
    prerequisites=(
        "credentials of the controller: Secret azure-cloud-provider in kube-system, key cloud-config, or the file that"
        " AZURE_CREDENTIAL_FILE names",
        "the instance metadata service, reached from the pod, or the node's zone and type labels"
        " (--get-node-info-from-labels)",
    ),
)
