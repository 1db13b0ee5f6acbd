# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
r"""Command lines for cmd.exe: the only place where text that a node runs is put together.

Every line is run as ``C:\Windows\System32\cmd.exe /d /e:on /v:on /s /c "<line>"``, under WinRS and under ssh alike. WinRS
and sshd pass that through one more cmd.exe, which PowerShell starts where it is sshd's default shell. For the outer one
the text between our inner quotes stands outside quotes, so a character that means something to cmd is dangerous quoted or
not: values that hold one are refused, never escaped.

Exit codes cannot be read from the line's own code (ssh cuts it to 8 bits, and a line has many steps), so each step prints
its own: ``#<nonce>.<step>=<code>``. The mark before the first step prints a variable that only the inner cmd.exe knows: where
the registry switches delayed expansion on for the outer one as well, it is empty, and no exit code is reliable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..base.text import mask_controls
from .errors import NodeError

SYSTEM32 = r"C:\Windows\System32"
WRAPPER = SYSTEM32 + r"\cmd.exe"
WRAPPER_ARGUMENTS = ("/d", "/e:on", "/v:on", "/s", "/c")
LINE_LIMIT = 8191
"""Characters (UTF-16 units) that cmd.exe takes on one line (Microsoft KB830473)."""
SSH_PREFIX = SYSTEM32 + r"\chcp.com 65001 >nul & "
"""What the ssh channel puts before a wrapped line: sshd starts in the OEM code page, WinRS already is in 65001."""
_OUTER = f'"{WRAPPER}" /c ""'
ROOM = LINE_LIMIT - len(_OUTER) - len(SSH_PREFIX)
"""What is left for a wrapped line when WinRS or sshd has put its own cmd.exe and prefix around it."""

_REFUSED = re.compile(r"[%!^&|<>\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[A-Za-z0-9_./\\:*+-]+=?")


@dataclass(frozen=True, slots=True)
class Command:
    """One step of a line. ``builtin`` commands leave the old error level behind when they succeed, so they are asked with ``&&``.

    ``leads``: it decides about the next step, which therefore stays on its line.

    A ``quiet`` step of a chain prints nothing, and its mark waits for the last of the quiet steps beside it: under ssh the
    output of a line whose client has left leads nowhere, and cmd.exe may end at the first word that it cannot write.
    """

    text: str
    builtin: bool = False
    leads: bool = False
    quiet: bool = False


Steps = list[tuple[str, Command]]
"""Labelled commands; labels are unique within a line."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step printed and its code (unsigned 32 bit); ``code`` is None when the step never ended."""

    code: int | None
    output: bytes


def check_value(value: str, subject: str) -> str:
    """``value`` itself, or NodeError ``bad_value`` when cmd.exe would read a part of it as its own."""
    match = _REFUSED.search(value)
    if match:
        shown = repr(match[0]) if match[0] < " " or match[0] == "\x7f" else match[0]
        raise NodeError(
            "bad_value",
            f"{subject}: {value!r} holds {shown}, which cmd.exe on the node would interpret.",
            remedy="Use a value without any of % ! ^ & | < > and control characters.",
        )
    return value


def quote_argument(value: str) -> str:
    """``value`` as one argument on a line, for a program that reads its command line as the C runtime does."""
    check_value(value, "command argument")
    return value if _PLAIN.fullmatch(value) else quote_for_c(value)


def quote_for_c(value: str) -> str:
    """``value`` between quotes as the C runtime reads them: a backslash before a quote is doubled, the last ones too."""
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', value)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return f'"{escaped}{escaped[len(escaped) - trailing :]}"'


def program(name: str, *arguments: str) -> Command:
    """A program of System32 with its arguments."""
    return Command(" ".join([rf"{SYSTEM32}\{name}.exe", *map(quote_argument, arguments)]))


def _quote_path(path: str) -> str:
    check_value(path, "path")
    if '"' in path:
        raise NodeError("bad_value", f"path: {path!r} holds a quote.", remedy="A Windows path cannot hold one.")
    return f'"{path}"'


def builtin(name: str, *paths: str, switches: str = "") -> Command:
    """A command of cmd.exe itself on whole paths; its arguments know no backslash escapes."""
    return Command(" ".join([name, *([switches] if switches else []), *map(_quote_path, paths)]), builtin=True)


def write_line(text: str, path: str) -> Command:
    """Write one line of plain words into a file. The full stop keeps a last digit from being read as a stream's number."""
    if not re.fullmatch(r"[A-Za-z0-9_.:@=/ -]+", text):
        raise NodeError("bad_value", f"text for {path}: {text!r} is not plain words.", remedy="Report this as a bug.")
    return Command(f"echo {text} .>{_quote_path(path)}", builtin=True)


