# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a Windows node: a command line in, its output and code out. The only module here that does I/O.

Both channels ride on the connection that Ansible already has for the host, so credentials, Kerberos, proxies and
``reset_connection`` are Ansible's. They send one form of line (see ``commands``) and raise one set of errors.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.loader import shell_loader
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import (
    AccessDenied,
    ChannelError,
    CommandTimeout,
    ConnectionLost,
    QuotaExceeded,
    Unsupported,
)

__all__ = [
    "AccessDenied",
    "Channel",
    "ChannelError",
    "CommandTimeout",
    "Completed",
    "ConnectionLost",
    "QuotaExceeded",
    "SshChannel",
    "Unsupported",
    "WinrmChannel",
    "open_channel",
]

_SEND_BYTES = 250_000
"""Raw bytes of standard input a request: base64 and envelope stay under WinRM's default limit of 512,000 bytes."""

_SEND_ATTEMPTS = 3
_BUSY_SECONDS = 5.0
_SSH_ALIVE = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"

# Fault codes of WS-Management (winerror.h, MS-WSMV); their texts are localised.
_FAULT_BUSY = 170
_FAULT_NO_SHELL = 2150858843
_FAULT_MANY_SHELLS = 2150859173
_FAULT_MANY_OPERATIONS = 2150859174
_FAULT_DENIED = 5


@dataclass(frozen=True, slots=True)
class Completed:
    """What a line left: its own exit code (unsigned 32 bit; ssh keeps 8 bits of it) and the bytes of both streams."""

    rc: int
    stdout: bytes
    stderr: bytes


class Channel(Protocol):
    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> Completed:
        """Run ``line`` (what follows ``cmd.exe ... /c "``) and wait for its end at most ``timeout`` seconds."""

    def close(self) -> None:
        """Give back what the channel itself holds on the node; the connection stays Ansible's."""


def open_channel(connection: Any) -> Channel:
    """The channel for an Ansible connection plugin.

    Raises Unsupported for a connection that runs no cmd.exe lines, and ChannelError when the node cannot be reached.
    """
    transport = str(getattr(connection, "transport", "")).rpartition(".")[2]
    if transport == "winrm":
        return WinrmChannel(connection)
    if transport == "ssh":
        return SshChannel(connection)
    if transport == "psrp":
        raise Unsupported(
            "The connection psrp is not supported yet: csi_proxy runs commands through WinRS, not through PowerShell.",
            "Set ansible_connection to winrm (same port, same credentials) or ssh for this host.",
        )
    raise Unsupported(
        f"The connection {transport or type(connection).__name__!r} reaches no Windows node.",
        "csi_proxy needs ansible_connection winrm or ssh, and a host that is a Windows node.",
    )


