# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Windows workflow runs on real Windows, here on simulated hosts: every script of it, over every connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from lab.windows.agent import Agent
from real_windows import __main__ as accept
from unit.plugins.plugin_utils.windows.simulated import NEW, OLD, Artifacts

from lab_tests.conftest import MakeHost, Pki, Serve, Served
from lab_tests.test_ansible import variables

# In the place of tests/lab/go/csiclient/storage: what its steps change of a host, as the lab models it.
STEPS = r"""
from __future__ import annotations

from ansible.plugins.action import ActionBase
from lab.windows.agent import Agent

VOLUME = r"\??\Volume{11111111-0000-0000-0000-000000000001}"
MOUNT = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.test\0001\globalmount"
DISK = {"key": r"HKLM\SYSTEM\MountedDevices", "name": VOLUME, "type": "REG_BINARY", "data": "00"}
OTHER = {**DISK, "name": VOLUME.replace("0001}", "0002}")}
SHARE = {"key": r"HKLM\SOFTWARE\WinLab", "name": "SmbGlobalMappings"}


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        line = self._task.args["line"]
        plants = {
            "mount": {"registry": [DISK, OTHER], "files": {MOUNT: {"link": VOLUME + "\\"}}},
            "lose": {"registry": [{**DISK, "absent": True}]},
            "return": {"registry": [DISK]},
            "unmount": {"files": {MOUNT: None}},
            **{
                name: {"registry": [{**SHARE, "data": rf"|\\win\kubewin-test|{status}"}]}
                for name, status in (("share", 0), ("rotate", 2), ("remap", 0))
            },
        }
        agent = Agent(task_vars["lab_agent"], task_vars["lab_host"])
        program, dummy, step = line.rpartition(" ")
        output = ""
        if program.endswith("storage.exe"):
            agent.control("plant", **plants.get(step, {}))
        else:
            output = agent.run(line).stdout.decode()
        return {**super().run(tmp, task_vars), "changed": True, "stdout": output}
"""


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


def accept_play(
    transport: str, tmp_path: Path, agent: Agent, served: Served, pki: Pki, binaries: Path, *words: str, **changes: str
) -> tuple[int, Path]:
    """The exit code of `python -m real_windows` on a simulated host, and its folder of transcripts."""
    host = {**variables(transport, served, pki), "lab_agent": agent.address, "lab_host": agent.host, **changes}
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(
        yaml.safe_dump(
            {"all": {"children": {group: {"hosts": {transport: host}} for group in ("windows", "accounts")}}}
        ),
        encoding="utf-8",
    )
    kept = tmp_path / "kept"
    paths = ["--inventory", inventory, "--binaries", binaries, "--transcripts", kept]
    return accept.main([*map(str, paths), *words, transport]), kept


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
    served = serve(agent.address, name=agent.host, ssh=0, ssh_shell=shell)
    code, kept = accept_play(transport, tmp_path, agent, served, pki, binaries)
    assert (kept / "differences.txt").read_text(encoding="utf-8") == ""
    assert code == 0
    conformance = json.loads((kept / "conformance.json").read_text(encoding="utf-8"))
    assert conformance["image"]
    assert bool(conformance["answers"]) == transport.startswith("winrm")


@pytest.mark.parametrize(
    ("play", "build", "changes"),
    [
        ("storage.yml", "10.0.20348.2700", {}),
        ("storage.yml", "10.0.26100.1742", {}),
        ("support.yml", "10.0.20348.2700", {}),
        ("accounts.yml", "10.0.20348.2700", {"ansible_password": "wrong"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_plays_beside_it_expect_what_the_lab_answers(
    play: str,
    build: str,
    changes: dict[str, str],
    binaries: Path,
    tmp_path: Path,
    make_host: MakeHost,
    serve: Serve,
    pki: Pki,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "action").mkdir()
    (tmp_path / "action" / "windows_command.py").write_text(STEPS, encoding="utf-8")
    monkeypatch.setenv("ANSIBLE_ACTION_PLUGINS", str(tmp_path / "action"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    agent = make_host(build=build)
    served = serve(agent.address, name=agent.host)
    words = ("--play", str(accept.HERE / play))
    code, kept = accept_play("winrm-ntlm-http", tmp_path, agent, served, pki, binaries, *words, **changes)
    assert (kept / "differences.txt").read_text(encoding="utf-8") == ""
    assert code == 0
