# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kerberos against a real KDC: a realm on loopback, a keytab for the lab's WS-Man server, and a password for the user.

Over HTTP without TLS, where the server takes encrypted messages alone, and with no password that NTLM would take.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from integration.playbooks import Run, play
from lab import builds
from lab.handle import eventually
from lab.ports import Ports
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontProcess
from lab.windows.simulated import SimulatedServer
from lab.windows.wsman import EndpointConfig

REALM, HOST, USER = "LAB.TEST", "win-1.lab.test", "operator"
CONFIG = """
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
.lab.test = {realm}
"""
KDC = """
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
}}
"""
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Read csi-proxy
      kubewin.csi.csi_proxy_info:
"""
CONNECTIONS: dict[str, dict[str, Any]] = {
    "winrm": {
        "ansible_winrm_transport": "kerberos",
        "ansible_winrm_scheme": "http",
        "ansible_winrm_message_encryption": "always",
        "ansible_winrm_kerberos_hostname_override": HOST,
        # The connection gives kinit no other variable.
        "ansible_winrm_kinit_env_vars": ["KRB5_CONFIG"],
    },
    "psrp": {
        "ansible_psrp_auth": "kerberos",
        "ansible_psrp_protocol": "http",
        "ansible_psrp_message_encryption": "always",
        "ansible_psrp_negotiate_hostname_override": HOST,
        "ansible_psrp_negotiate_service": "HTTP",
    },
}


@dataclass(frozen=True, slots=True)
class Realm:
    """The environment in which its programs run, and the user's password."""

    environment: dict[str, str]
    password: str = field(repr=False)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A KDC with a user and the service of one host."""
    folder, ports = tmp_path_factory.mktemp("realm"), Ports()
    port = ports.take("kdc")
    values = {"realm": REALM, "port": port, "folder": folder}
    for name, text in (("krb5.conf", CONFIG), ("kdc.conf", KDC)):
        (folder / name).write_text(text.format(**values), encoding="utf-8")
    own = {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "KRB5_KTNAME": str(folder / "keytab"),
        "KRB5CCNAME": f"FILE:{folder}/nobody",
        "KERBEROS_HOST": HOST,
    }
    environment = {**os.environ, **own, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    password = secrets.token_urlsafe(12)

    def administer(*words: str) -> None:
        subprocess.run(words, env=environment, check=True, capture_output=True, text=True)

    administer("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_urlsafe(12))
    for query in (
        f"addprinc -pw {password} {USER}",
        f"addprinc -randkey HTTP/{HOST}",
        f"ktadd -k {folder}/keytab HTTP/{HOST}",
    ):
        administer("kadmin.local", "-r", REALM, "-q", query)
    with open(folder / "kdc.log", "wb") as log:
        kdc = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        eventually(lambda: answers(port), "the KDC answers")
        yield Realm(environment, password)
    finally:
        kdc.terminate()
        kdc.wait(30)
        ports.close()


def answers(port: int) -> bool:
    """Whether something listens on loopback."""
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def port(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A simulated host behind WS-Man over HTTP."""
    folder = tmp_path_factory.mktemp("front")
    program = builds.build("winland-linux")["winland"]
    with SimulatedServer(program, folder) as simulated, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        simulated.create_host("win-1", "127.0.12.1")
        users = {USER: secrets.token_urlsafe(12)}
        hosts = [HostConfig(EndpointConfig("win-1", simulated.address))]
        with FrontProcess(
            FrontConfig(ready_file=str(folder / "ready.json"), users=users, hosts=hosts), folder
        ) as front:
            yield int(front.control.hosts()["win-1"]["ports"]["http"])


def read_host(realm: Realm, port: int, folder: Path, connection: str, password: str) -> Run:
    """Read csi-proxy's state over a connection."""
    (folder / "look.yml").write_text(PLAYBOOK, encoding="utf-8")
    host = {
        "ansible_connection": connection,
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": f"{USER}@{REALM}",
        "ansible_password": password,
        **CONNECTIONS[connection],
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": {"win-1": host}}}), encoding="utf-8")
    return play(str(folder / "look.yml"), folder / "inventory.json", env=realm.environment)


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_kerberos_logs_on_and_encrypts_messages(realm: Realm, port: int, tmp_path: Path, connection: str) -> None:
    run = read_host(realm, port, tmp_path, connection, realm.password)
    assert run.code == 0, run.screen
    assert run.results("Read csi-proxy")["win-1"]["csi_proxy"]["service"] is None


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_a_wrong_password_gets_no_ticket_and_a_clear_error(
    realm: Realm, port: int, tmp_path: Path, connection: str
) -> None:
    run = read_host(realm, port, tmp_path, connection, "wrong")
    assert run.code != 0
    (failed,) = (one["result"] for one in run.failures)
    assert failed["reason"] == "access_denied"
    assert failed["msg"].startswith(f"Kerberos gave no ticket for http://127.0.0.1:{port}: "), failed["msg"]
    assert "Check ansible_user (user@REALM) and ansible_password first" in failed["msg"]
