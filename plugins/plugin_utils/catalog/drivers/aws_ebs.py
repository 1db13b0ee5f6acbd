# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AWS EBS: ebs.csi.aws.com.

Source: deploy/kubernetes/base/node-windows.yaml, csidriver.yaml and clusterrole-csi-node.yaml,
charts/aws-ebs-csi-driver/templates/_node-windows.tpl and Makefile of https://github.com/kubernetes-sigs/aws-ebs-csi-driver.
The manifests at a release's own tag still name the release before; images are those of the chart that ships the release
(its values.yaml at the tag helm-chart-aws-ebs-csi-driver-2.N). Upstream's preStop hook calls a path that the Windows image has not, so it is
left out.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, READ_ONLY_BY_KUBELET, Cell

_SIDECARS = "public.ecr.aws/csi-components"
_SIDECAR = base.build_resources("10m", "150Mi", "150Mi")
_RESOURCES = {"driver": base.build_resources("10m", "40Mi", "256Mi"), "registrar": _SIDECAR, "liveness_probe": _SIDECAR}
_HEALTH = {"health": 9808, "registrar_health": 9809}
# Upstream keeps the numbers there; as a HostProcess container they are the node's, where vSphere has 9808.
_HOST_HEALTH = {"health": 9818, "registrar_health": 9819}
_LIVENESS = base.build_probe(delay=10, timeout=3, period=10, failures=5)
_READINESS = base.build_probe(delay=0, timeout=3, period=5, failures=3)
# Upstream leaves the count of failures to the API's default.
_REGISTRAR_LIVENESS = base.build_probe(delay=30, timeout=15, period=90, failures=3)


# Sidecars of charts before 2.45.0.
_DISTRO = "public.ecr.aws/eks-distro/kubernetes-csi"


def _build_release(version: str, registrar: str, liveness_probe: str) -> base.Release:
    driver = f"public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v{version}"
    return base.Release(version, base.map_images(driver, registrar, liveness_probe))


def _build_old_release(version: str, registrar: str, probe: str, distro: str) -> base.Release:
    registrar = f"{_DISTRO}/node-driver-registrar:{registrar}-eks-{distro}"
    return _build_release(version, registrar, f"{_DISTRO}/livenessprobe:{probe}-eks-{distro}")


def _release(version: str, registrar: str, probe: str) -> base.Release:
    return _build_release(
        version, f"{_SIDECARS}/csi-node-driver-registrar:{registrar}", f"{_SIDECARS}/livenessprobe:{probe}"
    )


_MOUNTER = "pkg/mounter/mount_windows_proxyV1.go FormatAndMountSensitiveWithFormatOptions"
_NAME_NOT_READ = "ignores that name on Windows, and formats an unformatted disk with NTFS"

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    **capability.repeat_answer(
        Cell(True, "pkg/driver/controller.go isValidCapability"), "ReadWriteOnce", "ReadWriteOncePod"
    ),
    "ReadOnlyMany": (Cell(False, "pkg/driver/controller.go isValidCapability", "supports ReadWriteOnce only"),),
    "ReadWriteMany": (
        Cell(False, "pkg/driver/controller.go isValidCapability", "supports that for raw block volumes only"),
    ),
    capability.BLOCK: (NO_BLOCK,),
    "file system ntfs": (Cell(True, "pkg/driver/node.go ValidFSTypes"),),
    # It takes these names, formats a disk that has no file system with NTFS, and formats one of Linux again: its mounter
    # on Windows does not read the name. Upstream's own tests leave them out on Windows (Makefile, GINKGO_WINDOWS_SKIP).
    "file system": (Cell(None, _MOUNTER, "reads that as ext4, and formats an unformatted disk with NTFS"),),
    **capability.repeat_answer(
        Cell(None, _MOUNTER, _NAME_NOT_READ), "file system ext3", "file system ext4", "file system xfs"
    ),
    "file system *": (Cell(False, "pkg/driver/node.go NodeStageVolume", "does not support that file system"),),
    capability.READ_ONLY: (Cell(True, READ_ONLY_BY_KUBELET),),
    capability.INLINE: (Cell(False, "deploy/kubernetes/base/csidriver.yaml", "does not support inline volumes"),),
    capability.EXPANSION: (Cell(True, "pkg/mounter/mount_windows.go Resize"),),
}

