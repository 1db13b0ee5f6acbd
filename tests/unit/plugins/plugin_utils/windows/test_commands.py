# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering of command lines, and cutting what they print into steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import builtin, program, quote_argument
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from hypothesis import given
from hypothesis import strategies as st

SAFE = st.text(st.characters(exclude_characters='%!^&|<>"', exclude_categories=["Cc", "Cs"]), max_size=60)


def c_runtime(text: str) -> list[str]:
    """Split a command line as the Microsoft C runtime does (documented under "Parsing C command-line arguments")."""
    arguments: list[str] = []
    i = 0
    while i < len(text):
        if text[i] in " \t":
            i += 1
            continue
        word, inside = "", False
        while i < len(text) and (inside or text[i] not in " \t"):
            slashes = 0
            while i < len(text) and text[i] == "\\":
                slashes += 1
                i += 1
            if i < len(text) and text[i] == '"':
                word += "\\" * (slashes // 2)
                if slashes % 2:
                    word += '"'
                else:
                    inside = not inside
                i += 1
            else:
                word += "\\" * slashes
                if i < len(text) and (inside or text[i] not in " \t"):
                    word += text[i]
                    i += 1
        arguments.append(word)
    return arguments


@given(
    st.lists(SAFE | st.sampled_from([r'"C:\a b\x.exe" -f="C:\c d"', "C:\\dir\\", 'a\\"b', ""]), min_size=1, max_size=5)
)
def test_a_program_receives_what_was_meant(values: list[str]) -> None:
    assert c_runtime(" ".join(quote_argument(value) for value in values)) == values


@given(SAFE)
def test_quotes_are_balanced_so_that_operators_of_the_line_stay_operators(value: str) -> None:
    assert quote_argument(value).count('"') % 2 == 0


@pytest.mark.parametrize("character", [*"%!^&|<>", "\n", "\r", "\0", "\x7f"])
def test_a_character_that_cmd_interprets_is_refused(character: str) -> None:
    for render in (quote_argument, lambda value: builtin("md", value), lambda value: program("sc", "start", value)):
        with pytest.raises(NodeError) as refused:
            render(f"C:\\a{character}b")
        assert refused.value.reason == "bad_value"


def test_a_path_for_a_builtin_holds_no_quote() -> None:
    with pytest.raises(NodeError):
        builtin("md", 'C:\\a"b')


def test_a_builtin_keeps_a_closing_backslash_and_a_program_gets_it_doubled() -> None:
    assert builtin("dir", "C:\\a b\\").text == 'dir "C:\\a b\\"'
    assert program("icacls", "C:\\a b\\").text == 'C:\\Windows\\System32\\icacls.exe "C:\\a b\\\\"'


def test_the_service_command_line_of_a_path_with_blanks() -> None:
    command = program("sc", "config", "csi-proxy", "binPath=", r'"C:\a b\csi-proxy.exe" -windows-service')
    assert command.text == (
        r'C:\Windows\System32\sc.exe config csi-proxy binPath= "\"C:\a b\csi-proxy.exe\" -windows-service"'
    )


def test_an_empty_item_reaches_the_program() -> None:
    assert program("sc", "config", "x", "depend=", "").text.endswith('depend= ""')


def test_a_line_that_runs_every_step() -> None:
    line = commands.render_all([program("sc", "query", "a"), builtin("dir", "C:\\b", switches="/b")], "n")
    assert line == (
        r"cd /d C:\Windows\System32&&set n=#n.&&set k=0&& echo #n.0=!k!&(.\sc.exe query a&echo !n!1=!errorlevel!"
        r'&dir /b "C:\b"&&echo !n!2=0||echo !n!2=!errorlevel!)2>nul'
    )


def test_a_line_that_stops_at_the_first_failure() -> None:
    line = commands.render_chain([program("sc", "start", "a"), builtin("md", "C:\\b")], "n")
    assert line == (
        r"set k=0&& echo #n.0=!k! && C:\Windows\System32\sc.exe start a && echo #n.1=0"
        r' && md "C:\b" && echo #n.2=0 || echo #n.f=!errorlevel!'
    )


def length(line: str) -> int:
    """Of what cmd.exe gets over ssh, the longer way: sshd's own cmd.exe, the code page, our wrapper, the line."""
    whole = rf'"C:\Windows\System32\cmd.exe" /c "{commands.SSH_PREFIX}{commands.wrap_line(line)}"'
    return len(whole.encode("utf-16-le")) // 2


@pytest.mark.parametrize("render", [commands.render_all, commands.render_chain])
def test_lines_are_as_few_as_hold_the_steps(render: Any) -> None:
    steps = [program("reg", "query", rf"HKLM\SOFTWARE\{'x' * (n % 300)}") for n in range(100)]
    steps[50] = replace(steps[50], leads=True)
    made = commands.render_lines(steps, render, "12345678")
    done = 0
    for (count, line), following in zip(made, [*made[1:], (0, "")], strict=True):
        assert line == render(steps[done : done + count], "12345678")
        done += count
        assert length(line) <= 8191
        if following[0]:
            assert done != 51, "what a step decides about stands on its line"
            more = 2 if done == 50 else 1
            assert length(render(steps[done - count : done + more], "12345678")) > 8191
    assert done == len(steps)
    assert len(made) > 1


@pytest.mark.parametrize("character", ["x", "\U0001f4be"])
def test_a_step_that_fits_no_line_is_refused(character: str) -> None:
    room = 8191 - length(commands.render_all([builtin("md", "C:\\")], "n"))
    fits = character * (room // (len(character.encode("utf-16-le")) // 2))
    assert len(commands.render_lines([builtin("md", "C:\\" + fits)], commands.render_all, "n")) == 1
    with pytest.raises(NodeError) as refused:
        commands.render_lines([builtin("md", "C:\\" + fits + 2 * character)], commands.render_all, "n")
    assert refused.value.reason == "line_too_long"


def test_quiet_steps_of_a_chain_print_nothing_until_the_last_of_them() -> None:
    stop, start = (commands.quiet(program("sc", verb, "a")) for verb in ("stop", "start"))
    line = commands.render_chain([builtin("md", "C:\\b"), stop, start], "n")
    assert line == (
        r'set k=0&& echo #n.0=!k! && md "C:\b" && echo #n.1=0'
        r" && C:\Windows\System32\sc.exe stop a >nul 2>nul && (set k=2)"
        r" && C:\Windows\System32\sc.exe start a >nul 2>nul && echo #n.3=0 || (echo #n.!k!=0& echo #n.f=!errorlevel!)"
    )


@pytest.mark.parametrize(
    ("stdout", "codes"),
    [
        (b"#n.0=0\r\n#n.1=0\r\n#n.3=0\r\n", [0, 0, 0]),
        (b"#n.0=0\r\n#n.1=0\r\n#n.0=0\r\n#n.f=1051\r\n", [0, 1051, None]),
        (b"#n.0=0\r\n#n.1=0\r\n#n.2=0\r\n#n.f=1053\r\n", [0, 0, 1053]),
        (b"#n.0=0\r\nwords\r\n#n.0=0\r\n#n.f=5\r\n", [5, None, None]),
    ],
)
def test_quiet_steps_that_were_passed_succeeded(stdout: bytes, codes: list[int | None]) -> None:
    results = commands.split_steps(stdout, "n", 3, chained=True)
    assert [result.code for result in results] == codes
    assert b"#n." not in b"".join(result.output for result in results)


def test_steps_are_separated_whatever_they_print() -> None:
    stdout = b"autorun noise\r\n#n.0=0 \r\nfirst\r\n#n.1=0 \r\nno newline at the end#n.2=-2147024894\r\n#n.3=1060\r\n"
    results = commands.split_steps(stdout, "n", 3)
    assert [result.code for result in results] == [0, 0x80070002, 1060]
    assert [result.output for result in results] == [b"first\r\n", b"no newline at the end", b""]


def test_marks_of_another_line_are_output() -> None:
    results = commands.split_steps(b"#n.0=0\r\n#m.1=5\r\n#n.1=0\r\n", "n", 1)
    assert results[0] == commands.StepResult(0, b"#m.1=5\r\n")


def test_the_step_that_failed_in_a_chain_has_its_code() -> None:
    results = commands.split_steps(b"#n.0=0\r\n#n.1=0\r\nFEHLER 5:\r\n#n.f=5\r\n", "n", 3)
    assert [result.code for result in results] == [0, 5, None]


def test_a_line_that_was_killed_has_steps_without_a_code() -> None:
    assert [result.code for result in commands.split_steps(b"#n.0=0\r\n#n.1=0\r\nhalf", "n", 2)] == [0, None]
    assert [result.code for result in commands.split_steps(b"", "n", 1)] == [None]


def test_a_file_line_never_ends_in_a_digit_before_the_redirection() -> None:
    assert commands.write_line("pid=77", "C:\\x").text == 'echo pid=77 .>"C:\\x"'
    with pytest.raises(NodeError):
        commands.write_line("a & b", "C:\\x")
