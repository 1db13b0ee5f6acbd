#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Match Windows hosts to the Nodes of a cluster
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Lists the Windows Nodes of a cluster and matches each given Windows host to exactly one of them, by the names and
    addresses that the host reported of itself.
  - A host that is no Node, or could be two, is an error of that host with what was found, expected and what to do.
    The module fails on it only with O(require), in one message that names every host.
  - Tells for the matched Nodes whether a volume operation is in flight, so that csi-proxy is not stopped under it.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
options:
  hosts:
    description: Windows hosts as they reported themselves, see RV(kubewin.csi.csi_proxy_info#module:csi_proxy.host).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the host in the inventory.
        type: str
        required: true
      names:
        description: Host name and DNS name as the machine reports them.
        type: list
        elements: str
        default: []
      addresses:
        description: IP addresses as the machine reports them.
        type: list
        elements: str
        default: []
      node_name:
        description: The Node this host is said to be. It is verified like any other.
        type: str
      problem:
        description: Why the host could not be read. It is then matched to no Node.
        type: str
        default: ''
  require:
    description:
      - Fail unless each of the hosts is exactly one Node. The message names every other host.
      - A host with a O(hosts[].problem) fails the task before the cluster is contacted.
    type: bool
    default: false
  activity:
    description: Look for volume operations in flight on these Nodes. Costs a list of pods a Node, and a read a claim.
    type: list
    elements: str
    default: []
  activity_timeout:
    description:
      - Seconds to wait until none is in flight on these Nodes. What is in flight even then is returned as RV(nodes).
    type: int
    default: 0
  progress_file:
    description: The action sets it. Lines for whoever waits are added to this file.
    type: path
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: Which Node is this host?
  kubewin.csi.node_info:
    hosts:
      - name: "{{ inventory_hostname }}"
        names: ["{{ observed.csi_proxy.host.name }}"]
        addresses: "{{ observed.csi_proxy.host.addresses }}"
  register: nodes
"""

RETURN = r"""
nodes:
  description: Every Windows Node of the cluster, by name.
  returned: success
  type: dict
  sample:
    win-1:
      ready: true
      unschedulable: false
      cordoned_for: ""
      labels: {kubernetes.io/os: windows}
      boot_id: 1c0f
      kubelet_version: v1.36.3
      busy: []
matched:
  description: Node name by inventory name.
  returned: success
  type: dict
  sample: {win-1.example.com: win-1}
errors:
  description: Why a host is no Node, by inventory name.
  returned: success
  type: dict
  sample: {}
nodes_without_host:
  description: Windows Nodes that none of the given hosts is.
  returned: success
  type: list
  elements: str
  sample: [win-4]
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.activity import busy_reasons
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.node import NodeSeen
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import claims_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.matching import Host, Node, match_hosts
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.facts import CORDONED
from ansible_collections.kubewin.csi.plugins.module_utils.waiting import Awaited, Waits

ARGUMENT_SPEC: dict[str, Any] = {
    "hosts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "addresses": {"type": "list", "elements": "str", "default": []},
            "node_name": {"type": "str"},
            "problem": {"type": "str", "default": ""},
        },
    },
    "require": {"type": "bool", "default": False},
    "activity": {"type": "list", "elements": "str", "default": []},
    "activity_timeout": {"type": "int", "default": 0},
    "progress_file": {"type": "path"},
}

# Between two looks, each of which costs a list of pods a Node.
_LOOK_AGAIN = 5.0


def describe(node: dict[str, Any]) -> dict[str, Any]:
    """The few facts of a core/v1 Node that the plays decide on."""
    metadata, seen = node["metadata"], NodeSeen.from_object(node)
    return {
        "ready": seen.ready,
        "unschedulable": seen.cordoned,
        "cordoned_for": (metadata.get("annotations") or {}).get(CORDONED, ""),
        "labels": metadata.get("labels") or {},
        "boot_id": ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""),
        "kubelet_version": seen.kubelet,
        "busy": [],
    }


def activity(client: Client, node: str) -> list[str]:
    """Volume operations in flight on a Node."""
    pods = client.list(kinds.POD, field_selector=f"spec.nodeName={node}").items
    used = sorted({(pod["metadata"]["namespace"], claim) for pod in pods for claim in claims_of(pod)})
    claims = [client.get(kinds.PERSISTENT_VOLUME_CLAIM, claim, namespace) for namespace, claim in used]
    return busy_reasons(pods, [claim for claim in claims if claim is not None])


def at_rest(client: Client, names: Sequence[str], timeout: float, say: Callable[[str], None]) -> dict[str, list[str]]:
    """What is in flight on each Node, once nothing is or the time is over."""
    waits, began = Waits(say), time.monotonic()
    while True:
        busy = {name: activity(client, name) for name in names}
        waited = time.monotonic() - began
        if waited >= timeout or not any(busy.values()):
            return busy
        waits.tell(
            *(Awaited(f"{name}: waiting, {why}", waited, timeout) for name, whys in busy.items() for why in whys)
        )
        # What is in flight is other people's; how long it may last is judged above.
        time.sleep(min(_LOOK_AGAIN, timeout - waited))


def problems(hosts: Sequence[dict[str, Any]]) -> str:
    """Each reason why hosts could not be read, on a line with the hosts that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for host in hosts:
        if host["problem"]:
            by_reason.setdefault(host["problem"], []).append(host["name"])
    return "\n".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def main() -> None:
    ansible = module(ARGUMENT_SPEC)
    unusable = problems(ansible.params["hosts"])
    if ansible.params["require"] and unusable:
        ansible.fail_json(msg=unusable, reason="host_unusable")
    try:
        client = connect(ansible)
        listed = client.windows_nodes()
        nodes = {node["metadata"]["name"]: describe(node) for node in listed}
        hosts = [
            Host(
                inventory_name=host["name"],
                names=tuple(name for name in host["names"] or () if name),
                addresses=tuple(host["addresses"] or ()),
                claimed_node=host["node_name"] or None,
            )
            for host in ansible.params["hosts"]
            if host["names"]
        ]
        matching = match_hosts(hosts, [Node.from_object(node) for node in listed])
        asked = [name for name in ansible.params["activity"] if name in nodes]
        say = reporter(ansible.params["progress_file"])
        for name, busy in at_rest(client, asked, ansible.params["activity_timeout"], say).items():
            nodes[name]["busy"] = busy
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason)
    if ansible.params["require"] and matching.errors:
        ansible.fail_json(msg="\n".join(matching.errors.values()), reason="host_unmatched")
    ansible.exit_json(
        changed=False,
        nodes=nodes,
        matched=matching.matched,
        errors=matching.errors,
        nodes_without_host=list(matching.nodes_without_host),
    )


if __name__ == "__main__":
    main()
