# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loopback ports that several labs can take at once without meeting.

A port is held by an abstract Unix socket named after it: the kernel lets one process hold the name and frees it when
that process dies, so labs of every checkout on the machine see each other's ports and a crash leaves none behind. The
ports lie under the ephemeral range, so outgoing connections do not take them either. What is left is a stranger
binding the port between our check and the component's own bind; the component is then started with another port
(`Ports.renew`).
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

FIRST = 20000
LAST = 31999
ATTEMPTS = 400


class NoPortError(RuntimeError):
    """No free loopback port was found."""


def _hold(port: int) -> socket.socket | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0kubewin-lab-port-{port}")
    except OSError:
        claim.close()
        return None
    return claim


def _bindable(port: int, addresses: Iterable[str]) -> bool:
    with ExitStack() as stack:
        for address in addresses:
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


class Ports:
    """The ports of one lab, by name; held until `close` or the end of the process."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._claims: dict[int, socket.socket] = {}
        self.taken: dict[str, int] = {}

    def take(self, name: str, addresses: Sequence[str] = ("127.0.0.1",)) -> int:
        """The port called `name`, found on first use: free on every address given."""
        if name in self.taken:
            return self.taken[name]
        for _attempt in range(ATTEMPTS):
            port = self._random.randint(FIRST, LAST)
            claim = _hold(port)
            if claim is None:
                continue
            if _bindable(port, addresses):
                self._claims[port] = claim
                self.taken[name] = port
                return port
            claim.close()
        raise NoPortError(
            f"no free port between {FIRST} and {LAST} for {name!r} on {', '.join(addresses)} after {ATTEMPTS} tries; "
            "stop labs that are not needed (python -m lab down --all) or whatever listens there (ss -ltn)"
        )

    def renew(self, name: str, addresses: Sequence[str] = ("127.0.0.1",)) -> int:
        """Another port for `name`; the old one stays held, so it is not offered again."""
        self.taken.pop(name, None)
        return self.take(name, addresses)

    def close(self) -> None:
        for claim in self._claims.values():
            claim.close()
        self._claims.clear()
        self.taken.clear()
