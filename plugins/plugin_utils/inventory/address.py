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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

INSTANCE = "windows_instance"
TYPES = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")
OWN = ("annotation:", "label:")

_HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?\Z"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An address that could be used. origin: the entry of the option address that names it."""

    origin: str
    value: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The address to connect to and where it is from, or why there is none."""

    value: str = ""
    origin: str = ""
    because: str = ""


def check_origins(origins: Iterable[str]) -> str:
    """What is wrong with the option address; empty when nothing is."""
    bad = [
        origin
        for origin in origins
        if origin not in (INSTANCE, *TYPES)
        and not any(origin.startswith(prefix) and origin != prefix for prefix in OWN)
    ]
    if not bad:
        return ""
    return (
        f"address: found {', '.join(bad)}, expected {INSTANCE}, {', '.join(TYPES)}, annotation:KEY or label:KEY; "
        "correct the option"
    )


def explain_unusable(value: str, families: Sequence[str]) -> str:
    """Why nothing can connect to this address; empty when something can."""
    try:
        # A zone ("%") is accepted there whatever it holds.
        parsed = ipaddress.ip_address(value.replace("%", " "))
    except ValueError:
        return "" if _HOST_NAME.match(value) else "neither an IP address nor a host name"
    if parsed.is_link_local:
        # What a Windows machine gives itself when no DHCP server answered it.
        return "link-local"
    if parsed.is_unspecified or parsed.is_multicast:
        return "not an address of a machine"
    family = f"ipv{parsed.version}"
    return "" if family in families else f"{family}, which ip_family excludes"


def choose(candidates: Iterable[Candidate], origins: Sequence[str], families: Sequence[str]) -> Choice:
    """The first usable address: by the order of origins, then of families, host names last."""
    addresses = list(candidates)
    for origin in origins:
        fitting = [
            address
            for address in addresses
            if address.origin == origin and not explain_unusable(address.value, families)
        ]
        if fitting:
            best = min(fitting, key=lambda address: _rank(address.value, families))
            return Choice(value=best.value, origin=best.origin)
    considered = [
        f"{address.origin} {address.value[:80]} ({explain_unusable(address.value, families) or 'not requested'})"
        for address in addresses
    ]
    return Choice(
        because=f"no address to connect to: found {', '.join(considered) or 'none'}, expected one of {', '.join(origins)}. "
        "Extend the option address, annotate the Node and name annotation:KEY there, or compose ansible_host"
    )


def _rank(value: str, families: Sequence[str]) -> int:
    try:
        return families.index(f"ipv{ipaddress.ip_address(value).version}")
    except ValueError:
        return len(families)
