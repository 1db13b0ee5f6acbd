#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: csi_proxy_users
short_description: "Internal: fail if something in a cluster still needs csi-proxy on Windows nodes"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Finds every DaemonSet and pod, in any namespace and of any owner, that mounts a pipe of csi-proxy, and every volume in use on a Windows
    node whose driver reaches the host through it.
  - It changes nothing, and fails with all that it finds.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
options:
  drivers_going:
    description: Drivers whose node plugin of this collection is about to be removed; it does not count as a user.
    type: list
    elements: str
    default: []
seealso:
  - module: kubewin.csi.csi_proxy
  - module: kubewin.csi.driver_remove
"""

EXAMPLES = r"""
- name: Check that nothing needs csi-proxy
  kubewin.csi.csi_proxy_users:
"""

RETURN = r"""
reason:
  description: Why the task failed, V(in_use) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: in_use
"""
