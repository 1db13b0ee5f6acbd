# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate_inputs
short_description: Validate the inputs of a playbook and return their values
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Validates the variables of a run against the inputs of one playbook of this collection. Fails with one sentence for each problem.
  - Validates C(kubewin_*) variables of every Windows host and of localhost, variables with a prefix of this collection that
    do not exist, and whether the inventory and C(--limit) leave the playbook something to do.
  - Reads the file with tasks for an upgrade.
  - Returns the value of each input, without the prefix of its name, for the host that the playbook works on. A blank input has its default.
  - Contacts neither a host nor the cluster.
extends_documentation_fragment:
  - kubewin.csi.attributes.info
options:
  playbook:
    description: Name of the playbook, such as V(enable_csi).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Check the inputs
  kubewin.csi.validate_inputs:
    playbook: verify
  register: kubewin_inputs
  run_once: true
"""

RETURN = r"""
hosts:
  description: The hosts that the plays work on, as a pattern or a list.
  returned: success
  type: raw
  sample: windows
reads_hosts:
  description: Whether the plays read Windows hosts.
  returned: success
  type: bool
  sample: true
windows:
  description: Every Windows host of the inventory, with or without C(--limit).
  returned: success
  type: list
  elements: str
  sample: [win-1, win-2]
drivers:
  description: The value of the input C(kubewin_drivers). Each input of the playbook is returned like this.
  returned: success
  type: list
  elements: str
  sample: [vsphere]
"""
