# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SMB shares: smb.csi.k8s.io.

Source: deploy/<release>/csi-smb-node-windows.yaml, csi-smb-node-windows-hostprocess.yaml and rbac-csi-smb.yaml,
deploy/csi-smb-driver.yaml, docs/driver-parameters.md and Makefile of https://github.com/kubernetes-csi/csi-driver-smb.
Upstream's chart defaults to HostProcess from 1.17.0 on; its install-driver.sh csi-proxy.
Releases whose images can be pulled: registry.k8s.io/images/k8s-staging-sig-storage/images.yaml of kubernetes/k8s.io, whose sidecars
https://github.com/cert-manager/csi-driver/pull/712 pulls too; 1.20.1 and 1.20.3 by https://github.com/Siemens-Healthineers/K2s pull
requests 2314 and 3074, which pull their tag for Linux; upstream's Makefile puts the images for Windows on its manifest list. No such
source is known for 1.20.0 and 1.20.2, and none for the tag -windows-hp of 1.20.1 and 1.20.3.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, READ_ONLY_BY_KUBELET, Cell

_PLUGIN = "registry.k8s.io/sig-storage/smbplugin"
_SIG = "registry.k8s.io/sig-storage"


def _release(
    version: str, registrar: str, liveness_probe: str, host_registrar: str = "", unproven: tuple[str, ...] = ()
) -> base.Release:
    registrar, probe = f"{_SIG}/csi-node-driver-registrar:{registrar}", f"{_SIG}/livenessprobe:{liveness_probe}"
    host = (
        {"host_process": base.map_images(f"{_PLUGIN}:v{version}-windows-hp", host_registrar)} if host_registrar else {}
    )
    images = base.map_images(f"{_PLUGIN}:v{version}", registrar, probe)
    return base.Release(version, images, mode_images=host, unproven_modes=unproven)


_MCR = "mcr.microsoft.com/oss/kubernetes-csi/csi-node-driver-registrar"

_NODE = "pkg/smb/nodeserver.go"

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    **capability.repeat_answer(Cell(True, "pkg/smb/smb.go Run"), *capability.ACCESS_MODES),
    capability.BLOCK: (NO_BLOCK,),
    "file system *": (Cell(True, f"{_NODE} NodeStageVolume"),),
    capability.CLUSTER_NAME: (
        Cell(
            False,
            "deploy/example/e2e_usage.md; pkg/mounter/safe_mounter_windows.go SMBMount",
            "maps the share on the host, which does not resolve names of Services",
        ),
    ),
    capability.NO_SERVER: (Cell(False, f"{_NODE} NodeStageVolume", "refuses a volume without attribute source"),),
    # Guest logins included: on Windows these have no mount options, and so no credential.
    capability.NO_SECRET: (
        Cell(
            False,
            f"{_NODE} NodeStageVolume; pkg/mounter/safe_mounter_windows.go SMBMount",
            "maps no share on Windows without a user name and a password",
        ),
    ),
    capability.READ_ONLY: (Cell(True, READ_ONLY_BY_KUBELET),),
    capability.INLINE: (
        Cell(False, f"{_NODE} NodePublishVolume", "supports inline volumes from 1.17.0", last="1.16.99"),
        Cell(True, f"{_NODE} NodePublishVolume", first="1.17.0"),
    ),
    # A share has no size; from 1.17.0 on its controller answers so (pkg/smb/controllerserver.go ControllerExpandVolume).
    capability.EXPANSION: (
        Cell(False, "pkg/smb/smb.go NewDriver", "supports expansion from 1.17.0", last="1.16.99"),
        Cell(True, "pkg/smb/smb.go NewDriver", first="1.17.0"),
    ),
}

