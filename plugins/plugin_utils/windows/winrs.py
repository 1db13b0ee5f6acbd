# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channels over WinRM: remote cmd.exe shells (WinRS) on what the plugins winrm and psrp connect with.

Both do the same in the same order; ``WinrmChannel`` says it through pywinrm, ``PsrpChannel`` through pypsrp. A psrp connection
would open a PowerShell runspace for its own work; none is opened here.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, BinaryIO

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..base.decode import read_number
from . import commands, reach
from .errors import (
    NOTHING_SENT,
    OUTPUT_LIMIT,
    ChannelError,
    CommandTimeoutError,
    ConnectionLostError,
    LineResult,
    build_access_error,
    build_configuration_error,
    build_output_error,
    build_password_error,
)

_SEND_BYTES = 250_000
"""Raw bytes of standard input a request: base64 and envelope stay under WinRM's default limit of 512,000 bytes."""

_SEND_ATTEMPTS = 3
_BUSY_SECONDS = 5.0
_CODE_PAGE = 65001

# Fault codes of WS-Management (winerror.h, MS-WSMV); their texts are localised.
_FAULT_DENIED = 5
_FAULT_BUSY = 170
_FAULT_SILENCE = 2150858793
_FAULT_NO_SHELL = 2150858843
_FAULT_MANY_SHELLS = 2150859173
_FAULT_MANY_OPERATIONS = 2150859174
_FAULT_SHELLS_REFUSED = 2150859180
"""ERROR_WSMAN_REMOTESHELLS_NOT_ALLOWED (wsmerror.h)"""

_REFUSED = ("InvalidCredentialsError", "BasicAuthDisabledError", "AuthenticationError")
# What pywinrm, pypsrp and pyspnego say of a password that is None.
_NO_PASSWORD = re.compile(r"requires a password|password must be specified|No username or password was specified")

# What the winrm plugin says of kinit, and codes of MIT Kerberos (krb5_err.et), with a sign or without, which psrp passes on.
_NO_TICKET = re.compile(r"Kerberos auth failure|\bkinit:|(?<!\d)(-17653\d{5}|25296(38|39)\d{3})\b")


