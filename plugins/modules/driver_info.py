# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_info
short_description: Plan a CSI driver's Windows node plugin for a cluster
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads a cluster and plans a driver's Windows node plugin for it, with release, mode, namespace, prerequisites and blockers.
  - Prints the plan, in check mode with every line.
  - Changes nothing. Fails because of a blocker only with O(require); RV(driver_plan.deployable) and RV(driver_plan.refusal) report it. A combination that
    cannot work is refused with the nearest one that can.
  - Renders the plan with the templates of the role C(csi_driver), as RV(definition).
  - Only checks objects of the driver's own installation, which are the CSIDriver, the feature states and the controller.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.driver
  - kubewin.csi.attributes.info
options:
  driver:
    description: Key of the driver, such as V(vsphere) or V(azure_disk). Defaults to the driver whose Linux controller the cluster has. Required
      if it has the controllers of several drivers, or of none.
    type: str
    required: false
  replace:
    description:
      - DaemonSet of another user, as namespace/name, that M(kubewin.csi.handover) replaces node by node. It is then no blocker, unless
        its owner would create it again.
    type: str
    default: ''
  require:
    description: Fail with RV(driver_plan.refusal) as the message if there is a blocker.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.driver_apply
  - module: kubewin.csi.handover
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Plan the node plugin of vSphere
  kubewin.csi.driver_info:
    driver: vsphere
  register: planned

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ planned.driver_plan.summary }}"
"""

RETURN = r"""
driver_plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    driver:
      description: Key of the driver in this collection.
      type: str
    title:
      description: Name of the driver for display.
      type: str
    mode:
      description: V(csi_proxy) or V(host_process), null if no mode can run.
      type: str
    version:
      description: Release of the driver.
      type: str
    namespace:
      description: Namespace of the DaemonSet.
      type: str
    daemonset:
      description: Name of the DaemonSet.
      type: str
    pipes:
      description: Bare names of the pipes of csi-proxy that the pods mount.
      type: list
      elements: str
    platform:
      description: Platform of the cluster, V(openshift), V(aks), V(eks), V(gke) or V(rke2), empty if none was detected.
      type: str
    deployable:
      description: Whether there is no blocker.
      type: bool
    refusal:
      description: All blockers with their remedies, empty if there is none.
      type: str
    summary:
      description: The plan as lines for display.
      type: list
      elements: str
    findings:
      description: Findings, each with C(id), C(severity), C(object), C(message) and C(remedy).
      type: list
      elements: dict
    nodes:
      description: Names of the Windows Nodes.
      type: list
      elements: str
    unselected_nodes:
      description: Names of the Windows Nodes that the driver's node selector and affinity leave out.
      type: list
      elements: str
    settings:
      description: Values for the templates.
      type: dict
definition:
  description: The objects of the plan as YAML, for O(kubewin.csi.driver_apply#module:definition). Empty if it cannot be deployed.
  returned: success
  type: str
reason:
  description: Stable key of the failure; see M(kubewin.csi.driver_apply). V(refused) with O(require).
  returned: failure
  type: str
  sample: unreachable
"""
