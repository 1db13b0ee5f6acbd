# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Windows side of a lab: the hosts and the servers in front of them, as the supervisor runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.cluster.nodes import Node
from lab.state import Host

if TYPE_CHECKING:
    from lab.supervisor import Supervisor


class HostsSide:
    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def start(self) -> None:
        return

    def add(self, node: Node) -> None: ...

    def remove(self, name: str) -> None: ...

    def reboot(self, host: Host) -> None: ...
