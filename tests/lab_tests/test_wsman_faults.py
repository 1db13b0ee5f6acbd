# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits, faults on demand, and what becomes of commands when shells, connections or hosts go away."""

from __future__ import annotations

import re
import threading
import time

import pytest
import requests
from lab.windows import soap
from lab.windows.agent import Agent, Request
from lab.windows.control import ControlError, FrontProcess
from lab.windows.cuts import faults
from lab.windows.faults import EFFECTS, Rule
from pypsrp.exceptions import WSManFaultError as PypsrpFault
from pypsrp.powershell import RunspacePool
from pypsrp.shell import WinRS
from pypsrp.wsman import WSMan
from requests.auth import HTTPBasicAuth
from winrm.exceptions import (
    InvalidCredentialsError,
    WinRMOperationTimeoutError,
    WinRMTransportError,
    WSManFaultError,
)

from lab_tests.conftest import PASSWORD, USER, Connect, Pki, Serve, Served
from lab_tests.stub_agent import Script, StubAgent


def fault_code(caught: pytest.ExceptionInfo[WSManFaultError]) -> int | None:
    return caught.value.wsman_fault_code


def pypsrp(host: Served) -> WSMan:
    return WSMan(
        "127.0.0.1",
        port=host.ports["http"],
        ssl=False,
        auth="basic",
        username=USER,
        password=PASSWORD,
        encryption="never",
    )


