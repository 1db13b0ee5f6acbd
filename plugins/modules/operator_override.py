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
  allow_forbidden:
    description: Change nothing and warn, instead of failing, where the account may not list OperatorConditions.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.readiness_info
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

from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.observe import OPERATOR
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.override import Planned, plan
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.scope import OPERATOR_NAMESPACE

ARGUMENT_SPEC = documented(DOCUMENTATION)


def main() -> None:
    """Plan or write."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    message: str | None = params["explanation"] if params["state"] == "present" else None
    if message == "":
        ansible.fail_json(msg="explanation: empty, expected the reason of the hold. Set it, or set state to absent.")
    with failing(ansible):
        client = connect(ansible)
        try:
            found = _conditions(client)
        except ClusterError as error:
            if error.status != 403 or not params["allow_forbidden"]:
                raise
            if _may_be_there(client):
                ansible.warn(f"Whether an override of this collection holds the Windows operator is unknown. {error}")
            found = []
        done = [_brought(client, one["metadata"]["name"], message, ansible.check_mode) for one in found]
    for one in done:
        if one.action == "keep":
            ansible.warn(f"OperatorCondition {one.name}: {one.message}")
    ansible.exit_json(
        changed=any(one.action in ("set", "remove") for one in done),
        conditions=[{"name": one.name, "action": one.action, "message": one.message} for one in done],
    )


def _conditions(client: Client) -> list[dict[str, Any]]:
    """Those of the operator, of each of its versions that is installed."""
    try:
        items = client.list(kinds.OPERATOR_CONDITION, OPERATOR_NAMESPACE).items
    except ClusterError as error:
        if error.status == 404:
            return []
        raise
    return [dict(one) for one in items if str(one["metadata"]["name"]).startswith(OPERATOR)]


def _may_be_there(client: Client) -> bool:
    """Whether the operator's namespace exists, or may exist."""
    try:
        return client.get(kinds.NAMESPACE, OPERATOR_NAMESPACE) is not None
    except ClusterError:
        return True


def _brought(client: Client, name: str, message: str | None, check_mode: bool) -> Planned:
    """What was done with a condition, or would be; planned anew when another write came between."""
    made = Planned(name, "none")

    def planned(condition: dict[str, Any]) -> dict[str, Any]:
        nonlocal made
        made = plan(condition, message)
        return {} if check_mode or made.action in ("none", "keep") else made.patch()

    written = modify(client, kinds.OPERATOR_CONDITION, name, OPERATOR_NAMESPACE, planned)
    return made if written or check_mode or made.action == "keep" else Planned(name, "none")


if __name__ == "__main__":
    main()