def append_dot(path: str) -> Command:
    """Make a file one character longer."""
    return Command(f"echo .>>{_quote_path(path)}", builtin=True)


def list_pipes(prefix: str) -> Command:
    """List named pipes by enumeration, which connects to none of them (an existence test would)."""
    return Command(rf"dir /b \\.\pipe\\{quote_argument(prefix)}*", builtin=True)


def open_pipe(name: str) -> Command:
    """Open a named pipe for reading and read nothing: the server gets a client that disconnects."""
    return Command(rf"cd . <\\.\pipe\{quote_argument(name)}", builtin=True)


def list_links(root: str) -> Command:
    r"""For each directory ``<root>\<a>\<b>`` print ``*<its path>``, then its links with their targets, following none.

    ``dir /al`` shows what a reparse point leads to without going there; ``for /d`` reads names alone.
    """
    inner = r'(echo *%v& dir /al "%v")'
    return Command(rf'(for /d %d in ({_quote_path(root + chr(92) + "*")}) do @for /d %v in ("%d\*") do @{inner})')


def hash_service_program(key: str) -> Command:
    """Print ``*<path>`` of the program in a service's ImagePath, then what certutil.exe says of it.

    Only the first word of the value is taken: a path with blanks is not hashed, which its mark shows.
    """
    # reg.exe prints an empty line, the key, and the value's name, type and data.
    value = program("reg", "query", key, "/v", "ImagePath")
    inner = rf'(echo *%v& {SYSTEM32}\certutil.exe -hashfile "%v" SHA256)'
    return Command(f"(for /f \"skip=2 tokens=3\" %v in ('{value.text}') do @{inner})")


def repeat_for_each(words: Sequence[str], text: str) -> Command:
    """``text`` once for each word, in the place of its ``%~v``: one text for many queries that differ in a word."""
    return Command(f"(for %v in ({' '.join(map(quote_argument, words))}) do @{text})")


def pipe(producer: Command, consumer: Command) -> Command:
    """``producer | consumer``; the code of the step is the consumer's."""
    return Command(f"{producer.text} | {consumer.text}")


def tolerate(command: Command) -> Command:
    """A step of a chain whose failure does not stop the chain."""
    return Command(f"({command.text} >nul 2>nul || ver >nul)", builtin=True)


def discard_output(command: Command) -> Command:
    return replace(command, text=f"{command.text} >nul")


def close_input(command: Command) -> Command:
    """Give a program an empty input: some wait for the end of theirs."""
    return replace(command, text=f"{command.text} <nul")


def quiet(command: Command) -> Command:
    return replace(command, text=f"{command.text} >nul 2>nul", quiet=True)


def wait_for(name: str, check: Command, seconds: float, beat: Command, *, absent: bool = False) -> Command:
    """Wait until ``check`` succeeds (with ``absent``: fails), asking about once a second; fails after ``seconds``.

    ``beat`` runs before each pause, whatever becomes of it. ``name`` is unique within the line. ``ping`` is the pause that
    needs no console; ``timeout`` refuses redirected input.
    """
    pause = rf"({beat.text} & {SYSTEM32}\ping.exe -n 2 127.0.0.1 >nul & ver >nul)"
    done = f"set KUBEWIN_{name}=1"
    ask = f"({check.text}) >nul 2>nul && {pause if absent else done} || {done if absent else pause}"
    loop = f"(for /l %i in (1,1,{max(1, round(seconds)) + 1}) do @if not defined KUBEWIN_{name} ({ask}))"
    return Command(f"({loop} & set KUBEWIN_{name} >nul 2>nul)", builtin=True, quiet=True)


def render_all(commands: Sequence[Command], nonce: str) -> str:
    """A line that runs every command whatever the others do, and prints each one's code. What they complain is dropped.

    It works in System32, so that its programs have short names, and keeps the mark in a variable.
    """
    steps = []
    for number, command in enumerate(commands, 1):
        mark = f"echo !n!{number}="
        failed = f"&&{mark}0||{mark}!errorlevel!" if command.builtin else f"&{mark}!errorlevel!"
        steps.append(command.text.replace(SYSTEM32, ".") + failed)
    return f"cd /d {SYSTEM32}&&set n=#{nonce}.&&{_begin(nonce)}&({'&'.join(steps)})2>nul"


def render_chain(commands: Sequence[Command], nonce: str) -> str:
    """A line that stops at the first command that fails, and prints 0 for each before it and that one's code."""
    parts = [_begin(nonce)]
    for number, command in enumerate(commands, 1):
        held_back = command.quiet and number < len(commands) and commands[number].quiet
        parts += [command.text, f"(set k={number})" if held_back else f"echo #{nonce}.{number}=0"]
    failed = f"echo #{nonce}.f=!errorlevel!"
    if any(command.quiet for command in commands):
        failed = f"(echo #{nonce}.!k!=0& {failed})"
    return " && ".join(parts) + f" || {failed}"


