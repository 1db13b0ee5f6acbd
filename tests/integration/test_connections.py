# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same playbook over every connection.

One inventory holds a host per connection, all with winrm and powershell in all:vars and an explicit localhost, because
that is what breaks tasks on localhost. test_every_playbook has such an inventory under every ansible-core line, with two of
the connections; all of them under every line are torture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.kube import also_holds
from integration.playbooks import lines, play
from lab import handle
from lab.handle import Lab

TRANSPORTS = ("basic-http", "basic-https", "ntlm-http", "ntlm-https", "ssh", "psrp")
PLAYBOOK = "playbooks/enable-csi.yml"


@pytest.fixture(scope="module")
def six() -> Iterator[Lab]:
    made = handle.start(f"six-{os.getpid()}", nodes=len(TRANSPORTS))
    yield made
    made.stop()


def mixed(lab: Lab, folder: Path, transports: tuple[str, ...]) -> Path:
    """An inventory with one host per connection."""
    hosts: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for host, transport in zip(lab.state.hosts, transports, strict=True):
        content = yaml.safe_load(Path(lab.state.inventories[transport]).read_text(encoding="utf-8"))["all"]
        windows = content["children"]["windows"]
        hosts[host.name] = {**windows["vars"], **windows["hosts"][host.name]}
        shared = content["vars"]
    everywhere = {**shared, "ansible_connection": "winrm", "ansible_shell_type": "powershell"}
    path = folder / "mixed.yml"
    inventory = {"all": {"vars": everywhere, "hosts": {"localhost": {}}, "children": {"windows": {"hosts": hosts}}}}
    path.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    return path


@pytest.mark.parametrize("core", [None, *[pytest.param(core, marks=pytest.mark.torture) for core in lines()]])
def test_every_connection(six: Lab, tmp_path: Path, core: str | None) -> None:
    run = play(PLAYBOOK, mixed(six, tmp_path, TRANSPORTS), core=core)
    assert run.code == 0, run.screen
    rows = {row["node"]: row["verdict"] for row in run.summary["nodes"]}
    assert rows == {host.node: "green" for host in six.state.hosts}, run.screen


def test_without_windows_hosts_the_cluster_side_runs_alone(six: Lab) -> None:
    variables = {"kubewin_kubeconfig": six.state.kubeconfigs["kubewin"]}
    # The plugin that runs goes only to nodes with csi-proxy proven; this is a change of it.
    with also_holds(six, "kubewin-csi-roll"):
        run = play(PLAYBOOK, "localhost,", variables={**variables, "kubewin_cluster_only": "yes"})
    assert run.code == 0, run.screen
    rows = {row["node"]: row["verdict"] for row in run.summary["nodes"]}
    assert rows == {host.node: "unproven" for host in six.state.hosts}