DRIVER = base.Driver(
    key="aws_ebs",
    title="AWS EBS",
    name="ebs.csi.aws.com",
    namespace="kube-system",
    daemonset="ebs-csi-node-windows",
    container="ebs-plugin",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="AWS EBS CSI reaches the host through csi-proxy in every release",
            default_from="1.6.0",
            template="aws_ebs.yaml.j2",
            pipes=("csi-proxy-disk-v1", "csi-proxy-volume-v1", "csi-proxy-filesystem-v1"),
            ports=_HEALTH,
            liveness=_LIVENESS,
            readiness=_READINESS,
            registrar_liveness=_REGISTRAR_LIVENESS,
            resources=_RESOURCES,
        ),
        base.ModeRule(
            mode="host_process",
            why="AWS EBS CSI has a HostProcess mode from 1.31.0 on",
            first="1.31.0",
            template="aws_ebs.yaml.j2",
            ports=_HOST_HEALTH,
            liveness=_LIVENESS,
            readiness=_READINESS,
            registrar_liveness=_REGISTRAR_LIVENESS,
            min_kubernetes="1.23",
            min_containerd="1.6",
            notes=(
                "upstream calls it alpha (CHANGELOG.md of kubernetes-sigs/aws-ebs-csi-driver, v1.31.0)",
                "upstream documents the HostProcess mode only in the chart's schema",
            ),
            resources=_RESOURCES,
            mounts_directories=True,
        ),
    ),
    releases=(
        _build_old_release("1.18.0", "v2.7.0", "v2.9.0", "1-26-7"),
        _build_old_release("1.24.1", "v2.9.0", "v2.11.0", "1-28-7"),
        _build_old_release("1.26.1", "v2.9.3", "v2.11.0", "1-29-2"),
        _build_old_release("1.31.0", "v2.10.1", "v2.12.0", "1-30-4"),
        _build_old_release("1.33.0", "v2.11.0", "v2.13.0", "1-30-10"),
        _build_old_release("1.39.0", "v2.13.0", "v2.14.0", "1-31-12"),
        _release("1.45.0", "v2.14.0-eksbuild.2", "v2.16.0-eksbuild.2"),
        _release("1.47.0", "v2.14.0-eksbuild.4", "v2.16.0-eksbuild.4"),
        _release("1.48.0", "v2.14.0-eksbuild.5", "v2.16.0-eksbuild.5"),
        _release("1.56.0", "v2.16.0-eksbuild.1", "v2.18.0-eksbuild.1"),
        _release("1.62.0", "v2.17.0-eksbuild.2", "v2.19.0-eksbuild.2"),
        _release("1.63.0", "v2.17.0-eksbuild.3", "v2.19.0-eksbuild.3"),
        _release("1.63.1", "v2.17.0-eksbuild.4", "v2.19.0-eksbuild.4"),
        _release("1.64.0", "v2.17.0-eksbuild.5", "v2.19.0-eksbuild.5"),
    ),
    default_version="1.64.0",
    controller=base.Controller(
        deployments=("ebs-csi-controller", "aws-ebs-csi-driver-controller"),
        container="ebs-plugin",
        namespaces=("kube-system", "openshift-cluster-csi-drivers"),
        pointer="https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/install.md",
    ),
    csi_driver={"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "File"},
    cluster_rules=(
        base.build_rule(groups=("storage.k8s.io",), resources=("volumeattachments",), verbs=("get", "list", "watch")),
        base.build_rule(groups=("",), resources=("nodes",), verbs=("get", "patch", "list", "watch")),
        base.build_rule(groups=("storage.k8s.io",), resources=("csinodes",), verbs=("get",)),
    ),
    storage_class=base.StorageClass(
        name="aws-ebs-csi-windows",
        parameters={"csi.storage.k8s.io/fstype": "ntfs", "type": "gp3"},
    ),
    max_unavailable="10%",
    topology_keys=("topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", "kubernetes.io/os"),
    in_tree="kubernetes.io/aws-ebs",
    windows_builds=("17763", "20348", "26100"),
    windows_since={"20348": "1.12.0", "26100": "1.56.0"},
    fstypes=("ntfs",),
    # Source: the ID that the API of EC2 gives a volume.
    handle=r"vol-[0-9A-Za-z]+",
    # Source: https://docs.aws.amazon.com/ebs/latest/userguide/provisioned-iops.html. More than 64,000 IOPS need the Nitro System.
    disk_types=base.DiskTypes(("type",), "io2"),
    capabilities=_CAPABILITIES,
    platform_daemonsets={"eks": "ebs-csi-node-windows"},
    avoid_nodes={"eks.amazonaws.com/compute-type": ("fargate", "auto", "hybrid")},
    prerequisites=(
        "credentials of the controller: Secret aws-secret with key_id and access_key, or a role for its ServiceAccount",
        "instance metadata with a hop limit of 2 or more, or nodes with provider id and the labels of instance type, region"
        " and zone",
        "the service defragsvc not disabled on Windows, or no volume grows there (aws-ebs-csi-driver issue 2877)",
    ),
)
