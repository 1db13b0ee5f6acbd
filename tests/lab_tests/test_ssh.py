# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH server, driven by OpenSSH's client as Ansible drives it, and by asyncssh for passwords."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable

import asyncssh
import pytest

from lab_tests.conftest import PASSWORD, USER, Pki, Serve, Served
from lab_tests.stub_agent import StubAgent

Ssh = Callable[..., subprocess.CompletedProcess[bytes]]


def client(host: Served, pki: Pki, *command: str) -> list[str]:
    options = {
        "IdentityFile": str(pki.ssh_client_key),
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "BatchMode": "yes",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", *words, "-p", str(host.ports["ssh"]), f"{USER}@127.0.0.1", *command]


@pytest.fixture
def host(serve: Serve, stub: StubAgent) -> Served:
    return serve(stub.address, ssh=0, oem_codepage=850)


@pytest.fixture
def ssh(host: Served, pki: Pki) -> Ssh:
    def run(command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(client(host, pki, command), input=stdin, capture_output=True, timeout=120, check=False)

    return run


def test_the_command_is_quoted_once_for_cmd_and_nothing_is_escaped(ssh: Ssh, stub: StubAgent) -> None:
    done = ssh('say "a & b" %PATH%')
    assert done.stdout == b'say "a & b" %PATH%\r\n'.removeprefix(b"say ")
    assert (stub.requests[-1]["line"], stub.requests[-1]["shell"]) == ('"say "a & b" %PATH%"', True)


def test_output_comes_in_the_oem_code_page(ssh: Ssh) -> None:
    assert ssh("say grüße").stdout == "grüße\r\n".encode("cp850")


def test_the_client_cuts_exit_codes_to_eight_bits(ssh: Ssh) -> None:
    assert ssh("exit 1060").returncode == 1060 & 0xFF
    assert ssh("exit 0").returncode == 0


def test_standard_input_is_a_binary_pipe(ssh: Ssh) -> None:
    data = bytes(range(256)) * 8000
    assert ssh("cat", stdin=data).stdout == data


def test_a_client_that_leaves_does_not_end_the_command(host: Served, pki: Pki, stub: StubAgent) -> None:
    process = subprocess.Popen(client(host, pki, "hang"), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    stub.wait_until("the command runs", lambda: bool(stub.requests))
    process.kill()
    process.wait()
    stub.wait_until("its pipes break", lambda: stub.hung_up == ['"hang"'])
    assert stub.terminated == []


def test_passwords(host: Served) -> None:
    async def log_in(password: str) -> str | None:
        options = {"known_hosts": None, "client_keys": None, "config": None, "agent_path": None}
        async with asyncssh.connect(
            "127.0.0.1", host.ports["ssh"], username=USER, password=password, **options
        ) as connection:
            output = (await connection.run("say hi")).stdout
            return None if output is None else str(output)

    assert asyncio.run(log_in(PASSWORD)) == "hi\r\n"
    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(log_in("wrong"))


def test_commands_are_in_the_hosts_journal(ssh: Ssh, host: Served) -> None:
    ssh("cat", stdin=b"12345")
    entry = host.control.journal(host.name)[-1]
    assert (entry["shell"], entry["line"], entry["stdin"], entry["rc"]) == ("ssh", "cat", 5, 0)


class TestPowerShellAsDefaultShell:
    @pytest.fixture
    def host(self, serve: Serve, stub: StubAgent) -> Served:
        return serve(stub.address, ssh=0, ssh_shell="powershell")

    def test_variables_distinguish_it_from_cmd(self, ssh: Ssh) -> None:
        output = ssh("echo $PSVersionTable %OS%").stdout
        assert b"PSVersion" in output.replace(b"$PSVersionTable", b"")
        assert b"%OS%" in output

    @pytest.mark.parametrize("line", ["chcp 65001 >nul & ver", "ver && ver", "ver || ver"])
    def test_cmds_operators_are_parser_errors(self, ssh: Ssh, line: str) -> None:
        done = ssh(line)
        assert done.returncode == 1
        assert b"FullyQualifiedErrorId" in done.stderr

    def test_nothing_reaches_the_host(self, ssh: Ssh, stub: StubAgent) -> None:
        assert ssh("sc.exe query").returncode == 1
        assert stub.requests == []
