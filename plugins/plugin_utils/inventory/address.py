# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a Node's addresses Ansible connects to. Pure.

Addresses come from the cluster, where a node's kubelet and users with write access to Nodes set them; they end up on command
lines (ssh). So a value counts only when it is an IP address or a host name and nothing else.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

# An address in WMCO's ConfigMap, which the operator itself connects to.
INSTANCE = "windows-instances"
# The kinds that are used, best first.
_KINDS = (INSTANCE, "InternalIP")

_HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?\Z"
)


def explain_unusable(value: str) -> str:
    """Why nothing can connect to this address; empty when something can."""
    try:
        # A zone ("%") is accepted there whatever it holds.
        parsed = ipaddress.ip_address(value.replace("%", " "))
    except ValueError:
        return "" if _HOST_NAME.match(value) else "neither an IP address nor a host name"
    if parsed.is_link_local:
        # What a Windows machine gives itself when no DHCP server answered it.
        return "link-local"
    return "not an address of a machine" if parsed.is_unspecified or parsed.is_multicast else ""


def choose(addresses: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """(the address to connect to, IPv4 before IPv6; why there is none). addresses: (kind, value)."""
    usable = [(kind, value) for kind, value in addresses if kind in _KINDS and not explain_unusable(value)]
    if usable:
        return min(usable, key=lambda address: (_KINDS.index(address[0]), ":" in address[1]))[1], ""
    descriptions = [f"{kind} {value[:80]} ({explain_unusable(value) or 'not used'})" for kind, value in addresses]
    return "", (
        f"no address to connect to: found {', '.join(descriptions) or 'none'}, expected a usable InternalIP of the Node. "
        "Set ansible_host with the option compose"
    )
