#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_upgrade
short_description: Go on with an upgrade of Windows nodes until somebody else has to do something
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Takes Windows nodes one by one, or in batches after a canary, through an upgrade that somebody else makes, and keeps a
    journal of it. It closes a node for workloads, empties it as C(kubectl drain) does, waits until it is back, opens it, and waits for
    its workloads. In between it hands out what others do, and ends with that in RV(next). The role P(kubewin.csi.node_upgrade#role)
    does those things and comes back with what became of them in O(results).
  - The journal is written before each change, so that a run after a crash goes on at the right node and step. A lease keeps a
    second run away. It is renewed as long as the run lives, also while its tasks work, and ends within a minute after the run died.
  - A node that fails is left safe. One that could not be emptied is opened again; one that was touched stays closed. Others of
    its batch are finished or given back, and nothing new begins.
  - It never starts an upgrade of the cluster or of a node, and it never forces a pod away.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    support: full
    details:
      - In check mode it returns the plan, and what would keep the first nodes from being emptied. Nothing is written.
  diff_mode:
    support: none
options:
  name:
    description:
      - What this upgrade is called. Under that name it is gone on with; one that is finished is not begun again.
    type: str
    required: true
  hook:
    description:
      - How a node comes to be upgraded.
      - With V(tasks) it is cordoned, emptied, and handed out; with V(none) it is cordoned and emptied, and somebody upgrades it
        while this waits.
      - With V(wmco) the Windows Machine Config Operator does it. The node gets a taint of ours, since WMCO uncordons by itself, and
        then the label that allows its upgrade.
    type: str
    choices: [none, tasks, wmco]
    default: none
  target:
    description: What nodes and cluster are to become. Without O(target.kubelet) and O(target.wmco) every node is taken once.
    type: dict
    default: {}
    suboptions:
      kubelet:
        description:
          - Release of Kubernetes that a node has when it is done, such as C(1.27).
          - One that every node is past already is refused, as nodes do not go back.
        type: str
        aliases: [kubernetes]
      openshift:
        description: Release of OpenShift whose update has to be complete before the first node.
        type: str
      wmco:
        description: Release of WMCO that a node has when it is done. With O(hook=wmco) it has to be given.
        type: str
  nodes:
    description: Take only these Nodes, in this order. Without it all Windows nodes, those with the fewest volumes first.
    type: list
    elements: str
    default: []
  canary:
    description: The Node to begin with.
    type: str
    default: ''
  batches:
    description: How many nodes at a time, numbers or percentages; the last one repeats. The first node always goes alone.
    type: list
    elements: str
    default: ['1']
  unproven_canary:
    description:
      - With O(hook=wmco) from a release of WMCO without csi-proxy, where nothing can be proven before, let one node that carries no
        volume go ahead.
    type: bool
    default: false
  pause:
    description:
      - Where a person has to look. V(canary) stands for after the canary, V(batches) for before each further batch, and a Node's name
        for before that one. The run ends there in order, and goes on with O(confirmed).
    type: list
    elements: str
    default: []
  confirmed:
    description: Pauses that a person has ended, as the run that ended there named them.
    type: list
    elements: str
    default: []
  windows:
    description:
      - Hours in which nodes may begin, such as C(Sat,Sun 22:00-04:00). A node that has begun is finished.
      - No batch begins when less than O(node_timeout) is left for each of its nodes.
    type: list
    elements: str
    default: []
  time_zone:
    description: Time zone of O(windows).
    type: str
    default: UTC
  node_timeout:
    description:
      - Seconds that a node may take from its turn to its workloads being back. Its time begins anew after each step that is handed
        out.
    type: int
    default: 3600
  patience:
    description: Seconds to wait for what holds up the next batch, before the run ends in order.
    type: int
    default: 0
  stop_on:
    description:
      - What stops the run although the node at hand is well. V(nodes) is another Windows node that is not Ready or was cordoned by
        somebody, V(workloads) are workloads that do not come back, V(cluster) is a ClusterVersion that fails.
    type: list
    elements: str
    choices: [cluster, nodes, workloads]
    default: [cluster, nodes, workloads]
  delete_unowned:
    description: Evict pods that have no controller as well. They do not come back.
    type: bool
    default: false
  drivers:
    description: Drivers whose node plugins have to stay on a node while it is closed.
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
  term:
    description: RV(term) of the call before, in the same run. Without it this is a run of its own, which begins or takes up.
    type: int
    default: 0
  finished:
    description: What was handed out by the call before.
    type: str
    choices: [hook, gate, canary]
  results:
    description: What became of it by Node, an empty text or why it failed.
    type: dict
    default: {}
  only_lease:
    description:
      - Only hold the lease. With O(term), fail unless this run still holds the lease. Without O(term), take the lease for this run, which
        keeps it until O(ended) or its own end. If another run holds the lease, wait at most a minute for a stale lease to expire.
      - With O(ended), release the lease if this run holds it.
    type: bool
    default: false
  ended:
    description: Note that the end of a finished upgrade was proven and compared, so that it need not be done again.
    type: bool
    default: false
  compared:
    description: With O(ended), claims as namespace/name whose baselines were compared. The journal keeps them until the baselines are removed.
    type: list
    elements: str
    default: []
  holder:
    description: Whom the lease names; the action sets it.
    type: str
    default: ''
  progress_file:
    description: The action sets it. Lines for whoever waits are added to this file, and the module ends when it disappears.
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

- name: Begin, or go on, until the first node is empty
  kubewin.csi.node_upgrade:
    name: kubelets-1.27
    hook: tasks
    target: {kubelet: "1.27"}
    output_dir: /srv/upgrades
  register: upgrade

- name: Tell that the node was changed, and go on
  kubewin.csi.node_upgrade:
    name: kubelets-1.27
    hook: tasks
    target: {kubelet: "1.27"}
    output_dir: /srv/upgrades
    term: "{{ upgrade.term }}"
    finished: hook
    results: {win-1: ''}
"""

RETURN = r"""
outcome:
  description:
    - V(handed) when RV(next) is to be done, V(resting) when nothing is wrong and nothing may be done now, V(finished), or V(stopped) when
      it failed.
    - V(planned) in check mode, V(held) with O(only_lease=true).
  returned: after the journal was read
  type: str
next:
  description: What is handed out, with C(kind), one of V(hook), V(gate), V(canary) or empty, and C(nodes).
  returned: after the journal was read
  type: dict
  sample: {kind: gate, nodes: [win-1]}
turns:
  description: How often something may still be handed out, at most.
  returned: after the journal was read
  type: int
term:
  description: Number of this run of the upgrade, for O(term) of the next call.
  returned: after the journal was read
  type: int
journal:
  description: Every node's entry, with C(node), C(batch), C(step), C(since), C(failed), C(why), C(by_itself) and more.
  returned: after the journal was read
  type: list
  elements: dict
text:
  description: The journal for people.
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
  description: In check mode, what would be done, for people.
  returned: in check mode
  type: list
  elements: str
locked:
  description: In check mode, which other run is at an upgrade of this cluster now; empty when none is.
  returned: in check mode
  type: str
findings:
  description: What is worth knowing, and at the end what is not as it was.
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
    - Why the task failed, as a word that does not change. One of V(stopped), V(volumes_changed), V(refused), V(locked), V(taken_over),
      V(journal_unreadable), V(too_large), V(interrupted), V(configuration), V(forbidden), V(unreachable), V(unauthorized), V(too_many_requests),
      V(conflict), V(invalid), V(api_error).
  returned: failure
  type: str
  sample: stopped
"""

import threading
import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import when_ended
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.begin import Refused
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.records import Pages
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.run import Upgrade

ARGUMENT_SPEC: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "hook": {"type": "str", "choices": ["none", "tasks", "wmco"], "default": "none"},
    "target": {
        "type": "dict",
        "default": {},
        "options": {
            "kubelet": {"type": "str", "aliases": ["kubernetes"]},
            "openshift": {"type": "str"},
            "wmco": {"type": "str"},
        },
    },
    "nodes": {"type": "list", "elements": "str", "default": []},
    "canary": {"type": "str", "default": ""},
    "batches": {"type": "list", "elements": "str", "default": ["1"]},
    "unproven_canary": {"type": "bool", "default": False},
    "pause": {"type": "list", "elements": "str", "default": []},
    "confirmed": {"type": "list", "elements": "str", "default": []},
    "windows": {"type": "list", "elements": "str", "default": []},
    "time_zone": {"type": "str", "default": "UTC"},
    "node_timeout": {"type": "int", "default": 3600},
    "patience": {"type": "int", "default": 0},
    "stop_on": {
        "type": "list",
        "elements": "str",
        "choices": ["cluster", "nodes", "workloads"],
        "default": ["cluster", "nodes", "workloads"],
    },
    "delete_unowned": {"type": "bool", "default": False},
    "drivers": {"type": "list", "elements": "str", "default": []},
    "namespace": {"type": "str", "default": "kubewin"},
    "operator_namespace": {"type": "str", "default": "openshift-windows-machine-config-operator"},
    "output_dir": {"type": "path"},
    "term": {"type": "int", "default": 0},
    "finished": {"type": "str", "choices": ["hook", "gate", "canary"]},
    "results": {"type": "dict", "default": {}},
    "only_lease": {"type": "bool", "default": False},
    "ended": {"type": "bool", "default": False},
    "compared": {"type": "list", "elements": "str", "default": []},
    "holder": {"type": "str", "default": ""},
    "progress_file": {"type": "path"},
}


def keep() -> None:
    """Renew the lease of a run while its tasks work; in a process that the action starts beside the run."""
    params = (ansible := module(ARGUMENT_SPEC)).params
    holder = params["holder"]
    while not is_dead(holder):
        try:
            # Short, so that the end of the run is seen soon while the API server does not answer.
            client = connect(ansible, retry_for=5.0)
        except ClusterError:
            time.sleep(1.0)
            continue
        upgrade_lease(client, params["namespace"], holder).keep(lambda: is_dead(holder))
        return


def main() -> None:
    """Look, refuse, go on."""
    ansible = module(ARGUMENT_SPEC)
    params, stop = ansible.params, threading.Event()
    warnings: list[str] = []
    pages: Pages | None = None
    try:
        upgrade = Upgrade(connect(ansible), params, stop)
        pages, warnings = upgrade.pages, upgrade.pages.warnings
        if params["only_lease"]:
            if params["ended"]:
                upgrade.release()
                ansible.exit_json(changed=False)
            if params["term"]:
                upgrade.lease.held()
                ansible.exit_json(changed=False, at=time.time())
            ansible.exit_json(changed=False, **upgrade.hold())
        when_ended(params["progress_file"], stop.set)
        if not params["term"]:
            upgrade.refuse()
        if ansible.check_mode:
            planned = upgrade.plan()
            for text in warnings:
                ansible.warn(text)
            ansible.exit_json(changed=planned["turns"] > 0, **planned)
        result, journal = upgrade.go_on()
    except Refused as error:
        ansible.fail_json(msg=str(error), reason="refused")
    except ClusterError as error:
        stands = ""
        if pages is not None and (pages.written or params["term"]):
            stands = f" Where each node stands says {pages.place}; run again, and it goes on from there."
        ansible.fail_json(msg=f"{error}{stands}", reason=error.reason, changed=bool(stands))
    for text in warnings:
        ansible.warn(text)
    stopping = journal.stopping
    if result["outcome"] == "stopped" and stopping is not None:
        text = f"{stopping.id} {stopping.object}: {stopping.message} -> {stopping.remedy}. The journal: {upgrade.pages.place}"
        ansible.fail_json(msg=text, reason="stopped", finding=stopping.id, changed=True, **result)
    blockers = [one for one in result["findings"] if one["severity"] == "blocker"]
    if result["outcome"] == "finished" and blockers:
        text = "\n".join(f"{one['id']} {one['object']}: {one['message']} -> {one['remedy']}" for one in blockers)
        ansible.fail_json(msg=text, reason="volumes_changed", changed=True, **result)
    ansible.exit_json(changed=upgrade.pages.written, **result)


if __name__ == "__main__":
    main()
