# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Matches Windows hosts to the Nodes of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..modules.node_info import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.host_results import describe_left_cordons, read_hosts
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.base.grouped import group_values
from ..plugin_utils.drivers.installed import find_controllers, find_node_plugins
from ..plugin_utils.inventory.matching import Host, Node, match_hosts
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.labels import read_cordon_reason
from ..plugin_utils.kube.node import ObservedNode


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)

    def read_run(self) -> dict[str, Any]:
        return {"hosts": [host.describe_identity() for host in read_hosts(self.task_vars)]}

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the Nodes, which host is which, and why a host is none."""
        if options["installed"]:
            self.result.update(drivers=list(options["drivers"]), installed=[], own_drivers=[])
        try:
            self._read(options)
        except ClusterError as error:
            if not {error.reason, "all"} & set(options["accept"]):
                raise
            self.result.update({"nodes": {}, "matched": {}, "errors": {}, **self.result})
            self.result.update(unread=str(error), reason=error.reason)
            if options["installed"]:
                self.show(
                    f"{error} Only these drivers are read: {', '.join(self.result['drivers']) or 'none; set kubewin_drivers'}."
                )

    def _read(self, options: Mapping[str, Any]) -> None:
        unreadable = describe_unreadable(options["hosts"])
        if options["require"] and unreadable:
            # The cluster is asked only for what helps to read the error.
            with contextlib.suppress(ClusterError):
                described = describe_nodes(self.connect(options).list_windows_nodes())
                unreadable = "\n".join([unreadable, *describe_left_cordons(described)])
            raise TaskError(unreadable, "host_unusable")
        if options["require"] and options["hosts"] and not any(host["names"] for host in options["hosts"]):
            names = ", ".join(host["name"] for host in options["hosts"])
            raise TaskError(
                f"{names}: left out because they are unreachable, expected at least one host. Repair a host, or change "
                "--limit, then run again.",
                "host_unusable",
            )
        client = self.connect(options)
        nodes = client.list_windows_nodes()
        hosts = [
            Host(
                inventory_name=host["name"],
                names=tuple(name for name in host["names"] or () if name),
                addresses=tuple(host["addresses"] or ()),
                claimed_node=host["node_name"] or None,
            )
            for host in options["hosts"]
            if host["names"]
        ]
        matching = match_hosts(hosts, [Node.from_object(node) for node in nodes])
        if options["require"] and matching.errors:
            raise TaskError("\n".join(dict.fromkeys(matching.errors.values())), "host_unmatched")
        self.result.update(
            nodes=describe_nodes(nodes),
            matched=matching.matched,
            errors=matching.errors,
        )
        if self.inputs:
            results = read_hosts(self.task_vars, kubewin_nodes=self.result)
            self.result["unsettled"] = [host.name for host in results if not host.is_skipped and not host.is_settled]
        if options["installed"]:
            installed = list(find_node_plugins(client))
            self.result.update(installed=installed, own_drivers=list(find_node_plugins(client, own_only=True)))
            self.result["drivers"] = list(options["drivers"] or installed or find_controllers(client))


def describe_nodes(nodes: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {node["metadata"]["name"]: describe_node(node) for node in nodes}


def describe_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a core/v1 Node that the plays decide on."""
    metadata, observed = node["metadata"], ObservedNode.from_object(node)
    return {
        "ready": observed.ready,
        "unschedulable": observed.cordoned,
        "cordoned_for": read_cordon_reason(node),
        "labels": metadata.get("labels") or {},
        "boot_id": ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""),
        "kubelet_version": observed.kubelet,
    }


def describe_unreadable(hosts: Sequence[Mapping[str, Any]]) -> str:
    """Each reason why hosts could not be read, on a line with the names of the hosts; empty if all were read."""
    by_reason = group_values((str(host["problem"]), str(host["name"])) for host in hosts if host["problem"])
    return "\n".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
