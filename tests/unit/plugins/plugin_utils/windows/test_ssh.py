# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channel over ssh: how it distinguishes shells, and what it has PowerShell start."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands, ssh
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import open_channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import (
    ChannelError,
    ConnectionLostError,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import WindowsHost
from hypothesis import given
from hypothesis import strategies as st
from lab.windows import powershell
from unit.plugins.plugin_utils.windows.connections import OneAnswer

CMD = b"$PSVersionTable Windows_NT\r\n"
WINDOWS_POWERSHELL = b"\r\nName   Value\r\n----   -----\r\nPSVersion   5.1\r\n%OS%\r\n"
POWERSHELL_7 = b"\r\nName   Value\r\n----   -----\r\nPSVersion   7.5.0\r\nPlatform  Win32NT\r\n%OS%\r\n"


def test_cmd_gets_its_commands_as_they_are() -> None:
    connection = OneAnswer(CMD)
    open_channel(connection).run("ver")
    assert connection.commands[1:] == [commands.SSH_PREFIX + commands.wrap_line("ver")]


@pytest.mark.parametrize(
    "answer",
    [b"System.Collections.Hashtable\r\n%OS%\r\n", WINDOWS_POWERSHELL, POWERSHELL_7, b"profile\r\n" + POWERSHELL_7],
)
def test_powershell_starts_cmd_with_the_same_command(answer: bytes) -> None:
    connection = OneAnswer(answer)
    open_channel(connection).run("echo it's")
    inner = commands.SSH_PREFIX + commands.wrap_line("echo it's")
    assert connection.commands[1:] == [commands.call_from_powershell(inner)]
    assert powershell.outcome(connection.commands[1]) == powershell.Starts(f'"{inner}"')


PLAIN = st.characters(blacklist_categories=["Cc", "Cs"])
TRICKY = st.sampled_from("'\"\\`$;&|%!^<>(){}@#, \u2018\u2019\u201a\u201b\u201c")


@given(st.text(TRICKY | PLAIN))
def test_no_character_changes_on_the_way_through_powershell(text: str) -> None:
    command = commands.SSH_PREFIX + commands.wrap_line(text)
    assert powershell.outcome(commands.call_from_powershell(command)) == powershell.Starts(f'"{command}"')


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            b"\r\nName  Value\r\n----  -----\r\nPSVersion 7.5.0\r\nPlatform  Unix\r\n%OS%\r\n",
            "not_windows",
        ),
        (b" %OS%\n", "not_windows"),
        (b"", "not_windows"),
        (AnsibleConnectionFailure("Permission denied (publickey,password)."), "access_denied"),
        (AnsibleConnectionFailure("Too many authentication failures"), "access_denied"),
        (AnsibleConnectionFailure("Connection timed out"), "connection_lost"),
        (AnsibleError("you must install the sshpass program"), "connection_configuration"),
    ],
)
def test_anything_else_is_refused(answer: bytes | Exception, reason: str) -> None:
    with pytest.raises(ChannelError) as caught:
        open_channel(OneAnswer(answer))
    assert caught.value.reason == reason
    assert "may have finished" not in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "sentence"),
    [
        ("ssh: connect to host w port 22: Connection refused", "Nothing listens on win-1:22 (connection refused)."),
        ("Host key verification failed.", "The ssh host key of win-1:22 is not known to the controller."),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ Host key verification failed.", "win-1:22 has changed."),
        ("channel 0: open failed: connect failed\nstdio forwarding failed\n", "The jump host on the way to win-1:22 "),
        ("ssh: Could not resolve hostname w: Name or service not known", "The name of win-1:22 cannot be resolved."),
        ("kex_exchange_identification: Connection closed by remote host", "win-1:22 refuses another connection."),
        (
            "kex_exchange_identification: banner line contains invalid characters",
            "The service on win-1:22 is not an SSH server.",
        ),
    ],
)
def test_each_cause_has_its_own_sentence(expected: str, sentence: str) -> None:
    with pytest.raises(ConnectionLostError, match="The connection reported: ") as caught:
        open_channel(OneAnswer(AnsibleConnectionFailure(f"Failed to connect to the host via ssh: {expected}")))
    assert sentence in str(caught.value)


def test_a_deleted_node_is_detected_and_the_users_options_stay_first() -> None:
    connection = OneAnswer(CMD)
    open_channel(connection)
    options = connection.options["ssh_extra_args"]
    assert options.startswith("-o Compression=yes ")
    assert "ServerAliveInterval" in options


ENDLESS = """#!/bin/sh
case "$*" in
*PSVersionTable*) echo '$PSVersionTable Windows_NT' ;;
*) yes 'a hostile answer' ;;
esac
"""


def test_a_host_that_prints_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh"
    program.write_text(ENDLESS)
    program.chmod(0o700)
    connection: Any = connection_loader.get("ssh", PlayContext(), os.devnull)
    connection.set_options(var_options={"ansible_host": "win-1", "ansible_ssh_executable": str(program)})
    channel = open_channel(connection)
    monkeypatch.setattr(ssh, "OUTPUT_LIMIT", 1 << 20)
    tracemalloc.start()
    with pytest.raises(ChannelError) as caught:
        WindowsHost(channel).ask([("pipes", commands.builtin("ver"))])
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    assert str(caught.value).startswith("win-1:22: a command printed more than 32 MiB")


@pytest.mark.parametrize("words", ["refused\r\nfatal: [win-2]: FAILED! => {}", "denied\nok: [win-1]"])
def test_a_banner_forges_no_line(words: str) -> None:
    with pytest.raises(ConnectionLostError) as caught:
        open_channel(OneAnswer(AnsibleConnectionFailure(words)))
    assert len(str(caught.value).splitlines()) == 1
