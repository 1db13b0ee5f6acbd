#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_remove
short_description: Remove a CSI driver's Windows node plugin that nothing uses
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Deletes every object that this collection applied for a driver, and no other object. Finds them by their labels, also under other names and in
    other namespaces.
  - Refuses while a Windows node uses a volume of the driver, according to pods, attachments and kubelets.
  - Deletes each object by the uid that was read. The next run finishes an interrupted one.
  - Waits until the plugin's pods are deleted. Keeps claims, volumes, the driver's controller and the namespace.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.driver.named
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; the server checks each deletion without doing it.
    support: full
  diff_mode:
    description: Will not return details about what has changed; the objects are listed in the result.
    support: none
options:
  force_in_use:
    description:
      - Remove the plugin although Windows nodes use volumes. Pods with such volumes then cannot end, and their nodes cannot be drained,
        until a node plugin runs there again.
    type: bool
    default: false
  timeout:
    description: Timeout in seconds for the end of the plugin's pods.
    type: int
    default: 300
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.driver_apply
"""

EXAMPLES = r"""
- name: Remove the vSphere node plugin from the Windows nodes
  kubewin.csi.driver_remove:
    driver: vsphere
"""

RETURN = r"""
objects:
  description: Deleted objects, in check mode the planned ones.
  returned: success
  type: list
  elements: dict
  sample: [{kind: DaemonSet, namespace: vmware-system-csi, name: vsphere-csi-node-windows}]
in_use:
  description: Users of the driver's volumes on Windows nodes.
  returned: always, after the cluster was read
  type: list
  elements: dict
  sample: [{node: win-1, what: pod shop/db-0 (claim data-db-0)}]
namespaces:
  description: Namespaces of the objects. They are kept.
  returned: success
  type: list
  elements: str
  sample: [vmware-system-csi]
reason:
  description: Stable key of the failure, V(in_use), V(timeout) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: in_use
"""
