# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: upgrade
short_description: Upgrade Windows nodes without losing a volume
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Takes Windows nodes one by one, or in batches after a canary, through an upgrade, and keeps a journal in the cluster. It cordons a
    node, drains it as C(kubectl drain --delete-emptydir-data) does, waits until it is Ready, waits until the drivers work, verifies a
    volume, uncordons the node, and waits for its workloads.
  - The playbook C(kubewin.csi.upgrade) runs its steps. You can write the play yourself; the steps V(begin) and V(finish) of O(step) are
    enough for that.
  - Writes the journal before each change, so that the next run continues at the same node and step after a crash. A Lease keeps a
    second run away. A process beside the run renews it between the steps and ends with the run.
  - A node that cannot be drained is uncordoned. A node that fails after a change stays cordoned. Other nodes of the batch are finished,
    or uncordoned if nothing was changed on them. No further node starts.
  - Never starts an upgrade of the cluster or of a node, and never forces a pod away.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    support: full
    details:
      - In check mode it returns the plan and what would block the first drains. Nothing is written, and no task of yours is due.
  diff_mode:
    support: none
options:
  step:
    description:
      - V(prepare) plans the upgrade, checks readiness, verifies a volume on every node and saves baselines of the volumes.
      - V(begin) cordons and drains the nodes of O(batch). It fails unless the upgrade may start them now.
      - V(finish) records O(results), then checks, verifies and uncordons the nodes whose tasks ran. A node whose tasks began and that has
        no result fails. It fails if a node failed.
      - V(follow) upgrades all nodes, with the hooks V(none) and V(wmco). It ends early if the upgrade pauses, and fails if a node failed.
      - V(end) fails nodes whose tasks did not end. After the last node it verifies and compares all volumes. It gives the Lease back.
    type: str
    choices: [prepare, begin, finish, follow, end]
    required: true
  name:
    description:
      - Name of the upgrade. A run with the same name continues it. A finished upgrade does not start again.
      - Required without O(plan).
    type: str
  plan:
    description: Result of the step V(prepare) of the same run, whose options apply to this step too.
    type: dict
    default: {}
  batch:
    description: Nodes to begin, all of one batch. Required with O(step=begin).
    type: list
    elements: str
    default: []
  results:
    description: Results of your tasks by Node, for O(step=finish). An empty text is a success, any other text the reason of the failure.
    type: dict
    default: {}
  failures:
    description: Reasons why the play ended early, for O(step=end).
    type: list
    elements: str
    default: []
  hosts:
    description: Node of each host of the play. Required with O(step=prepare) and O(hook=tasks). Other Nodes are left for another run.
    type: dict
    default: {}
  hook:
    description:
      - What upgrades a node.
      - V(tasks) leaves it to tasks between the steps V(begin) and V(finish). V(none) cordons and drains the node, and waits while you upgrade it.
      - V(wmco) leaves the upgrade to the Windows Machine Config Operator. The node gets the taint C(kubewin.io/upgrade), because WMCO
        uncordons by itself, and then the label that allows its upgrade.
    type: str
    choices: [none, tasks, wmco]
    default: none
  target:
    description: Target releases. Without O(target.kubelet) and O(target.wmco) every node is processed once.
    type: dict
    default: {}
    suboptions:
      kubelet:
        description:
          - Kubernetes release of an upgraded node, such as C(1.27).
          - A release older than that of every node is refused.
        type: str
        aliases: [kubernetes]
      openshift:
        description: OpenShift release whose update must be complete before the first node.
        type: str
      wmco:
        description: WMCO release of an upgraded node. Required with O(hook=wmco).
        type: str
  nodes:
    description: Upgrade only these Nodes, in this order. Defaults to all Windows nodes, those with the fewest volumes first.
    type: list
    elements: str
    default: []
  canary:
    description: First Node. Defaults to the Node with the fewest volumes.
    type: str
    default: ''
  batches:
    description: Sizes of the batches, numbers or percentages. The last one repeats. The first node is always alone.
    type: list
    elements: str
    default: ['1']
  unproven_canary:
    description:
      - With O(hook=wmco) and a present WMCO release without csi-proxy, upgrade one node without volumes first, unproven.
    type: bool
    default: false
  pause:
    description:
      - Where the run pauses for an approval. V(canary) pauses after the canary, V(batches) before each further batch, and a Node's name
        before that Node. Continue with O(confirmed).
    type: list
    elements: str
    default: []
  confirmed:
    description: Approved pauses, as the paused run named them.
    type: list
    elements: str
    default: []
  windows:
    description:
      - Hours in which nodes may start, such as C(Sat,Sun 22:00-04:00). A node that started is finished.
      - A batch starts only if O(node_timeout) is left for each of its nodes.
    type: list
    elements: str
    default: []
  time_zone:
    description: Time zone of O(windows).
    type: str
    default: UTC
  node_timeout:
    description:
      - Timeout in seconds for one node, from its cordon until its workloads run again. It starts again after each external action.
    type: int
    default: 7200
  wait_timeout:
    description: Seconds to wait while something blocks the next batch, before the run pauses.
    type: int
    default: 0
  stop_on:
    description:
      - Conditions outside the current node that stop the run. V(nodes) is another Windows node that is not Ready or that another user
        cordoned, V(workloads) are workloads that do not start again, V(cluster) is a failing ClusterVersion.
    type: list
    elements: str
    choices: [cluster, nodes, workloads]
    default: [cluster, nodes, workloads]
  drivers:
    description: Drivers to check and verify. Defaults to all installed drivers.
    type: list
    elements: str
    default: []
  gate_timeout:
    description: Timeout in seconds for a driver to work on a node.
    type: int
    default: 600
  verify:
    description:
      - Options of P(kubewin.csi.verify#module) for the verification of volumes, without C(drivers) and C(nodes).
        Its C(image), C(timeout) and C(tolerations) also apply to baselines.
    type: dict
    default: {}
  readiness:
    description: Options of P(kubewin.csi.preflight_info#module) for the readiness report, without C(target).
    type: dict
    default: {}
  data:
    description: Save baselines of the data of Windows workloads before the first node, and compare them after the last one.
    type: bool
    default: true
  append_only:
    description: Files that workloads only append to, as O(kubewin.csi.volume_data#module:append_only).
    type: list
    elements: str
    default: []
  namespace:
    description: Existing namespace of the journal and the lease.
    type: str
    default: kubewin
seealso:
  - module: kubewin.csi.gate
  - module: kubewin.csi.verify
  - module: kubewin.csi.volume_data
"""

EXAMPLES = r"""
# A play of your own over hosts that are named like their Nodes.
- name: Upgrade the kubelets one by one
  hosts: windows
  gather_facts: false
  serial: 1
  tasks:
    - name: Cordon and drain the node
      kubewin.csi.upgrade:
        step: begin
        name: kubelets-1.27
        hook: tasks
        target: {kubelet: "1.27"}
        batch: ["{{ inventory_hostname }}"]
      register: begun

    - name: Replace the kubelet
      ansible.builtin.include_role:
        name: our_kubelet
      when: inventory_hostname in begun.nodes

    - name: Check, verify and uncordon the node
      kubewin.csi.upgrade:
        step: finish
        name: kubelets-1.27
        hook: tasks
        target: {kubelet: "1.27"}
        results: "{{ {inventory_hostname: ''} }}"
"""

RETURN = r"""
outcome:
  description:
    - V(planned) after the step V(prepare). V(tasks) after the step V(begin) if tasks are due for RV(nodes).
    - V(settled) when no node is in progress, V(finished) after the last node, V(paused) when the upgrade waits, V(stopped) when a node
      failed.
  returned: after the journal was read
  type: str
nodes:
  description: Nodes that are cordoned and drained, and whose tasks may run now.
  returned: with O(step=prepare) and O(step=begin)
  type: list
  elements: str
  sample: [win-1]
deadline:
  description: End of O(node_timeout) for the tasks of RV(nodes), in seconds since 1970.
  returned: with O(step=begin)
  type: float
proceed:
  description: Always true. A step that failed does not return it.
  returned: success
  type: bool
hosts:
  description: Hosts whose Nodes are upgraded, in their order.
  returned: with O(step=prepare)
  type: list
  elements: str
batches:
  description: How many of RV(hosts) are upgraded together, for C(serial).
  returned: with O(step=prepare)
  type: list
  elements: int
held:
  description: File on the controller with the time until which the run holds the Lease, in seconds since 1970.
  returned: unless the Lease was given back
  type: str
  sample: /root/.ansible/tmp/ansible-local-1/kubewin-lease.held
options:
  description: Options of this step, for O(plan) of the next ones.
  returned: with O(step=prepare)
  type: dict
journal:
  description:
    - Every node's entry, with C(node), C(batch), C(step), C(since), C(failed), C(why), C(by_itself) and more.
    - C(step) is one of V(waiting), V(cordon), V(drain), V(allow), V(hook), V(wait_ready), V(gate), V(verify), V(workloads) and V(done).
  returned: after the journal was read
  type: list
  elements: dict
place:
  description: Where the journal is.
  returned: after the journal was read
  type: str
lines:
  description: Summary of the run.
  returned: with O(step=prepare) and O(step=end)
  type: list
  elements: str
without_limit:
  description: Whether the next run needs hosts that this one left out.
  returned: with O(step=end)
  type: bool
next:
  description: Playbook that continues the upgrade, with its variables. Empty if nothing is left to do.
  returned: with O(step=prepare) and O(step=end)
  type: list
  elements: str
findings:
  description: Findings about the upgrade; after its end, differences from before.
  returned: after the journal was read
  type: list
  elements: dict
report:
  description: Nodes and volumes before and after.
  returned: when RV(outcome=finished)
  type: list
  elements: str
data:
  description: Result of the comparison of each volume.
  returned: when RV(outcome=finished)
  type: list
  elements: str
reason:
  description:
    - Stable key of the failure, one of V(stopped), V(paused), V(volumes_changed), V(data_differs), V(refused), V(taken_over),
      V(journal_unreadable), V(too_large), V(interrupted), a key of M(kubewin.csi.driver_apply), or the key of the gate, the verification
      or the readiness report.
  returned: failure
  type: str
  sample: stopped
"""
