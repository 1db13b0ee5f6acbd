#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_quiesce
short_description: "Internal: cordon a Node and wait until no volume operation is in flight, or uncordon it"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Cordons a Node, with the reason in its annotation C(kubewin.io/cordoned), and waits until no pod with a volume starts or terminates
    there and no volume of its pods is being resized.
  - Leaves the cordon of another user or reason as it is.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report what would change. It then does not wait.
    support: full
  diff_mode:
    description: Returns what changed, or in check mode would change.
    support: none
options:
  node:
    description: Name of the Node.
    type: str
    required: true
  reason:
    description: What the cordon is for. Only a cordon of the same reason is removed.
    type: str
    required: true
  state:
    description: V(quiesced) cordons the Node and waits. V(uncordoned) removes the cordon.
    type: str
    choices: [quiesced, uncordoned]
    default: quiesced
  timeout:
    description:
      - Timeout in seconds for the volume operations in flight. After it, the task fails and names them.
      - The cordon stays. The task then returns RV(ignore:changed=true) if it is its own.
    type: int
    default: 300
seealso:
  - module: kubewin.csi.node_info
"""

EXAMPLES = r"""
- name: Cordon a node and wait for volume operations in flight
  kubewin.csi.node_quiesce:
    node: win-1
    reason: csi-proxy is being replaced
"""

RETURN = r"""
busy:
  description: Volume operations that did not finish.
  returned: when the timeout is over
  type: list
  elements: str
  sample: [pod shop/web-0 is starting and its volumes are being mounted]
reason:
  description: Stable key of the failure, such as V(busy) or V(forbidden).
  returned: failure
  type: str
  sample: busy
"""
