"""csi-proxy is stopped only when no volume operation is in flight."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import list_claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.quiesce import explain_volume_operations


def pod(phase: str = "Running", volumes: list[dict[str, Any]] | None = None, deleted: bool = False) -> dict[str, Any]:
    metadata = {
        "namespace": "shop",
        "name": "web",
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
    }
    used = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}] if volumes is None else volumes
    return {"metadata": metadata, "spec": {"volumes": used}, "status": {"phase": phase}}


def claim(*conditions: tuple[str, str]) -> dict[str, Any]:
    listed = [{"type": kind, "status": status} for kind, status in conditions]
    return {"metadata": {"namespace": "shop", "name": "data"}, "status": {"conditions": listed}}


@pytest.mark.parametrize(
    "calm",
    [
        pytest.param([pod()], id="running pods keep their mounts"),
        pytest.param([pod("Succeeded")], id="a finished pod has unmounted"),
        pytest.param([pod("Pending", [{"name": "tmp", "emptyDir": {}}])], id="a starting pod without a volume"),
    ],
)
def test_a_node_at_rest_gives_no_reason_to_wait(calm: list[dict[str, Any]]) -> None:
    assert explain_volume_operations(calm, [claim(("Resizing", "False"))]) == []


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        pytest.param(pod("Pending"), "pod shop/web is starting", id="mounting"),
        pytest.param(pod(deleted=True), "pod shop/web is terminating", id="unmounting"),
        pytest.param(pod("Succeeded", deleted=True), "pod shop/web is terminating", id="finished and being removed"),
        pytest.param(pod("Pending", [{"name": "x", "csi": {}}]), "is starting", id="inline CSI volume"),
        pytest.param(pod("Pending", [{"name": "x", "ephemeral": {}}]), "is starting", id="generic ephemeral volume"),
    ],
)
def test_a_pod_whose_volumes_move_is_named(busy: dict[str, Any], expected: str) -> None:
    (reason,) = explain_volume_operations([busy], [])
    assert expected in reason


@pytest.mark.parametrize("condition", ["Resizing", "FileSystemResizePending"])
def test_a_claim_that_grows_is_named(condition: str) -> None:
    assert explain_volume_operations([pod()], [claim((condition, "True"))]) == ["claim shop/data is being resized"]


def test_a_generic_ephemeral_volume_has_a_claim_named_after_pod_and_volume() -> None:
    assert list_claims(pod(volumes=[{"name": "scratch", "ephemeral": {}}])) == ["web-scratch"]
