# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: summary
short_description: Print what a run changed, the state of every Windows node, and the next command
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Prints what the run did, why it failed and the next commands, and returns it as data. With O(nodes) also the state of every
    Windows node, from what earlier tasks of the playbook registered.
  - Sets the statistic C(kubewin_summary) to that data, as M(ansible.builtin.set_stats) would.
  - Never fails. A task that fails sets no statistics, so let a task after this one fail.
  - Windows nodes without a host in the inventory, and hosts that were left out, are listed with the reason.
extends_documentation_fragment:
  - kubewin.csi.attributes.info
options:
  result:
    description:
      - Result of the task that did the work. Its C(lines) say what the run did, its C(next) are like O(next), its C(outcome) is like
        O(outcome), and its C(msg) is why the run failed.
    type: dict
  nodes:
    description: Print a row for each Windows node. A run that leaves something to do is followed by C(enable_csi).
    type: bool
    default: false
  accept_unproven:
    description: With O(nodes), whether a Node whose host was not read leaves nothing to do.
    type: bool
    default: false
  removed:
    description: Print what a removal of drivers and csi-proxy did. With O(rescue), also what is left.
    type: bool
    default: false
  rescue:
    description: Read the failure from the task that failed on this host or, if it failed on others, from those with their names. For a C(rescue).
    type: bool
    default: false
  outcome:
    description:
      - How the run ends, as the summary's C(outcome). Defaults to V(failed) after a failure, and to V(done) without.
      - V(paused) means that the next run continues it, V(refused) that it failed before its first change.
      - In check mode a run that failed is always V(refused).
    type: str
    choices: [done, paused, refused, failed]
  next:
    description:
      - Playbooks of this collection to run next, each with its arguments, such as C(verify). After a failure, the playbook itself.
      - Each is printed as a command with the inventory and limit of this run.
    type: list
    elements: str
    default: []
  output_file:
    description:
      - Name of a file in the directory of the input C(kubewin_output_dir). If it cannot be written, the task prints a warning.
    type: str
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Print the summary
  kubewin.csi.summary:
    nodes: true
    next: [verify]
"""

RETURN = r"""
summary:
  description:
    - How the run ended (C(outcome)), the verdict, a row for each node, the changes, the findings of all hosts, the reason of a failure,
      the commands to run next, and the readiness of volumes if the run checked it.
    - Without O(nodes), how the run ended, the lines, the reason of a failure, and the commands to run next.
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
