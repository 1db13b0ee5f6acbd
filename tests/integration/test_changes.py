# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node plugin changes under running workloads: mode switched and back, node by node, and nothing is lost on the way.

One lab of three Windows nodes; the tests follow one another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from integration.kube import also_holds
from integration.playbooks import Run, play
from lab import handle
from lab.handle import Lab

PLAYBOOK = "playbooks/enable-csi.yml"
DISK = DRIVERS["azure_disk"]
ROLES = ("cluster-objects", "roll", "azure-disk", "smb")
VARIABLES = {"kubewin_drivers": "azure_disk", "kubewin_create_cluster_objects": "yes", "kubewin_node_timeout": 60}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Lab]:
    """Three nodes with Azure Disk through csi-proxy."""
    made = handle.start(f"changes-{os.getpid()}", nodes=3)
    with ExitStack() as held:
        for name in ROLES:
            held.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        run = enable(made, azure_disk_csi_mode="csi_proxy")
        assert run.code == 0, run.screen
        yield made
    made.stop()


def enable(lab: Lab, *arguments: str, **variables: Any) -> Run:
    return play(PLAYBOOK, lab.state.inventories["ntlm-http"], *arguments, variables={**VARIABLES, **variables})


def test_switch(cluster: Lab) -> None:
    run = enable(cluster, "--tags", "driver,gate", azure_disk_csi_mode="host_process")
    print(run.screen)
    assert run.code == 0, run.screen
    run = enable(cluster, "--tags", "driver,gate", azure_disk_csi_mode="host_process")
    assert run.changed == []
    run = enable(cluster, "--tags", "driver,gate", azure_disk_csi_mode="csi_proxy")
    print(run.screen)
    assert run.code == 0, run.screen
