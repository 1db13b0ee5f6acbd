# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The WS-Man server as two independent clients see it: pywinrm and pypsrp, over every kind of authentication."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pypsrp.exceptions import AuthenticationError
from pypsrp.shell import Process, SignalCode, WinRS
from pypsrp.wsman import WSMan
from winrm.exceptions import InvalidCredentialsError, WinRMTransportError, WSManFaultError
from winrm.protocol import Protocol

from lab_tests.conftest import PASSWORD, USER, Connect, Pki, Serve, Served
from lab_tests.stub_agent import StubAgent

TRANSPORTS = [("basic", "http"), ("basic", "https"), ("ntlm", "http"), ("ntlm", "https")]


def run(protocol: Protocol, line: str, stdin: bytes | None = None, **shell: Any) -> tuple[bytes, bytes, int]:
    shell_id = protocol.open_shell(codepage=65001, **shell)
    command = protocol.run_command(shell_id, line, console_mode_stdin=stdin is None)
    if stdin is not None:
        for start in range(0, len(stdin), 250_000):
            last = start + 250_000 >= len(stdin)
            protocol.send_command_input(shell_id, command, stdin[start : start + 250_000], end=last)
    answer = protocol.get_command_output(shell_id, command)
    protocol.cleanup_command(shell_id, command)
    protocol.close_shell(shell_id)
    return answer


@pytest.mark.parametrize(("transport", "scheme"), TRANSPORTS)
def test_pywinrm_runs_a_command_and_gets_streams_and_code(
    connect: Connect, stub: StubAgent, transport: str, scheme: str
) -> None:
    assert run(connect(transport, scheme), "say grüße") == ("grüße\r\n".encode(), b"", 0)
    # What remains is a cmd.exe line of modern Windows: skip is not even read.
    assert stub.requests[-1]["shell"] is True


@pytest.mark.parametrize(("transport", "scheme"), TRANSPORTS)
def test_pywinrm_streams_bytes_both_ways_unchanged(connect: Connect, transport: str, scheme: str) -> None:
    data = bytes(range(256)) * 3000
    stdout, _stderr, rc = run(connect(transport, scheme), "cat", stdin=data)
    assert (stdout == data, rc) == (True, 0)


@pytest.mark.parametrize("code", [0, 1, 1060, 4294967293, 0xC000013A])
def test_exit_codes_are_unsigned_decimal(connect: Connect, code: int) -> None:
    assert run(connect(), f"exit {code}")[2] == code


def test_large_output_keeps_within_the_envelope_that_the_client_takes(connect: Connect) -> None:
    stdout, _stderr, _rc = run(connect(), "bytes 1000000")
    assert stdout == b"x" * 1_000_000


def test_arguments_are_joined_with_blanks_and_not_quoted(connect: Connect, stub: StubAgent) -> None:
    protocol = connect()
    shell = protocol.open_shell()
    command = protocol.run_command(shell, "say", ["a b", 'c"d', "<&>"])
    protocol.get_command_output(shell, command)
    assert stub.requests[-1]["line"] == 'say a b c"d <&>'


def test_code_page_environment_and_directory_are_the_shells(connect: Connect, stub: StubAgent) -> None:
    protocol = connect()
    shell = protocol.open_shell(codepage=850, env_vars={"NAME": "wert"}, working_directory="C:\\work")
    command = protocol.run_command(shell, "env")
    stdout, _stderr, _rc = protocol.get_command_output(shell, command)
    assert json.loads(stdout) == ["C:\\work", {"NAME": "wert"}]
    assert stub.requests[-1]["codepage"] == 850


@pytest.mark.parametrize(("transport", "scheme"), TRANSPORTS)
def test_wrong_password_is_refused(connect: Connect, host: Served, transport: str, scheme: str) -> None:
    with pytest.raises(InvalidCredentialsError):
        connect(transport, scheme, password="wrong").open_shell()
    assert host.control.counters(host.name)["unauthorized"] > 0


def test_basic_over_http_needs_the_switch(stub: StubAgent, serve: Serve, pki: Pki) -> None:
    url = f"http://127.0.0.1:{serve(stub.address).ports['http']}/wsman"
    protocol = Protocol(url, transport="basic", username=USER, password=PASSWORD, ca_trust_path=str(pki.ca))
    with pytest.raises(InvalidCredentialsError):
        protocol.open_shell()