def _begin(nonce: str) -> str:
    return f"set k=0&& echo #{nonce}.0=!k!"


def wrap_line(line: str) -> str:
    """The whole command as WinRS or sshd gets it."""
    return f'{WRAPPER} {" ".join(WRAPPER_ARGUMENTS)} "{line}"'


def call_from_powershell(command: str) -> str:
    r"""PowerShell's own words for what sshd does with a command when cmd.exe is its default shell: ``cmd.exe /c "<command>"``.

    Between single quotes PowerShell reads every character as it is, except single quotes, of which it knows five. An argument with
    a blank before its first double quote then gets a pair of double quotes around it and no change inside, by Windows
    PowerShell always and by PowerShell 7.3 and later if configured so (NativeCommandParameterBinder.cs, about_Preference_Variables).
    """
    literal = re.sub("(['\u2018-\u201b])", r"\1\1", command)
    return f"$PSNativeCommandArgumentPassing='Legacy'; & {WRAPPER} /c '{literal}'; exit $LASTEXITCODE"


def render_lines(
    commands: Sequence[Command], render: Callable[[Sequence[Command], str], str], nonce: str
) -> list[tuple[int, str]]:
    """As few rendered lines as hold the commands in their order, each with the number of its commands.

    NodeError ``line_too_long`` when a single command, with the one that it leads, is longer than cmd.exe takes.
    """
    rendered: list[tuple[int, str]] = []
    begun: list[Command] = []
    line = ""
    for unit in _group_commands(commands):
        longer = render([*begun, *unit], nonce)
        if begun and _measure_line(longer) > ROOM:
            rendered.append((len(begun), line))
            begun, longer = [], render(unit, nonce)
        if _measure_line(longer) > ROOM:
            raise NodeError(
                "line_too_long",
                f"A command for the node has {_measure_line(longer)} characters on its line, and cmd.exe takes {ROOM}.",
                remedy="Shorten kubelet_path.",
            )
        begun, line = [*begun, *unit], longer
    return [*rendered, (len(begun), line or render(begun, nonce))]


def _group_commands(commands: Sequence[Command]) -> list[list[Command]]:
    units: list[list[Command]] = []
    follows = False
    for command in commands:
        if follows:
            units[-1].append(command)
        else:
            units.append([command])
        follows = command.leads or command.quiet
    return units


def _measure_line(line: str) -> int:
    return len(wrap_line(line).encode("utf-16-le")) // 2


def split_steps(stdout: bytes, nonce: str, count: int, *, chained: bool = False) -> tuple[StepResult, ...]:
    """Cut the output of a rendered line into its ``count`` steps.

    Text before the line's first mark (an AutoRun command of the outer cmd.exe) is dropped; without that mark no other one
    counts. Steps that never printed their mark have code None; in a chain the one that failed has its code, those after it
    None, and quiet ones that printed no mark of their own succeeded when a later step was reached.
    """
    marks = re.compile(rb"#" + nonce.encode("ascii") + rb"\.(\d{1,4}|f)=(-?\d{1,10})\s*?(?:\r?\n|$)")
    results: dict[int, StepResult] = {}
    start: int | None = None
    last = 0
    for mark in marks.finditer(stdout):
        number = last + 1 if mark[1] == b"f" else int(mark[1])
        if chained and start is not None and number <= last:
            continue  # progress of the quiet steps: no further than the marks already show
        output = b"" if start is None else marks.sub(b"", stdout[start : mark.start()])
        if chained and start is not None:
            results |= {silent: StepResult(0, b"") for silent in range(last + 1, number)}
        if number and start is not None:
            results[number] = StepResult(int(mark[2]) & 0xFFFFFFFF, output)
        if number == 0 or start is not None:
            last, start = number, mark.end()
    remainder = b"" if start is None else stdout[start:]
    missing = StepResult(None, remainder)
    return tuple(results.get(number, missing) for number in range(1, count + 1))


def has_double_expansion(stdout: bytes, nonce: str) -> bool:
    """Whether the outer cmd.exe took the line's variables for its own (DelayedExpansion in the registry)."""
    return re.search(rb"#" + nonce.encode("ascii") + rb"\.0=\s", stdout) is not None


def join_text(parts: Iterable[bytes]) -> str:
    """Bytes from a console in code page 65001 as text; what does not decode is shown, never dropped."""
    return mask_controls(b"".join(parts).decode("utf-8", errors="replace"))