DRIVER = base.Driver(
    key="smb",
    title="SMB",
    name="smb.csi.k8s.io",
    namespace="kube-system",
    daemonset="csi-smb-node-win",
    container="smb",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="SMB CSI reaches the host through csi-proxy in every release",
            template="smb_csi_proxy.yaml.j2",
            pipes=("csi-proxy-filesystem-v1", "csi-proxy-smb-v1"),
            beta_pipes=("csi-proxy-filesystem-v1beta1", "csi-proxy-smb-v1beta1"),
            ports={"health": 29643},
            liveness=base.build_probe(delay=30, timeout=10, period=30, failures=5),
            min_kubernetes="1.21",
            resources={
                "driver": base.build_resources("10m", "40Mi", "200Mi"),
                "registrar": base.build_resources("10m", "40Mi", "100Mi"),
                "liveness_probe": base.build_resources("10m", "40Mi", "100Mi"),
            },
            notes=("reference counters lie below C:\\csi, so the plugin directory is mounted exactly there",),
        ),
        base.ModeRule(
            mode="host_process",
            why="SMB CSI has a HostProcess mode from 1.17.0 on",
            first="1.17.0",
            default_from="1.17.0",
            template="smb_host_process.yaml.j2",
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
        _release("1.14.0", "v2.11.1", "v2.13.1"),
        _release("1.15.0", "v2.11.1", "v2.13.1"),
        _release("1.16.0", "v2.11.1", "v2.13.1"),
        _release("1.17.0", "v2.13.0", "v2.15.0", f"{_MCR}:v2.13.0"),
        _release("1.18.0", "v2.13.0", "v2.15.0", f"{_MCR}:v2.13.0"),
        _release("1.19.0", "v2.15.0", "v2.16.0", f"{_MCR}:v2.15.0"),
        _release("1.19.1", "v2.15.0", "v2.16.0", f"{_MCR}:v2.15.0"),
        _release("1.20.1", "v2.15.0", "v2.16.0", f"{_SIG}/csi-node-driver-registrar:v2.16.0", ("host_process",)),
        _release("1.20.3", "v2.15.0", "v2.16.0", f"{_SIG}/csi-node-driver-registrar:v2.17.0", ("host_process",)),
    ),
    default_version="1.20.3",
    controller=base.Controller(
        deployments=("csi-smb-controller", "smb-csi-driver-controller"),
        container="smb",
        namespaces=("kube-system", "openshift-cluster-csi-drivers"),
        pointer="https://github.com/kubernetes-csi/csi-driver-smb#install-driver-on-a-kubernetes-cluster",
    ),
    csi_driver={
        "attachRequired": False,
        "podInfoOnMount": True,
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    },
    # deploy/<release>/csi-smb-driver.yaml
    csi_driver_before={"1.17.0": {"attachRequired": False, "podInfoOnMount": True}},
    cluster_rules=(base.build_rule(groups=("",), resources=("secrets",), verbs=("get",)),),
    storage_class=base.StorageClass(
        name="smb-csi-windows",
        binding_mode="Immediate",
        allow_expansion=False,
        required=("source",),
    ),
    windows_builds=("17763", "20348"),
    capabilities=_CAPABILITIES,
    prerequisites=(
        "credentials of the claim: a Secret with username, password and, if used, domain, named by the StorageClass or volume",
        "an SMB server that the nodes reach on port 445; names below svc.cluster.local do not resolve there",
        "the root of a share as source, and one credential for each server on a node (Windows error 1219)",
    ),
    # pkg/mounter/refcounter_windows.go; the csi-proxy form has its C:\\csi in the plugin directory and would count anew.
    fixed_modes=("csi_proxy",),
    advisories=(
        base.Advisory(
            "CVE-2026-3865",
            fixed=("1.20.1",),
            effect="lets a volume's subDir leave its share's directory, and may delete other directories there",
            source="https://github.com/kubernetes/kubernetes/issues/138319",
        ),
    ),
    known_issues=(
        base.KnownIssue(
            "host_process",
            latest="1.20.3",
            effect=base.STALE_MAPPING,
            source="https://github.com/kubernetes-csi/csi-driver-smb/pull/1219",
            workaround=base.REMOVE_MAPPING,
        ),
    ),
)
