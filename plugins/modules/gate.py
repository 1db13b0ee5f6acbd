# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
short_description: Wait until a CSI driver works on its Windows nodes
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - The gate after a deployment or repair. It expects the driver on every Windows node that the DaemonSet selects by node selector,
    affinity and tolerations.
  - A node is green if its CSINode has the driver with the node ID of the Node's annotation, its topology labels exist, its plugin pod
    is Ready, stable and newer than the last boot, no second node plugin provides the driver, and the host serves every pipe that the
    pod mounts.
  - Without facts from the host a node is C(registered, unproven) and never green, because a plugin pod stays Ready after csi-proxy dies.
  - Watches the cluster, and prints a line for each node whose verdict changes.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.driver.rollout
  - kubewin.csi.hosts
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    details: In check mode it checks once, does not wait, and does not fail on the result.
options:
  nodes:
    description: Check only these Nodes and report the others. Defaults to every expected Node.
    type: list
    elements: str
    default: []
  proven:
    description: Nodes on which M(kubewin.csi.verify) has just proven a volume of this driver. This replaces reading their hosts;
      problems found on a host still count.
    type: list
    elements: str
    default: []
  allow_zero_nodes:
    description: Pass the gate when there is no Node to check.
    type: bool
    default: false
  applied:
    description:
      - RV(kubewin.csi.driver_apply#module:applied) of the same run. The gate fails if the DaemonSet has another pod template, because
        another run or user changed it.
    type: dict
    default: {}
  once:
    description: Check once, do not wait, and do not fail on the result.
    type: bool
    default: false
  accept:
    description:
      - Reasons of failures, such as V(forbidden), that do not fail the task. RV(gate) then has C(not_read).
    type: list
    elements: str
    default: []
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.verify
"""

EXAMPLES = r"""
- name: Wait until vSphere storage works on every Windows node
  kubewin.csi.gate:
    driver: vsphere
    hosts:
      - node: win-1
        observed_at: "2026-11-20T23:00:00Z"
        serving: true
        release: 1.3.0
        pipes:
          - csi-proxy-disk-v1
          - csi-proxy-filesystem-v1
          - csi-proxy-system-v1alpha1
          - csi-proxy-volume-v1
    timeout: 900
"""

RETURN = r"""
gate:
  description: Result of the check.
  returned: unless the API server could not be reached
  type: dict
  contains:
    verdict:
      description: Verdict of the worst node, one of V(green), V(unproven), V(waiting), V(red).
      type: str
    daemonset:
      description: Namespace, name and counts of the DaemonSet, null when there is none.
      type: dict
    nodes:
      description: The checked nodes, each with C(node), C(verdict), C(pod), C(problems) (as RV(gate.problems)) and C(notes).
      type: list
      elements: dict
    skipped_nodes:
      description: Windows nodes that were not checked, each with C(node) and C(reason).
      type: list
      elements: dict
    not_read:
      description: Why the driver could not be read. Omitted if it was read.
      type: str
    problems:
      description: Problems of the driver as a whole, each with C(id), C(verdict), C(message) and C(remedy).
      type: list
      elements: dict
    table:
      description: The result as text for display.
      type: str
reason:
  description:
    - Stable key of the failure, one of V(gate_red), V(gate_timeout), V(gate_unproven), V(no_nodes) or a key of
      M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: gate_timeout
"""
