# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a command that sshd gives to Windows PowerShell 5.1, its host's default shell.

Every step is written after public sources, and none was compared with a real Windows: sshd's escaping
(PowerShell/openssh-portable, misc.c build_commandline_string), the C runtime's arguments (Microsoft, "Parsing C command-line
arguments"), PowerShell's literals and statements (about_Quoting_Rules, about_Parsing), and how it writes the arguments of a
program (PowerShell/PowerShell, NativeCommandParameterBinder.cs as of 7.2, the rule of 5.1). Of the language only this is
understood: ``echo`` of words, ``$name='literal'``, ``& cmd.exe /c`` with plain words and literals, ``exit $LASTEXITCODE``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SHELL = r"c:\windows\system32\windowspowershell\v1.0\powershell.exe"
_SINGLE = "'\u2018\u2019\u201a\u201b"
_VARIABLES = {
    "$PSEdition": "Desktop\r\n",
    "$PSVersionTable.PSVersion.Major": "5\r\n",
    "$PSVersionTable": (
        "\r\nName                           Value\r\n----                           -----\r\n"
        "PSVersion                      5.1.20348.2700\r\nPSEdition                      Desktop\r\n\r\n"
    ),
}
_OPERATORS = {
    "&&": "The token '&&' is not a valid statement separator in this version.",
    "||": "The token '||' is not a valid statement separator in this version.",
    "&": "The ampersand (&) character is not allowed. The & operator is reserved for future use;",
}


@dataclass(frozen=True, slots=True)
class Printed:
    """PowerShell answered by itself."""

    stdout: str
    stderr: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class Starts:
    """It starts cmd.exe; ``line`` is what follows ``/c`` on the command line of the process."""

    line: str


class _ParserError(Exception):
    """The text is no statement that is understood here."""


def outcome(command: str) -> Printed | Starts:
    """What the command of an ssh client makes PowerShell do."""
    try:
        return _run(_statements(" ".join(c_arguments(sshd_line(command))[2:])))
    except _ParserError as error:
        return Printed("", f"{error}\r\n    + FullyQualifiedErrorId\r\n", 1)


def sshd_line(command: str) -> str:
    """The command line that sshd starts the shell with."""
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', command)
    quote = '"' if " " in command and not command.startswith("'") else ""
    return f'"{SHELL}" -c {quote}{escaped}{quote}'


def c_arguments(line: str) -> list[str]:
    """The arguments that the C runtime gives to a program for a command line."""
    found: list[str] = []
    argument, begun, quoted = "", False, False
    for part in re.finditer(r'(\\*)("")|(\\*)(")|\\+|[ \t]+|[^\\" \t]+', line):
        slashes, quotes = (part[1], part[2]) if part[2] else (part[3] or "", part[4] or "")
        if not quotes:
            if part[0].isspace() and not quoted:
                found += [argument] if begun else []
                argument, begun = "", False
            else:
                argument, begun = argument + part[0], True
            continue
        begun = True
        argument += "\\" * (len(slashes) // 2)
        if len(slashes) % 2:
            argument, quotes = argument + '"', quotes[1:]
        if quotes == '""' and quoted:
            argument += '"'
        elif quotes == '"':
            quoted = not quoted
    assert not quoted, line
    return found + ([argument] if begun else [])


def _statements(script: str) -> list[list[tuple[str, bool]]]:
    """Words with whether each is a literal, by statement; ``&`` and ``=`` are words of their own."""
    statements: list[list[tuple[str, bool]]] = [[]]
    at = 0
    while at < len(script):
        char = script[at]
        if char.isspace():
            at += 1
        elif char == ";":
            statements.append([])
            at += 1
        elif char in _SINGLE:
            literal, at = _literal(script, at + 1)
            statements[-1].append((literal, True))
        else:
            for token, sentence in _OPERATORS.items():
                if script.startswith(token, at) and (token != "&" or statements[-1]):
                    raise _ParserError(f"At line:1 char:{at + 1}\r\n{sentence}")
            word = re.compile(r"&|=|[^\s;=&|'\u2018-\u201b]+").match(script, at)
            if word is None:
                raise _ParserError(f"At line:1 char:{at + 1}\r\nthe lab's PowerShell does not know {char!r} here")
            statements[-1].append((word[0], False))
            at = word.end()
    return [statement for statement in statements if statement]


def _literal(script: str, at: int) -> tuple[str, int]:
    text = ""
    while at < len(script):
        if script[at] in _SINGLE:
            if script[at + 1 : at + 2] == "" or script[at + 1] not in _SINGLE:
                return text, at + 1
            at += 1
        text += script[at]
        at += 1
    raise _ParserError("The string is missing the terminator: '.")


def _run(statements: list[list[tuple[str, bool]]]) -> Printed | Starts:
    started: Starts | None = None
    for number, statement in enumerate(statements):
        words = [word for word, _literal in statement]
        match words:
            case [name, "=", _value] if name.startswith("$") and statement[2][1]:
                continue
            case ["echo" | "Write-Output", *rest] if len(statements) == 1:
                return Printed("".join(_VARIABLES.get(word, f"{word}\r\n") for word in rest))
            case ["&", program, "/c", *_rest] if program.lower().endswith("\\cmd.exe"):
                started = Starts(" ".join(_written(*word) for word in statement[3:]))
            case ["exit", "$LASTEXITCODE"] if started and number == len(statements) - 1:
                return started
            case _:
                return Printed("", f"the lab's PowerShell stand-in runs nothing: {' '.join(words)}\r\n", 1)
    # Without an exit the code is 1 for whatever failed; the lab serves only callers that request it.
    return Printed("", "the lab's PowerShell wants `exit $LASTEXITCODE` after a program\r\n", 1)


def _written(argument: str, literal: bool) -> str:
    """An argument on the command line of a program: quotes around it when it has a blank outside quotes, none escaped."""
    if not literal and re.search(r"[`$(){}@,\"]", argument):
        raise _ParserError(f"the lab's PowerShell takes plain words and literals as arguments, not {argument!r}")
    outside = "".join(argument.split('"')[::2])
    if not re.search(r"\s", outside):
        return argument
    trailing = len(argument) - len(argument.rstrip("\\"))
    return f'"{argument}{argument[len(argument) - trailing :]}"'
