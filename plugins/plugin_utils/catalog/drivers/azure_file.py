# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure File: file.csi.azure.com.

Source: deploy/<release>/csi-azurefile-node-windows.yaml and csi-azurefile-node-windows-hostprocess.yaml, deploy/csi-azurefile-driver.yaml,
deploy/rbac-csi-azurefile-node.yaml, deploy/install-driver.sh, docs/driver-parameters.md and Makefile of
https://github.com/kubernetes-sigs/azurefile-csi-driver.
The manifests of a release name its images and its sidecars'.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, READ_ONLY_BY_KUBELET, Cell

_MCR = "mcr.microsoft.com/oss/kubernetes-csi"
_MCR2 = "mcr.microsoft.com/oss/v2/kubernetes-csi"


def _release(
    version: str, registrar: str, liveness_probe: str, host_registrar: str, driver: str = _MCR, sidecar: str = _MCR
) -> base.Release:
    name, sidecar = f"{driver}/azurefile-csi:v{version}", f"{sidecar}/csi-node-driver-registrar"
    return base.Release(
        version,
        base.map_images(name, f"{sidecar}:{registrar}", f"{_MCR}/livenessprobe:{liveness_probe}"),
        mode_images={"host_process": base.map_images(f"{name}-windows-hp", f"{sidecar}:{host_registrar}")},
    )


_NODE = "pkg/azurefile/nodeserver.go"
_BY_HOST = (
    "pkg/mounter/safe_mounter_windows.go SMBMount",
    "maps the share on the host, which does not resolve names of Services",
)

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    **capability.repeat_answer(Cell(True, "pkg/azurefile/controllerserver.go volumeCaps"), *capability.ACCESS_MODES),
    capability.BLOCK: (NO_BLOCK,),
    # fsType of the volume is not read; that of its attributes is evaluated as its protocol.
    **capability.repeat_answer(
        Cell(True, f"{_NODE} NodeStageVolume"), "file system *", "protocol smb", "protocol cifs"
    ),
    # Whatever the protocol, its mounter on Windows makes an SMB mapping.
    "protocol nfs": (
        Cell(False, "pkg/mounter/safe_mounter_windows.go SMBMount", "mounts shares by SMB only on Windows"),
    ),
    "protocol *": (Cell(False, f"{_NODE} NodeStageVolume", "mounts no disk images on Windows"),),
    capability.CLUSTER_NAME: (Cell(False, *_BY_HOST),),
    capability.READ_ONLY: (Cell(True, READ_ONLY_BY_KUBELET),),
    capability.INLINE: (Cell(True, f"{_NODE} NodePublishVolume"),),
    capability.EXPANSION: (Cell(True, "pkg/azurefile/controllerserver.go ControllerExpandVolume"),),
}

_AUDIENCE = "api://AzureADTokenExchange"
_CSI_DRIVER = {
    "attachRequired": False,
    "podInfoOnMount": True,
    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
}

