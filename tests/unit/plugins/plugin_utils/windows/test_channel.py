# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channels: Ansible's winrm plugin and pywinrm against the lab's WS-Man server, and how ssh tells shells apart."""

from __future__ import annotations

import hashlib
import io
import os
import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import (
    AccessDenied,
    ChannelError,
    CommandTimeout,
    ConnectionLost,
    QuotaExceeded,
    SshChannel,
    Unsupported,
    WinrmChannel,
    open_channel,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Node
from lab.windows.agent import Agent
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontProcess
from lab.windows.faults import Rule
from lab.windows.simulated import SimulatedServer
from lab.windows.wsman import EndpointConfig
from unit.plugins.plugin_utils.windows.simulated import NEW, Artifacts, Host, wanted

HOST, USER, PASSWORD = "wsman-1", "Administrator", "Passw0rd!"


@dataclass(slots=True)
class Endpoint:
    front: FrontProcess
    port: int

    def connection(self, transport: str = "basic", password: str = PASSWORD, **options: Any) -> Any:
        connection: Any = connection_loader.get("winrm", PlayContext(), os.devnull)
        connection.set_options(
            var_options={
                "ansible_host": "127.0.0.1",
                "ansible_port": self.port,
                "ansible_user": USER,
                "ansible_password": password,
                "ansible_winrm_scheme": "http",
                "ansible_winrm_transport": [transport],
                "_extras": {},
                **options,
            }
        )
        return connection

    def fault(self, effect: str, **rule: Any) -> None:
        self.front.control.add_fault(HOST, Rule(effect, **rule))


@pytest.fixture(scope="module")
def running_front(server: SimulatedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontProcess]:
    folder = tmp_path_factory.mktemp("front")
    server.create_host(HOST, "127.0.11.1")
    config = FrontConfig(
        ready_file=str(folder / "ready.json"),
        users={USER: PASSWORD},
        hosts=[HostConfig(EndpointConfig(HOST, server.address, basic_over_http=True))],
    )
    with FrontProcess(config, folder) as front:
        yield front


@pytest.fixture
def endpoint(running_front: FrontProcess) -> Iterator[Endpoint]:
    yield Endpoint(running_front, running_front.state["hosts"][HOST]["http"])
    running_front.control.clear_faults(HOST)


@pytest.mark.parametrize("transport", ["basic", "ntlm"])
def test_a_line_and_its_answer(endpoint: Endpoint, transport: str) -> None:
    connection = endpoint.connection(transport)
    channel = open_channel(connection)
    assert isinstance(channel, WinrmChannel)
    completed = channel.run(r"C:\Windows\System32\sc.exe query nosuch & echo Größe !errorlevel!")
    assert completed.stdout.decode().splitlines()[-1] == "Größe 1060"
    assert channel.run("exit 3000000000").rc in (3000000000, 0xFFFFFFFF & int("3000000000"))
    connection.close()


def test_one_command_costs_three_requests(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.front.control.counters(HOST, reset=True)
    channel.run("ver")
    counters = endpoint.front.control.counters(HOST)
    assert (counters["commands"], counters["signals"]) == (1, 1)
    assert counters["requests"] <= 4
    connection.close()


def test_what_a_converged_node_costs(endpoint: Endpoint, server: SimulatedServer, artifacts: Artifacts) -> None:
    """Shell, command, output, signal and the end of the shell: the budget of a node on which nothing is to be done."""
    host = Host(Agent(server.address, HOST))
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    connection = endpoint.connection()
    endpoint.front.control.counters(HOST, reset=True)
    try:
        assert not prove.converge(Node(WinrmChannel(connection)), desired).changed
        connection.close()
        counters = endpoint.front.control.counters(HOST)
    finally:
        host.run(wanted(None, state="absent"))
    assert counters["requests"] <= 5
    assert counters["bytes_in"] + counters["bytes_out"] <= 28_000


def test_binary_input_arrives_whole(endpoint: Endpoint) -> None:
    content = random.Random(7).randbytes(1_000_003)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        entry = tarfile.TarInfo("x.bin")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    archive.seek(0)
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.front.control.counters(HOST, reset=True)
    line = (
        r"md C:\in & C:\Windows\System32\tar.exe -xzf - -C C:\in"
        r" && C:\Windows\System32\certutil.exe -hashfile C:\in\x.bin SHA256"
    )
    completed = channel.run(line, stdin=archive)
    assert hashlib.sha256(content).hexdigest() in completed.stdout.decode()
    counters = endpoint.front.control.counters(HOST)
    assert counters["bytes_in"] / len(archive.getvalue()) < 1.4
    connection.close()


def test_an_exhausted_shell_is_replaced_once(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    first = connection.shell_id
    endpoint.fault("quota", operation="Command")
    assert channel.run("echo fine").stdout.strip() == b"fine"
    assert connection.shell_id != first
    connection.close()


def test_a_quota_that_stays_is_told(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.fault("quota", operation="Command", times=None)
    with pytest.raises(QuotaExceeded) as caught:
        channel.run("ver")
    assert "MaxShellsPerUser" in str(caught.value)
    connection.close()


def test_silence_is_no_error_until_the_limit(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.fault("operation_timeout", operation="Receive", times=2)
    assert channel.run("echo late").stdout.strip() == b"late"
    endpoint.fault("operation_timeout", operation="Receive", times=None)
    with pytest.raises(CommandTimeout):
        channel.run("ver", timeout=0.2)
    connection.close()


def test_a_busy_command_gets_its_input_again(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    waits: list[float] = []
    channel = WinrmChannel(connection, sleep=waits.append)
    endpoint.fault("busy", operation="Send")
    completed = channel.run(r"C:\Windows\System32\findstr.exe /l /c:word", stdin=io.BytesIO(b"a word\r\n"))
    assert completed.stdout == b"a word\r\n"
    assert len(waits) == 1
    connection.close()


@pytest.mark.parametrize("operation", ["Command", "Receive"])
@pytest.mark.parametrize("effect", ["request_lost", "reply_lost", "http_500"])
def test_a_lost_connection(endpoint: Endpoint, effect: str, operation: str) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.fault(effect, operation=operation)
    with pytest.raises(ConnectionLost) as caught:
        channel.run("ver")
    assert caught.value.reason == "connection_lost"
    # The next command goes over a new session: a rollback can follow.
    assert b"Windows" in channel.run("ver").stdout
    connection.close()


def test_a_wrong_password(endpoint: Endpoint) -> None:
    with pytest.raises(AccessDenied) as caught:
        open_channel(endpoint.connection(password="wrong"))
    assert caught.value.reason == "access_denied"
    assert "wrong" not in str(caught.value)


def test_a_logon_that_is_refused_later(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = WinrmChannel(connection)
    endpoint.fault("unauthorized")
    with pytest.raises(AccessDenied):
        channel.run("ver")
    endpoint.front.control.clear_faults(HOST)
    connection.close()


def test_nobody_answers(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    endpoint.front.control.settings(HOST, down=True)
    try:
        with pytest.raises(ConnectionLost):
            open_channel(connection)
    finally:
        endpoint.front.control.settings(HOST, down=False)


def test_an_interrupt_ends_the_command_and_leaves_a_usable_channel(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = endpoint.connection("ntlm")
    channel = WinrmChannel(connection)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(connection.protocol, "get_command_output_raw", interrupted)
    endpoint.front.control.counters(HOST, reset=True)
    with pytest.raises(KeyboardInterrupt):
        channel.run("ver")
    monkeypatch.undo()
    assert endpoint.front.control.counters(HOST)["signals"] == 1
    assert b"Windows" in channel.run("ver").stdout
    connection.close()


def test_marks_of_steps_survive_the_way(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    node = Node(WinrmChannel(connection))
    answers = node.ask(
        [
            ("missing", commands.program("sc", "query", "nosuch")),
            ("pipes", commands.list_pipes("csi-proxy-")),
            ("listed", commands.builtin("dir", "C:\\Windows", switches="/b /ad", quiet=True)),
        ]
    )
    assert (answers.code("missing"), answers.code("listed")) == (1060, 0)
    assert "System32" in answers.text("listed")
    connection.close()


class OneAnswer:
    """A connection plugin for ssh that gives one answer to whatever is asked; all that the probe needs."""

    transport = "ssh"
    _shell = None

    def __init__(self, answer: bytes | Exception) -> None:
        self._answer = answer
        self.options = {"ssh_extra_args": "-o Compression=yes"}

    def get_option(self, name: str) -> str:
        return self.options.get(name, "")

    def set_option(self, name: str, value: str) -> None:
        self.options[name] = value

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        assert not sudoable
        if isinstance(self._answer, Exception):
            raise self._answer
        return 0, self._answer, b""


def test_ssh_to_cmd_is_accepted() -> None:
    assert isinstance(open_channel(OneAnswer(b"$PSVersionTable Windows_NT\r\n")), SshChannel)


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (b"System.Collections.Hashtable\r\n%OS%\r\n", Unsupported, "powershell_default_shell"),
        (b"\r\nName   Value\r\n----   -----\r\nPSVersion   5.1\r\n%OS%\r\n", Unsupported, "powershell_default_shell"),
        (b" %OS%\n", Unsupported, "not_windows"),
        (b"", Unsupported, "not_windows"),
        (AnsibleConnectionFailure("Permission denied (publickey,password)."), AccessDenied, "access_denied"),
        (AnsibleConnectionFailure("Connection timed out"), ConnectionLost, "connection_lost"),
        (AnsibleError("you must install the sshpass program"), Unsupported, "connection_configuration"),
    ],
)
def test_ssh_to_anything_else_is_refused(answer: bytes | Exception, kind: type[ChannelError], reason: str) -> None:
    with pytest.raises(kind) as caught:
        open_channel(OneAnswer(answer))
    assert caught.value.reason == reason


def test_ssh_notices_a_node_that_is_gone_and_leaves_the_users_options_first() -> None:
    connection = OneAnswer(b"$PSVersionTable Windows_NT\r\n")
    open_channel(connection)
    options = connection.options["ssh_extra_args"]
    assert options.startswith("-o Compression=yes ")
    assert "ServerAliveInterval" in options


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AnsibleError("winrm or requests is not installed"), "connection_configuration"),
        (AnsibleError("the connection attempt timed out"), "connection_lost"),
        (AnsibleConnectionFailure("basic: connection refused"), "connection_lost"),
        (OSError("no route"), "connection_lost"),
    ],
)
def test_a_controller_that_cannot_try_is_not_a_lost_connection(error: Exception, reason: str) -> None:
    class Refusing:
        transport = "winrm"

        def _connect(self) -> None:
            raise error

    with pytest.raises(ChannelError) as caught:
        open_channel(Refusing())
    assert caught.value.reason == reason


@pytest.mark.parametrize("transport", ["psrp", "local", "docker"])
def test_other_connections_are_refused(transport: str) -> None:
    connection = OneAnswer(b"")
    connection.transport = transport
    with pytest.raises(Unsupported) as caught:
        open_channel(connection)
    assert caught.value.reason == "unsupported_connection"
    assert "winrm" in str(caught.value)
