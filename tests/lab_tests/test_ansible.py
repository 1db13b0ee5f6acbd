# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible, its winrm, psrp and ssh connection plugins, and the collection's channel on them, against the servers."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from lab.handle import eventually
from lab.state import REPOSITORY
from unit.plugins.plugin_utils.windows.simulated import NEW, OLD, Artifacts, Host, wanted
from unit.plugins.shown import RST, blocks

from lab_tests.conftest import PASSWORD, USER, MakeHost, Pki, Serve, Served
from lab_tests.passages import passages

ACTION = """
from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import open_channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ChannelError


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        archive = self._task.args["archive"]
        outputs = []
        try:
            channel = open_channel(self._connection)
            for line in self._task.args["lines"]:
                stdin = open(archive, "rb") if "tar.exe" in line else None
                done = channel.run(line, stdin=stdin)
                outputs.append([done.rc, done.stdout.decode(), done.stderr.decode()])
            channel.close()
        except ChannelError as error:
            return {**result, "failed": True, "msg": str(error), "reason": error.reason, "outputs": outputs}
        return {**result, "changed": False, "outputs": outputs}
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
    if transport.startswith("ssh"):
        return {
            **common,
            "ansible_connection": "ssh",
            "ansible_port": host.ports["ssh"],
            "ansible_shell_type": "cmd",
            "ansible_ssh_private_key_file": str(pki.ssh_client_key),
            "ansible_ssh_common_args": "-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
        }
    plugin, auth, scheme = transport.split("-")
    if plugin == "psrp":
        return {
            **common,
            "ansible_connection": "psrp",
            "ansible_password": PASSWORD,
            "ansible_port": host.ports[scheme],
            "ansible_psrp_protocol": scheme,
            "ansible_psrp_auth": auth,
            "ansible_psrp_ca_cert": str(pki.ca),
            "ansible_psrp_message_encryption": "never" if (auth, scheme) == ("basic", "http") else "auto",
            "ansible_psrp_certificate_pem": str(pki.client_cert),
            "ansible_psrp_certificate_key_pem": str(pki.client_key),
        }
    return {
        **common,
        "ansible_connection": "winrm",
        "ansible_password": PASSWORD,
        "ansible_port": host.ports[scheme],
        "ansible_winrm_scheme": scheme,
        "ansible_winrm_transport": auth,
        "ansible_winrm_ca_trust_path": str(pki.ca),
        "ansible_winrm_cert_pem": str(pki.client_cert),
        "ansible_winrm_cert_key_pem": str(pki.client_key),
        "ansible_winrm_server_cert_validation": "validate",
    }


def start_ansible(
    folder: Path, hosts: dict[str, dict[str, Any]], task: dict[str, Any], *arguments: str
) -> subprocess.Popen[str]:
    """One task on every host, in a process group of its own."""
    (folder / "ansible.cfg").touch()
    (folder / "action_plugins").mkdir()
    (folder / "action_plugins" / "lab_probe.py").write_text(ACTION, encoding="utf-8")
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
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
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_ansible(
    folder: Path, hosts: dict[str, dict[str, Any]], task: dict[str, Any], *arguments: str
) -> tuple[dict[str, dict[str, Any]], str]:
    """One task on every host; its result by host name, and what was printed."""
    screen, _nothing = start_ansible(folder, hosts, task, *arguments).communicate(timeout=600)
    results = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (folder / "results").glob("*")}
    assert set(results) == set(hosts), screen
    return results, screen


def probe(archive: Path) -> dict[str, Any]:
    return {"lab_probe": {"lines": LINES, "archive": str(archive)}}


def test_one_line_form_gives_the_same_over_every_connection(
    serve: Serve, make_host: MakeHost, pki: Pki, archive: Path, tmp_path: Path
) -> None:
    ways = ("basic-http", "basic-https", "ntlm-http", "ntlm-https", "certificate-https")
    transports = [*(f"{plugin}-{way}" for plugin in ("winrm", "psrp") for way in ways), "ssh", "ssh-powershell"]
    hosts = {}
    for transport in transports:
        agent = make_host()
        shell = "powershell" if transport == "ssh-powershell" else "cmd"
        host = serve(agent.address, name=agent.host, ssh=0, ssh_shell=shell, basic_over_http=True, oem_codepage=850)
        hosts[transport] = variables(transport, host, pki)
    project = tmp_path / "project"
    project.mkdir()
    results, _screen = run_ansible(project, hosts, probe(archive))
    for transport in transports:
        assert "msg" not in results[transport], results[transport]
        queried, unpacked, hashed = results[transport]["outputs"]
        assert queried[1].startswith("[SC] EnumQueryServicesStatus:OpenService FAILED 1060:")
        assert queried[1].splitlines()[-1] == "#a=1060"
        assert (unpacked[0], unpacked[1].strip()) == (0, "#b=0"), unpacked
        assert hashed[1].splitlines()[1] == hashlib.sha256(CONTENT).hexdigest()


def test_each_refusal_has_its_own_sentence(
    serve: Serve, make_host: MakeHost, pki: Pki, archive: Path, tmp_path: Path
) -> None:
    """What stands between a controller and a host, over every connection: what was found, and what to do first."""
    agent = make_host()
    host = serve(agent.address, name=agent.host, ssh=0, basic_over_http=True)
    full = serve(agent.address, name=f"{agent.host}-full", basic_over_http=True, limits={"shells": 0, "operations": 9})
    other = serve(agent.address, name=f"{agent.host}-other", address="127.0.0.2")
    http, https = (f"127.0.0.1:{host.ports[scheme]}" for scheme in ("http", "https"))
    hosts: dict[str, dict[str, Any]] = {}
    expected: dict[str, tuple[str, str]] = {}

    def tried(name: str, kind: str, sentence: str, transport: str, **changed: Any) -> None:
        hosts[name] = {**variables(transport, changed.pop("to", host), pki), **changed}
        expected[name] = (kind, sentence)

    names = {
        "winrm": ("ansible_winrm_scheme", "ansible_winrm_ca_trust_path", "ansible_winrm_proxy"),
        "psrp": ("ansible_psrp_protocol", "ansible_psrp_ca_cert", "ansible_psrp_proxy"),
    }
    for plugin, (scheme, ca, proxy) in names.items():
        ntlm, tls = f"{plugin}-ntlm-http", f"{plugin}-basic-https"
        refused = "Check ansible_user and ansible_password first."
        tried(f"{plugin}-password", "access_denied", refused, ntlm, ansible_password="wrong")
        tried(f"{plugin}-basic", "access_denied", refused, tls, ansible_password="wrong")
        unset = f"No password is set for http://{http}, and the logon failed"
        for kind, password in (("blank", ""), ("no", None)):
            for auth in ("ntlm", "basic"):
                tried(
                    f"{plugin}-{auth}-{kind}-password",
                    "access_denied",
                    unset,
                    f"{plugin}-{auth}-http",
                    ansible_password=password,
                )
        certificate = {"ansible_winrm_cert_pem": str(pki.cert), "ansible_winrm_cert_key_pem": str(pki.key)}
        certificate |= {"ansible_psrp_certificate_pem": str(pki.cert), "ansible_psrp_certificate_key_pem": str(pki.key)}
        tried(
            f"{plugin}-mapping",
            "access_denied",
            "WinRM refused the logon",
            f"{plugin}-certificate-https",
            **certificate,
        )
        tried(f"{plugin}-port", "connection_lost", "Nothing listens on http://127.0.0.1:9 ", ntlm, ansible_port=9)
        sentence = f"http://{https} ends the connection without an answer to plain HTTP, as an HTTPS listener does. If it is one, set {scheme} to https"
        tried(f"{plugin}-plain", "connection_lost", sentence, ntlm, ansible_port=host.ports["https"])
        sentence = f"https://{http} answers without TLS, so it is an HTTP listener. Set {scheme} to http"
        tried(f"{plugin}-tls", "connection_lost", sentence, tls, ansible_port=host.ports["http"])
        sentence = f"The certificate of https://{https} is not trusted by the controller"
        tried(f"{plugin}-trust", "connection_lost", sentence, tls, **{ca: str(pki.untrusted_cert)})
        tried(f"{plugin}-name", "connection_lost", "is for another name", tls, to=other, ansible_host="127.0.0.2")
        sentence = f"The name of http://no-such-host.invalid:{host.ports['http']} cannot be resolved"
        tried(f"{plugin}-dns", "connection_lost", sentence, ntlm, ansible_host="no-such-host.invalid")
        tried(
            f"{plugin}-proxy",
            "connection_lost",
            f"The HTTP proxy on the way to https://{https}",
            tls,
            **{proxy: "http://127.0.0.1:9"},
        )
        tried(f"{plugin}-quota", "quota_exceeded", "MaxShellsPerUser", ntlm, to=full)
        tried(
            f"{plugin}-path",
            "connection_lost",
            "it is not a WinRM listener",
            ntlm,
            **{f"ansible_{plugin}_path": "/other"},
        )
    sentence = "Nothing listens on 127.0.0.1:9 (connection refused). Correct ansible_port, or start the service sshd"
    tried("ssh-port", "connection_lost", sentence, "ssh", ansible_port=9)
    tried(
        "ssh-key",
        "access_denied",
        "refused the logon over ssh",
        "ssh",
        ansible_ssh_private_key_file=str(pki.ssh_host_key),
    )
    tried(
        "ssh-no-password",
        "access_denied",
        f"No password is set for 127.0.0.1:{host.ports['ssh']}, and the logon failed",
        "ssh",
        ansible_ssh_private_key_file="",
        ansible_ssh_extra_args="-o IdentityFile=none -o IdentityAgent=none",
    )
    strict = "-F none -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null"
    tried("ssh-host-key", "connection_lost", "is not known to the controller", "ssh", ansible_ssh_common_args=strict)
    tried("ssh-dns", "connection_lost", "cannot be resolved", "ssh", ansible_host="no-such-host.invalid")
    project = tmp_path / "project"
    project.mkdir()
    results, _screen = run_ansible(project, hosts, probe(archive))
    found = {name: (result.get("reason"), result.get("msg", "")) for name, result in results.items()}
    wrong = {
        name: found[name]
        for name, (kind, sentence) in expected.items()
        if found[name][0] != kind or sentence not in found[name][1]
    }
    assert wrong == {}
    # Nothing was asked of the host.
    assert agent.control("journal")["journal"] == []


def test_the_ways_through_jump_hosts_and_proxies_that_the_guide_shows(
    serve: Serve, make_host: MakeHost, pki: Pki, archive: Path, tmp_path: Path
) -> None:
    agent = make_host()
    host = serve(agent.address, name=agent.host, ssh=0)
    shown = [block for block in blocks(RST / "guide_jump_hosts.rst") if block.kind in ("yaml", "text")]
    with passages(pki.ssh_host_key, pki.authorized_keys) as (proxy, jump):
        config = tmp_path / "ssh_config"
        (stanza,) = [block.text for block in shown if block.kind == "text"]
        stanza = stanza.replace("jump.example.com", "localhost").replace("~/.ssh/jump", str(pki.ssh_client_key))
        common = "    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n"
        config.write_text(f"{stanza}\nHost *\n{common}", encoding="utf-8")
        hosts = {}
        for block in shown:
            if block.kind == "text":
                continue
            text = block.text.replace("/etc/pki/windows/ca.pem", str(pki.ca)).replace(
                "~/.ssh/windows", str(pki.ssh_client_key)
            )
            text = text.replace("proxy.example.com:3128", f"127.0.0.1:{proxy.port}")
            given = yaml.safe_load(
                text.replace(
                    "-o ProxyJump=ops@jump.example.com:22", f"-F {config} -o ProxyJump=ops@localhost:{jump.port}"
                )
            )
            kind = given["ansible_connection"]
            port = host.ports["ssh" if kind == "ssh" else "https"]
            secrets = {} if kind == "ssh" else {"ansible_password": PASSWORD, "ansible_user": USER}
            hosts[kind] = {**given, **secrets, "ansible_host": "127.0.0.1", "ansible_port": port}
        project = tmp_path / "project"
        project.mkdir()
        results, screen = run_ansible(project, hosts, probe(archive))
    assert {name: result.get("msg") for name, result in results.items()} == dict.fromkeys(("ssh", "psrp", "winrm")), (
        screen
    )
    assert set(jump.passed) == {("127.0.0.1", host.ports["ssh"])}
    assert set(proxy.passed) == {("127.0.0.1", host.ports["https"])}
    assert len(proxy.passed) >= 2


def encoded(secret: str) -> list[str]:
    """The forms in which a secret may appear in output: clear, and as base64 of UTF-8 and UTF-16 at every alignment."""
    forms = [secret]
    for raw in (secret.encode(), secret.encode("utf-16-le")):
        for shift in range(3):
            whole = base64.b64encode(b"\0" * shift + raw).decode()
            # The first and last characters also hold bits of what stands beside the secret.
            forms.append(whole[4 if shift else 0 : len(whole) // 4 * 4 - 4])
    return forms


def test_secrets_of_a_source_are_not_in_what_vvvv_prints(
    serve: Serve, make_host: MakeHost, pki: Pki, tmp_path: Path
) -> None:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    artifacts = Artifacts(folder)
    try:
        artifact = artifacts.csi_proxy(NEW)
        secret = "TopSecretOfTheMirror"
        source = artifact.url.replace("http://", f"http://robot:{secret}@") + f"?sig={secret}"
        hosts = {}
        for transport in ("winrm-basic-http", "psrp-ntlm-http", "ssh", "ssh-powershell"):
            agent = make_host()
            host = serve(agent.address, name=agent.host, ssh=0, basic_over_http=True)
            hosts[transport] = variables(transport, host, pki)
        task = {"kubewin.csi.csi_proxy": {"version": NEW, "checksum": artifact.sha256, "source": source}}
        project = tmp_path / "project"
        project.mkdir()
        results, screen = run_ansible(project, hosts, task, "-vvvv")
    finally:
        artifacts.close()
    assert {name: result.get("msg") for name, result in results.items()} == dict.fromkeys(hosts)
    assert "curl.exe" in screen  # ssh shows its lines
    printed = screen.replace("\0", "") + json.dumps(results)
    assert [form for form in encoded(secret) if form in printed] == []


def serves(machine: Host, desired: model.Desired) -> bool:
    """Whether a release is the service's, and runs with its pipes."""
    found = machine.observe(desired)
    service = found.service
    return (
        service is not None
        and (service.state, service.command_line) == (model.RUNNING, desired.command_line)
        and set(found.pipes) == set(desired.required_pipes)
    )


