# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible, its winrm and ssh connection plugins, and the collection's channel on them, against the servers."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.state import REPOSITORY

from lab_tests.conftest import PASSWORD, USER, MakeHost, Pki, Serve, Served

ACTION = """
from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import ChannelError, open_channel


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        archive = self._task.args["archive"]
        said = []
        try:
            channel = open_channel(self._connection)
            for line in self._task.args["lines"]:
                stdin = open(archive, "rb") if "tar.exe" in line else None
                done = channel.run(line, stdin=stdin)
                said.append([done.rc, done.stdout.decode(), done.stderr.decode()])
            channel.close()
        except ChannelError as error:
            return {**result, "failed": True, "msg": str(error), "reason": type(error).__name__, "said": said}
        return {**result, "changed": False, "said": said}
"""
CONTENT = os.urandom(700_000)
LINES = [
    r"C:\Windows\System32\sc.exe queryex nosuch & echo #a=!errorlevel!",
    r'C:\Windows\System32\tar.exe -xzf - -C "C:\Program Files" && echo #b=0 || echo #b.f=!errorlevel!',
    r'C:\Windows\System32\certutil.exe -hashfile "C:\Program Files\grüße 1.bin" SHA256',
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "file.tgz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("grüße 1.bin")
        info.size = len(CONTENT)
        tar.addfile(info, io.BytesIO(CONTENT))
    return path


def variables(transport: str, host: Served, pki: Pki) -> dict[str, Any]:
    common = {"ansible_host": "127.0.0.1", "ansible_user": USER}
    if transport == "ssh":
        return {
            **common,
            "ansible_connection": "ssh",
            "ansible_port": host.ports["ssh"],
            "ansible_shell_type": "cmd",
            "ansible_ssh_private_key_file": str(pki.ssh_client_key),
            "ansible_ssh_common_args": "-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
        }
    auth, scheme = transport.split("-")
    return {
        **common,
        "ansible_connection": "winrm",
        "ansible_password": PASSWORD,
        "ansible_port": host.ports[scheme],
        "ansible_winrm_scheme": scheme,
        "ansible_winrm_transport": auth,
        "ansible_winrm_ca_trust_path": str(pki.ca),
        "ansible_winrm_server_cert_validation": "validate",
    }


def run_ansible(folder: Path, hosts: dict[str, dict[str, Any]], archive: Path) -> dict[str, dict[str, Any]]:
    """One task on every host; its result by host name."""
    (folder / "ansible.cfg").touch()
    (folder / "action_plugins").mkdir()
    (folder / "action_plugins" / "lab_probe.py").write_text(ACTION, encoding="utf-8")
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    task = {"lab_probe": {"lines": LINES, "archive": str(archive)}}
    play = [{"hosts": "all", "gather_facts": False, "tasks": [task]}]
    (folder / "play.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_ACTION_PLUGINS": str(folder / "action_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "tree",
        "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".collections"),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_FORKS": "8",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_CALLBACK_TREE_DIR": str(folder / "results"),
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    results = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (folder / "results").glob("*")}
    assert set(results) == set(hosts), f"{done.stdout}\n{done.stderr}"
    return results


def test_one_line_form_gives_the_same_over_every_connection(
    serve: Serve, make_host: MakeHost, pki: Pki, archive: Path, tmp_path: Path
) -> None:
    transports = ["basic-http", "basic-https", "ntlm-http", "ntlm-https", "ssh"]
    hosts = {}
    for transport in transports:
        agent = make_host()
        host = serve(agent.address, name=agent.host, ssh=0, basic_over_http=True, oem_codepage=850)
        hosts[transport] = variables(transport, host, pki)
    project = tmp_path / "project"
    project.mkdir()
    results = run_ansible(project, hosts, archive)
    for transport in transports:
        assert "msg" not in results[transport], results[transport]
        queried, unpacked, hashed = results[transport]["said"]
        assert queried[1].startswith("[SC] EnumQueryServicesStatus:OpenService FAILED 1060:")
        assert queried[1].splitlines()[-1] == "#a=1060"
        assert (unpacked[0], unpacked[1].strip()) == (0, "#b=0"), unpacked
        assert hashed[1].splitlines()[1] == hashlib.sha256(CONTENT).hexdigest()


def test_refusals_reach_the_task_as_the_collections_errors(
    serve: Serve, make_host: MakeHost, pki: Pki, archive: Path, tmp_path: Path
) -> None:
    agent = make_host()
    host = serve(agent.address, name=agent.host, ssh=0, ssh_shell="powershell", basic_over_http=True)
    project = tmp_path / "project"
    project.mkdir()
    hosts = {
        "password": {**variables("ntlm-http", host, pki), "ansible_password": "wrong"},
        "powershell": variables("ssh", host, pki),
        "nobody": {**variables("basic-http", host, pki), "ansible_port": 9},
    }
    results = run_ansible(project, hosts, archive)
    reasons = {name: result.get("reason") for name, result in results.items()}
    assert reasons == {"password": "AccessDenied", "powershell": "Unsupported", "nobody": "ConnectionLost"}
    # Nothing was asked of the host.
    assert agent.control("journal")["journal"] == []
