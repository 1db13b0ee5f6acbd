#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_upgrade
short_description: Advance an upgrade of Windows nodes until it needs an external action
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Prepares Windows nodes for an upgrade one by one, or in batches after a canary, and keeps a journal. It cordons a node, drains it as
    C(kubectl drain) does, waits until it is Ready, uncordons it, and waits for its workloads. When it needs an external action, it returns
    that in RV(next). The playbook C(kubewin.csi.upgrade) runs the action and passes the outcome in O(results).
  - Writes the journal before each change, so that the next run continues at the same node and step after a crash. A lease keeps a
    second run away. A run renews it while it lives, also while its tasks work; the lease of a killed run expires within a minute.
  - A node that cannot be drained is uncordoned. A node that fails after a change stays cordoned. Other nodes of the batch are finished,
    or uncordoned if nothing was changed on them. No further node starts.
  - Never starts an upgrade of the cluster or of a node, and never forces a pod away.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    support: full
    details:
      - In check mode it returns the plan and what would block the first drains. Nothing is written.
  diff_mode:
    support: none
options:
  name:
    description:
      - Name of the upgrade. A run with the same name continues it. A finished upgrade does not start again.
    type: str
    required: true
  hook:
    description:
      - What upgrades a node.
      - V(tasks) cordons and drains the node and returns it in RV(next). V(none) cordons and drains it, and waits while you upgrade it.
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
    default: 3600
  patience:
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
  delete_unowned:
    description: Also evict pods without a controller. Nothing creates them again.
    type: bool
    default: false
  drivers:
    description: Drivers whose node plugins must stay on a cordoned node.
    type: list
    elements: str
    default: []
  namespace:
    description: Existing namespace of the journal and the lease.
    type: str
    default: kubewin
  operator_namespace:
    description: Namespace of WMCO.
    type: str
    default: openshift-windows-machine-config-operator
  output_dir:
    description: Directory for a copy of the journal, on the machine where the module runs.
    type: path
  generation:
    description: RV(generation) of the previous call in the same run. Without it, the call begins or resumes the upgrade.
    type: int
    default: 0
  finished:
    description: External action that the previous call requested.
    type: str
    choices: [hook, gate, canary]
  results:
    description: Outcome by Node. An empty text is a success, any other text the reason of the failure.
    type: dict
    default: {}
  only_lease:
    description:
      - Only hold the lease. With O(generation), fail unless this run still holds the lease. Without O(generation), take the lease for this run, which
        keeps it until O(ended) or its own end. If another run holds the lease, wait at most a minute for a stale lease to expire.
      - With O(ended), release the lease if this run holds it.
    type: bool
    default: false
  ended:
    description: Record that the last verification and comparison of a finished upgrade are done.
    type: bool
    default: false
  compared:
    description: With O(ended), claims as namespace/name whose baselines were compared. The journal keeps them until the baselines are removed.
    type: list
    elements: str
    default: []
  holder:
    description: Internal. Holder that the lease names.
    type: str
    default: ''
  progress_file:
    description: Internal. Progress messages are appended to this file; the module ends when the file is removed.
    type: path
seealso:
  - module: kubewin.csi.node_rollout
  - module: kubewin.csi.storage_proof
"""

EXAMPLES = r"""
- name: What would be done?
  kubewin.csi.node_upgrade:
    name: kubelets-1.27
    target: {kubelet: "1.27"}
  check_mode: true

- name: Begin, or continue, until the first node is drained
  kubewin.csi.node_upgrade:
    name: kubelets-1.27
    hook: tasks
    target: {kubelet: "1.27"}
    output_dir: /srv/upgrades
  register: upgrade

- name: Report that the node was changed, and continue
  kubewin.csi.node_upgrade:
    name: kubelets-1.27
    hook: tasks
    target: {kubelet: "1.27"}
    output_dir: /srv/upgrades
    generation: "{{ upgrade.generation }}"
    finished: hook
    results: {win-1: ''}
"""

RETURN = r"""
lease:
  description: File on the controller that records the renewals of the lease.
  returned: with O(only_lease=true) and O(generation)
  type: str
  sample: /root/.ansible/tmp/ansible-local-1/kubewin-lease-0123456789abcdef
outcome:
  description:
    - V(delegated) when the caller must do RV(next), V(paused) when the upgrade waits, V(finished), or V(stopped) when
      it failed.
    - V(planned) in check mode, V(held) with O(only_lease=true).
  returned: after the journal was read
  type: str
next:
  description: Step for the caller. C(kind) is V(hook), V(gate), V(canary) or empty; C(nodes) are the Nodes.
  returned: after the journal was read
  type: dict
  sample: {kind: gate, nodes: [win-1]}
approval:
  description: What O(confirmed) must name to continue. Empty if the run does not wait for an approval.
  returned: when RV(outcome) is V(delegated), V(paused) or V(stopped)
  type: str
  sample: canary
max_rounds:
  description: How many more steps may be delegated at most.
  returned: after the journal was read
  type: int
generation:
  description: Number of this run of the upgrade, for O(generation) of the next call.
  returned: after the journal was read
  type: int
