# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match Windows hosts to Nodes. Pure: no I/O.

A change on the wrong machine is the worst thing this collection could do, so a host counts as a Node only when what the
host says of itself (its names and addresses) and what the Node says of the machine agree on exactly one Node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Host:
    """A Windows host as it reported itself.

    inventory_name: its name in the inventory, for messages.
    names: host name and DNS name as the machine reports them.
    addresses: IPv4 and IPv6 addresses as the machine reports them.
    claimed_node: the Node the user named for it (`kubewin_node_name`), verified like any other.
    """

    inventory_name: str
    names: tuple[str, ...]
    addresses: tuple[str, ...]
    claimed_node: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """What matching needs of a Node: its name, its Hostname and DNS addresses, its IP addresses."""

    name: str
    host_names: tuple[str, ...]
    addresses: tuple[str, ...]

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> Node:
        """Read a core/v1 Node (`status.addresses`: https://kubernetes.io/docs/reference/node/node-status/#addresses)."""
        listed = (node.get("status") or {}).get("addresses") or []
        return cls.from_addresses(
            node["metadata"]["name"], [(str(entry["type"]), str(entry["address"])) for entry in listed]
        )

    @classmethod
    def from_addresses(cls, name: str, addresses: Iterable[tuple[str, str]]) -> Node:
        """Sort a Node's addresses: (type, value)."""
        by_type: dict[bool, list[str]] = {True: [], False: []}
        for kind, value in addresses:
            by_type[kind.endswith("IP")].append(value)
        return cls(name=name, host_names=tuple(by_type[False]), addresses=tuple(by_type[True]))


@dataclass(frozen=True, slots=True)
class Matching:
    """Which Node each host is, and why the others are none.

    matched: inventory name -> Node name. errors: inventory name -> what was found, what was expected, what to do.
    """

    matched: dict[str, str]
    errors: dict[str, str]


def match_hosts(hosts: Iterable[Host], nodes: Iterable[Node]) -> Matching:
    """Match every host to exactly one Node by name and by address; a disagreement of the two is an error."""
    listed_nodes = list(nodes)
    node_names: dict[str, str] = {}
    errors: dict[str, str] = {}
    for host in hosts:
        result = _match_one(host, listed_nodes)
        if isinstance(result, Node):
            node_names[host.inventory_name] = result.name
        else:
            errors[host.inventory_name] = result
    for node_name in {name for name in node_names.values() if list(node_names.values()).count(name) > 1}:
        twins = sorted(host for host, name in node_names.items() if name == node_name)
        for host_name in twins:
            del node_names[host_name]
            errors[host_name] = (
                f"hosts {', '.join(twins)} are all Node {node_name}, expected one host per Node. Remove the duplicate from the inventory, "
                "or correct the address of the other machine"
            )
    return Matching(node_names, errors)


def _match_one(host: Host, nodes: list[Node]) -> Node | str:
    names = {_short(name) for name in host.names} | {name.lower() for name in host.names}
    addresses = {_address(address) for address in host.addresses}
    by_name = [node for node in nodes if names & {text.lower() for text in (node.name, *node.host_names)}]
    by_address = [node for node in nodes if addresses & {_address(address) for address in node.addresses}]
    candidates = [node for node in by_name if node in by_address]
    expected = f"a Windows Node: {_join_values(node.name for node in nodes)}"
    remedy = "Check that the host belongs to this cluster, and set kubewin_node_name for it"
    if host.claimed_node is not None:
        unknown = host.claimed_node not in {node.name for node in nodes}
        expected = f"Node {host.claimed_node} (kubewin_node_name){', which is no Windows Node' if unknown else ''}"
        remedy = "Correct kubewin_node_name of the host, or remove it"
        # Behind address translation no Node has the address, and the user names the right one.
        candidates = [node for node in by_address or by_name if node.name == host.claimed_node]
    elif not candidates and not (by_name and by_address):
        candidates = by_address or [node for node in by_name if not (addresses and node.addresses)]
    if len(candidates) == 1:
        return candidates[0]
    return (
        f"host {host.inventory_name} reports name {_join_values(dict.fromkeys(host.names))} and addresses {_join_values(host.addresses)}, expected those "
        f"of {expected}. By name it is Node {_join_values(node.name for node in by_name)}, by address Node "
        f"{_join_values(node.name for node in by_address)}. {remedy}"
    )


def _short(name: str) -> str:
    return name.split(".", 1)[0].lower()


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.split("%", 1)[0]))
    except ValueError:
        return text


def _join_values(values: Iterable[str]) -> str:
    return ", ".join(values) or "none"
