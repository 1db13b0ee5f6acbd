# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as use of a driver's volumes on Windows nodes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.uses import VolumeUse, explain_refusal, find_uses

VSPHERE = DRIVERS["vsphere"]
CSI = {"driver": VSPHERE.name, "volumeHandle": "h"}


def node(name: str = "win-1", in_use: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"volumesInUse": list(in_use)}}


def pod(volume: dict[str, Any], *, on: str = "win-1", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": "db-0", **metadata},
        "spec": {"nodeName": on, "volumes": [{"name": "data", **volume}]},
        "status": {"phase": phase},
    }


CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}
BOUND = {"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}


def volume(**source: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pv"}, "spec": source}


def attachment(on: str = "win-1", attacher: str = VSPHERE.name) -> dict[str, Any]:
    return {"spec": {"attacher": attacher, "nodeName": on, "source": {"persistentVolumeName": "pv"}}}


@pytest.mark.parametrize(
    ("pods", "volumes", "expected"),
    [
        pytest.param([pod(CLAIM)], [volume(csi=CSI)], "claim data", id="a claim"),
        pytest.param([pod(CLAIM, phase="Pending")], [volume(csi=CSI)], "claim data", id="a pod that is starting"),
        pytest.param([pod(CLAIM)], [volume(vsphereVolume={})], "claim data", id="an in-tree volume that is migrated"),
        pytest.param([pod({"csi": CSI})], [], "inline volume data", id="an inline volume"),
        pytest.param([pod({"vsphereVolume": {}})], [], "inline volume data", id="an inline in-tree volume"),
        pytest.param(
            [pod(CLAIM, phase="Succeeded", deletionTimestamp="2026-01-01T00:00:00Z")],
            [volume(csi=CSI)],
            "claim data",
            id="a finished pod that is being deleted",
        ),
    ],
)
def test_a_pod_counts(pods: list[Any], volumes: list[Any], expected: str) -> None:
    assert find_uses(VSPHERE, [node()], pods, [BOUND], volumes, []) == (
        VolumeUse("win-1", f"pod shop/db-0 ({expected})"),
    )


@pytest.mark.parametrize(
    ("pods", "volumes"),
    [
        pytest.param([pod(CLAIM, on="linux-1")], [volume(csi=CSI)], id="on Linux"),
        pytest.param([pod(CLAIM, phase="Succeeded")], [volume(csi=CSI)], id="finished"),
        pytest.param([pod(CLAIM)], [volume(csi={**CSI, "driver": "disk.csi.azure.com"})], id="of another driver"),
        pytest.param([pod(CLAIM)], [volume(awsElasticBlockStore={})], id="of another in-tree plugin"),
        pytest.param([pod({"emptyDir": {}})], [volume(csi=CSI)], id="without the claim"),
    ],
)
def test_a_pod_does_not_count(pods: list[Any], volumes: list[Any]) -> None:
    assert find_uses(VSPHERE, [node()], pods, [BOUND], volumes, []) == ()


def test_an_ephemeral_volume_counts_by_the_claim_that_was_made_for_it() -> None:
    made = {"metadata": {"namespace": "shop", "name": "db-0-data"}, "spec": {"volumeName": "pv"}}
    assert find_uses(VSPHERE, [node()], [pod({"ephemeral": {}})], [made], [volume(csi=CSI)], []) != ()


def test_an_attachment_counts_without_any_pod() -> None:
    found = find_uses(
        VSPHERE, [node()], [], [], [], [attachment(), attachment("linux-1"), attachment(attacher="other")]
    )
    assert found == (VolumeUse("win-1", "volume pv is attached"),)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (f"kubernetes.io/csi/{VSPHERE.name}^h", True),
        ("kubernetes.io/vsphere-volume/[ds] kubevols/a.vmdk", True),
        ("kubernetes.io/csi/disk.csi.azure.com^h", False),
    ],
)
def test_volumes_in_use_by_the_kubelet_count(name: str, counts: bool) -> None:
    assert bool(find_uses(VSPHERE, [node(in_use=(name,))], [], [], [], [])) is counts


def test_the_refusal_names_nodes_users_and_the_way_out() -> None:
    expected = explain_refusal(VSPHERE, find_uses(VSPHERE, [node()], [pod(CLAIM)], [BOUND], [volume(csi=CSI)], []))
    assert "win-1: pod shop/db-0 (claim data)" in expected
    assert expected.endswith("wait until the volumes are detached, and run again.")
    assert explain_refusal(VSPHERE, ()) == ""