journal:
  description: Every node's entry, with C(node), C(batch), C(step), C(since), C(failed), C(why), C(by_itself) and more.
  returned: after the journal was read
  type: list
  elements: dict
text:
  description: The journal as text.
  returned: after the journal was read
  type: list
  elements: str
stored:
  description: Version of the journal in the cluster. Empty if there is no journal.
  returned: after the journal was read
  type: str
place:
  description: Where the journal is.
  returned: after the journal was read
  type: str
plan:
  description: In check mode, the planned steps as text.
  returned: in check mode
  type: list
  elements: str
locked:
  description: In check mode, which other run is at an upgrade of this cluster now; empty when none is.
  returned: in check mode
  type: str
findings:
  description: Findings about the upgrade; after its end, also differences from before.
  returned: after the journal was read
  type: list
  elements: dict
claims:
  description: Claims of Windows workloads when the upgrade began, as C(namespace/name).
  returned: after the journal was read
  type: list
  elements: str
at:
  description: Time at which the lease was held, in seconds since 1970.
  returned: with O(only_lease)
  type: float
ended:
  description: When the end was proven and compared, an empty text before.
  returned: after the journal was read
  type: str
compared:
  description: Claims whose baselines were compared when it ended.
  returned: after the journal was read
  type: list
  elements: str
report:
  description: At the end, before and after.
  returned: when RV(outcome=finished)
  type: list
  elements: str
finding:
  description: Id of the finding that stopped it, such as V(CSI-U03).
  returned: when it was stopped
  type: str
reason:
  description:
    - Stable key of the failure, one of V(stopped), V(volumes_changed), V(refused), V(locked), V(taken_over),
      V(journal_unreadable), V(too_large), V(interrupted), V(configuration), V(forbidden), V(unreachable), V(unauthorized), V(too_many_requests),
      V(conflict), V(invalid), V(api_error).
  returned: failure
  type: str
  sample: stopped
"""

import threading
import time
from collections.abc import Callable

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import SECONDS, uptime
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import when_ended
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.begin import RefusedError
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.records import Pages
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.run import Upgrade

ARGUMENT_SPEC = documented(DOCUMENTATION)


def keep(renewed: Callable[[float], None]) -> str:
    """Renew the lease of a run while its tasks work; return why it is lost, empty if the run ended. For a process beside the run.

    renewed: called with the time of each renewal, of the clock uptime().
    """
    params, began = module(ARGUMENT_SPEC).params, uptime()
    holder = params["holder"]
    while not is_dead(holder):
        try:
            # Short, so that the end of the run is detected soon while the API server does not answer.
            client = connect(params, retry_for=5.0)
        except ClusterError as error:
            if uptime() - began > SECONDS:
                return f"the lease could not be renewed for {SECONDS} s: {error}"
            time.sleep(1.0)
            continue
        return upgrade_lease(client, params["namespace"], holder).keep(lambda: is_dead(holder), renewed)
    return ""


def main() -> None:
    """Observe, refuse or advance."""
    ansible = module(ARGUMENT_SPEC)
    params, stop = ansible.params, threading.Event()
    warnings: list[str] = []
    pages: Pages | None = None
    try:
        upgrade = Upgrade(connect(ansible.params), params, stop)
        pages, warnings = upgrade.pages, upgrade.pages.warnings
        if params["only_lease"]:
            if params["ended"]:
                upgrade.lease.end()
                ansible.exit_json(changed=False)
            if params["generation"]:
                upgrade.lease.renew()
                ansible.exit_json(changed=False, at=time.time())
            ansible.exit_json(changed=False, **upgrade.hold())
        when_ended(params["progress_file"], stop.set)
        if not params["generation"]:
            upgrade.refuse()
        if ansible.check_mode:
            planned = upgrade.plan()
            for text in warnings:
                ansible.warn(text)
            ansible.exit_json(changed=planned["max_rounds"] > 0, **planned)
        result, journal = upgrade.go_on()
    except RefusedError as error:
        ansible.fail_json(msg=str(error), reason="refused")
    except ClusterError as error:
        stands = ""
        if pages is not None and (pages.written or params["generation"]):
            stands = f" The state of each node is in {pages.location}. Run again to continue."
        ansible.fail_json(msg=f"{error}{stands}", reason=error.reason, changed=bool(stands))
    for text in warnings:
        ansible.warn(text)
    stopping = journal.stopping
    if result["outcome"] == "stopped" and stopping is not None:
        text = f"{stopping.id} {stopping.object}: {stopping.message} -> {stopping.remedy}. The journal: {upgrade.pages.location}"
        ansible.fail_json(msg=text, reason="stopped", finding=stopping.id, changed=True, **result)
    blockers = [one for one in result["findings"] if one["severity"] == "blocker"]
    if result["outcome"] == "finished" and blockers:
        text = "\n".join(f"{one['id']} {one['object']}: {one['message']} -> {one['remedy']}" for one in blockers)
        ansible.fail_json(msg=text, reason="volumes_changed", changed=True, **result)
    ansible.exit_json(changed=upgrade.pages.written, **result)


if __name__ == "__main__":
    main()
