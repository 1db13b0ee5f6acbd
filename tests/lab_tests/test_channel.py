# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's channel straight to simulated hosts, and every kind of cut."""

from __future__ import annotations

import io
import time

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import CommandTimeoutError, ConnectionLostError
from lab.windows.agent import KILLED, Agent
from lab.windows.channel import AgentChannel, Cut
from lab.windows.cuts import Sent, conversation, every_cut, host_faults, rule_of

from lab_tests.conftest import MakeHost
from lab_tests.stub_agent import StubAgent

THREE = r'md "C:\a" && md "C:\b" && md "C:\c"'


@pytest.fixture
def host(make_host: MakeHost) -> Agent:
    return make_host()


def folders(host: Agent) -> list[str]:
    """Which of a, b, c are there."""
    return host.run(r"dir /b C:\ ").stdout.decode().split()


def made(host: Agent) -> list[str]:
    return [name for name in ("a", "b", "c") if name in folders(host)]


def test_a_line_runs_wrapped_once(host: Agent) -> None:
    done = AgentChannel(host).run("echo hi & exit /b 7")
    assert (done.rc, done.stdout) == (7, b"hi \r\n")
    assert host.control("journal")["journal"][-1]["line"].endswith('cmd.exe /d /e:on /v:on /s /c "echo hi & exit /b 7"')


def test_exit_codes_and_input(host: Agent) -> None:
    channel = AgentChannel(host)
    assert channel.run("sc.exe queryex nosuch").rc == 1060
    assert channel.run("findstr.exe /l /c:needle", stdin=io.BytesIO(b"hay\r\nneedle\r\n")).stdout == b"needle\r\n"


def test_request_lost(host: Agent) -> None:
    channel = AgentChannel(host, Cut("request_lost", 1))
    channel.run(r'md "C:\a"')
    with pytest.raises(ConnectionLostError):
        channel.run(r'md "C:\b"')
    with pytest.raises(ConnectionLostError):
        channel.run(r'md "C:\c"')
    assert made(host) == ["a"]


def test_reply_lost_runs_on(host: Agent) -> None:
    channel = AgentChannel(host, Cut("reply_lost", 0, for_good=False))
    with pytest.raises(ConnectionLostError):
        channel.run(THREE)
    deadline = time.monotonic() + 60
    while made(host) != ["a", "b", "c"]:
        assert time.monotonic() < deadline
    assert channel.run("ver").rc == 0


@pytest.mark.parametrize(("steps", "there"), [(0, []), (1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "c"])])
def test_killed_between_the_steps_of_one_line(host: Agent, steps: int, there: list[str]) -> None:
    done = AgentChannel(host, Cut("killed", 0, steps)).run(THREE)
    assert done.rc == KILLED
    assert made(host) == there


def test_input_lost(host: Agent) -> None:
    channel = AgentChannel(host, Cut("input_lost", 0))
    with pytest.raises(ConnectionLostError):
        channel.run(r'findstr.exe /v /l /c:nothing >"C:\half"', stdin=io.BytesIO(b"line\r\n" * 1000))


def test_timeout_kills(stub: StubAgent) -> None:
    with pytest.raises(CommandTimeoutError):
        AgentChannel(Agent(stub.address)).run("hang", timeout=0.2)


def test_nothing_listens() -> None:
    with pytest.raises(ConnectionLostError):
        AgentChannel(Agent("127.0.0.1:9")).run("ver")


def test_every_interruption_of_a_conversation(host: Agent) -> None:
    host.control("journal", clear=True)
    channel = AgentChannel(host)
    channel.run("ver")
    channel.run(THREE)
    sent = conversation(host)
    assert [command.steps for command in sent] == [1, 3]
    cuts = list(every_cut(sent))
    assert [(cut.kind, cut.at, cut.after_steps) for cut in cuts] == [
        ("request_lost", 0, 0),
        ("reply_lost", 0, 0),
        ("killed", 0, 0),
        ("killed", 0, 1),
        ("request_lost", 1, 0),
        ("reply_lost", 1, 0),
        ("killed", 1, 0),
        ("killed", 1, 1),
        ("killed", 1, 2),
        ("killed", 1, 3),
    ]
    assert list(every_cut([Sent("tar", 1, has_input=True)], ["input_lost"])) == [Cut("input_lost", 0)]
    assert list(every_cut([Sent("ver", 1)], ["input_lost"])) == []


def test_rules_of_cuts() -> None:
    rule = rule_of(Cut("reply_lost", 4), "sc.exe")
    assert (rule.effect, rule.skip, rule.match, rule.operation, rule.for_good) == (
        "reply_lost",
        4,
        "sc.exe",
        "Command",
        True,
    )
    assert rule_of(Cut("killed", 1, 2)).for_good is False
    assert rule_of(Cut("input_lost", 0)).operation == "Send"


def test_faults_of_the_host_are_taken_back(host: Agent) -> None:
    rule = {"match": "sc.exe start", "rc": 1053, "times": -1}
    with host_faults(host, rule):
        assert host.run("sc.exe start nosuch").rc == 1053
    assert host.run("sc.exe start nosuch").rc == 1060
