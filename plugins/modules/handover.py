# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: handover
short_description: Hand a driver's Windows nodes over from one node plugin to another, node by node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Hands the Nodes over, one after the other, between this collection's node plugin and another one. Then removes objects that are
    no longer needed. The playbook C(kubewin.csi.handover) runs this module.
  - On each node the old plugin leaves before the new one starts, because the two share sockets. The next node follows after the new
    plugin is Ready and registered.
  - Never writes objects of an operator or add-on. Replaces a DaemonSet that another user installed only if O(replace) names it.
  - Holds the Lease C(kubewin-handover-DRIVER) in the namespace of this collection's node plugin. Another run fails while the Lease is
    renewed, and takes it over once it expires. A run that lost its Lease makes no further changes.
  - A run that is interrupted restores the former plugin of the node in progress. If it is killed, the next run finishes the
    hand-over.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it then returns the Nodes that it would hand over.
    support: full
  diff_mode:
    description: Will not return details about what has changed.
    support: none
options:
  driver:
    description: Key of the driver, such as V(vsphere) or V(azure_disk). Defaults to the only driver with a node plugin for Windows nodes.
      Required if there are several.
    type: str
  direction:
    description:
      - V(to_platform) replaces this collection's node plugin by another one, such as a platform's.
      - V(to_kubewin) replaces another node plugin by this collection's.
    type: str
    required: true
    choices: [to_platform, to_kubewin]
  replace:
    description:
      - The other DaemonSet, as namespace/name. Required with O(direction=to_kubewin), and with O(direction=to_platform) if several
        DaemonSets provide the driver.
    type: str
    default: ''
  timeout:
    description: Timeout in seconds for the registration of the new plugin on the node. After it, the old plugin is restored.
    type: int
    default: 600
  restart_pod:
    description:
      - With O(direction=to_platform), delete the platform's pod on the node if it ran beside this collection's pod, after that pod is
        gone. The leaving plugin removes the shared sockets, and a pod without a liveness probe does not detect that.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.driver_remove
"""

EXAMPLES = r"""
- name: Plan a hand-over to the platform
  kubewin.csi.handover:
    driver: azure_file
    direction: to_platform
  check_mode: true
  register: planned
"""

RETURN = r"""
handover:
  description: The hand-over.
  returned: success
  type: dict
  contains:
    nodes:
      description: Nodes that remain to be handed over, in order.
      type: list
      elements: str
    done:
      description: The Nodes that have been.
      type: list
      elements: str
    other:
      description: The other DaemonSet as namespace/name, empty if it does not exist.
      type: str
    summary:
      description: Lines for display.
      type: list
      elements: str
kept:
  description: Objects of this collection that remain after V(to_platform), because volumes and claims refer to them.
  returned: success
  type: list
  elements: str
reason:
  description:
    - Why the task failed. V(handover_refused), V(locked), V(taken_over), V(busy), V(gate), V(timeout), V(interrupted) or a key of
      M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: handover_refused
"""
