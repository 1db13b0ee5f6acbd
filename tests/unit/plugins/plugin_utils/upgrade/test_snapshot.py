# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes before and after: the same one counts as unchanged, and a claim with another disk does not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.snapshot import (
    ClaimedVolume,
    compare_volumes,
    read_volumes,
)

IN_TREE = {"vsphereVolume": {"volumePath": "[ds] a.vmdk", "fsType": "ntfs"}}
CSI = {"csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "abc"}}


def claimed(claim_uid: str = "c1", volume_uid: str = "v1", source: dict[str, Any] | None = None) -> ClaimedVolume:
    claim = {"metadata": {"namespace": "shop", "name": "db", "uid": claim_uid}, "spec": {"volumeName": "pv-1"}}
    spec = {**(source or IN_TREE), "persistentVolumeReclaimPolicy": "Delete"}
    return ClaimedVolume.from_objects(claim, {"metadata": {"uid": volume_uid}, "spec": spec})


def picture(*volumes: ClaimedVolume) -> dict[str, ClaimedVolume]:
    return {one.claim: one for one in volumes}


def test_an_unchanged_volume_has_no_finding() -> None:
    assert list(compare_volumes(picture(claimed()), picture(claimed()))) == []


@pytest.mark.parametrize(
    "other", [claimed(claim_uid="c2"), claimed(volume_uid="v2"), claimed(source=CSI)], ids=["claim", "volume", "source"]
)
def test_a_claim_with_another_volume_is_a_blocker(other: ClaimedVolume) -> None:
    (found,) = compare_volumes(picture(claimed()), picture(other))
    assert (found.id, found.severity) == ("CSI-U17", "blocker")
    assert "was pv-1 (kubernetes.io/vsphere-volume" in found.message


def test_a_deleted_claim_is_reported_with_its_volume() -> None:
    (found,) = compare_volumes(picture(claimed(source=CSI)), picture())
    assert found.severity == "warning"
    assert "its volume was pv-1 (csi.vsphere.vmware.com, abc, Delete)" in found.message


def an_object(name: str, labels: dict[str, str] | None = None, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "shop", "name": name, "uid": f"u-{name}", "labels": labels or {}}, **parts}


def test_the_pod_and_claim_that_a_killed_verification_left_are_no_volumes_of_a_workload() -> None:
    """They are deleted soon, with their namespace: a later run would find no volume to compare."""
    left = {"app.kubernetes.io/managed-by": "kubewin.csi", "app.kubernetes.io/part-of": "kubewin-verify"}
    mounts = {name: {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]} for name in ("db", "proof")}
    pods = [an_object("db-0", spec=mounts["db"]), an_object("proof-0", left, spec=mounts["proof"])]
    claims = [an_object("db", spec={"volumeName": "pv-1"}), an_object("proof", left, spec={"volumeName": "pv-2"})]
    volumes = [an_object(name, spec=CSI) for name in ("pv-1", "pv-2")]
    assert list(read_volumes(pods, claims, volumes)) == ["shop/db"]
    assert list(read_volumes([], claims, volumes, ["shop/db", "shop/proof"])) == ["shop/db"]


def test_a_file_system_that_is_named_later_is_no_other_volume() -> None:
    named = claimed(source={"vsphereVolume": {"volumePath": "[ds] a.vmdk"}})
    assert list(compare_volumes(picture(claimed()), picture(named))) == []