def test_a_controller_that_is_killed_in_the_swap_leaves_services_that_run(
    serve: Serve, make_host: MakeHost, pki: Pki, tmp_path: Path
) -> None:
    """The line of the swap ends on the node, over WinRM and over SSH."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    artifacts = Artifacts(folder)
    try:
        old, new = artifacts.csi_proxy(OLD), artifacts.csi_proxy(NEW)
        hosts, machines = {}, {}
        for transport in ("winrm-ntlm-http", "psrp-ntlm-http", "ssh"):
            machine = machines[transport] = Host(make_host())
            machine.agent.control("set", skip_pauses=True)
            machine.run(wanted(old))
            machine.forget()
            # Time to be killed in: the stop is answered late.
            machine.fault(match=r"sc\.exe stop", delay_ms=4000)
            host = serve(machine.agent.address, name=machine.agent.host, ssh=0)
            hosts[transport] = variables(transport, host, pki)
        task = {"kubewin.csi.csi_proxy": {"version": NEW, "checksum": new.sha256, "source": new.url}}
        project = tmp_path / "project"
        project.mkdir()
        running = start_ansible(project, hosts, task)
        eventually(
            lambda: all(any("sc.exe stop" in step for step in machine.steps()) for machine in machines.values()),
            "both services are stopped",
        )
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        for transport, machine in machines.items():
            machine.quiet()
            eventually(partial(serves, machine, wanted(new)), f"{transport}: the new release serves")
    finally:
        artifacts.close()
