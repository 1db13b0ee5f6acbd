#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: operator_override
short_description: Hold upgrades of the Windows Machine Config Operator
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Sets the override C(Upgradeable) to C(False) in C(spec.overrides) of the OperatorCondition of the Windows Machine Config
    Operator, with the reason C(KubewinCsiBlockers), or removes it. While it is set, Operator Lifecycle Manager does not
    upgrade the operator.
  - Leaves an override of the same type with another reason as it is, and reports it.
  - Does nothing in a cluster without such an OperatorCondition.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report what would change.
    support: full
  diff_mode:
    description: Returns what changed, or in check mode would change.
    support: none
options:
  state:
    description: Whether the override exists.
    type: str
    choices: [present, absent]
    default: present
  explanation:
    description: Why upgrades are held. Required when O(state=present).
    type: str
    default: ""
  readiness:
    description:
      - Result of M(kubewin.csi.preflight_info), which then decides O(state) and O(explanation). The override exists while the report has a blocker.
      - Nothing is changed by a report without blockers that misses resources, because it may miss a blocker.
    type: dict
  allow_forbidden:
    description: Change nothing and warn, instead of failing, where the account may not list OperatorConditions.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.preflight_info
"""

EXAMPLES = r"""
- name: Hold upgrades of the Windows operator
  kubewin.csi.operator_override:
    explanation: "preflight found 2 blockers: CSI-D31, CSI-V12"

- name: Allow them again
  kubewin.csi.operator_override:
    state: absent
"""

RETURN = r"""
conditions:
  description: What was, or in check mode would be, done with each OperatorCondition of the operator.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    action:
      description: One of V(none), V(set), V(remove), V(keep). V(keep) leaves another user's override in place.
      type: str
    message:
      description: The message that was set, or what was kept.
      type: str
  sample: [{name: windows-machine-config-operator.v9.0.0, action: set, message: "preflight found a blocker: CSI-V12"}]
reason:
  description: Stable key of the failure, such as V(forbidden) or V(conflict).
  returned: failure
  type: str
  sample: forbidden
"""