class _WinrsChannel(ABC):
    """A remote shell in code page 65001, one command at a time."""

    _send_bytes = _SEND_BYTES

    def __init__(self, connection: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._connection = connection
        self._sleep = sleep
        self._ended = ""
        """a command that ended by itself, whose slot the next command gives back, or the end of the shell"""
        try:
            self._connect()
        except Exception as error:
            raise self._translate_error(error, "") from error

    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> LineResult:
        try:
            return self._run(line, stdin, timeout)
        except ChannelError:
            raise
        except Exception as error:
            raise self._translate_error(error, line) from error

    @abstractmethod
    def close(self) -> None:
        """Give back what the channel itself holds on the node."""

    @abstractmethod
    def _connect(self) -> None:
        """Log on and open a shell."""

    @abstractmethod
    def _describe_attempt(self) -> reach.ConnectionAttempt:
        """Where it connects to, for errors."""

    @abstractmethod
    def _begin(self, arguments: list[str], console: bool) -> str:
        """Start cmd.exe in the shell; the command's id. ``console``: it gets no standard input."""

    @abstractmethod
    def _send(self, command: str, data: bytes, end: bool) -> None:
        """Give it standard input."""

    @abstractmethod
    def _receive(self, command: str) -> tuple[bytes, bytes, int | None]:
        """What it printed since, and its code once it has ended."""

    @abstractmethod
    def _signal(self, command: str) -> None:
        """End the command, or release its slot if it has ended."""

    @abstractmethod
    def _renew_session(self) -> None:
        """Log on anew with the next request; the shell stays."""

    @abstractmethod
    def _replace_shell(self) -> None:
        """Leave the shell for another one."""

    def _run(self, line: str, stdin: BinaryIO | None, timeout: float) -> LineResult:
        deadline = time.monotonic() + timeout
        command = self._start(line, console=stdin is None)
        stdout: list[bytes] = []
        stderr: list[bytes] = []
        size = 0
        try:
            if stdin is not None:
                self._send_all(command, stdin)
            while True:
                try:
                    out, err, code = self._receive(command)
                except Exception as error:
                    if not _is_silence(error):
                        raise
                    out, err, code = b"", b"", None
                stdout.append(out)
                stderr.append(err)
                size += len(out) + len(err)
                if size > OUTPUT_LIMIT:
                    raise build_output_error(self._describe_attempt().endpoint)
                if code is not None:
                    self._ended = command
                    return LineResult(code & 0xFFFFFFFF, b"".join(stdout), b"".join(stderr))
                if time.monotonic() > deadline:
                    raise CommandTimeoutError(f"A command on the node did not end within {timeout:g} s and was ended.")
        except BaseException:
            # A task timeout or Ctrl-C may have cut a request in the middle; with message encryption the session that
            # it belonged to is useless then. The next message, first of all the signal below, logs on again.
            self._renew_session()
            # The command ends, so that nothing runs on behind our back; the error that brought us here says more.
            with contextlib.suppress(Exception):
                self._signal(command)
            raise

    def _start(self, line: str, console: bool) -> str:
        if self._ended:
            with contextlib.suppress(Exception):  # a failure costs only its slot
                self._signal(self._ended)
            self._ended = ""
        arguments = [*commands.WRAPPER_ARGUMENTS, f'"{line}"']
        try:
            return self._begin(arguments, console)
        except Exception as error:
            # WinRS never releases a shell's finished operations, and drops idle shells. In both cases the command
            # did not start, so a new shell and one more try are safe.
            if not _fault_codes(error) & {_FAULT_MANY_OPERATIONS, _FAULT_NO_SHELL}:
                raise
        self._replace_shell()
        return self._begin(arguments, console)

    def _send_all(self, command: str, stdin: BinaryIO) -> None:
        chunk = stdin.read(self._send_bytes)
        while True:
            following = stdin.read(self._send_bytes)
            for attempt in range(1, _SEND_ATTEMPTS + 1):
                try:
                    self._send(command, chunk, not following)
                except Exception as error:
                    if _is_silence(error):
                        # A loaded server answers late for data that it accepted; the hash decides in the end.
                        self._sleep(_BUSY_SECONDS)
                        break
                    codes = _fault_codes(error)
                    if _FAULT_BUSY not in codes or attempt == _SEND_ATTEMPTS:
                        if codes & {232, 109, 6}:  # ERROR_NO_DATA, ERROR_BROKEN_PIPE, ERROR_INVALID_HANDLE
                            return  # the receiver ended early; its code and output have the reason
                        raise
                    self._sleep(_BUSY_SECONDS)
                    continue
                break
            if not following:
                return
            chunk = following

    def _translate_error(self, error: Exception, line: str) -> ChannelError:
        """Any error of the libraries or the connection plugin as one of ours; ``line`` is empty while connecting."""
        if isinstance(error, ChannelError) or _is_mistake(error):
            raise error  # ours already, or a mistake in a program, which must not pass for a lost connection
        text = str(error)
        codes = _fault_codes(error)
        if codes & {_FAULT_MANY_OPERATIONS, _FAULT_MANY_SHELLS} or any(
            str(code) in text for code in (_FAULT_MANY_OPERATIONS, _FAULT_MANY_SHELLS)
        ):
            return ChannelError(
                "quota_exceeded",
                f"WinRM refuses another operation of this account: {text}",
                remedy="Close other remote shells of this account, or raise the limits under winrm/config/winrs "
                "(MaxShellsPerUser, MaxProcessesPerShell) and winrm/config/service (MaxConcurrentOperationsPerUser).",
            )
        if _FAULT_SHELLS_REFUSED in codes or str(_FAULT_SHELLS_REFUSED) in text:
            return ChannelError(
                "remote_shell_disabled",
                "WinRM on the node refuses remote shells, as it does if the policy 'Allow Remote Shell Access' is disabled (CIS "
                f"Benchmark level 2): {text.rstrip('.')}",
                remedy="Connect with OpenSSH (ansible_connection: ssh), or enable the policy for this node "
                r"(HKLM\SOFTWARE\Policies\Microsoft\Windows\WinRM\Service\WinRS AllowRemoteShellAccess=1).",
            )
        name = type(error).__name__
        refused = name in _REFUSED or "credentials were rejected" in text
        if not line and (refused or _NO_PASSWORD.search(text)) and not self._connection.get_option("remote_password"):
            return build_password_error(self._describe_attempt().endpoint, text)
        if refused:
            return build_access_error(f"WinRM refused the logon: {text}", logon=True)
        if _FAULT_DENIED in codes:
            return build_access_error(f"WinRM let the account log on, but denied the command: {text}")
        if line:
            return ConnectionLostError(f"The WinRM connection failed while a command ran ({name}): {text}")
        cannot_try = isinstance(error, (AnsibleError, ImportError, ValueError)) and not isinstance(
            error, AnsibleConnectionFailure
        )
        if _NO_TICKET.search(text):
            return ChannelError(
                "access_denied",
                f"Kerberos gave no ticket for {self._describe_attempt().endpoint}: {text.rstrip('.')}",
                remedy="Check ansible_user (user@REALM) and ansible_password first; then that kinit is installed, the KDC "
                "of the realm in krb5.conf, the clock of the controller, and whether ansible_host is a name of the node that the realm knows.",
            )
        why = reach.explain(text, self._describe_attempt())
        if why is not None and not (isinstance(error, ImportError)):
            return ConnectionLostError(*why, detail=text)
        if cannot_try:
            return build_configuration_error(self._connection.transport.rpartition(".")[2], text)
        return ConnectionLostError(f"The node cannot be reached over WinRM: {text}", NOTHING_SENT)


class WinrmChannel(_WinrsChannel):
    """The winrm plugin's own pywinrm Protocol and shell, which the plugin opens with code page 65001."""

    def close(self) -> None:
        """The shell is the connection plugin's, which closes it at the end of the task."""

    def _connect(self) -> None:
        # The plugin makes its protocol and opens a shell at once.
        self._connection._connect()

    def _describe_attempt(self) -> reach.ConnectionAttempt:
        plugin = self._connection
        names = ("_winrm_host", "_winrm_port", "_winrm_scheme")
        host, port, scheme = (getattr(plugin, name, "") for name in names)
        return reach.ConnectionAttempt(f"{scheme}://{host}:{port}", str(scheme), reach.WINRM)

    def _begin(self, arguments: list[str], console: bool) -> str:
        return str(
            self._connection.protocol.run_command(
                self._connection.shell_id, commands.WRAPPER, arguments, console_mode_stdin=console, skip_cmd_shell=False
            )
        )

    def _send(self, command: str, data: bytes, end: bool) -> None:
        self._connection.protocol.send_command_input(self._connection.shell_id, command, data, end=end)

    def _receive(self, command: str) -> tuple[bytes, bytes, int | None]:
        out, err, code, done = self._connection.protocol.get_command_output_raw(self._connection.shell_id, command)
        return out, err, code if done else None

    def _signal(self, command: str) -> None:
        self._connection.protocol.cleanup_command(self._connection.shell_id, command)

    def _renew_session(self) -> None:
        self._connection.protocol.transport.close_session()

    def _replace_shell(self) -> None:
        plugin = self._connection
        with contextlib.suppress(Exception):  # it may be gone already; what matters is whether a new one opens
            plugin.protocol.close_shell(plugin.shell_id, close_session=False)
        plugin.shell_id = plugin.protocol.open_shell(codepage=_CODE_PAGE)


class PsrpChannel(_WinrsChannel):
    """A cmd.exe shell on a WSMan of pypsrp, made of what the psrp plugin makes its own of."""

    def close(self) -> None:
        with contextlib.suppress(Exception):  # an idle shell is closed by the server
            self._shell.close()
        self._wsman.close()

    def _connect(self) -> None:
        try:
            from pypsrp.shell import WinRS
            from pypsrp.wsman import WSMan
        except ImportError as error:
            raise build_configuration_error("psrp", f"pypsrp cannot be imported ({error}).") from error
        # What pypsrp logs as errors is raised as well; without a handler Python would print it.
        logging.getLogger("pypsrp").addHandler(logging.NullHandler())
        if not hasattr(self._connection, "_build_kwargs"):
            raise ChannelError(
                "connection_configuration",
                "The psrp plugin of this ansible-core builds its connection in a way that this collection does not know.",
                remedy="Set ansible_connection to winrm for this host (same port, same credentials), or use a supported ansible-core.",
            )
        self._connection._build_kwargs()
        options = self._connection._psrp_conn_kwargs
        self._make: Callable[[], Any] = lambda: _disable_retries(WSMan(**options))
        self._wsman = self._make()
        self._send_bytes = min(_SEND_BYTES, self._wsman.max_payload_size)
        self._make_shell: Callable[[], Any] = lambda: WinRS(self._wsman, codepage=_CODE_PAGE)
        self._shell = self._make_shell()
        self._shell.open()

    def _describe_attempt(self) -> reach.ConnectionAttempt:
        options = getattr(self._connection, "_psrp_conn_kwargs", {})
        scheme = "https" if options.get("ssl", True) else "http"
        return reach.ConnectionAttempt(
            f"{scheme}://{options.get('server', '')}:{options.get('port', '')}", scheme, reach.PSRP
        )

    def _begin(self, arguments: list[str], console: bool) -> str:
        # pypsrp always gives a pipe for standard input; cmd.exe reads none of it.
        answer = self._shell.command(commands.WRAPPER, arguments)
        return next((element.text or "" for element in answer.iter() if element.tag.endswith("}CommandId")), "")

    def _send(self, command: str, data: bytes, end: bool) -> None:
        self._shell.send("stdin", data, command_id=command, end=end)

    def _receive(self, command: str) -> tuple[bytes, bytes, int | None]:
        from pypsrp.shell import CommandState

        state, code, streams = self._shell.receive(command_id=command)
        return streams["stdout"], streams["stderr"], code or 0 if state == CommandState.DONE else None

    def _signal(self, command: str) -> None:
        from pypsrp.shell import SignalCode

        self._shell.signal(SignalCode.TERMINATE, command)

    def _renew_session(self) -> None:
        old = self._wsman
        with contextlib.suppress(Exception):
            old.close()
        self._wsman = self._shell.wsman = self._make()
        self._wsman.session_id = old.session_id

    def _replace_shell(self) -> None:
        with contextlib.suppress(Exception):  # it may be gone already; what matters is whether a new one opens
            self._shell.close()
        self._shell = self._make_shell()
        self._shell.open()


def _disable_retries(wsman: Any) -> Any:
    """``wsman``, which asks for a late answer up to five times more, without that: what the late one holds would be missing."""
    invoke = wsman.invoke

    def once(*arguments: Any, **options: Any) -> Any:
        return invoke(*arguments, **{**options, "retries_on_read_timeout": 0})

    wsman.invoke = once if "retries_on_read_timeout" in inspect.signature(invoke).parameters else invoke
    return wsman


def _fault_codes(error: Exception) -> set[int]:
    """The codes of a fault. Which of pywinrm's two fields holds a quota's code depends on the provider that raised it."""
    if type(error).__name__ != "WSManFaultError":
        return set()
    # pywinrm's ``code`` is the status of HTTP; pypsrp's is the fault's, or its name when it has no number.
    names = ("wsman_fault_code", "wmierror_code") if hasattr(error, "wsman_fault_code") else ("code",)
    codes = (read_number(getattr(error, name, None)) for name in names)
    return {code & 0xFFFFFFFF for code in codes if code is not None}


def _is_mistake(error: Exception) -> bool:
    """Whether our own code is wrong; a library raises such errors for an answer that is not of WinRM."""
    if not isinstance(error, (AttributeError, KeyError, NameError, TypeError)):
        return False
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is None or frame.tb_frame.f_globals.get("__name__") == __name__


def _is_silence(error: Exception) -> bool:
    """Whether the server only reported that nothing happened within the operation's timeout."""
    return type(error).__name__ == "WinRMOperationTimeoutError" or _FAULT_SILENCE in _fault_codes(error)
