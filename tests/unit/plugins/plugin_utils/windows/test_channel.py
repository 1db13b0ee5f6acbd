# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channels over WinRM: the plugins winrm (pywinrm) and psrp (pypsrp) against the lab's WS-Man server, alike."""

from __future__ import annotations

import hashlib
import io
import os
import random
import tarfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands, prove, winrs
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import CHANNELS, open_channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import (
    ChannelError,
    CommandTimeoutError,
    ConnectionLostError,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import WindowsHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.winrs import WinrmChannel
from benchmark.rig import requests_sent
from lab.windows.agent import Agent
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontProcess
from lab.windows.simulated import SimulatedServer
from lab.windows.wsman import EndpointConfig
from unit.plugins.plugin_utils.windows.connections import HOST, PASSWORD, USER, Endpoint, OneAnswer, Refusing
from unit.plugins.plugin_utils.windows.simulated import NEW, Artifacts, Host, wanted

# Bytes of a request for output and of an empty answer, heads included.
_ENVELOPE = 4000


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


@pytest.fixture(params=["winrm", "psrp"])
def endpoint(running_front: FrontProcess, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    yield Endpoint(running_front, running_front.state["hosts"][HOST], request.param)
    running_front.control.clear_faults(HOST)


@pytest.mark.parametrize("transport", ["basic", "ntlm"])
def test_a_line_and_its_answer(endpoint: Endpoint, transport: str) -> None:
    connection = endpoint.connection(transport)
    channel = open_channel(connection)
    completed = channel.run(r"C:\Windows\System32\sc.exe query nosuch & echo Größe !errorlevel!")
    assert completed.stdout.decode().splitlines()[-1] == "Größe 1060"
    assert channel.run("exit 3000000000").rc in (3000000000, 0xFFFFFFFF & int("3000000000"))
    connection.close()


def test_a_command_costs_two_requests_and_one_for_its_slot_before_the_next(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = open_channel(connection)
    endpoint.front.control.counters(HOST, reset=True)
    channel.run("ver")
    counters = endpoint.front.control.counters(HOST)
    assert (counters["commands"], counters["signals"]) == (1, 0)
    assert requests_sent(counters) <= 3
    channel.run("ver")
    counters = endpoint.front.control.counters(HOST)
    assert (counters["commands"], counters["signals"]) == (2, 1)
    connection.close()


def test_a_converged_node_costs_its_budget_of_requests(
    endpoint: Endpoint, server: SimulatedServer, artifacts: Artifacts
) -> None:
    """Shell, command, output and the end of the shell: the budget of a node on which nothing is to be done."""
    host = Host(Agent(server.address, HOST))
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    connection = endpoint.connection()
    endpoint.front.control.counters(HOST, reset=True)
    try:
        channel = open_channel(connection)
        assert not prove.converge(WindowsHost(channel), desired).changed
        channel.close()
        connection.close()
        counters = endpoint.front.control.counters(HOST)
    finally:
        host.run(wanted(None, state="absent"))
    assert requests_sent(counters) <= 4
    # Each time that output is asked for again costs an envelope of its own.
    again = counters["receives"] - counters["commands"]
    assert counters["bytes_in"] + counters["bytes_out"] - again * _ENVELOPE <= 26_000


def test_binary_input_arrives_whole(endpoint: Endpoint) -> None:
    content = random.Random(7).randbytes(1_000_003)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        entry = tarfile.TarInfo("x.bin")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    archive.seek(0)
    connection = endpoint.connection()
    channel = open_channel(connection)
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
    channel = open_channel(connection)
    endpoint.front.control.counters(HOST, reset=True)
    endpoint.fault("quota", operation="Command")
    assert channel.run("echo fine").stdout.strip() == b"fine"
    counters = endpoint.front.control.counters(HOST)
    assert (counters["shells"], counters["deletes"], counters["commands"]) == (1, 1, 1)
    connection.close()


def test_a_persistent_quota_is_reported(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = open_channel(connection)
    endpoint.fault("quota", operation="Command", times=None)
    with pytest.raises(ChannelError) as caught:
        channel.run("ver")
    assert caught.value.reason == "quota_exceeded"
    assert "MaxShellsPerUser" in str(caught.value)
    connection.close()


def test_a_policy_against_remote_shells_is_named_with_the_way_out(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    endpoint.fault("shells_refused", operation="", times=None)
    with pytest.raises(ChannelError) as caught:
        open_channel(connection).run("ver")
    assert caught.value.reason == "remote_shell_disabled"
    assert "Allow Remote Shell Access" in caught.value.message
    assert "ansible_connection: ssh" in caught.value.remedy
    connection.close()


def test_silence_is_no_error_until_the_limit(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = open_channel(connection)
    endpoint.fault("operation_timeout", operation="Receive", times=2)
    assert channel.run("echo late").stdout.strip() == b"late"
    endpoint.fault("operation_timeout", operation="Receive", times=None)
    with pytest.raises(CommandTimeoutError):
        channel.run("ver", timeout=0.2)
    connection.close()


def test_a_busy_command_gets_its_input_again(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    waits: list[float] = []
    channel = CHANNELS[endpoint.plugin](connection, sleep=waits.append)
    endpoint.fault("busy", operation="Send")
    completed = channel.run(r"C:\Windows\System32\findstr.exe /l /c:word", stdin=io.BytesIO(b"a word\r\n"))
    assert completed.stdout == b"a word\r\n"
    assert len(waits) == 1
    connection.close()


@pytest.mark.parametrize("operation", ["Command", "Receive"])
@pytest.mark.parametrize("effect", ["request_lost", "reply_lost", "http_500"])
def test_a_lost_connection(endpoint: Endpoint, effect: str, operation: str) -> None:
    connection = endpoint.connection()
    channel = open_channel(connection)
    endpoint.fault(effect, operation=operation)
    with pytest.raises(ConnectionLostError) as caught:
        channel.run("ver")
    assert caught.value.reason == "connection_lost"
    assert "may have finished" in str(caught.value)
    # The next command goes over a new session: a rollback can follow.
    assert b"Windows" in channel.run("ver").stdout
    connection.close()


def test_a_late_answer_is_not_requested_again(endpoint: Endpoint) -> None:
    """What the late answer holds is gone, so that a second question would get a code without the output."""
    timeouts: dict[str, Any] = {
        "ansible_winrm_read_timeout_sec": 2,
        "ansible_winrm_operation_timeout_sec": 1,
        "ansible_psrp_read_timeout": 2,
        "ansible_psrp_operation_timeout": 1,
    }
    connection = endpoint.connection(**timeouts)
    channel = open_channel(connection)
    endpoint.front.control.counters(HOST, reset=True)
    endpoint.fault("delay", operation="Receive", delay_ms=4000)
    with pytest.raises(ConnectionLostError):
        channel.run("ver")
    assert endpoint.front.control.counters(HOST)["receives"] <= 1
    assert b"Windows" in channel.run("ver").stdout
    channel.close()
    connection.close()


def test_a_wrong_password(endpoint: Endpoint) -> None:
    with pytest.raises(ChannelError) as caught:
        open_channel(endpoint.connection(password="wrong"))
    assert caught.value.reason == "access_denied"
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "Kerberos auth failure for principal me@LAB with subprocess: kinit: Password incorrect while getting initial credentials",
        "Decrypt integrity check failed -1765328353",
        "Major (851968): Unspecified GSS failure, Minor (2529639053): No Kerberos credentials available",
    ],
)
def test_without_a_ticket_the_remedy_names_the_logon(text: str) -> None:
    channel = WinrmChannel.__new__(WinrmChannel)
    channel._connection = SimpleNamespace(_winrm_host="win-1", _winrm_port=5985, _winrm_scheme="http")
    error = channel._translate_error(AnsibleConnectionFailure(text), "")
    assert error.reason == "access_denied"
    assert str(error).startswith(f"Kerberos gave no ticket for http://win-1:5985: {text}. Check ansible_user")


def test_a_logon_that_is_refused_later(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    channel = open_channel(connection)
    endpoint.fault("unauthorized")
    with pytest.raises(ChannelError) as caught:
        channel.run("ver")
    assert caught.value.reason == "access_denied"
    endpoint.front.control.clear_faults(HOST)
    connection.close()


def test_no_answer(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    endpoint.front.control.settings(HOST, down=True)
    try:
        with pytest.raises(ConnectionLostError):
            open_channel(connection)
    finally:
        endpoint.front.control.settings(HOST, down=False)


def test_an_interrupt_ends_the_command_and_leaves_a_usable_channel(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = endpoint.connection("ntlm")
    channel = open_channel(connection)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(channel, "_receive", interrupted)
    endpoint.front.control.counters(HOST, reset=True)
    with pytest.raises(KeyboardInterrupt):
        channel.run("ver")
    monkeypatch.undo()
    assert endpoint.front.control.counters(HOST)["signals"] == 1
    assert b"Windows" in channel.run("ver").stdout
    connection.close()


def test_marks_of_steps_survive_the_way(endpoint: Endpoint) -> None:
    connection = endpoint.connection()
    node = WindowsHost(open_channel(connection))
    answers = node.ask(
        [
            ("missing", commands.program("sc", "query", "nosuch")),
            ("pipes", commands.list_pipes("csi-proxy-")),
            ("listed", commands.builtin("dir", "C:\\Windows", switches="/b /ad")),
        ]
    )
    assert (answers.code("missing"), answers.code("listed")) == (1060, 0)
    assert "System32" in answers.text("listed")
    connection.close()


def test_every_option_of_a_psrp_connection_reaches_pypsrp(monkeypatch: pytest.MonkeyPatch) -> None:
    """pypsrp gets every psrp option of the user, except those about runspaces."""
    given: dict[str, Any] = {
        "host": "win-1",
        "port": 5999,
        "protocol": "http",
        "path": "other",
        "auth": "credssp",
        "ca_cert": "/ca.pem",
        "connection_timeout": 41,
        "read_timeout": 42,
        "operation_timeout": 43,
        "reconnection_retries": 44,
        "reconnection_backoff": 45,
        "max_envelope_size": 460_000,
        "message_encryption": "always",
        "proxy": "http://proxy:1",
        "ignore_proxy": True,
        "certificate_pem": "/cert.pem",
        "certificate_key_pem": "/key.pem",
        "credssp_auth_mechanism": "ntlm",
        "credssp_disable_tlsv1_2": True,
        "credssp_minimum_version": 5,
        "negotiate_delegate": True,
        "negotiate_hostname_override": "other-name",
        "negotiate_send_cbt": False,
        "negotiate_service": "HOST",
    }
    reported: dict[str, Any] = {}

    class Passed(Exception):
        pass

    def wsman(**options: Any) -> None:
        reported.update(options)
        raise Passed

    monkeypatch.setattr("pypsrp.wsman.WSMan", wsman)
    connection = connection_loader.get("psrp", PlayContext(), os.devnull)
    variables = {f"ansible_psrp_{name}": value for name, value in given.items()}
    connection.set_options(var_options={**variables, "ansible_user": "u", "ansible_password": "p", "_extras": {}})
    with pytest.raises(ConnectionLostError, match="No command was sent"):
        open_channel(connection)
    names = {"host": "server", "message_encryption": "encryption", "ca_cert": "cert_validation"}
    names["ignore_proxy"] = "no_proxy"
    expected = {names.get(name, name): value for name, value in given.items() if name != "protocol"}
    assert reported == {**expected, "username": "u", "password": "p", "ssl": False}


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
    with pytest.raises(ChannelError) as caught:
        open_channel(Refusing(error))
    assert caught.value.reason == reason


@pytest.mark.parametrize("transport", ["local", "docker"])
def test_other_connections_are_refused(transport: str) -> None:
    connection = OneAnswer(b"")
    connection.transport = transport
    with pytest.raises(ChannelError) as caught:
        open_channel(connection)
    assert caught.value.reason == "unsupported_connection"
    assert "winrm, psrp or ssh" in str(caught.value)


def test_a_host_that_prints_without_end_is_stopped_by_name(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = endpoint.connection()
    node = WindowsHost(open_channel(connection))
    monkeypatch.setattr(winrs, "OUTPUT_LIMIT", 3000)
    with pytest.raises(ChannelError) as caught:
        node.ask([("release", commands.builtin("ver")), ("pipes", commands.builtin("echo", "x" * 5000))])
    assert caught.value.reason == "output_too_large"
    port = endpoint.ports["http"]
    assert str(caught.value).startswith(f"http://127.0.0.1:{port}")
    assert "a command printed more than" in str(caught.value)
    monkeypatch.undo()
    assert node.ask([("release", commands.builtin("ver"))]).code("release") == 0
    connection.close()


@pytest.mark.parametrize("error", [AttributeError("'NoneType' object has no attribute 'text'"), RecursionError()])
def test_an_answer_that_the_library_cannot_read_is_a_lost_connection(
    endpoint: Endpoint, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise error

    connection = endpoint.connection()
    channel = open_channel(connection)
    target = connection.protocol if endpoint.plugin == "winrm" else channel._shell  # type: ignore[attr-defined]  # psrp's
    monkeypatch.setattr(target, "get_command_output_raw" if endpoint.plugin == "winrm" else "receive", fail)
    with pytest.raises(ConnectionLostError) as caught:
        channel.run("ver")
    assert caught.value.reason == "connection_lost"
    connection.close()
