# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, upgrade and roll back the real csi-proxy over WinRM, evaluated through its pipes by its own client.

One host on Wine: real service manager, files and pipes. Which release is behind the pipes is seen by a call that csi-proxy
1.1.3 makes through PowerShell, which Wine lacks, and 1.3.0 does not.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration import playbooks
from lab import builds
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontProcess
from lab.windows.wine import WineHost, base_prefix, find_wine
from lab.windows.wsman import EndpointConfig

OLD, NEW = "1.1.3", "1.3.0"
CLIENT = r"C:\k\csiclient.exe"
PIPES = "csi-proxy-disk-v1,csi-proxy-volume-v1,csi-proxy-system-v1alpha1"
IMAGE_PATH = r"C:\Windows\System32\reg.exe query HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy /v ImagePath"
PLAY = [
    {
        "hosts": "windows",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Keep csi-proxy",
                "kubewin.csi.csi_proxy": {
                    "version": "{{ wanted.version }}",
                    "source": "{{ wanted.source }}",
                    "checksum": "{{ wanted.checksum }}",
                    "allow_downgrade": True,
                },
            }
        ],
    }
]


@dataclass(frozen=True, slots=True)
class Rig:
    """One host, and the folder that holds its inventory and playbook."""

    host: WineHost
    folder: Path
    url: str

    def keep(self, version: str, program: str) -> playbooks.Run:
        """Run the task for a version with a program of the artifact server."""
        file = self.folder / "artifacts" / program
        wanted = {"version": version, "source": f"{self.url}/{program}", "checksum": f"sha256:{builds.sha256(file)}"}
        return playbooks.play(
            str(self.folder / "play.yml"), self.folder / "inventory.yml", variables={"wanted": wanted}
        )

    def client(self, *flags: str) -> dict[str, Any]:
        """The output of csi-proxy's own client, as JSON."""
        done = self.host.agent.run(" ".join((CLIENT, "-dial", PIPES, *flags)))
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["ok"] is (done.rc == 0), answer
        return answer

    def serves(self, release: str) -> None:
        """Every call through the pipes is answered, by this release, whose file the service names."""
        answer = self.client()
        assert answer["ok"], answer
        assert len(answer["checks"]) == len(PIPES.split(",")) + 4
        assert self.client("-disks")["ok"] is (release == NEW)
        assert rf"\{release}-" in self.host.agent.run(IMAGE_PATH).stdout.decode()


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    wine = find_wine()
    base = base_prefix(wine, builds.cache())
    folder = Path(tempfile.mkdtemp(prefix="upgrade-", dir=builds.cache() / "wine"))
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    for name in (f"csi-proxy-{OLD}", f"csi-proxy-{NEW}", "mute", "csiclient"):
        for program in builds.build(name).values():
            shutil.copyfile(program, artifacts / program.name)
    host = WineHost(wine, "upgrade", "127.0.11.77", folder / "host")
    config = FrontConfig(
        ready_file=str(folder / "ready.json"),
        users={"Administrator": "not-a-secret"},
        artifacts=ArtifactsConfig(str(artifacts)),
    )
    try:
        host.create(base, builds.build("winland-windows")["winland.exe"])
        shutil.copyfile(artifacts / "csiclient.exe", host.path(CLIENT))
        host.boot()
        with FrontProcess(config, folder) as front:
            endpoint = EndpointConfig(name=host.name, agent=host.agent.address, basic_over_http=True, https=None)
            port = front.control.add_host(HostConfig(endpoint=endpoint))["ports"]["http"]
            connection = {
                "ansible_connection": "winrm",
                "ansible_host": "127.0.0.1",
                "ansible_port": port,
                "ansible_user": "Administrator",
                "ansible_password": "not-a-secret",
                "ansible_winrm_transport": "basic",
                "ansible_winrm_scheme": "http",
            }
            inventory = {"windows": {"hosts": {host.name: connection}}}
            (folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
            (folder / "play.yml").write_text(yaml.safe_dump(PLAY, sort_keys=False), encoding="utf-8")
            yield Rig(host, folder, f"http://127.0.0.1:{front.state['artifacts']['http']}")
    finally:
        host.remove()
        shutil.rmtree(folder)


@pytest.fixture
def old(rig: Rig) -> Rig:
    """The old release is installed and serves, whatever was there before."""
    run = rig.keep(OLD, f"csi-proxy-{OLD}.exe")
    assert run.code == 0, run.screen
    rig.serves(OLD)
    return rig


def test_upgrade_is_served_by_the_new_release(old: Rig) -> None:
    run = old.keep(NEW, f"csi-proxy-{NEW}.exe")
    assert run.code == 0, run.screen
    result = run.results("Keep csi-proxy")[old.host.name]
    assert result["changed"] is True
    assert result["csi_proxy"]["executable"]["release"] == NEW
    assert result["csi_proxy"]["serving"] is True
    old.serves(NEW)

    again = old.keep(NEW, f"csi-proxy-{NEW}.exe")
    assert again.code == 0, again.screen
    assert not again.changed


@pytest.mark.parametrize(
    ("program", "expected", "logged"),
    [
        pytest.param("csiclient.exe", "1053", "", id="does not start", marks=pytest.mark.turn(2, 4)),
        # The task gives the pipes 45 s to appear.
        pytest.param(
            "mute.exe",
            "does not serve csi-proxy-disk-v1",
            "mute: no pipes will be served",
            id="serves no pipes",
            marks=pytest.mark.torture,
        ),
    ],
)
def test_what_does_not_work_is_rolled_back(old: Rig, program: str, expected: str, logged: str) -> None:
    run = old.keep(NEW, program)
    assert run.code != 0, run.screen
    (failure,) = run.failures
    assert failure["event"] == "failed"
    result = failure["result"]
    assert expected in result["msg"]
    assert f"csi-proxy {OLD} is restored and serving" in result["msg"]
    assert logged in "\n".join(result["log_tail"])
    assert logged in run.screen
    old.serves(OLD)