class WinrmChannel:
    """WinRS through the winrm plugin's own pywinrm Protocol and shell (opened by the plugin with code page 65001)."""

    def __init__(self, connection: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._connection = connection
        self._sleep = sleep
        self._connect()

    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> Completed:
        try:
            return self._run(line, stdin, timeout)
        except ChannelError:
            raise
        except Exception as error:
            raise _winrm_error(error, line) from error

    def close(self) -> None:
        """The shell is the connection plugin's, which closes it at the end of the task."""

    def _connect(self) -> None:
        try:
            self._connection._connect()
        except Exception as error:
            raise _winrm_error(error, "") from error

    def _run(self, line: str, stdin: BinaryIO | None, timeout: float) -> Completed:
        from winrm.exceptions import WinRMOperationTimeoutError

        deadline = time.monotonic() + timeout
        command = self._start(line, console=stdin is None)
        protocol, shell = self._connection.protocol, self._connection.shell_id
        stdout: list[bytes] = []
        stderr: list[bytes] = []
        try:
            if stdin is not None:
                self._send(protocol, shell, command, stdin)
            while True:
                try:
                    out, err, code, done = protocol.get_command_output_raw(shell, command)
                except WinRMOperationTimeoutError:
                    out, err, code, done = b"", b"", 0, False
                stdout.append(out)
                stderr.append(err)
                if done:
                    return Completed(code & 0xFFFFFFFF, b"".join(stdout), b"".join(stderr))
                if time.monotonic() > deadline:
                    raise CommandTimeout(f"A command on the node did not end within {timeout:g} s and was ended.")
        except BaseException:
            # A task timeout or Ctrl-C may have cut a request in the middle; with message encryption the session that
            # it belonged to is useless then. The next message, first of all the signal below, logs on again.
            protocol.transport.close_session()
            raise
        finally:
            # On a way out before the end the signal ends the command, so that nothing runs on behind our back.
            self._cleanup(protocol, shell, command)

    def _start(self, line: str, console: bool) -> str:
        from winrm.exceptions import WSManFaultError

        arguments = [*commands.WRAPPER_ARGUMENTS, f'"{line}"']

        def start() -> str:
            connection = self._connection
            return str(
                connection.protocol.run_command(
                    connection.shell_id, commands.WRAPPER, arguments, console_mode_stdin=console, skip_cmd_shell=False
                )
            )

        try:
            return start()
        except WSManFaultError as fault:
            # WinRS never gives back a shell's finished operations, and drops idle shells. In both cases the command
            # did not start, so a new shell and one more try are safe.
            if not _fault_codes(fault) & {_FAULT_MANY_OPERATIONS, _FAULT_NO_SHELL}:
                raise
        with contextlib.suppress(Exception):  # it may be gone already; what matters is whether a new one opens
            self._connection.protocol.close_shell(self._connection.shell_id, close_session=False)
        self._connection.shell_id = self._connection.protocol.open_shell(codepage=65001)
        return start()

    def _send(self, protocol: Any, shell: str, command: str, stdin: BinaryIO) -> None:
        from winrm.exceptions import WinRMOperationTimeoutError, WSManFaultError

        chunk = stdin.read(_SEND_BYTES)
        while True:
            following = stdin.read(_SEND_BYTES)
            for attempt in range(1, _SEND_ATTEMPTS + 1):
                try:
                    protocol.send_command_input(shell, command, chunk, end=not following)
                except WinRMOperationTimeoutError:
                    # A loaded server answers late what it has taken all the same; the hash decides in the end.
                    self._sleep(_BUSY_SECONDS)
                except WSManFaultError as fault:
                    if _FAULT_BUSY not in _fault_codes(fault) or attempt == _SEND_ATTEMPTS:
                        if _command_is_gone(fault):
                            return  # the receiver ended early; its code and words tell why
                        raise
                    self._sleep(_BUSY_SECONDS)
                    continue
                break
            if not following:
                return
            chunk = following

    @staticmethod
    def _cleanup(protocol: Any, shell: str, command: str) -> None:
        # After the end of the command a failure costs only its slot. Before it, the error that brought us here says more.
        with contextlib.suppress(Exception):
            protocol.cleanup_command(shell, command)


class SshChannel:
    """Win32-OpenSSH with cmd.exe as default shell, through the ssh plugin's ``exec_command``."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._notice_dead_peers()
        self._probe()

    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> Completed:
        # The timeout is the connection plugin's: ssh ends a dead connection by itself (ServerAlive*), and everything
        # that may take long on the node is bounded there.
        return self._exec(commands.SSH_PREFIX + commands.wrapped(line), None if stdin is None else stdin.read())

    def close(self) -> None:
        """Nothing is held between commands."""

    def _notice_dead_peers(self) -> None:
        """Bound the wait for a node that is gone: without this, ssh would wait for TCP's keep-alive, two hours.

        ssh takes the first value it is given, so options of the user stay in force.
        """
        given = self._connection.get_option("ssh_extra_args") or ""
        self._connection.set_option("ssh_extra_args", f"{given} {_SSH_ALIVE}".strip())

    def _probe(self) -> None:
        """Tell cmd.exe, PowerShell and a Unix shell apart by what each makes of the same words."""
        completed = self._exec("echo $PSVersionTable %OS%", None)
        said = commands.join_text([completed.stdout]).strip()
        if said == "$PSVersionTable Windows_NT":
            return
        if ("%OS%" in said and "Hashtable" in said) or "PSVersion" in said.replace("$PSVersionTable", ""):
            raise Unsupported(
                "The SSH server's default shell on the node is PowerShell; csi_proxy needs cmd.exe.",
                r"On the node: reg delete HKLM\SOFTWARE\OpenSSH /v DefaultShell /f (new logons then use cmd.exe), or use ansible_connection winrm.",
                reason="powershell_default_shell",
            )
        raise Unsupported(
            f"The host behind this SSH connection does not answer as a Windows node with cmd.exe (echo printed {said!r}).",
            "Run this on Windows nodes only; correct the hosts of the play or the group.",
            reason="not_windows",
        )

    @contextlib.contextmanager
    def _as_it_is(self) -> Iterator[None]:
        """For a Windows shell, the plugin of ansible-core before 2.19 puts every command into PowerShell; not for others."""
        connection = self._connection
        shell = connection._shell
        connection._shell = shell_loader.get("sh")
        try:
            yield
        finally:
            connection._shell = shell

    def _exec(self, command: str, stdin: bytes | None) -> Completed:
        try:
            # sudoable=False keeps the plugin from asking for a terminal, which would change codes and line ends.
            with self._as_it_is():
                code, stdout, stderr = self._connection.exec_command(command, in_data=stdin, sudoable=False)
        except AnsibleConnectionFailure as error:
            text = str(error)
            if "Permission denied" in text or "Authentication" in text or "Invalid/incorrect password" in text:
                raise AccessDenied(f"The node refused the logon over ssh: {text}", logon=True) from error
            raise ConnectionLost(f"The ssh connection to the node failed: {text}") from error
        except AnsibleError as error:
            raise _misconfigured("ssh", str(error)) from error
        except OSError as error:
            raise ConnectionLost(f"The ssh connection to the node failed: {error}") from error
        return Completed(int(code) & 0xFFFFFFFF, stdout, stderr)


def _misconfigured(connection: str, text: str) -> Unsupported:
    """The controller cannot even try: a Python package or program is missing, or an option is wrong."""
    return Unsupported(
        f"The connection {connection} cannot be used from this controller: {text}",
        "Install what is missing there, or correct the connection options of the host.",
        reason="connection_configuration",
    )


def _fault_codes(fault: Any) -> set[int]:
    """The codes of a pywinrm fault. Which of the two fields holds a quota's code depends on the provider that raised it."""
    codes = (getattr(fault, "wsman_fault_code", None), getattr(fault, "wmierror_code", None))
    return {int(code) & 0xFFFFFFFF for code in codes if code is not None}


def _command_is_gone(fault: Any) -> bool:
    """Whether Send was refused because the command had ended: ERROR_NO_DATA, ERROR_BROKEN_PIPE, ERROR_INVALID_HANDLE."""
    return bool(_fault_codes(fault) & {232, 109, 6})


def _winrm_error(error: Exception, line: str) -> ChannelError:
    """Any error of pywinrm, requests or the connection plugin as one of ours; ``line`` is empty while connecting."""
    if isinstance(error, (ChannelError, AttributeError, KeyError, NameError, TypeError)):
        raise error  # ours already, or a mistake in a program, which must not pass for a lost connection
    text = str(error)
    codes = _fault_codes(error)
    if codes & {_FAULT_MANY_OPERATIONS, _FAULT_MANY_SHELLS} or any(
        str(code) in text for code in (_FAULT_MANY_OPERATIONS, _FAULT_MANY_SHELLS)
    ):
        return QuotaExceeded(f"WinRM refuses another operation of this account: {text}")
    name = type(error).__name__
    if (
        name in ("InvalidCredentialsError", "BasicAuthDisabledError", "AuthenticationError")
        or "credentials were rejected" in text
    ):
        return AccessDenied(f"WinRM refused the logon: {text}", logon=True)
    if _FAULT_DENIED in codes:
        return AccessDenied(f"WinRM let the account log on, but denied the command: {text}")
    cannot_try = isinstance(error, AnsibleError) and not isinstance(error, AnsibleConnectionFailure)
    if not line and cannot_try and "timed out" not in text:
        return _misconfigured("winrm", text)
    if not line:
        return ConnectionLost(f"The node cannot be reached over WinRM: {text}")
    return ConnectionLost(f"The WinRM connection failed while a command ran ({name}): {text}")
