# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every driver that the collection knows, in one run on the same node: enabled, stable, and removed without a rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from integration.kube import also_holds
from integration.playbooks import Run, play
from integration.test_remove import left
from lab import handle
from lab.handle import Lab

NAMES = sorted(DRIVERS)
# The lab has only vSphere's own installation; of the others this collection makes what belongs to the cluster.
VARIABLES: dict[str, Any] = {"kubewin_drivers": NAMES, "kubewin_create_cluster_objects": "yes"}
ROLES = ("cluster-objects", "remove", "aws-ebs", "azure-disk", "azure-file", "gce-pd", "smb")


@pytest.fixture(scope="module")
def one() -> Iterator[Lab]:
    """A lab of one Windows node, whose account holds the shipped role of every driver."""
    made = handle.start(f"drivers-{os.getpid()}", nodes=1)
    with ExitStack() as held:
        for name in ROLES:
            held.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        yield made
    made.stop()


def enable(lab: Lab, **variables: Any) -> Run:
    return play("playbooks/enable-csi.yml", lab.state.inventories["ntlm-http"], variables={**VARIABLES, **variables})


def test_all_of_them_work_on_one_node(one: Lab) -> None:
    run = enable(one)
    assert run.code == 0, run.screen
    (row,) = run.summary["nodes"]
    assert row["verdict"] == "green"
    node = one.api.get("/apis/storage.k8s.io/v1/csinodes/win-1")
    assert sorted(entry["name"] for entry in node["spec"]["drivers"]) == sorted(one.name for one in DRIVERS.values())


def test_a_second_run_changes_nothing(one: Lab) -> None:
    run = enable(one)
    assert run.code == 0, run.screen
    assert run.changed == []


def test_all_of_them_can_be_removed(one: Lab) -> None:
    access = {"kubewin_kubeconfig": one.state.kubeconfigs["kubewin"]}
    run = play("playbooks/remove.yml", "localhost,", variables={"kubewin_drivers": NAMES, **access})
    assert run.code == 0, run.screen
    assert [name for name in left(one) if not name.startswith("namespaces")] == []
