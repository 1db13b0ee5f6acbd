#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: summary
short_description: "Internal: print what a run changed, the state of every Windows node, and the next command"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Combines the state of the Windows hosts with the gate's verdicts on their Nodes, prints it as a table
    with a verdict for each node, and returns it as data.
  - Sets the statistic C(kubewin_summary) to that data, as M(ansible.builtin.set_stats) would.
  - Never fails because of O(failure). A task that fails sets no statistics, so let a task after this one fail.
  - Nodes that no host of the inventory is, and hosts that were left out, are listed with the reason.
extends_documentation_fragment:
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
options:
  hosts:
    description:
      - State of each host, as a dictionary with C(name), C(node), C(left_out) (why it was not read, or empty),
        C(csi_proxy) as RV(kubewin.csi.csi_proxy_info#module:csi_proxy), and C(changed) (what the run changed there).
    type: list
    elements: dict
    default: []
  rollouts:
    description: RV(kubewin.csi.node_rollout#module:rollout) by driver.
    type: dict
    default: {}
  nodes_without_host:
    description: Windows Nodes that none of the hosts is.
    type: list
    elements: str
    default: []
  readiness:
    description: Result of M(kubewin.csi.readiness_info) for this run, if there is one.
    type: dict
  applied:
    description: Results of M(kubewin.csi.driver_apply), each with its loop item, for the changes in the cluster.
    type: list
    elements: dict
    default: []
  failure:
    description: Why the run failed. Empty when it did not.
    type: str
    default: ''
  rescue:
    description: Read O(failure) from the task that failed on this host or, if it failed on others, from those with their names. For a C(rescue).
    type: bool
    default: false
  warnings:
    description: Findings of the drivers' plans, as C(warnings) of each RV(kubewin.csi.driver_info#module:planned).
    type: list
    elements: dict
    default: []
  outcome:
    description:
      - How the run ends, as the summary's C(outcome). Defaults to V(failed) with O(failure), and to V(done) without.
      - V(paused) means that the next run continues it, V(refused) that it failed before its first change.
      - In check mode a run with O(failure) is always V(refused).
    type: str
    choices: [done, paused, refused, failed]
  next:
    description:
      - Playbooks of this collection to run next, each with its arguments, such as C(verify).
      - Each is printed as a command with the inventory and limit of this run.
    type: list
    elements: str
    default: []
  lines:
    description:
      - What the run did, a line each, instead of a row for each node.
    type: list
    elements: str
  output_dir:
    description:
      - Folder on the controller to write O(output_file) to. If the file cannot be written, the task prints a warning.
    type: path
  output_file:
    description: Name of the file in O(output_dir).
    type: str
    default: enable-csi.json
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: Print the summary
  kubewin.csi.summary:
    hosts: "{{ host_results }}"
    rollouts:
      vsphere: "{{ gate.rollout }}"
"""

RETURN = r"""
summary:
  description:
    - How the run ended (C(outcome)), the verdict, a row for each node, the changes, the findings of all hosts, the reason of a failure,
      the commands to run next, and the readiness of volumes if the run checked it.
    - With O(lines), how the run ended, the lines, the reason of a failure, and the commands to run next.
  returned: success
  type: dict
  sample:
    outcome: done
    verdict: green
    nodes:
      - node: win-1
        host: win-1
        csi_proxy: 1.3.0 running, serving
        verdict: green
        why: vsphere registered, pod Ready
    changes: []
    findings: []
    readiness: null
    failure: ''
    next: []
path:
  description: The file written, or nothing.
  returned: success
  type: str
  sample: /var/lib/kubewin/enable-csi.json
"""