DRIVER = base.Driver(
    key="azure_file",
    title="Azure File",
    name="file.csi.azure.com",
    namespace="kube-system",
    daemonset="csi-azurefile-node-win",
    container="azurefile",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="Azure File CSI reaches the host through csi-proxy in every release",
            template="azure_file_csi_proxy.yaml.j2",
            pipes=("csi-proxy-filesystem-v1", "csi-proxy-smb-v1"),
            beta_pipes=("csi-proxy-filesystem-v1beta1", "csi-proxy-smb-v1beta1"),
            ports={"health": 29613, "metrics": 29615},
            liveness=base.build_probe(delay=60, timeout=60, period=60, failures=5),
            min_kubernetes="1.21",
            notes=(
                "in this mode a share's global mapping stays on the node after the last unmount, and there are no volume"
                " statistics",
            ),
            resources={
                "driver": base.build_resources("10m", "40Mi", "200Mi"),
                "registrar": base.build_resources("30m", "40Mi", "150Mi"),
                "liveness_probe": base.build_resources("10m", "40Mi", "150Mi"),
            },
        ),
        base.ModeRule(
            mode="host_process",
            why="Azure File CSI has a HostProcess mode from 1.28.0 on",
            first="1.28.0",
            default_from="1.30.5",
            template="azure_file_host_process.yaml.j2",
            ports={"metrics": 29615},
            min_kubernetes="1.23",
            min_containerd="1.6",
            any_windows=True,
            resources={
                "driver": base.build_resources("10m", "40Mi", "600Mi"),
                "registrar": base.build_resources("30m", "40Mi", "150Mi"),
            },
        ),
    ),
    releases=(
        _release("1.29.5", "v2.8.0", "v2.10.0", "v2.8.0"),
        _release("1.30.5", "v2.12.0", "v2.13.0", "v2.12.0"),
        _release("1.31.0", "v2.12.0", "v2.14.0", "v2.12.0"),
        _release("1.32.1", "v2.13.0", "v2.15.0", "v2.13.0"),
        _release("1.33.3", "v2.13.0", "v2.15.0", "v2.13.0", sidecar=_MCR2),
        _release("1.34.1", "v2.13.0", "v2.15.0", "v2.15.0", driver=_MCR2, sidecar=_MCR2),
        _release("1.35.0", "v2.13.0", "v2.15.0", "v2.16.0", driver=_MCR2, sidecar=_MCR2),
        _release("1.35.6", "v2.13.0", "v2.15.0", "v2.17.0", driver=_MCR2, sidecar=_MCR2),
        _release("1.35.7", "v2.13.0", "v2.15.0", "v2.17.0", driver=_MCR2, sidecar=_MCR2),
    ),
    default_version="1.35.7",
    controller=base.Controller(
        deployments=("csi-azurefile-controller", "azure-file-csi-driver-controller"),
        container="azurefile",
        namespaces=("kube-system", "openshift-cluster-csi-drivers"),
        pointer="https://github.com/kubernetes-sigs/azurefile-csi-driver/blob/master/docs/install-azurefile-csi-driver.md",
    ),
    csi_driver={
        **_CSI_DRIVER,
        "requiresRepublish": True,
        "tokenRequests": [{"audience": _AUDIENCE, "expirationSeconds": 3600}],
    },
    # deploy/<release>/csi-azurefile-driver.yaml
    csi_driver_before={
        "1.31.0": _CSI_DRIVER,
        "1.35.0": {**_CSI_DRIVER, "tokenRequests": [{"audience": _AUDIENCE}]},
    },
    cluster_rules=(
        base.build_rule(groups=("",), resources=("secrets",), verbs=("get",)),
        base.build_rule(groups=("",), resources=("pods",), verbs=("get",)),
        base.build_rule(groups=("",), resources=("nodes",), verbs=("get",)),
        base.build_rule(groups=("node.k8s.io",), resources=("runtimeclasses",), verbs=("get", "list")),
    ),
    storage_class=base.StorageClass(name="azure-file-csi-windows", binding_mode="Immediate"),
    in_tree="kubernetes.io/azure-file",
    # resource group, account and share (pkg/azurefile/azurefile.go, GetFileShareInfo), unless an attribute names the share
    handle=r"[^#]*#[^#]*#[^#]+(?:#.*)?",
    capabilities=_CAPABILITIES,
    windows_builds=("17763", "20348"),
    avoid_nodes={"type": ("virtual-kubelet",)},
    platform_daemonsets={"aks": "csi-azurefile-node-win"},
    prerequisites=(
        "credentials of the controller: Secret azure-cloud-provider in kube-system, key cloud-config, or the file that"
        " AZURE_CREDENTIAL_FILE names",
        "credentials of the claim: Secret azure-storage-account-<account>-secret with azurestorageaccountname and"
        " azurestorageaccountkey; the controller creates it for volumes that it provisions",
        "nodes that reach the storage account on port 445; Windows mounts by SMB with an account key only",
    ),
    advisories=(
        base.Advisory(
            "CVE-2024-3744",
            fixed=("1.29.4", "1.30.1"),
            effect="writes tokens of ServiceAccounts to its log",
            source="https://github.com/kubernetes/kubernetes/issues/124759",
        ),
    ),
    known_issues=(
        base.KnownIssue(
            "host_process",
            latest="1.35.7",
            effect=base.STALE_MAPPING,
            source="https://github.com/kubernetes-sigs/azurefile-csi-driver/pull/3416",
            workaround=base.REMOVE_MAPPING,
        ),
    ),
)