def test_ntlm_without_encryption_is_refused_on_http(connect: Connect) -> None:
    protocol = connect("ntlm", "http", message_encryption="never")
    with pytest.raises(WinRMTransportError):
        protocol.open_shell()


def test_https_is_verified(connect: Connect, pki: Pki) -> None:
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        connect("basic", "https", ca_trust_path=str(pki.untrusted_cert)).open_shell()


def test_typing_into_a_console_is_refused_loudly(connect: Connect) -> None:
    protocol = connect()
    shell = protocol.open_shell()
    command = protocol.run_command(shell, "cat", console_mode_stdin=True)
    with pytest.raises(WSManFaultError, match="WINRS_CONSOLEMODE_STDIN"):
        protocol.send_command_input(shell, command, b"yes", end=True)


def test_input_after_the_end_of_the_command_is_fault_232(connect: Connect, stub: StubAgent) -> None:
    protocol = connect()
    shell = protocol.open_shell()
    command = protocol.run_command(shell, "exit 5", console_mode_stdin=False)
    assert protocol.get_command_output(shell, command)[2] == 5
    with pytest.raises(WSManFaultError) as caught:
        protocol.send_command_input(shell, command, b"late", end=True)
    assert caught.value.wsman_fault_code == 232


def test_counters_and_journal_have_all_requests(connect: Connect, host: Served) -> None:
    host.control.counters(host.name, reset=True)
    run(connect(), "cat", stdin=b"12345")
    counters = host.control.counters(host.name)
    # Create, Command, Send, Receive (output may come before the exit code), Signal, Delete.
    assert counters["requests"] - counters["receives"] == 5
    assert {k: counters[k] for k in ("shells", "commands", "sends", "signals", "deletes", "stdin_bytes")} == {
        "shells": 1,
        "commands": 1,
        "sends": 1,
        "signals": 1,
        "deletes": 1,
        "stdin_bytes": 5,
    }
    assert counters["bytes_in"] > 5000
    assert counters["bytes_out"] > 2000
    entry = host.control.journal(host.name)[-1]
    assert (entry["line"], entry["stdin"], entry["rc"]) == ("cat", 5, 0)
    assert host.control.counters(host.name, reset=True)["requests"] > 0
    assert host.control.counters(host.name)["requests"] == 0


@pytest.fixture(params=[("ntlm", False), ("negotiate", False), ("basic", False), ("negotiate", True)])
def wsman(request: pytest.FixtureRequest, host: Served, pki: Pki) -> Iterator[WSMan]:
    auth, tls = request.param
    ports = host.ports
    connection = WSMan(
        "127.0.0.1",
        port=ports["https" if tls else "http"],
        ssl=tls,
        auth=auth,
        username=USER,
        password=PASSWORD,
        cert_validation=str(pki.ca),  # type: ignore[arg-type]  # a path works, the annotation says bool
        encryption="never" if auth == "basic" else "auto",
    )
    with connection:
        yield connection


def test_pypsrp_runs_processes_in_its_own_shell(wsman: WSMan) -> None:
    with WinRS(wsman, codepage=65001, idle_time_out=600) as shell:
        assert str(shell.idle_time_out) == "PT600.000S"
        assert shell.owner == USER
        process = Process(shell, "say", ["hi", "there"])
        process.invoke()
        process.signal(SignalCode.CTRL_C)
        assert (process.stdout, process.rc) == (b"hi there\r\n", 0)


def test_pypsrp_sends_binary_input_without_asking_for_a_mode(wsman: WSMan) -> None:
    data = bytes(range(256)) * 100
    with WinRS(wsman, codepage=65001) as shell:
        process = Process(shell, "cat")
        process.begin_invoke()
        process.send(data, end=True)
        process.end_invoke()
        assert process.stdout == data


def test_pypsrp_wrong_password(host: Served) -> None:
    port = host.ports["http"]
    connection = WSMan("127.0.0.1", port=port, ssl=False, auth="negotiate", username=USER, password="wrong")
    with connection, pytest.raises(AuthenticationError), WinRS(connection):
        pass


def test_body_that_is_not_base64_is_refused(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = connect()
    shell = protocol.open_shell()
    command = protocol.run_command(shell, "cat", console_mode_stdin=False)
    monkeypatch.setattr(base64, "b64encode", lambda data: b"!!")
    with pytest.raises(WSManFaultError, match="base64"):
        protocol.send_command_input(shell, command, b"x")
