# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections for tests of the channels: Ansible's own plugins towards the lab's WS-Man server, and stand-ins with one answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader
from lab.windows.control import FrontProcess
from lab.windows.faults import Rule

HOST, USER, PASSWORD = "wsman-1", "Administrator", "Passw0rd!"


@dataclass(slots=True)
class Endpoint:
    """The lab's WS-Man server for one host, as one of the plugins reaches it."""

    front: FrontProcess
    ports: dict[str, int]
    plugin: str

    def connection(self, auth: str = "basic", scheme: str = "http", password: str = PASSWORD, **options: Any) -> Any:
        """Ansible's connection plugin, its options as an inventory gives them."""
        connection: Any = connection_loader.get(self.plugin, PlayContext(), os.devnull)
        own: dict[str, Any]
        if self.plugin == "winrm":
            own = {"ansible_winrm_scheme": scheme, "ansible_winrm_transport": [auth]}
        else:
            encryption = "never" if (auth, scheme) == ("basic", "http") else "auto"
            own = {
                "ansible_psrp_protocol": scheme,
                "ansible_psrp_auth": auth,
                "ansible_psrp_message_encryption": encryption,
            }
        given = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.ports[scheme],
            "ansible_user": USER,
            "ansible_password": password,
            **own,
            **options,
        }
        # What the plugin winrm does not know it gives to pywinrm.
        connection.set_options(var_options={**given, "_extras": options if self.plugin == "winrm" else {}})
        return connection

    def fault(self, effect: str, **rule: Any) -> None:
        self.front.control.add_fault(HOST, Rule(effect, **rule))


class Refusing:
    """A connection plugin whose every attempt to connect fails."""

    transport = "winrm"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_option(self, name: str) -> Any:
        return {"remote_password": PASSWORD}[name]

    def _connect(self) -> None:
        raise self._error


class OneAnswer:
    """A connection plugin for ssh that gives one answer to whatever is asked; all that the probe needs."""

    transport = "ssh"
    _shell = None

    def __init__(self, answer: bytes | Exception) -> None:
        self._answer = answer
        self.options: dict[str, Any] = {"ssh_extra_args": "-o Compression=yes", "host": "win-1", "port": 22}
        self.commands: list[str] = []

    def get_option(self, name: str) -> Any:
        return self.options.get(name, "")

    def set_option(self, name: str, value: str) -> None:
        self.options[name] = value

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        assert not sudoable
        self.commands.append(cmd)
        if isinstance(self._answer, Exception):
            raise self._answer
        return 0, self._answer, b""
