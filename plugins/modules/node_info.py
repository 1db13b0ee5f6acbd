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
    addresses that the host reported.
  - A host that matches no Node or more than one has an error with what was found, what was expected and the remedy.
    The module fails on such a host only with O(require), in one message for all hosts.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes.info
options:
  hosts:
    description: Names and addresses that the Windows hosts reported, see RV(kubewin.csi.csi_proxy_info#module:csi_proxy.host).
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
        description: Expected Node of the host. It is verified too.
        type: str
      problem:
        description: Why the host could not be read. It is then matched to no Node.
        type: str
        default: ''
  installed:
    description: Also return RV(drivers), RV(installed) and RV(own_drivers), for which the module lists all DaemonSets.
    type: bool
    default: false
  drivers:
    description: Drivers to return as RV(drivers). Defaults to those that the cluster has.
    type: list
    elements: str
    default: []
  accept:
    description:
      - Reasons of failures, such as V(forbidden) and V(unreachable), that do not fail the task; V(all) for every reason. It then returns RV(unread).
    type: list
    elements: str
    default: []
  require:
    description:
      - Fail unless each of the hosts is exactly one Node. The message names every other host.
      - A host with a O(hosts[].problem) fails the task before the cluster is contacted.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Match a host to its Node
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
drivers:
  description: O(drivers), else RV(installed), else the drivers whose Linux controller the cluster has.
  returned: with O(installed)
  type: list
  elements: str
  sample: [vsphere, smb]
installed:
  description: Keys of the drivers in the catalog of this collection that have a Windows node plugin in the cluster, also of another owner.
  returned: with O(installed)
  type: list
  elements: str
  sample: [vsphere, smb]
own_drivers:
  description: Those of RV(installed) whose DaemonSet this collection installed.
  returned: with O(installed)
  type: list
  elements: str
  sample: [vsphere]
unread:
  description: Why the cluster could not be read.
  returned: if O(accept) has the reason
  type: str
  sample: ""
unsettled:
  description: Hosts on which the plan of csi-proxy, the label or the cordon of their Node asks for a change.
  returned: in playbooks of this collection
  type: list
  elements: str
  sample: [win-1]
"""
