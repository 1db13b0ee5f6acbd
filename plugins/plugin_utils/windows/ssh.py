# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channel over ssh: Win32-OpenSSH, whose default shell is cmd.exe or PowerShell."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.loader import shell_loader

from . import commands, reach
from .errors import (
    NOTHING_SENT,
    OUTPUT_LIMIT,
    ChannelError,
    ConnectionLostError,
    LineResult,
    build_access_error,
    build_configuration_error,
    build_output_error,
    build_password_error,
)

_REFUSED = re.compile(r"permission denied|authentication|incorrect password", re.IGNORECASE)
"""what ssh and sshpass print of a logon that failed"""
_ALIVE = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"


class _Subprocess:
    """The module subprocess for the ssh plugin, whose processes are read up to a limit."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(*arguments, **options)
        for stream in ("stdout", "stderr"):
            if (pipe := getattr(process, stream)) is not None:
                setattr(process, stream, _Pipe(pipe, process, self._endpoint))
        return process


class _Pipe:
    """A pipe of ssh that ends it and raises output_too_large beyond the limit."""

    def __init__(self, pipe: Any, process: subprocess.Popen[bytes], endpoint: str) -> None:
        self._pipe, self._process, self._endpoint = pipe, process, endpoint
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)

    def read(self) -> bytes:
        """What is there now; empty at the end."""
        data: bytes = self._pipe.raw.read(1 << 20) or b""
        self._size += len(data)
        if self._size > OUTPUT_LIMIT:
            self._process.kill()
            self._process.wait()
            raise build_output_error(self._endpoint)
        return data


class SshChannel:
    """Win32-OpenSSH through the ssh plugin's ``exec_command``. PowerShell as default shell only starts cmd.exe."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._notice_dead_peers()
        self._remedy = NOTHING_SENT
        self._powershell = self._is_powershell()
        self._remedy = ""

    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> LineResult:
        # The timeout is the connection plugin's: ssh ends a broken connection by itself (ServerAlive*), and everything
        # that may take long on the node is bounded there.
        command = commands.SSH_PREFIX + commands.wrap_line(line)
        if self._powershell:
            command = commands.call_from_powershell(command)
        return self._execute(command, None if stdin is None else stdin.read())

    def close(self) -> None:
        """Nothing is held between commands."""

    def _format_endpoint(self) -> str:
        option = self._connection.get_option
        return f"{option('host')}:{option('port') or 22}"

    def _notice_dead_peers(self) -> None:
        """Bound the wait for a node that is gone: without this, ssh would wait for TCP's keep-alive, two hours.

        ssh takes the first value it is given, so options of the user stay in force.
        """
        extra_args = self._connection.get_option("ssh_extra_args") or ""
        self._connection.set_option("ssh_extra_args", f"{extra_args} {_ALIVE}".strip())

    def _is_powershell(self) -> bool:
        """Whether the shell is PowerShell, not cmd.exe; a Unix shell is refused. Each prints the same text differently."""
        completed = self._execute("echo $PSVersionTable %OS%", None)
        output = commands.join_text([completed.stdout]).strip()
        if output.endswith("$PSVersionTable Windows_NT"):
            return False
        # PowerShell 6 and later print their platform; earlier ones run on Windows only.
        is_powershell = ("%OS%" in output and "Hashtable" in output) or "PSVersion" in output.replace(
            "$PSVersionTable", ""
        )
        if is_powershell and not re.search(r"^Platform\s+Unix", output, re.MULTILINE):
            return True
        raise ChannelError(
            "not_windows",
            f"The host behind this SSH connection does not answer as a Windows node with cmd.exe or PowerShell (echo printed {output!r}).",
            remedy="Run this on Windows nodes only; correct the hosts of the play or the group.",
        )

    @contextlib.contextmanager
    def _bypass_shell(self) -> Iterator[None]:
        """Have the plugin pass a command on as it is, and read no more of its output than the limit.

        The plugin has neither an option nor a hook for that in ansible-core 2.16, 2.19 or 2.21 (lib/ansible/plugins/connection/ssh.py).
        Where the shell is one of Windows, exec_command() of 2.16 puts every command into PowerShell, and later releases search stderr for
        CLIXML. _bare_run() keeps whatever ssh prints until it ends.
        """
        connection = self._connection
        shell = connection._shell
        connection._shell = shell_loader.get("sh")
        plugin: Any = sys.modules[type(connection).__module__]
        former = getattr(plugin, "subprocess", None)
        plugin.subprocess = _Subprocess(self._format_endpoint())
        try:
            yield
        finally:
            connection._shell = shell
            plugin.subprocess = former

    def _execute(self, command: str, stdin: bytes | None) -> LineResult:
        try:
            # sudoable=False keeps the plugin from asking for a terminal, which would change codes and line ends.
            with self._bypass_shell():
                code, stdout, stderr = self._connection.exec_command(command, in_data=stdin, sudoable=False)
        except AnsibleConnectionFailure as error:
            text = str(error)
            if _REFUSED.search(text):
                option = self._connection.get_option
                if not option("password") and not option("private_key_file"):
                    raise build_password_error(self._format_endpoint(), text) from error
                raise build_access_error(f"The node refused the logon over ssh: {text}", logon=True) from error
            why = reach.explain(text, reach.ConnectionAttempt(self._format_endpoint(), "", {}))
            if why is not None:
                raise ConnectionLostError(*why, detail=text) from error
            raise ConnectionLostError(f"The ssh connection to the node failed: {text}", self._remedy) from error
        except AnsibleError as error:
            raise build_configuration_error("ssh", str(error)) from error
        except OSError as error:
            raise ConnectionLostError(f"The ssh connection to the node failed: {error}", self._remedy) from error
        return LineResult(int(code) & 0xFFFFFFFF, stdout, stderr)
