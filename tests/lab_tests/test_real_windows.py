# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Windows workflow runs on real Windows, here on simulated hosts: every script of it, over every connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from real_windows import __main__ as accept
from unit.plugins.plugin_utils.windows.simulated import NEW, OLD, Artifacts

from lab_tests.conftest import MakeHost, Pki, Serve
from lab_tests.test_ansible import variables


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "binaries"
    folder.mkdir()
    artifacts = Artifacts(folder)
    for release in (OLD, NEW):
        made = artifacts.csi_proxy(release)
        made.path.with_suffix(".exe.sha256").write_text(f"{made.sha256}  {made.path.name}\n", encoding="utf-8")
    artifacts.close()
    return folder


# Over WinRM comes the case table, which test_conformance has as well. What ssh starts is the same with either shell.
@pytest.mark.parametrize(
    "transport",
    [
        "ssh-powershell",
        *(pytest.param(name, marks=pytest.mark.torture) for name in ("ssh", "winrm-ntlm-http", "psrp-ntlm-http")),
    ],
)
def test_the_play_is_accepted_without_a_difference(
    transport: str, binaries: Path, tmp_path: Path, make_host: MakeHost, serve: Serve, pki: Pki
) -> None:
    agent = make_host()
    shell = "powershell" if transport == "ssh-powershell" else "cmd"
    hosts = {transport: variables(transport, serve(agent.address, name=agent.host, ssh=0, ssh_shell=shell), pki)}
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"all": {"children": {"windows": {"hosts": hosts}}}}), encoding="utf-8")
    kept = tmp_path / "kept"
    code = accept.main(
        list(map(str, ["--inventory", inventory, "--binaries", binaries, "--transcripts", kept, transport]))
    )
    assert (kept / "differences.txt").read_text(encoding="utf-8") == ""
    assert code == 0
    conformance = json.loads((kept / "conformance.json").read_text(encoding="utf-8"))
    assert conformance["image"]
    assert bool(conformance["answers"]) == transport.startswith("winrm")
