# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vSphere: csi.vsphere.vmware.com.

Source: manifests/vanilla/vsphere-csi-driver.yaml of https://github.com/kubernetes-sigs/vsphere-csi-driver at each tag.
The images of 3.0 to 3.3 were published to a registry that has been emptied since (issues 3054 and 3123 there), and
registry.k8s.io serves those from 3.1.2 on: images/k8s-staging-csi-vsphere/images.yaml of kubernetes/k8s.io, and 3.7.3 by
https://github.com/kubernetes/k8s.io/pull/9799.
"""

from __future__ import annotations

from .. import base, capability
from ..capability import NO_BLOCK, READ_ONLY_BY_KUBELET, Cell


def _release(version: str, registrar: str, liveness_probe: str, max_volumes: int = 59) -> base.Release:
    registrar = f"registry.k8s.io/sig-storage/csi-node-driver-registrar:{registrar}"
    probe = f"registry.k8s.io/sig-storage/livenessprobe:{liveness_probe}"
    images = base.map_images(f"registry.k8s.io/csi-vsphere/driver:v{version}", registrar, probe)
    return base.Release(version, images, max_volumes)


_UTILS = "pkg/csi/service/osutils/windows_os_utils.go"
_NO_FILE_VOLUME = "creates a vSAN file volume, which is NFS and cannot be mounted on Windows"

# What its node plugin takes on Windows; files and functions are those of upstream's repository.
_CAPABILITIES: capability.Table = {
    "ReadWriteOnce": (Cell(True, "pkg/csi/service/common/types.go BlockVolumeCaps"),),
    # Its kubelet and attacher ask for SINGLE_NODE_WRITER, since the driver does not report SINGLE_NODE_MULTI_WRITER.
    "ReadWriteOncePod": (Cell(True, "pkg/csi/service/common/types.go BlockVolumeCaps"),),
    **capability.repeat_answer(
        Cell(False, f"{_UTILS} GetVolumeCapabilityFsType", _NO_FILE_VOLUME), "ReadOnlyMany", "ReadWriteMany"
    ),
    capability.BLOCK: (NO_BLOCK,),
    **capability.repeat_answer(
        Cell(True, f"{_UTILS} GetVolumeCapabilityFsType"), "file system", "file system ntfs", "file system ext4"
    ),
    "file system *": (Cell(False, f"{_UTILS} GetVolumeCapabilityFsType", "mounts NTFS only on Windows"),),
    capability.READ_ONLY: (Cell(True, READ_ONLY_BY_KUBELET),),
    capability.INLINE: (
        Cell(False, "manifests/vanilla/vsphere-csi-driver.yaml CSIDriver", "does not support inline volumes"),
    ),
    capability.EXPANSION: (Cell(True, f"{_UTILS} ResizeVolume"),),
}

DRIVER = base.Driver(
    key="vsphere",
    title="vSphere",
    name="csi.vsphere.vmware.com",
    namespace="vmware-system-csi",
    daemonset="vsphere-csi-node-windows",
    container="vsphere-csi-node",
    role_label="vsphere-csi-windows",
    modes=(
        base.ModeRule(
            mode="csi_proxy",
            why="vSphere CSI uses csi-proxy up to 3.4 and has been a HostProcess container from 3.5.0 on",
            last="3.4.99",
            template="vsphere.yaml.j2",
            pipes=("csi-proxy-volume-v1", "csi-proxy-filesystem-v1", "csi-proxy-disk-v1", "csi-proxy-system-v1alpha1"),
            ports={"health": 9808},
            liveness=base.build_probe(delay=10, timeout=5, period=5, failures=3),
        ),
        base.ModeRule(
            mode="host_process",
            why="vSphere CSI uses csi-proxy up to 3.4 and has been a HostProcess container from 3.5.0 on",
            first="3.5.0",
            template="vsphere.yaml.j2",
            ports={"health": 9808},
            liveness=base.build_probe(delay=10, timeout=5, period=5, failures=3),
            min_kubernetes="1.23",
            min_containerd="1.6",
            wmic_before="3.8.0",
            mounts_directories=True,
        ),
    ),
    releases=(
        _release("3.1.2", "v2.8.0", "v2.10.0"),
        _release("3.2.0", "v2.10.0", "v2.12.0"),
        _release("3.3.0", "v2.10.0", "v2.12.0"),
        _release("3.3.1", "v2.10.0", "v2.12.0"),
        _release("3.4.0", "v2.12.0", "v2.14.0"),
        _release("3.5.0", "v2.13.0", "v2.15.0"),
        _release("3.5.1", "v2.13.0", "v2.15.0"),
        _release("3.6.0", "v2.13.0", "v2.15.0"),
        _release("3.6.1", "v2.13.0", "v2.15.0"),
        _release("3.6.2", "v2.13.0", "v2.15.0"),
        _release("3.6.3", "v2.13.0", "v2.15.0"),
        _release("3.7.0", "v2.13.0", "v2.15.0"),
        _release("3.7.1", "v2.13.0", "v2.15.0", max_volumes=0),
        _release("3.7.2", "v2.13.0", "v2.15.0", max_volumes=0),
        _release("3.7.3", "v2.13.0", "v2.15.0", max_volumes=0),
    ),
    default_version="3.4.0",
    controller=base.Controller(
        deployments=("vsphere-csi-controller", "vmware-vsphere-csi-driver-controller"),
        container="vsphere-csi-controller",
        namespaces=("vmware-system-csi", "openshift-cluster-csi-drivers", "kube-system"),
        pointer="https://docs.vmware.com/en/VMware-vSphere-Container-Storage-Plug-in/",
        # cmd/syncer/main.go, lockName
        lease="vsphere-syncer",
    ),
    csi_driver={"attachRequired": True, "podInfoOnMount": False},
    feature_states=base.FeatureStates(
        name="internal-feature-states.csi.vsphere.vmware.com",
        shipped={"trigger-csi-fullsync": "false", "pv-to-backingdiskobjectid-mapping": "false"},
        required_before={"csi-windows-support": "3.2.0"},
        # pkg/csi/service/vanilla/controller.go, initVolumeMigrationService and its callers
        migrates_before={"csi-migration": "3.2.0"},
    ),
    cluster_rules=(
        base.build_rule(
            groups=("cns.vmware.com",), resources=("csinodetopologies",), verbs=("create", "watch", "get", "patch")
        ),
        base.build_rule(groups=("",), resources=("nodes",), verbs=("get",)),
    ),
    namespace_rules=(base.build_rule(groups=("",), resources=("configmaps",), verbs=("get", "list", "watch")),),
    storage_class=base.StorageClass(name="vsphere-csi-windows", parameters={"csi.storage.k8s.io/fstype": "ntfs"}),
    topology_keys=("topology.csi.vmware.com/",),
    in_tree="kubernetes.io/vsphere-volume",
    windows_builds=("17763", "19042", "20348"),
    # That of a file volume begins with "file:" (pkg/csi/service/common/vsphereutil.go).
    handle=r"(?!file:).+",
    capabilities=_CAPABILITIES,
    fstypes=("ntfs", "", "ext4"),
    prerequisites=(
        "credentials of the controller: Secret vsphere-config-secret, key csi-vsphere.conf (OpenShift: vsphere-csi-config-secret)",
        "the vSphere cloud provider, which sets the provider ID of every node",
        "virtual machines with hardware version 15 or later with disk.EnableUUID=TRUE",
        "SAN policy OnlineAll in the Windows template",
    ),
)
