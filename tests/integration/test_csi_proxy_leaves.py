# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SMB goes back to csi-proxy only after its removal, and csi-proxy leaves only when nothing needs it.

One lab of two Windows nodes with SMB as a HostProcess container. The tests follow one another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.changes import mode, plugins
from integration.kube import also_holds, writes
from integration.playbooks import Run, play
from lab import handle
from lab.handle import Lab, eventually
from lab.windows.faults import Rule

SMB = DRIVERS["smb"]
NODES = ["win-1", "win-2"]
VARIABLES = {"kubewin_drivers": "smb", "kubewin_create_cluster_objects": "yes", "kubewin_batches": "100%"}


@pytest.fixture(scope="module")
def shares() -> Iterator[Lab]:
    """SMB as a HostProcess container on both nodes, beside an unused csi-proxy."""
    made = handle.start(f"shares-{os.getpid()}", nodes=len(NODES))
    with ExitStack() as roles:
        for name in ("cluster-objects", "roll", "remove", "smb"):
            roles.enter_context(also_holds(made, f"kubewin-csi-{name}"))
        for tag, options in (("proxy", {"smb_csi_mode": "csi_proxy"}), ("driver", {"smb_csi_mode": "host_process"})):
            run = enable(made, "--tags", tag, **options)
            assert run.code == 0, run.screen
        eventually(lambda: set(plugins(made, SMB)) == set(NODES), "a plugin on every node")
        yield made
    made.stop()


def enable(lab: Lab, *arguments: str, **variables: Any) -> Run:
    inventory = lab.state.inventories["ntlm-http"]
    return play("playbooks/enable-csi.yml", inventory, *arguments, variables={**VARIABLES, **variables})


def remove(lab: Lab, *arguments: str, **variables: Any) -> Run:
    given = {"kubewin_remove_csi_proxy": "yes", "kubewin_batches": "100%", **variables}
    return play("playbooks/remove.yml", lab.state.inventories["ntlm-http"], *arguments, variables=given)


def services(lab: Lab) -> dict[str, list[str]]:
    """The services of each host that run csi-proxy."""
    found = {}
    for host in lab.state.hosts:
        state = lab.agent(host.name).control("state")["state"]
        found[host.name] = [name for name in state["services"] if "csi" in name]
    return found


def test_smb_returns_to_csi_proxy_only_after_its_removal_and_csi_proxy_must_then_stay(shares: Lab) -> None:
    pods, size = plugins(shares, SMB), shares.audit_size()
    refused = enable(shares, "--tags", "driver", smb_csi_mode="csi_proxy")
    assert refused.code != 0
    message = refused.summary["failure"]
    assert "it runs in mode host_process and cannot change to csi_proxy" in message
    assert "kubewin.csi.remove -e kubewin_drivers=smb" in message
    assert writes(shares, size) == []
    assert plugins(shares, SMB) == pods

    removed = remove(shares, kubewin_drivers="smb", kubewin_remove_csi_proxy="no")
    assert removed.code == 0, removed.screen
    run = enable(shares, "--tags", "driver", smb_csi_mode="csi_proxy")
    assert run.code == 0, run.screen
    assert mode(shares, SMB) == "csi_proxy"
    before = services(shares)
    assert all(before.values())
    refused = remove(shares)
    assert refused.code != 0
    message = refused.failures[0]["result"]["msg"]
    assert f"DaemonSet {SMB.namespace}/{SMB.daemonset} mounts csi-proxy-filesystem-v1" in message
    assert services(shares) == before
    # The same command would be refused again.
    following = refused.summary["next"][0]
    assert "-e kubewin_drivers=smb" in following


def test_nothing_is_removed_if_a_platform_runs_csi_proxy_on_a_host(shares: Lab) -> None:
    before, pods, size = services(shares), plugins(shares, SMB), shares.audit_size()
    agent = shares.agent("win-2")
    assert agent.run('sc.exe description csi-proxy "OpenShift managed csi-proxy"').rc == 0
    refused = remove(shares, kubewin_drivers="smb")
    assert agent.run('sc.exe description csi-proxy "Kubernetes CSI proxy"').rc == 0
    assert refused.code != 0
    message = refused.failures[0]["result"]["msg"]
    assert "win-2" in message
    assert "this collection does not remove it" in message
    assert services(shares) == before
    assert plugins(shares, SMB) == pods
    assert writes(shares, size) == []


def test_csi_proxy_is_removed_on_request_once_nothing_needs_it(shares: Lab) -> None:
    shares.front.add_fault("win-2", Rule("request_lost", match="sc\\.exe delete", for_good=True))
    cut = remove(shares, kubewin_drivers="smb", kubewin_batches="1")
    shares.front.clear_faults("win-2")
    assert cut.code != 0
    (summary,) = cut.ends
    assert f"removed DaemonSet {SMB.daemonset}" in summary["lines"]
    assert summary["lines"][-2:] == [
        "csi-proxy was removed from win-1",
        "not removed yet: csi-proxy on win-2",
    ]
    assert plugins(shares, SMB) == {}
    run = remove(shares, kubewin_drivers="smb")
    assert run.code == 0, run.screen
    (summary,) = run.ends
    kept, removed = summary["lines"]
    assert kept.startswith(f"kept: CSIDriver {SMB.name}, since other installations of the driver may rely on it")
    assert removed == "csi-proxy was removed from win-2"
    assert services(shares) == {"win-1": [], "win-2": []}
    assert not any(
        "kubewin.io/csi-proxy" in shares.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"] for node in NODES
    )
