# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_remove
short_description: Remove Windows node plugins of CSI drivers that nothing uses
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Deletes every object that this collection applied for the drivers, and no other object. Finds them by their labels, also under other names and in
    other namespaces.
  - Refuses before the first change while a Windows node uses a volume of one of them, according to pods, attachments and kubelets, and while another
    run changes or hands over the DaemonSet of one of them. The Lease of a run that was killed is waited for. A hand-over from another node plugin must
    be finished first.
  - Deletes each object by the uid that was read. The next run finishes an interrupted one.
  - Waits until the plugins' pods are deleted. Keeps claims, volumes, the drivers' controllers and the namespace. Also keeps the CSIDriver and the
    feature states of a driver, on which other installations of the driver may rely.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; the server checks each deletion without doing it.
    support: full
  diff_mode:
    description: Will not return details about what has changed; the objects are listed in the result.
    support: none
options:
  drivers:
    description: Keys of the drivers, such as V(vsphere) or V(azure_disk). Without O(csi_proxy) it defaults to the only driver of which this
      collection has objects, and is required if there are several. Without such objects nothing is removed.
    type: list
    elements: str
    default: []
  csi_proxy:
    description:
      - Also refuse while anything but O(drivers) needs csi-proxy, because you remove it next. That is every DaemonSet and pod, in any
        namespace and of any owner, that mounts one of its pipes, and every volume in use that was mounted through them.
      - Without O(drivers) nothing is removed.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.driver_apply
"""

EXAMPLES = r"""
- name: Remove the vSphere node plugin from the Windows nodes
  kubewin.csi.driver_remove:
    drivers: [vsphere]

- name: Check that nothing needs csi-proxy, and remove nothing
  kubewin.csi.driver_remove:
    csi_proxy: true
"""

RETURN = r"""
drivers:
  description: The drivers of which objects are removed.
  returned: always, after the cluster was read
  type: list
  elements: str
  sample: [vsphere]
objects:
  description: Deleted objects, in check mode the planned ones.
  returned: success
  type: list
  elements: dict
  sample: [{kind: DaemonSet, namespace: vmware-system-csi, name: vsphere-csi-node-windows}]
kept:
  description: Objects that this collection applied and keeps, each with the reason and the command that deletes it.
  returned: success
  type: list
  elements: str
  sample:
    - "CSIDriver smb.csi.k8s.io, since other installations of the driver may rely on it; if there is none: kubectl delete csidrivers smb.csi.k8s.io"
in_use:
  description: Users of the drivers' volumes on Windows nodes.
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
  description: Stable key of the failure, V(in_use), V(timeout), V(locked) or a key of M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: in_use
"""
