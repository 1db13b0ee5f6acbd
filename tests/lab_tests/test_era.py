# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kubelet mounts what itself, and what WMCO's releases do about volumes: the tables of the lab."""

from __future__ import annotations

import pytest
from lab.cluster import era, openshift

VSPHERE = {"spec": {"vsphereVolume": {"volumePath": "[ds] kubevols/a.vmdk"}}}
SHARE = {"spec": {"azureFile": {"shareName": "a"}}}


@pytest.mark.parametrize(
    ("release", "old", "vsphere", "share"),
    [("v1.25.16", True, True, True), ("v1.26.9", True, True, False), ("v1.27.0", False, False, False)],
)
def test_what_a_kubelet_mounts_itself(release: str, old: bool, vsphere: bool, share: bool) -> None:
    assert era.is_old(release) is old
    assert era.mounts_itself(release, VSPHERE) is vsphere
    assert era.mounts_itself(release, SHARE) is share
    assert ("kubernetes.io/vsphere-volume" in era.migrated(release)) is not vsphere
    assert era.node_annotations(release) == {era.MANAGED: None if old else "true"}
    assert not era.mounts_itself(release, {"spec": {"csi": {"driver": "x"}}})


def test_names_in_a_nodes_status() -> None:
    assert era.unique_name(VSPHERE) == "kubernetes.io/vsphere-volume/[ds] kubevols/a.vmdk"
    assert era.unique_name(SHARE) == ""
    assert era.unique_name({"spec": {"gcePersistentDisk": {"pdName": "a"}}}) == "kubernetes.io/gce-pd/a"


@pytest.mark.parametrize(
    ("release", "brings"),
    [("7.1.0", False), ("7.2.0", True), ("8.0.1", False), ("8.1.0", True), ("9.0.0", True), ("10.15.0", True)],
)
def test_releases_that_bring_csi_proxy(release: str, brings: bool) -> None:
    assert openshift.brings_csi_proxy(release) is brings


@pytest.mark.parametrize(
    ("release", "platform", "labels", "guard"),
    [
        ("8.1.0", "VSphere", {}, ""),
        ("9.0.0", "VSphere", {}, "attached"),
        ("8.1.0", "Azure", {}, "claims"),
        ("9.0.0", "AWS", {}, ""),
        ("9.0.0", "None", {}, ""),
        ("9.0.0", "VSphere", {openshift.ALLOW: "true"}, ""),
        ("9.0.0", "VSphere", {openshift.ALLOW: "yes"}, "attached"),
        ("9.0.0", "VSphere", {openshift.WITH_CSI: "true"}, ""),
        ("10.15.0", "VSphere", {}, ""),
    ],
)
def test_what_keeps_a_node_from_being_upgraded(release: str, platform: str, labels: dict[str, str], guard: str) -> None:
    assert openshift.guards(release, platform, labels) == guard