class TestLimits:
    def test_thirty_shells(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        shells = [protocol.open_shell() for _time in range(30)]
        with pytest.raises(WSManFaultError) as caught:
            protocol.open_shell()
        assert fault_code(caught) == soap.TOO_MANY_SHELLS
        protocol.close_shell(shells[0], close_session=False)
        protocol.open_shell()

    def test_operations_are_given_back_by_closing_the_shell_only(self, serve: Serve, stub: StubAgent, pki: Pki) -> None:
        host = serve(stub.address, basic_over_http=True, limits={"shells": 30, "operations": 3})
        connection = pypsrp(host)
        with WinRS(connection) as shell:
            for _time in range(3):
                shell.command("exit 0", [])
            with pytest.raises(PypsrpFault) as caught:
                shell.command("exit 0", [])
            assert caught.value.code == soap.TOO_MANY_OPERATIONS
        with WinRS(connection) as shell:
            shell.command("exit 0", [])

    def test_idle_shells_expire(self, serve: Serve, stub: StubAgent) -> None:
        host = serve(stub.address, basic_over_http=True, limits={"shells": 1, "operations": 1500})
        connection = pypsrp(host)
        WinRS(connection, idle_time_out=0).open()
        second = WinRS(connection)
        second.open()
        assert host.control.hosts()[host.name]["shells"] == 1

    def test_envelope_of_512000_bytes(self, connect: Connect) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        command = protocol.run_command(shell, "cat", console_mode_stdin=False)
        protocol.send_command_input(shell, command, b"x" * 380_000)
        with pytest.raises(WinRMTransportError) as caught:
            protocol.send_command_input(shell, command, b"x" * 400_000)
        assert caught.value.code == 413

    def test_silence_is_the_operation_timeout_and_no_end(self, connect: Connect, stub: StubAgent) -> None:
        # It prints nothing before its input has ended.
        stub.scripts["late"] = Script(((0.0, 1, b"x"),), reads_input=True)
        protocol = connect(operation_timeout_sec=1, read_timeout_sec=60)
        shell = protocol.open_shell()
        command = protocol.run_command(shell, "late", console_mode_stdin=False)
        with pytest.raises(WinRMOperationTimeoutError):
            protocol.get_command_output_raw(shell, command)
        protocol.send_command_input(shell, command, b"go on", end=True)
        assert protocol.get_command_output(shell, command) == (b"x", b"", 0)

    def test_unknown_shell_and_command(self, connect: Connect) -> None:
        protocol = connect()
        with pytest.raises(WSManFaultError) as caught:
            protocol.run_command("11111111-1111-1111-1111-111111111111", "exit 0")
        assert fault_code(caught) == soap.NOT_FOUND
        shell = protocol.open_shell()
        with pytest.raises(WSManFaultError) as caught:
            protocol.get_command_output(shell, "11111111-1111-1111-1111-111111111111")
        assert fault_code(caught) == soap.NOT_FOUND

    def test_there_is_no_powershell(self, host: Served) -> None:
        with pytest.raises(PypsrpFault, match="has no PowerShell") as caught, RunspacePool(pypsrp(host)):
            pass
        assert caught.value.code == soap.INVALID_RESOURCE_URI

    def test_what_is_no_wsman_is_refused(self, host: Served) -> None:
        url = f"http://127.0.0.1:{host.ports['http']}"
        assert requests.get(f"{url}/wsman", timeout=60).status_code == 405
        assert requests.post(f"{url}/other", timeout=60).status_code == 404
        answer = requests.post(f"{url}/wsman", data="not xml", auth=HTTPBasicAuth(USER, PASSWORD), timeout=60)
        assert answer.status_code == 400


class TestLives:
    def test_deleting_the_shell_kills_its_commands(self, connect: Connect, stub: StubAgent) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        protocol.run_command(shell, "hang")
        protocol.close_shell(shell)
        stub.wait_until("the command is killed", lambda: stub.terminated == ["hang"])

    def test_a_signal_kills_the_command_and_leaves_the_shell(self, connect: Connect, stub: StubAgent) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        command = protocol.run_command(shell, "hang")
        protocol.cleanup_command(shell, command)
        stub.wait_until("the command is killed", lambda: stub.terminated == ["hang"])
        assert protocol.get_command_output(shell, protocol.run_command(shell, "exit 3"))[2] == 3

    def test_a_dropped_connection_kills_nothing(self, connect: Connect, stub: StubAgent) -> None:
        stub.scripts["slow"] = Script(((0.3, 1, b"x"),), rc=7)
        protocol = connect()
        shell = protocol.open_shell()
        command = protocol.run_command(shell, "slow")
        protocol.transport.close_session()
        stub.wait_until("the command ends by itself", lambda: stub.finished == ["slow"])
        assert stub.terminated == []
        assert protocol.get_command_output(shell, command) == (b"x", b"", 7)

    def test_a_host_that_is_down_does_not_answer(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        host.control.settings(host.name, down=True)
        with pytest.raises(requests.ConnectionError):
            protocol.run_command(shell, "exit 0")
        host.control.settings(host.name, down=False)
        host.control.drop_shells(host.name)
        with pytest.raises(WSManFaultError) as caught:
            protocol.run_command(shell, "exit 0")
        assert fault_code(caught) == soap.NOT_FOUND

    def test_a_stopped_agent_behaves_like_a_host_that_is_down(self, serve: Serve, pki: Pki) -> None:
        with StubAgent() as dead:
            address = dead.address
        host = serve(address, basic_over_http=True)
        shell = WinRS(pypsrp(host))
        shell.open()
        with pytest.raises(requests.ConnectionError):
            shell.command("exit 0", [])


class TestFaults:
    def test_request_lost(self, connect: Connect, host: Served, stub: StubAgent) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        with faults(host.control, host.name, Rule("request_lost", "exit")):
            with pytest.raises(requests.ConnectionError):
                protocol.run_command(shell, "exit 0")
            assert stub.requests == []
            protocol.run_command(shell, "exit 0")

    def test_reply_lost(self, connect: Connect, host: Served, stub: StubAgent) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        with (
            faults(host.control, host.name, Rule("reply_lost", "say")),
            pytest.raises(requests.ConnectionError),
        ):
            protocol.run_command(shell, "say hi")
        stub.wait_until("the command ran all the same", lambda: stub.finished == ["say hi"])

    def test_killed_after_some_steps(self, connect: Connect, host: Served, stub: StubAgent) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        with faults(host.control, host.name, Rule("killed", "say", after_steps=2)):
            command = protocol.run_command(shell, "say hi")
            assert protocol.get_command_output(shell, command)[2] == 0xC000013A
        assert stub.requests[-1]["stop_after"] == 2

    def test_a_host_disconnected_for_good_stays_disconnected(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        with faults(host.control, host.name, Rule("reply_lost", for_good=True)):
            for _time in range(2):
                with pytest.raises(requests.ConnectionError):
                    protocol.run_command(shell, "exit 0")
        protocol.run_command(shell, "exit 0")

    @pytest.mark.parametrize("transport", ["basic", "ntlm"])
    def test_unauthorized_in_the_middle(self, connect: Connect, host: Served, transport: str) -> None:
        protocol = connect(transport)
        shell = protocol.open_shell()
        with faults(host.control, host.name, Rule("unauthorized")):
            with pytest.raises(InvalidCredentialsError):
                protocol.run_command(shell, "exit 0")
            with pytest.raises(InvalidCredentialsError):
                connect(transport).open_shell()
        connect(transport).run_command(shell, "exit 0")

    def test_http_500_without_a_body(self, connect: Connect, host: Served) -> None:
        with faults(host.control, host.name, Rule("http_500", operation="Create")):
            with pytest.raises(WinRMTransportError) as caught:
                connect().open_shell()
            assert caught.value.code == 500

    @pytest.mark.parametrize(
        ("effect", "operation", "code"), [("quota", "Command", soap.TOO_MANY_OPERATIONS), ("busy", "Send", soap.BUSY)]
    )
    def test_fault_codes(self, connect: Connect, host: Served, effect: str, operation: str, code: int) -> None:
        protocol = connect()
        shell = protocol.open_shell()

        def start_and_send() -> None:
            command = protocol.run_command(shell, "cat", console_mode_stdin=False)
            protocol.send_command_input(shell, command, b"x")

        with faults(host.control, host.name, Rule(effect, operation=operation)):
            with pytest.raises(WSManFaultError) as caught:
                start_and_send()
            assert fault_code(caught) == code
            start_and_send()

    def test_operation_timeout_on_demand(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        command = protocol.run_command(shell, "exit 4")
        with faults(host.control, host.name, Rule("operation_timeout", operation="Receive", times=2)):
            for _time in range(2):
                with pytest.raises(WinRMOperationTimeoutError):
                    protocol.get_command_output_raw(shell, command)
            assert protocol.get_command_output(shell, command)[2] == 4

    def test_rules_count_and_skip(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        shell = protocol.open_shell()
        codes = []
        with faults(host.control, host.name, Rule("killed", "^exit", skip=1, times=2)):
            for line in ("exit 1", "say x", "exit 1", "exit 1", "exit 1"):
                codes.append(protocol.get_command_output(shell, protocol.run_command(shell, line))[2])
            assert host.control.faults(host.name)[0]["hits"] == 2
        assert codes == [1, 0, 0xC000013A, 0xC000013A, 1]

    def test_latency_and_delay(self, connect: Connect, host: Served) -> None:
        protocol = connect()
        host.control.settings(host.name, latency_ms=100)
        started = time.monotonic()
        shell = protocol.open_shell()
        assert time.monotonic() - started >= 0.1
        host.control.settings(host.name, latency_ms=0)
        with faults(host.control, host.name, Rule("delay", delay_ms=200)):
            started = time.monotonic()
            protocol.run_command(shell, "exit 0")
            assert time.monotonic() - started >= 0.2

    @pytest.mark.parametrize(
        "rule",
        [
            {"effect": "nonsense"},
            {"effect": "killed", "operation": "Send"},
            {"effect": "quota", "match": "("},
            {"effect": "quota", "lines": 3},
            {"effect": "quota", "operation": "Comand"},
        ],
    )
    def test_rules_that_make_no_sense_are_refused(self, rule: dict[str, object]) -> None:
        with pytest.raises((ValueError, TypeError, re.error)):
            Rule.from_json(rule)

    def test_every_effect_is_described(self) -> None:
        assert all(EFFECTS.values())
        for effect in EFFECTS:
            Rule(effect)


class TestControl:
    def test_unknown_calls_are_refused(self, front: FrontProcess) -> None:
        with pytest.raises(ControlError, match="is not served here"):
            front.control.counters("nobody")
        with pytest.raises(ControlError, match="no call"):
            front.control._call("GET", "/hosts/x/y/z")

    def test_a_host_is_served_once(self, front: FrontProcess, serve: Serve, stub: StubAgent) -> None:
        served = serve(stub.address)
        with pytest.raises(ControlError, match="served already"):
            serve(stub.address, name=served.name)

    def test_one_process_serves_many_hosts_at_once(self, serve: Serve, stub: StubAgent) -> None:
        hosts = [serve(stub.address, basic_over_http=True) for _time in range(20)]
        codes: dict[str, int | None] = {}

        def work(number: int, host: Served, connection: WSMan) -> None:
            with WinRS(connection) as shell:
                shell.command(f"exit {number}", [], command_id=f"{number:08d}-0000-0000-0000-000000000000")
                codes[host.name] = shell.receive(command_id=f"{number:08d}-0000-0000-0000-000000000000")[1]

        # Made here: a connection changes a dictionary of ElementTree that all threads share.
        threads = [threading.Thread(target=work, args=(n, host, pypsrp(host))) for n, host in enumerate(hosts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert codes == {host.name: n for n, host in enumerate(hosts)}


class TestAgentClient:
    def test_control(self, stub: StubAgent) -> None:
        assert Agent(stub.address, "win-1").control("set", lang="de")["args"] == {"lang": "de"}
        assert stub.requests[-1] == {"host": "win-1", "control": "set", "args": {"lang": "de"}}
        with pytest.raises(Exception, match="refused 'refuse' for host 'win-1': as asked"):
            Agent(stub.address, "win-1").control("refuse")

    def test_run(self, stub: StubAgent) -> None:
        result = Agent(stub.address).run("cat", stdin=b"x" * 200_000)
        assert (result.rc, len(result.stdout), result.stderr) == (0, 200_000, b"")

    def test_detached_commands_run_on_and_terminated_ones_do_not(self, stub: StubAgent) -> None:
        stub.scripts["slow"] = Script(((0.2, 1, b"x"),))
        Agent(stub.address).start(Request("slow")).detach()
        command = Agent(stub.address).start(Request("hang"), timeout=60)
        command.terminate()
        assert command.wait().rc == 0xC000013A
        stub.wait_until("both ended", lambda: sorted(stub.finished) == ["hang", "slow"])
        assert stub.terminated == ["hang"]

    def test_nothing_listens(self) -> None:
        with pytest.raises(Exception, match=r"127\.0\.0\.1:9 of host 'win-1' does not answer"):
            Agent("127.0.0.1:9", "win-1").run("exit 0")
