# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver's release changes on 200 nodes: in batches, within what may be away, and a run that dies half-way is finished.

Nodes without hosts: the driver runs as a HostProcess container, which needs nothing of csi-proxy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.changes import APPLY, at_rest, images, killed, plugins, recorded
from integration.kube import also_holds
from integration.playbooks import play
from lab import handle
from lab.handle import Lab, eventually

pytestmark = pytest.mark.torture

DISK = DRIVERS["azure_disk"]
COUNT, ALLOWED = 200, 20
OPTIONS = {
    "kubewin_drivers": "azure_disk",
    "kubewin_create_cluster_objects": "yes",
    "kubewin_batches": "1,10%,50%",
    "azure_disk_csi_mode": "host_process",
    "azure_disk_csi_max_unavailable": "10%",
}
NEWER = {**OPTIONS, "azure_disk_csi_version": "1.34.4"}


@pytest.fixture(scope="module")
def many() -> Iterator[Lab]:
    made = handle.start(f"many-{os.getpid()}", nodes=COUNT, windows="none", vsphere=False)
    with ExitStack() as roles:
        for name in ("cluster-objects", "roll", "azure-disk"):
            roles.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        yield made
    made.stop()


def test_200_nodes_change_in_batches_and_a_run_that_was_killed_half_way_is_finished(many: Lab, tmp_path: Path) -> None:
    role = tmp_path / "apply.yml"
    role.write_text(APPLY, encoding="utf-8")
    access = {"kubewin_kubeconfig": many.state.kubeconfigs["kubewin"]}
    run = play(str(role), "localhost,", variables={**OPTIONS, **access, "azure_disk_csi_version": "1.34.3"})
    assert run.code == 0, run.screen
    eventually(lambda: len(plugins(many, DISK)) == COUNT, "200 plugins", timeout=240)
    before = plugins(many, DISK)

    def changed() -> int:
        return sum(uid != before[node] for node, uid in plugins(many, DISK).items())

    with recorded(many, DISK) as record:
        killed(role, tmp_path / "1", lambda: changed() > COUNT // 2, "half of them", **NEWER, **access)
        assert not at_rest(many, DISK)
        run = play(str(role), "localhost,", variables={**NEWER, **access}, timeout=600)
    assert run.code == 0, run.screen
    assert record.away <= ALLOWED
    # The canary alone, and no pod twice.
    assert record.order[0] == min(before)
    assert sorted(record.order) == sorted(before)
    assert set(images(many, DISK).values()) == {
        "mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.4-windows-hp"
    }
    assert at_rest(many, DISK)
