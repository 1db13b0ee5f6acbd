# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a Windows node: a command line in, its output and code out. Only this and what it opens does I/O.

Every channel rides on the connection that Ansible already has for the host, so credentials, Kerberos, proxies, jump hosts and
timeouts are Ansible's. They send one form of line (see ``commands``) and raise one set of errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

from .errors import ChannelError, LineResult
from .ssh import SshChannel
from .winrs import PsrpChannel, WinrmChannel


class Channel(Protocol):
    def run(self, line: str, *, stdin: BinaryIO | None = None, timeout: float = 60.0) -> LineResult:
        """Run ``line`` (what follows ``cmd.exe ... /c "``) and wait for its end at most ``timeout`` seconds."""

    def close(self) -> None:
        """Give back what the channel itself holds on the node; the connection stays Ansible's."""


CHANNELS: dict[str, Callable[..., Channel]] = {"winrm": WinrmChannel, "psrp": PsrpChannel, "ssh": SshChannel}


def open_channel(connection: Any) -> Channel:
    """The channel for an Ansible connection plugin. ChannelError if it runs no cmd.exe lines, or the node cannot be reached."""
    transport = str(getattr(connection, "transport", "")).rpartition(".")[2]
    if transport in CHANNELS:
        return CHANNELS[transport](connection)
    raise ChannelError(
        "unsupported_connection",
        f"The connection {transport or type(connection).__name__!r} is not for Windows nodes.",
        remedy="Set ansible_connection to winrm, psrp or ssh, and run csi_proxy on Windows nodes only.",
    )
