# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of an inventory, their variables and groups. Pure.

Every Windows Node is listed, also one that nothing can be done with, with the reason: a host that is omitted silently is not upgraded.

Addresses come from the cluster, where a node's kubelet and users with write access to Nodes set them; they end up on command
lines (ssh). So a value counts only when it is an IP address or a host name and nothing else.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..catalog import wmco
from .matching import Host, Node, match_hosts
from .observation import INSTANCE, InventoryNode, Observation

# The default group of the plays, and its members from this inventory.
WINDOWS_GROUP = "windows"
HOSTS = "kubewin_windows"
UNREACHABLE = "kubewin_unreachable"

_BYOH = f"{wmco.PREFIX}byoh"

# Who prepares a platform's Windows nodes, csi-proxy included.
_OWNERS = {"aks": "node_image", "eks": "node_image", "gke": "node_image", "rke2": "rancher_wins"}

# Connection variables other than the address. The ssh that the collection uses starts cmd.exe.
_CONNECTIONS: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "winrm": {"ansible_connection": "winrm"},
    "psrp": {"ansible_connection": "psrp"},
    "ssh": {"ansible_connection": "ssh", "ansible_shell_type": "cmd"},
}

# The kinds of addresses that are used, best first.
_ADDRESS_KINDS = (INSTANCE, "InternalIP")

_HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?\Z"
)


@dataclass(frozen=True, slots=True)
class InventoryHost:
    """One host. groups: those that follow from its facts; further ones follow from its variables."""

    name: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    def merge_composed(self, variables: Mapping[str, Any]) -> InventoryHost:
        """The same after the user's own expressions, which may have given it an address or taken it away."""
        merged = {**self.variables, **variables}
        if "ansible_host" in variables:
            address = str(variables["ansible_host"] or "")
            why = explain_unusable(address) if address else "empty"
            merged.pop("kubewin_unreachable_because", None)
            if why:
                merged.pop("ansible_host")
                merged["kubewin_unreachable_because"] = (
                    f"compose set ansible_host to {address[:80]!r}, which is {why}, expected an IP address or a host "
                    "name. Correct the expression"
                )
        return dataclasses.replace(self, variables=merged)

    @property
    def group(self) -> str:
        """The group that says what can be done with it."""
        return UNREACHABLE if "kubewin_unreachable_because" in self.variables else HOSTS


def list_hosts(observed: Observation, connection: str) -> Iterator[InventoryHost]:
    """Every Node in the order of names. connection: the plugin's option."""
    nodes = [Node.from_addresses(node.name, node.addresses) for node in observed.nodes]
    matched = match_hosts([_build_host(instance, nodes) for instance in observed.instances], nodes).matched
    instances = {node: instance for instance, node in matched.items()}
    for node in sorted(observed.nodes, key=lambda node: node.name):
        yield _list_node(node, instances.get(node.name, ""), observed, connection)


def _build_host(instance: str, nodes: Iterable[Node]) -> Host:
    """An instance as a host for matching: its key is an address or a name."""
    is_address = instance.replace(".", "").isdigit()
    return Host(
        inventory_name=instance,
        names=() if is_address else (instance,),
        addresses=(instance,) if is_address else (),
        claimed_node=instance if any(node.name == instance for node in nodes) else None,
    )


def _list_node(node: InventoryNode, instance: str, observed: Observation, connection: str) -> InventoryHost:
    owner, platform = _find_owner(node, instance, observed.platform), observed.platform or "other"
    variables: dict[str, Any] = {
        "kubewin_cluster": observed.server,
        "kubewin_read_at": observed.read_at,
        "kubewin_platform": platform,
        "kubewin_node_name": node.name,
        "kubewin_owner": owner,
        "kubewin_build": node.build,
        "kubewin_registered_drivers": list(node.drivers),
        "kubewin_node": {
            "ready": node.ready,
            "unschedulable": node.unschedulable,
            "kubelet_version": node.kubelet_version,
            "os_image": node.os_image,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
            "addresses": [{"type": kind, "address": value} for kind, value in node.addresses],
        },
    }
    addresses = list(node.addresses)
    if instance:
        addresses.insert(0, (INSTANCE, instance))
        variables |= {"kubewin_instance": instance, "kubewin_instance_user": observed.instances[instance]}
    variables |= _build_connection_variables(addresses, observed, connection)
    groups = [f"kubewin_owner_{owner}", f"kubewin_platform_{platform}"]
    groups += [f"kubewin_build_{node.build}"] if node.build else []
    groups += [f"kubewin_driver_{driver}" for driver in node.drivers]
    return InventoryHost(node.name, variables, tuple(groups))


def _find_owner(node: InventoryNode, instance: str, platform: str) -> str:
    if instance or node.labels.get(_BYOH) == "true":
        return "wmco_byoh"
    return "wmco" if platform == "openshift" else _OWNERS.get(platform, "unmanaged")


def _build_connection_variables(
    addresses: Sequence[tuple[str, str]], observed: Observation, connection: str
) -> dict[str, Any]:
    address, because = choose_address(addresses)
    if not address:
        return {"kubewin_unreachable_because": because}
    # The operator's own way to its nodes is ssh; nothing says that they have WinRM.
    kind = connection if connection != "auto" else "ssh" if observed.platform == "openshift" else "winrm"
    return {"ansible_host": address, **_CONNECTIONS[kind]}


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


def choose_address(addresses: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """(the address to connect to, IPv4 before IPv6; why there is none). addresses: (kind, value)."""
    usable = [(kind, value) for kind, value in addresses if kind in _ADDRESS_KINDS and not explain_unusable(value)]
    if usable:
        return min(usable, key=lambda address: (_ADDRESS_KINDS.index(address[0]), ":" in address[1]))[1], ""
    descriptions = [f"{kind} {value[:80]} ({explain_unusable(value) or 'not used'})" for kind, value in addresses]
    return "", (
        f"no address to connect to: found {', '.join(descriptions) or 'none'}, expected a usable InternalIP of the Node. "
        "Set ansible_host with the option compose"
    )
