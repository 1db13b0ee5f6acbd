# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Combinations of driver, release, mode, Kubernetes, containerd, Windows and platform, each with its plan or refusal.

Every row names the upstream file or page that decides it. A plan is "release mode"; a refusal is the finding's id and what
its text must name, which for most is the nearest combination that works.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse_image_tag
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan, plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import (
    DriverController,
    DriverRequest,
    DriverSnapshot,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode

GITHUB = "https://github.com"
VSPHERE = f"{GITHUB}/kubernetes-sigs/vsphere-csi-driver/blob/{{}}/manifests/vanilla/vsphere-csi-driver.yaml"
VSPHERE_34 = VSPHERE.format("v3.4.0")
VSPHERE_35 = VSPHERE.format("v3.5.0")
VSPHERE_37 = VSPHERE.format("v3.7.3")
VSPHERE_MOD = f"{GITHUB}/kubernetes-sigs/vsphere-csi-driver/blob/v3.8.0-rc.1/go.mod"
VSPHERE_BUILDS = f"{GITHUB}/kubernetes-sigs/vsphere-csi-driver/blob/v3.7.3/hack/release.sh"
EBS = f"{GITHUB}/kubernetes-sigs/aws-ebs-csi-driver/blob/v1.64.0/deploy/kubernetes/base/node-windows.yaml"
EBS_HP = (
    f"{GITHUB}/kubernetes-sigs/aws-ebs-csi-driver/blob/v1.64.0/charts/aws-ebs-csi-driver/templates/_node-windows.tpl"
)
EBS_BUILDS = f"{GITHUB}/kubernetes-sigs/aws-ebs-csi-driver/blob/v1.56.0/Makefile"
DISK = f"{GITHUB}/kubernetes-sigs/azuredisk-csi-driver/blob/master/deploy/v1.34.5/csi-azuredisk-node-windows.yaml"
DISK_HP = DISK.replace(".yaml", "-hostprocess.yaml")
DISK_DEFAULT = f"{GITHUB}/kubernetes-sigs/azuredisk-csi-driver/blob/v1.30.4/deploy/install-driver.sh"
DISK_BEFORE = f"{GITHUB}/kubernetes-sigs/azuredisk-csi-driver/blob/v1.30.3/deploy/install-driver.sh"
FILE = f"{GITHUB}/kubernetes-sigs/azurefile-csi-driver/blob/master/deploy/v1.35.7/csi-azurefile-node-windows.yaml"
FILE_HP = FILE.replace(".yaml", "-hostprocess.yaml")
FILE_DEFAULT = f"{GITHUB}/kubernetes-sigs/azurefile-csi-driver/blob/v1.30.5/deploy/install-driver.sh"
FILE_BEFORE = f"{GITHUB}/kubernetes-sigs/azurefile-csi-driver/blob/v1.30.4/deploy/install-driver.sh"
GCE = f"{GITHUB}/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/blob/v1.26.4/deploy/kubernetes/base/node_windows/node.yaml"
GCE_BUILDS = f"{GITHUB}/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/blob/v1.18.0/Makefile"
GCE_HP = f"{GITHUB}/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/issues/1070"
GCE_README = f"{GITHUB}/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/blob/master/README.md"
SMB = f"{GITHUB}/kubernetes-csi/csi-driver-smb/blob/master/deploy/v1.20.3/csi-smb-node-windows.yaml"
SMB_HP = SMB.replace(".yaml", "-hostprocess.yaml")
SMB_DEFAULT = f"{GITHUB}/kubernetes-csi/csi-driver-smb/blob/v1.17.0/charts/latest/csi-driver-smb/values.yaml"
SMB_README = f"{GITHUB}/kubernetes-csi/csi-driver-smb/blob/v1.20.3/README.md"
HOST_PROCESS = "https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/"
COMPAT = f"{GITHUB}/containerd/platforms/blob/v0.2.1/platform_windows_compat.go"
FORK = f"{GITHUB}/openshift/{{}}/tree/release-{{}}"
SKEW = f"{GITHUB}/openshift/enhancements/blob/master/enhancements/windows-containers/csi-proxy.md"

DIGEST = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + "0" * 64
OPENSHIFT = "openshift-cluster-csi-drivers"


@dataclass(frozen=True)
class Row:
    """One combination. expected: "release mode", or the id of a blocker; says: part of the refusal or of a finding."""

    driver: str
    expected: str
    source: str
    contains: str = ""
    version: str | None = None
    mode: str = "auto"
    running: str = ""
    kubernetes: str = "v1.34.1"
    containerd: str = "containerd://1.7.27"
    builds: tuple[str, ...] = ("20348",)
    openshift: str = ""
    skew: bool = False


def world(driver: Driver, row: Row) -> DriverSnapshot:
    home = OPENSHIFT if row.openshift else driver.namespace
    newest = next(known.images["driver"] for known in driver.releases if known.version == driver.default_version)
    image = row.running or (DIGEST if row.openshift else f"v{row.version or driver.default_version}")
    if ":" not in image:
        image = f"{newest.rsplit(':', 1)[0]}:{image}"
    return DriverSnapshot(
        kubernetes=row.kubernetes,
        nodes=tuple(
            ObservedNode(
                f"win-{number}", build=build, labels={"kubewin.io/csi-proxy": "serving"}, runtime=row.containerd
            )
            for number, build in enumerate(row.builds, 1)
        ),
        controllers=(DriverController(home, driver.controller.deployments[0], image, 1, 1),),
        daemon_sets=(),
        namespaces={home: {"metadata": {"name": home}}},
        csi_driver={"spec": dict(driver.csi_driver)},
        feature_states={home: {"csi-windows-support": "true"}},
        storage_class=None,
        openshift=row.openshift,
    )


def decide(row: Row) -> DriverPlan:
    driver = DRIVERS[row.driver]
    return plan_driver(
        driver, DriverRequest(version=row.version, mode=row.mode, allow_version_skew=row.skew), world(driver, row)
    )


def fork(repository: str, line: str) -> str:
    return FORK.format(repository, line)


PLANS = [
    # vSphere: the release alone decides the mode.
    Row("vsphere", "3.1.2 csi_proxy", VSPHERE.format("v3.1.2"), version="3.1.2"),
    Row("vsphere", "3.3.1 csi_proxy", VSPHERE.format("v3.3.1"), version="3.3.1"),
    Row("vsphere", "3.4.0 csi_proxy", VSPHERE_34, version="3.4.0"),
    Row("vsphere", "3.4.0 csi_proxy", VSPHERE_34, version="3.4.0", mode="csi_proxy", kubernetes="v1.20.0"),
    Row("vsphere", "3.4.1-rc.1 csi_proxy", VSPHERE.format("v3.4.1-rc.1"), version="3.4.1-rc.1", contains="CSI-D04"),
    Row("vsphere", "3.4.0 csi_proxy", VSPHERE_34, version="3.4.0", containerd="containerd://1.5.18"),
    Row("vsphere", "3.5.0 host_process", VSPHERE_35, version="3.5.0", contains="wmic.exe"),
    Row("vsphere", "3.7.3 host_process", VSPHERE_37, version="3.7.3", contains="wmic.exe"),
    Row("vsphere", "3.8.0 host_process", VSPHERE_MOD, version="3.8.0", contains="newer than every known release"),
    Row("vsphere", "3.7.3 host_process", COMPAT, version="3.7.3", builds=("26100",), contains="CSI-D51"),
    Row("vsphere", "3.4.0 csi_proxy", VSPHERE_BUILDS, version="3.4.0", builds=("17763", "14393"), contains="14393"),
    Row("vsphere", "3.7.3 host_process", HOST_PROCESS, version="3.7.3", kubernetes="v1.24.0"),
    Row("vsphere", "3.7.3 host_process", HOST_PROCESS, version="3.7.3", kubernetes="v1.26.0-gke.100"),
    Row("vsphere", "3.4.0 csi_proxy", SKEW, version="3.4.0", running="v3.7.3", skew=True, contains="CSI-D33"),
    Row("vsphere", "3.7.3 host_process", VSPHERE_37, running="v3.7.3"),
    Row("vsphere", "3.4.0 csi_proxy", VSPHERE_34, running="harbor.example:8443/a/b/c/driver:3.4.0"),
    Row(
        "vsphere",
        "3.7.2 host_process",
        f"{GITHUB}/rancher/vsphere-charts",
        running="rancher/mirrored-driver:v3.7.2-build20260101",
    ),
    # AWS EBS: both, csi-proxy by default.
    Row("aws_ebs", "1.64.0 csi_proxy", EBS),
    Row("aws_ebs", "1.64.0 host_process", EBS_HP, mode="host_process", contains="alpha"),
    Row("aws_ebs", "1.64.0 csi_proxy", EBS, containerd="containerd://1.5.18"),
    Row("aws_ebs", "1.64.0 csi_proxy", EBS_BUILDS, builds=("17763", "20348", "26100")),
    Row("aws_ebs", "1.48.0 csi_proxy", EBS_BUILDS, version="1.48.0", builds=("26100",), contains="CSI-D51"),
    Row(
        "aws_ebs",
        "1.63.1 csi_proxy",
        EBS,
        running="aws-ebs-csi-driver:v1.63.1-eksbuild.3",
        kubernetes="v1.33.1-eks-595af52",
        contains="EKS",
    ),
    Row("aws_ebs", "1.62.0 csi_proxy", EBS, running="registry.k8s.io/provider-aws/aws-ebs-csi-driver:v1.62.0"),
    Row("aws_ebs", "1.65.0 csi_proxy", EBS, version="1.65.0", contains="newer than every known release"),
    Row(
        "aws_ebs",
        "1.64.0 host_process",
        HOST_PROCESS,
        mode="host_process",
        containerd="containerd://1.6.36",
        contains="CSI-D55",
    ),
    Row("aws_ebs", "1.64.0 csi_proxy", EBS, kubernetes="v1.20.0"),
    # Azure Disk: HostProcess by default from 1.30.4 on.
    Row("azure_disk", "1.34.5 host_process", DISK_DEFAULT),
    Row("azure_disk", "1.31.1 host_process", DISK_DEFAULT, version="1.31.1"),
    Row("azure_disk", "1.29.7 csi_proxy", DISK_BEFORE, version="1.29.7"),
    Row("azure_disk", "1.30.3 csi_proxy", DISK_BEFORE, version="1.30.3", contains="CSI-D04"),
    Row("azure_disk", "1.30.4 host_process", DISK_DEFAULT, version="1.30.4", contains="CSI-D04"),
    Row("azure_disk", "1.29.7 host_process", DISK_HP, version="1.29.7", mode="host_process"),
    Row("azure_disk", "1.34.5 csi_proxy", DISK, mode="csi_proxy", contains="NVMe"),
    Row("azure_disk", "1.34.5 csi_proxy", HOST_PROCESS, containerd="containerd://1.5.18", contains="CSI-D06"),
    Row("azure_disk", "1.34.5 csi_proxy", HOST_PROCESS, containerd="docker://20.10.21", contains="CSI-D06"),
    Row("azure_disk", "1.34.5 csi_proxy", HOST_PROCESS, kubernetes="v1.22.17", contains="CSI-D06"),
    Row("azure_disk", "1.34.5 host_process", DISK_HP, builds=("26100",)),
    Row("azure_disk", "1.34.5 host_process", DISK_HP, containerd=""),
    Row("azure_disk", "1.34.4 host_process", DISK_HP, running="azuredisk-csi:v1.34.4-windows-hp"),
    Row("azure_disk", "1.35.0 host_process", DISK_HP, version="1.35.0", contains="newer than every known release"),
    # Azure File: HostProcess by default from 1.30.5 on.
    Row("azure_file", "1.35.7 host_process", FILE_DEFAULT),
    Row("azure_file", "1.30.5 host_process", FILE_DEFAULT, version="1.30.5"),
    Row("azure_file", "1.30.4 csi_proxy", FILE_BEFORE, version="1.30.4", contains="CSI-D04"),
    Row("azure_file", "1.35.7 csi_proxy", FILE, mode="csi_proxy", contains="global mapping"),
    Row("azure_file", "1.35.7 csi_proxy", HOST_PROCESS, containerd="containerd://1.5.0", contains="CSI-D06"),
    Row("azure_file", "1.35.7 host_process", FILE_HP, builds=("26100", "17763")),
    # GCE PD: csi-proxy only.
    Row("gce_pd", "1.26.0 csi_proxy", GCE),
    Row("gce_pd", "1.17.15 csi_proxy", GCE_BUILDS, version="1.17.15", builds=("17763",)),
    Row("gce_pd", "1.18.0 csi_proxy", GCE_BUILDS, version="1.18.0"),
    Row("gce_pd", "1.26.0 csi_proxy", COMPAT, builds=("26100",), contains="CSI-D51"),
    Row("gce_pd", "1.26.0 csi_proxy", GCE_README, kubernetes="v1.19.16"),
    Row("gce_pd", "1.26.0 csi_proxy", GCE, kubernetes="v1.33.5-gke.1125000", contains="GKE"),
    # SMB: both from 1.17.0 on.
    Row("smb", "1.20.3 host_process", SMB_DEFAULT, contains="CSI-D09"),
    Row("smb", "1.16.0 csi_proxy", SMB_DEFAULT, version="1.16.0"),
    Row("smb", "1.20.3 csi_proxy", SMB, mode="csi_proxy"),
    Row("smb", "1.17.0 host_process", SMB_HP, version="1.17.0", builds=("26100",)),
    Row("smb", "1.20.3 csi_proxy", HOST_PROCESS, kubernetes="v1.21.14", contains="CSI-D06"),
    Row("smb", "1.19.1 host_process", SMB_HP, running="mirror.example/x/smbplugin:v1.19.1"),
    # OpenShift: digests, so its release decides.
    Row(
        "vsphere",
        "3.3.1 csi_proxy",
        fork("vmware-vsphere-csi-driver", "4.19"),
        openshift="4.19.7",
        contains="OpenShift 4.19.7 ships",
    ),
    Row(
        "vsphere",
        "3.5.0 host_process",
        fork("vmware-vsphere-csi-driver", "4.20"),
        openshift="4.20.3",
        contains="wmic.exe",
    ),
    Row(
        "vsphere", "3.1.2 csi_proxy", fork("vmware-vsphere-csi-driver", "4.12"), openshift="4.12.80", contains="CSI-D09"
    ),
    Row(
        "vsphere", "3.1.2 csi_proxy", fork("vmware-vsphere-csi-driver", "4.14"), openshift="4.14.20", contains="CSI-D33"
    ),
    # The operator's own example for 4.14 (hack/manifests/csi/vsphere).
    Row("vsphere", "3.3.0 csi_proxy", SKEW, version="3.3.0", openshift="4.14.20", contains="no release 3.0"),
    Row("aws_ebs", "1.45.0 csi_proxy", fork("aws-ebs-csi-driver", "4.20"), openshift="4.20.3"),
    Row(
        "aws_ebs",
        "1.47.0 csi_proxy",
        fork("aws-ebs-csi-driver", "4.21"),
        openshift="4.21.0",
        contains="1.47.0 or 1.48.0",
    ),
    Row("aws_ebs", "1.48.0 csi_proxy", fork("aws-ebs-csi-driver", "4.21"), openshift="4.21.0", version="1.48.0"),
    Row("azure_disk", "1.33.1 host_process", fork("azure-disk-csi-driver", "4.20"), openshift="4.20.3"),
    Row("azure_file", "1.33.3 host_process", fork("azure-file-csi-driver", "4.20"), openshift="4.20.3"),
    Row(
        "azure_file",
        "1.30.5 host_process",
        fork("azure-file-csi-driver", "4.17"),
        openshift="4.17.30",
        contains="1.30.5 is the nearest",
    ),
    Row("gce_pd", "1.22.1 csi_proxy", fork("gcp-pd-csi-driver", "4.20"), openshift="4.20.3", contains="CSI-D09"),
    Row("gce_pd", "1.20.0 csi_proxy", GCE_BUILDS, version="1.20.0", openshift="4.20.3", contains="CSI-D04"),
    Row("smb", "1.18.0 host_process", fork("csi-driver-smb", "4.20"), openshift="4.20.3"),
    Row("azure_file", "1.30.5 host_process", fork("azure-file-csi-driver", "4.18"), openshift="4.18.22"),
    Row("smb", "1.16.0 csi_proxy", fork("csi-driver-smb", "4.18"), openshift="4.18.22"),
    Row(
        "azure_disk",
        "1.28.9 csi_proxy",
        fork("azure-disk-csi-driver", "4.13"),
        openshift="4.13.5",
        contains="1.28.9 is the nearest",
    ),
    Row(
        "vsphere",
        "3.4.0 csi_proxy",
        fork("vmware-vsphere-csi-driver", "4.24"),
        openshift="4.24.0",
        contains="4.12 to 5.1",
    ),
]

REFUSALS = [
    Row("vsphere", "CSI-D02", VSPHERE_37, "version 3.4.0 in mode csi_proxy", version="3.7.3", mode="csi_proxy"),
    Row("vsphere", "CSI-D02", VSPHERE_35, "version 3.4.0 in mode csi_proxy", version="3.5.0", mode="csi_proxy"),
    Row("vsphere", "CSI-D02", VSPHERE_34, "version 3.5.0 in mode host_process", version="3.4.0", mode="host_process"),
    Row("vsphere", "CSI-D03", HOST_PROCESS, "version 3.4.0 in mode csi_proxy", version="3.7.3", kubernetes="v1.22.1"),
    Row("vsphere", "CSI-D03", VSPHERE_34, "upgrade Kubernetes to 1.20", version="3.4.0", kubernetes="v1.19.16"),
    Row("vsphere", "CSI-D05", HOST_PROCESS, "version 3.4.0 in mode csi_proxy, with allow_version_skew", version="3.6.0", containerd="containerd://1.5.18"),
    Row("vsphere", "CSI-D54", VSPHERE_BUILDS, "17763, 19042, 20348", version="3.4.0", builds=("14393",)),
    Row("vsphere", "CSI-D33", SKEW, "leave version unset to deploy 3.3.1, or change the controller to 3.4", version="3.4.0", running="v3.3.1"),
    Row("vsphere", "CSI-D33", SKEW, "leave version unset to deploy 3.5.0", version="3.4.0", openshift="4.20.3"),
    Row("vsphere", "CSI-D01", VSPHERE_34, "expected one such as 3.4.0", version="latest", running="v3.4.0"),
    Row("aws_ebs", "CSI-D02", EBS_HP, "version 1.31.0 in mode host_process", version="1.30.0", mode="host_process"),
    Row("aws_ebs", "CSI-D03", EBS, "upgrade Kubernetes to 1.20", kubernetes="v1.19.16"),
    Row("aws_ebs", "CSI-D05", HOST_PROCESS, "version 1.64.0 in mode csi_proxy", mode="host_process", containerd="containerd://1.5.18"),
    Row("aws_ebs", "CSI-D33", SKEW, "leave version unset to deploy 1.63.1", version="1.64.0", running="v1.63.1-eksbuild.1"),
    Row("aws_ebs", "CSI-D33", SKEW, "leave version unset to deploy 1.45.0", version="1.56.0", openshift="4.20.3"),
    Row("azure_disk", "CSI-D02", DISK_HP, "version 1.28.9 in mode host_process", version="1.27.1", mode="host_process"),
    Row("azure_disk", "CSI-D05", HOST_PROCESS, "version 1.34.5 in mode csi_proxy", mode="host_process", containerd="docker://20.10.21"),
    Row("azure_disk", "CSI-D03", DISK, "upgrade Kubernetes to", kubernetes="v1.20.15"),
    Row("azure_disk", "CSI-D54", DISK, "version 1.34.5 in mode host_process", mode="csi_proxy", builds=("19042",)),
    Row("azure_file", "CSI-D02", FILE_HP, "version 1.29.5 in mode host_process", version="1.27.0", mode="host_process"),
    Row("azure_file", "CSI-D03", HOST_PROCESS, "version 1.35.7 in mode csi_proxy", mode="host_process", kubernetes="v1.22.1"),
    Row("gce_pd", "CSI-D02", GCE_HP, "version 1.26.0 in mode csi_proxy", mode="host_process"),
    Row("gce_pd", "CSI-D54", GCE_BUILDS, "version 1.22.1 in mode csi_proxy", version="1.17.15"),
    Row("gce_pd", "CSI-D54", GCE_BUILDS, "version 1.22.1 in mode csi_proxy, with allow_version_skew", openshift="4.19.7"),
    Row("gce_pd", "CSI-D54", GCE_BUILDS, "version 1.22.1 in mode csi_proxy", version="1.16.1", builds=("26100",)),
    Row("gce_pd", "CSI-D03", GCE_README, "upgrade Kubernetes to 1.19", kubernetes="v1.18.20"),
    Row("smb", "CSI-D02", SMB_HP, "version 1.17.0 in mode host_process", version="1.16.0", mode="host_process"),
    Row("smb", "CSI-D05", HOST_PROCESS, "version 1.20.3 in mode csi_proxy", mode="host_process", containerd="containerd://1.5.18"),
    Row("smb", "CSI-D03", SMB_README, "upgrade Kubernetes to", kubernetes="v1.20.15"),
    Row("smb", "CSI-D33", SKEW, "leave version unset to deploy 1.18.0", version="1.20.3", openshift="4.22.1"),
    # Nothing shows that the image of 1.20 for HostProcess was published.
    Row("smb", "CSI-D33", SMB_HP, "the node plugin would be 1.19.1", running="mirror.example/x/smbplugin:v1.20.2", mode="host_process"),
]  # fmt: skip


def name(row: Row) -> str:
    parts: list[Any] = [
        row.driver, row.version, row.mode, row.running.rsplit("/", 1)[-1], row.kubernetes, row.containerd,
        "+".join(row.builds), row.openshift and f"openshift-{row.openshift}",
    ]  # fmt: skip
    return " ".join(str(part) for part in parts if part)


@pytest.mark.parametrize("row", PLANS, ids=name)
def test_a_plan_has_the_expected_release_and_mode(row: Row) -> None:
    made = decide(row)
    assert made.refusal == ""
    assert made.rule is not None
    assert f"{made.version} {made.rule.mode}" == row.expected
    assert row.contains in "\n".join(made.summary())
    image = made.settings["images"]["driver"]
    assert parse_image_tag(image) == made.version
    assert image.endswith("-windows-hp") == made.rule.any_windows


@pytest.mark.parametrize("row", REFUSALS, ids=name)
def test_a_refusal_names_the_nearest_release_that_works(row: Row) -> None:
    made = decide(row)
    assert not made.deployable
    assert {one.id for one in made.findings if one.severity == "blocker"} == {row.expected}
    assert row.contains in made.refusal


def test_rows_are_many_differ_and_name_public_sources() -> None:
    rows = PLANS + REFUSALS
    assert len({replace(row, source="") for row in rows}) == len(rows) >= 60
    assert {"vsphere", "aws_ebs", "azure_disk", "azure_file", "gce_pd", "smb"} == {row.driver for row in rows}
    assert all(row.source.startswith("https://") for row in rows)
