# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: csi_proxy_info
short_description: Look at csi-proxy on a Windows node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Tells what csi-proxy is on a node, who manages it, what it serves, and what volumes there would trip over.
  - It reads only, with in-box commands over the host's own connection. Nothing is kept as facts.
extends_documentation_fragment:
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
  - kubewin.csi.windows
attributes:
  check_mode:
    support: full
seealso:
  - module: kubewin.csi.csi_proxy
"""

EXAMPLES = r"""
- name: Look at the pipes that the vSphere driver needs
  kubewin.csi.csi_proxy_info:
    required_pipes: [csi-proxy-disk-v1, csi-proxy-volume-v1, csi-proxy-filesystem-v1, csi-proxy-system-v1alpha1]
  register: node
  failed_when: node is failed or not node.csi_proxy.serving
"""

RETURN = r"""
csi_proxy:
  description: What is on the node; RV(kubewin.csi.csi_proxy#module:csi_proxy) describes it. C(drift) holds only missing pipes and a service that does not run.
  returned: when the node could be observed
  type: dict
"""
