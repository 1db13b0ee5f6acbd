# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployment refuses, of the DaemonSet as it is by then."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.apply import DeployRequest, plan
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import RollOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, MODE
from unit.plugins.plugin_utils.kube.fakes import Response, Script

SMB = DRIVERS["smb"]


def daemon_set(mode: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": SMB.daemonset, "namespace": SMB.namespace, "resourceVersion": "1"}
    metadata |= {"labels": {MANAGED_BY: MANAGER}, "annotations": {MODE: mode}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": {"spec": {}}}}


def test_a_mode_that_another_run_changed_since_the_plan_is_not_changed_back() -> None:
    live, desired = daemon_set("host_process"), daemon_set("csi_proxy")
    script = Script(Response(live), Response(desired), Response(live))
    with pytest.raises(ClusterError, match="it runs in mode host_process and cannot change to csi_proxy") as caught:
        plan(Client(script), DeployRequest(SMB, [desired], RollOptions()))
    assert caught.value.reason == "roll_refused"
