# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_apply
short_description: Apply a CSI driver's Windows node plugin and update it node by node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Applies a driver's objects with server-side apply, and changes only what differs.
  - The DaemonSet has the update strategy C(OnDelete), so that no controller replaces its pods. If the pod template of a running DaemonSet
    changes, applies the template and replaces the pod of the first node, the canary. When the driver works there again, as
    M(kubewin.csi.gate) checks it, replaces the pods of the other nodes in batches. Never leaves more nodes without a Ready plugin
    than O(max_unavailable).
  - Does not replace pods that have the desired template, so the next run continues an interrupted one.
  - If the canary fails, applies the former template, which the cluster keeps as a ControllerRevision, restores the canary and fails. Records
    the template in the annotation C(kubewin.io/failed-template); a run without that node then fails before it replaces a pod. If a later
    node fails, stops, and the remaining nodes keep their former pods, until you fix the node or change the options and run again.
  - One run at a time changes a DaemonSet, and holds the Lease C(kubewin-roll-NAME) in its namespace. Other runs wait for it, then read
    everything again and replace the pods of their own nodes.
  - Skips nodes that are not Ready, and names them in a warning.
  - Requires the ClusterRole C(kubewin-csi-roll) in the driver's namespace. Deletes each pod by its uid and resourceVersion.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.driver.apply
  - kubewin.csi.hosts
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report what would change, after the server's own dry run.
    support: full
  diff_mode:
    description: Returns what changed, or in check mode would change, without the server's bookkeeping.
    support: full
options:
  definition:
    description: Objects as YAML text with one or more documents, or as a list of dictionaries.
    type: raw
    required: true
  nodes:
    description: Nodes whose plugin may be changed, the canary first. Defaults to every Node of the DaemonSet.
    type: list
    elements: str
    default: []
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Apply a node plugin, and update its pods node by node if it changed
  kubewin.csi.driver_apply:
    driver: vsphere
    definition: "{{ lookup('ansible.builtin.file', 'vsphere.yaml') }}"
    batches: ['1', '10%']
    node_timeout: 900
"""

RETURN = r"""
applied:
  description: Hash of the DaemonSet's pod template by driver, for O(kubewin.csi.gate#module:applied).
  returned: success, unless in check mode
  type: dict
  sample: {vsphere: 9c1185a5c5e9fc54}
objects:
  description: Every object with its action, in check mode the planned one.
  returned: success
  type: list
  elements: dict
roll:
  description: Result by node, null if no DaemonSet of this collection was running.
  returned: always, after the objects were read
  type: dict
  contains:
    step:
      description: V(finish), V(stop) if a node failed, V(plan) in check mode.
      type: str
    left:
      description: Nodes of other runs whose pod has another template.
      type: list
      elements: str
    down:
      description: Nodes of this run that are not Ready and were skipped.
      type: list
      elements: str
    replaced:
      description: Nodes whose pod was replaced, in order; in check mode the planned ones.
      type: list
      elements: str
reason:
  description:
    - Stable key of the failure. V(roll_refused), V(canary_failed), V(roll_stopped), V(locked) if another run holds the Lease for too
      long.
    - Every module that works with the cluster has these too, V(forbidden), V(conflict), V(invalid), V(not_found), V(admission_refused),
      V(unauthorized), V(unreachable), V(too_many_requests), V(configuration) and V(api_error).
  returned: failure
  type: str
  sample: canary_failed
"""
