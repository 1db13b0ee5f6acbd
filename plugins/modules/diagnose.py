# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnose
short_description: List what keeps volumes on Windows from working, in the order to fix it
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Compares the controller, the account's rules, the connections, csi-proxy on each host, and the readiness report with what is expected.
  - Asks the cluster for the account's rules and for events of failed mounts. It changes nothing.
  - In a playbook of this collection it uses what earlier tasks read of the hosts.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes.info
options:
  drivers:
    description: Drivers whose roles the account's rules are compared with.
    type: list
    elements: str
    default: []
  workload:
    description:
      - Diagnose this workload alone, by the C(namespace/name) of one of its pods or of its controller.
      - Then lists only what keeps its pods from their volumes, with their last warning events.
    type: str
    default: ""
  fail_on:
    description: Fail on a blocker, also on a warning, or never. V(unknown) is V(blocked), because here an unreadable object is a blocker.
    type: str
    choices: [never, blocked, unknown, warning]
    default: blocked
"""

EXAMPLES = r"""
- name: Name what to fix first
  kubewin.csi.diagnose:
    drivers: [vsphere]
"""

RETURN = r"""
diagnosis:
  description:
    - What to fix, in order, each with C(layer), C(id), C(severity), C(object), C(found), C(expected) and C(remedy).
  returned: always
  type: list
  elements: dict
lines:
  description: The same as text.
  returned: always
  type: list
  elements: str
"""
