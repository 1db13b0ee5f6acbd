# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages leave an idle cluster alone, and plugin pods to the kubelet stand-in."""

from __future__ import annotations

from typing import Any

import yaml
from lab.cluster import stages


def rendered() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(stages.render()))


def test_no_stage_of_a_node_matches_its_own_result() -> None:
    """A stage that matches again beats for ever: each reads the Ready condition that it changes."""
    wants = {
        stage["metadata"]["name"]: stage["spec"]["selector"]["matchExpressions"][0]["jq"]["operator"]
        for stage in rendered()
        if stage["spec"]["resourceRef"]["kind"] == "Node"
    }
    assert wants == {"node-ready": "NotIn", "node-notready": "In"}


def test_pod_stages_but_deletion_pass_over_plugin_pods() -> None:
    for stage in rendered():
        name, spec = stage["metadata"]["name"], stage["spec"]
        if spec["resourceRef"]["kind"] == "Pod" and name != "pod-delete":
            keys = " ".join(item["jq"]["key"] for item in spec["selector"]["matchExpressions"])
            assert "csi-node-driver-registrar" in keys, name
            assert "csi-proxy-" in keys, name


def test_pods_with_claims_belong_to_the_stand_in_until_they_are_deleted() -> None:
    for stage in rendered():
        if stage["spec"]["resourceRef"]["kind"] == "Pod":
            left = [item["jq"] for item in stage["spec"]["selector"]["matchExpressions"]]
            (claims,) = [item for item in left if "persistentVolumeClaim" in item["key"]]
            assert claims["operator"] == "DoesNotExist"
